/** Room for a node that is put into a wire: what comes after it moves aside, and what it would then lie on moves below. */
import { reaches, type Wire } from "./graph";

/** What is left between a node that is put into a wire and the next one, and between one and what is moved below it. */
const ROOM = 50, GAP = 36;

type Point = [number, number];
export interface Room {
  /** New places of what is moved, the node itself among them. */
  places: Map<string, Point>;
  /** What comes after the wire, and how far it has gone to the right. */
  later: Set<string>; by: number;
}

/** `places` of all nodes, that of the node among them, y upwards; `size` says how large one is drawn; `wires` are those before. */
export function roomFor(node: string, wire: Wire, wires: Wire[], places: ReadonlyMap<string, Point>, size: (name: string) => Point): Room {
  const found = new Map(places), at = (name: string) => found.get(name)!;
  found.set(node, [Math.max(at(node)[0], at(wire.source)[0] + size(wire.source)[0] + ROOM), at(node)[1]]);
  const by = Math.max(0, Math.round(at(node)[0] + size(node)[0] + ROOM - at(wire.target)[0]));
  const later = new Set([...found.keys()].filter((each) => each !== node && reaches(wires, wire.target, each)));
  for (const each of later) found.set(each, [at(each)[0] + by, at(each)[1]]);
  const placed = new Set([node, wire.source, ...later]);
  for (const one of placed) { // it grows while it is gone through
    const [x, y] = at(one), [width, height] = size(one);
    for (const other of found.keys()) {
      const [u, v] = at(other), [across, down] = size(other);
      if (placed.has(other) || x >= u + across || u >= x + width || y <= v - down || v <= y - height) continue;
      found.set(other, [u, Math.round(y - height - GAP)]);
      placed.add(other);
    }
  }
  return { places: new Map([...found].filter(([name, [x, y]]) => name === node || places.get(name)![0] !== x || places.get(name)![1] !== y)), later, by };
}
