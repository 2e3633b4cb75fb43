import { useEffect, useMemo, useRef, useState } from "react";
import * as g from "../model/graph";
import { type Json, oneLine } from "../model/json";
import { frameOf, heights, inSteps, isKeyed, type Keyed, sampled, step, ticks, withChangedKey, withHeight, withKey, withoutKey } from "../model/keys";
import type { Knob } from "../model/spec";
import { unitText } from "../model/units";
import * as store from "../store";
import { get, kindLookup, set, shownGraph, useStore } from "../store";
import { Icon } from "./Icon";

const LEFT = 64, RIGHT = 16, TOP = 10, RULER = 24;
/** Pixels that a key is dragged along an axis before it moves along it. */
const SLACK = 4;

/** Curves of a keyed knob over the frames of the shot, with the viewer's frame. */
export function CurvePane() {
  const s = useStore((each) => each), { graph, own } = shownGraph(s), lookup = kindLookup(s), curve = s.curve;
  const keyed = useMemo(() => Object.keys(g.nodesOf(graph)).flatMap((node) => (lookup(node)?.knobs ?? []).filter((knob) => isKeyed(g.knobsOf(g.entryOf(graph, node))[knob.name])).map((knob) => ({ node, knob }))), [graph]);
  if (!curve) return null;
  const at = keyed.find((each) => each.node === curve.node && each.knob.name === curve.knob), value = at && g.knobsOf(g.entryOf(graph, at.node))[at.knob.name];
  const choose = (n: number) => { const each = keyed[n]; if (each) { store.select([each.node]); set({ curve: { node: each.node, knob: each.knob.name } }); } };
  const head = (
    <>
      <label>Keys of <select value={at ? keyed.indexOf(at) : ""} onChange={(event) => choose(Number(event.target.value))}>{!at && <option value="">no knob</option>}{keyed.map((each, n) => <option key={n} value={n}>{each.node} · {each.knob.label}</option>)}</select></label>
      {at && <span className="unit">{unitText(at.knob.unit)}</span>}
    </>
  );
  return (
    <section className="curves" aria-label="Keys">
      {at && isKeyed(value) ? <Curves key={`${at.node}.${at.knob.name}`} knob={at.knob} node={at.node} value={value} readOnly={!own} head={head} /> : <div className="curve-bar">{head}<span className="grow" /><Close /></div>}
    </section>
  );
}

function Close() { return <button aria-label="Close the keys" title="Close" onClick={() => set({ curve: null })}><Icon d="M4 4l8 8M12 4l-8 8" /></button>; }

interface Props { knob: Knob; node: string; value: Keyed; readOnly: boolean; head: React.ReactNode }

