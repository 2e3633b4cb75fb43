/** Calls of the server: POST with JSON, and the token that the page's address carries behind "#". */
import { type JsonObject, parse } from "./model/json";
import type { Spec } from "./model/spec";

const token = location.hash.slice(1) || sessionStorage.getItem("token") || "";
sessionStorage.setItem("token", token);
if (location.hash.length > 1) sessionStorage.removeItem("graph"); // a new address: what it opens counts
history.replaceState(null, "", location.pathname); // what is looked at over a shoulder is no key

window.addEventListener("hashchange", () => location.reload()); // the address of a server that was started again

export class CallFault extends Error {
  constructor(readonly status: number, message: string, readonly digest = "") { super(message); }
}

async function call(name: string, body: object = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json", "X-Token": token }, body: JSON.stringify(body) });
  } catch {
    throw new CallFault(0, "The server does not answer; start mpm-nodes edit again.");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ error: answer.statusText }));
  throw new CallFault(answer.status, String(said.error), said.digest);
}

async function json<T>(name: string, body?: object): Promise<T> { return (await call(name, body)).json(); }

export interface Sample { name: string; doc: string; topic: string; picture: boolean; cooked: boolean }
export interface Quick { name: string; label: string; doc: string }
export interface Hello { root: string; graph: string; graphs: string[]; /** JSON files that cannot be opened, and in a word why. */ others: { name: string; why: string }[]; samples: Sample[]; drafts: string[]; quick: Quick[] }
export interface Opened { path: string; text: string; digest: string }
/** Edits that were not saved, and the digest of the file that they were made from. */
export interface Draft { text: string; digest: string; time: number }
export interface Problem { place: string; message: string; value?: unknown; allowed?: string; cure?: string }
export interface Checked { problems: Problem[]; warnings?: Problem[]; said?: string; nodes?: Record<string, number> }
export type CookEvent = JsonObject & { event: string; n: number };
export interface Events { cook: number; path: string; over: boolean; events: CookEvent[]; memory: number | null }
export interface Curve { name: string; frames: number[]; values: number[] }
export interface Panel { name: string; unit: string; log: boolean; lines: Curve[]; notes: Record<string, string> }

export interface Particle { frame: number; index: number; id: number | null; place: [number, number, number]; values: { name: string; unit: string; value: number | number[] }[] }
/** A particle over frames; `next` is the frame to ask on from. */
export interface History { frames: number[]; places: [number, number, number][]; values: (number | null)[]; unit: string; next: number | null }

export const api = {
  hello: () => json<Hello>("hello"),
  spec: () => json<Spec>("spec"),
  picture: async (name: string, of?: "quick") => (await call("picture", { name, of })).blob(),
  open: (path: string) => json<Opened>("open", { path }),
  sample: (name: string) => json<Opened>("sample", { name }),
  quick: (name: string) => json<Opened>("quick", { name }),
  digest: (path: string) => json<{ digest: string }>("digest", { path }),
  save: (path: string, text: string, digest: string) => json<{ digest: string }>("save", { path, text, digest }),
  /** Read as a file is, so that long numbers keep their digits. */
  upgrade: async (path: string) => parse(await (await call("upgrade", { path })).text()).root.value as { document: JsonObject },
  drafts: async (path: string) => (await json<{ drafts: Draft[] }>("draft", { path })).drafts,
  keepDrafts: (path: string, drafts: (Omit<Draft, "time"> & Partial<Draft>)[]) => json<object>("draft", { path, drafts }),
  check: (path: string, text: string) => json<Checked>("check", { path, text }),
  cook: (path: string, mode: string, more: { frame?: number; of?: string; replace?: boolean; to?: string } = {}) => json<object>("cook", { path, mode, ...more }),
  cooked: (path: string, revision: string) => json<{ graph: JsonObject | null }>("cooked", { path, revision }),
  times: (path: string, revision: string) => json<{ nodes: Record<string, number>; stages: Record<string, Record<string, number>> }>("times", { path, revision }),
  curves: (path: string, revision: string, first: number) => json<{ panels: Panel[] }>("curves", { path, revision, first }),
  stop: () => json<object>("stop"),
  events: (cook: number, since: number, wait: boolean) => json<Events>("events", { cook, since, wait }),
  revisions: (path: string) => json<{ revisions: string[] }>("revisions", { path }),
  frame: async (path: string, revision: string, frame: number | null, layers: string[] | null, attribute: string, most: number) =>
    (await call("frame", { path, revision, frame, layers, attribute, most })).arrayBuffer(),
  particle: (path: string, revision: string, frame: number, layer: string, prim: string, index: number) => json<Particle>("particle", { path, revision, frame, layer, prim, index }),
  history: (path: string, revision: string, layer: string, prim: string, id: number, attribute: string, begin: number) =>
    json<History>("history", { path, revision, layer, prim, id, attribute, begin }),
};
