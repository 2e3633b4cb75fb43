"""Contact with bodies and walls: the collision rule itself, and blocks on a ramp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Walls
from mpm_nodes.kernels.level_set import PLANE, PosedLevelSets
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.collide_grid import collide_grid
from mpm_nodes.verification.contract import Finding, Problem
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import OPEN, SEPARATE, block, cloud, material, settle


def collided(rule: CollisionRule, friction: float, n: np.ndarray, v: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Return velocities (n, 3) after contact, by the definition of the rule."""
    relative = v - body
    normal = relative @ n
    along = relative - normal[:, None] * n
    if rule is CollisionRule.STICKY:
        return np.broadcast_to(body, v.shape)
    if rule is CollisionRule.SLIP:
        return body + along
    speed = np.linalg.norm(along, axis=1)
    kept = np.maximum(0.0, 1.0 + friction * np.minimum(normal, 0.0) / np.maximum(speed, 1e-300))
    return np.where((normal >= 0)[:, None], v, body + kept[:, None] * along)


class CollisionRules(Problem):
    """Grid nodes inside a moving body get the velocity that its rule allows, all others keep theirs.

    Scene: random velocities on the nodes of a particle cloud that an oblique, moving plane cuts in half; the
        collision stage once per rule, friction 0 and 0.6, float64.
    Exact: sticky: v = v_b; slip: the normal part of v - v_b goes; separate: it goes when it approaches, and Coulomb
        friction takes mu |v_n| from the tangential part, at most all of it. The relative speed never grows.
    Tolerance: 1e-12 m/s at speeds around 1 m/s in float64: the pose's rotation matrix and the displacement over dt
        are rounded.
    """

    name = "collision_rules"
    source = "Stomakhin 2013, section 8"

    def findings(self) -> Iterator[Finding]:
        """Apply every rule."""
        for rule, friction in ((CollisionRule.STICKY, 0.0), (CollisionRule.SLIP, 0.0), (CollisionRule.SEPARATE, 0.0),
                               (CollisionRule.SEPARATE, 0.6)):
            worst, growth, touched = self._compare(rule, friction)
            label = f"{rule.value} {friction:g}"
            yield Finding(0.0, worst, 1e-12, f"velocity {label}")
            yield Finding(0.0, growth, 1e-12, f"growth of the relative speed {label}")
            yield Finding(0.5, touched, 0.2, f"share of nodes inside {label}")

    @staticmethod
    def _compare(rule: CollisionRule, friction: float) -> tuple[float, float, float]:
        angle, dt, body = np.radians(25.0), 0.5, np.array([0.3, -0.2, 0.1])
        n = np.array([-np.sin(angle), np.cos(angle), 0.0])
        turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
        shape = PosedLevelSets(PLANE, pose_times=np.array([0.0, dt]), rotations=np.array([turn, turn]),
                               translations=np.array([-dt * body, np.zeros(3)]) + [0.01, 0.02, 0.0])
        solver = SubstepSolver(cloud(material("neo_hookean"), 300, 0.6, 0.1), cell_size=0.1, dtype=np.float64,
                               colliders=[Collider("plane", rule, friction, shape)])
        solver.particles.sort()
        grid = solver.grid
        grid.follow()
        v = np.random.default_rng(9).normal(size=(64 * grid.count, 3))
        grid.pack("velocity", v)
        grid.pack("mass", np.ones(len(v)))
        solver.step_context.dt = dt
        collide_grid(grid, solver.colliders, solver.step_context)
        after = grid.unpack("velocity")
        inside = (grid.unpack("position") - [0.01, 0.02, 0.0]) @ n <= 0
        exact = np.where(inside[:, None], collided(rule, friction, n, v, body), v)
        growth = np.linalg.norm(after - body, axis=1) - np.linalg.norm(v - body, axis=1)
        return float(np.abs(after - exact).max()), max(float(growth[inside].max()), 0.0), float(inside.mean())


class BlockOnRamp(Problem):
    """A block slides down a ramp against Coulomb friction, or stays where friction holds it.

    Scene: an elastic block of 8 x 4 x 4 cells on a plane collider tilted by 30 degrees, friction 0.3 and 0.7; the
        same on the floor wall of the domain under tilted gravity. Velocities are damped for 0.3 s, so that the block
        does not hop from the load applied at once; then the acceleration along the slope is fitted to its momentum
        over 0.4 s.
    Exact: g (sin a - mu cos a) = 2.356 m/s^2 for mu = 0.3; 0 for mu = 0.7 > tan 30 = 0.577.
    Tolerance: 3 % of it; 3 % of g sin a for the block that sticks: across the grid the contact nodes change as it
        creeps and vibrates.
    """

    name = "block_on_ramp"
    source = "Coulomb; Stomakhin 2013, section 8"

    def findings(self) -> Iterator[Finding]:
        """Let the blocks slide."""
        slope, g = np.radians(30.0), 9.81
        for ground in ("plane", "wall"):
            for friction in (0.3, 0.7):
                exact = max(0.0, g * (np.sin(slope) - friction * np.cos(slope)))
                measured = sliding_acceleration(ground, friction, slope, g)
                yield Finding(exact, measured, 0.03 * (exact or g * np.sin(slope)), f"{ground}, friction {friction:g} [m/s^2]")


def sliding_acceleration(ground: str, friction: float, slope: float, g: float, **options: Any) -> float:
    """Return the acceleration of the block along the slope [m/s^2]; options go to the solver."""
    h = 0.05
    matter = material("neo_hookean", youngs_modulus=2e5)
    ground_knobs: dict[str, Any] = {"gravity": (0.0, -g, 0.0)}
    if ground == "plane":
        n, down = np.array([np.sin(slope), np.cos(slope), 0.0]), np.array([np.cos(slope), -np.sin(slope), 0.0])
        middle = 2 * h * n
        start = block(matter, middle - [4 * h, 2 * h, 2 * h], middle + [4 * h, 2 * h, 2 * h], h,
                      rotation=(0.0, 0.0, -np.degrees(slope)))
        ground_knobs["colliders"] = [collide_plane(FrameContext(1), rotation=(0.0, 0.0, -np.degrees(slope)),
                                                   rule=CollisionRule.SEPARATE, friction=friction)]
    else:
        down = np.array([1.0, 0.0, 0.0])
        start = block(matter, (0.0, 0.0, 0.0), (8 * h, 4 * h, 4 * h), h)
        ground_knobs["walls"] = Walls((-1.0, 0.0, -1.0), (3.0, 1.0, 1.0), (OPEN, OPEN, SEPARATE, OPEN, OPEN, OPEN), friction)
        ground_knobs["gravity"] = (g * np.sin(slope), -g * np.cos(slope), 0.0)
    solver = SubstepSolver(start, cell_size=h, **ground_knobs, **options)
    mass = column(solver, "mass").sum()
    settle(solver, 0.3, 60.0)
    time, speed = [], []
    for _ in range(40):
        solver.advance(0.01)
        time.append(solver.time)
        speed.append(momentum(solver) @ down / mass)
    return float(np.polyfit(time, speed, 1)[0])
