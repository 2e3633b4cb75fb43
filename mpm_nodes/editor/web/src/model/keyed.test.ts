/** Knobs with keys: the values of mpm_nodes/graph/time/keys.py, and keys that are written at a frame. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { keyedAt, withKey } from "./keyed";

const keyed = { keys: [[1, [0, 2], "linear"], [5, [4, 2], "smooth"], [9, [8, 0], "step"], [10, [0, 0]]], note: "kept" };

test("a value at a frame is between the keys around it, and that of the ends beyond them", () => {
  assert.deepEqual([-3, 1, 2, 5, 7, 9, 9.5, 10, 99].map((frame) => keyedAt(keyed, frame)), [[0, 2], [0, 2], [1, 2], [4, 2], [6, 1], [8, 0], [8, 0], [0, 0], [0, 0]]);
  assert.equal((keyedAt({ keys: [[0, 0, "smooth"], [4, 1, "linear"]] }, 1) as number).toFixed(5), "0.15625"); // 3 s^2 - 2 s^3
  assert.equal(keyedAt(0.5, 3), 0.5);
  assert.equal(keyedAt({ keys: [[1, "soft"], [3, "hard"]] }, 2), "soft");
});

test("a key at the frame is changed, one between others is added as the one before it goes on, and a plain value stays plain", () => {
  assert.deepEqual(withKey(keyed, 5, [7, 7]), { ...keyed, keys: [[1, [0, 2], "linear"], [5, [7, 7], "smooth"], [9, [8, 0], "step"], [10, [0, 0]]] });
  assert.deepEqual((withKey(keyed, 7, [1, 1]) as typeof keyed).keys[2], [7, [1, 1], "smooth"]);
  assert.deepEqual((withKey(keyed, 0, [1, 1]) as typeof keyed).keys[0], [0, [1, 1], "linear"]);
  assert.equal(withKey(0.5, 3, 0.7), 0.7);
  assert.equal(withKey(undefined, 3, 0.7), 0.7);
});
