"""What a surface moves: the break-up of a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, changed, walled
from mpm_nodes.verification.surface_tension import SPHERES, TENSION, H, liquid
from mpm_nodes.verification.wetting import FAR, filled

Number = TypeVar("Number", float, complex)
BULK = 100.0
"""Bulk modulus of these liquids, unless more is said [Pa]."""


class ThreadBreakup(VerificationProblem):
    """A thread breaks up into drops at the wavelength of Rayleigh and Plateau.

    Scene: threads of 4 cells' radius, half a wave long, between two planes of symmetry; waves of 2 pi R / lambda = 0.52, 0.70 and
        0.90 that begin with 4 % of the radius; their growth until it is 16 %.
    Exact: omega^2 = (k / (rho R^3)) x (1 - x^2) I1(x) / I0(x), largest at x = 0.697; the same parabola through both.
    Tolerance: 10 % of the wavelength that grows fastest, 15 % of its growth.
    """

    name = "thread_breakup"
    source = "Rayleigh 1878"
    slow = True
    cells = 4
    halves = (24, 18, 14)

    def findings(self) -> Iterator[Finding]:
        """Grow three waves."""
        radius = self.cells * H
        x = np.array([math.pi * self.cells / length for length in self.halves])
        exact = TENSION / radius**3 * x * (1.0 - x * x) * np.array([bessel(1, each) / bessel(0, each) for each in x])
        measured = np.array([self.growth(length) ** 2 for length in self.halves])
        fits = [np.polyfit(x, values, 2) for values in (exact, measured)]
        best = [-0.5 * b / a for a, b, _ in fits]
        waves = [2.0 * math.pi * radius / each for each in best]
        most = [math.sqrt(np.polyval(fit, at)) for fit, at in zip(fits, best, strict=True)]
        yield Finding.relative(waves[0], waves[1], 0.1, "wavelength that grows fastest [m]")
        yield Finding.relative(most[0], most[1], 0.15, "its growth [1/s]")

    def growth(self, length: int) -> float:
        """Return omega [1/s] of a wave whose half is `length` cells: the amplitude grows as cosh(omega t)."""
        n, k = self.cells, math.pi / (length * H)
        thread = filled((-n, -n, 0), (n, n, length), lambda at: (at[:, :2] ** 2).sum(axis=1) < n * n, liquid(BULK))
        x = thread["position"]
        swell = 1.0 + 0.04 * np.cos(k * x[:, 2])
        x = np.stack([x[:, 0] * swell, x[:, 1] * swell, x[:, 2] - 0.08 / k * np.sin(k * x[:, 2])], axis=1)
        thread = changed(thread, position=x, volume_change=np.full(len(x), -TENSION / (n * H * BULK)))
        walls = walled((-FAR, -FAR, 0.0), (FAR, FAR, length * H), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
        substeps = {"preset": "surface_tension", "set": {"slab": "z", "radius": SPHERES}}
        run = SubstepSolver(
            thread, substeps, cell_size=H, dtype=np.float64, origin=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), walls=walls
        )
        times, sizes = [0.0], [self.amplitude(run, k)]
        while sizes[-1] < 4.0 * sizes[0] and times[-1] < 4.0:
            run.step()
            times.append(run.time)
            sizes.append(self.amplitude(run, k))
        return math.acosh(sizes[-1] / sizes[0]) / times[-1]

    @staticmethod
    def amplitude(run: SubstepSolver, k: float) -> float:
        """Return the first moment of the mass along the thread."""
        m = column(run, "mass")
        return float(m @ np.cos(k * column(run, "position")[:, 2])) / float(m.sum())


def bessel(order: int, x: Number) -> Number:
    """Return the modified Bessel function I of a small order, of a real or complex number, by its series."""
    term = (0.5 * x) ** order / math.factorial(order)
    total = term
    for n in range(1, 200):
        term *= (0.5 * x) ** 2 / (n * (n + order))
        total += term
    return total
