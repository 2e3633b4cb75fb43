import { Icon } from "../Icon";
import type { Playback } from "./playback";

/** Marks of held frames: at most as many as can be told apart. */
const MOST_MARKS = 2000;

export function Timeline({ play }: { play: Playback }) {
  const { shown, first, last, step, now, playing, fps, rate } = play, slow = playing && rate !== null && rate < 0.9 * fps;
  return (
    <div className="timeline" role="group" aria-label="Timeline">
      <button onClick={() => play.go(first)} disabled={!shown} aria-label="First frame"><Icon d="M3 3v10M13 3 6 8l7 5z" /></button>
      <button onClick={play.toggle} disabled={!shown || last <= first} aria-label={playing ? "Pause" : "Play"} className="play"><Icon d={playing ? "M5 3v10M11 3v10" : "M4 2.5 13 8l-9 5.5z"} /></button>
      <button onClick={() => play.go(last)} disabled={!shown} aria-label="Last frame"><Icon d="M13 3v10M3 3l7 5-7 5z" /></button>
      <div className="track">
        <svg aria-hidden viewBox={`0 0 ${Math.max(1, last - first + 1)} 1`} preserveAspectRatio="none">{Array.from({ length: Math.min(MOST_MARKS, last - first + 1) }, (_, n) => play.has(first + n) && <rect key={n} x={n} width={step + 0.02} height={1} />)}</svg>
        <input type="range" aria-label="Frame" min={first} max={Math.max(last, first + 1)} step={step} value={now} disabled={!shown || last <= first} onChange={(event) => play.go(Number(event.target.value), true)} />
      </div>
      <output>{shown ? now : "–"} / {shown ? last : "–"}</output><small>{shown ? (slow ? `${Math.round(rate)} of ${fps} fps` : `${fps} fps`) : ""}</small>
    </div>
  );
}
