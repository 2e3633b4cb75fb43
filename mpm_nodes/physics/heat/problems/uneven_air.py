"""Air that differs from place to place, against the exact solution of a fin."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Ambient
from mpm_nodes.physics.heat.problems.heat import CONDUCTIVITY, START, matter, solver, still
from mpm_nodes.solver.surroundings import surround
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, changed, walled


class _Rising:
    """Air that gets warmer along x, by `slope` [K/m] from START at x = 0 on."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the temperatures at places [K]."""
        warm: np.ndarray = START + self.slope * places[:, 0]
        return warm


class FinInUnevenAir(VerificationProblem):
    """A flat bar in air that gets warmer along it comes to the temperatures of a fin between insulated ends.

    Scene: a bar of 40 x 2 x 2 cells, L = 2 m long and H = 0.1 m high, whose top is free and whose other sides lie on walls; air of
        300 K to 400 K along it, h_c = K H m^2, m = 2 / m, so that the Biot number over its height is 0.04; steps of a hundred times
        the time of conduction until nothing changes.
    Exact: K H T'' = h_c (T - T_a), T' = 0 at the ends, T_a = T_0 + s x: T = T_a - (s / m) sinh(m (x - L / 2)) / cosh(m L / 2).
    Tolerance: 3 % of the difference of the air over the bar.
    """

    name = "fin_in_uneven_air"
    source = "Carslaw and Jaeger 1959 (the thin rod)"

    def findings(self) -> Iterator[Finding]:
        """Compare the temperatures along the bar."""
        length, height, m, difference = 2.0, 0.1, 2.0, 100.0
        h, slope = height / 2, difference / length
        start = block(matter(), (0, 0, 0), (length, height, 2 * h), h)
        start = changed(start, temperature=np.full(len(start), START))
        walls = walled((0, 0, 0), (length, 8 * height, 2 * h), SLIP)
        run = solver(start, still(), h, walls=walls)
        surround(run, [Ambient(_Rising(slope), CONDUCTIVITY * height * m * m)])
        for _ in range(50):
            run.step(1e7)
        x, found = column(run, "position")[:, 0], column(run, "temperature")
        exact = START + slope * x - slope / m * np.sinh(m * (x - 0.5 * length)) / math.cosh(0.5 * m * length)
        self.show("along the bar", ("place [m]", "temperature [K]"), (x, found), (x, exact), 0.03 * difference)
        yield Finding(0.0, float(np.abs(found - exact).max()) / difference, 0.03, "profile error, of the difference of the air")
