import { useEffect, useState } from "react";
import { digits, unitText } from "../../model/units";
import type { Span } from "../../view/frame";
import { GRADIENT } from "../../view/ramp";

export type RangeKind = "seen" | "frame" | "fixed";
export interface Range { kind: RangeKind; fixed: Span }

interface Props { name: string; unit: string; range: Span; kind: RangeKind; onChange: (range: Range) => void }

/** The colours with what they stand for: of all that was seen, of this frame, or between two values that are typed. */
export function Legend({ name, unit, range, kind, onChange }: Props) {
  return (
    <figure className="legend" aria-label={`Colours from ${range[0]} to ${range[1]} ${unitText(unit)}`}>
      <figcaption>{name.replaceAll("_", " ")}{unit && ` [${unitText(unit)}]`}
        <select aria-label="What the colours span" value={kind} onChange={(event) => onChange({ kind: event.target.value as RangeKind, fixed: range })}>
          <option value="seen">all seen</option><option value="frame">this frame</option><option value="fixed">fixed</option>
        </select>
      </figcaption>
      <div ref={(bar) => { if (bar) bar.style.backgroundImage = GRADIENT; }} />
      <End label="Least value of the colours" value={range[0]} onChange={(low) => onChange({ kind: "fixed", fixed: [low, range[1]] })} />
      <span>{digits((range[0] + range[1]) / 2)}</span>
      <End label="Greatest value of the colours" value={range[1]} onChange={(high) => onChange({ kind: "fixed", fixed: [range[0], high] })} />
    </figure>
  );
}

function End({ label, value, onChange }: { label: string; value: number; onChange: (value: number) => void }) {
  const [text, setText] = useState(digits(value));
  useEffect(() => setText(digits(value)), [value]);
  const put = () => { const given = Number(text.trim() || NaN); if (Number.isFinite(given) && text !== digits(value)) onChange(given); else setText(digits(value)); };
  return <input aria-label={label} inputMode="decimal" value={text} onChange={(event) => setText(event.target.value)} onBlur={put}
    onKeyDown={(event) => { if (event.key === "Enter") put(); if (event.key === "Escape") setText(digits(value)); }} />;
}
