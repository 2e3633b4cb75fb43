import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api";
import { setKnob } from "../model/graph";
import { isObject } from "../model/json";
import { revisionLabel } from "../model/preview";
import { length } from "../model/units";
import { edit, set, tell, useStore } from "../store";
import { isDraft } from "../view/frame";
import { guidesOf, knobsAfter, type Mode } from "../view/guides";
import { Handles } from "../view/handles";
import { type Compare, type Scale, View } from "../view/scene";
import { useFrameLink } from "./frameLink";
import { usePlayback } from "./view/playback";
import { Border, CompareWith, type Other } from "./view/Compare";
import { Layers } from "./view/Layers";
import { PreviewNote } from "./view/PreviewNote";
import { Legend, type Range } from "./view/Legend";
import { placeAt, Probe, type Probed, useHistory } from "./view/Probe";
import { Slice, type SliceState } from "./view/Slice";
import { Timeline } from "./view/Timeline";

const MODES: [Mode, string, string][] = [["translate", "Move", "t"], ["rotate", "Turn", "r"], ["scale", "Scale", "e"]];
/** What Shift with an arrow turns the view by [radians]. */
const TURNS: Record<string, [number, number]> = { arrowleft: [-0.12, 0], arrowright: [0.12, 0], arrowup: [0, 0.12], arrowdown: [0, -0.12] };
const NONE: ReadonlySet<string> = new Set();

const NO_RANGE: [number, number] = [0, 1];

