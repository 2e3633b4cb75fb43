import { useEffect } from "react";
import { isPreview } from "../model/preview";
import * as store from "../store";
import { dirty, get, set, useStore } from "../store";
import { Icon } from "./Icon";
import { branch } from "./BranchOffer";
import { GraphPane } from "./GraphPane";
import { Changes, DraftBar } from "./Changes";
import { HelpSheet } from "./HelpSheet";
import { KnobPanel } from "./KnobPanel";
import { PlotPane } from "./PlotPane";
import { Prose } from "./Prose";
import { Start } from "./Start";
import { Viewer } from "./Viewer";
import { useSplit } from "./split";

export function App() {
  const { kinds, document: graph, theme, toast, fault, plots } = useStore((s) => s), split = useSplit("height", 52), side = useSplit("width", 320);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => { document.documentElement.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme; };
    apply();
    dark.addEventListener("change", apply);
    localStorage.setItem("theme", theme);
    return () => dark.removeEventListener("change", apply);
  }, [theme]);
  useEffect(() => {
    const leaving = (event: BeforeUnloadEvent) => { if (get().document && dirty(get())) event.preventDefault(); };
    window.addEventListener("keydown", keys);
    window.addEventListener("beforeunload", leaving);
    return () => { window.removeEventListener("keydown", keys); window.removeEventListener("beforeunload", leaving); };
  }, []);
  return (
    <>
      {fault ? <div className="waiting" role="alert"><p>{fault}</p><button onClick={() => location.reload()}>Try again</button></div> : !kinds ? <p className="waiting" role="status">Reading what nodes there are…</p> : !graph ? <Start /> : (
        <div className="editor" ref={split.host}>
          <Bar />
          <Conflict />
          <DraftBar />
          <main ref={side.host}>
            <div className="left">
              <div className={plots ? "look with-plots" : "look"}>
                <section className="viewer" aria-label="3D view"><Viewer /></section>
                {plots && <PlotPane />}
              </div>
              <div className="divider across" {...split.handle} aria-label="Height of the 3D view" />
              <section className="graph" aria-label="Graph"><GraphPane /></section>
            </div>
            <div className="divider down" {...side.handle} aria-label="Width of the knobs" />
            <KnobPanel />
          </main>
          <Status />
          <HelpSheet />
          <Changes />
        </div>
      )}
      {toast && <div className="toast" role="alert" onClick={() => set({ toast: "" })}><Prose text={toast} /></div>}
    </>
  );
}

const typing = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function keys(event: KeyboardEvent): void {
  const command = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
  if (!get().document) return;
  if (command && key === "s") { event.preventDefault(); if (!event.repeat) void store.save(); }
  else if (command && key === "enter") { event.preventDefault(); branch(); }
  else if (typing(event.target)) return;
  else if (command && key === "z") { event.preventDefault(); if (event.shiftKey) store.redo(); else store.undo(); }
  else if (command && key === "y") { event.preventDefault(); store.redo(); }
  else if (key === "?") set({ help: true });
}

