import assert from "node:assert/strict";
import { test } from "node:test";
import type { Panel } from "../api";
import { axisOf, joined, placeOn, short, Spent, stageWords, valueAt } from "./curves";
import { meaning } from "./meaning";

const panel = (frames: number[], values: number[], notes = {}): Panel => ({ name: "Mass", unit: "kg", log: false, notes, lines: [{ name: "", frames, values }] });

test("frames that come later are appended, those that come again replaced", () => {
  const before = [panel([1, 2, 3], [1, 2, 3], { 1: "a" })], after = joined(before, [panel([3, 4], [30, 40], { 4: "b" })]);
  assert.deepEqual(after[0]!.lines[0], { name: "", frames: [1, 2, 3, 4], values: [1, 2, 30, 40] });
  assert.deepEqual(after[0]!.notes, { 1: "a", 4: "b" });
  assert.deepEqual(before[0]!.lines[0]!.frames, [1, 2, 3]);
  assert.equal(joined([], [panel([1], [1])]).length, 1);
});

test("an axis holds its values, and what is constant looks constant", () => {
  for (const [values, log] of [[[1, 5, 3], false], [[-2e-5, 3e-5], false], [[1e-4, 2e-2], true], [[3e-4, 4e-4], true]] as [number[], boolean][]) {
    const axis = axisOf(values, log);
    for (const value of [...values, ...axis.ticks]) assert.ok(placeOn(axis, value) >= 0 && placeOn(axis, value) <= 1, `${value}`);
    assert.ok(axis.ticks.length >= 2 && axis.ticks.length <= 6, String(axis.ticks));
  }
  const flat = axisOf([45.25, 45.25 + 1e-9], false);
  assert.ok(Math.abs(placeOn(flat, 45.25) - 0.5) < 0.01);
  assert.deepEqual(axisOf([], false).ticks, [0, 1]);
  assert.equal(axisOf([0, 1], true).log, false);
});

test("a value is found at its frame alone", () => {
  const line = { name: "", frames: [1, 2, 5, 9], values: [10, 20, 50, 90] };
  assert.deepEqual([1, 2, 3, 5, 9, 10].map((frame) => valueAt(line, frame)), [10, 20, undefined, 50, 90, undefined]);
});

test("stages that took most have lines of their own", () => {
  const spent = new Spent();
  assert.deepEqual(spent.panels(), []);
  spent.frame(2, 3.5);
  spent.solve(2, { a: 1, b: 2, c: 0.1, d: 0.2, e: 0.3, f: 0.05, g: 0.01 });
  spent.solve(2, { a: 4 });
  const [whole, stages] = spent.panels();
  assert.deepEqual(whole!.lines[0]!.values, [3.5]);
  assert.deepEqual(stages!.lines.map((line) => line.name), ["a", "b", "e", "d", "c", "all others"]);
  assert.ok(Math.abs(stages!.lines.at(-1)!.values[0]! - 0.06) < 1e-12 && stages!.lines[0]!.values[0] === 5);
  assert.equal(stageWords("rasterize+compute_stress+update_grid"), "rasterize to update grid");
});

test("numbers are short", () => {
  assert.deepEqual([0, 14328, 0.00012345, 1.23456, 12345678.9].map(short), ["0", "14,328", "1.23e-4", "1.235", "1.23e7"]);
});

test("where a node stands changes no cook, what it is does", () => {
  const graph = (position: number[], radius: number, more = {}) => ({ settings: { end: 3 }, nodes: { ball: { type: "emit_sphere", position, comment: "x", knobs: { radius } } }, ...more });
  assert.equal(meaning(graph([0, 0], 1)), meaning(graph([5, 5], 1, { editor: { view: 1 } })));
  assert.notEqual(meaning(graph([0, 0], 1)), meaning(graph([0, 0], 2)));
  const moved = { nodes: { ball: { knobs: { position: 1 } } } }, other = { nodes: { ball: { knobs: { position: 2 } } } };
  assert.notEqual(meaning(moved), meaning(other));
});
