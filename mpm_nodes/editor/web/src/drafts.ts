/** Edits go to a draft beside the file as they are made; saved, undone or thrown away, the draft goes. Tabs on one file tell each other. */
import { api } from "./api";
import { dirty, get, lookAtDisk, type State, textOf } from "./store";

/** Seconds from an edit until it is kept. */
const SOON = 1.2;
let clock = 0, kept: State["document"] = null, there = "", busy: Promise<unknown> = Promise.resolve();

function keep(): void {
  const s = get(), { path, digest, document } = s;
  clearTimeout(clock);
  if (!document || s.draft || kept === document) return;
  kept = document;
  if (dirty(s)) { there = path; busy = busy.then(() => api.draft(path, textOf(s), digest)).catch(() => {}); }
  else if (there === path) { there = ""; busy = busy.then(() => api.draft(path, "", "")).catch(() => {}); }
}

/** Call when anything has changed. */
export function watchDrafts(s: State): void {
  if (!s.document || s.document === kept || s.draft) return;
  clearTimeout(clock);
  clock = window.setTimeout(keep, SOON * 1000);
}

/** Know of a draft that is there already. */
export function knowDraft(path: string): void { there = path; }

/** Forget the draft of a file that is closed without its changes. */
export function forgetDraft(path: string): void {
  clearTimeout(clock);
  there = "";
  busy = busy.then(() => api.draft(path, "", "")).catch(() => {});
}

const others = "BroadcastChannel" in window ? new BroadcastChannel("mpm-nodes") : null;
/** Tell other tabs that a file was written: they need not find out by themselves. */
export function tellTabs(path: string): void { others?.postMessage(path); }

export function followTabs(): void {
  others?.addEventListener("message", ({ data }) => { if (data === get().path) void lookAtDisk(); });
  window.document.addEventListener("visibilitychange", () => { if (window.document.hidden) keep(); else void lookAtDisk(); });
  window.addEventListener("pagehide", keep);
}
