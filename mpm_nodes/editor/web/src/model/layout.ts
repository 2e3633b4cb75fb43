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
