"""How stiff a liquid must be in explicit substeps: far softer than the real one, as long as its compression does not show."""

from __future__ import annotations

import math

__all__ = ["LIBRARY_DEPTH", "enough_bulk_modulus", "substeps_of_waves"]

SQUEEZED, MACH, SINKS = 0.01, 0.1, 0.25
"""Compression of a liquid at its floor, its speed over that of its sound, and the cells that its surface sinks by, at most."""
LIBRARY_DEPTH = 1.0
"""Depth [m] that liquids of the library are made for."""


def enough_bulk_modulus(density: float, gravity: float, depth: float, cell_size: float = math.inf, speed: float = 0.0) -> float:
    """Return the bulk modulus [Pa] from which on the compression of a liquid does not show.

    Its floor is compressed by 1 %, so that sound is ten times as fast as the longest gravity wave, sqrt(g H); it moves at a tenth
    of the speed of sound; and its surface sinks by a quarter of a cell, which asks for more where it is over fifty cells deep.

    Args:
        density: [kg/m^3].
        gravity: [m/s^2].
        depth: H [m].
        cell_size: [m]; infinite leaves the sinking out.
        speed: At which it moves [m/s].

    Source: Monaghan 1994: c = 10 v changes the density by 1 %.
    """
    squeezed, moving = gravity * depth / SQUEEZED, (speed / MACH) ** 2
    return density * max(squeezed, moving, 0.5 * gravity * depth * depth / (SINKS * cell_size))


def substeps_of_waves(bulk_modulus: float, density: float, cell_size: float, seconds: float, elastic_cfl: float) -> float:
    """Return how many explicit substeps pressure waves ask for in a time.

    Args:
        bulk_modulus: [Pa].
        density: [kg/m^3].
        cell_size: [m].
        seconds: Simulated time [s].
        elastic_cfl: Cells that a wave may move in a substep.
    """
    return seconds * math.sqrt(bulk_modulus / density) / (elastic_cfl * cell_size)
