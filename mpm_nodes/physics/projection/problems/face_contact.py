"""Contact in the projection: a block slides by Coulomb's law, liquid leaves a ceiling, a pool at rest stays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, block, changed, material, walled

CELL, GRAVITY, STEP = 0.1, 9.81, 2e-3


def on_slope(friction: float, degrees: float, cells: tuple[int, int, int], side: WallRule) -> SubstepSolver:
    """Return an incompressible block of rubber on a floor, its gravity turned as on a slope that falls along x.

    Args:
        friction: Coulomb coefficient of the floor.
        degrees: Angle of the slope.
        cells: Size of the block in cells.
        side: Rule of the walls beside it.
    """
    angle = math.radians(degrees)
    rubber = material("neo_hookean", youngs_modulus=2e5, poisson_ratio=0.3)
    x, y, z = (count * CELL for count in cells)
    floor = Collider("floor", CollisionRule.SEPARATE, friction, PosedLevelSets(PLANE))
    sides = walled((-5.0, -5.0, 0.0), (5.0, 5.0, z), OPEN, OPEN, OPEN, OPEN, side, side)
    return SubstepSolver(
        block(rubber, (0.0, 0.0, 0.0), (x, y, z), CELL),
        "incompressible",
        cell_size=CELL,
        colliders=[floor],
        walls=sides,
        gravity=(GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle), 0.0),
        dtype=np.float64,
        dt_max=STEP,
        origin=(0.0, 0.0, 0.0),
    )


def on_turned_slope(degrees: float, rule: CollisionRule, friction: float = 0.0, dtype: Any = np.float64) -> SubstepSolver:
    """Return a block of rubber of 6 x 3 x 4 cells on a slope that falls along x and crosses the grid.

    Args:
        degrees: Angle of the slope.
        rule: What the slope does: slip or separate.
        friction: Coulomb coefficient of the slope.
        dtype: Float type of the solve.
    """
    angle, foot = math.radians(degrees), np.array([0.013, 0.037, 0.0])
    along, out = np.array([math.cos(angle), -math.sin(angle), 0.0]), np.array([math.sin(angle), math.cos(angle), 0.0])
    start = block(material("neo_hookean", youngs_modulus=2e5, poisson_ratio=0.3), (0.0, 0.0, 0.0), (0.6, 0.3, 0.4), CELL)
    x, y, z = np.asarray(start["position"]).T
    turn = np.array([[math.cos(0.5 * angle), 0.0, 0.0, -math.sin(0.5 * angle)]])
    plane = PosedLevelSets(PLANE, pose_times=np.zeros(1), rotations=turn, translations=foot[None])
    return SubstepSolver(
        changed(start, position=np.outer(x, along) + np.outer(y, out) + np.outer(z, (0.0, 0.0, 1.0)) + foot),
        "incompressible",
        cell_size=CELL,
        colliders=[Collider("slope", rule, friction, plane)],
        gravity=(0.0, -GRAVITY, 0.0),
        dtype=dtype,
        dt_max=STEP,
        origin=(0.0, 0.0, 0.0),
    )


class BlockOnSlope(VerificationProblem):
    """A block slides down a slope that crosses the grid as it should: smooth, and with friction.

    Scene: an incompressible neo-Hookean block of 6 x 3 x 4 cells on slopes of 15, 30 and 45 degrees that slip, 0.2 s; on slopes of
        30 and 45 degrees that separate, mu = 0.2, from 0.3 s to 0.7 s: before, the block spreads, and friction acts both ways.
        At 15 degrees 5 % is missed (docs/projection.md).
    Exact: the accelerations g sin a and g (sin a - mu cos a).
    Tolerance: 5 %.
    """

    name = "block_on_slope"
    source = "textbook (Coulomb friction); cut cells: Batty 2007, Ng 2009"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it slide."""
        smooth, rough = [(degrees, 0.0, 0.0, 0.2) for degrees in (15, 30, 45)], [(degrees, 0.2, 0.3, 0.7) for degrees in (30, 45)]
        for degrees, friction, begin, end in smooth + rough:
            angle = math.radians(degrees)
            run = on_turned_slope(degrees, CollisionRule.SEPARATE if friction else CollisionRule.SLIP, friction)
            speeds = [0.0]
            for time in (begin, end):
                if time > 0.0:
                    run.advance(time - run.time)
                    velocity = column(run, "velocity").mean(axis=0)
                    speeds.append(velocity[0] * math.cos(angle) - velocity[1] * math.sin(angle))
            exact = GRAVITY * (math.sin(angle) - friction * math.cos(angle))
            found = (speeds[-1] - speeds[-2]) / (end - begin)
            yield Finding.relative(exact, found, 0.05, f"acceleration at {degrees} degrees, mu = {friction:g} [m/s^2]")


