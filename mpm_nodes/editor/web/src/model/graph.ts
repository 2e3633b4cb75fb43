/**
 * A graph as its file holds it, and edits of it: each returns a new document and leaves the old one alone.
 *
 * A level is what is shown at once: the outer graph, or the substeps document in a knob of one of its nodes. Both hold "nodes".
 */
import * as a from "./annotations";
import { type Json, type JsonObject, isObject, parse, pretty, put, same } from "./json";
import type { Input, Kind, Kinds, Output, Spec } from "./spec";

/** Where the shown nodes stand in the document: [] for the outer graph, [node, knob] for substeps. */
export type Level = [] | [node: string, knob: string];

export interface Wire { source: string; output: string; target: string; port: string; index: number }

export const SUBSTEPS_FORMAT = "mpm_nodes.substeps";
/** The node that stands for the state as a substep begins; no name in a file is empty. */
export const BEGIN = "";

export function newGraph(spec: Spec): JsonObject {
  return { format: spec.graph_format.name, version: spec.graph_format.version, settings: {}, nodes: {} };
}

// ---------------------------------------------------------------- levels
/** What is drawn of a preset that there is not; one object, as a new one at each look would be drawn again without end. */
const NOTHING: JsonObject = { nodes: {} };

/** Return the document of a level: a preset's own where the knob names one, which then is not to be edited. */
export function levelOf(document: JsonObject, level: Level, kinds: Kinds): { graph: JsonObject; own: boolean; note: string } {
  if (!level.length) return { graph: document, own: true, note: "" };
  const [node, knob] = level, kind = kinds.nodes.get(typeOf(entryOf(document, node)));
  const value = knobsOf(entryOf(document, node))[knob] ?? kind?.knobs.find((each) => each.name === knob)?.default;
  if (isObject(value) && isObject(value.nodes)) return { graph: value, own: true, note: "" };
  const recipe = isObject(value) ? value : { preset: value ?? "" };
  const preset = kinds.presets.get(String(recipe.preset));
  if (!preset) return { graph: NOTHING, own: false, note: `There is no preset "${String(recipe.preset)}".` };
  const edits = Array.isArray(recipe.edits) ? recipe.edits.length : 0;
  const note = edits ? `The preset, without the ${edits} edits that stand beside it.` : preset.candidates.length ? `The solve chooses from: ${preset.candidates.join(", ")}.` : "";
  return { graph: preset.document, own: false, note };
}

/** Put a preset's document, with the settings beside it, into the knob, so that it can be edited; null where that would lose edits. */
export function madeOwn(document: JsonObject, level: Level, kinds: Kinds): JsonObject | null {
  if (!level.length) return null;
  const value = knobsOf(entryOf(document, level[0]))[level[1]], recipe = isObject(value) ? value : {};
  const { graph, own } = levelOf(document, level, kinds);
  if (own || !isObject(graph.nodes) || !Object.keys(graph.nodes).length || (Array.isArray(recipe.edits) && recipe.edits.length)) return null;
  const beside: JsonObject = isObject(recipe.set) ? { set: { ...(isObject(graph.set) ? graph.set : {}), ...recipe.set } } : {};
  return setKnob(document, level[0], level[1], { ...graph, ...beside });
}

/** Return the document with the graph of a level changed. */
export function atLevel(document: JsonObject, level: Level, kinds: Kinds, change: (graph: JsonObject) => JsonObject): JsonObject {
  if (!level.length) return change(document);
  const { graph, own } = levelOf(document, level, kinds);
  return own ? setKnob(document, level[0], level[1], change(graph)) : document;
}

