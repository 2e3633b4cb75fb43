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


class PlaneContacts(NamedTuple):
    """Nodes in contact with a plane, shape (k,), the image of each (-1: none), r, and the gap before the matter there [cells]."""

    nodes: np.ndarray
    image: np.ndarray
    ratio: np.ndarray
    gap: np.ndarray


def contacts_of(position: np.ndarray, mass: np.ndarray, h: float, plane: HalfSpace) -> PlaneContacts:
    """Return, by the definition, the contacts of nodes with a plane.

    Args:
        position: Nodes [m], shape (n, 3), on a lattice of spacing h.
        mass: Masses of the nodes [kg], shape (n,).
        h: Spacing of the nodes [m].
        plane: The body.
    """
    phi = (position - plane.point) @ plane.normal / h
    cell = np.rint((position - position[0]) / h).astype(int)
    place = {tuple(each): node for node, each in enumerate(cell)}
    nodes = np.flatnonzero((mass > 0) & (phi < 0.5 - 1e-6))
    gap = np.array([_gap(cell[node], place, mass, phi[node], plane.normal) for node in nodes])
    nodes, gap = nodes[gap < 1.0], gap[gap < 1.0]
    image, ratio = np.full(len(nodes), -1), np.zeros(len(nodes))
    for k, node in enumerate(nodes):
        goal = (0.75 - phi[node]) * plane.normal
        around = np.floor(goal + 1e-6).astype(int) + np.indices((2, 2, 2)).reshape(3, 8).T
        near = [(np.sum((step - goal) ** 2), place.get(tuple(cell[node] + step), -1)) for step in around]
        near = [(far, other) for far, other in near if other >= 0 and mass[other] > 0 and phi[other] >= 0.5 - 1e-6]
        if near and phi[node] > -2.0:
            image[k] = min(near)[1]
            ratio[k] = np.clip(phi[node] / phi[image[k]], -3.0, 1.0) * min(1.0, mass[image[k]] / mass[node])
    return PlaneContacts(nodes, image, ratio, gap)


def _gap(cell: np.ndarray, place: dict, mass: np.ndarray, phi: float, n: np.ndarray) -> float:
    """Return how far matter is before a plane, beyond a tenth of a cell, by the masses on the two sides of the plane [cells]."""
    if phi <= -2.0:
        return 0.0
    there, behind = _mass_at(cell + (-0.75 - phi) * n, place, mass, n)
    here, ahead = _mass_at(cell + (1.0 - phi) * n, place, mass, n)
    near, far = (_filled((-0.75 - s) / behind) / _filled((1.0 - s) / ahead) for s in (0.1, 0.35))
    if there >= near * here:
        return 0.0
    return float(0.25 * np.log(near * here / there) / np.log(near / far)) if there else np.inf


