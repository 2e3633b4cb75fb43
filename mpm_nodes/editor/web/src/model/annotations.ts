/**
 * What helps people to read a graph and means nothing to a cook: frames, notes, colours of nodes, and dots that wires go through.
 *
 * It stands under `editor.page` of the graph, or of a node, where every host keeps what it does not understand. Wires stay wires between
 * nodes: a dot is a place on the way, kept by the node that the wire goes to. y grows upwards, as in places of nodes.
 */
import { type Json, type JsonObject, isObject, put } from "./json";

export type Point = [number, number];
/** A frame around nodes, or a note; `position` is its upper left corner. */
export interface Box { id: string; kind: "frame" | "note"; text: string; colour: string; position: Point; size: Point }

/** Colours to choose from: white text holds 4.5 to 1 on them. */
export const COLOURS = ["#8a3b33", "#8a5a1f", "#6b6a1c", "#3c6e3a", "#2a6b70", "#35609a", "#66509c", "#8a3f73", "#5c6067"];
const COLOUR = /^#[0-9a-f]{6}$/i, BOX = /^(frame|note):(\d+)$/, LISTS = { frame: "frames", note: "notes" } as const;
const USUAL: Record<Box["kind"], { size: Point; colour: string }> = { frame: { size: [320, 200], colour: COLOURS[5] }, note: { size: [200, 90], colour: COLOURS[1] } };

function pageOf(record: JsonObject): JsonObject {
  return isObject(record.editor) && isObject(record.editor.page) ? record.editor.page : {};
}

/** Return the record with another value of `editor.page`; what is empty is taken away. */
function withPage(record: JsonObject, name: string, value: Json | undefined): JsonObject {
  const { [name]: _, ...others } = pageOf(record), page = value === undefined ? others : { ...others, [name]: value };
  const { page: __, ...editors } = isObject(record.editor) ? record.editor : {}, { editor: ___, ...rest } = record;
  const editor = Object.keys(page).length ? { ...editors, page } : editors;
  return Object.keys(editor).length ? { ...record, editor } : rest;
}

const point = (value: Json | undefined): Point | null =>
  Array.isArray(value) && value.length === 2 && value.every((each) => typeof each === "number" && Number.isFinite(each)) ? [value[0] as number, value[1] as number] : null;

// ---------------------------------------------------------------- frames and notes
export const isBox = (name: string) => BOX.test(name);

export function boxesOf(graph: JsonObject): Box[] {
  const page = pageOf(graph);
  return (["frame", "note"] as const).flatMap((kind) => {
    const list = page[LISTS[kind]];
    return (Array.isArray(list) ? list : []).flatMap((each, n): Box[] => {
      const position = isObject(each) ? point(each.position) : null;
      if (!isObject(each) || !position) return [];
      const size = point(each.size) ?? USUAL[kind].size, colour = typeof each.colour === "string" && COLOUR.test(each.colour) ? each.colour : USUAL[kind].colour;
      return [{ id: `${kind}:${n}`, kind, text: typeof each.text === "string" ? each.text : "", colour, position, size: [Math.max(60, size[0]), Math.max(40, size[1])] }];
    });
  });
}

/** Return the graph with one more frame or note, and its id. */
export function withBox(graph: JsonObject, kind: Box["kind"], box: Partial<Box> & { position: Point }): { graph: JsonObject; id: string } {
  const given = pageOf(graph)[LISTS[kind]], list = Array.isArray(given) ? given : [];
  const fresh: JsonObject = { text: box.text ?? "", position: box.position, size: box.size ?? USUAL[kind].size, ...(box.colour ? { colour: box.colour } : {}) };
  return { graph: withPage(graph, LISTS[kind], [...list, fresh]), id: `${kind}:${list.length}` };
}

export function changedBox(graph: JsonObject, id: string, change: { text?: string; colour?: string; position?: Point; size?: Point }): JsonObject {
  const [, kind, n] = BOX.exec(id) ?? [], name = LISTS[kind as Box["kind"]], list = name && pageOf(graph)[name];
  if (!Array.isArray(list) || !isObject(list[Number(n)])) return graph;
  return withPage(graph, name, list.map((each, m) => (m === Number(n) ? { ...(each as JsonObject), ...change } : each)));
}

