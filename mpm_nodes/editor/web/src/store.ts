/** What the page knows, and what can be done to it. The file on disk is the truth; this is a copy with edits and their history. */
import { useSyncExternalStore } from "react";
import { api, CallFault, type Checked, type CookEvent, type Draft, type Hello, type Problem } from "./api";
import { followTabs, forgetChanges, knowDrafts, tellTabs, watchDrafts } from "./drafts";
import * as g from "./model/graph";
import type { Preset } from "./model/keymap";
import { type Json, type JsonObject, parse, pretty, print, type Source } from "./model/json";
import { meaning } from "./model/meaning";
import { isPreview, newest } from "./model/preview";
import { Kinds, SPEC_FORMAT, SPEC_VERSION, type Kind } from "./model/spec";

export interface CookState {
  number: number; path: string; running: boolean; revision: string; frames: [number, number] | null; last: number | null;
  status: string; fault: boolean; share: number; log: { kind: string; text: string }[]; seconds: Map<string, number>; now: string;
  stages: Map<string, Map<string, number>>; failed: string;
  /** What it told last: see ui/CookFacts.tsx. */
  facts: { frame?: number; substep?: number; expected?: number; dt?: number; limit?: string; particles?: number; seconds?: number; left?: number; memory?: number | null; needs?: number };
  /** The document that it cooks, where this page started it: another one may be branched off. */
  document: JsonObject | null;
}

/** Seconds by node; and by solve and its stages, of which those that are fused stand together, joined by "+". */
export interface Times { seconds: ReadonlyMap<string, number>; stages: ReadonlyMap<string, ReadonlyMap<string, number>> }

export interface State {
  kinds: Kinds | null; hello: Hello | null; path: string; digest: string; source: Source | null; document: JsonObject | null;
  saved: JsonObject | null; level: g.Level; selected: ReadonlySet<string>; focusKnob: string; past: JsonObject[]; future: JsonObject[];
  checked: Checked; checking: boolean; cook: CookState; conflict: string | null; toast: string; theme: "auto" | "dark" | "light";
  revision: string; revisions: string[]; edits: number; fault: string; keymap: Preset; help: boolean;
  /** The graph that the shown revision was cooked from; null where there is none. */
  cooked: JsonObject | null; heat: boolean;
  /** What that cook took; null where it is not known. */
  times: Times | null;
  /** The frame that is shown, one that the viewer is asked for, and whether the plots are looked at. */
  frame: number | null; askedFrame: number | null; plots: boolean;
  /** Whose keys are shown as curves. */
  curve: { node: string; knob: string } | null;
  /** Edits of earlier times that were not saved, the last ones first (null: not looked for yet), and something that the page is compared with. */
  drafts: Draft[] | null; diff: { what: string; was: JsonObject } | null;
}

const NO_COOK: CookState = { number: 0, path: "", running: false, revision: "", frames: null, last: null, status: "", fault: false, share: 0, log: [], seconds: new Map(), now: "", stages: new Map(), failed: "", facts: {}, document: null };

let state: State = {
  kinds: null, hello: null, path: "", digest: "", source: null, document: null, saved: null, level: [], selected: new Set(), focusKnob: "",
  past: [], future: [], checked: { problems: [] }, checking: false, cook: NO_COOK, conflict: null, toast: "",
  theme: (localStorage.getItem("theme") as State["theme"]) ?? "auto", revision: "", revisions: [], edits: 0, fault: "", help: false, keymap: localStorage.getItem("keys") === "houdini" ? "houdini" : "blender",
  cooked: null, times: null, heat: false, frame: null, askedFrame: null, plots: localStorage.getItem("plots") === "open", curve: null, drafts: [], diff: null,
};
const listeners = new Set<() => void>();

export function get(): State { return state; }
export function set(change: Partial<State>): void { state = { ...state, ...change }; if (change.path !== undefined) sessionStorage.setItem("graph", change.path); for (const listener of listeners) listener(); watchDrafts(state); }
export function useStore<T>(select: (state: State) => T): T {
  return useSyncExternalStore((listener) => { listeners.add(listener); return () => listeners.delete(listener); }, () => select(state));
}

