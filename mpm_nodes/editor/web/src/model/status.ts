/** Which nodes of a document are still as a revision was cooked from, and where the time of a cook went. */
import { inputsOf, knobsOf, nodesOf, entryOf, typeOf } from "./graph";
import { type Json, type JsonObject, isObject, same } from "./json";
import type { Kinds } from "./spec";

/** What of a node, or of the settings, is not as in another graph: "radius", "type", "inputs.sources", ... */
export function changesOf(document: JsonObject, cooked: JsonObject, node: string, kinds: Kinds): string[] {
  if (!Object.hasOwn(nodesOf(cooked), node)) return ["node"];
  const now = entryOf(document, node), was = entryOf(cooked, node), kind = kinds.nodes.get(typeOf(now)), found: string[] = [];
  if (typeOf(now) !== typeOf(was)) return ["type"];
  if ((now.bypass === true) !== (was.bypass === true)) found.push("bypass");
  const defaults = new Map(kind?.knobs.map((knob) => [knob.name, knob.default])), [mine, theirs] = [knobsOf(now), knobsOf(was)];
  const knob = (of: JsonObject, name: string) => (Object.hasOwn(of, name) ? of[name] : defaults.get(name));
  for (const name of new Set([...Object.keys(mine), ...Object.keys(theirs)])) if (!alike(knob(mine, name), knob(theirs, name))) found.push(name);
  const wires = (of: JsonObject, port: string) => [inputsOf(of)[port] ?? []].flat();
  for (const port of new Set([...Object.keys(inputsOf(now)), ...Object.keys(inputsOf(was))])) if (!same(wires(now, port), wires(was, port))) found.push(`inputs.${port}`);
  return found;
}

/** Whether values mean the same: a preset by its name, or by an object that holds its name alone. */
function alike(one: Json | undefined, other: Json | undefined): boolean {
  const plain = (value: Json | undefined) => (isObject(value) && Object.keys(value).length === 1 && typeof value.preset === "string" ? value.preset : value);
  return same(plain(one), plain(other));
}

/** Return the settings that differ; how many frames there are changes none of them. */
export function changedSettings(document: JsonObject, cooked: JsonObject, kinds: Kinds): string[] {
  const of = (graph: JsonObject, name: string, usual: Json) => (isObject(graph.settings) ? graph.settings[name] : undefined) ?? usual;
  return kinds.spec.settings.filter((knob) => knob.name !== "end" && !same(of(document, knob.name, knob.default), of(cooked, knob.name, knob.default))).map((knob) => knob.name);
}

/** Return the nodes that would be cooked to something else: changed ones, and those that take from them. */
export function changedNodes(document: JsonObject, cooked: JsonObject, kinds: Kinds): Set<string> {
  const names = Object.keys(nodesOf(document));
  if (changedSettings(document, cooked, kinds).length) return new Set(names);
  const found = new Set(names.filter((name) => changesOf(document, cooked, name, kinds).length));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const name of names) {
      const sources = Object.values(inputsOf(entryOf(document, name))).flat().map((wire) => String(wire).split(".", 1)[0]);
      if (sources.some((source) => found.has(source))) found.add(name);
    }
  }
  return found;
}

// ---------------------------------------------------------------- time
export interface Spent { seconds: number; share: number; beside: string[] }

/** Return what each stage took, by name: stages that are fused share one figure, and say with which others. */
export function stageTimes(groups: ReadonlyMap<string, number>): Map<string, Spent> {
  const total = [...groups.values()].reduce((sum, seconds) => sum + seconds, 0), found = new Map<string, Spent>();
  for (const [group, seconds] of groups) {
    const names = group.split("+");
    for (const name of names) found.set(name, { seconds, share: total > 0 ? seconds / total : 0, beside: names.filter((each) => each !== name) });
  }
  return found;
}

export function nodeTimes(seconds: ReadonlyMap<string, number>): Map<string, Spent> {
  const total = [...seconds.values()].reduce((sum, each) => sum + each, 0);
  return new Map([...seconds].map(([name, each]) => [name, { seconds: each, share: total > 0 ? each / total : 0, beside: [] }]));
}

/** Colour of a share of the time, as black bodies glow, and of text on it: white or black, whichever stands out (WCAG 2). */
export function heat(share: number): { ground: string; text: string } {
  const ramp: [number, number, number, number][] = [[0, 44, 52, 78], [0.1, 92, 44, 96], [0.3, 160, 45, 50], [0.6, 226, 120, 40], [1, 250, 210, 70]];
  const at = Math.max(1, ramp.findIndex(([to]) => share <= to)), [low, high] = [ramp[at - 1], ramp[at]], part = (share - low[0]) / (high[0] - low[0]);
  const colour = [1, 2, 3].map((n) => Math.round(low[n] + (high[n] - low[n]) * Math.min(1, Math.max(0, part))));
  const [red, green, blue] = colour.map((each) => (each <= 10 ? each / 3294 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  return { ground: `rgb(${colour.join(" ")})`, text: 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff" };
}

export const seconds = (value: number) => (value < 0.01 ? `${(value * 1000).toPrecision(2)} ms` : value < 10 ? `${value.toFixed(2)} s` : value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`);
export const bytes = (value: number) => (value < 1e6 ? `${Math.max(1, Math.round(value / 1e3))} kB` : value < 1e9 ? `${Math.round(value / 1e6)} MB` : `${(value / 1e9).toFixed(1)} GB`);
