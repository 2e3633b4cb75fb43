import { type PointerEvent, useRef, useState } from "react";
import { api } from "../../api";
import { revisionLabel } from "../../model/preview";
import { useStore } from "../../store";
import type { Compare } from "../../view/scene";

export interface Other { path: string; revision: string }

/** The cook that is seen beside the chosen one: another revision, or another graph's. */
export function CompareWith({ other, onChange }: { other: Other | null; onChange: (other: Other | null) => void }) {
  const { path, revision, revisions, hello } = useStore((s) => s), [more, setMore] = useState<Other[]>([]);
  const look = () => { // what other graphs have cooked is asked for when it may be wanted
    const graphs = (hello?.graphs ?? []).filter((each) => each !== path).slice(0, 40);
    Promise.all(graphs.map(async (each) => (await api.revisions(each)).revisions.slice(-3).map((name) => ({ path: each, revision: name })))).then((found) => setMore(found.flat()), () => {});
  };
  const here = revisions.filter((each) => each !== revision).map((each) => ({ path, revision: each })), all = [...here, ...more];
  const value = (each: Other) => `${each.path}|${each.revision}`;
  return (
    <label>Beside <select value={other ? value(other) : ""} disabled={!revision} onPointerDown={look} onFocus={look} onChange={(event) => onChange(all.find((each) => value(each) === event.target.value) ?? null)}>
      <option value="">none</option>
      {other && !all.some((each) => value(each) === value(other)) && <option value={value(other)}>{revisionLabel(other.revision)}</option>}
      {here.map((each) => <option key={value(each)} value={value(each)}>{revisionLabel(each.revision)}</option>)}
      {more.length > 0 && <optgroup label="Other graphs">{more.map((each) => <option key={value(each)} value={value(each)}>{each.path.replace(/\.json$/, "")} {revisionLabel(each.revision)}</option>)}</optgroup>}
    </select></label>
  );
}

/** The border between the two; dragged, or moved by the arrow keys, where one wipes. */
export function Border({ compare, share, setShare, names }: { compare: Compare; share: number; setShare: (share: number) => void; names: [string, string] }) {
  const bar = useRef<HTMLDivElement>(null), at = compare === "beside" ? 0.5 : share;
  const drag = (event: PointerEvent) => { if (event.currentTarget.hasPointerCapture(event.pointerId)) { const box = bar.current!.parentElement!.getBoundingClientRect(); setShare(Math.min(Math.max((event.clientX - box.left) / box.width, 0.02), 0.98)); } };
  const place = (each: HTMLElement | null) => { each?.style.setProperty("--share", `${100 * at}%`); };
  return (
    <>
      <div className={`border ${compare}`} ref={(each) => { bar.current = each; place(each); }} {...(compare === "wipe" ? {
        role: "separator", tabIndex: 0, "aria-label": "Border of the two cooks", "aria-orientation": "vertical" as const, "aria-valuenow": Math.round(100 * at), "aria-valuemin": 2, "aria-valuemax": 98,
        onPointerDown: (event: PointerEvent) => event.currentTarget.setPointerCapture(event.pointerId), onPointerMove: drag,
        onKeyDown: (event: React.KeyboardEvent) => { const step = { ArrowLeft: -0.03, ArrowRight: 0.03 }[event.key]; if (step) { event.preventDefault(); event.stopPropagation(); setShare(Math.min(Math.max(share + step, 0.02), 0.98)); } },
      } : {})} />
      <span className="side left-side" ref={place}>{names[0]}</span><span className="side right-side" ref={place}>{names[1]}</span>
    </>
  );
}