export function Viewer() {
  const { path, revision, revisions, cook, document: graph, theme, kinds, selected, level } = useStore((s) => s);
  const host = useRef<HTMLDivElement>(null), view = useRef<View | null>(null), handles = useRef<Handles | null>(null);
  const [layers, setLayers] = useState<string[] | null>(null), [attribute, setAttribute] = useState(""), [size, setSize] = useState<number>(1), [guides, setGuides] = useState(true), [grid, setGrid] = useState(true);
  const [range, setRange] = useState<Range>({ kind: "seen", fixed: [0, 1] }), [slice, setSlice] = useState<SliceState>({ axis: null, at: 0, flipped: false });
  const [other, setOther] = useState<Other | null>(null), [compare, setCompare] = useState<Compare>("beside"), [share, setShare] = useState(0.5);
  const [probed, setProbed] = useState<Probed[]>([]), [plotted, setPlotted] = useState(""), [mode, setMode] = useState<Mode>("translate"), [failed, setFailed] = useState(""), [scale, setScale] = useState<Scale>({ metres: 1, pixels: 0, cell: 1 });

  useEffect(() => {
    try { view.current = new View(host.current!); } catch { setFailed("This browser draws no WebGL here; the graph can be edited all the same."); return; }
    view.current.onScale = setScale;
    handles.current = new Handles(view.current);
    return () => { handles.current?.dispose(); view.current?.dispose(); view.current = null; };
  }, []);
  useEffect(() => {
    const paint = () => { const style = getComputedStyle(document.documentElement); view.current?.theme(...(["--view", "--grid-major", "--grid-minor"].map((each) => style.getPropertyValue(each).trim()) as [string, string, string])); };
    requestAnimationFrame(paint);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", paint);
    return () => dark.removeEventListener("change", paint);
  }, [theme]);

  // ---------------------------------------------------------------- frames
  const play = usePlayback({ path, revision, other, cook, layers, attribute, known: revisions.includes(revision) });
  const { shown, beside, now, last } = play;
  useFrameLink(shown?.frame ?? null, play.go);
  useEffect(() => { setProbed([]); setOther(null); }, [path]);
  useEffect(() => { setProbed([]); }, [revision, cook.number]);
  useEffect(() => { if (revision === other?.revision && other.path === path) setOther(null); }, [revision]);

  const coloured = shown?.attribute ?? "", [least, most] = !coloured ? NO_RANGE : range.kind === "fixed" ? range.fixed : told(range.kind === "frame" ? (shown?.values ?? [0, 1]) : (play.span ?? shown?.values ?? [0, 1]));
  const on = useMemo(() => new Set(layers ?? shown?.shown ?? []), [layers, shown?.shown.join()]);
  const hidden = useMemo(() => (layers ? new Set((shown?.layers ?? []).map((each) => each.name).filter((each) => !on.has(each))) : NONE), [layers, on, shown?.layers]);
  useEffect(() => { view.current?.paint({ range: [least, most], ramped: coloured !== "", pointSize: size, hidden, slice }); }, [least, most, coloured, size, hidden, slice]);
  useEffect(() => { view.current?.show(shown, 0); if (play.playing) view.current?.moves(); }, [shown]);
  useEffect(() => { view.current?.show(beside, 1); }, [beside]);
  useEffect(() => { view.current?.setCompare(other && beside ? compare : "single", share); }, [other, beside !== null, compare, share]);
  useEffect(() => { handles.current?.slice(slice.axis, slice.at); }, [slice, shown === null]);
  useEffect(() => { if (handles.current) handles.current.onSliced = (at) => setSlice((before) => ({ ...before, at })); }, []);
  const toggle = (name: string) => setLayers([...on].includes(name) ? [...on].filter((each) => each !== name) : [...on, name]);
  const counts = useMemo(() => new Map([...(shown?.clouds ?? []).map((each) => [each.layer, each.count.toLocaleString("en")] as const), ...(shown?.meshes ?? []).filter((each) => each.matter).map((each) => [each.layer, `${each.triangles.toLocaleString("en")} triangles`] as const), ...(shown?.fogs ?? []).map((each) => [each.layer, each.size.join(" × ") + (each.coarser > 1 ? `, 1/${each.coarser}` : "")] as const)]), [shown]);

  // ---------------------------------------------------------------- guides and their handles
  const begin = isObject(graph?.settings) && typeof graph.settings.start === "number" ? graph.settings.start : 1, at = shown ? now : begin;
  const chosen = !level.length && selected.size === 1 ? [...selected][0] : "";
  useEffect(() => { if (shown) setGuides(false); }, [shown === null]); // outlines of what will be emitted hide what has been
  useEffect(() => {
    if (!graph || !kinds || !view.current || !handles.current || handles.current.dragging) return;
    const outlines = guidesOf(graph, kinds, at), outline = outlines.find((each) => each.userData.node === chosen);
    for (const each of outlines) each.visible = guides || each === outline; // floors that are not drawn are looked at all the same
    handles.current.attach(null, mode);
    view.current.showGuides(outlines);
    view.current.setVisible(true, grid);
    const modes = (outline?.userData.modes as Mode[]) ?? [];
    if (outline && modes.length && !other) handles.current.attach(outline, modes.includes(mode) ? mode : modes[0]);
  }, [graph, kinds, guides, grid, chosen, mode, at, other]);
  const outlined = useMemo(() => (graph && kinds && chosen ? guidesOf(graph, kinds, at).find((each) => each.userData.node === chosen) : undefined), [graph, kinds, chosen, at]), modes = (outlined?.userData.modes as Mode[]) ?? [];
  useEffect(() => {
    if (!handles.current || !kinds) return;
    handles.current.onMoved = (outline, how) => edit((document) => [...knobsAfter(document, kinds, outline, how, at)].reduce((found, [knob, value]) => setKnob(found, String(outline.userData.node), knob, value), document));
  }, [kinds, at]);

  // ---------------------------------------------------------------- picked particles
  const plot = plotted || coloured || shown?.attributes.find((each) => each !== "id") || "";
  const one = useHistory(path, revision, probed[0], plot, last), two = useHistory(path, revision, probed[1], plot, last);
  const places = [placeAt(probed[0], one, now), placeAt(probed[1], two, now)].filter((each) => each !== null);
  useEffect(() => { view.current?.setMarks(places); }, [JSON.stringify(places), scale.metres]);
  const down = useRef([0, 0]);
  const pick = (event: React.MouseEvent) => {
    if (!view.current?.surface.contains(event.target as Node) || handles.current?.hovered || Math.hypot(event.clientX - down.current[0], event.clientY - down.current[1]) > 4) return;
    const box = host.current!.getBoundingClientRect();
    pickAt(event.clientX - box.left, event.clientY - box.top, event.shiftKey);
  };
  const pickAt = (x: number, y: number, more: boolean) => {
    const found = shown && view.current?.pick(x, y);
    if (!shown) return;
    if (!found) { if (!more) setProbed([]); return; }
    if (found.side) return;
    api.particle(path, revision, shown.frame, found.layer, found.path, found.index).then((particle) => {
      const made = { ...particle, layer: found.layer, path: found.path, radius: found.radius };
      setProbed((before) => (more && before.length ? [before[0], made] : [made]));
    }, tell);
  };

  const lookAt = () => view.current?.frameAll(places[0] ? { centre: places[0], reach: Math.max(40 * (probed[0]?.radius ?? 0.01), 1e-4) } : null);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement, key = event.key.toLowerCase(), inView = host.current?.contains(target) ?? false;
      if (target.matches("input:not([type=range]), textarea, select, button, summary") || target.closest(".flow") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (key === " ") { event.preventDefault(); play.toggle(); }
      else if (inView && event.shiftKey && TURNS[key]) { event.preventDefault(); view.current?.turn(...TURNS[key]); }
      else if (key === "arrowleft" && target.getAttribute("role") !== "separator" && !target.matches("input")) play.go(now - 1);
      else if (key === "arrowright" && target.getAttribute("role") !== "separator" && !target.matches("input")) play.go(now + 1);
      else if (inView && (key === "+" || key === "-")) view.current?.turn(0, 0, key === "+" ? 1.15 : 1 / 1.15);
      else if (key === "enter" && target === host.current) pickAt(host.current.clientWidth * (other && compare === "beside" ? 0.25 : 0.5), host.current.clientHeight / 2, event.shiftKey);
      else if (key === "f") lookAt();
      else if (key === "home" && !target.matches("input")) view.current?.frameAll();
      else if (key === "escape" && probed.length) setProbed([]);
      else { const found = inView && MODES.find((each) => each[2] === key && modes.includes(each[0])); if (found) setMode(found[0]); }
    };
    window.addEventListener("keydown", keys);
    return () => window.removeEventListener("keydown", keys);
  }, [play.go, now, probed, modes.join(), JSON.stringify(places[0])]);

  const cooks = cook.running && cook.path === path && (!revision || revision === cook.revision);
  const points = shown?.clouds.reduce((sum, cloud) => sum + cloud.count, 0) ?? 0, drawn = shown?.clouds.reduce((sum, cloud) => sum + cloud.shown, 0) ?? 0;
  const bar = (each: HTMLElement | null) => { each?.style.setProperty("width", `${scale.pixels}px`); };
  return (
    <>
      <div className="stage" ref={host} tabIndex={0} onPointerDown={(event) => { down.current = [event.clientX, event.clientY]; }} onClick={pick} aria-label={shown ? `Frame ${now} of ${revision}: ${points.toLocaleString("en")} points` : "No frame is shown"}
        data-frame={shown?.frame} data-points={points} data-draft={shown ? isDraft(shown) : undefined} data-beside={beside?.frame} data-layers={shown?.shown.length}>
        {failed && <p className="hint">{failed}</p>}
        {!failed && !shown && (cooks ? <p className="hint">The first frame cooks; it is shown as soon as it is whole.</p> : !revision && <p className="hint">Nothing is cooked yet: ▶ Cook shows frames here as they finish.</p>)}
        {!failed && revision && play.empty && !cook.running && <p className="hint">{revision} has no whole frame: Resume goes on with it.</p>}
        {other && play.nothing && <p className="hint">{other.revision} has no whole frame yet: it is shown beside as soon as there is one.</p>}
        {other && beside && <Border compare={compare} share={share} setShare={setShare} names={[revisionLabel(revision), other.path === path ? revisionLabel(other.revision) : `${other.path.replace(/\.json$/, "")} ${revisionLabel(other.revision)}`]} />}
        <div className="over top">
          <label>Cook <select value={revision} onChange={(event) => choose(event.target.value)} disabled={!revisions.length}>{!revision && <option value="">none</option>}{[...new Set([...revisions, ...(revision ? [revision] : [])])].map((each) => <option key={each} value={each}>{revisionLabel(each)}</option>)}</select></label>
          <CompareWith other={other} onChange={setOther} />
          {other && <div className="choice" role="group" aria-label="How two cooks are compared">{(["beside", "wipe"] as const).map((each) => <button key={each} aria-pressed={compare === each} onClick={() => setCompare(each)}>{each === "beside" ? "side by side" : each}</button>)}</div>}
          <label>Colour <select value={attribute} onChange={(event) => { setAttribute(event.target.value); setRange({ kind: "seen", fixed: [0, 1] }); }} disabled={!shown}><option value="">as it looks</option>{shown?.attributes.map((each) => <option key={each} value={each}>{each.replaceAll("_", " ")}</option>)}</select></label>
          <Layers layers={shown?.layers ?? []} on={on} counts={counts} toggle={toggle} size={size} setSize={setSize} guides={guides} setGuides={setGuides} grid={grid} setGrid={setGrid} />
          <Slice slice={slice} span={(axis) => { const [low, high] = view.current?.bounds() ?? []; return low && high ? [low.getComponent(axis), high.getComponent(axis)] : [0, 1]; }} onChange={setSlice} />
          <button onClick={() => view.current?.frameAll()} title="Home; F looks at what is picked">Frame all</button>
          {modes.length > 0 && !other && <div className="choice" role="group" aria-label={`Handles of ${chosen}`}>{MODES.filter((each) => modes.includes(each[0])).map(([each, label, key]) => <button key={each} aria-pressed={(modes.includes(mode) ? mode : modes[0]) === each} title={key.toUpperCase()} onClick={() => setMode(each)}>{label}</button>)}</div>}
        </div>
        {probed.length > 0 && shown && <Probe probed={probed} histories={[one, ...(probed[1] ? [two] : [])]} frame={now} attribute={plot} attributes={shown.attributes} setAttribute={setPlotted} go={play.go} close={() => setProbed([])} />}
        {coloured && shown && <Legend name={coloured} unit={shown.unit} range={[least, most]} kind={range.kind} onChange={setRange} />}
        <div className="over bottom">
          <p className="facts">{shown && points > 0 && <>{points.toLocaleString("en")} points{drawn < points && `, ${drawn.toLocaleString("en")} drawn`} · </>}grid {length(scale.cell)}</p>
          <div className="scale" aria-hidden><span ref={bar} />{length(scale.metres)}</div>
          {shown?.preview && <PreviewNote {...shown.preview} />}
        </div>
      </div>
      <Timeline play={play} />
    </>
  );
}

const choose = (revision: string) => set({ revision });
/** What differs in the sixth digit alone is one value, not all colours. */
const told = ([low, high]: [number, number]): [number, number] => [low, Math.max(high, low + 1e-5 * Math.max(Math.abs(low), Math.abs(high)))];