// ---------------------------------------------------------------- reading
export function nodesOf(graph: JsonObject): JsonObject { return isObject(graph.nodes) ? graph.nodes : {}; }
export function entryOf(graph: JsonObject, name: string): JsonObject {
  const nodes = nodesOf(graph), entry = Object.hasOwn(nodes, name) ? nodes[name] : undefined;
  return isObject(entry) ? entry : {};
}
export function typeOf(entry: JsonObject): string { return typeof entry.type === "string" ? entry.type : ""; }
export function knobsOf(entry: JsonObject): JsonObject { return isObject(entry.knobs) ? entry.knobs : {}; }
export function inputsOf(entry: JsonObject): JsonObject { return isObject(entry.inputs) ? entry.inputs : {}; }
export function positionOf(entry: JsonObject): [number, number] {
  const given = entry.position;
  return Array.isArray(given) && typeof given[0] === "number" && typeof given[1] === "number" ? [given[0], given[1]] : [0, 0];
}
export function kindsAt(level: Level, kinds: Kinds): Map<string, Kind> { return level.length ? kinds.stages : kinds.nodes; }

/** Return the kind of the node that gives the domains as a substep begins. */
export function beginKind(kinds: Kinds): Kind {
  const outputs = kinds.spec.reserved_names.map((name) => ({ name, label: name, type: `domain_${name}`, internal: false }));
  return { id: BEGIN, label: "Substep Begins", version: 1, doc: "The state of the solve as a substep begins.", category: "", inputs: [], outputs, knobs: [] };
}

/** Return the wires between nodes that are there; `output` is the name of an output, "" where the source's kind is not known. */
export function wiresOf(graph: JsonObject, kindOf: (name: string) => Kind | undefined): Wire[] {
  const found: Wire[] = [];
  for (const target of Object.keys(nodesOf(graph))) {
    for (const [port, given] of Object.entries(inputsOf(entryOf(graph, target)))) {
      (Array.isArray(given) ? given : [given]).forEach((wire, index) => {
        if (typeof wire !== "string") return;
        const [source, output] = ends(wire, graph, kindOf, port);
        if (source !== null) found.push({ source, output, target, port, index });
      });
    }
  }
  return found;
}

/** Split "node.output"; a domain's own name means the state as a substep begins, a stage's name its output of the port's domain. */
function ends(wire: string, graph: JsonObject, kindOf: (name: string) => Kind | undefined, port: string): [string | null, string] {
  const [name, output] = wire.split(".", 2);
  if (!Object.hasOwn(nodesOf(graph), name)) {
    const begin = kindOf(BEGIN);
    return begin?.outputs.some((each) => each.name === name) ? [BEGIN, name] : [null, ""];
  }
  if (output) return [name, output];
  const outputs = kindOf(name)?.outputs ?? [];
  return [name, (kindOf(BEGIN) && outputs.find((each) => each.name === port)?.name) || outputs[0]?.name || ""];
}

/** Return how a wire from an output is spelled: as the other hosts do. */
export function spelled(source: string, output: string, kind: Kind | undefined): string {
  if (source === BEGIN) return output;
  return kind && kind.outputs.length === 1 ? source : `${source}.${output}`;
}

/** Return why an output may not be wired to an input, "" where it may. */
export function refusal(output: Output | undefined, input: Input | undefined, kinds: Kinds): string {
  if (!output || !input) return "There is no such port.";
  if (input.accepts.includes(output.type)) return "";
  return `${input.label} takes ${input.accepts.map((type) => kinds.typeLabel(type)).join(" or ")}; ${output.label} gives ${kinds.typeLabel(output.type)}.`;
}

/** Return whether a node is reached from another along wires: a wire back would close a loop. */
export function reaches(wires: Wire[], from: string, to: string): boolean {
  const open = [from], seen = new Set(open);
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (name === to) return true;
    for (const wire of wires) if (wire.source === name && !seen.has(wire.target)) { seen.add(wire.target); open.push(wire.target); }
  }
  return false;
}

// ---------------------------------------------------------------- edits
function withNodes(graph: JsonObject, nodes: JsonObject): JsonObject { return { ...graph, nodes }; }

function withEntry(graph: JsonObject, name: string, change: (entry: JsonObject) => JsonObject): JsonObject {
  const nodes = { ...nodesOf(graph) };
  put(nodes, name, change(entryOf(graph, name)));
  return withNodes(graph, nodes);
}

