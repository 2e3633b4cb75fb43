import { length } from "../../model/units";
import { Menu } from "./Layers";

export interface SliceState { axis: number | null; at: number; flipped: boolean }

/** Cuts away what lies beyond a plane; its handle in the view moves it as well. */
export function Slice({ slice, span, onChange }: { slice: SliceState; span: (axis: number) => [number, number]; onChange: (slice: SliceState) => void }) {
  const { axis, at, flipped } = slice, [low, high] = axis === null ? [0, 1] : span(axis);
  return (
    <Menu label={axis === null ? "Slice" : `Slice ${"xyz"[axis]}`} title="Cut away what lies beyond a plane">
      <div className="choice" role="group" aria-label="Axis of the slice">
        {[null, 0, 1, 2].map((each) => <button key={String(each)} aria-pressed={axis === each} onClick={() => { const [a, b] = each === null ? [0, 1] : span(each); onChange({ ...slice, axis: each, at: (a + b) / 2 }); }}>{each === null ? "off" : "xyz"[each]}</button>)}
      </div>
      {axis !== null && <>
        <label>At <input type="range" aria-label="Place of the slice" min={low} max={high} step={(high - low) / 500 || 1} value={at} onChange={(event) => onChange({ ...slice, at: Number(event.target.value) })} /> <output>{at < 0 ? "−" : ""}{length(Math.abs(at))}</output></label>
        <label className="check"><input type="checkbox" checked={flipped} onChange={(event) => onChange({ ...slice, flipped: event.target.checked })} /> keep the other side</label>
      </>}
    </Menu>
  );
}