let toastClock = 0;
export function say(toast: string): void {
  set({ toast });
  clearTimeout(toastClock);
  toastClock = window.setTimeout(() => set({ toast: "" }), 6000);
}
export function tell(error: unknown): void { say(error instanceof Error ? error.message : String(error)); }

// ---------------------------------------------------------------- reading
export const dirty = (s: State) => s.document !== s.saved;

export function shownGraph(s: State): { graph: JsonObject; own: boolean; note: string } {
  return s.document && s.kinds ? g.levelOf(s.document, s.level, s.kinds) : { graph: { nodes: {} }, own: false, note: "" };
}

const UNKNOWN: Times = { seconds: new Map(), stages: new Map() };
/** Return what the shown revision took: as the cook that runs tells it, or as it was kept. */
export function timesOf(s: State): Times {
  return s.cook.path === s.path && s.cook.revision === s.revision && (s.cook.running || !s.times) ? s.cook : s.times ?? UNKNOWN;
}

/** Return how kinds are looked up at the shown level. */
export function kindLookup(s: State): (name: string) => Kind | undefined {
  const { graph } = shownGraph(s), kinds = s.kinds && g.kindsAt(s.level, s.kinds), begin = s.kinds && s.level.length ? g.beginKind(s.kinds) : undefined;
  return (name) => (name === g.BEGIN ? begin : kinds?.get(g.typeOf(g.entryOf(graph, name))));
}

export function textOf(s: State): string {
  return s.source ? print(s.document!, s.source) : pretty(s.document!) + "\n";
}

// ---------------------------------------------------------------- files
export async function begin(): Promise<void> {
  try {
    const [hello, spec] = await Promise.all([api.hello(), api.spec()]);
    if (spec.format !== SPEC_FORMAT || spec.version !== SPEC_VERSION) throw new Error("This page is of another version than the program; load it again.");
    const kinds = new Kinds(spec);
    const graph = (await lookedAt()) || hello.graph;
    if (graph) { set({ hello }); await open(graph); }
    set({ hello, kinds });
    if (graph) await bringUpToDate();
    followCook();
    followTabs();
    setInterval(lookAtDisk, 3000);
  } catch (error) { set({ fault: error instanceof Error ? error.message : String(error) }); }
}

/** Return the graph that this tab had open before the page was loaded again, "" where its file is gone. */
async function lookedAt(): Promise<string> {
  const last = sessionStorage.getItem("graph") ?? "";
  return last && (await api.digest(last).catch(() => null))?.digest ? last : "";
}

export async function open(path: string, read = () => api.open(path)): Promise<void> {
  try {
    const asked = state.document, opened = await read(), source = parse(opened.text), document = source.root.value as JsonObject;
    if (state.document !== asked && state.path === path) { set({ conflict: opened.digest }); return; } // it was changed here meanwhile
    mergeKey = "";
    // what is read again is one more step: what was there before can be gone back to
    const again = asked !== null && state.path === opened.path, stays = again && state.level.length && g.isSubsteps(state.kinds!, g.entryOf(document, state.level[0]!), state.level[1]!);
    set({ path: opened.path, digest: opened.digest, source, document, saved: document, level: stays ? state.level : [], curve: null, selected: again ? state.selected : new Set(),
      past: again ? [...state.past.slice(-199), asked] : [], future: [], conflict: null, diff: null, drafts: again ? state.drafts : null, checked: { problems: [] }, revision: again ? state.revision : "", revisions: again ? state.revisions : [], edits: 0 });
    await lookForRevisions();
    if (!again) await lookForDrafts();
    if (state.kinds) await bringUpToDate();
  } catch (error) { tell(error); }
}

/** Have nodes of older versions brought to those of the specification: knobs are shown and written as it names them. */
async function bringUpToDate(): Promise<void> {
  const { path, document, kinds } = state;
  if (!document || !kinds) return;
  if (g.isOld(document, kinds.nodes, kinds)) {
    // what cannot be brought up to date has problems, which the check tells
    const newer = (await api.upgrade(path).catch(() => null))?.document;
    // that is no edit: the file keeps its versions until something else is changed and saved
    if (newer && state.path === path && state.document && g.isOld(state.document, kinds.nodes, kinds)) {
      const now = g.upgraded(state.document, newer, kinds), saved = dirty(state) ? state.saved && g.upgraded(state.saved, newer, kinds) : now;
      set({ document: now, saved, edits: state.edits + 1 });
      say("Nodes of older versions are shown as those of today; the file keeps its own until you change and save it.");
    }
  }
  void check();
}