def _mass_at(at: np.ndarray, place: dict, mass: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Return the mass at a place, linear between nodes [kg], and how much wider along n the spline is for it."""
    low = np.floor(at + 1e-9)
    share = np.maximum(at - low, 0.0)
    found = 0.0
    for corner in np.indices((2, 2, 2)).reshape(3, 8).T:
        node = place.get(tuple((low + corner).astype(int)), -1)
        found += float(np.where(corner, share, 1.0 - share).prod() * mass[node]) if node >= 0 else 0.0
    return found, float(np.sqrt(1.0 + 4.0 * (n * n) @ (share * (1.0 - share))))


def _filled(t: float) -> float:
    """Return the integral of the quadratic spline from minus infinity to t [cells], exact piece by piece."""
    x = np.clip([t + 1.5, t + 0.5, t - 0.5, t - 1.5], 0.0, None)
    return float((x**3 @ [1.0, -3.0, 3.0, -1.0]) / 6.0)


def collided(position: np.ndarray, mass: np.ndarray, v: np.ndarray, h: float, plane: HalfSpace, dt: float) -> np.ndarray:
    """Return the nodes' velocities (n, 3) after contact, by the definition: the nearest in kinetic energy that the rule allows.

    Arguments are those of `contacts_of`; v are the velocities before [m/s], and dt is the substep [s].
    """
    n, relative = plane.normal, v - plane.velocity
    after = relative.copy()
    nodes, image, ratio, gap = contacts_of(position, mass, h, plane)
    along = relative @ n
    approach = along[nodes] - np.where(image >= 0, ratio * along[image], 0.0)
    leaves = (gap > 0.1) | (plane.rule is CollisionRule.SEPARATE)
    lag = -(1.0 - ratio) * gap * h / dt
    lag = np.where(leaves, lag, np.clip(approach, lag, 0.0))
    found = np.zeros((len(nodes), 3))
    for j in [*np.unique(image[image >= 0]), -1]:
        mine = np.flatnonzero(image == j)
        groups = [mine] if j >= 0 else mine[:, None]
        for group in groups:
            i, r = nodes[group], ratio[group]
            own = relative[i] - lag[group, None] * n
            u, heavy = (relative[j], mass[j]) if j >= 0 else (np.zeros(3), 0.0)
            holds = ((own - r[:, None] * u) @ n < 0) | ~leaves[group]
            if not holds.any():
                continue
            i, r, own, group = i[holds], r[holds], own[holds], group[holds]
            weight = heavy + (r * r) @ mass[i]
            goal = (heavy * u + (r * mass[i]) @ own) / weight if weight > 0.0 else np.zeros(3)
            found[group] = [_ruled(r[k] * goal - own[k], plane, leaves[c]) for k, c in enumerate(group)]
            after[i] += found[group]
            if j >= 0:
                after[j] -= (r * mass[i]) @ found[group] / mass[j]
    return plane.velocity + after


def _ruled(change: np.ndarray, plane: HalfSpace, leaves: bool) -> np.ndarray:
    """Return what the rule takes of a change of velocity that would stop the matter, shape (3,)."""
    if plane.rule is CollisionRule.STICKY and not leaves:
        return change
    push = change @ plane.normal
    if not leaves:
        return push * plane.normal
    push = max(push, 0.0)
    along = change - (change @ plane.normal) * plane.normal
    friction = plane.friction if plane.rule is CollisionRule.SEPARATE else 0.0
    share = min(1.0, friction * push / max(float(np.linalg.norm(along)), 1e-300))
    return push * plane.normal + share * along


class CollisionRules(VerificationProblem):
    """Nodes at a moving body get the velocity that its rule allows, all others but their images keep theirs.

    Scene: random velocities and masses on the nodes of a particle cloud that an oblique, moving plane cuts in half, the masses less
        behind it; the collision stage once per rule, friction 0 and 0.6, float64.
    Exact: the velocities nearest in kinetic energy whose linear profile through the surface obeys the rule: sticky, v - v_b =
        0 there; slip, its normal part is; separate, the same where it approaches, and Coulomb friction takes mu times the
        normal impulse; each where matter is, by the masses on the two sides of the plane, which until then may come nearer by
        the gap before it. The kinetic energy relative to the body never grows.
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
            worst, growth, shares = self._compare(rule, friction)
            label = f"{rule.value} {friction:g}"
            yield Finding(0.0, worst, 1e-12, f"velocity {label}")
            yield Finding(0.0, growth, 1e-12, f"growth of the relative kinetic energy {label}")
            yield Finding(0.5, shares[0], 0.25, f"share of nodes in contact {label}")
            yield Finding(0.3, shares[1], 0.2, f"share of these that matter has not reached {label}")

    @staticmethod
    def _compare(rule: CollisionRule, friction: float) -> tuple[float, float, tuple[float, float]]:
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
        v, mass = random.normal(size=(64 * grid.count, 3)), 10.0 ** random.uniform(-1.0, 0.2, 64 * grid.count)
        mass *= 10.0 ** np.clip((grid.unpack("position") - plane.point) @ plane.normal / 0.1, -2.0, 1.0)
        grid.pack("velocity", v)
        grid.pack("mass", mass)
        grid.pack("momentum", mass[:, None] * v)
        solver.step_context.dt = dt
        collide_grid(grid, solver.colliders, solver.step_context)
        after = grid.unpack("velocity")
        exact = collided(grid.unpack("position"), mass, v, 0.1, plane, dt)
        energy = [float(mass @ ((each - body) ** 2).sum(axis=1)) for each in (v, after)]
        gap = contacts_of(grid.unpack("position"), mass, 0.1, plane).gap
        shares = len(gap) / len(v), float((gap > 0.0).mean())
        return float(np.abs(after - exact).max()), max(energy[1] / energy[0] - 1.0, 0.0), shares


class WallsBetweenNodes(VerificationProblem):
    """What a wall does hangs neither on where it lies between the nodes nor on how it is turned.

    Scene: a jelly cube of 4 cells whose face touches a plane; the plane at eight offsets from the nodes along its normal,
        along an axis, at 27 degrees between two, and along a diagonal. Gravity pulls the cube from a sticky plane, where it
        hangs, and presses it on one that slips or separates; explicit steps, float64.
    Exact: the same motion: the way of the centre of mass to its first turn, over the mean of all.
    Tolerance: 5 %. Sticky is 3.5 %, slip 4.5 %, separate 4.6 %.
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
