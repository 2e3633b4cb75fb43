/** Keys: sampled, set, taken away and moved as the graph format has them. */
import assert from "node:assert/strict";
import test from "node:test";
import { heights, isKeyed, sampled, step, ticks, valueAt, valueSetAt, withChangedKey, withHeight, withKey, withoutKey } from "./keys";
import type { Knob } from "./spec";

const number = { kind: "float", range: { min: 0, max: 1, exclusive_min: false } } as Knob, choice = { kind: "enum", menu: [{ value: "a", label: "A" }, { value: "b", label: "B" }] } as Knob, free = { kind: "vector", range: null } as Knob;
const keyed = { keys: [[1, 0, "linear"], [5, 1, "smooth"], [9, 0, "step"], [10, 0.5, "linear"]] };

test("a curve holds at its ends, and goes between its keys as they say", () => {
  assert.deepEqual([0, 1, 2, 5, 6, 7, 9, 9.9, 10, 99].map((frame) => sampled(keyed, frame)), [0, 0, 0.25, 1, 0.84375, 0.5, 0, 0, 0.5, 0.5]);
  assert.deepEqual(sampled({ keys: [[0, [0, 2], "linear"], [2, [1, 4], "linear"]] }, 1), [0.5, 3]);
});

test("a key is set between others, goes on as they do, and takes the place of the one that is there", () => {
  assert.deepEqual(withKey(3, 7, 3, number), { keys: [[7, 3, "linear"]] });
  assert.deepEqual(withKey("a", 7, "a", choice), { keys: [[7, "a", "step"]] });
  assert.deepEqual(withKey(keyed, 7, 0.2, number).keys[2], [7, 0.2, "smooth"]);
  assert.deepEqual(withKey(keyed, 9, 0.2, number).keys[2], [9, 0.2, "step"]);
});

test("one key is taken away at a time, and the last one leaves its value", () => {
  assert.equal((withoutKey(keyed, 1) as typeof keyed).keys.length, 3);
  assert.equal(withoutKey({ keys: [[3, 0.7, "linear"]] }, 0), 0.7);
});

test("a key is moved past others, but not onto one", () => {
  assert.deepEqual(withChangedKey(keyed, 0, 7, 0).value.keys.map((key) => key[0]), [5, 7, 9, 10]);
  assert.equal(withChangedKey(keyed, 0, 7, 0).n, 1);
  assert.equal(withChangedKey(keyed, 0, 5, 0).value, keyed);
});

test("heights are held to limits and to the menu", () => {
  assert.equal(withHeight(0.5, 0, 3, number), 1);
  assert.deepEqual(withHeight([1, 2, 3], 1, 7, free), [1, 7, 3]);
  assert.equal(withHeight("a", 0, 9, choice), "b");
  assert.deepEqual(heights("b", choice), [1]);
});

test("ticks are round", () => {
  assert.equal(step(1, 5), 0.2);
  assert.deepEqual(ticks(-0.05, 0.65, 3), [0, 0.5]);
  assert.deepEqual(ticks(0.3, 0.9, 6), [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
});

const pairs = { keys: [[1, [0, 2], "linear"], [5, [4, 2], "smooth"], [9, [8, 0], "step"], [10, [0, 0]]], note: "kept" };

test("a value at a frame is between the keys around it, and that of the ends beyond them", () => {
  assert.deepEqual([-3, 1, 2, 5, 7, 9, 9.5, 10, 99].map((frame) => valueAt(pairs, frame)), [[0, 2], [0, 2], [1, 2], [4, 2], [6, 1], [8, 0], [8, 0], [0, 0], [0, 0]]);
  assert.equal((valueAt({ keys: [[0, 0, "smooth"], [4, 1, "linear"]] }, 1) as number).toFixed(5), "0.15625"); // 3 s^2 - 2 s^3
  assert.equal(valueAt(0.5, 3), 0.5);
  assert.equal(valueAt({ keys: [[1, "soft"], [3, "hard"]] }, 2), "soft");
});

test("a key at the frame is changed, one between others is added as the one before it goes on, and a plain value stays plain", () => {
  assert.deepEqual(valueSetAt(pairs, 5, [7, 7], free), { ...pairs, keys: [[1, [0, 2], "linear"], [5, [7, 7], "smooth"], [9, [8, 0], "step"], [10, [0, 0]]] });
  assert.deepEqual((valueSetAt(pairs, 7, [1, 1], free) as typeof pairs).keys[2], [7, [1, 1], "smooth"]);
  assert.deepEqual((valueSetAt(pairs, 0, [1, 1], free) as typeof pairs).keys[0], [0, [1, 1], "linear"]);
  assert.equal(valueSetAt(0.5, 3, 0.7, number), 0.7);
  assert.equal(valueSetAt(undefined, 3, 0.7, number), 0.7);
});

test("what only looks like keys has none", () => {
  for (const keys of [[], [[1]], [["x", 2]], [3], [[1, 2], []]]) assert.equal(isKeyed({ keys }), false);
  assert.ok(isKeyed({ keys: [[1, 2]] }));
});
