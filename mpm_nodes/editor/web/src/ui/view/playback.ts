/** Which frame is shown, of one cook or of two: asked for, scrubbed, played, or the newest of a cook that runs. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api";
import { type CookState, lookForRevisions, tell } from "../../store";
import { type Frame, isDraft, type Span, unpack } from "../../view/frame";
import { Source } from "../../view/source";
import { frameOf } from "../../model/preview";
import type { Other } from "./Compare";

/** Milliseconds after the last move of the bar until all points are read, and how many frames are read ahead. */
const SETTLED = 160, AHEAD = 8;

export interface Playback {
  shown: Frame | null; beside: Frame | null; now: number; first: number; last: number; step: number; fps: number; playing: boolean; rate: number | null; span: Span | undefined;
  /** Whether there is no frame that could be shown. */
  empty: boolean;
  /** Whether there is none of what should stand beside it. */
  nothing: boolean;
  has: (frame: number) => boolean; go: (frame: number, scrubbing?: boolean) => void; toggle: () => void;
}

interface Given { path: string; revision: string; other: Other | null; cook: CookState; layers: string[] | null; attribute: string; known: boolean }

export function usePlayback({ path, revision, other, cook, layers, attribute, known }: Given): Playback {
  const [shown, setShown] = useState<Frame | null>(null), [beside, setBeside] = useState<Frame | null>(null), [wanted, setWanted] = useState<number | null>(null), [playing, setPlaying] = useState(false), [, setLoaded] = useState(0), [rate, setRate] = useState<number | null>(null), [empty, setEmpty] = useState(false), [nothing, setNothing] = useState(false);
  const source = useSource(path, revision, () => setLoaded((n) => n + 1)), second = useSource(other?.path ?? "", other?.revision ?? "", () => setLoaded((n) => n + 1));
  source.choose(layers, attribute);
  second.choose(layers, attribute);
  const newest = useRef(true), scrubbed = useRef(0), reach = useRef(-Infinity); // frames that were read while it cooked know of fewer

  // a cook may write a revision again, after its folder was removed or from a frame on: what was read of it before is old
  useEffect(() => { source.clear(); second.clear(); }, [cook.number]);
  // another cook is another cache: nothing of the last one stays
  useEffect(() => { setShown(null); setEmpty(false); setWanted(null); setPlaying(false); newest.current = true; reach.current = -Infinity; }, [path, revision]);

  const done = cook.path === path && cook.revision === revision ? cook.last : null, waits = !revision || (cook.running && cook.revision === revision && cook.path === path && done === null);
  // the frame that is asked for last is the one that is shown: some of its points first, where it has many
  useEffect(() => {
    if (waits) { setShown(null); return; } // no frame is whole yet
    let clock = 0, gone = false;
    const some = playing ? !source.keepsUp(shown?.fps ?? 24) : scrubbed.current > 0 || !source.quick;
    const failing = (error: unknown) => { if (!cook.running && !gone) { setShown(null); setEmpty(true); if (known) { tell(error); void lookForRevisions().catch(tell); } } };
    source.want(wanted, some).then((frame) => {
      if (gone || !frame) return;
      reach.current = Math.max(reach.current, frame.last);
      setShown(frame); setEmpty(false);
      if (isDraft(frame) && !playing) clock = window.setTimeout(() => source.want(frame.frame, false).then((all) => { if (!gone && all) setShown(all); }, failing), Math.max(0, scrubbed.current + SETTLED - performance.now()));
    }, failing);
    return () => { gone = true; clearTimeout(clock); };
  }, [wanted, source, layers?.join(), attribute, waits, playing]);
  const grows = other && cook.path === other.path && cook.revision === other.revision ? cook.last : null;
  useEffect(() => {
    if (!other || !shown) { setBeside(null); setNothing(false); return; }
    let gone = false;
    // what has no whole frame yet is asked again when its cook has finished one
    second.want(shown.frame, isDraft(shown)).then((frame) => { if (!gone && frame) { setBeside(frame); setNothing(false); } }, () => { if (!gone) { setBeside(null); setNothing(true); } });
    return () => { gone = true; };
  }, [other, second, shown, grows]);
  // frames of a running cook appear as they finish, until another one is looked at
  useEffect(() => { if (done === null) return; reach.current = Math.max(reach.current, done); if (newest.current) setWanted(done); }, [done]);

  const first = shown?.first ?? 1, last = Math.max(shown?.last ?? 1, done ?? -Infinity, reach.current), now = shown?.frame ?? first, fps = shown?.fps ?? 24, step = shown?.step ?? 1;
  const go = useCallback((frame: number, scrubbing = false) => {
    newest.current = false;
    scrubbed.current = scrubbing ? performance.now() : 0;
    if (scrubbing) setPlaying(false);
    setWanted(frameOf(Math.min(Math.max(frame, first), last), { first, now, step }));
  }, [first, last, now, step]);

  // played in the time of the shot: where frames do not come as fast, some are left out
  const beat = useRef({ at: 0, frame: 0, shown: [] as number[] });
  useEffect(() => { beat.current = { at: performance.now(), frame: now, shown: [] }; setRate(null); }, [playing]);
  useEffect(() => {
    if (!playing || !shown) return;
    const { at, frame, shown: times } = beat.current, count = last - first + 1, due = (n: number) => at + (1000 * n) / fps;
    times.push(performance.now());
    if (times.length > 12) times.shift();
    if (times.length > 6) setRate((1000 * (times.length - 1)) / (times.at(-1)! - times[0]));
    const passed = Math.max(Math.floor(((performance.now() - at) * fps) / 1000), 0) + 1, meant = first + ((frame - first + passed) % count), next = meant === shown.frame ? first + ((meant - first + 1) % count) : meant, some = !source.keepsUp(fps);
    const clock = window.setTimeout(() => go(next), Math.max(0, due(passed) - performance.now()));
    void source.ahead(Array.from({ length: AHEAD }, (_, n) => first + ((next - first + n) % count)), some);
    return () => clearTimeout(clock);
  }, [playing, shown, last]);

  return { shown, beside, now, first, last, step, fps, playing, rate, span: source.span, empty, nothing, has: (frame) => source.has(frame), go, toggle: useCallback(() => setPlaying((was) => !was), []) };
}

/** Return the frames of a revision; what was read of the last one is forgotten. */
function useSource(path: string, revision: string, loaded: () => void): Source {
  const source = useMemo(() => new Source(async (frame, layers, attribute, most) => unpack(await api.frame(path, revision, frame, layers, attribute, most))), [path, revision]);
  source.onLoaded = loaded;
  return source;
}
