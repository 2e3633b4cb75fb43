/** Curves over the frames of the shown revision, live while it cooks, and what the cook is doing. */
import { useEffect, useMemo, useRef, useState, type PointerEvent } from "react";
import { api, type Panel } from "../api";
import { axisOf, joined, placeOn, short, Spent, valueAt } from "../model/curves";
import { askFrame, get, hearers, useStore } from "../store";
import { CookFacts } from "./CookFacts";
import { Prose } from "./Prose";

/** What cooks told while this page looked, by graph and revision. */
const told = new Map<string, Spent>();
const number = (value: unknown) => (typeof value === "number" ? value : 0);
hearers.push((event, cook) => {
  if (!cook.revision || (event.event !== "frame_done" && event.event !== "stages")) return;
  const key = `${cook.path}/${cook.revision}`, spent = told.get(key) ?? new Spent();
  if (event.event === "frame_done") spent.frame(number(event.frame), number(event.seconds));
  else if (event.stages && typeof event.stages === "object") spent.solve(number(event.frame), event.stages as Record<string, number>);
  told.set(key, spent);
});

const BEGIN = -1_000_000;

/** Read the curves of a revision, and what is new of them when the cook has finished a frame; one call at a time. */
function useCurves(path: string, revision: string, cooked: number, last: number | null): { panels: Panel[]; said: string } {
  const key = `${path}/${revision}`, [found, setFound] = useState<{ key: string; panels: Panel[]; said: string }>({ key: "", panels: [], said: "" });
  const held = useRef({ stamp: "", path, revision, next: BEGIN, panels: [] as Panel[], busy: false, again: false }).current;
  // another revision, a resumed cook, which may repair earlier frames, or the first frame after those that were taken over: all is read
  const stamp = `${key}/${cooked}/${last === null}`;
  useEffect(() => {
    if (held.stamp !== stamp) Object.assign(held, { stamp, path, revision, next: BEGIN, panels: [] });
    if (revision) void read();
  }, [stamp, last]);

  async function read(): Promise<void> {
    held.again = held.busy;
    if (held.busy) return;
    held.busy = true;
    do {
      held.again = false;
      const { stamp: asked, path: of, revision: from, next } = held;
      try {
        const { panels } = await api.curves(of, from, next);
        if (held.stamp !== asked) continue;
        held.panels = joined(held.panels, panels);
        held.next = Math.max(BEGIN, ...held.panels.flatMap((panel) => panel.lines.map((line) => line.frames.at(-1)! + 1)));
        setFound({ key: `${of}/${from}`, panels: held.panels, said: "" });
      } catch (error) {
        if (held.stamp === asked && !get().cook.running) setFound({ key: `${of}/${from}`, panels: held.panels, said: error instanceof Error ? error.message : String(error) }); // else its first frame is not yet whole
      }
    } while (held.again);
    held.busy = false;
  }
  return found.key === key ? found : { panels: [], said: "" };
}

export function PlotPane() {
  const { path, revision, cook, frame } = useStore((s) => s), own = cook.path === path && cook.revision === revision;
  const { panels: kept, said } = useCurves(path, revision, own ? cook.number : 0, own ? cook.last : null);
  const [hovered, setHovered] = useState<number | null>(null);
  const spent = told.get(`${path}/${revision}`), panels = useMemo(() => [...kept, ...(spent?.panels() ?? [])], [kept, spent, cook.last]);
  const frames = panels.flatMap((panel) => panel.lines.flatMap((line) => [line.frames[0]!, line.frames.at(-1)!])), first = Math.min(...frames), last = Math.max(...frames);
  return (
    <section className="plots" aria-label="Plots" data-frames={frames.length ? last - first + 1 : 0}>
      <CookFacts />
      {panels.length === 0 && <p className="none">{said ? <Prose text={said} /> : (revision ? "Reading…" : "Nothing is cooked yet: curves appear with the first frame.")}</p>}
      <div className="multiples">{panels.map((panel) => <Plot key={panel.name} panel={panel} span={[first, Math.max(last, first + 1)]} frame={hovered ?? frame} hover={setHovered} />)}</div>
    </section>
  );
}

const WIDTH = 240, HEIGHT = 88, LEFT = 50, RIGHT = 6, TOP = 6, BOTTOM = 15;

function Plot({ panel, span: [first, last], frame, hover }: { panel: Panel; span: [number, number]; frame: number | null; hover: (frame: number | null) => void }) {
  const axis = axisOf(panel.lines.flatMap((line) => line.values), panel.log);
  const x = (at: number) => LEFT + ((at - first) / (last - first)) * (WIDTH - LEFT - RIGHT), y = (value: number) => TOP + (1 - placeOn(axis, value)) * (HEIGHT - TOP - BOTTOM);
  const under = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect(), share = ((event.clientX - box.left) / box.width) * WIDTH;
    return Math.round(Math.min(Math.max(first + ((share - LEFT) / (WIDTH - LEFT - RIGHT)) * (last - first), first), last));
  };
  const note = frame === null ? "" : panel.notes[frame] ?? "", several = panel.lines.length > 1;
  const values = panel.lines.map((line) => (frame === null ? undefined : valueAt(line, frame)));
  return (
    <figure className="multiple" data-panel={panel.name}>
      <figcaption>
        <b>{panel.name}</b>{panel.unit && <> [{panel.unit}]</>}
        {!several && <output>{values[0] === undefined ? "" : short(values[0])}</output>}
        {note && <small>limited by {note}</small>}
        {several && <ul>{panel.lines.map((line, n) => <li key={line.name}><svg aria-hidden viewBox="0 0 18 6" className={`series n${n}`}><path d="M0 3h18" /></svg>{line.name} <output>{values[n] === undefined ? "" : short(values[n]!)}</output></li>)}</ul>}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${panel.name} over frames ${first} to ${last}`} onPointerMove={(event) => hover(under(event))} onPointerLeave={() => hover(null)} onClick={(event) => askFrame(under(event as unknown as PointerEvent<SVGSVGElement>))}>
        {axis.ticks.map((tick) => <g key={tick} className="tick"><path d={`M${LEFT} ${y(tick).toFixed(1)}H${WIDTH - RIGHT}`} /><text x={LEFT - 5} y={y(tick) + 3.5}>{short(Number(tick.toPrecision(3)))}</text></g>)}
        <text className="end" x={LEFT} y={HEIGHT - 3}>{first}</text><text className="end last" x={WIDTH - RIGHT} y={HEIGHT - 3}>{last}</text>
        {panel.lines.map((line, n) => <path key={line.name} className={`series n${n}`} d={line.frames.map((at, k) => `${k ? "L" : "M"}${x(at).toFixed(1)} ${y(line.values[k]!).toFixed(1)}`).join("")} />)}
        {panel.lines.map((line, n) => line.frames.length === 1 && <circle key={line.name} className={`dot n${n}`} cx={x(line.frames[0]!)} cy={y(line.values[0]!)} r={2.5} />)}
        {frame !== null && frame >= first && frame <= last && <path className="now" d={`M${x(frame).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}`} />}
        {values.map((value, n) => value !== undefined && <circle key={n} className={`dot n${n}`} cx={x(frame!)} cy={y(value)} r={2.5} />)}
      </svg>
    </figure>
  );
}
