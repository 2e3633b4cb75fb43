"""The latent heat of particles: a buffer that fills at the freezing temperature, with hysteresis.

| symbol | meaning | unit | source |
|---|---|---|---|
| T, T_f | temperature, freezing temperature of the particle | K | |
| s | share of the latent heat L that is taken up, u_L / L | - | S14 section 5.9 |
| e | specific enthalpy over the solid at T_f | J/kg | textbook |
| c_s, c_l | specific heat of solid and liquid | J/(kg K) | |

    e = s L + c (T - T_f),   c of the phase that it has
    e <= 0   T = T_f + e / c_s,         s = 0, solid
    e >= L   T = T_f + (e - L) / c_l,   s = 1, liquid
    between  T = T_f,                   s = e / L, phase unchanged

What stood in the buffer stood at T_f exactly, so that e needs only the new T. A solid with 0 < s < 1 stays solid, a liquid liquid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["CHUNK", "FREEZING", "LATENT", "LIQUID_HEAT", "SOLID_HEAT", "PhaseColumns", "update_phases"]

SOLID_HEAT, LIQUID_HEAT, LATENT, FREEZING = range(4)
"""Columns of the materials' numbers: c_s, c_l [J/(kg K)], L [J/kg], T_f [K], infinite for what never melts."""
CHUNK = 1024
"""Particles that one call looks at."""


class PhaseColumns(NamedTuple):
    """Particles that melt and freeze.

    Attributes:
        temperature: [K], changed.
        fraction: Share of the latent heat that is taken up, changed.
        phase: 0 solid, 1 liquid, changed.
        material: Material of each particle.
        mass: [kg].
        shift: T_f of each particle less that of its material [K], or empty.
    """

    temperature: np.ndarray
    fraction: np.ndarray
    phase: np.ndarray
    material: np.ndarray
    mass: np.ndarray
    shift: np.ndarray


@part
def _update_at(k, matter, numbers, changed, sums):
    temperature, fraction, phase, material, mass, shift = matter
    melted = frozen = stored = 0.0
    for p in range(CHUNK * k, min(CHUNK * k + CHUNK, changed.shape[0])):
        row = material[p]
        freezing = numbers[row, FREEZING]
        changed[p] = 0
        if freezing == np.inf:
            continue
        if shift.size:
            freezing += np.float64(shift[p])
        latent = numbers[row, LATENT]
        solid, liquid = numbers[row, SOLID_HEAT], numbers[row, LIQUID_HEAT]
        was = phase[p]
        e = np.float64(fraction[p]) * latent + (liquid if was else solid) * (np.float64(temperature[p]) - freezing)
        # with L = 0 a particle at T_f keeps its phase
        if e <= 0.0 and (latent > 0.0 or e < 0.0 or not was):
            temperature[p], fraction[p], phase[p] = freezing + e / solid, 0.0, 0
        elif e >= latent:
            temperature[p], fraction[p], phase[p] = freezing + (e - latent) / liquid, 1.0, 1
        else:
            temperature[p], fraction[p] = freezing, e / latent
        if phase[p] != was:
            changed[p] = 1
            if was:
                frozen += mass[p]
            else:
                melted += mass[p]
        stored += np.float64(mass[p]) * np.float64(fraction[p]) * latent
    sums[k, 0], sums[k, 1], sums[k, 2] = melted, frozen, stored


@compiled(fastmath=False)
def update_phases(matter, numbers, changed, sums):
    """Move excess heat into and out of the buffers, and melt and freeze what they decide.

    Args:
        matter: `PhaseColumns`.
        numbers: Of the materials, shape (materials, 4), float64.
        changed: Written, shape (particles,), uint8: 1 where the phase changed.
        sums: Written, shape (chunks, 3): mass that melted and froze [kg], latent heat stored [J].
    """
    parallel_for(_update_at, sums.shape[0], (matter, numbers, changed, sums))
