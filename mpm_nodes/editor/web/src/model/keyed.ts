/** Knobs with keys over frames: `{"keys": [[frame, value, interpolation], ...]}`; see mpm_nodes/graph/time/keys.py. */
import { isObject, type Json } from "./json";

const keysOf = (given: Json | undefined): Json[][] | null => (isObject(given) && Array.isArray(given.keys) && given.keys.length && given.keys.every((key) => Array.isArray(key) && typeof key[0] === "number") ? (given.keys as Json[][]) : null);

/** Return the value of a knob at a frame: of keys, that between the two around it. */
export function keyedAt(given: Json | undefined, frame: number): Json | undefined {
  const keys = keysOf(given);
  if (!keys) return given;
  const at = keys.findLastIndex((key) => Number(key[0]) <= frame), key = keys[Math.max(at, 0)], next = keys[at + 1];
  if (at < 0 || !next || key[2] === "step") return key[1];
  const s = (frame - Number(key[0])) / (Number(next[0]) - Number(key[0])), share = key[2] === "smooth" ? s * s * (3 - 2 * s) : s;
  const mixed = (a: Json, b: Json): Json => (typeof a === "number" && typeof b === "number" ? a + share * (b - a) : a);
  const from = key[1], to = next[1];
  return Array.isArray(from) && Array.isArray(to) ? from.map((part, n) => mixed(part, to[n])) : mixed(from, to);
}

/** Return what a knob becomes that shall have a value at a frame: the value, or where it has keys, these with one at the frame. */
export function withKey(given: Json | undefined, frame: number, value: Json): Json {
  const keys = keysOf(given);
  if (!keys || !isObject(given)) return value;
  const at = keys.findLastIndex((key) => Number(key[0]) <= frame), mode = keys[Math.max(at, 0)][2] ?? "linear";
  const others = keys.filter((key) => key[0] !== frame), changed = [...others, [frame, value, keys.find((key) => key[0] === frame)?.[2] ?? mode]];
  return { ...given, keys: changed.sort((a, b) => Number(a[0]) - Number(b[0])) };
}
