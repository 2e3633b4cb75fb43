"""Contact with bodies and walls: the collision rule itself, and blocks on a ramp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.collide_grid import collide_grid
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import OPEN, SEPARATE, block, changed, cloud, material, settle


class HalfSpace(NamedTuple):
    """A plane body: normal out of it, a point of its surface [m], its velocity [m/s], rule and friction."""

    normal: np.ndarray
    point: np.ndarray
    velocity: np.ndarray
    rule: CollisionRule
    friction: float = 0.0


def fellows(position: np.ndarray, mass: np.ndarray, h: float, plane: HalfSpace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, by the definition, the nodes in contact, the fellow of each (-1: none), and r.

    Args:
        position: Nodes [m], shape (n, 3), on a lattice of spacing h.
        mass: Masses of the nodes [kg], shape (n,).
        h: Spacing of the nodes [m].
        plane: The body.
    """
    phi = (position - plane.point) @ plane.normal / h
    cell = np.rint((position - position[0]) / h).astype(int)
    place = {tuple(each): node for node, each in enumerate(cell)}
    held = (mass > 0) & (phi < 0.5 - 1e-6)
    if plane.rule is CollisionRule.SEPARATE:
        for node in np.flatnonzero(held & (phi >= 1e-6)):
            held[node] = _touched(node, cell, place, mass, phi[node], plane.normal)
    nodes = np.flatnonzero(held)
    fellow, ratio = np.full(len(nodes), -1), np.zeros(len(nodes))
    for k, node in enumerate(nodes):
        goal = (0.75 - phi[node]) * plane.normal
        around = np.floor(goal + 1e-6).astype(int) + np.indices((2, 2, 2)).reshape(3, 8).T
        near = [(np.sum((step - goal) ** 2), place.get(tuple(cell[node] + step), -1)) for step in around]
        near = [(far, other) for far, other in near if other >= 0 and mass[other] > 0 and phi[other] >= 0.5 - 1e-6]
        if near and phi[node] > -2.0:
            fellow[k] = min(near)[1]
            ratio[k] = np.clip(phi[node] / phi[fellow[k]], -3.0, 1.0) * min(1.0, mass[fellow[k]] / mass[node])
    return nodes, fellow, ratio


def _touched(node: int, cell: np.ndarray, place: dict, mass: np.ndarray, phi: float, n: np.ndarray) -> bool:
    """Return whether the neighbours behind the plane have what they get of matter that lies a quarter cell before it."""
    there = due = 0.0
    for axis in np.flatnonzero(np.abs(n) > phi):
        step = -np.sign(n[axis]).astype(int) * np.eye(3, dtype=int)[axis]
        other = place.get(tuple(cell[node] + step), -1)
        there += n[axis] ** 2 * (mass[other] if other >= 0 else 0.0)
        due += n[axis] ** 2 * _filled(phi - 0.25 - abs(n[axis])) / _filled(phi - 0.25)
    return 0.0 < there >= due * mass[node]


def _filled(t: float) -> float:
    """Return the integral of the quadratic spline from minus infinity to t [cells], by the midpoint rule."""
    x = -1.5 + (t + 1.5) * (np.arange(20000) + 0.5) / 20000
    return float(np.where(np.abs(x) < 0.5, 0.75 - x * x, 0.5 * np.maximum(1.5 - np.abs(x), 0.0) ** 2).mean() * (t + 1.5))


