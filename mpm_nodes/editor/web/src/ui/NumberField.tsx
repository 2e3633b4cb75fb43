import { useState } from "react";
import type { Range } from "../model/spec";
import { say } from "../store";

interface Props { value: number; range: Range | null; whole: boolean; readOnly: boolean; label: string; id?: string; axis?: string; slider?: boolean; onChange: (value: number) => void }

/** A number that is typed, or dragged between the soft ends of its range; hard limits hold either way. */
export function NumberField({ value, range, whole, readOnly, label, id, axis, slider, onChange }: Props) {
  const [typed, setTyped] = useState<string | null>(null), text = typed ?? shown(value);
  const put = (given: number, typedText = "") => {
    setTyped(null);
    if (!Number.isFinite(given)) { if (typedText.trim()) say(`${typedText.trim()} is not a number; ${label} stays ${shown(value)}.`); return; }
    if (range?.exclusive_min && range.min !== null && given <= range.min) return say(`${label} is more than ${range.min}.`);
    const now = Math.min(Math.max(whole ? Math.round(given) : given, range?.min ?? -Infinity), range?.max ?? Infinity);
    if (now !== value) onChange(now);
  };
  const soft = range && slider && Number.isFinite(range.soft_min) && range.soft_max > range.soft_min && range.soft_max - range.soft_min < 1e5 ? range : null;
  const log = soft?.log && soft.soft_min > 0, to = (x: number) => (log ? Math.log10(Math.max(x, soft.soft_min)) : x), from = (x: number) => (log ? 10 ** x : x);
  const high = soft ? to(soft.soft_max) : 1, least = soft ? to(soft.soft_min) : 0;
  const low = soft?.exclusive_min && from(least) <= (soft.min ?? -Infinity) ? least + (high - least) / 500 : least;
  return (
    <span className="number">
      {axis && <span className={`axis ${axis}`} aria-hidden>{axis}</span>}
      <input id={id} aria-label={label} inputMode="decimal" value={text} readOnly={readOnly}
        onFocus={(event) => event.target.select()} onChange={(event) => setTyped(event.target.value)}
        onBlur={() => { if (typed !== null) put(Number(text.trim() || NaN), text); }}
        onKeyDown={(event) => {
          if (event.key === "Enter") put(Number(text.trim() || NaN), text);
          if (event.key === "Escape") setTyped(null);
          if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !readOnly) {
            event.preventDefault();
            const now = typed !== null && text.trim() && Number.isFinite(Number(text)) ? Number(text) : value, size = whole ? 1 : 10 ** Math.floor(Math.log10(Math.abs(now) || 1) - 1);
            put(round(now + (event.key === "ArrowUp" ? 1 : -1) * size * (event.shiftKey ? 10 : 1)));
          }
        }} />
      {soft && <input type="range" tabIndex={-1} aria-label={`${label}, slider`} min={low} max={high} step={whole && !log ? 1 : (high - low) / 500} value={Math.min(Math.max(to(value), low), high)} disabled={readOnly}
        onChange={(event) => put(round(from(Number(event.target.value))))} />}
    </span>
  );
}

const shown = (value: number) => { const size = Math.abs(value); return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential().replace("+", "") : String(value); };
/** Four digits are what a slider means. */
const round = (value: number) => Number(value.toPrecision(4));
