/** Outlines of emitters, colliders and walls as their knobs say at a frame, before anything is cooked; and the knobs that a moved outline means. */
import { BoxGeometry, BufferGeometry, CapsuleGeometry, EdgesGeometry, Euler, LineBasicMaterial, LineSegments, type Object3D, PlaneGeometry, Quaternion, SphereGeometry, Vector3, WireframeGeometry } from "three";
import { entryOf, knobsOf, nodesOf, typeOf } from "../model/graph";
import type { Json, JsonObject } from "../model/json";
import type { Kind, Kinds } from "../model/spec";
import { valueAt, valueSetAt } from "../model/keys";

const SHAPES: Record<string, (read: Reader) => BufferGeometry> = {
  box: (read) => { const size = read.vector("size"); return new BoxGeometry(...size); },
  sphere: (read) => new SphereGeometry(read.number("radius"), 16, 8),
  capsule: (read) => new CapsuleGeometry(read.number("radius"), read.number("length"), 4, 12),
  plane: (read) => { const side = read.number("shown_size") || 2; return new PlaneGeometry(side, side).rotateX(-Math.PI / 2); },
};
/** Largest length of an outline [m]. */
const FARTHEST = 1e6;
/** Files' shapes are not read here: a cross marks where they are moved from. */
const CROSS = () => new BoxGeometry(0.1, 0.1, 0.1);
export type Mode = "translate" | "rotate" | "scale";

class Reader {
  constructor(private readonly knobs: JsonObject, private readonly defaults: Map<string, Json>, private readonly frame: number) {}
  value(name: string): Json | undefined { return valueAt(this.knobs[name] ?? this.defaults.get(name), this.frame); }
  has(name: string): boolean { return this.defaults.has(name); }
  number(name: string): number { const found = this.value(name); return typeof found === "number" ? found : 0; }
  vector(name: string): [number, number, number] { const found = this.value(name); return Array.isArray(found) && found.length === 3 ? (found.map(Number) as [number, number, number]) : [0, 0, 0]; }
  /** Whether the quaternion turns the body, not the angles. */
  oriented(): boolean { const found = this.value("orientation"); return Array.isArray(found) && found.some((part, n) => Number(part) !== (n ? 0 : 1)); }
  orientation(): Quaternion {
    const found = this.value("orientation"), [w, x, y, z] = Array.isArray(found) && found.length === 4 ? found.map(Number) : [1, 0, 0, 0];
    return new Quaternion(x, y, z, w).normalize();
  }
}

function readerOf(document: JsonObject, name: string, kind: Kind, frame: number): Reader {
  return new Reader(knobsOf(entryOf(document, name)), new Map(kind.knobs.map((knob) => [knob.name, knob.default])), frame);
}

/** Whether a body is larger, or farther away, than lengths that single precision can draw beside metres. */
const tooFar = (read: Reader, place: string) => [...["radius", "length", "shown_size"].map((each) => read.number(each)), ...read.vector("size"), ...read.vector(place || "centre")].some((part) => !(Math.abs(part) < FARTHEST));

/** Return the knob that places a body of a kind, "" where it has none. */
const placeKnob = (read: Reader): string => ["centre", "translation", "translate"].find((name) => read.has(name)) ?? "";

const SIDES = ["x", "y", "z"].flatMap((name, axis) => [{ knob: `wall_${name}_low`, axis, sign: -1 }, { knob: `wall_${name}_high`, axis, sign: 1 }]);

/** Return frames of the sides of a solve that are not open, between its two corners; null where all are. */
function wallsOf(read: Reader, name: string): Object3D | null {
  const low = new Vector3(...read.vector("wall_low")), size = new Vector3(...read.vector("wall_high")).sub(low), half = size.clone().multiplyScalar(0.5);
  const closed = SIDES.filter((side) => read.has(side.knob) && read.value(side.knob) !== "open");
  if (!closed.length || !(Math.min(...size.toArray()) > 0) || !(Math.max(low.length(), size.length()) < FARTHEST)) return null;
  const points = closed.flatMap(({ axis, sign }) => {
    const [u, v] = [0, 1, 2].filter((each) => each !== axis);
    const corner = (a: number, b: number) => new Vector3().setComponent(axis, sign * half.getComponent(axis)).setComponent(u, a * half.getComponent(u)).setComponent(v, b * half.getComponent(v));
    const [p, q, r, s] = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)];
    return [p, q, q, r, r, s, s, p];
  });
  const lines = new LineSegments(new BufferGeometry().setFromPoints(points), new LineBasicMaterial({ color: 0x8fa3b0, transparent: true, opacity: 0.7 }));
  lines.position.copy(low).add(half);
  lines.userData = { node: name, walls: half, modes: ["translate", "scale"] satisfies Mode[], even: false };
  return lines;
}

