/** Walls of a solve as outlines, and the knobs that a moved outline means; `MPM_SPEC` is the specification. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import type { LineSegments } from "three";
import { guidesOf, knobsAfter } from "../view/guides";
import { Kinds, type Spec } from "./spec";

const kinds = new Kinds(JSON.parse(readFileSync(process.env.MPM_SPEC!, "utf-8")) as Spec);
const graph = (knobs: object) => ({ nodes: { fall: { type: "solve", knobs: { wall_low: [-1, 0, -1], wall_high: [1, 3, 1], ...knobs } } } });

test("sides that are not open are outlined, moved and scaled", () => {
  assert.equal(guidesOf(graph({}), kinds, 1).length, 0);
  const document = graph({ wall_y_low: "slip", wall_z_high: "sticky" }), [walls] = guidesOf(document, kinds, 1) as LineSegments[];
  const places = walls.geometry.getAttribute("position"), rows = Array.from({ length: places.count }, (_, n) => [places.getX(n), places.getY(n), places.getZ(n)]);
  assert.equal(rows.length, 16);
  assert.ok(rows.slice(0, 8).every((row) => row[1] === -1.5) && rows.slice(8).every((row) => row[2] === 1));
  assert.deepEqual(walls.position.toArray(), [0, 1.5, 0]);
  walls.position.x = 0.5;
  assert.deepEqual([...knobsAfter(document, kinds, walls, "translate", 1)], [["wall_low", [-0.5, 0, -1]], ["wall_high", [1.5, 3, 1]]]);
  walls.scale.y = 2;
  assert.deepEqual([...knobsAfter(document, kinds, walls, "scale", 1)], [["wall_low", [-0.5, -1.5, -1]], ["wall_high", [1.5, 4.5, 1]]]);
});

test("walls that stand inside out, or farther than can be drawn, are left out", () => {
  assert.equal(guidesOf(graph({ wall_y_low: "slip", wall_high: [1, -1, 1] }), kinds, 1).length, 0);
  assert.equal(guidesOf(graph({ wall_y_low: "slip", wall_high: [1e300, 1, 1] }), kinds, 1).length, 0);
});
