"""Contact lines: what advancing and receding angles hold back, and what uneven wetting pulls along."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, SurfaceField
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.physics.surface_tension.problems.surface_tension import DISCS, TENSION, H, liquid
from mpm_nodes.physics.surface_tension.problems.wetting import FAR, filled
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import centre_of_mass, column, momentum
from mpm_nodes.verification.scenes import OPEN, SLIP, walled

CELLS = 8
"""Radius of the half discs."""


def half_disc(pull: float, colliders: Any = (), **settings: Any) -> SubstepSolver:
    """Return a solve of half a disc (slab) on a floor at y = 0 that slips, with a gravity `pull` along the floor [m/s^2]."""
    n = CELLS
    matter = filled((-n, 0, 0), (n, n, 2), lambda at: (at[:, :2] ** 2).sum(axis=1) < n * n, liquid(100.0, 0.3))
    floor = OPEN if colliders else SLIP
    walls = walled((-FAR, 0.0, 0.0), (FAR, FAR, 2 * H), OPEN, OPEN, floor, OPEN, SLIP, SLIP)
    substeps = {"preset": "surface_tension", "set": {"slab": "z", "radius": DISCS, **settings}}
    still = (0.0, 0.0, 0.0)
    options = {"cell_size": H, "dtype": np.float64, "origin": still, "gravity": (pull, 0.0, 0.0), "walls": walls}
    return SubstepSolver(matter, substeps, colliders=colliders, **options)


def until(run: SubstepSolver, time: float) -> tuple[float, float]:
    """Run to a time [s]; return where the centre of mass is along the floor [m] and how fast it is [m/s]."""
    while run.time < time:
        run.step()
    mass = float(column(run, "mass").sum())
    return float(centre_of_mass(run)[0]), float(momentum(run)[0]) / mass


class PinnedDrop(VerificationProblem):
    """A drop that slides down a slope is held back by its contact lines, which recede at one angle and advance at another.

    Scene: half a disc of 8 cells (slab) on a floor that slips, 75 degrees receding and 105 advancing, gravity along the floor
        alone: 1.5 times what the lines bear; viscous; from 1 s to 2 s (a capillary time is 0.7 s).
    Exact: k (cos theta_r - cos theta_a) for each metre of the slab; the rest of gravity accelerates the drop.
    Tolerance: 10 % of the force that holds it back.
    """

    name = "pinned_drop"
    source = "Furmidge 1962"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it slide."""
        run = half_disc(0.0)
        area = float(column(run, "volume").sum()) / (2.0 * H)
        bears = TENSION * (math.cos(math.radians(75.0)) - math.cos(math.radians(105.0))) / area
        run = half_disc(1.5 * bears, hysteresis=30.0)
        before, after = (until(run, time)[1] for time in (1.0, 2.0))
        yield Finding.relative(bears, 1.5 * bears - (after - before) / 1.0, 0.1, "held back [m/s^2]")


class WettingGradient(VerificationProblem):
    """A drop on a floor whose wetting changes along it is pulled to where it wets better.

    Scene: the same drop on a painted plate, k_SL / k = - x / (4 R), neutral in the middle; from rest, 0.1 s (a seventh of a
        capillary time).
    Exact: the force is - k grad(k_SL / k) times the wetted area, which is 2 R as it begins: a = k / (2 A).
    Tolerance: 10 % of the momentum.
    """

    name = "wetting_gradient"
    source = "de Gennes 2004"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it go."""
        radius = CELLS * H
        axis = (np.arange(-3 * CELLS, 3 * CELLS) + 0.5) * H
        places = np.stack(np.meshgrid(axis, [0.0], axis, indexing="ij"), axis=-1).reshape(-1, 3)
        field = SurfaceField.of_samples(places, -places[:, 0] / (4.0 * radius), H, 0.0)
        shape = PosedLevelSets(PLANE, (0.0,), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, 3)))
        run = half_disc(0.0, [Collider("plate", CollisionRule.SLIP, 0.0, shape, contact_angle=90.0, wetting=field)])
        area = float(column(run, "volume").sum()) / (2.0 * H)
        time = 0.1
        speed = until(run, time)[1]
        yield Finding.relative(0.5 * TENSION / area * run.time, speed, 0.1, "speed [m/s]")
