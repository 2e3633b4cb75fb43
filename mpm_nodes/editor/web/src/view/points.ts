/** Points as shaded spheres: quads of the GPU whose rows of 16 bits lie as they came. */
import { BufferAttribute, BufferGeometry, Points, ShaderMaterial, Vector2, Vector3 } from "three";
import { outer, sidesOf } from "../model/outer";
import type { Cloud, Triple } from "./frame";
import { RAMP_GLSL, RAMP_SRGB } from "./ramp";
import type { Shared } from "./shared";

const VERTEX = /* glsl */ `
  attribute vec4 row;
  attribute vec4 rgba;
  uniform vec3 low; uniform vec3 extent; uniform vec2 held; uniform vec2 shown; uniform vec3 colour; uniform vec4 cut;
  uniform float radius; uniform float size; uniform float grown; uniform float pixels; uniform float mixed; uniform float valued; uniform float ramping;
  varying vec3 tint;
  ${RAMP_GLSL}
  void main() {
    vec3 world = low + row.xyz * extent;
    vec4 place = modelViewMatrix * vec4(world, 1.0);
    gl_Position = dot(cut.xyz, world) > cut.w ? vec4(2.0, 2.0, 2.0, 1.0) : projectionMatrix * place;
    gl_PointSize = max(1.5, 2.0 * radius * size * grown * pixels / -place.z);
    float value = held.x + row.w * (held.y - held.x);
    tint = ramping * valued > 0.5 ? ramped((value - shown.x) / max(shown.y - shown.x, 1e-30)) : mixed > 0.5 ? rgba.rgb : colour;
  }`;
const FRAGMENT = /* glsl */ `
  varying vec3 tint;
  void main() {
    vec2 at = 2.0 * gl_PointCoord - 1.0;
    float inside = 1.0 - dot(at, at);
    if (inside < 0.0) discard;
    vec3 normal = vec3(at.x, -at.y, sqrt(inside));
    float light = 0.38 + 0.62 * max(dot(normal, normalize(vec3(-0.35, 0.75, 0.55))), 0.0);
    gl_FragColor = vec4(tint * light, 1.0);
  }`;

/** Return the points of a cloud; with `sparing`, those that cannot be seen from outside are not drawn as long as `drawShare` leaves them out. */
export function pointsOf(cloud: Cloud, shared: Shared, sparing: boolean): Points {
  const geometry = new BufferGeometry(), [low, high] = cloud.box;
  geometry.setAttribute("row", new BufferAttribute(cloud.points, 4, true));
  if (cloud.rgba) geometry.setAttribute("rgba", new BufferAttribute(cloud.rgba, 4, true));
  const radius = cloud.radius * Math.cbrt(cloud.count / Math.max(cloud.shown, 1)), seenFrom = sparing ? outer(cloud, radius) : null;
  const material = new ShaderMaterial({
    vertexShader: VERTEX, fragmentShader: FRAGMENT,
    uniforms: {
      low: { value: new Vector3(...low) }, extent: { value: new Vector3(...high.map((each, n) => each - low[n])) }, held: { value: new Vector2(...cloud.values) },
      colour: { value: new Vector3(...cloud.look.colour.map((each) => each / 255)) }, ramp: { value: RAMP_SRGB },
      radius: { value: radius }, mixed: { value: cloud.rgba ? 1 : 0 }, valued: { value: cloud.has_values ? 1 : 0 },
      shown: shared.shown, size: shared.size, grown: shared.grown, pixels: shared.pixels, cut: shared.cut, ramping: shared.ramped,
    },
  });
  const points = new Points(geometry, material);
  points.frustumCulled = false;
  points.userData = { layer: cloud.layer, matter: true, box: cloud.box, cloud, seenFrom };
  return points;
}

/** Draw the first of a cloud's points: of those that can be seen from where the eye is, or of all without an eye. */
export function drawShare({ geometry, userData }: Points, share: number, eye: Triple | null): void {
  const { cloud, seenFrom } = userData as { cloud: Cloud; seenFrom: ReturnType<typeof outer> }, sides = eye && seenFrom && sidesOf(cloud.box, eye), key = String(sides);
  if (userData.sides !== key) {
    const seen = sides && seenFrom!(sides);
    geometry.setIndex(seen && new BufferAttribute(seen, 1));
    userData.sides = key;
  }
  geometry.setDrawRange(0, Math.ceil((geometry.index?.count ?? cloud.shown) * share));
}