def collided(position: np.ndarray, mass: np.ndarray, v: np.ndarray, h: float, plane: HalfSpace) -> np.ndarray:
    """Return the nodes' velocities (n, 3) after contact, by the definition: the nearest in kinetic energy that the rule allows.

    Arguments are those of `fellows`; v are the velocities before [m/s].
    """
    n, relative = plane.normal, v - plane.velocity
    after = relative.copy()
    nodes, fellow, ratio = fellows(position, mass, h, plane)
    for j in np.unique(fellow[fellow >= 0]):
        mine = np.flatnonzero(fellow == j)
        i, r, u = nodes[mine], ratio[mine], relative[j]
        holds = (relative[i] - r[:, None] * u) @ n < 0 if plane.rule is CollisionRule.SEPARATE else np.ones(len(mine), bool)
        i, r = i[holds], r[holds]
        goal = (mass[j] * u + (r * mass[i]) @ relative[i]) / (mass[j] + (r * r) @ mass[i])
        impulse = mass[i, None] * _ruled(r[:, None] * goal - relative[i], plane)
        after[i] += impulse / mass[i, None]
        after[j] -= r @ impulse / mass[j]
    alone = nodes[fellow < 0]
    if plane.rule is CollisionRule.SEPARATE:
        alone = alone[relative[alone] @ n < 0]
    after[alone] += _ruled(-relative[alone], plane)
    return plane.velocity + after


def _ruled(change: np.ndarray, plane: HalfSpace) -> np.ndarray:
    """Return what the rule takes of a change of velocity that would stop the matter, shape (k, 3)."""
    if plane.rule is CollisionRule.STICKY:
        return change
    push = change @ plane.normal
    if plane.rule is CollisionRule.SLIP:
        return push[:, None] * plane.normal
    push = np.maximum(push, 0.0)
    along = change - (change @ plane.normal)[:, None] * plane.normal
    speed = np.linalg.norm(along, axis=1)
    share = np.minimum(1.0, plane.friction * push / np.maximum(speed, 1e-300))
    return push[:, None] * plane.normal + share[:, None] * along


class CollisionRules(VerificationProblem):
    """Nodes at a moving body get the velocity that its rule allows, all others but their fellows keep theirs.

    Scene: random velocities and masses on the nodes of a particle cloud that an oblique, moving plane cuts in half; the collision
        stage once per rule, friction 0 and 0.6, float64.
    Exact: the velocities nearest in kinetic energy whose linear profile through the surface obeys the rule: sticky, v - v_b =
        0 there; slip, its normal part is; separate, the same where it approaches, and Coulomb friction takes mu times the
        normal impulse. The kinetic energy relative to the body never grows.
    Tolerance: 1e-12 m/s at speeds around 1 m/s in float64: the pose's rotation matrix and the displacement over dt
        are rounded.
    """

    name = "collision_rules"
    source = "Stomakhin 2013, section 8"

    def findings(self) -> Iterator[Finding]:
        """Apply every rule."""
        for rule, friction in (
            (CollisionRule.STICKY, 0.0),
            (CollisionRule.SLIP, 0.0),
            (CollisionRule.SEPARATE, 0.0),
            (CollisionRule.SEPARATE, 0.6),
        ):
            worst, growth, touched = self._compare(rule, friction)
            label = f"{rule.value} {friction:g}"
            yield Finding(0.0, worst, 1e-12, f"velocity {label}")
            yield Finding(0.0, growth, 1e-12, f"growth of the relative kinetic energy {label}")
            yield Finding(0.5, touched, 0.25, f"share of nodes in contact {label}")

    @staticmethod
    def _compare(rule: CollisionRule, friction: float) -> tuple[float, float, float]:
        angle, dt, body = np.radians(25.0), 0.5, np.array([0.3, -0.2, 0.1])
        plane = HalfSpace(np.array([-np.sin(angle), np.cos(angle), 0.0]), np.array([0.01, 0.02, 0.0]), body, rule, friction)
        turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
        shape = PosedLevelSets(
            PLANE,
            pose_times=np.array([0.0, dt]),
            rotations=np.array([turn, turn]),
            translations=np.array([-dt * body, np.zeros(3)]) + plane.point,
        )
        solver = SubstepSolver(
            cloud(material("neo_hookean"), 300, 0.6, 0.1),
            cell_size=0.1,
            dtype=np.float64,
            colliders=[Collider("plane", rule, friction, shape)],
        )
        solver.particles.sort()
        grid = solver.grid
        grid.follow()
        random = np.random.default_rng(9)
        v, mass = random.normal(size=(64 * grid.count, 3)), random.uniform(0.5, 1.5, 64 * grid.count)
        grid.pack("velocity", v)
        grid.pack("mass", mass)
        solver.step_context.dt = dt
        collide_grid(grid, solver.colliders, solver.step_context)
        after = grid.unpack("velocity")
        exact = collided(grid.unpack("position"), mass, v, 0.1, plane)
        energy = [float(mass @ ((each - body) ** 2).sum(axis=1)) for each in (v, after)]
        touched = len(fellows(grid.unpack("position"), mass, 0.1, plane)[0]) / len(v)
        return float(np.abs(after - exact).max()), max(energy[1] / energy[0] - 1.0, 0.0), touched


