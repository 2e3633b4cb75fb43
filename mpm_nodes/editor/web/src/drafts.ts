/** Edits go to a draft beside the file as they are made; saved, undone or thrown away, the draft goes. Tabs on one file tell each other. */
import { api } from "./api";
import { dirty, get, lookAtDisk, lookForDrafts, type State, tell, textOf } from "./store";

/** Seconds from an edit until it is kept. */
const SOON = 1.2;
/** What was kept last, of which file there are drafts, and of which one it was told that they cannot be kept. */
let clock = 0, kept: Pick<State, "document" | "drafts" | "path"> | null = null, there = "", refused = "", busy: Promise<unknown> = Promise.resolve();

const known = ({ document, drafts, path }: State) => kept?.document === document && kept.drafts === drafts && kept.path === path;

/** Keep the edits before those of earlier times that are still offered: neither takes the place of the other. */
function keep(): void {
  const s = get(), { path, digest, document, drafts } = s;
  clearTimeout(clock);
  if (!document || known(s)) return;
  if (!drafts) return void lookForDrafts(); // what is there already is not written over unseen
  kept = { document, drafts, path };
  const all = [...(dirty(s) ? [{ text: textOf(s), digest }] : []), ...drafts];
  if (!all.length && there !== path) return;
  there = all.length ? path : "";
  busy = busy.then(() => api.keepDrafts(path, all)).then(() => { refused = ""; }, (error) => {
    if (refused !== path && get().path === path) tell(new Error(`Changes are not kept until you save them: ${error.message}`));
    refused = path;
  });
}

/** Call when anything has changed. */
export function watchDrafts(s: State): void {
  if (!s.document || known(s)) return;
  clearTimeout(clock);
  clock = window.setTimeout(keep, SOON * 1000);
}

/** Know of drafts that are there already. */
export function knowDrafts(path: string): void { there = path; }

/** Forget the changes of a file that is closed without them, or goes on under another name; those of earlier times stay. */
export function forgetChanges({ path, drafts }: State): void {
  clearTimeout(clock);
  if (!drafts) return;
  if (there === path) there = "";
  busy = busy.then(() => api.keepDrafts(path, drafts)).catch(() => {});
}

const others = "BroadcastChannel" in window ? new BroadcastChannel("mpm-nodes") : null;
/** Tell other tabs that a file was written: they need not find out by themselves. */
export function tellTabs(path: string): void { others?.postMessage(path); }

export function followTabs(): void {
  others?.addEventListener("message", ({ data }) => { if (data === get().path) void lookAtDisk(); });
  window.document.addEventListener("visibilitychange", () => { if (window.document.hidden) keep(); else void lookAtDisk(); });
  window.addEventListener("pagehide", keep);
}
