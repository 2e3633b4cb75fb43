import assert from "node:assert/strict";
import test from "node:test";
import { DoubleSide, FrontSide, type Material } from "three";
import type { Mesh } from "../view/frame";
import { Shared } from "../view/shared";
import { surfaceOf } from "../view/surfaces";

const mesh = (opacity: number, matter: boolean): Mesh => ({
  layer: "surface", box: [[0, 0, 0], [1, 1, 1]], colours: false, has_values: false, values: [0, 1], rgba: null, points: 3, triangles: 1, matter,
  looks: [{ colour: [200, 0, 0], opacity, roughness: 0.1, metallic: 0, count: 3 }], rows: new Uint16Array(12), indices: new Uint32Array([0, 1, 2]),
});
const side = (opacity: number, matter: boolean, cutting: boolean) => (surfaceOf(mesh(opacity, matter), new Shared(), cutting).material as Material[])[0]!.side;

test("clear matter is drawn by its front, that a floor does not show in patches through it; a cut shows its inside", () => {
  assert.deepEqual([side(0.7, true, false), side(0.7, true, true), side(1, true, false), side(0.7, false, false)], [FrontSide, DoubleSide, DoubleSide, DoubleSide]);
});
