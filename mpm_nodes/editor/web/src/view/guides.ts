/** Outlines of emitters and colliders as their knobs say, before anything is cooked; keyed knobs show their first key. */
import { BoxGeometry, type BufferGeometry, CapsuleGeometry, EdgesGeometry, Euler, LineBasicMaterial, LineSegments, type Object3D, PlaneGeometry, Quaternion, SphereGeometry, WireframeGeometry } from "three";
import { entryOf, knobsOf, nodesOf, typeOf } from "../model/graph";
import { isObject, type Json, type JsonObject } from "../model/json";
import type { Kinds } from "../model/spec";

const SHAPES: Record<string, (read: Reader) => BufferGeometry> = {
  box: (read) => { const size = read.vector("size"); return new BoxGeometry(...size); },
  sphere: (read) => new SphereGeometry(read.number("radius"), 16, 8),
  capsule: (read) => new CapsuleGeometry(read.number("radius"), read.number("length"), 4, 12),
  plane: (read) => { const side = read.number("shown_size") || 2; return new PlaneGeometry(side, side).rotateX(-Math.PI / 2); },
};

class Reader {
  constructor(private readonly knobs: JsonObject, private readonly defaults: Map<string, Json>) {}
  private value(name: string): Json | undefined {
    const given = this.knobs[name] ?? this.defaults.get(name);
    return isObject(given) && Array.isArray(given.keys) && Array.isArray(given.keys[0]) ? given.keys[0][1] : given;
  }
  has(name: string): boolean { return this.defaults.has(name); }
  number(name: string): number { const found = this.value(name); return typeof found === "number" ? found : 0; }
  vector(name: string): [number, number, number] { const found = this.value(name); return Array.isArray(found) && found.length === 3 ? (found.map(Number) as [number, number, number]) : [0, 0, 0]; }
  orientation(): Quaternion {
    const found = this.value("orientation"), [w, x, y, z] = Array.isArray(found) && found.length === 4 ? found.map(Number) : [1, 0, 0, 0];
    return new Quaternion(x, y, z, w).normalize();
  }
}

export function guidesOf(document: JsonObject, kinds: Kinds): Object3D[] {
  const found: Object3D[] = [];
  for (const name of Object.keys(nodesOf(document))) {
    const entry = entryOf(document, name), type = typeOf(entry), kind = kinds.nodes.get(type), [family, shape] = type.split("_", 2);
    if (!kind || !["emit", "collide"].includes(family) || !SHAPES[shape]) continue;
    const read = new Reader(knobsOf(entry), new Map(kind.knobs.map((knob) => [knob.name, knob.default]))), solid = SHAPES[shape](read);
    const lines = new LineSegments(shape === "box" || shape === "plane" ? new EdgesGeometry(solid) : new WireframeGeometry(solid), new LineBasicMaterial({ color: family === "emit" ? 0x4fb3d9 : 0xc98f4a, transparent: true, opacity: shape === "box" || shape === "plane" ? 0.9 : 0.35 }));
    const [x, y, z] = read.vector("rotation").map((degrees) => (degrees * Math.PI) / 180);
    lines.setRotationFromEuler(new Euler(x, y, z, "ZYX")); // about x, then y, then z
    lines.quaternion.multiply(read.orientation()); // one of the two is the identity
    lines.position.set(...read.vector(read.has("centre") ? "centre" : "translation"));
    lines.userData = { node: name, floor: shape === "plane" };
    found.push(lines);
  }
  return found;
}
