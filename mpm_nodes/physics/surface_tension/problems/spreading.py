"""Drops that wet a floor wholly: how they spread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.physics.surface_tension.problems.surface_tension import H, liquid
from mpm_nodes.physics.surface_tension.problems.wetting import FAR, filled
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, walled


class Spreading(VerificationProblem):
    """A viscous drop that wets a floor wholly spreads with the tenth root of time.

    Scene: a quarter of half a ball of 8 cells on a sticky floor of 0 degrees, without gravity, rho k R / mu^2 of 9, for 8 s,
        33 mu R / k; its radius is the one within which 99 % of it lie.
    Exact: R ~ t^(1/10), as measured with silicone oils; the exponent is fitted to log R over the last decade of time.
    Tolerance: 10 % of the exponent. Known to miss: the floor sticks to what touches it, its edge too, and the drop stops at 1.05 of
        its radius (0.006). On a floor that slips nothing rubs under the drop, and the exponent is 0.35. Oil slides at its edge and
        sticks behind it; rules of contact have no slip length.
    """

    name = "spreading"
    source = "Tanner 1979"
    slow = True
    misses = ("exponent of the radius over time",)
    cells, viscosity, seconds = 8, 0.3, 8.0

    def findings(self) -> Iterator[Finding]:
        """Let it spread."""
        times, radii = self.spread()
        late = times > 0.1 * self.seconds
        exponent, first = np.polyfit(np.log(times[late]), np.log(radii[late]), 1)
        law = np.exp(first) * times[late] ** 0.1 * np.exp(np.mean((exponent - 0.1) * np.log(times[late])))
        self.show("half a ball", ("time [s]", "radius [cells]"), (times[1:], radii[1:] / H), (times[late], law / H))
        yield Finding.relative(0.1, float(exponent), 0.1, "exponent of the radius over time")

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Return times [s] and radii [m]."""
        n = self.cells
        drop = filled((0, 0, 0), (n, n, n), lambda at: (at**2).sum(axis=1) < n * n, liquid(100.0, self.viscosity))
        run = SubstepSolver(
            drop,
            {"preset": "surface_tension", "set": {"mirrors": "xz", "placement": "even", "contact_angle": 0.0}},
            cell_size=H,
            dtype=np.float64,
            origin=(0.0, 0.0, 0.0),
            gravity=(0.0, 0.0, 0.0),
            walls=walled((0.0,) * 3, (FAR,) * 3, SLIP, OPEN, STICKY, OPEN, SLIP, OPEN),
        )
        rows = []
        while run.time < self.seconds:
            run.step()
            x = column(run, "position")
            rows.append((run.time, float(np.quantile(np.hypot(x[:, 0], x[:, 2]), 0.99))))
        times, radii = np.array(rows).T
        return times, radii
