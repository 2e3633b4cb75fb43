import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api";
import { set, tell, useStore } from "../store";
import { Held } from "../model/held";
import { Icon } from "./Icon";
import { unpack, type Frame } from "../view/frame";
import { guidesOf } from "../view/guides";
import { GRADIENT } from "../view/ramp";
import { View } from "../view/scene";

const MOST_BYTES = 400e6, MOST_POINTS = 1_000_000;
const POINT_SIZES = [["small", 0.5], ["as seeded", 1], ["large", 1.6]] as const;

export function Viewer() {
  const { path, revision, revisions, cook, document: graph, theme, kinds } = useStore((s) => s);
  const host = useRef<HTMLDivElement>(null), view = useRef<View | null>(null), cache = useRef(new Held<Frame>(MOST_BYTES)), asked = useRef(0), spans = useRef(new Map<string, [number, number]>());
  const [show, setShow] = useState("points"), [attribute, setAttribute] = useState(""), [shown, setShown] = useState<Frame | null>(null), [wanted, setWanted] = useState<number | null>(null), [playing, setPlaying] = useState(false);
  const [size, setSize] = useState<number>(1), [guides, setGuides] = useState(true), [cell, setCell] = useState(0), [failed, setFailed] = useState(""), [, setLoaded] = useState(0), lastOwn = useRef(true);
  const key = useCallback((frame: number | null) => `${path}/${revision}/${show}/${attribute}/${frame}`, [path, revision, show, attribute]);

  useEffect(() => {
    try { view.current = new View(host.current!); } catch { setFailed("This browser draws no WebGL here; the graph can be edited all the same."); return; }
    const told = (event: Event) => setCell((event as CustomEvent<number>).detail);
    host.current!.addEventListener("cell", told);
    setCell(Number(host.current!.dataset.cell));
    return () => { view.current?.dispose(); view.current = null; };
  }, []);
  useEffect(() => {
    const paint = () => { const style = getComputedStyle(document.documentElement); view.current?.theme(...(["--view", "--grid-major", "--grid-minor"].map((each) => style.getPropertyValue(each).trim()) as [string, string, string])); };
    requestAnimationFrame(paint);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", paint);
    return () => dark.removeEventListener("change", paint);
  }, [theme]);
  useEffect(() => { if (graph && kinds) view.current?.showGuides(guidesOf(graph, kinds)); }, [graph, kinds]);
  useEffect(() => view.current?.setGuidesVisible(guides), [guides, graph]);

  const load = useCallback(async (frame: number | null): Promise<Frame | null> => {
    if (!revision) return null;
    const read = await cache.current.load(key(frame), async () => unpack(await api.frame(path, revision, frame, show, attribute, MOST_POINTS)), (found) => key(found.frame));
    const span = `${path}/${revision}/${attribute}`, before = spans.current.get(span);
    spans.current.set(span, before ? [Math.min(before[0], read.values[0]), Math.max(before[1], read.values[1])] : read.values);
    setLoaded((n) => n + 1);
    return read;
  }, [path, revision, show, attribute, key]);

  // a cook may write a revision anew, after its folder was removed or from a frame on: what was read of it before is old
  useEffect(() => { cache.current.clear(); spans.current.clear(); }, [cook.number]);
  // another cook is another cache: nothing of the last one stays
  useEffect(() => { setShown(null); setWanted(null); setPlaying(false); lastOwn.current = true; }, [path, revision]);

  const done = cook.path === path && cook.revision === revision ? cook.last : null;
  // the frame that is asked for last is the one that is shown
  useEffect(() => {
    const turn = ++asked.current;
    if (!revision || (cook.running && cook.revision === revision && cook.path === path && done === null)) { setShown(null); return; } // no frame is whole yet
    load(wanted).then((frame) => { if (turn === asked.current && frame) setShown(frame); }, (error) => { if (!cook.running && turn === asked.current) { setShown(null); if (revisions.includes(revision)) tell(error); } });
  }, [wanted, load, revision, done === null]);
  // frames of a running cook appear as they finish, until another one is looked at
  useEffect(() => {
    if (done === null) return;
    if (lastOwn.current) setWanted(done);
    else load(done).catch(() => {});
  }, [done]);

  const coloured = shown?.attribute ?? "", range = told(spans.current.get(`${path}/${revision}/${coloured}`) ?? shown?.values ?? [0, 1]);
  useEffect(() => { view.current?.show(shown, { attribute: coloured, range }, size); }, [shown, coloured, range[0], range[1], size]);

  const first = shown?.first ?? 1, last = Math.max(shown?.last ?? 1, done ?? -Infinity), now = shown?.frame ?? first;
  const go = useCallback((frame: number) => { lastOwn.current = false; setWanted(Math.min(Math.max(frame, first), last)); }, [first, last]);
  useEffect(() => {
    if (!playing || !shown) return;
    const next = shown.frame >= last ? first : shown.frame + 1, begin = performance.now();
    let clock = 0, gone = false;
    load(next).catch(() => {}).finally(() => { if (!gone) clock = window.setTimeout(() => go(next), Math.max(0, 1000 / shown.fps - (performance.now() - begin))); });
    if (last > first) load(next >= last ? first : next + 1).catch(() => {});
    return () => { gone = true; clearTimeout(clock); };
  }, [playing, shown, last]);

  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (target.matches("input:not([type=range]), textarea, select, button, summary") || target.closest(".flow") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " ") { event.preventDefault(); setPlaying((was) => !was); }
      else if (event.key === "ArrowLeft" && target.getAttribute("role") !== "separator" && !target.matches("input")) go(now - 1);
      else if (event.key === "ArrowRight" && target.getAttribute("role") !== "separator" && !target.matches("input")) go(now + 1);
      else if (event.key.toLowerCase() === "f") view.current?.frameAll();
    };
    window.addEventListener("keydown", keys);
    return () => window.removeEventListener("keydown", keys);
  }, [go, now]);

  useEffect(() => { if (shown) setGuides(false); }, [shown === null]); // outlines of what will be emitted hide what has been

  const points = shown?.clouds.reduce((sum, cloud) => sum + cloud.count, 0) ?? 0, drawn = shown?.clouds.reduce((sum, cloud) => sum + cloud.shown, 0) ?? 0;
  return (
    <>
      <div className="stage" ref={host} tabIndex={0} aria-label={shown ? `Frame ${now} of ${revision}: ${points.toLocaleString("en")} points` : "No frame is shown"} data-frame={shown?.frame} data-points={points}>
        {failed && <p className="hint">{failed}</p>}
        {!failed && !revision && <p className="hint">Nothing is cooked yet: ▶ Cook shows frames here as they finish.</p>}
        <div className="over top">
          <label>Cook <select value={revision} onChange={(event) => choose(event.target.value)} disabled={!revisions.length}>{!revision && <option value="">none</option>}{[...new Set([...revisions, ...(revision ? [revision] : [])])].map((each) => <option key={each}>{each}</option>)}</select></label>
          <label>Colour <select value={attribute} onChange={(event) => setAttribute(event.target.value)} disabled={!shown}><option value="">as it looks</option>{shown?.attributes.map((each) => <option key={each} value={each}>{each.replaceAll("_", " ")}</option>)}</select></label>
          <label>Show <select value={show} onChange={(event) => setShow(event.target.value)} disabled={!shown}><option value="points">points</option><option value="surface">surface</option></select></label>
          <label>Size <select value={size} onChange={(event) => setSize(Number(event.target.value))}>{POINT_SIZES.map(([label, each]) => <option key={each} value={each}>{label}</option>)}</select></label>
          <label className="check"><input type="checkbox" checked={guides} onChange={(event) => setGuides(event.target.checked)} /> Guides</label>
          <button onClick={() => view.current?.frameAll()} title="F">Frame all</button>
        </div>
        {coloured && shown && (
          <figure className="legend" aria-label={`Colours from ${range[0]} to ${range[1]} ${shown.unit}`}>
            <figcaption>{coloured.replaceAll("_", " ")}{shown.unit && ` [${shown.unit}]`}</figcaption><div ref={(bar) => { if (bar) bar.style.backgroundImage = GRADIENT; }} /><span>{digits(range[0])}</span><span>{digits((range[0] + range[1]) / 2)}</span><span>{digits(range[1])}</span>
          </figure>
        )}
        <p className="over facts">{shown && points > 0 && <>{points.toLocaleString("en")} points{drawn < points && `, ${drawn.toLocaleString("en")} drawn`} · </>}grid {cell >= 1 ? `${cell} m` : cell >= 0.01 ? `${Math.round(cell * 1000) / 10} cm` : `${Math.round(cell * 1e6) / 1e3} mm`}</p>
      </div>
      <div className="timeline" role="group" aria-label="Timeline">
        <button onClick={() => go(first)} disabled={!shown} aria-label="First frame"><Icon d="M3 3v10M13 3 6 8l7 5z" /></button>
        <button onClick={() => setPlaying(!playing)} disabled={!shown || last <= first} aria-label={playing ? "Pause" : "Play"} className="play"><Icon d={playing ? "M5 3v10M11 3v10" : "M4 2.5 13 8l-9 5.5z"} /></button>
        <button onClick={() => go(last)} disabled={!shown} aria-label="Last frame"><Icon d="M13 3v10M3 3l7 5-7 5z" /></button>
        <div className="track">
          <svg aria-hidden viewBox={`0 0 ${Math.max(1, last - first + 1)} 1`} preserveAspectRatio="none">{Array.from({ length: Math.min(2000, last - first + 1) }, (_, n) => cache.current.has(key(first + n)) && <rect key={n} x={n} width={1.02} height={1} />)}</svg>
          <input type="range" aria-label="Frame" min={first} max={Math.max(last, first + 1)} value={now} disabled={!shown || last <= first} onChange={(event) => { setPlaying(false); go(Number(event.target.value)); }} />
        </div>
        <output>{shown ? now : "–"} / {shown ? last : "–"}</output><small>{shown ? `${shown.fps} fps` : ""}</small>
      </div>
    </>
  );
}

const choose = (revision: string) => set({ revision });
/** What differs in the sixth digit alone is one value, not all colours. */
const told = ([low, high]: [number, number]): [number, number] => [low, Math.max(high, low + 1e-5 * Math.max(Math.abs(low), Math.abs(high)))];
const digits = (value: number) => (value === 0 ? "0" : Math.abs(value) >= 1e4 || Math.abs(value) < 1e-2 ? value.toExponential(2) : value.toPrecision(3));
