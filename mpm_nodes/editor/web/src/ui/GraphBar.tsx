import * as g from "../model/graph";
import { isObject } from "../model/json";
import { type Action, keyOf } from "../model/keymap";
import type { Alignment } from "../model/layout";
import * as store from "../store";
import { set, shownGraph, useStore } from "../store";

interface Props { act: (action: Action, from?: HTMLElement) => void; align: (how: Alignment) => void; makeOwn: (() => void) | null }

/** The path above the graph, and buttons for what keys do as well. */
export function GraphBar({ act, align, makeOwn }: Props) {
  const s = useStore((each) => each), { graph, own, note } = shownGraph(s), few = s.selected.size < 2;
  const item = (action: Action, label: string, disabled = false) => <button disabled={disabled} onClick={(event) => { close(event); act(action); }}>{label}<kbd>{keyOf(action, s.keymap)}</kbd></button>;
  const close = (event: React.MouseEvent) => event.currentTarget.closest("details")!.removeAttribute("open");
  return (
    <div className="graph-bar">
      <nav className="crumbs" aria-label="Level">
        <button onClick={() => store.dive([])} aria-current={!s.level.length}>{s.path.split("/").at(-1)}</button>
        {s.level.length > 0 && <><span aria-hidden>›</span><button aria-current>{s.level[0]} · {isObject(graph) && typeof graph.label === "string" ? graph.label : s.level[1]}</button></>}
        {note && <span className="note">{note}</span>}
        {makeOwn && <button className="primary" onClick={makeOwn}>Make it my own</button>}
        {s.level.length > 0 && !own && !makeOwn && <span className="note">It cannot be changed here.</span>}
      </nav>
      <div className="tools">
        <button onClick={(event) => act("add", event.currentTarget)} title={`${keyOf("add", s.keymap)}, or a double click`}>+ Add</button>
        <details onBlur={(event) => { if (!event.currentTarget.contains(event.relatedTarget)) event.currentTarget.removeAttribute("open"); }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); event.currentTarget.removeAttribute("open"); event.currentTarget.querySelector("summary")!.focus(); } }}>
          <summary>Arrange ▾</summary>
          <div>
            {item("arrange", "All nodes")}{item("alignLeft", "Align left", few)}{item("alignTop", "Align top", few)}
            <button disabled={s.selected.size < 3} onClick={(event) => { close(event); align("across"); }}>Spread across</button>
            <button disabled={s.selected.size < 3} onClick={(event) => { close(event); align("down"); }}>Spread down</button>
            {item("frame", "Frame")}{item("note", "Note")}{item("dot", "Dot on the wire")}
          </div>
        </details>
        <button aria-pressed={s.heat} disabled={!store.timesOf(s).seconds.size} onClick={() => set({ heat: !s.heat })} title="Where the time of the shown cook went, by colour and figures">Heat</button>
        <button onClick={() => act("fitAll")} title={keyOf("fitAll", s.keymap)}>Fit</button>
        <button onClick={() => act("help")} title="Keys (?)" aria-label="Keys">?</button>
      </div>
    </div>
  );
}

/** The document with the shown preset as its own, null where it cannot be. */
export function ownDocument(s: store.State) { return s.level.length && !shownGraph(s).own ? g.madeOwn(s.document!, s.level, s.kinds!) : null; }