/** Open a quick setup, and cook it at once. */
export async function openQuick(name: string): Promise<void> {
  await open("", () => api.quick(name));
  if (state.document && !state.cook.running) await cook("new");
}

export const openSample = (name: string) => open("", () => api.sample(name));

export async function create(path: string): Promise<void> {
  try {
    if ((await api.digest(path)).digest) return say(`${path} is there already: open it, or choose another name.`);
  } catch (error) { return tell(error); } // a name that could not be saved under is told before there is work to lose
  const document = g.newGraph(get().kinds!.spec);
  set({ path, digest: "", source: null, document, saved: null, level: [], selected: new Set(), past: [], future: [], conflict: null,
    drafts: null, checked: { problems: [] }, revision: "", revisions: [] });
  await lookForDrafts();
}

export function close(): void {
  if (dirty(state)) {
    if (!confirm("Leave the changes of this graph unsaved?")) return;
    forgetChanges(state);
  }
  set({ document: null, saved: null, path: "", drafts: [], diff: null });
  api.hello().then((hello) => set({ hello }), tell);
}

/** Take what is typed into a field and not yet entered. */
export function takeTyped(): void {
  const field = window.document.activeElement;
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) { field.blur(); field.focus({ preventScroll: true }); }
}

let saving: Promise<boolean> = Promise.resolve(true);

/** Save; a file that something else has written since is left alone, and the user is asked. One save waits for the other. */
export function save(over?: string): Promise<boolean> {
  takeTyped();
  return (saving = saving.then(() => saveNow(over ?? state.digest)));
}

/** Go on under another name; the file that was read stays as it is. */
export async function saveAs(): Promise<void> {
  takeTyped();
  const given = prompt("Save as, in this folder:", state.path)?.trim(), path = given && (given.endsWith(".json") ? given : `${given}.json`);
  if (!path || path === state.path) return;
  try {
    if ((await api.digest(path)).digest) return say(`${path} is there already: choose another name.`);
    await saving;
    const before = state, was = { path: state.path, digest: state.digest, drafts: state.drafts };
    set({ path, digest: "", conflict: null, drafts: [] });
    if (await save("")) { forgetChanges(before); set({ revision: "", revisions: [] }); await lookForRevisions(); } else set(was);
  } catch (error) { tell(error); }
}

async function saveNow(over: string): Promise<boolean> {
  const { document, path } = state;
  if (!document) return false;
  const text = textOf(state);
  try {
    const { digest } = await api.save(path, text, over);
    if (state.path !== path) return true;
    mergeKey = ""; // one can go back to what was saved
    tellTabs(path);
    set({ digest, saved: document, source: parse(text), conflict: null });
    if (state.document === document) set({ document: state.source!.root.value as JsonObject, saved: state.source!.root.value as JsonObject });
    return true;
  } catch (error) {
    if (error instanceof CallFault && error.status === 409) set({ conflict: error.digest });
    else tell(error);
    return false;
  }
}

/** What was found on disk and put off: it is not asked about again. */
let later = "";
export function putOff(): void { later = `${state.path}|${state.digest}|${state.conflict}`; set({ conflict: null }); }

export async function lookAtDisk(): Promise<void> {
  const { path, digest, document, conflict } = state;
  if (!document || !digest || conflict !== null || window.document.hidden) return;
  const now = await api.digest(path).catch(() => null);
  if (!now || now.digest === digest || state.digest !== digest || state.path !== path) return;
  if (later === `${path}|${digest}|${now.digest}`) return;
  if (dirty(state) || !now.digest) set({ conflict: now.digest }); // of a file that was removed, this is all that is left
  else { await open(path); say(`${path} was changed on disk and read again.`); }
}