class SlidingBlock(VerificationProblem):
    """A block slides down a slope under the pressure that the projection finds, and rubs there by Coulomb's law.

    Scene: an incompressible neo-Hookean block of 4 x 3 x 4 cells, and one of 8 x 2 x 2 cells between side walls that slip, on a
        floor that gravity pulls them along as a slope of 30 degrees does; friction 0 (the second alone), 0.2 and 0.4, 0.4 s. The
        floor lies on faces of the grid.
    Exact: the acceleration g (sin a - mu cos a).
    Tolerance: 5 % of g sin a.
    """

    name = "sliding_block"
    source = "textbook (Coulomb friction)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it slide."""
        angle, time = math.radians(30.0), 0.4
        pull = GRAVITY * math.sin(angle)
        free, between = ((4, 3, 4), OPEN, "free"), ((8, 2, 2), SLIP, "between walls")
        for (cells, side, place), friction in (*((free, mu) for mu in (0.2, 0.4)), *((between, mu) for mu in (0.0, 0.2, 0.4))):
            run = on_slope(friction, 30.0, cells, side)
            run.advance(time)
            found = float(column(run, "velocity")[:, 0].mean()) / time
            exact = pull - friction * GRAVITY * math.cos(angle)
            yield Finding(exact, found, 0.05 * pull, f"{place}, acceleration at mu = {friction:g} [m/s^2]")


class LiquidAtACeiling(VerificationProblem):
    """A wall that separates pushes and does not pull: liquid falls off a ceiling, and lies on a floor as on one that holds it.

    Scene: a pool of 6^3 cells, incompressible, that fills a box whose walls slip up to its lid; the lid separates. A pool of the
        same cells that fills its box up to 6 of 9 cells, with walls that separate.
    Exact: g t below a ceiling; rest.
    Tolerance: 2 % of g t; 1e-6 g dt, a hundred times what the solve leaves.
    """

    name = "liquid_at_a_ceiling"
    source = "Lai 2020 (separating walls); textbook (free fall)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it fall from the lid, and let it lie."""
        water, side = material("liquid"), 6 * CELL
        start = block(water, (0.0, 2 * CELL, 0.0), (side, 2 * CELL + side, side), CELL)
        rules = (SLIP, SLIP, SLIP, WallRule.SEPARATE, SLIP, SLIP)
        run = self._pool(start, walled((0, 0, 0), (side, 2 * CELL + side, side), *rules))
        run.advance(0.05)
        fallen = -float(column(run, "velocity")[:, 1].mean()) / (GRAVITY * 0.05)
        yield Finding.relative(1.0, fallen, 0.02, "speed below the ceiling, over g t")

        resting = block(water, (0.0, 0.0, 0.0), (side, side, side), CELL)
        run = self._pool(resting, walled((0, 0, 0), (side, 1.5 * side, side), *(WallRule.SEPARATE,) * 6))
        run.step(STEP)
        deep = column(run, "position")[:, 1] < side - 1.5 * CELL
        worst = float(np.abs(column(run, "velocity")[deep]).max()) / (GRAVITY * STEP)
        yield Finding(0.0, worst, 1e-6, "pool at rest below its surface: fastest particle, over g dt")

    @staticmethod
    def _pool(start: Any, walls: Any) -> SubstepSolver:
        return SubstepSolver(
            start, "incompressible", cell_size=CELL, walls=walls, gravity=(0.0, -GRAVITY, 0.0), dtype=np.float64, dt_max=STEP
        )
