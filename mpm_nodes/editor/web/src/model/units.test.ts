import assert from "node:assert/strict";
import { test } from "node:test";
import { unitText } from "./units";

test("powers of a unit are raised", () => {
  assert.deepEqual(["kg/m^3", "m/s^2", "s^-1", "N m", ""].map(unitText), ["kg/m³", "m/s²", "s⁻¹", "N m", ""]);
});
