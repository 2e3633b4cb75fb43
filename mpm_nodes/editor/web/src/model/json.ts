/**
 * JSON that is written back as it was read: what has not changed keeps its bytes, with its spacing and the spelling of its numbers.
 *
 * `parse` keeps where every value stands in the text; `print` takes a changed value and writes anew only what differs.
 */

/** Whole numbers that a double cannot hold to the digit are BigInt. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A value with its place in the text: [start, end), and what is inside it. */
interface Span { value: Json; start: number; end: number; keys?: string[]; keyStarts?: number[]; inner?: Span[] }

export interface Source { text: string; root: Span }

const SPACE = /[ \t\r\n]*/y, TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;

/** Parse a text that is known to be JSON. Throws SyntaxError elsewhere. */
export function parse(text: string): Source {
  JSON.parse(text); // refuses what is no JSON, so that below only the places are looked for
  let at = 0;
  const skip = () => { SPACE.lastIndex = at; SPACE.test(text); at = SPACE.lastIndex; };
  const token = () => {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (!found) throw new SyntaxError(`not JSON at ${at}`);
    at = TOKEN.lastIndex;
    const read = JSON.parse(found[0]) as Json;
    return typeof read === "number" && !Number.isSafeInteger(read) && /^-?\d+$/.test(found[0]) ? BigInt(found[0]) : read;
  };
  const value = (): Span => {
    skip();
    const start = at;
    if (text[at] === "{") {
      const span: Span = { value: {}, start, end: 0, keys: [], keyStarts: [], inner: [] };
      for (at++, skip(); text[at] !== "}"; skip()) {
        if (text[at] === ",") { at++; skip(); }
        span.keyStarts!.push(at);
        const key = token() as string;
        skip(); at++; // the colon
        const inner = value();
        span.keys!.push(key);
        span.inner!.push(inner);
        put(span.value as JsonObject, key, inner.value);
      }
      span.end = ++at;
      return span;
    }
    if (text[at] === "[") {
      const span: Span = { value: [], start, end: 0, inner: [] };
      for (at++, skip(); text[at] !== "]"; skip()) {
        if (text[at] === ",") at++;
        const inner = value();
        span.inner!.push(inner);
        (span.value as Json[]).push(inner.value);
      }
      span.end = ++at;
      return span;
    }
    const read = token();
    return { value: read, start, end: at };
  };
  return { text, root: value() };
}

/** Set a key as its own property, whatever it is called: `__proto__` is a name like any other. */
export function put(object: JsonObject, key: string, value: Json): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, n) => same(item, b[n]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

/** Return the text of a value; parts that are the same as in `source` are taken from it. */
export function print(value: Json, source: Source): string {
  const body = merged(value, source.root, source.text, 0);
  return source.text.slice(0, source.root.start) + body + source.text.slice(source.root.end);
}

function merged(value: Json, was: Span, text: string, depth: number): string {
  if (same(value, was.value)) return text.slice(was.start, was.end);
  if (isObject(value) && was.keys) return mergedObject(value, was, text, depth);
  if (Array.isArray(value) && was.inner && !was.keys && was.inner.length) return mergedArray(value, was, text, depth);
  return pretty(value, depth);
}

function mergedObject(value: JsonObject, was: Span, text: string, depth: number): string {
  const keys = Object.keys(value), old = new Map(was.keys!.map((key, n) => [key, n])), inner = was.inner!;
  if (!keys.length) return "{}";
  if (!inner.length) return pretty(value, depth);
  const kept = was.keys!.filter((key) => Object.hasOwn(value, key)); // old ones stay where they were, new ones come last
  const parts = [...kept, ...keys.filter((key) => !old.has(key))].map((key) => {
    const n = old.get(key);
    if (n === undefined) return { n: -1, body: `${JSON.stringify(key)}: ${pretty(value[key], depth + 1)}` };
    return { n, body: text.slice(was.keyStarts![n], inner[n].start) + merged(value[key], inner[n], text, depth + 1) };
  });
  return `{${joined(parts, was, was.keyStarts!, text)}${text.slice(inner.at(-1)!.end, was.end)}`;
}

function mergedArray(value: Json[], was: Span, text: string, depth: number): string {
  const inner = was.inner!;
  if (!value.length) return "[]";
  const parts = value.map((item, n) => (n < inner.length ? { n, body: merged(item, inner[n], text, depth + 1) } : { n: -1, body: pretty(item, depth + 1) }));
  return `[${joined(parts, was, inner.map((each) => each.start), text)}${text.slice(inner.at(-1)!.end, was.end)}`;
}

/** Join parts as they were set apart; `n` is which part of `was` one is, -1 for a new one, and `starts` say where those begin. */
function joined(parts: { n: number; body: string }[], was: Span, starts: number[], text: string): string {
  const between = (n: number) => text.slice(was.inner![n - 1].end, starts[n]), head = text.slice(was.start + 1, starts[0]);
  const usual = starts.length > 1 ? between(starts.length - 1) : `,${head.includes("\n") ? head : " "}`;
  return parts.map(({ n, body }, place) => (place === 0 ? head : n > 0 && parts[place - 1].n === n - 1 ? between(n) : usual) + body).join("");
}

/** Return a value as text; what is short stands on one line. */
export function pretty(value: Json, depth = 0, width = 110): string {
  const flat = oneLine(value);
  const holds = isObject(value) && Object.values(value).some((item) => isObject(item) && Object.keys(item).length);
  if (typeof value !== "object" || value === null || (flat.length + depth * 2 <= width && !holds)) return flat;
  const pad = "  ".repeat(depth + 1), end = "\n" + "  ".repeat(depth);
  if (Array.isArray(value)) return `[\n${value.map((item) => pad + pretty(item, depth + 1, width)).join(",\n")}${end}]`;
  return `{\n${Object.entries(value).map(([key, item]) => `${pad}${JSON.stringify(key)}: ${pretty(item, depth + 1, width)}`).join(",\n")}${end}}`;
}

export function oneLine(value: Json): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`).join(", ")}}`;
  return JSON.stringify(value);
}
