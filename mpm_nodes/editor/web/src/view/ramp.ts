/** Colours of values: the stops of mpm_nodes/preview/colour_by.py, as sRGB. */
const LINEAR = [[0.02, 0.02, 0.12], [0.3, 0.04, 0.4], [0.75, 0.15, 0.25], [0.98, 0.5, 0.05], [1.0, 0.95, 0.6]];

const encode = (light: number) => (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055);

export const RAMP = LINEAR.map((stop) => stop.map(encode) as [number, number, number]);

/** Return the linear colour of a share from 0 to 1. */
export function colourAt(share: number): number[] {
  const x = Math.min(Math.max(share, 0), 1) * (LINEAR.length - 1), n = Math.min(Math.floor(x), LINEAR.length - 2);
  return LINEAR[n].map((part, axis) => part + (x - n) * (LINEAR[n + 1][axis] - part));
}

export const GRADIENT = `linear-gradient(to right, ${RAMP.map((stop) => `rgb(${stop.map((part) => Math.round(255 * part)).join(" ")})`).join(", ")})`;
