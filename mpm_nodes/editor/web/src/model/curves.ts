/** Curves over frames: joined as they come, and laid out on axes. Nothing here draws. */
import type { Curve, Panel } from "../api";

const MOST_STAGES = 5;

/** Append what came later; frames that came again replace those of before. */
export function joined(before: Panel[], more: Panel[]): Panel[] {
  const found = before.map((panel) => ({ ...panel }));
  for (const panel of more) {
    const old = found.find((each) => each.name === panel.name);
    if (!old) { found.push(panel); continue; }
    old.notes = { ...old.notes, ...panel.notes };
    old.lines = [...old.lines];
    for (const line of panel.lines) {
      const n = old.lines.findIndex((each) => each.name === line.name);
      if (n < 0) old.lines.push(line);
      else old.lines[n] = appended(old.lines[n]!, line);
    }
  }
  return found;
}

function appended(old: Curve, more: Curve): Curve {
  const kept = old.frames.findIndex((frame) => frame >= more.frames[0]!), end = kept < 0 ? old.frames.length : kept;
  return { name: old.name, frames: [...old.frames.slice(0, end), ...more.frames], values: [...old.values.slice(0, end), ...more.values] };
}

/** Seconds of frames and stages, which a cook tells and no cache keeps. */
export class Spent {
  private readonly seconds = new Map<number, number>();
  private readonly stages = new Map<number, Map<string, number>>();

  frame(frame: number, seconds: number): void { this.seconds.set(frame, seconds); }

  solve(frame: number, stages: Record<string, number>): void {
    const here = this.stages.get(frame) ?? new Map<string, number>();
    for (const [name, seconds] of Object.entries(stages)) here.set(name, (here.get(name) ?? 0) + seconds);
    this.stages.set(frame, here);
  }

  panels(): Panel[] {
    const found: Panel[] = [], frames = [...this.seconds.keys()].sort((a, b) => a - b);
    if (frames.length) found.push(panel("Seconds a frame", [{ name: "", frames, values: frames.map((frame) => this.seconds.get(frame)!) }]));
    const totals = new Map<string, number>(), at = [...this.stages.keys()].sort((a, b) => a - b);
    for (const here of this.stages.values()) for (const [name, seconds] of here) totals.set(name, (totals.get(name) ?? 0) + seconds);
    const names = [...totals].sort((a, b) => b[1] - a[1]).map(([name]) => name), most = names.slice(0, MOST_STAGES), rest = names.slice(MOST_STAGES);
    const sum = (frame: number, of: string[]) => of.reduce((total, name) => total + (this.stages.get(frame)!.get(name) ?? 0), 0);
    const lines = most.map((name) => ({ name: stageWords(name), frames: at, values: at.map((frame) => sum(frame, [name])) }));
    if (rest.length) lines.push({ name: "all others", frames: at, values: at.map((frame) => sum(frame, rest)) });
    if (lines.length) found.push(panel("Seconds by stage", lines));
    return found;
  }
}

const panel = (name: string, lines: Curve[]): Panel => ({ name, unit: "s", log: false, lines, notes: {} });

/** Of stages that run in one loop the first and the last. */
export function stageWords(stage: string): string {
  const parts = stage.replaceAll("_", " ").split("+");
  return parts.length === 1 ? parts[0]! : `${parts[0]} to ${parts.at(-1)}`;
}

export interface Axis { low: number; high: number; log: boolean; ticks: number[] }

/** An axis around values, with two to five round ticks. */
export function axisOf(values: number[], log: boolean): Axis {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(low <= high)) return { low: 0, high: 1, log: false, ticks: [0, 1] };
  if (log && low > 0) {
    low = low / 1.15; high = high * 1.15;
    const from = Math.ceil(Math.log10(low)), to = Math.floor(Math.log10(high)), decades = Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => 10 ** (from + n));
    return { low, high, log: true, ticks: decades.length > 1 ? decades : [low * 1.15, high / 1.15] };
  }
  if (high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high))) { const span = 0.05 * Math.max(Math.abs(low), Math.abs(high)) || 1; low -= span; high += span; }
  const step = roundStep((high - low) / 3), margin = 0.06 * (high - low);
  const ticks: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high + margin; n++) ticks.push(n * step);
  return { low: low - margin, high: high + margin, log: false, ticks };
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough)), share = rough / power;
  return power * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1);
}

/** Where a value lies on an axis, 0 to 1. */
export function placeOn(axis: Axis, value: number): number {
  return axis.log ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low);
}

/** The value at a frame, undefined where the line has none. */
export function valueAt(line: Curve, frame: number): number | undefined {
  let low = 0, high = line.frames.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1, here = line.frames[middle]!;
    if (here === frame) return line.values[middle];
    if (here < frame) low = middle + 1; else high = middle - 1;
  }
  return undefined;
}

export function short(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2).replace("e+", "e") : Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
}
