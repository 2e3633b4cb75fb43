"""The exact shape of a drop that rests on a plate, by its weight and its tension.

| symbol | meaning | unit |
|---|---|---|
| r, z, p | radius, way down from the top, slope of the profile at an arc length s | m, m, - |
| b | radius of curvature at the top | m |
| k, rho, g | tension, density, gravity | N/m, kg/m^3, m/s^2 |

    dr/ds = cos p,  dz/ds = sin p,  dp/ds = 2 / b + rho g z / k - sin p / r          (Bashforth 1883)

the law of Young and Laplace for a drop round about its axis. It ends where p is the contact angle.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import InputError

__all__ = ["sessile_drop"]

STEPS = 400
"""Steps of the profile of a sphere; its volume is then exact to 1e-5."""
HALVINGS = 40
FLATTEST = 1e9
"""Radius of curvature at the top over that of the drop as a sphere, at most: it grows as exp of a puddle's capillary lengths."""
CLOSE = 1e-6
"""Share of the volume by which a drop may differ from what is asked for."""


def sessile_drop(volume: float, angle: float, weight: float, tension: float) -> np.ndarray:
    """Return radius and height over the plate of points on the profile of a drop, from its top to the plate [m], shape (n, 2).

    Args:
        volume: Of the drop [m^3].
        angle: Contact angle [degrees], more than 0 and up to 180.
        weight: Density times gravity [N/m^3]; 0: a part of a sphere.
        tension: Of the surface [N/m].

    Raises:
        InputError: The drop is a puddle too flat to be found.
    """
    radius = (0.75 * volume / math.pi) ** (1.0 / 3.0)
    pull, end = weight / tension, math.radians(angle)
    # without weight the top is as round as the part of a sphere, and weight makes it flatter
    cosine = math.cos(end)
    sphere = (3.0 * volume / (math.pi * (2.0 + cosine) * (1.0 - cosine) ** 2)) ** (1.0 / 3.0)
    low, high = 0.9 * sphere, 1.1 * sphere
    while high < FLATTEST * radius and _profile(high, pull, end, radius)[1] < volume:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        top = math.sqrt(low * high)
        low, high = (top, high) if _profile(top, pull, end, radius)[1] < volume else (low, top)
    places, found = _profile(top, pull, end, radius)
    if abs(found - volume) > CLOSE * volume:
        wide = radius * math.sqrt(pull)
        raise InputError(
            f"sessile_drop: volume {volume:g} m^3 is that of a sphere of {wide:.3g} capillary lengths, too flat a puddle at "
            f"{angle:g} degrees; give one of less than six, or take 2 sqrt(k / rho g) sin(angle / 2) as its height"
        )
    places[:, 1] = places[-1, 1] - places[:, 1]
    return places


def _profile(top: float, pull: float, end: float, radius: float) -> tuple[np.ndarray, float]:
    """Return (r, z) of a profile with radius b = `top` at its top, down to the slope `end`, and the volume in it."""
    step = min(top, radius) * end / STEPS
    state, places, volume = (0.0, 0.0, 0.0), [(0.0, 0.0)], 0.0
    while state[2] < end:
        one = _slopes(state, top, pull)
        two = _slopes(_along(state, one, 0.5 * step), top, pull)
        three = _slopes(_along(state, two, 0.5 * step), top, pull)
        four = _slopes(_along(state, three, step), top, pull)
        mean = tuple((a + 2.0 * b + 2.0 * c + d) / 6.0 for a, b, c, d in zip(one, two, three, four, strict=True))
        after = _along(state, mean, step)
        if after[2] > end:
            after = _along(state, mean, step * (end - state[2]) / (after[2] - state[2]))
            after = (after[0], after[1], end)
        volume += 0.5 * math.pi * (state[0] ** 2 + after[0] ** 2) * (after[1] - state[1])
        places.append(after[:2])
        state = after
    return np.array(places), volume


def _slopes(state: tuple[float, ...], top: float, pull: float) -> tuple[float, float, float]:
    r, z, p = state
    return math.cos(p), math.sin(p), 2.0 / top + pull * z - (math.sin(p) / r if r > 0.0 else 1.0 / top)


def _along(state: tuple[float, ...], slopes: tuple[float, ...], step: float) -> tuple[float, ...]:
    return tuple(x + step * d for x, d in zip(state, slopes, strict=True))