export function guidesOf(document: JsonObject, kinds: Kinds, frame: number): Object3D[] {
  const found: Object3D[] = [];
  for (const name of Object.keys(nodesOf(document))) {
    const type = typeOf(entryOf(document, name)), kind = kinds.nodes.get(type), [family, shape] = type.split("_", 2);
    if (!kind || !["emit", "collide", "solve"].includes(family)) continue;
    const read = readerOf(document, name, kind, frame), walls = family === "solve" ? wallsOf(read, name) : null;
    if (walls) found.push(walls);
    if (family === "solve") continue;
    const place = placeKnob(read);
    if (!SHAPES[shape] && !place) continue;
    if (tooFar(read, place)) continue; // the view could not show anything else beside it
    const solid = (SHAPES[shape] ?? CROSS)(read), plain = shape !== "sphere" && shape !== "capsule";
    const lines = new LineSegments(plain ? new EdgesGeometry(solid) : new WireframeGeometry(solid), new LineBasicMaterial({ color: family === "emit" ? 0x4fb3d9 : 0xc98f4a, transparent: true, opacity: plain ? 0.9 : 0.35 }));
    solid.dispose();
    const [x, y, z] = read.vector("rotation").map((degrees) => (degrees * Math.PI) / 180);
    lines.setRotationFromEuler(new Euler(x, y, z, "ZYX")); // about x, then y, then z
    lines.quaternion.multiply(read.orientation()); // one of the two is the identity
    lines.position.set(...read.vector(place || "centre"));
    const modes: Mode[] = [...(place ? ["translate" as const] : []), ...(read.has("rotation") ? ["rotate" as const] : []), ...(["size", "radius", "shown_size", "scale"].some((each) => read.has(each) && SHAPES[shape]) ? ["scale" as const] : [])];
    lines.userData = { node: name, floor: shape === "plane", modes, even: shape === "sphere" || shape === "plane" };
    found.push(lines);
  }
  return found;
}

/** Return a length that can be read, as precise as a hand is. */
const tidy = (value: number, digits = 4) => Number(value.toPrecision(digits)) || 0;

/** Return what the knobs of a node become when its outline was moved, turned or scaled; of a knob with keys, the key at the frame. */
export function knobsAfter(document: JsonObject, kinds: Kinds, outline: Object3D, mode: Mode, frame: number): Map<string, Json> {
  const name = String(outline.userData.node), entry = entryOf(document, name), kind = kinds.nodes.get(typeOf(entry)), found = new Map<string, Json>();
  if (!kind) return found;
  const read = readerOf(document, name, kind, frame);
  const put = (knob: string, value: Json) => found.set(knob, valueSetAt(knobsOf(entry)[knob], frame, value, kind.knobs.find((each) => each.name === knob)!));
  if (outline.userData.walls) {
    const half = (outline.userData.walls as Vector3).clone().multiply(outline.scale);
    const corner = (sign: number) => outline.position.clone().addScaledVector(half, sign).toArray().map((part) => Number(part.toFixed(4)) || 0);
    put("wall_low", corner(-1));
    put("wall_high", corner(1));
  } else if (mode === "translate") put(placeKnob(read), outline.position.toArray().map((part) => Number(part.toFixed(4)) || 0));
  else if (mode === "rotate" && read.oriented()) { const { w, x, y, z } = outline.quaternion; put("orientation", [w, x, y, z].map((part) => tidy(part, 7))); }
  else if (mode === "rotate") { const { x, y, z } = new Euler().setFromQuaternion(outline.quaternion, "ZYX"); put("rotation", [x, y, z].map((part) => Number(((part * 180) / Math.PI).toFixed(2)) || 0)); }
  else {
    const scale = outline.scale, most = furthest(scale);
    if (read.has("size")) put("size", read.vector("size").map((part, n) => tidy(part * scale.getComponent(n))));
    for (const knob of ["radius", "length", "shown_size"]) {
      if (read.has(knob) && read.number(knob)) put(knob, tidy(read.number(knob) * (read.has("length") ? (knob === "length" ? scale.y : Math.abs(scale.x - 1) > Math.abs(scale.z - 1) ? scale.x : scale.z) : most)));
    }
  }
  return found;
}

/** Return the factor of the axis that was pulled. */
function furthest(scale: Vector3): number { return scale.toArray().reduce((most, each) => (Math.abs(each - 1) > Math.abs(most - 1) ? each : most), 1); }
