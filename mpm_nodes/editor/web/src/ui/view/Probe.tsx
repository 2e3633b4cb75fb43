import { useEffect, useMemo, useState } from "react";
import { api, type History, type Particle } from "../../api";
import { digits, length, unitText } from "../../model/units";
import { tell } from "../../store";
import type { Triple } from "../../view/frame";
import { Icon } from "../Icon";

export interface Probed extends Particle { layer: string; path: string; radius: number }

/** Return what a particle was over the frames, as far as it is read; it grows while the rest is read. */
export function useHistory(path: string, revision: string, probed: Probed | undefined, attribute: string, last: number): History | null {
  const [found, setFound] = useState<History | null>(null), id = probed?.id ?? null;
  useEffect(() => {
    setFound(null);
    if (!probed || id === null) return;
    let gone = false, next: number | null = -1_000_000;
    const all: History = { frames: [], places: [], values: [], unit: "", next: null };
    (async () => {
      while (next !== null && !gone) {
        const more: History = await api.history(path, revision, probed.layer, probed.path, id, attribute, next);
        all.frames.push(...more.frames); all.places.push(...more.places); all.values.push(...more.values);
        all.unit = more.unit; next = more.next;
        if (!gone) setFound({ ...all });
      }
    })().catch((error) => { if (!gone) tell(error); });
    return () => { gone = true; };
  }, [path, revision, probed?.layer, probed?.path, id, attribute, last]);
  return found;
}

/** Return where a particle is at a frame: where it was clicked, or what its history says. */
export function placeAt(probed: Probed | undefined, history: History | null, frame: number): Triple | null {
  if (!probed) return null;
  const at = history?.frames.indexOf(frame) ?? -1;
  return at >= 0 ? history!.places[at] : probed.frame === frame ? probed.place : null;
}

interface Props {
  probed: Probed[]; histories: (History | null)[]; frame: number; attribute: string; attributes: string[]; setAttribute: (name: string) => void;
  go: (frame: number) => void; close: () => void;
}

/** The values of a particle, and one of them over the frames; with a second one, how far they are apart. */
export function Probe({ probed, histories, frame, attribute, attributes, setAttribute, go, close }: Props) {
  const [first, second] = probed, places = probed.map((each, n) => placeAt(each, histories[n], frame));
  const apart = places[0] && places[1] ? Math.hypot(...places[0].map((part, n) => part - places[1]![n])) : null;
  return (
    <section className="probe" aria-label="Picked particle">
      <header><b>{first.id === null ? `Point ${first.index}` : `Particle ${first.id}`}</b> <small>frame {first.frame}</small><button onClick={close} title="Escape"><Icon d="M4 4l8 8M12 4l-8 8" /><span className="sr">Close</span></button></header>
      {second && <p className="apart">{apart === null ? "They are not both in this frame." : <>{length(apart)} to {second.id === null ? `point ${second.index}` : `particle ${second.id}`}</>}</p>}
      <table><tbody>
        <tr><th scope="row">position</th><td>{first.place.map(digits).join("  ")}</td><td>m</td></tr>
        {first.values.filter(({ name }) => name !== "id").map(({ name, unit, value }) => <tr key={name}><th scope="row">{name.replaceAll("_", " ")}</th><td>{[value].flat().map(digits).join("  ")}</td><td>{unitText(unit)}</td></tr>)}
      </tbody></table>
      {first.id === null ? <p className="note">Without the attribute id a particle cannot be followed: name it in write_cache.attributes.</p> : (
        <>
          <label>Over frames <select value={attribute} onChange={(event) => setAttribute(event.target.value)}>{attributes.filter((each) => each !== "id").map((each) => <option key={each} value={each}>{each.replaceAll("_", " ")}</option>)}</select></label>
          <Plot histories={histories} frame={frame} go={go} name={attribute} />
        </>
      )}
      {!second && <p className="note">Shift click picks a second one, and measures.</p>}
    </section>
  );
}

const WIDTH = 248, HEIGHT = 92, LEFT = 44, BELOW = 16;

function Plot({ histories, frame, go, name }: { histories: (History | null)[]; frame: number; go: (frame: number) => void; name: string }) {
  const drawn = useMemo(() => {
    const lines = histories.filter((each) => each !== null), values = lines.flatMap((each) => each.values.filter((value) => value !== null)), frames = lines.flatMap((each) => each.frames);
    if (!values.length) return null;
    const low = Math.min(...values), high = Math.max(...values), flat = high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high)), [a, b] = flat ? [low - Math.abs(low || 1) * 0.05, high + Math.abs(low || 1) * 0.05] : [low, high], from = Math.min(...frames), to = Math.max(...frames);
    const x = (at: number) => LEFT + ((at - from) / Math.max(to - from, 1)) * (WIDTH - LEFT - 6), y = (value: number) => 6 + (1 - (value - a) / (b - a)) * (HEIGHT - BELOW - 10);
    const paths = lines.map((each) => each.frames.map((at, n) => { const value = each.values[n]; return value === null ? "" : `${n && each.values[n - 1] !== null && each.frames[n - 1] === at - 1 ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`; }).join(""));
    return { a: flat ? null : low, b: high, from, to, x, y, paths, unit: lines[0].unit };
  }, [histories]);
  if (!drawn) return <p className="note" role="status">Reading frames…</p>;
  const { x, y, from, to } = drawn;
  return (
    <svg className="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${name} from frame ${from} to ${to}: from ${drawn.a ?? drawn.b} to ${drawn.b} ${drawn.unit}`}
      onClick={(event) => { const box = event.currentTarget.getBoundingClientRect(), share = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 6); go(Math.round(from + Math.min(Math.max(share, 0), 1) * (to - from))); }}>
      <line className="rule" x1={LEFT} x2={WIDTH - 6} y1={y(drawn.b)} y2={y(drawn.b)} />{drawn.a !== null && <line className="rule" x1={LEFT} x2={WIDTH - 6} y1={y(drawn.a)} y2={y(drawn.a)} />}
      <text x={LEFT - 4} y={y(drawn.b) + 4} textAnchor="end">{digits(drawn.b)}</text>{drawn.a !== null && <text x={LEFT - 4} y={y(drawn.a) + 4} textAnchor="end">{digits(drawn.a)}</text>}
      <text x={4} y={HEIGHT - 3}>{unitText(drawn.unit)}</text>
      <text x={LEFT} y={HEIGHT - 3}>{from}</text><text x={WIDTH - 6} y={HEIGHT - 3} textAnchor="end">frame {to}</text>
      {frame >= from && frame <= to && <line className="now" x1={x(frame)} x2={x(frame)} y1={4} y2={HEIGHT - BELOW} />}
      {drawn.paths.map((path, n) => <path key={n} d={path} className={n ? "second" : ""} />)}
    </svg>
  );
}