export async function lookForDrafts(): Promise<void> {
  const { path } = state, found = await api.drafts(path).catch(() => null);
  if (!found || state.path !== path || state.drafts) return;
  if (found.length) knowDrafts(path);
  set({ drafts: found.filter((each) => each.text !== state.source?.text) });
}

/** Take the edits of the last time, as one step that can be undone. */
export function restoreDraft(): void {
  const [draft, ...drafts] = state.drafts ?? [];
  set({ drafts });
  if (draft) edit(() => parse(draft.text).root.value as JsonObject);
}
export function dropDraft(): void { set({ drafts: state.drafts!.slice(1) }); }

/** Go on with a graph that was never saved. */
export async function openLost(path: string): Promise<void> {
  await create(path);
  if (state.path === path) restoreDraft();
}

/** Show what differs from the file: as it is on disk where something else has written it, else as it was read. */
export async function compare(): Promise<void> {
  if (state.conflict === null) return set({ diff: state.saved && dirty(state) ? { what: "the file as it was read or saved", was: state.saved } : state.cooked ? { what: `the cook ${state.revision}`, was: state.cooked } : { what: "the file as it was read or saved", was: state.saved ?? g.newGraph(state.kinds!.spec) } });
  try { set({ diff: { what: "the file as it is on disk now", was: parse((await api.open(state.path)).text).root.value as JsonObject } }); } catch (error) { tell(error); }
}

// ---------------------------------------------------------------- edits
let mergeKey = "", mergeTime = 0;

/** Change the document; edits with the same `key` in quick succession are one step of the history. */
export function edit(change: (document: JsonObject) => JsonObject, key = ""): void {
  const before = state.document, after = before && change(before);
  if (!before || !after || after === before) return;
  const merge = key !== "" && key === mergeKey && performance.now() - mergeTime < 1200;
  mergeKey = key; mergeTime = performance.now();
  set({ document: after, past: merge ? state.past : [...state.past.slice(-199), before], future: [], edits: state.edits + 1 });
  scheduleCheck();
}

/** Change the shown graph; a preset is not changed, and that is told. */
export function editGraph(change: (graph: JsonObject) => JsonObject, key = ""): void {
  if (!shownGraph(state).own) return say("This is a preset; make it your own to change it.");
  edit((document) => g.atLevel(document, state.level, state.kinds!, change), key);
}

export function undo(): void {
  const before = state.past.at(-1);
  if (before) step(before, state.past.slice(0, -1), [state.document!, ...state.future]);
}
export function redo(): void {
  const next = state.future[0];
  if (next) step(next, [...state.past, state.document!], state.future.slice(1));
}
function step(document: JsonObject, past: JsonObject[], future: JsonObject[]): void {
  mergeKey = ""; // what is edited next is a step of its own
  const gone = state.level.length > 0 && !Object.hasOwn(g.nodesOf(document), state.level[0]!); // the shown substeps are no longer there
  set({ document, past, future, edits: state.edits + 1, ...(gone ? { level: [], selected: new Set<string>() } : {}) });
  scheduleCheck();
}

/** Set a knob; `apart` makes it a step of its own in the history. */
export function setKnob(node: string, knob: string, value: Json | undefined, apart = false): void {
  editGraph((graph) => g.setKnob(graph, node, knob, value), apart ? "" : `${state.level.join("/")}:${node}.${knob}`);
}

/** Show a frame, where there are frames; keys are set at it in any case. */
export function askFrame(frame: number): void { set({ frame, askedFrame: frame }); }

export function select(names: Iterable<string>, focusKnob = ""): void { set({ selected: new Set(names), focusKnob }); }

export function removeSelected(): void {
  const names = new Set([...state.selected].filter((name) => name !== g.BEGIN));
  if (names.size) { editGraph((graph) => g.removed(graph, names)); select([]); }
}

/** Show substeps of a node, or the outer graph. */
export function dive(level: g.Level): void { set({ level, curve: null, selected: new Set(level.length ? [] : state.level.slice(0, 1)), edits: state.edits + 1 }); }

