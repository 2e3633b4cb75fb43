/** Which points of a dense cloud can be seen from where the eye is: the others cost a processor that draws as much, and nobody sees them. */

/** Radii that a cell is wide, and so many points of it that it counts as full: half of those of matter that is not stretched, 6³ / (4π/3).
 * So full it hides nine tenths of what lies behind it, as full as usual 99 %. */
const WIDTH = 6, FULL = 26;
/** Cells from which on matter is too thin to hide much of itself. */
const MOST_CELLS = 16e6;

interface Rows { points: Uint16Array; shown: number; box: [number[], number[]] }
/** Along an axis: the eye is beyond the upper end of the box (1), before the lower one (-1), or between them (0). */
export type Side = -1 | 0 | 1;

/** Return on which sides of a box the eye is. */
export const sidesOf = ([low, high]: Rows["box"], eye: number[]): Side[] => eye.map((at, axis) => (at > high[axis] ? 1 : at < low[axis] ? -1 : 0));

/** Return what finds the numbers of the points that are not behind full cells, by the sides on which the eye is; null in place of nearly all.
 * Null where nothing of the cloud hides much.
 *
 * `points` are rows of four, of which three are places in the box; `radius` is what they are drawn with [m].
 */
export function outer({ points, shown, box: [low, high] }: Rows, radius: number): ((sides: Side[]) => Uint32Array<ArrayBuffer> | null) | null {
  // an empty cell on each side: what lies at the end of a row is not beside what lies at the beginning of the next one
  const edge = WIDTH * radius, count = low.map((each, axis) => Math.floor((high[axis] - each) / edge) + 3), cells = count[0] * count[1] * count[2];
  if (!(radius > 0) || Math.min(...count) < 5 || cells > Math.min(MOST_CELLS, shown)) return null;
  const held = new Uint16Array(cells), [sx, sy, sz] = low.map((each, axis) => (high[axis] - each) / 65535 / edge), [nx, ny] = count, layer = nx * ny, first = 1 + nx + layer;
  const cellOf = new Uint32Array(shown);
  for (let n = 0, row = 0; n < shown; n++, row += 4) held[(cellOf[n] = first + ((points[row] * sx) | 0) + nx * ((points[row + 1] * sy) | 0) + layer * ((points[row + 2] * sz) | 0))]++;
  const full = Uint8Array.from(held, (each) => Number(each >= FULL));
  return (sides) => {
    // full, with full ones towards the eye along x, of which there are such ones along y, and z: a way to the eye leads through one of them
    let hidden = full;
    [1, nx, layer].forEach((stride, axis) => {
      const wide = new Uint8Array(cells), below = sides[axis] > 0 ? 0 : stride, above = sides[axis] < 0 ? 0 : stride;
      for (let cell = stride; cell < cells - stride; cell++) wide[cell] = hidden[cell - below] & hidden[cell] & hidden[cell + above];
      hidden = wide;
    });
    const seen = new Uint32Array(shown);
    let found = 0;
    for (let n = 0; n < shown; n++) if (!hidden[cellOf[n]]) seen[found++] = n;
    return found < 0.8 * shown ? seen.slice(0, found) : null;
  };
}