export function withoutBoxes(graph: JsonObject, ids: Set<string>): JsonObject {
  let found = graph;
  for (const kind of ["frame", "note"] as const) {
    const list = pageOf(graph)[LISTS[kind]];
    if (!Array.isArray(list) || ![...ids].some((id) => id.startsWith(`${kind}:`))) continue;
    const left = list.filter((_, n) => !ids.has(`${kind}:${n}`));
    found = withPage(found, LISTS[kind], left.length ? left : undefined);
  }
  return found;
}

// ---------------------------------------------------------------- nodes
/** Return the colour that somebody gave a node, "" for that of its category. */
export function colourOf(entry: JsonObject): string {
  const { colour } = pageOf(entry);
  return typeof colour === "string" && COLOUR.test(colour) ? colour : "";
}

export function withColour(entry: JsonObject, colour: string): JsonObject { return withPage(entry, "colour", colour || undefined); }

// ---------------------------------------------------------------- dots
/** Return where a wire into `port` goes through; `wire` is its text in the file. */
export function dotsOf(entry: JsonObject, port: string, wire: string): Point[] {
  const { dots } = pageOf(entry), ports = isObject(dots) && Object.hasOwn(dots, port) ? dots[port] : undefined;
  const list = isObject(ports) && Object.hasOwn(ports, wire) ? ports[wire] : undefined;
  return (Array.isArray(list) ? list : []).map(point).filter((each) => each !== null);
}

export function withDots(entry: JsonObject, port: string, wire: string, points: Point[]): JsonObject {
  const { dots } = pageOf(entry), ports = isObject(dots) ? dots : {}, of = isObject(ports[port]) ? ports[port] : {};
  const { [wire]: _, ...others } = of, now: JsonObject = { ...others };
  if (points.length) put(now, wire, points);
  const { [port]: __, ...rest } = ports, all: JsonObject = { ...rest };
  if (Object.keys(now).length) put(all, port, now);
  return withPage(entry, "dots", Object.keys(all).length ? all : undefined);
}

/** Return the entry with its dots kept by the wires' new names; null takes the dots of a wire away. */
export function rewiredDots(entry: JsonObject, renamed: (wire: string) => string | null): JsonObject {
  const { dots } = pageOf(entry);
  if (!isObject(dots)) return entry;
  let found = entry;
  for (const [port, of] of Object.entries(dots)) {
    for (const wire of isObject(of) ? Object.keys(of) : []) {
      const now = renamed(wire), points = dotsOf(entry, port, wire);
      if (now === wire) continue;
      found = withDots(found, port, wire, []);
      if (now !== null) found = withDots(found, port, now, points);
    }
  }
  return found;
}

export function shiftedDots(entry: JsonObject, dx: number, dy: number, of: (port: string, wire: string) => boolean = () => true): JsonObject {
  const { dots } = pageOf(entry);
  let found = entry;
  for (const [port, wires] of isObject(dots) ? Object.entries(dots) : []) {
    for (const wire of isObject(wires) ? Object.keys(wires) : []) {
      if (of(port, wire)) found = withDots(found, port, wire, dotsOf(entry, port, wire).map(([x, y]) => [x + dx, y + dy]));
    }
  }
  return found;
}

/** Return frames and notes with these ids as they stand in a file, for a graph that is copied; null where there are none. */
export function copiedBoxes(graph: JsonObject, ids: Set<string>): JsonObject | null {
  const page = pageOf(graph), found: JsonObject = {};
  for (const kind of ["frame", "note"] as const) {
    const list = page[LISTS[kind]], left = (Array.isArray(list) ? list : []).filter((_, n) => ids.has(`${kind}:${n}`));
    if (left.length) found[LISTS[kind]] = left;
  }
  return Object.keys(found).length ? { page: found } : null;
}

/** Return the graph with the frames and notes of another one beside its own, and their ids. */
export function withBoxesOf(graph: JsonObject, other: JsonObject, dx: number, dy: number): { graph: JsonObject; ids: string[] } {
  const ids: string[] = [];
  for (const box of boxesOf(other)) {
    const made = withBox(graph, box.kind, { ...box, position: [box.position[0] + dx, box.position[1] + dy] });
    graph = made.graph;
    ids.push(made.id);
  }
  return { graph, ids };
}
