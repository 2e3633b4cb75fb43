/** Meshes with the look of their materials; attributes colour them in the shader. */
import { BufferAttribute, BufferGeometry, Color, DoubleSide, FrontSide, InterleavedBuffer, InterleavedBufferAttribute, Mesh, MeshStandardMaterial, Vector2, type WebGLProgramParametersWithUniforms } from "three";
import type { Look, Mesh as FrameMesh } from "./frame";
import { RAMP_GLSL, RAMP_LINEAR } from "./ramp";
import type { Shared } from "./shared";

/** Triangles of a mesh up to which it is a box or a plane, whose edges are seen. */
const FACETED = 100;

export function surfaceOf(mesh: FrameMesh, shared: Shared, cutting: boolean): Mesh {
  const geometry = new BufferGeometry(), [low, high] = mesh.box, size = high.map((each, n) => each - low[n]), rows = new InterleavedBuffer(mesh.rows, 4);
  geometry.setAttribute("position", new InterleavedBufferAttribute(rows, 3, 0, true));
  geometry.setAttribute("value", new InterleavedBufferAttribute(rows, 1, 3, true));
  geometry.setIndex(new BufferAttribute(mesh.indices, 1));
  const smooth = mesh.matter || mesh.triangles > FACETED;
  if (smooth) geometry.setAttribute("normal", new BufferAttribute(normalsOf(mesh, size), 4, true));
  if (mesh.rgba) geometry.setAttribute("color", new BufferAttribute(mesh.rgba, 4, true));
  let begin = 0;
  mesh.looks.forEach((look, n) => { geometry.addGroup(begin, look.count, n); begin += look.count; });
  const made = new Mesh(geometry, mesh.looks.map((look) => materialOf(mesh, look, smooth, shared, cutting)));
  made.position.set(...low);
  made.scale.set(...(size as [number, number, number]));
  made.frustumCulled = false; // its sphere is that of the unit cube
  made.userData = { layer: mesh.layer, matter: mesh.matter, box: mesh.matter ? mesh.box : null };
  return made;
}

/** Clear matter is drawn by its front alone: its underside would show in patches where it lies on, or just in, a floor. A cut shows the inside. */
export const sideOf = (clear: boolean, cutting: boolean) => (clear && !cutting ? FrontSide : DoubleSide);

function materialOf(mesh: FrameMesh, look: Look, smooth: boolean, shared: Shared, cutting: boolean): MeshStandardMaterial {
  const [r, g, b] = look.colour, clear = look.opacity < 1;
  const material = new MeshStandardMaterial({
    color: mesh.rgba ? 0xffffff : new Color(`rgb(${r}, ${g}, ${b})`), vertexColors: mesh.rgba !== null, flatShading: !smooth, side: sideOf(clear && mesh.matter, cutting),
    roughness: Math.max(look.roughness, 0.15), metalness: look.metallic * 0.8, opacity: look.opacity, transparent: clear, clippingPlanes: cutting ? [shared.plane] : null,
  }); // metals that have nothing to mirror would be black
  if (mesh.has_values) {
    material.onBeforeCompile = (shader: WebGLProgramParametersWithUniforms) => {
      Object.assign(shader.uniforms, { held: { value: new Vector2(...mesh.values) }, shown: shared.shown, ramping: shared.ramped, ramp: { value: RAMP_LINEAR } });
      shader.vertexShader = shader.vertexShader.replace("#include <common>", "#include <common>\nattribute float value; varying float carried;").replace("#include <begin_vertex>", "#include <begin_vertex>\ncarried = value;");
      shader.fragmentShader = shader.fragmentShader.replace("#include <common>", `#include <common>\nvarying float carried; uniform vec2 held; uniform vec2 shown; uniform float ramping;\n${RAMP_GLSL}`)
        .replace("#include <color_fragment>", "#include <color_fragment>\nif (ramping > 0.5) { diffuseColor.rgb = ramped((held.x + carried * (held.y - held.x) - shown.x) / max(shown.y - shown.x, 1e-30)); diffuseColor.a = 1.0; }");
    };
    material.customProgramCacheKey = () => "valued";
  }
  return material;
}

/** Return smooth normals in the space of the rows, of which the mesh's scale makes those of the world: 8 bits each, (n, 4). */
function normalsOf(mesh: FrameMesh, size: number[]): Int8Array {
  const { rows, indices } = mesh, sums = new Float32Array(mesh.points * 3), found = new Int8Array(mesh.points * 4), [sx, sy, sz] = size;
  for (let at = 0; at < indices.length; at += 3) {
    const a = indices[at] * 4, b = indices[at + 1] * 4, c = indices[at + 2] * 4;
    const ux = (rows[b] - rows[a]) * sx, uy = (rows[b + 1] - rows[a + 1]) * sy, uz = (rows[b + 2] - rows[a + 2]) * sz;
    const vx = (rows[c] - rows[a]) * sx, vy = (rows[c + 1] - rows[a + 1]) * sy, vz = (rows[c + 2] - rows[a + 2]) * sz;
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
    for (const corner of [indices[at] * 3, indices[at + 1] * 3, indices[at + 2] * 3]) { sums[corner] += x; sums[corner + 1] += y; sums[corner + 2] += z; }
  }
  for (let n = 0; n < mesh.points; n++) {
    const x = sums[3 * n] * sx, y = sums[3 * n + 1] * sy, z = sums[3 * n + 2] * sz, longest = Math.max(Math.abs(x), Math.abs(y), Math.abs(z), 1e-30);
    found[4 * n] = (127 * x) / longest; found[4 * n + 1] = (127 * y) / longest; found[4 * n + 2] = (127 * z) / longest;
  }
  return found;
}
