/** What is still as it was cooked, and shares of time. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as g from "./graph";
import type { JsonObject } from "./json";
import { Kinds, type Spec } from "./spec";
import { changedNodes, changedSettings, changesOf, heat, stageTimes } from "./status";

const spec = JSON.parse(readFileSync(process.env.MPM_SPEC!, "utf-8")) as Spec, kinds = new Kinds(spec);
const kind = kinds.nodes.get("emit_sphere")!, defaults = Object.fromEntries(kind.knobs.map((knob) => [knob.name, knob.default]));
const graph = { settings: { cell_size: 0.1, end: 9 }, nodes: { a: { type: "emit_sphere", knobs: { radius: 0.2 } }, p: { type: "collide_plane" }, s: { type: "solve", inputs: { sources: "a", colliders: ["p"] } } } } as JsonObject;
const cooked = { settings: { cell_size: 0.1, end: 3, fps: 24, start: 1 }, nodes: { a: { type: "emit_sphere", version: 1, bypass: false, knobs: { ...defaults, radius: 0.2 }, inputs: {} }, p: { type: "collide_plane", knobs: {} }, s: { type: "solve", knobs: { substeps: { preset: "explicit_apic" } }, inputs: { sources: ["a"], colliders: ["p"] } } } } as JsonObject;

test("defaults that are written out, one wire or a list of one, and more frames change nothing", () => {
  assert.deepEqual([...changedNodes(graph, cooked, kinds)], []);
  assert.deepEqual(changedSettings({ ...graph, settings: { cell_size: 0.1, fps: 25 } }, cooked, kinds), ["fps"]);
  assert.equal(changedNodes({ ...graph, settings: { cell_size: 0.2 } }, cooked, kinds).size, 3);
});

test("a change is one of all that takes from it", () => {
  assert.deepEqual(changesOf(g.setKnob(graph, "a", "radius", 0.3), cooked, "a", kinds), ["radius"]);
  assert.deepEqual([...changedNodes(g.setKnob(graph, "a", "radius", 0.3), cooked, kinds)], ["a", "s"]);
  assert.deepEqual([...changedNodes(g.setField(graph, "p", "bypass", true), cooked, kinds)], ["p", "s"]);
  assert.deepEqual([...changedNodes(g.setField(graph, "p", "comment", "x"), cooked, kinds)], []);
  assert.deepEqual(changesOf(g.removed(graph, new Set(["p"])), cooked, "s", kinds), ["inputs.colliders"]);
});

test("stages that are fused share one figure, and shares add up", () => {
  const found = stageTimes(new Map([["sort", 1], ["gather+move", 3]]));
  assert.deepEqual(found.get("move"), { seconds: 3, share: 0.75, beside: ["gather"] });
  assert.equal(stageTimes(new Map([["sort", 0]])).get("sort")!.share, 0);
});

test("text on the colours of heat holds 4.5 to 1", () => {
  const light = (text: string) => { const part = (n: number) => (n / 255 <= 0.04045 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4), [r, g, b] = text.startsWith("#") ? [1, 3, 5].map((n) => parseInt(text.slice(n, n + 2), 16)) : text.match(/\d+/g)!.map(Number); return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  for (let share = 0; share <= 1; share += 0.01) {
    const { ground, text } = heat(share), [high, low] = [light(ground), light(text)].sort((a, b) => b - a);
    assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${share}: ${(high + 0.05) / (low + 0.05)}`);
  }
});