/** Return the object without a key. */
function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = object;
  return rest;
}

export function freeName(graph: JsonObject, wanted: string, taken: Iterable<string> = []): string {
  const used = new Set([...Object.keys(nodesOf(graph)), ...taken]);
  const stem = wanted.replace(/_\d+$/, "");
  for (let name = wanted, n = 2; ; name = `${stem}_${n++}`) if (!used.has(name)) return name;
}

export function addNode(graph: JsonObject, kind: Kind, name: string, position: [number, number]): JsonObject {
  return withEntry(graph, name, () => ({ type: kind.id, version: kind.version, knobs: {}, inputs: {}, position }));
}

export function setKnob(graph: JsonObject, node: string, knob: string, value: Json | undefined): JsonObject {
  return withEntry(graph, node, (entry) => {
    const knobs = { ...knobsOf(entry) };
    if (value !== undefined) put(knobs, knob, value);
    return { ...entry, knobs: value === undefined ? without(knobs, knob) : knobs };
  });
}

export function setSetting(document: JsonObject, name: string, value: Json | undefined): JsonObject {
  const settings = isObject(document.settings) ? document.settings : {};
  return { ...document, settings: value === undefined ? without(settings, name) : { ...settings, [name]: value } };
}

export function setField(graph: JsonObject, node: string, field: "bypass" | "comment", value: boolean | string): JsonObject {
  return withEntry(graph, node, (entry) => (value ? { ...entry, [field]: value } : without(entry, field)));
}

export function moved(graph: JsonObject, places: Map<string, [number, number]>): JsonObject {
  let found = graph;
  for (const [name, position] of places) {
    if (Object.hasOwn(nodesOf(graph), name)) found = withEntry(found, name, (entry) => ({ ...entry, position }));
  }
  return found;
}

export function connected(graph: JsonObject, target: string, input: Input, wire: string): JsonObject {
  return withEntry(graph, target, (entry) => {
    const inputs = { ...inputsOf(entry) }, given = inputs[input.name];
    const before = given === undefined ? [] : Array.isArray(given) ? given : [given];
    if (before.includes(wire)) return entry;
    put(inputs, input.name, input.many && (!isStage(input) || Array.isArray(given)) ? [...before, wire] : wire);
    return { ...entry, inputs };
  });
}

/** Whether a port is a stage's: one wire comes first there, and further ones are written as a list by hand. */
function isStage(input: Input): boolean { return input.type.startsWith("domain_"); }

export function disconnected(graph: JsonObject, wire: Wire): JsonObject {
  const text = wireText(graph, wire);
  return withEntry(graph, wire.target, (entry) => {
    const given = inputsOf(entry)[wire.port], left = Array.isArray(given) ? given.filter((_, n) => n !== wire.index) : [];
    const cut = { ...entry, inputs: left.length ? { ...inputsOf(entry), [wire.port]: left } : without(inputsOf(entry), wire.port) };
    return a.withDots(cut, wire.port, text, []);
  });
}

/** Return a wire as it stands in the file. */
export function wireText(graph: JsonObject, wire: Wire): string {
  const given = inputsOf(entryOf(graph, wire.target))[wire.port], text = Array.isArray(given) ? given[wire.index] : given;
  return typeof text === "string" ? text : "";
}

/** Let a wire go through these places. */
export function dotted(graph: JsonObject, wire: Wire, points: a.Point[]): JsonObject {
  return withEntry(graph, wire.target, (entry) => a.withDots(entry, wire.port, wireText(graph, wire), points));
}

/** Return through which ports a node of a kind fits into a wire; null where it does not. */
export function fitsInto(wire: Wire, kind: Kind | undefined, kindOf: (name: string) => Kind | undefined, kinds: Kinds): { input: Input; output: Output } | null {
  const from = kindOf(wire.source)?.outputs.find((each) => each.name === wire.output), to = kindOf(wire.target)?.inputs.find((each) => each.name === wire.port);
  const input = kind?.inputs.find((each) => !refusal(from, each, kinds)), output = kind?.outputs.find((each) => !each.internal && !refusal(each, to, kinds));
  return input && output ? { input, output } : null;
}

