/** Fog as a 3D texture, of which rays gather what they meet up to the matter behind. */
import { BackSide, BoxGeometry, Color, Data3DTexture, GLSL3, LinearFilter, Matrix4, Mesh, type PerspectiveCamera, RedFormat, ShaderMaterial, type Texture, Vector2, Vector3 } from "three";
import type { Fog } from "./frame";
import type { Shared } from "./shared";

/** Extinction of the densest fog, so that this many diagonals of its box let 1/e of the light through. */
const REACH = 0.06;

const VERTEX = /* glsl */ `
  out vec3 local; out vec3 seen;
  void main() {
    local = position;
    vec4 place = modelViewMatrix * vec4(position, 1.0);
    seen = place.xyz;
    gl_Position = projectionMatrix * place;
  }`;
const FRAGMENT = /* glsl */ `
  precision highp float; precision highp sampler3D;
  in vec3 local; in vec3 seen;
  out vec4 result;
  uniform sampler3D voxels; uniform sampler2D depth; uniform vec2 screen; uniform vec3 eye; uniform vec3 colour; uniform vec4 cut; uniform mat4 placing;
  uniform float thickness; uniform float near; uniform float far; uniform float steps; uniform vec3 sun;
  void main() {
    vec3 along = local - eye;
    vec3 a = -eye / along, b = (1.0 - eye) / along;
    vec3 lows = min(a, b), highs = max(a, b);
    float begin = max(max(lows.x, max(lows.y, lows.z)), near / -seen.z), end = min(1.0, min(highs.x, min(highs.y, highs.z)));
    float raw = texture(depth, gl_FragCoord.xy / screen).r;
    float behind = near * far / (far - raw * (far - near));
    end = min(end, behind / -seen.z);
    vec3 from = (placing * vec4(eye, 1.0)).xyz, to = (placing * vec4(local, 1.0)).xyz;
    float side = dot(cut.xyz, to - from), at = (cut.w - dot(cut.xyz, from)) / (abs(side) < 1e-12 ? 1e-12 : side);
    if (abs(side) < 1e-12) { if (dot(cut.xyz, from) > cut.w) discard; } else if (side > 0.0) end = min(end, at); else begin = max(begin, at);
    if (end <= begin) discard;
    float step = (end - begin) / steps, far_ = length(to - from) * step * thickness;
    float jitter = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
    float through = 1.0; vec3 light = vec3(0.0);
    for (float n = 0.0; n < 128.0; n += 1.0) {
      if (n >= steps || through < 0.01) break;
      vec3 p = eye + along * (begin + (n + jitter) * step);
      float rho = texture(voxels, p).r;
      if (rho < 0.004) continue;
      float taken = 1.0 - exp(-rho * far_);
      float lit = 0.45 + 0.55 * clamp(1.0 - (texture(voxels, p + sun).r + texture(voxels, p + 2.0 * sun).r) * 0.6, 0.0, 1.0);
      light += through * taken * lit * colour;
      through *= 1.0 - taken;
    }
    result = vec4(light / max(1.0 - through, 1e-4), 1.0 - through);
    result.rgb = pow(result.rgb, vec3(1.0 / 2.2));
  }`;

export function fogOf(fog: Fog, shared: Shared): Mesh {
  const texture = new Data3DTexture(fog.voxels, ...fog.size);
  texture.format = RedFormat;
  texture.minFilter = texture.magFilter = LinearFilter;
  texture.unpackAlignment = 1;
  texture.needsUpdate = true;
  const placing = new Matrix4().fromArray(fog.matrix), size = new Vector3().setFromMatrixScale(placing), [r, g, b] = fog.look.colour;
  const made = new Mesh(new BoxGeometry(1, 1, 1).translate(0.5, 0.5, 0.5), new ShaderMaterial({
    vertexShader: VERTEX, fragmentShader: FRAGMENT, glslVersion: GLSL3, side: BackSide, transparent: true, depthTest: false, depthWrite: false,
    uniforms: {
      voxels: { value: texture }, depth: { value: null }, screen: { value: new Vector2(1, 1) }, eye: { value: new Vector3() }, placing: { value: placing }, colour: { value: new Color(`rgb(${r}, ${g}, ${b})`) },
      thickness: { value: 1 / (REACH * size.length()) }, near: { value: 0.1 }, far: { value: 100 }, steps: shared.steps, cut: shared.cut,
      sun: { value: new Vector3(-0.35, 0.75, 0.55).normalize().multiplyScalar(0.06 * Math.max(size.x, size.y, size.z)).divide(size) },
    },
  }));
  made.matrixAutoUpdate = false;
  made.matrix.copy(placing);
  made.frustumCulled = false;
  made.renderOrder = 10;
  made.userData = { layer: fog.layer, matter: true, box: boxOf(placing), fog: true, texture };
  return made;
}

/** Tell a fog where the eye is, and what lies behind it. */
export function aim(fog: Mesh, camera: PerspectiveCamera, depth: Texture, screen: Vector2): void {
  const { uniforms } = fog.material as ShaderMaterial;
  uniforms.eye.value.copy(camera.position).applyMatrix4(new Matrix4().copy(fog.matrix).invert());
  uniforms.depth.value = depth;
  uniforms.screen.value.copy(screen);
  uniforms.near.value = camera.near;
  uniforms.far.value = camera.far;
}

function boxOf(placing: Matrix4): [[number, number, number], [number, number, number]] {
  const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => new Vector3(n & 1, (n >> 1) & 1, n >> 2).applyMatrix4(placing));
  const low = corners.reduce((sum, each) => sum.min(each), corners[0].clone()), high = corners.reduce((sum, each) => sum.max(each), corners[0].clone());
  return [low.toArray(), high.toArray()];
}
