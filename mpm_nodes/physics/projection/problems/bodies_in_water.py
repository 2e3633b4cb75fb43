"""Solids in water under the projection: how fast a light ball rises, and how deep a cube floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mpm_nodes.data import Material, Particles, concatenate
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, material, settle, walled

CELL, WATER, GRAVITY, STEP = 0.04, 1000.0, 9.81, 0.005


@dataclass(frozen=True)
class SolidInWater:
    """A solid in a box of water.

    Attributes:
        size: Radius of a ball, edge of a cube [cells].
        density: [kg/m^3].
        wide: Cells of the box along each axis; a pool is as wide, and half as deep.
        shift: Where the solid lies off the nodes [cells].
        slip: Whether the water slips on it.
    """

    size: float
    density: float
    wide: int
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    slip: bool = True

    def rise(self) -> float:
        """Return the speed of a ball of rest, after five steps, over that of a potential flow."""
        radius, middle = self.size * CELL, CELL * (0.5 * self.wide + np.array(self.shift))
        water = self.water(self.wide, lambda x: np.linalg.norm(x - middle, axis=1) > radius)
        run = self._solver(water, ball(self._rubber(), middle, radius, CELL))
        run.advance(STEP)
        return self._mean(run, "velocity") / self.speed

    @property
    def speed(self) -> float:
        """Speed of a ball in a potential flow after a step [m/s]."""
        # added mass of a ball in a spherical vessel of the box's volume (Lamb 1932, section 93)
        ratio = 4.0 / 3.0 * np.pi * (self.size / self.wide) ** 3
        added = 0.5 * WATER * (1.0 + 2.0 * ratio) / (1.0 - ratio)
        return float((WATER - self.density) / (self.density + added) * GRAVITY * STEP)

    def depth(self) -> float:
        """Return the share of a cube that is below the level of the water, at rest."""
        edge, share, deep = self.size * CELL, self.density / WATER, self.wide // 2
        area = (self.wide * CELL) ** 2
        level = deep * CELL + share * edge**3 / area
        middle = np.array([0.5 * self.wide * CELL, level + (0.5 - share) * edge, 0.5 * self.wide * CELL])
        water = self.water(deep + 2, lambda x: (np.abs(x - middle) > 0.5 * edge).any(axis=1) & (x[:, 1] < level))
        run = self._solver(water, block(self._rubber(), middle - 0.5 * edge, middle + 0.5 * edge, CELL))
        run.advance(1.0)
        settle(run, 1.0, 3.0)
        still = water.attributes["volume"].sum() / area
        return (still - self._mean(run, "position") + 0.5 * edge) / edge / (1.0 - edge**2 / area)

    def _rubber(self) -> Material:
        return material("neo_hookean", self.density, youngs_modulus=4e5, poisson_ratio=0.3)

    def water(self, high: int, kept: Callable[[np.ndarray], np.ndarray]) -> Particles:
        """Return the water of the box up to a height [cells], where its places [m] are kept."""
        whole = block(material("liquid", WATER), (0, 0, 0), CELL * np.array([self.wide, high, self.wide]), CELL)
        mine = kept(np.asarray(whole.attributes["position"], float))
        return Particles({name: values[mine] for name, values in whole.attributes.items()}, whole.materials, whole.spacing)

    def _solver(self, water: Particles, solid: Particles) -> SubstepSolver:
        box = walled((0, 0, 0), (self.wide * CELL,) * 3, SLIP)
        substeps = {"preset": "incompressible", "set": {"slip": self.slip}}
        return SubstepSolver(
            concatenate([water, solid]), substeps, cell_size=CELL, walls=box, gravity=(0.0, -GRAVITY, 0.0), dt_max=STEP
        )

    @staticmethod
    def _mean(run: SubstepSolver, name: str) -> float:
        """Return the mean height, or speed, of the solid."""
        mine = run.particles.unpack("material") == 1
        return float(np.average(column(run, name)[mine, 1], weights=column(run, "mass")[mine]))


BALLS = {
    "R = 3 h, a tenth of the density": SolidInWater(3.0, 100.0, 20),
    "R = 3 h, half the density": SolidInWater(3.0, 500.0, 20),
    "R = 3 h, three times the density": SolidInWater(3.0, 3000.0, 20),
    "R = 3 h, a tenth of the density, off the nodes": SolidInWater(3.0, 100.0, 20, (0.3, 0.2, 0.4)),
    "R = 5 h, a tenth of the density": SolidInWater(5.0, 100.0, 30),
    "R = 5 h, half the density, off the nodes": SolidInWater(5.0, 500.0, 30, (0.3, 0.2, 0.4)),
}
CUBES = {
    "4 cells, 0.9 of the density": SolidInWater(4.0, 900.0, 12),
    "4 cells, half the density": SolidInWater(4.0, 500.0, 12),
    "6 cells, half the density": SolidInWater(6.0, 500.0, 18),
}


class BodiesInWater(VerificationProblem):
    """A ball in water moves as fast as potential flow lets it, and a cube floats as deep as it weighs, where water slips on both.

    Scene: balls of 3 and 5 cells, of a tenth, half and three times the density of the water, on nodes and off them, in closed boxes
        of water, let go; cubes of 4 and 6 cells in a pool for two seconds, in the second of which what moves is damped.
    Exact: (rho_w - rho_s) g / (rho_s + C rho_w), C = 1/2 and a little more for the walls; the share of its weight.
    Tolerance: after 5 ms 10 % of the speed for balls of 3 cells, 5 % for those of 5; 3 % and 5 % of a cube of 0.9 and of half the
        density. Without `slip` the light ball of 3 cells has less than 0.6 of its speed: half a cell of water goes along.
    """

    name = "bodies_in_water"
    source = "Lamb 1932, section 92"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let balls go, and cubes float."""
        for what, solid in BALLS.items():
            yield Finding(1.0, solid.rise(), 0.1 if solid.size < 5.0 else 0.05, f"speed of a ball, {what}")
        dragged = replace(BALLS["R = 3 h, a tenth of the density"], slip=False)
        yield Finding(1.0, float(dragged.rise() < 0.6), 0.0, "without slip it has less than 0.6 of its speed")
        for what, solid in CUBES.items():
            share = solid.density / WATER
            yield Finding(share, solid.depth(), 0.03 if share > 0.5 else 0.05, f"share of a cube under water, {what}")
