import assert from "node:assert/strict";
import { test } from "node:test";
import { Held } from "./held";

const thing = (bytes: number) => ({ bytes });

test("what is put twice counts once, and nothing is given up for it", () => {
  const held = new Held(100);
  for (let n = 0; n < 50; n++) held.put("a", thing(40));
  held.put("b", thing(40));
  assert.equal(held.bytes, 80);
  assert.ok(held.has("a") && held.has("b"));
});

test("what was looked at longest ago is given up first, and the newest stays however large it is", () => {
  const held = new Held(100);
  held.put("a", thing(40));
  held.put("b", thing(40));
  held.get("a");
  held.put("c", thing(40));
  assert.deepEqual([held.has("a"), held.has("b"), held.has("c")], [true, false, true]);
  held.put("d", thing(500));
  assert.deepEqual([held.has("a"), held.has("d"), held.bytes], [false, true, 500]);
});

test("two who ask at once share one reading, and a fault is not kept", async () => {
  const held = new Held(100);
  let reads = 0;
  const read = async () => { reads++; await null; return thing(10); };
  const [one, two] = await Promise.all([held.load("a", read), held.load("a", read)]);
  assert.equal(one, two);
  assert.equal(reads, 1);
  await assert.rejects(held.load("b", () => Promise.reject(new Error("gone"))));
  assert.equal((await held.load("b", read)).bytes, 10);
});

test("what was being read when all was forgotten is not kept", async () => {
  const held = new Held(100);
  const reading = held.load("a", async () => { await null; return thing(10); });
  held.clear();
  await reading;
  assert.ok(!held.has("a"));
  assert.equal(held.bytes, 0);
});