function Bar() {
  const s = useStore((each) => each);
  const next = { auto: "dark", dark: "light", light: "auto" } as const;
  return (
    <header className="bar">
      <button onClick={store.close} title="Choose another graph"><Icon d="M2 4h12M2 8h12M2 12h12" /><span className="sr">Choose another graph</span></button>
      <strong className="file" title={`${s.hello?.root}/${s.path}`}>{s.path}{dirty(s) && <span className="unsaved" title="not saved"> ●<span className="sr">not saved</span></span>}</strong>
      <button onClick={() => void store.save()} disabled={!dirty(s)} title="Ctrl S">Save</button>
      <button onClick={() => void store.compare()} title="What differs from the file, or from the shown cook">Changes</button>
      <button onClick={() => void store.saveAs()} title="Go on under another name">Save as…</button>
      <span className="gap" />
      <button onClick={store.undo} disabled={!s.past.length} title="Ctrl Z">Undo</button>
      <button onClick={store.redo} disabled={!s.future.length} title="Ctrl Shift Z">Redo</button>
      <span className="gap" />
      {s.cook.running
        ? <>
            <button className="stop" onClick={store.stop}><Icon d="M4 4h8v8H4z" /> Stop</button>
            {store.changedSince(s) && <>
              {s.frame !== null && <button className="primary" onClick={() => store.cookFrom(s.frame!)} title="Ctrl Enter: stop, and cook a new revision with the changed knobs; it takes the frames before this one">Branch from frame {s.frame}</button>}
              <button onClick={() => void store.cook("new")} title="Stop, and cook a new revision from the first frame on">Restart</button>
            </>}
          </>
        : <>
            <button className="primary" onClick={() => void store.cook("new")} title="Save, and cook a new revision"><Icon d="M4 3l9 5-9 5z" /> Cook</button>
            <button onClick={() => void store.cook("resume")} disabled={!s.revision || isPreview(s.revision)} title="Go on after the last whole frame of the newest revision">Resume</button>
            <button onClick={() => store.cookFrom(s.frame!)} disabled={s.frame === null || isPreview(s.revision)} title="Cook a new revision that takes the frames before this one from the shown revision">From frame {s.frame ?? "–"}</button>
          </>}
      <span className="grow" />
      <span className="said">{s.checking ? "Checking…" : s.checked.said}</span>
      <button onClick={store.togglePlots} aria-pressed={s.plots} title="Curves over frames, and what the cook is doing">Plots</button>
      <button onClick={() => set({ theme: next[s.theme] })} title="Colours of the page">Theme: {s.theme}</button>
    </header>
  );
}

function Conflict() {
  const { conflict, path } = useStore((s) => s);
  if (conflict === null) return null;
  return (
    <div className="conflict" role="alert">
      <span>{conflict ? `${path} was changed on disk since it was read. Nothing has been overwritten.` : `There is no longer a file ${path} on disk.`}</span>
      {conflict && <button onClick={() => void store.compare()}>Show what differs</button>}
      {conflict && <button onClick={() => void store.open(path)}>Read it again, without my changes</button>}
      <button onClick={() => void store.save(conflict)}>{conflict ? "Write mine over it" : "Write it again"}</button>
      <button onClick={store.putOff}>Later</button>
    </div>
  );
}

function Status() {
  const { cook, checked, checking, path } = useStore((s) => s), problems = checked.problems.length;
  return (
    <footer className="status">
      {cook.status && <progress max={1} value={cook.running || cook.share ? cook.share : 0} aria-label="frames cooked" />}
      <span role="status" className={cook.fault && cook.path === path ? "grow failed" : "grow"} title={cook.status}>{cook.path && cook.status ? `${cook.path === path ? "" : `${cook.path} `}${cook.revision ? `${cook.revision}: ` : ""}${cook.status}` : "Nothing is cooking"}</span>
      {cook.log.length > 0 && (
        <details className="log">
          <summary>{cook.log.length} message{cook.log.length > 1 ? "s" : ""} of the cook</summary>
          <ul>{cook.log.map((line, n) => <li key={n} className={line.kind}><b>{line.kind}</b> <Prose text={line.text} /></li>)}</ul>
        </details>
      )}
      <details className="log">
        <summary className={problems ? "bad" : ""}>{problems ? `${problems} problem${problems > 1 ? "s" : ""}` : checking && checked.said === undefined ? "Checking…" : "No problems"}{checked.warnings?.length ? `, ${checked.warnings.length} warning${checked.warnings.length > 1 ? "s" : ""}` : ""}</summary>
        <ul>
          {[...checked.problems, ...(checked.warnings ?? [])].map((problem, n) => (
            <li key={n} className={n < problems ? "error" : "warning"}>
              <button onClick={() => store.goTo(problem)}><b>{problem.place}</b> <Prose text={`${problem.message}${problem.cure ? `; ${problem.cure}` : ""}`} /></button>
            </li>
          ))}
        </ul>
      </details>
    </footer>
  );
}
