"""Rubber of the projection that meets a plane: what it keeps of its energy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.materials.moduli import moduli
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import block, material


@dataclasses.dataclass(frozen=True)
class LandingBlock:
    """A block of rubber that meets a plane that separates, without gravity, in the steps that `incompressible` takes by itself.

    Attributes:
        youngs_modulus: [Pa].
        poisson: Poisson's ratio; the bulk modulus of the projection is that of the law.
        density: [kg/m^3].
        cells: Edge of the block [cells].
        speed: [m/s].
        h: Cell size [m].
        dt_max: [s].
        gap: From the plane, on a layer of nodes, to the block [cells].
        bulk: Bulk modulus of the projection in place of the law's [Pa]; 0: incompressible.
    """

    youngs_modulus: float = 1e6
    poisson: float = 0.3
    density: float = 1000.0
    cells: int = 6
    speed: float = 0.5
    h: float = 0.2 / 12
    dt_max: float = 0.01
    gap: float = 0.0
    bulk: float | None = None

    def energy(self) -> float:
        """Return the largest kinetic energy from the first contact to well after it leaves, over that before."""
        rubber = material("neo_hookean", self.density, youngs_modulus=self.youngs_modulus, poisson_ratio=self.poisson)
        half, h = 0.5 * self.cells * self.h, self.h
        low, high = (-half, self.gap * h, -half), (half, self.gap * h + 2.0 * half, half)
        start = block(dataclasses.replace(rubber, bulk_modulus=self.bulk), low, high, h, velocity=(0.0, -self.speed, 0.0))
        run = SubstepSolver(
            start,
            {"preset": "incompressible", "set": {"of_laws": True}},
            cell_size=h,
            colliders=[Collider("floor", CollisionRule.SEPARATE, 0.2, PosedLevelSets(PLANE))],
            gravity=(0.0, 0.0, 0.0),
            dtype=np.float64,
            dt_max=self.dt_max,
            origin=(0.0, 0.0, 0.0),
        )
        wave = math.sqrt(moduli(rubber).shear / self.density)
        end = (self.gap + 2.0) * h / self.speed + 8.0 * self.cells * h / wave
        largest = 0.0
        while run.time < end:
            run.step()
            largest = max(largest, float(column(run, "mass") @ (column(run, "velocity") ** 2).sum(axis=1)))
        return largest / (float(column(run, "mass").sum()) * self.speed**2)


class RubberLands(VerificationProblem):
    """Rubber of the projection that meets a plane gains no energy, in whatever steps it takes by itself.

    Scene: blocks of 1 to 12 cells without gravity; Young's moduli from 10 kPa to 10 MPa at speeds from 0.5 to 6 m/s in steps of 2
        and 10 ms at most, and other sizes, densities, Poisson's ratios, bulk moduli, cells and gaps.
    Exact: no kinetic energy above that at arrival.
    Tolerance: a thousandth of it.
    """

    name = "rubber_lands"
    source = "conservation of energy"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let all blocks land, by what is varied."""
        stiff = [
            LandingBlock(E, speed=v, dt_max=dt) for E in (1e4, 1e5, 4e5, 1e6, 1e7) for v in (0.5, 2.0, 6.0) for dt in (2e-3, 1e-2)
        ]
        varied: dict[str, list[LandingBlock]] = {
            "stiffness, speed and dt_max": stiff,
            "size": [LandingBlock(E, cells=n) for E in (1e5, 1e6) for n in (1, 2, 3, 12)],
            "density": [LandingBlock(density=rho, speed=v) for rho in (100.0, 5000.0) for v in (0.5, 3.0)],
            "Poisson's ratio": [LandingBlock(E, nu) for E in (1e5, 1e6) for nu in (0.0, 0.45, 0.49)],
            "bulk modulus": [LandingBlock(E, bulk=lam) for E in (1e5, 1e6) for lam in (0.0, 1e6)],
            "cell size": [LandingBlock(h=h, speed=v) for h in (0.002, 0.1) for v in (0.5, 3.0)],
            "gap": [LandingBlock(E, gap=gap) for E in (1e5, 1e6) for gap in (0.25, 0.5, 0.75)],
        }
        for what, drops in varied.items():
            gained = max(0.0, *(each.energy() - 1.0 for each in drops))
            yield Finding(0.0, gained, 1e-3, f"energy gained, of that at arrival: {what}")
