/** Values over frames: {"keys": [[frame, value, interpolation], ...]}, sampled as mpm_nodes/graph/time/keys.py does. */
import { type Json, isObject } from "./json";
import type { Knob } from "./spec";

export type Key = Json[];
export interface Keyed { keys: Key[]; [other: string]: Json }

/** Whether a value has keys that can be drawn; what only looks like them is shown as JSON, and the check says what is wrong. */
export const isKeyed = (value: Json | undefined): value is Keyed => isObject(value) && Array.isArray(value.keys) && value.keys.length > 0
  && value.keys.every((key) => Array.isArray(key) && key.length > 1 && typeof key[0] === "number");
/** Whether there is nothing between two values: keys of such knobs are steps. */
export const inSteps = (knob: Knob) => knob.kind === "enum" || knob.kind === "bool";
export const frameOf = (key: Key) => Number(key[0]);

/** Return the value at a (fractional) frame; quaternions turn at an even rate when cooked, and are drawn straight here. */
export function sampled({ keys }: Keyed, frame: number): Json {
  let n = keys.findIndex((key) => frameOf(key) > frame) - 1;
  if (n === -1) return keys[0][1];
  if (n === -2) n = keys.length - 1;
  const [from, value, mode] = keys[n], next = keys[n + 1];
  if (!next || mode === "step") return value;
  const t = (frame - Number(from)) / (frameOf(next) - Number(from)), s = mode === "smooth" ? t * t * (3 - 2 * t) : t;
  if (s === 0) return value;
  const between = (a: Json, b: Json): Json => (typeof a === "number" && typeof b === "number" ? Number((a + (b - a) * s).toPrecision(9)) : a);
  return Array.isArray(value) && Array.isArray(next[1]) ? value.map((each, c) => between(each, (next[1] as Json[])[c])) : between(value, next[1]);
}

/** Return the value of a knob at a frame, keyed or not. */
export const valueAt = (given: Json | undefined, frame: number): Json | undefined => (isKeyed(given) ? sampled(given, frame) : given);

/** Return what a knob becomes that shall have a value at a frame: the value, or where it has keys, these with one at the frame. */
export const valueSetAt = (given: Json | undefined, frame: number, value: Json, knob: Knob): Json => (isKeyed(given) ? withKey(given, frame, value, knob) : value);

/** Return a value with a key at a frame, in the place of the one that is there; what is not keyed gets its first. */
export function withKey(value: Json, frame: number, at: Json, knob: Knob): Keyed {
  const before = isKeyed(value) ? value.keys : [], there = before.find((key) => frameOf(key) === frame), last = before.findLast((key) => frameOf(key) < frame);
  const mode = there?.[2] ?? last?.[2] ?? (inSteps(knob) ? "step" : "linear");
  const keys = [...before.filter((key) => key !== there), [frame, at, mode]].sort((a, b) => frameOf(a) - frameOf(b));
  return isKeyed(value) ? { ...value, keys } : { keys };
}

/** Return a value without its n-th key; with the last key goes the list, and the value stays. */
export function withoutKey(value: Keyed, n: number): Json {
  return value.keys.length > 1 ? { ...value, keys: value.keys.filter((_, m) => m !== n) } : value.keys[0][1];
}

/** Return a value with a changed key; one that would lie on another frame's stays as it is. */
export function withChangedKey(value: Keyed, n: number, frame: number, at: Json): { value: Keyed; n: number } {
  if (value.keys.some((key, m) => m !== n && frameOf(key) === frame)) return { value, n };
  const key = [frame, at, ...value.keys[n].slice(2)], keys = [...value.keys.filter((_, m) => m !== n), key].sort((a, b) => frameOf(a) - frameOf(b));
  return { value: { ...value, keys }, n: keys.indexOf(key) };
}

// ---------------------------------------------------------------- as it is drawn
/** Return a value as heights of curves: components of a vector, or the place of a choice in its menu. */
export function heights(value: Json, knob: Knob): number[] {
  if (knob.kind === "enum") return [Math.max(0, knob.menu.findIndex((each) => each.value === value))];
  if (knob.kind === "bool") return [value === true ? 1 : 0];
  return (Array.isArray(value) ? value : [value]).map((each) => (typeof each === "number" ? each : 0));
}

/** Return a value with another height of one of its curves. */
export function withHeight(value: Json, component: number, height: number, knob: Knob): Json {
  const { min, max } = knob.range ?? { min: null, max: null };
  if (knob.kind === "enum") return knob.menu[Math.min(Math.max(Math.round(height), 0), knob.menu.length - 1)]?.value ?? value;
  if (knob.kind === "bool") return height >= 0.5;
  const whole = knob.kind === "int" || knob.element === "int" ? Math.round(height) : height, now = Math.min(Math.max(whole, min ?? -Infinity), max ?? Infinity);
  if (knob.range?.exclusive_min && min !== null && now <= min) return value;
  return Array.isArray(value) ? value.map((each, c) => (c === component ? now : each)) : now;
}

/** Return a step of 1, 2 or 5 times a power of ten, of which about `count` fill a span. */
export function step(span: number, count: number): number {
  const raw = Math.max(span, 1e-12) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw) + 1e-9), part = raw / power - 1e-9;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

export function ticks(low: number, high: number, count: number): number[] {
  const by = step(high - low, count), first = Math.ceil(low / by - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / by + 1e-9) - first + 1) }, (_, n) => Number(((first + n) * by).toPrecision(12)));
}
