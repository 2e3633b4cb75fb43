import assert from "node:assert/strict";
import test from "node:test";
import type { Wire } from "./graph";
import { columns } from "./layout";
import { roomFor } from "./room";

const wire = (source: string, target: string, port = "p"): Wire => ({ source, output: "out", target, port, index: 0 });
const size = (): [number, number] => [190, 100];
const overlap = ([x, y]: [number, number], [u, v]: [number, number]) => Math.abs(x - u) < 190 && Math.abs(y - v) < 100;

test("a node that is put into a wire lies on nothing, and nothing on what was moved for it", () => {
  const wires = [wire("a", "b"), wire("b", "c")];
  const places = new Map<string, [number, number]>([["a", [0, 0]], ["b", [240, 0]], ["c", [480, 0]], ["new", [100, 20]], ["beside", [300, -60]], ["below", [320, -180]], ["far", [0, 500]]]);
  const { places: moved, by, later } = roomFor("new", wires[0], wires, places, size);
  const now = new Map([...places, ...moved]), all = [...now];
  for (const [name, one] of all) for (const [other, two] of all) assert.ok(name === other || !overlap(one, two), `${name} lies on ${other}`);
  assert.deepEqual([...later].sort(), ["b", "c"]);
  assert.equal(by, 240);
  assert.ok(!moved.has("a") && !moved.has("far"));
});

test("a wire that passes a column is not hidden behind the node there", () => {
  const wires = [wire("body", "motion"), wire("motion", "surface"), wire("motion", "cache"), wire("surface", "cache")];
  const heights: Record<string, number> = { body: 96, motion: 272, surface: 118, cache: 184 };
  const places = columns(["body", "motion", "surface", "cache"], wires, (name) => heights[name], Infinity, () => [53, 75]);
  const [[x, y], [u, v], [left, top]] = ["motion", "cache", "surface"].map((name) => places.get(name)!);
  for (let p = 0; p <= 1; p += 0.01) {
    const at = x + 190 + (u - x - 190) * (1.5 * p - 1.5 * p * p + p * p * p), height = y - 53 + (v - 75 - y + 53) * (3 * p * p - 2 * p * p * p);
    assert.ok(at < left || at > left + 190 || height > top || height < top - heights.surface, `at ${at} ${height}`);
  }
});
