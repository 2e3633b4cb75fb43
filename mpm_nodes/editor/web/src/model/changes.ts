/** What differs between two documents, as people read it: one row for a knob, a wire, a setting. */
import { entryOf, inputsOf, knobsOf, nodesOf, typeOf } from "./graph";
import { isKeyed } from "./keys";
import { type Json, type JsonObject, isObject, oneLine, same } from "./json";
import type { Kind, Kinds } from "./spec";

/** `place` is what a problem's place is: "ball.radius", "fall.substeps.gather.kernel", "settings.fps". */
export interface Row { place: string; what: string; was: string; now: string }

const LONGEST = 90;

/** Return the rows for what `now` has otherwise than `was`; a default that is written out is no difference. */
export function differences(now: JsonObject, was: JsonObject, kinds: Kinds): Row[] {
  const rows: Row[] = [], of = (graph: JsonObject) => (isObject(graph.settings) ? graph.settings : {});
  for (const knob of kinds.spec.settings) compare(`settings.${knob.name}`, knob.label, of(now)[knob.name] ?? knob.default, of(was)[knob.name] ?? knob.default, rows);
  level("", now, was, kinds.nodes, kinds, rows);
  return rows;
}

function level(prefix: string, now: JsonObject, was: JsonObject, known: Map<string, Kind>, kinds: Kinds, rows: Row[]): void {
  let moved = 0;
  for (const name of new Set([...Object.keys(nodesOf(was)), ...Object.keys(nodesOf(now))])) {
    const place = prefix + name, mine = entryOf(now, name), theirs = entryOf(was, name), [here, there] = [Object.hasOwn(nodesOf(now), name), Object.hasOwn(nodesOf(was), name)];
    if (!here || !there) { rows.push({ place, what: here ? "added" : "removed", was: there ? label(theirs, known) : "", now: here ? label(mine, known) : "" }); continue; }
    const kind = known.get(typeOf(mine));
    compare(place, "type", typeOf(mine), typeOf(theirs), rows);
    compare(place, "bypass", mine.bypass === true, theirs.bypass === true, rows);
    compare(place, "comment", mine.comment ?? "", theirs.comment ?? "", rows);
    for (const port of new Set([...Object.keys(inputsOf(theirs)), ...Object.keys(inputsOf(mine))])) {
      compare(`${place}.${port}`, "wires", [inputsOf(mine)[port] ?? []].flat(), [inputsOf(theirs)[port] ?? []].flat(), rows);
    }
    for (const name of new Set([...Object.keys(knobsOf(theirs)), ...Object.keys(knobsOf(mine))])) {
      const knob = kind?.knobs.find((each) => each.name === name), [one, other] = [knobsOf(mine)[name] ?? knob?.default, knobsOf(theirs)[name] ?? knob?.default];
      if (knob?.kind === "substeps" && isObject(one) && isObject(other) && isObject(one.nodes) && isObject(other.nodes)) level(`${place}.${name}.`, one, other, kinds.stages, kinds, rows);
      else compare(`${place}.${name}`, knob?.label ?? name, one, other, rows);
    }
    if (!same(mine.position, theirs.position) && Array.isArray(theirs.position)) moved++;
    else if (!same(mine.editor, theirs.editor)) moved++;
  }
  if (moved || !same(now.editor, was.editor)) rows.push({ place: prefix ? prefix.split(".")[0] : "graph", what: "looks", was: "", now: `${moved ? `${moved} node${moved > 1 ? "s" : ""} moved or coloured` : "frames, notes or other things of editors"}` });
}

function label(entry: JsonObject, known: Map<string, Kind>): string { return known.get(typeOf(entry))?.label ?? typeOf(entry); }

function compare(place: string, what: string, now: Json | undefined, was: Json | undefined, rows: Row[]): void {
  if (!same(plain(now), plain(was))) rows.push({ place, what, was: told(was), now: told(now) });
}

/** A preset by its name, or by an object that holds its name alone. */
const plain = (value: Json | undefined) => (isObject(value) && Object.keys(value).length === 1 && typeof value.preset === "string" ? value.preset : value);

function told(value: Json | undefined): string {
  if (value === undefined) return "–";
  if (isKeyed(value)) return `${value.keys.length} key${value.keys.length > 1 ? "s" : ""}: ${short(value.keys.map((key) => `${oneLine(key[0])} → ${oneLine(key[1])}`).join(", "))}`;
  if (isObject(value) && isObject(value.nodes)) return `a graph of ${Object.keys(value.nodes).length} stages`;
  return short(typeof value === "string" ? value : oneLine(value));
}

const short = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