// ---------------------------------------------------------------- problems
let checkClock = 0, checkAgain = false;
function scheduleCheck(): void { clearTimeout(checkClock); checkClock = window.setTimeout(check, 900); }

export async function check(): Promise<void> {
  if (!state.document) return;
  if (state.checking) { checkAgain = true; return; }
  const { path } = state;
  set({ checking: true });
  try {
    const checked = await api.check(path, textOf(state));
    if (state.path === path) set({ checked });
  } catch (error) { tell(error); }
  set({ checking: false });
  if (checkAgain) { checkAgain = false; void check(); }
}

/** Return the node that a problem's place names, and the knob or port: "ball.radius", "fall.substeps.gather.kernel". */
export function placeOf(problem: Problem): string[] { return problem.place.split("."); }

export function problemsOf(s: State, node: string): Problem[] {
  const at = s.level.length ? [...s.level, node] : [node];
  return [...s.checked.problems, ...(s.checked.warnings ?? [])].filter((problem) => at.every((part, n) => placeOf(problem)[n] === part));
}

export function goTo(problem: Problem): void {
  const [node, knob, stage, inner] = placeOf(problem), entry = g.entryOf(state.document!, node);
  if (stage && g.isSubsteps(state.kinds!, entry, knob)) { dive([node, knob]); select([stage], inner ?? ""); }
  else { dive([]); select(g.typeOf(entry) ? [node] : [], node === "settings" || !g.typeOf(entry) ? knob ?? node : knob ?? ""); }
}

// ---------------------------------------------------------------- cooks
/** Cook, go on, or cook again from a frame; with `to` that node and what it needs alone. What cooks is stopped for it. */
export async function cook(mode: "new" | "resume" | "again", more: { frame?: number; to?: string } = {}): Promise<void> {
  takeTyped();
  if (!state.document || ((dirty(state) || !state.digest) && !(await save()))) return;
  const { path, document, revision } = state, running = state.cook.running;
  try {
    if (running) set({ cook: { ...state.cook, status: "Stopping, to go on with the changed graph" } });
    await api.cook(path, mode, { ...more, of: mode === "again" ? revision : "", replace: running });
    set({ cook: { ...NO_COOK, running: true, path, status: "Starting", document } });
  } catch (error) { tell(error); }
}

/** Whether the graph has changed since the cook that runs began. */
export const changedSince = (s: State) => s.cook.running && s.cook.path === s.path && s.cook.document !== null && s.document !== null
  && s.cook.document !== s.document && meaning(s.cook.document) !== meaning(s.document);

/** Cook a new revision that takes the frames before the one that is looked at. */
export function cookFrom(frame: number): void {
  const first = state.cook.path === state.path && state.cook.revision === state.revision ? state.cook.frames?.[0] : undefined;
  void (first !== undefined && frame <= first ? cook("new") : cook("again", { frame }));
}

export function togglePlots(): void { set({ plots: !state.plots }); localStorage.setItem("plots", state.plots ? "open" : "closed"); }

const STOPPING = "Stopping after this substep";
export function stop(): void { api.stop().catch(tell); set({ cook: { ...state.cook, status: STOPPING } }); }

export async function lookForRevisions(): Promise<void> {
  const { path, digest } = state;
  if (!digest) return;
  const found = (await api.revisions(path)).revisions;
  if (state.path !== path) return;
  // a preview that was shown can still be compared with when the graph is no longer the one that it is of
  const revisions = [...new Set([...found, ...state.revisions.filter(isPreview)])];
  set({ revisions, revision: revisions.includes(state.revision) ? state.revision : newest(revisions) });
}

/** Called with every event of a cook, after the store has taken it. */
export const hearers: ((event: CookEvent, cook: CookState) => void)[] = [];

/** Follow the events of the newest cook, whoever started it, as long as the page is open. */
async function followCook(): Promise<void> {
  for (let number = 0, next = 0; ; ) {
    try {
      const told = await api.events(number, next, state.cook.running);
      if (told.cook !== number) {
        number = told.cook; next = 0;
        set({ cook: { ...NO_COOK, number, path: told.path, running: !told.over, status: told.over ? "" : "Starting", document: state.cook.path === told.path ? state.cook.document : null } });
      }
      for (const event of told.events) { takeEvent(event); for (const hear of hearers) hear(event, state.cook); next = event.n + 1; }
      if (told.memory !== null) set({ cook: { ...state.cook, facts: { ...state.cook.facts, memory: told.memory } } });
      if (!told.over) continue;
    } catch { /* the server is gone or busy: look again later */ }
    await new Promise((done) => setTimeout(done, 700));
  }
}

