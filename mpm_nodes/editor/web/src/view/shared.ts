/** What all shapes of the view share: numbers that change without anything being built again. */
import { Plane, Vector2, Vector3, Vector4 } from "three";

export class Shared {
  /** Values that the first and the last colour stand for. */
  readonly shown = { value: new Vector2(0, 1) };
  readonly ramped = { value: 0 };
  /** Pixels that a metre takes at a distance of a metre, and the factor on the radius of points. */
  readonly pixels = { value: 500 };
  readonly size = { value: 1 };
  /** Share of the points that is drawn while the view moves: the radius makes up for the rest. */
  readonly grown = { value: 1 };
  /** What lies beyond it is cut away: normal and distance, (0, 0, 0, 1) cuts nothing. */
  readonly cut = { value: new Vector4(0, 0, 0, 1) };
  readonly plane = new Plane(new Vector3(0, -1, 0), 1e9);
  readonly steps = { value: 64 };

  /** Cut away what lies beyond `at` [m] along an axis, or before it; null cuts nothing. */
  slice(axis: number | null, at: number, flipped: boolean): void {
    const normal = new Vector3();
    if (axis !== null) normal.setComponent(axis, flipped ? -1 : 1);
    this.cut.value.set(normal.x, normal.y, normal.z, axis === null ? 1 : flipped ? -at : at);
    this.plane.normal.copy(normal).negate();
    this.plane.constant = this.cut.value.w;
  }
}
