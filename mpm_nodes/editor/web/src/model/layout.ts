/** Places for nodes that come without any: columns by distance from the sources, as the other hosts do. y grows upwards in files. */
import type { Wire } from "./graph";

const COLUMN = 240, GAP = 36;

/** Return places by name; `height` says how tall a node is drawn, `across` how many columns stand beside each other, as in a text. */
export function columns(names: string[], wires: Wire[], height: (name: string) => number, across = Infinity): Map<string, [number, number]> {
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
  const middle = new Map<string, number>(), places = new Map<string, [number, number]>();
  for (const column of [...lines.keys()].sort((a, b) => a - b)) {
    const rank = (name: string) => {
      const from = wires.filter((wire) => wire.target === name && middle.has(wire.source)).map((wire) => middle.get(wire.source)!);
      return from.length ? from.reduce((sum, y) => sum + y, 0) / from.length : 0;
    };
    const sorted = lines.get(column)!.map((name) => [rank(name), name] as const).sort((a, b) => b[0] - a[0]);
    const total = sorted.reduce((sum, [, name]) => sum + height(name) + GAP, -GAP);
    let top = total / 2;
    for (const [, name] of sorted) {
      places.set(name, [column * COLUMN, Math.round(top)]);
      middle.set(name, top - height(name) / 2);
      top -= height(name) + GAP;
    }
  }
  const tallest = Math.max(0, ...[...lines.values()].map((line) => line.reduce((sum, name) => sum + height(name) + GAP, GAP)));
  for (const [name, [x, y]] of Number.isFinite(across) ? places : []) {
    const column = x / COLUMN, row = Math.floor(column / across);
    places.set(name, [(column - row * across) * COLUMN, y - row * tallest]);
  }
  return places;
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
