/** Places for nodes that come without any: columns by distance from the sources, as the other hosts do. y grows upwards in files. */
import type { Wire } from "./graph";

const COLUMN = 240, WIDTH = 190, GAP = 36;
/** How tall the lane of a wire is that passes a column, and how far below its node's top the first output is. */
const LANE = 14, PORT = 53;

/** How far below the tops of its nodes a wire begins and ends. */
export type Ends = (wire: Wire) => [from: number, to: number];

/** Return places by name; `height` says how tall a node is drawn, `across` how many columns stand beside each other, as in a text. */
export function columns(names: string[], wires: Wire[], height: (name: string) => number, across = Infinity, ends?: Ends): Map<string, [number, number]> {
  const depth = new Map(names.map((name) => [name, 0]));
  for (let round = 0, changed = true; changed && round < names.length; round++) {
    changed = false;
    for (const { source, target } of wires) {
      const wanted = Math.min((depth.get(source) ?? 0) + 1, names.length);
      if (depth.has(source) && depth.has(target) && depth.get(target)! < wanted) { depth.set(target, wanted); changed = true; }
    }
  }
  // what has nothing before it stands beside what it goes to, so that wires are short
  for (const name of names) {
    const to = wires.filter((wire) => wire.source === name).map((wire) => depth.get(wire.target) ?? 0);
    if (!wires.some((wire) => wire.target === name) && to.length) depth.set(name, Math.min(...to) - 1);
  }
  const lines = new Map<number, string[]>();
  for (const name of names) lines.set(depth.get(name)!, [...(lines.get(depth.get(name)!) ?? []), name]);
  // a wire that passes a column has a lane there, so that it is not hidden behind a node; stages in rows have too many of them
  const lanes = new Map<string, string>();
  for (const { source, target } of Number.isFinite(across) ? [] : wires) {
    if (!depth.has(source) || !depth.has(target)) continue;
    let before = source;
    for (let column = depth.get(source)! + 1; column < depth.get(target)!; column++) {
      const lane = `${source} ${column}`; // no name holds a space
      if (!lanes.has(lane)) lines.set(column, [...(lines.get(column) ?? []), lane]);
      lanes.set(lane, before);
      before = lane;
    }
  }
  const middle = new Map<string, number>(), tall = (name: string) => (lanes.has(name) ? LANE : height(name)), places = new Map<string, [number, number]>();
  for (const column of [...lines.keys()].sort((a, b) => a - b)) {
    const rank = (name: string) => {
      const before = lanes.get(name);
      if (before !== undefined) return lanes.has(before) ? middle.get(before)! : places.get(before)![1] - PORT;
      const from = wires.filter((wire) => wire.target === name && middle.has(wire.source)).map((wire) => middle.get(wire.source)!);
      return from.length ? from.reduce((sum, y) => sum + y, 0) / from.length : 0;
    };
    const sorted = lines.get(column)!.map((name) => [rank(name), name] as const).sort((a, b) => b[0] - a[0]);
    const total = sorted.reduce((sum, [, name]) => sum + tall(name) + GAP, -GAP);
    let top = total / 2;
    for (const [, name] of sorted) {
      if (!lanes.has(name)) places.set(name, [column * COLUMN, Math.round(top)]);
      middle.set(name, top - tall(name) / 2);
      top -= tall(name) + GAP;
    }
  }
  if (ends) offWires(places, wires, height, ends);
  const tallest = Math.max(0, ...[...lines.values()].map((line) => line.reduce((sum, name) => sum + tall(name) + GAP, GAP)));
  for (const [name, [x, y]] of Number.isFinite(across) ? places : []) {
    const column = x / COLUMN, row = Math.floor(column / across);
    places.set(name, [(column - row * across) * COLUMN, y - row * tallest]);
  }
  return places;
}

/** Largest step by which a node gives way to a wire that passes it, and what is left between them: above it stands what it took. */
const STEP = 110, CLEAR = 12, LABEL = 26;

/** Move nodes up or down a little where wires between other columns would be hidden behind them. */
function offWires(places: Map<string, [number, number]>, wires: Wire[], height: (name: string) => number, ends: Ends): void {
  const columnOf = (name: string) => places.get(name)![0] / COLUMN, known = wires.filter((wire) => places.has(wire.source) && places.has(wire.target));
  for (const [name, [x, top]] of [...places].sort((a, b) => a[1][0] - b[1][0])) {
    const tall = height(name), passing = known.filter((wire) => columnOf(wire.source) < columnOf(name) && columnOf(name) < columnOf(wire.target)).map((wire) => spanOf(places, wire, ends(wire), x));
    const others = [...places].filter(([other, [u]]) => other !== name && u === x).map(([other, [, y]]) => [y + GAP / 2, y - height(other) - GAP / 2]);
    const hidden = (at: number) => passing.filter(([low, high]) => low <= at + LABEL && high >= at - tall - CLEAR).length;
    const free = (at: number) => Math.abs(at - top) <= STEP && others.every(([high, low]) => at - tall > high || at < low);
    const steps = [top, ...passing.flatMap(([low, high]) => [Math.floor(low) - LABEL - 1, Math.ceil(high) + tall + CLEAR + 1]).filter(free)];
    places.set(name, [x, steps.reduce((best, at) => (hidden(at) < hidden(best) || (hidden(at) === hidden(best) && Math.abs(at - top) < Math.abs(best - top)) ? at : best))]);
  }
}

/** Return between which heights a wire passes the column at `left`, as the curve that is drawn. */
function spanOf(places: Map<string, [number, number]>, wire: Wire, [down, under]: [number, number], left: number): [number, number] {
  const [x, y] = places.get(wire.source)!, [u, v] = places.get(wire.target)!, from = [x + WIDTH, y - down], to = [u, v - under], found: number[] = [];
  for (let n = 0; n <= 32; n++) {
    const p = n / 32, at = from[0] + (to[0] - from[0]) * (1.5 * p - 1.5 * p * p + p * p * p);
    if (at > left - CLEAR && at < left + WIDTH + CLEAR) found.push(from[1] + (to[1] - from[1]) * (3 * p * p - 2 * p * p * p));
  }
  return [Math.min(...found), Math.max(...found)];
}

export type Alignment = "left" | "top" | "across" | "down";

/** Return the places of boxes aligned at their left or top edges, or spread with even gaps; `size` says how large one is drawn. */
export function aligned(places: Map<string, [number, number]>, how: Alignment, size: (name: string) => [number, number]): Map<string, [number, number]> {
  const all = [...places], left = Math.min(...all.map(([, [x]]) => x)), top = Math.max(...all.map(([, [, y]]) => y));
  if (how === "left" || how === "top") return new Map(all.map(([name, [x, y]]) => [name, how === "left" ? [left, y] : [x, top]]));
  const axis = how === "across" ? 0 : 1, sign = axis ? -1 : 1, sorted = all.sort((a, b) => sign * (a[1][axis] - b[1][axis]));
  const first = sorted[0][1][axis], last = sorted.at(-1)!, whole = sign * (last[1][axis] - first) + size(last[0])[axis];
  const gap = (whole - sorted.reduce((sum, [name]) => sum + size(name)[axis], 0)) / Math.max(1, sorted.length - 1);
  let at = first;
  return new Map(sorted.map(([name, [x, y]]) => {
    const now = Math.round(at);
    at += sign * (size(name)[axis] + Math.max(gap, 12));
    return [name, axis ? [x, now] : [now, y]];
  }));
}
