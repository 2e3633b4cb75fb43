"""Interfaces between liquids: the pressure in a drop of one in the other, the angles where both meet air, forces that cancel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Particles, SurfaceTension
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.physics.surface_tension.numerics.surface_energy import SurfaceEnergy
from mpm_nodes.physics.surface_tension.problems.surface_tension import H, liquid, slab
from mpm_nodes.physics.surface_tension.problems.wetting import filled, in_slab
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, settle, walled

BULK = 100.0


def two_liquids(pair: float, against_air: float) -> tuple[Any, Any]:
    """Return oil and water of unit density, viscous, with the tension of their interface and the same one against air [N/m]."""
    made = liquid(BULK, 0.3)
    oil = dataclasses.replace(made, label="oil", surface_tension=SurfaceTension(against_air, interfaces=(("water", pair),)))
    return oil, dataclasses.replace(made, label="water", surface_tension=SurfaceTension(against_air))


def parted(low: Any, high: Any, inside: Any, is_oil: Any, liquids: tuple[Any, Any]) -> Particles:
    """Return eight particles a cell of a box [cells], of the first liquid where `is_oil` of their places [cells] holds."""
    made = filled(low, high, inside, liquids[0])
    material = np.where(is_oil(made["position"] / H), 0, 1).astype(np.int32)
    return Particles({**made.attributes, "material": material}, liquids, made.spacing)


class LiquidInLiquid(VerificationProblem):
    """In a drop of one liquid in another the pressure is higher by what their interface makes of it.

    Scene: a disc of oil of 8 cells (slab) in the middle of a square of water 24 cells wide between walls that slip, no tension
        against air, damped; then the forces of its surfaces with tensions that grow along x.
    Exact: p_oil - p_water = k / R (Laplace); no net force and no net torque.
    Tolerance: 10 % of the pressure, an error of order h / R; 1e-12 of the sum of the forces' sizes, of that times the radius.
    """

    name = "liquid_in_liquid"
    source = "Laplace; textbook: internal forces cancel"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Settle and measure."""

        def is_oil(at: np.ndarray) -> np.ndarray:
            return np.asarray((at[:, :2] ** 2).sum(axis=1) < 64.0)

        drop = parted((-12, -12, 0), (12, 12, 2), lambda at: at[:, 0] > -99.0, is_oil, two_liquids(1.0, 0.0))
        side = 12 * H
        run = in_slab(drop, walled((-side, -side, 0.0), (side, side, 2 * H), SLIP))
        settle(run, 2.0, 4.0)
        e, v = column(run, "volume_change"), column(run, "volume")
        oil = column(run, "material") == 0
        radius = math.sqrt(float(v[oil] @ (1.0 + e[oil])) / (2.0 * H * math.pi))
        inside, outside = (-BULK * float(v[mine] @ e[mine]) / v[mine].sum() for mine in (oil, ~oil))
        yield Finding.relative(1.0 / radius, inside - outside, 0.1, "pressure in the drop [Pa]")
        run.step(1e-9)
        samples, x = run.stores["samples"], run.stores["samples"].unpack("position")
        samples.rows("tension")[0] *= 2.0 + x[:, 0]
        run.grid.clear("force")
        SurfaceEnergy(samples, run.grid, STENCIL["quadratic"]).add_force(run.grid.array("force"))
        force, at = run.grid.unpack("force"), run.grid.unpack("position")
        size = float(np.abs(force).sum())
        yield Finding(0.0, float(np.abs(force.sum(axis=0)).max()) / size, 1e-12, "net force")
        yield Finding(0.0, float(np.abs(np.cross(at, force).sum(axis=0)).max()) / (size * 8 * H), 1e-12, "net torque")


class NeumannAngle(VerificationProblem):
    """Two liquids that touch in air meet at the angles of Neumann's triangle.

    Scene: two caps (slab), each with the area of half a disc of 8 cells, side by side in air, that begin with 90 degrees; the same
        tension against air, two tensions of the interface; viscous, mean over the last second of four (a capillary time is 0.7 s).
    Exact: k_ab + 2 k cos(angle) = 0 for the angle between the interface and either surface, through the liquid: 120 degrees where
        all three are equal, 104.5 where the interface has half.
    Tolerance: 5 degrees, as of contact angles.
    """

    name = "neumann_angle"
    source = "Neumann 1894"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let both pairs come to rest."""
        for pair in (1.0, 0.5):
            exact = math.degrees(math.acos(-0.5 * pair))
            caps = parted(
                (-8, -8, 0),
                (8, 8, 2),
                lambda at: (at[:, :2] ** 2).sum(axis=1) < 64.0,
                lambda at: at[:, 0] < 0.0,
                two_liquids(pair, 1.0),
            )
            run = slab(caps)
            while run.time < 3.0:
                run.step()
            angles = []
            for time in np.linspace(3.0, 4.0, 9):
                while run.time < time:
                    run.step()
                angles += [angle_of(run, material) for material in (0, 1)]
            yield Finding(exact, float(np.mean(angles)), 5.0, f"an interface of {pair:g} N/m [degrees]")


def angle_of(run: SubstepSolver, material: int) -> float:
    """Return the angle [degrees] at which the circle through the free surface of a liquid beyond two cells meets the interface."""
    run.step(1e-9)
    samples = run.stores["samples"]
    area, covered = (samples.rows(name)[0].astype(float) for name in ("area", "covered"))
    x, mine = samples.unpack("position"), column(run, "material")[samples.unpack("owner")] == material
    plane = float(x[(covered > 0.9) & (area > 0.0), 0].mean())
    away = (plane - x[:, 0]) if material == 0 else (x[:, 0] - plane)
    free = mine & (area > 0.0) & (covered < 0.1) & (away > 2.0 * H)
    y, away, root = x[free, 1], away[free], np.sqrt(area[free])
    rows = np.stack([2.0 * y, 2.0 * away, np.ones(len(y))], axis=1) * root[:, None]
    a, b, c = np.linalg.lstsq(rows, (y**2 + away**2) * root, rcond=None)[0]
    return math.degrees(math.acos(float(np.clip(-b / math.sqrt(c + a * a + b * b), -1.0, 1.0))))