/** Put a node between the ends of a wire, in the place of the wire; the graph as it is where it does not fit. */
export function inserted(graph: JsonObject, wire: Wire, node: string, kind: Kind, kindOf: (name: string) => Kind | undefined, kinds: Kinds): JsonObject {
  const fit = fitsInto(wire, kind, kindOf, kinds), text = wireText(graph, wire);
  if (!fit || !text) return graph;
  const through = connected(graph, node, fit.input, text), now = spelled(node, fit.output.name, kind);
  return withEntry(through, wire.target, (entry) => {
    const inputs = { ...inputsOf(entry) }, given = inputs[wire.port];
    put(inputs, wire.port, Array.isArray(given) ? given.map((each, n) => (n === wire.index ? now : each)) : now);
    return a.withDots({ ...entry, inputs }, wire.port, text, []);
  });
}

export function setColour(graph: JsonObject, names: Iterable<string>, colour: string): JsonObject {
  let found = graph;
  for (const name of names) if (Object.hasOwn(nodesOf(graph), name)) found = withEntry(found, name, (entry) => a.withColour(entry, colour));
  return found;
}

/** Move the dots of wires whose both ends were moved. */
export function movedDots(graph: JsonObject, wires: Wire[], names: Set<string>, dx: number, dy: number): JsonObject {
  let found = graph;
  for (const target of new Set(wires.filter((each) => names.has(each.source) && names.has(each.target)).map((each) => each.target))) {
    const mine = new Set(wires.filter((each) => each.target === target && names.has(each.source)).map((each) => `${each.port} ${wireText(graph, each)}`));
    found = withEntry(found, target, (entry) => a.shiftedDots(entry, dx, dy, (port, wire) => mine.has(`${port} ${wire}`)));
  }
  return found;
}

/** Change the wires that name nodes; null takes a wire away. */
function rewired(entry: JsonObject, name: (node: string) => string | null): JsonObject {
  const inputs: JsonObject = {}, other = (wire: string) => {
    const dot = wire.indexOf("."), node = dot < 0 ? wire : wire.slice(0, dot), now = name(node);
    return now === null ? null : now + (dot < 0 ? "" : wire.slice(dot));
  };
  let changed = false;
  for (const [port, given] of Object.entries(inputsOf(entry))) {
    const left = (Array.isArray(given) ? given : [given]).flatMap((wire): Json[] => {
      if (typeof wire !== "string") return [wire];
      const now = other(wire);
      if (now !== wire) changed = true;
      return now === null ? [] : [now];
    });
    if (left.length) put(inputs, port, Array.isArray(given) ? left : left[0]);
    else if (Array.isArray(given) && !given.length) put(inputs, port, given);
  }
  return changed ? a.rewiredDots({ ...entry, inputs }, other) : entry;
}

export function removed(graph: JsonObject, names: Set<string>): JsonObject {
  const nodes: JsonObject = {};
  for (const name of Object.keys(nodesOf(graph))) {
    if (!names.has(name)) put(nodes, name, rewired(entryOf(graph, name), (node) => (names.has(node) ? null : node)));
  }
  return withNodes(graph, nodes);
}

/** Rename a node where it stands, with every wire that names it. */
export function renamed(graph: JsonObject, from: string, to: string): JsonObject {
  const nodes: JsonObject = {};
  for (const name of Object.keys(nodesOf(graph))) {
    put(nodes, name === from ? to : name, rewired(entryOf(graph, name), (node) => (node === from ? to : node)));
  }
  return withNodes(graph, nodes);
}

