"""Drops that bounce off a floor that repels them: how long they touch it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Material, Particles, SurfaceTension
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SEPARATE, SLIP, walled

CONTACT_TIME = 2.6
"""Richard 2002: contact time of a drop that bounces, of sqrt(rho R^3 / k), +- 0.1."""


def water(bulk_modulus: float) -> Material:
    """Return water [SI] that is as compressible as it may be: its pressures change its volume by at most a few percent."""
    surface = SurfaceTension(0.072)
    return Material("liquid", {"bulk_modulus": bulk_modulus}, 1000.0, "water", viscosity=1e-3, surface_tension=surface)


class DropImpact(VerificationProblem):
    """A drop that bounces off a floor that repels it touches the floor for a time that does not depend on its speed.

    Scene: a quarter of a drop of water of 1 mm and 8 cells' radius that falls at 0.3, 0.5, 0.7 and 0.9 m/s (rho V^2 R / k from 1.3
        to 11) on a floor of 180 degrees that matter may leave, under gravity, bulk modulus 2e4 Pa, even samples.
    Exact: 2.6 sqrt(rho R^3 / k), measured with water drops of 0.1 to 4 mm at 0.2 to 2.3 m/s. A drop touches while its surface is
        nearer than half a cell, that is, while its lowest particle is nearer than three quarters.
    Tolerance: 10 %. The source gives 2.6 +- 0.1, and half a cell is up to 2 % of the time at each end. Known to miss:
        at 0.5 m/s the time is 11 % short, an error in proportion to the cell (8 % with 12 cells); at 0.7 and 0.9 m/s the flattened
        drop is too thin in its middle for these cells, opens into a ring, and leaves after half the time. With 12 cells it stays
        whole at 0.7 m/s.
    """

    name = "drop_impact"
    source = "Richard 2002"
    slow = True
    misses = ("contact at 0.5 m/s [s]", "contact at 0.7 m/s [s]", "contact at 0.9 m/s [s]")
    cells, radius, speeds = 8, 1e-3, (0.3, 0.5, 0.7, 0.9)

    def findings(self) -> Iterator[Finding]:
        """Let each bounce."""
        exact, times = CONTACT_TIME * math.sqrt(1000.0 * self.radius**3 / 0.072), []
        for speed in self.speeds:
            times.append(self.contact(speed, 3.0 * exact))
            yield Finding.relative(exact, times[-1], 0.1, f"contact at {speed:g} m/s [s]")
        axes, measured = ("speed [m/s]", "contact [ms]"), 1e3 * np.array(times)
        whole = np.array([0.2, 2.3]), np.full(2, 1e3 * exact)
        self.show("water, 1 mm", axes, (np.array(self.speeds), measured), whole, 100.0 * exact)

    def contact(self, speed: float, longest: float) -> float:
        """Return how long a drop of this speed [m/s] touches the floor [s]; `longest` where it does not leave it."""
        h, n = self.radius / self.cells, self.cells
        axes = [(np.arange(2 * low, 2 * n) + 0.5) * 0.5 * h for low in (0, -n, 0)]
        at = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        at = at[(at**2).sum(axis=1) < self.radius**2] + [0.0, self.radius + h, 0.0]
        falling = np.tile([0.0, -speed, 0.0], (len(at), 1))
        columns = {"position": at, "velocity": falling, "volume": np.full(len(at), (0.5 * h) ** 3)}
        far = 10.0 * self.radius
        run = SubstepSolver(
            Particles(columns, (water(2e4),), 0.5 * h),
            {"preset": "surface_tension", "set": {"mirrors": "xz", "placement": "even", "contact_angle": 180.0}},
            cell_size=h,
            dtype=np.float64,
            origin=(0.0, 0.0, 0.0),
            gravity=(0.0, -9.81, 0.0),
            walls=walled((0.0,) * 3, (far,) * 3, SLIP, OPEN, SEPARATE, OPEN, SLIP, OPEN),
        )
        while self._lowest(run) >= 0.75:
            run.step()
        begin = run.time
        while self._lowest(run) < 0.75 and run.time < begin + longest:
            run.step()
        return run.time - begin

    @staticmethod
    def _lowest(run: SubstepSolver) -> float:
        """Return the height of the lowest particle [cells]."""
        return float(column(run, "position")[:, 1].min()) / run.cell_size
