/** Colours of values: the stops of mpm_nodes/preview/colour_by.py, as sRGB; their lightness grows evenly. */
import { Vector3 } from "three";

const LINEAR = [[0.02, 0.02, 0.12], [0.3, 0.04, 0.4], [0.75, 0.15, 0.25], [0.98, 0.5, 0.05], [1.0, 0.95, 0.6]];

const encode = (light: number) => (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055);

export const RAMP = LINEAR.map((stop) => stop.map(encode) as [number, number, number]);
export const GRADIENT = `linear-gradient(to right, ${RAMP.map((stop) => `rgb(${stop.map((part) => Math.round(255 * part)).join(" ")})`).join(", ")})`;

export const RAMP_SRGB = RAMP.map((stop) => new Vector3(...stop));
export const RAMP_LINEAR = LINEAR.map((stop) => new Vector3(...(stop as [number, number, number])));
/** `ramped(share)` of the uniform `ramp`. */
export const RAMP_GLSL = /* glsl */ `
  uniform vec3 ramp[5];
  vec3 ramped(float t) {
    float x = clamp(t, 0.0, 1.0) * 4.0;
    int n = int(min(floor(x), 3.0));
    return n == 0 ? mix(ramp[0], ramp[1], x) : n == 1 ? mix(ramp[1], ramp[2], x - 1.0) : n == 2 ? mix(ramp[2], ramp[3], x - 2.0) : mix(ramp[3], ramp[4], x - 3.0);
  }`;
