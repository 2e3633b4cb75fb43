import assert from "node:assert/strict";
import test from "node:test";
import { frameOf, newest } from "./preview";

test("of a preview each frame that is there is reached, forward and back, one after the other", () => {
  const shown = (wanted: number, now: number) => frameOf(wanted, { first: 1, now, step: 3 });
  assert.deepEqual([2, 5, 8].map((wanted) => shown(wanted, wanted - 1)), [4, 7, 10]);
  assert.deepEqual([9, 6, 3].map((wanted) => shown(wanted, wanted + 1)), [7, 4, 1]);
  assert.equal(shown(6, 1), 4);
  assert.equal(frameOf(6, { first: 1, now: 5, step: 1 }), 6);
});

test("a preview is shown first where there is no other cook, and offered after those that there are", () => {
  assert.deepEqual([[], ["preview of demo"], ["r001", "r002", "preview of demo"]].map(newest), ["", "preview of demo", "r002"]);
});
