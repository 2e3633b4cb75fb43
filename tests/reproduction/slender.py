"""A thread of R15's fluid in one dimension: what the beads on a string are held against.

| symbol | meaning | unit |
|---|---|---|
| a, z, v | radius, place and speed along the thread | m, m, m/s |
| P, Q | Oldroyd strain along the thread and across it, 1 at rest | - |
| b | (P / Q)^(2/3): R15's strain along the thread, whose determinant is 1 | - |
| T | force that the thread carries | N |
| k, mu, t_r | surface tension, shear modulus, relaxation time | N/m, Pa, s |

    m v' = dT/dz,   T = dE/dl + pi a^2 mu (b - b^(-1/2)),   E = k sum pi (a_i + a_(i+1)) s_i
    P' = 2 e P - (P - 1) / t_r,   Q' = - e Q - (Q - 1) / t_r,   e = dv/dz

Slices of a volume each that follow the matter (Yarin's form of the equations of slender jets, Eggers 1997): E is the area of their
frusta, with lengths l and slant heights s. Density, first radius and tension are 1.

Thinning law. A string much thinner than its beads carries T = pi a k (1 + C) with a constant C = mu b a / k (1 in Entov 1997, 2 in
Clasen 2006), so b grows as 1 / a. Far stretched, Q rests at 1 / (1 + e t_r), and b goes as P^(2/3), at (2/3) (2 e - 1 / t_r). With
a' = - e a / 2 both give e = 4 / (5 t_r): the radius falls as exp(-2 t / (5 t_r)). Oldroyd's own fluid, whose b is P, has
exp(-t / (3 t_r)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

__all__ = ["ThreadCourse", "linear_growth", "slender_thread"]


class ThreadCourse(NamedTuple):
    """A thread over time, from bead to bead of a wave."""

    time: np.ndarray
    """Shape (n,), in sqrt(rho R^3 / k)."""
    wave: np.ndarray
    """Amplitude: the first moment of the mass along half a wave."""
    string: np.ndarray
    """Radius in the middle of the string [R]."""
    bead: np.ndarray
    """Largest radius [R]."""
    stress: np.ndarray
    """C: the elastic stress along the string times its radius, over the tension."""


def slender_thread(mu: float, t_r: float, half: float, wave: float, until: tuple[float, float], slices: int = 80) -> ThreadCourse:
    """Return how a thread at rest, with a wave of its section, draws itself to beads.

    Args:
        mu: Shear modulus [k / R].
        t_r: Relaxation time [sqrt(rho R^3 / k)].
        half: Half the length of the wave [R].
        wave: Amplitude: the section is 1 + 2 wave cos(pi z / half).
        until: Last time, and radius of the string at which it ends before.
        slices: Of half a wave, the finest in the middle of the string.
    """
    k = math.pi / half
    part = np.linspace(1.75, 0.25, slices)
    z = half * np.concatenate([[0.0], np.cumsum(part) / part.sum()])
    volume = math.pi * np.diff(z + 2.0 * wave / k * np.sin(k * z))
    mass = 0.5 * (np.append(volume, 0.0) + np.append(0.0, volume))
    pairs = volume[1:] + volume[:-1]
    v, P, Q, rows, time, due = np.zeros(slices + 1), np.ones(slices), np.ones(slices), [], 0.0, 0.0
    while True:
        length = np.diff(z)
        a = np.sqrt(volume / (math.pi * length))
        b = (P / Q) ** (2.0 / 3.0)
        if time >= due:
            middle = 0.5 * (z[1:] + z[:-1])
            rows.append((time, volume @ np.cos(k * middle) / volume.sum(), a[-1], a.max(), mu * (b[-1] - b[-1] ** -0.5) * a[-1]))
            due += 0.05
            if time >= until[0] or a[-1] <= until[1]:
                return ThreadCourse(*np.array(rows).T)
        joint = np.concatenate([a[:1], np.sqrt(pairs / (math.pi * (length[1:] + length[:-1]))), a[-1:]])
        slope, wide = np.diff(joint), joint[1:] + joint[:-1]
        slant = np.hypot(length, slope)
        # the energy's slope by each joint's radius, and that radius' by the lengths beside it
        by_radius = math.pi * (np.append(slant - wide * slope / slant, 0.0) + np.append(0.0, slant + wide * slope / slant))
        beside = np.concatenate([2.0 * length[:1], 2.0 * (length[1:] + length[:-1]), 2.0 * length[-1:]])
        narrower = by_radius * joint / beside
        force = math.pi * wide * length / slant - narrower[1:] - narrower[:-1] + math.pi * a**2 * mu * (b - b**-0.5)
        waves = np.sqrt(2.0 * mu * (b + 1.0) + 1.0 / a + 1.0 / length)
        dt = float(np.minimum(0.3 * length / waves, 0.3 * length**2 / np.sqrt(a)).min())
        v[1:-1] += dt * np.diff(force) / mass[1:-1]
        stretch, kept = np.diff(v) / length * dt, math.exp(-dt / t_r)
        P = kept * P * (1.0 + stretch) ** 2 + 1.0 - kept
        Q = kept * Q / (1.0 + stretch) + 1.0 - kept
        z = z + dt * v
        time += dt


def linear_growth(mu: float, t_r: float, wave_number: float) -> float:
    """Return the rate at which a small wave grows on a slender thread [sqrt(k / (rho R^3))].

    The largest root w of w^2 + 3 mu q^2 w t_r / (1 + w t_r) = q^2 (1 - q^2) / 2 (Middleman 1965).

    Args:
        mu: Shear modulus [k / R].
        t_r: Relaxation time [sqrt(rho R^3 / k)].
        wave_number: q [1 / R].
    """
    pull = 0.5 * wave_number**2 * (1.0 - wave_number**2)
    return float(np.roots([t_r, 1.0, (3.0 * mu * wave_number**2 - pull) * t_r, -pull]).real.max())
