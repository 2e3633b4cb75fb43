import assert from "node:assert/strict";
import { test } from "node:test";
import { outer as hull, type Side, sidesOf } from "./outer";

/** What is seen from all around. */
const outer = (rows: Parameters<typeof hull>[0], radius: number, sides: Side[] = [0, 0, 0]) => hull(rows, radius)?.(sides) ?? null;

/** A cube of points with a spacing of one, so that spheres of radius 1/2 touch. */
function cube(side: number, keep: (n: number) => boolean = () => true) {
  const rows: number[] = [], to16 = (each: number) => Math.round(((each + 0.5) / side) * 65535);
  for (let n = 0; n < side ** 3; n++) if (keep(n)) rows.push(to16(n % side), to16(Math.floor(n / side) % side), to16(Math.floor(n / side ** 2)), 0);
  return { points: Uint16Array.from(rows), shown: rows.length / 4, box: [[0, 0, 0], [side, side, side]] as [number[], number[]] };
}

test("the inside of a cube is left out, its outermost layers are not", () => {
  const side = 36, seen = outer(cube(side), 0.5)!, kept = new Set(seen);
  const deep = (n: number) => Math.min(...[n % side, Math.floor(n / side) % side, Math.floor(n / side ** 2)].map((each) => Math.min(each, side - 1 - each)));
  assert.ok(seen.length < 0.6 * side ** 3);
  for (let n = 0; n < side ** 3; n++) if (deep(n) < 3) assert.ok(kept.has(n)); else if (deep(n) >= 6) assert.ok(!kept.has(n));
});

test("all faces of a block that fills its box are kept, and each column of it begins with what is seen", () => {
  const side = 40, rows: number[] = [], to16 = (each: number) => Math.round((each / (side - 1)) * 65535), at = (n: number) => [n % side, Math.floor(n / side) % side, Math.floor(n / side ** 2)];
  for (let n = 0; n < side ** 3; n++) rows.push(...at(n).map(to16), 0);
  const kept = new Set(outer({ points: Uint16Array.from(rows), shown: side ** 3, box: [[0, 0, 0], [side - 1, side - 1, side - 1]] }, 0.62)!);
  for (let n = 0; n < side ** 3; n++) if (at(n).some((each) => Math.min(each, side - 1 - each) < 2)) assert.ok(kept.has(n), String(at(n)));
});

test("matter with holes, thin matter and spray are left as they are", () => {
  assert.equal(outer(cube(36, (n) => (n * 2654435761) % 4294967296 < 0.3 * 4294967296), 0.5), null);
  assert.equal(outer(cube(12), 0.5), null);
  assert.equal(outer(cube(36), 0.1), null);
  assert.equal(outer(cube(36), 0), null);
});

test("a cavity keeps its walls", () => {
  const side = 60, at = (n: number) => [n % side, Math.floor(n / side) % side, Math.floor(n / side ** 2)], hollow = (n: number) => Math.hypot(...at(n).map((each) => each - side / 2)) < 12;
  const numbers = Array.from({ length: side ** 3 }, (_, n) => n).filter((n) => !hollow(n)), seen = new Set(outer(cube(side, (n) => !hollow(n)), 0.5));
  numbers.forEach((n, index) => { if (Math.hypot(...at(n).map((each) => each - side / 2)) < 14) assert.ok(seen.has(index)); });
});

test("of a cube that is seen from one side, the other faces are left out as well", () => {
  const side = 60, box = [[0, 0, 0], [1, 1, 1]] as [number[], number[]], sides = sidesOf(box, [2, 0.5, -3]), kept = new Set(outer(cube(side), 0.5, sides)!);
  assert.deepEqual(sides, [1, 0, -1]);
  const at = (n: number) => [n % side, Math.floor(n / side) % side, Math.floor(n / side ** 2)];
  for (let n = 0; n < side ** 3; n++) {
    const [x, y, z] = at(n);
    if (x >= side - 3 || y < 3 || y >= side - 3 || z < 3) assert.ok(kept.has(n), String([x, y, z]));
    else if (x < side - 9 && y >= 9 && y < side - 9 && z >= 9) assert.ok(!kept.has(n), String([x, y, z]));
  }
});