function Curves({ knob, node, value: given, readOnly, head }: Props) {
  const { frame, document } = useStore((s) => s), host = useRef<SVGSVGElement>(null), [[width, height], setSize] = useState([600, 160]);
  const [chosen, setChosen] = useState(0), [draft, setDraft] = useState<Keyed | null>(null), drag = useRef<{ x: number; y: number; from: number; value: Json; n: number; c: number; frozen: [number, number, number, number]; keyed: Keyed } | null>(null);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setSize([Math.max(200, entry.contentRect.width), Math.max(80, entry.contentRect.height)]));
    watch.observe(host.current!);
    return () => watch.disconnect();
  }, []);
  const value = draft ?? given, n = Math.min(chosen, value.keys.length - 1), settings = (document?.settings ?? {}) as Record<string, Json>;
  const frames = given.keys.map(frameOf), all = given.keys.flatMap((key) => heights(key[1], knob));
  const first = Math.min(Number(settings.start ?? 1), ...frames), last = Math.max(Number(settings.end ?? 1), ...frames, first + 1), menu = knob.kind === "enum" ? knob.menu.map((each) => each.label) : knob.kind === "bool" ? ["Off", "On"] : null;
  const low = menu ? -0.4 : Math.min(...all), high = menu ? menu.length - 0.6 : Math.max(...all), pad = menu ? 0 : (high - low || Math.max(0.2 * Math.abs(low), 1)) * (high - low ? 0.15 : 0.5);
  const [x0, x1, y0, y1] = drag.current?.frozen ?? [first - (last - first) * 0.02, last + (last - first) * 0.02, low - pad, high + pad];
  const x = (at: number) => LEFT + ((at - x0) / (x1 - x0)) * (width - LEFT - RIGHT), y = (at: number) => TOP + ((y1 - at) / (y1 - y0)) * (height - TOP - RULER);
  const toFrame = (px: number) => Math.round(x0 + ((px - LEFT) / (width - LEFT - RIGHT)) * (x1 - x0)), toValue = (py: number) => { const by = step(y1 - y0, 200); return Number((Math.round((y1 - ((py - TOP) / (height - TOP - RULER)) * (y1 - y0)) / by) * by).toPrecision(9)); };
  const place = (event: { clientX: number; clientY: number }) => { const box = host.current!.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const put = (now: Json) => store.setKnob(node, knob.name, now, true);
  const components = heights(value.keys[0][1], knob).length, names = components === 4 ? "wxyz" : "xyz";

  const path = (c: number) => {
    const places: string[] = [`M${LEFT},${y(heights(value.keys[0][1], knob)[c])}`];
    value.keys.forEach((key, m) => {
      const next = value.keys[m + 1], from = frameOf(key), to = next ? frameOf(next) : x1, steps = next && key[2] === "smooth" ? 24 : 1;
      for (let part = 0; part <= steps; part++) {
        const at = from + ((to - from) * part) / steps, inside = part === steps && next && key[2] !== "step" ? next[1] : part === steps ? key[1] : sampled(value, at);
        places.push(`L${x(at)},${y(heights(inside, knob)[c])}`);
      }
    });
    return places.join("");
  };
  const scrub = (event: React.PointerEvent) => { if (event.type === "pointerdown" ? event.button === 0 : event.currentTarget.hasPointerCapture(event.pointerId)) { event.currentTarget.setPointerCapture(event.pointerId); store.askFrame(Math.min(Math.max(toFrame(place(event)[0]), first), last)); } };
  const add = (event: React.MouseEvent) => {
    const [px, py] = place(event), at = Math.min(Math.max(toFrame(px), Math.ceil(x0)), Math.floor(x1));
    if (readOnly || px < LEFT || py > height - RULER || value.keys.some((key) => frameOf(key) === at)) return;
    const there = sampled(value, at), now = withKey(value, at, components === 1 ? withHeight(there, 0, toValue(py), knob) : there, knob);
    put(now);
    setChosen(now.keys.findIndex((key) => frameOf(key) === at));
  };
  const remove = (m: number) => { put(withoutKey(value, m)); setChosen(Math.max(0, m - 1)); };
  const shift = (m: number, c: number, frames: number, by: number) => {
    const found = withChangedKey(value, m, frameOf(value.keys[m]) + frames, by ? withHeight(value.keys[m][1], c, heights(value.keys[m][1], knob)[c] + by, knob) : value.keys[m][1]);
    if (found.value !== value) { put(found.value); setChosen(found.n); requestAnimationFrame(() => host.current?.querySelector<SVGElement>(`[data-key="${found.n}.${c}"]`)?.focus()); }
  };
  const keys = (event: React.KeyboardEvent, m: number, c: number) => {
    const by = menu ? 1 : step(y1 - y0, 100), move = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, by], ArrowDown: [0, -by] } as Record<string, [number, number]>)[event.key];
    if (event.key === "Delete" || event.key === "Backspace") remove(m); else if (move) shift(m, c, move[0] * (event.shiftKey ? 10 : 1), move[1] * (event.shiftKey ? 10 : 1)); else return;
    event.preventDefault(); event.stopPropagation();
  };
  const handlers = (m: number, c: number) => readOnly ? {} : {
    onPointerDown: (event: React.PointerEvent) => { if (event.button) return; event.currentTarget.setPointerCapture(event.pointerId); const [px, py] = place(event); setChosen(m); drag.current = { x: px, y: py, from: frameOf(value.keys[m]), value: value.keys[m][1], n: m, c, frozen: [x0, x1, y0, y1], keyed: value }; },
    onPointerMove: (event: React.PointerEvent) => {
      const held = drag.current;
      if (!held || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
      const [px, py] = place(event), across = Math.abs(px - held.x) > SLACK || held.n !== m, up = Math.abs(py - held.y) > SLACK;
      const found = withChangedKey(held.keyed, held.n, across ? toFrame(px) : held.from, up ? withHeight(held.value, c, toValue(py), knob) : held.value);
      // past its neighbours a key does not go while it is dragged: it would be another one under the pointer
      const [before, after] = [held.keyed.keys[held.n - 1], held.keyed.keys[held.n + 1]], at = frameOf(found.value.keys[found.n]);
      if ((!before || at > frameOf(before)) && (!after || at < frameOf(after))) setDraft(found.value);
    },
    onPointerUp: () => { drag.current = null; if (draft && oneLine(draft) !== oneLine(given)) put(draft); setDraft(null); },
    onKeyDown: (event: React.KeyboardEvent) => keys(event, m, c), onFocus: () => setChosen(m),
  };
  const told = (m: number, c: number) => `frame ${frameOf(value.keys[m])}: ${menu ? menu[heights(value.keys[m][1], knob)[0]] : `${digits(heights(value.keys[m][1], knob)[c])} ${unitText(knob.unit)}`}`;
  const all_ = () => { if (confirm(`Remove the ${value.keys.length} keys of ${knob.label}? It gets one value, that at frame ${frame ?? first}.`)) put(sampled(value, frame ?? first)); };
  return (
    <>
      <div className="curve-bar">
        {head}
        <output>{told(n, 0)}{components > 1 && ` · ${heights(value.keys[n][1], knob).map((each, c) => `${names[c] ?? c} ${digits(each)}`).join("  ")}`}</output>
        <label>to the next <select value={String(value.keys[n][2] ?? "linear")} disabled={readOnly || inSteps(knob)} onChange={(event) => put({ ...value, keys: value.keys.map((key, m) => (m === n ? [key[0], key[1], event.target.value] : key)) })}>{get().kinds!.spec.interpolations.map((each) => <option key={each}>{each}</option>)}</select></label>
        <button disabled={readOnly} onClick={() => put(withKey(value, frame ?? first, sampled(value, frame ?? first), knob))}>Key at {frame ?? first}</button>
        <button disabled={readOnly} onClick={() => remove(n)}>Remove</button>
        <button disabled={readOnly} onClick={all_}>Remove all…</button>
        <span className="grow" /><Close />
      </div>
      <svg ref={host} className="curve-plot" onDoubleClick={add} role="group" aria-label={`Curves of ${knob.label}`}>
        {(menu ? menu.map((_, m) => m) : ticks(y0, y1, Math.max(2, (height - TOP - RULER) / 26))).map((at) => <g key={at}><line className="grid" x1={LEFT} x2={width - RIGHT} y1={y(at)} y2={y(at)} /><text x={LEFT - 6} y={y(at) + 4} textAnchor="end">{menu ? menu[at] : digits(at)}</text></g>)}
        {ticks(x0, x1, width / 70).filter(Number.isInteger).map((at) => <g key={at}><line className="grid" x1={x(at)} x2={x(at)} y1={TOP} y2={height - RULER} /><text x={x(at)} y={height - 7} textAnchor="middle">{at}</text></g>)}
        {Array.from({ length: components }, (_, c) => <path key={c} className={`curve ${components > 1 ? names[c] ?? "" : "one"}`} d={path(c)} />)}
        <rect className="ruler" x={LEFT} y={height - RULER} width={Math.max(0, width - LEFT - RIGHT)} height={RULER} onPointerDown={scrub} onPointerMove={scrub} onDoubleClick={(event) => event.stopPropagation()} />
        {frame !== null && frame >= x0 && frame <= x1 && <g className="now" aria-hidden><line x1={x(frame)} x2={x(frame)} y1={TOP} y2={height - RULER} /><path d={`M${x(frame) - 6},${height - RULER + 2}h12l-6,8z`} /></g>}
        {value.keys.flatMap((key, m) => heights(key[1], knob).map((at, c) => (
          <g key={`${m}.${c}`} data-key={`${m}.${c}`} className={`key ${components > 1 ? names[c] ?? "" : "one"}${m === n ? " chosen" : ""}`} role="button" tabIndex={0} aria-label={`Key at ${told(m, c)}${components > 1 ? `, ${names[c] ?? c}` : ""}; arrow keys move it, Delete takes it away`} onDoubleClick={(event) => event.stopPropagation()} {...handlers(m, c)}>
            <circle cx={x(frameOf(key))} cy={y(at)} r={11} fill="transparent" /><path d={`M${x(frameOf(key))},${y(at) - 6}l6,6l-6,6l-6,-6z`} /><title>{told(m, c)}</title>
          </g>
        )))}
      </svg>
    </>
  );
}

const digits = (value: number) => (value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(5))));