const text = (value: Json | undefined) => (typeof value === "string" ? value : "");
const number = (value: Json | undefined) => (typeof value === "number" ? value : 0);

function takeEvent(event: CookEvent): void {
  const cook = { ...state.cook };
  const now = (line: string) => { if (cook.status !== STOPPING) cook.status = line; };
  const log = (kind: string, line: string) => { cook.log = [...cook.log.slice(-199), { kind, text: line }]; };
  if (event.event === "plan") {
    cook.frames = event.frames as [number, number];
    cook.revision = text(event.out).split(/[\\/]/).at(-1) ?? "";
    cook.status = `Frames ${cook.frames[0]} to ${cook.frames[1]}`;
    if (cook.path === state.path) set({ revision: cook.revision });
  } else if (event.event === "node") {
    cook.now = text(event.node);
    cook.seconds = new Map(cook.seconds).set(cook.now, (cook.seconds.get(cook.now) ?? 0) + number(event.seconds));
  } else if (event.event === "stages") {
    const node = text(event.node), before = cook.stages.get(node), now = new Map(before);
    for (const [name, seconds] of Object.entries(event.stages as Record<string, number>)) now.set(name, (now.get(name) ?? 0) + seconds);
    cook.stages = new Map(cook.stages).set(node, now);
  } else if (event.event === "substep") {
    cook.facts = { ...cook.facts, frame: number(event.frame), substep: number(event.substep), dt: number(event.dt), limit: [text(event.limit), text(event.limit_material)].filter(Boolean).join(", "), particles: number(event.particles) };
    now(`Frame ${number(event.frame)} · substep ${number(event.substep)} · dt ${number(event.dt).toPrecision(3)} s · ${number(event.particles).toLocaleString("en")} particles`);
  } else if (event.event === "frame_done") {
    cook.last = number(event.frame);
    const left = number(event.seconds_left);
    cook.facts = { ...cook.facts, frame: cook.last, particles: number(event.particles), seconds: number(event.seconds), left, expected: undefined };
    now(`Frame ${cook.last} done · ${number(event.particles).toLocaleString("en")} particles${left ? ` · about ${Math.ceil(left)} s left` : ""}`);
    if (cook.frames) cook.share = (cook.last - cook.frames[0] + 1) / (cook.frames[1] - cook.frames[0] + 1);
  } else if (event.event === "pace") cook.facts = { ...cook.facts, expected: number(event.substeps_expected) };
  else if (event.event === "estimate") cook.facts = { ...cook.facts, needs: number(event.memory) };
  else if (event.event === "compiling") now(text(event.message));
  else if (event.event === "error") {
    log("error", text(event.message));
    cook.failed = /^[^\s.,:]+(?=[.,:])/.exec(text(event.message))?.[0] ?? ""; // messages begin with the node
  } else if (["warning", "note"].includes(event.event)) log(event.event, [text(event.where), text(event.message)].filter(Boolean).join(": "));
  else if (event.event === "ended") {
    cook.running = false;
    cook.now = "";
    const said = text(event.said);
    cook.fault = !["done", "cancelled"].includes(text(event.name));
    cook.status = cook.fault && said ? said.split("\n").at(-1)!.replace(/^mpm-nodes: (error|defect): /, "") : text(event.message);
    // what the last event has said is not said twice
    if (said && said.replace(/^mpm-nodes: (error|defect): /, "").trim() !== cook.log.at(-1)?.text.trim()) log("error", said);
    if (event.name === "invalid" || event.name === "diverged") cook.failed ||= /^(?:mpm-nodes: error: )?\s*([^\s.,:]+)[.,:]/m.exec(text(event.said))?.[1] ?? "";
    void lookForRevisions();
  }
  set({ cook });
}
