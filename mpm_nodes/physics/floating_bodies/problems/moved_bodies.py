"""Rigid bodies under the projection: what they take matter gives, light ones rise as fast as they should, and they float."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Material, WallRule
from mpm_nodes.nodes.collide import collide_box, collide_sphere
from mpm_nodes.physics.projection.problems.bodies_in_water import BALLS, CELL, GRAVITY, STEP, WATER, SolidInWater
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import bodies_of, rigid, whole
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, material, settle, walled

__all__ = ["MATTER", "ProjectedBodies", "momentum_lost", "rise"]

MATTER = {
    "water": material("liquid", WATER),
    "honey": material("liquid", WATER, viscosity=20.0),
    "rubber": material("neo_hookean", WATER, youngs_modulus=1e5),
}


def momentum_lost(matter: Material, density: float, rule: CollisionRule, bodies: int = 1) -> tuple[float, float]:
    """Return what is lost of momentum, and of angular momentum [m], over what bodies bring, as boxes hit a block of matter.

    Args:
        matter: Of the block, of eight cells.
        density: Of the boxes [kg/m^3].
        rule: How matter meets them.
        bodies: One, or two, which come one after the other.
    """
    h = 0.05
    start, colliders = block(matter, (-0.18, -0.2, -0.2), (0.22, 0.2, 0.2), h), list[Collider]()
    for k in range(bodies):
        centre = (0.05 - 0.1 * k, 0.45 + 0.4 * k, 0.06 - 0.1 * k)
        box = collide_box(FrameContext(1), name=f"box {k}", centre=centre, size=(0.2, 0.3, 0.24), friction=0.3)
        motion = {"velocity": (0.3, -3.0 - k, 0.1), "angular_velocity": (3.5, 0.9, -0.5)}
        colliders.append(rigid(dataclasses.replace(box, rule=rule), density, **motion))
    run = SubstepSolver(start, "incompressible", cell_size=h, dtype=np.float64, colliders=colliders, gravity=(0.0, 0.0, 0.0))
    before, brought = whole(run), float(np.abs(bodies_of(run).world.momenta()[:, :3].sum(axis=0)).max())
    run.advance(0.2)
    lost, turned = (float(np.abs(b - a).max()) / brought for a, b in zip(before, whole(run), strict=True))
    return lost, turned


def rise(solid: SolidInWater) -> float:
    """Return the speed of a rigid ball of rest in a closed box of water, after 5 ms, over that of a potential flow (Lamb 1932)."""
    radius, wide = solid.size * CELL, solid.wide
    middle = CELL * (0.5 * wide + np.array(solid.shift))
    ball = collide_sphere(FrameContext(1), centre=tuple(middle), radius=radius, friction=0.0)
    ball = rigid(dataclasses.replace(ball, rule=CollisionRule.SLIP), solid.density)
    water = solid.water(wide, lambda x: np.linalg.norm(x - middle, axis=1) > radius)
    run = SubstepSolver(
        water,
        "incompressible",
        cell_size=CELL,
        colliders=[ball],
        walls=walled((0, 0, 0), (wide * CELL,) * 3, SLIP),
        gravity=(0.0, -GRAVITY, 0.0),
        dt_max=STEP,
    )
    run.advance(STEP)
    return float(bodies_of(run).world.twists()[0, 1] / solid.speed)


def _below(cells: int) -> float:
    """Return the share of a ball of half the density of water that is below its level, as it floats in a box of 20 x 20 cells."""
    h, radius = 0.05, 0.05 * cells
    ball = rigid(collide_sphere(FrameContext(1), centre=(0.0, 0.5, 0.0), radius=radius, friction=0.0), 0.5 * WATER)
    water = block(MATTER["water"], (-0.5, 0.0, -0.5), (0.5, 0.5, 0.5), h)
    kept = np.linalg.norm(water["position"] - [0.0, 0.5, 0.0], axis=1) > radius
    water = dataclasses.replace(water, attributes={name: values[kept] for name, values in water.attributes.items()})
    walls = walled((-0.5, 0.0, -0.5), (0.5, 2.0, 0.5), *[WallRule.SLIP] * 6)
    run = SubstepSolver(water, "incompressible", cell_size=h, colliders=[ball], walls=walls)
    settle(run, 1.0, 4.0)
    run.advance(0.5)
    volume, heights = float(column(run, "volume").sum()), list[float]()
    for _ in range(24):
        run.advance(1.0 / 48.0)
        heights.append(float(bodies_of(run).world.centres()[0, 1]))
    return _share_below(float(np.mean(heights)), volume, radius)


def _share_below(height: float, volume: float, radius: float) -> float:
    """Return the share of a ball below the level of water of a volume [m^3] that it displaces in a box of 1 m^2."""
    low, high = height - radius, height + radius
    for _ in range(60):  # the level at which water and what is below it of the ball fill the box
        level = 0.5 * (low + high)
        depth = min(max(level - height + radius, 0.0), 2.0 * radius)
        cap = math.pi * depth * depth * (3.0 * radius - depth) / 3.0
        low, high = (level, high) if level - cap < volume else (low, level)
    return cap / (4.0 / 3.0 * math.pi * radius**3)


class ProjectedBodies(VerificationProblem):
    """Bodies that move by themselves under the projection: momentum is kept, and water bears and carries them as it should.

    Scene: the boxes of `momentum_with_bodies` hit water, honey of 20 Pa s and rubber, alone and one after the other; the balls of
        `bodies_in_water`, rigid, on which water slips, are let go; balls of half the density of water float.
    Exact: momentum of the whole is kept; (rho_w - rho_s) g / (rho_s + C rho_w), C = 1/2 and a little more for the walls;
        Archimedes, with the level that the volume of the water says.
    Tolerance: 1e-6 of the momentum that was brought, angular momentum to 1e-3 of it times a metre; 10 % of the speed of balls of 3
        cells, 5 % of those of 5; 5 % of the share below the level. What follows at a free surface turns the whole a little, and
        light boxes have next to none: those that separate from liquids miss that.
    """

    name = "projected_bodies"
    source = "conservation; Lamb 1932, section 92; Archimedes"
    slow = True
    misses = tuple(f"{name}, 10 kg/m^3, separate: angular momentum lost [m]" for name in ("water", "honey"))

    def findings(self) -> Iterator[Finding]:
        """Throw boxes, let balls go, and let them float."""
        rules = (CollisionRule.SEPARATE, CollisionRule.SLIP, CollisionRule.STICKY)
        for (name, matter), density, rule in itertools.product(MATTER.items(), (10.0, 1000.0, 10000.0), rules):
            what = f"{name}, {density:g} kg/m^3, {rule.value}"
            yield from self._kept(what, momentum_lost(matter, density, rule))
        for name, matter in MATTER.items():
            yield from self._kept(f"{name}, two of 500 kg/m^3", momentum_lost(matter, 500.0, CollisionRule.SEPARATE, 2))
        for what, solid in BALLS.items():
            yield Finding(1.0, rise(solid), 0.1 if solid.size < 5.0 else 0.05, f"speed of a ball, {what}")
        for cells in (3, 4, 5):
            yield Finding(0.5, _below(cells), 0.025, f"share below the level, radius {cells} cells")

    @staticmethod
    def _kept(what: str, lost: tuple[float, float]) -> Iterator[Finding]:
        yield Finding(0.0, lost[0], 1e-6, f"{what}: momentum lost")
        yield Finding(0.0, lost[1], 1e-3, f"{what}: angular momentum lost [m]")