class WallsBetweenNodes(VerificationProblem):
    """What a wall does hangs neither on where it lies between the nodes nor on how it is turned.

    Scene: a jelly cube of 4 cells whose face touches a plane; the plane at eight offsets from the nodes along its normal,
        along an axis, at 27 degrees between two, and along a diagonal. Gravity pulls the cube from a sticky plane, where it
        hangs, and presses it on one that slips or separates; explicit steps, float64.
    Exact: the same motion: the way of the centre of mass to its first turn, over the mean of all.
    Tolerance: 5 %. Sticky is 4.3 %, slip 4.1 %, separate 4.0 %.
    """

    name = "walls_between_nodes"
    source = "Galilean and rotational invariance"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Hang the cube, and stand it on the plane."""
        normals = [np.array(n) / np.linalg.norm(n) for n in ((0.0, 1.0, 0.0), (1.0, 2.0, 0.0), (1.0, 1.0, 1.0))]
        for rule in (CollisionRule.STICKY, CollisionRule.SLIP, CollisionRule.SEPARATE):
            ways = np.array([[self._way(rule, n, offset / 8) for offset in range(8)] for n in normals])
            label = f"{rule.value}: first turn, farthest of 24 from the mean"
            yield Finding(0.0, float(np.abs(ways / ways.mean() - 1.0).max()), 0.05, label)

    @staticmethod
    def _way(rule: CollisionRule, n: np.ndarray, offset: float) -> float:
        """Return how far the centre of mass moves along n before it turns [m]."""
        h, size = 0.05, 0.2
        start = block(material("neo_hookean", youngs_modulus=5e4), (-size / 2, 0.0, -size / 2), (size / 2, size, size / 2), h)
        turn = rotation_between(np.array([0.0, 1.0, 0.0]), n)
        at = offset * h * n
        position = start["position"] @ rotation_matrix_of(turn).T + at
        shape = PosedLevelSets(PLANE, pose_times=np.zeros(1), rotations=turn[None], translations=at[None])
        pull = 9.81 if rule is CollisionRule.STICKY else -9.81
        solver = SubstepSolver(
            changed(start, position=position),
            cell_size=h,
            dtype=np.float64,
            colliders=[Collider("plane", rule, 0.0, shape)],
            gravity=tuple(pull * n),
            origin=(0.0, 0.0, 0.0),
        )
        before = position.mean(axis=0) @ n
        way = farthest = 0.0
        while solver.time < 0.5 and way >= 0.999 * farthest:
            solver.step(2e-4)
            way = abs(float(column(solver, "position").mean(axis=0) @ n - before))
            farthest = max(farthest, way)
        return farthest


def rotation_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z) of the shortest turn from unit vector a to b, which are not opposite."""
    quaternion = np.array([1.0 + a @ b, *np.cross(a, b)])
    return quaternion / np.linalg.norm(quaternion)


def rotation_matrix_of(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a unit quaternion (w, x, y, z)."""
    w, *axis = quaternion
    axis = np.array(axis)
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


class BlockOnRamp(VerificationProblem):
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
        start = block(
            matter, middle - [4 * h, 2 * h, 2 * h], middle + [4 * h, 2 * h, 2 * h], h, rotation=(0.0, 0.0, -np.degrees(slope))
        )
        ground_knobs["colliders"] = [
            collide_plane(FrameContext(1), rotation=(0.0, 0.0, -np.degrees(slope)), rule=CollisionRule.SEPARATE, friction=friction)
        ]
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
