"""Drops that fall from a tip: what they weigh."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, SurfaceField
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.physics.surface_tension.problems.surface_tension import TENSION, H, liquid
from mpm_nodes.physics.surface_tension.problems.wetting import FAR, filled
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, calm, walled

RATIOS = np.array([0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85])
SHARES = np.array([0.7256, 0.7011, 0.6828, 0.6669, 0.6515, 0.6362, 0.6250, 0.6171, 0.6093, 0.6032, 0.6000, 0.5992])
"""Harkins and Brown 1919: weights of drops that fall from a tip of radius r, of 2 pi r k, by r / V^(1/3) of what falls."""


class Dripping(VerificationProblem):
    """A drop that falls from a tip takes along the share of the ideal weight 2 pi r k that was measured, by its size.

    Scene: a quarter of a drop that hangs on a disc of 6 cells' radius r, wetted to its edge and repellent around it, on a body
        that slips; 4, 8 and 15 r^3 of a liquid of Ohnesorge number 0.01, bulk modulus 200 Pa, k 1 N/m. Damped under 19/20 of the
        gravity that so large a drop can bear by the equation of Young and Laplace; then gravity grows by a sixtieth in each
        capillary time sqrt(rho r^3 / k), in place of a drop that grows, until the drop is off by four cells.
    Exact: the table of Harkins and Brown at r / V^(1/3) of the volume V that falls; its weight is that under the gravity of that
        moment.
    Tolerance: 10 %: half a cell of r is 8 %, and gravity grows by 3 to 4 % while the neck thins. Known to miss: 12 and 11 % too
        heavy at 4 and 8 r^3, since the necks take longer than foreseen; where gravity grows half as fast it is 9 and 3 %.
    """

    name = "dripping"
    source = "Harkins and Brown 1919"
    slow = True
    misses = ("weight of 4 r^3 [2 pi r k]", "weight of 8 r^3 [2 pi r k]")
    cells, growth = 6, 60.0
    volumes: ClassVar[dict[float, float]] = {4.0: 1.35, 8.0: 0.62, 15.0: 0.317}
    """Volumes [r^3], with rho g r^2 / k that each can bear."""

    def findings(self) -> Iterator[Finding]:
        """Let each fall."""
        found = []
        for volume in self.volumes:
            ratio, share = self.fallen(volume)
            found.append((ratio, share))
            exact = float(np.interp(ratio, RATIOS, SHARES))
            yield Finding.relative(exact, share, 0.1, f"weight of {volume:g} r^3 [2 pi r k]")
        ratios, shares = np.array(found).T
        self.show("from a tip", ("r / V^(1/3)", "weight, of 2 pi r k"), (ratios, shares), (RATIOS, SHARES))

    def fallen(self, volume: float) -> tuple[float, float]:
        """Return r / V^(1/3) and the weight [2 pi r k] of what falls from so much hanging liquid [r^3]."""
        radius = self.cells * H
        time = math.sqrt(radius**3 / TENSION)
        first = 0.95 * self.volumes[volume] * TENSION / radius**2
        run = self.hanging(volume)
        run.gravity = (0.0, first, 0.0)
        while run.time < 3.0 * time:
            dt = run.step()
            calm(run, math.exp(-4.0 * dt / time))
        start = run.time
        run.gravity = lambda now: (0.0, first * (1.0 + (now - start) / (self.growth * time)), 0.0)
        while run.time < start + self.growth * time:
            run.step()
            y, m = column(run, "position")[:, 1], column(run, "mass")
            order = np.argsort(y)
            gap = np.diff(y[order])
            if gap.max() > 4.0 * H:
                mass = 4.0 * float(m[order][int(np.argmax(gap)) + 1 :].sum())
                weight = mass * run.gravity_at(run.time)[1]
                return radius / mass ** (1.0 / 3.0), weight / (2.0 * math.pi * radius * TENSION)
        return math.nan, math.nan

    def hanging(self, volume: float) -> SubstepSolver:
        """Return a drop of this volume [r^3] on the tip, a part of a ball: down is along y."""
        n = self.cells
        # a ball cut off at a circle of radius 1 has the volume pi h (3 + h^2) / 6, h its height
        high = float(np.real(next(root for root in np.roots([1.0, 0.0, 3.0, -6.0 * volume / math.pi]) if abs(root.imag) < 1e-9)))
        ball = 0.5 * (1.0 + high * high) / high
        middle = n * (high - ball)
        size = math.ceil(n * max(ball, high)) + 1

        def inside(at: np.ndarray) -> np.ndarray:
            return np.asarray(at[:, 0] ** 2 + (at[:, 1] - middle) ** 2 + at[:, 2] ** 2 < (n * ball) ** 2)

        oh = 0.01 * math.sqrt(n * H * TENSION)
        drop = filled((0, 0, 0), (size, 2 * size, size), inside, liquid(200.0, oh))
        return SubstepSolver(
            drop,
            {"preset": "surface_tension", "set": {"mirrors": "xz", "placement": "even"}},
            cell_size=H,
            dtype=np.float64,
            origin=(0.0, 0.0, 0.0),
            walls=walled((0.0, -FAR, 0.0), (FAR,) * 3, SLIP, OPEN, OPEN, OPEN, SLIP, OPEN),
            colliders=[self.tip(n * H)],
        )

    @staticmethod
    def tip(radius: float) -> Collider:
        """Return a plane at y = 0 that is wetted within a radius [m] of the y axis."""
        edge = 0.25 * H
        axis, up = np.arange(-2.0 * radius, 2.0 * radius, edge) + 0.5 * edge, np.arange(-6, 6) * edge + 0.5 * edge
        places = np.stack(np.meshgrid(axis, up, axis, indexing="ij"), axis=-1).reshape(-1, 3)
        wets = np.hypot(places[:, 0], places[:, 2]) < radius
        field = SurfaceField.of_samples(places, np.where(wets, -1.0, 1.0), edge, 1.0)
        shape = PosedLevelSets(PLANE, (0.0,), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, 3)))
        return Collider("tip", CollisionRule.SLIP, 0.0, shape, contact_angle=90.0, wetting=field)