// ---------------------------------------------------------------- copy and paste
/** Return nodes as the text of a graph file that holds them alone. */
export function copied(graph: JsonObject, names: Set<string>, spec: Spec, level: Level): string {
  const nodes: JsonObject = {};
  for (const name of Object.keys(nodesOf(graph))) {
    if (names.has(name)) put(nodes, name, rewired(entryOf(graph, name), (node) => (names.has(node) ? node : null)));
  }
  const format = level.length ? SUBSTEPS_FORMAT : spec.graph_format.name, editor = a.copiedBoxes(graph, names);
  return pretty({ format, version: 1, nodes, ...(editor ? { editor } : {}) });
}

/** Return the graph with the nodes of a text, and their names; null where it is no text of that kind of graph. */
export function pasted(graph: JsonObject, text: string, spec: Spec, level: Level): { graph: JsonObject; names: string[] } | null {
  let given: Json;
  try { given = parse(text).root.value; } catch { return null; }
  if (!isObject(given) || !isObject(given.nodes) || given.format !== (level.length ? SUBSTEPS_FORMAT : spec.graph_format.name)) return null;
  const as = new Map<string, string>();
  for (const name of Object.keys(given.nodes)) as.set(name, freeName(graph, name, as.values()));
  const nodes = { ...nodesOf(graph) };
  for (const [name, free] of as) {
    const entry = rewired(entryOf(given, name), (node) => as.get(node) ?? null), [x, y] = positionOf(entry);
    put(nodes, free, a.shiftedDots({ ...entry, position: [x + 40, y - 40] }, 40, -40));
  }
  const boxes = a.withBoxesOf(withNodes(graph, nodes), given, 40, -40);
  return { graph: boxes.graph, names: [...as.values(), ...boxes.ids] };
}

/** Whether a knob of an entry holds substeps. */
export function isSubsteps(kinds: Kinds, entry: JsonObject, knob: string): boolean {
  return kinds.nodes.get(typeOf(entry))?.knobs.find((each) => each.name === knob)?.kind === "substeps";
}

// ---------------------------------------------------------------- older files
/** Whether a node is of an older version than its kind here, or of a kind that is not here: it may have been replaced. */
function isOldEntry(entry: JsonObject, known: Map<string, Kind>, kinds: Kinds): boolean {
  const kind = known.get(typeOf(entry));
  if (!kind || (typeof entry.version === "number" && entry.version < kind.version)) return true;
  return kind.knobs.some((knob) => { const value = knobsOf(entry)[knob.name]; return knob.kind === "substeps" && isObject(value) && isOld(value, kinds.stages, kinds); });
}

export function isOld(graph: JsonObject, known: Map<string, Kind>, kinds: Kinds): boolean {
  return Object.keys(nodesOf(graph)).some((name) => isOldEntry(entryOf(graph, name), known, kinds));
}

/** Return the document with its old nodes as `newer`, what the command line makes of the file, has them; the others stay as they are. */
export function upgraded(document: JsonObject, newer: JsonObject, kinds: Kinds): JsonObject {
  const nodes: JsonObject = {};
  for (const name of Object.keys(nodesOf(newer))) {
    const was = entryOf(document, name), now = entryOf(newer, name), kind = kinds.nodes.get(typeOf(now));
    const notKnown = !kind && typeOf(was) === typeOf(now);
    if (Object.hasOwn(nodesOf(document), name) && (notKnown || !isOldEntry(was, kinds.nodes, kinds))) { put(nodes, name, was); continue; }
    const defaults = new Map(kind?.knobs.map((knob) => [knob.name, knob.default])), knobs: JsonObject = {};
    for (const [knob, value] of Object.entries(knobsOf(now))) {
      if (Object.hasOwn(knobsOf(was), knob) && same(knobsOf(was)[knob], value)) put(knobs, knob, knobsOf(was)[knob]);
      else if (!defaults.has(knob) || !same(defaults.get(knob), value)) put(knobs, knob, value); // it writes out every default
    }
    put(nodes, name, { ...was, type: now.type, version: now.version, knobs, inputs: now.inputs });
  }
  return withNodes(document, nodes);
}
