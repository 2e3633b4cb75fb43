"""Contact inside implicit steps: the collision rules, the conditions of contact, and blocks on a ramp."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.collisions import contact_rows
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.minimisation import Minimisation, MinimisationSettings
from mpm_nodes.verification.contact import HalfSpace, collided, contacts_of, sliding_acceleration
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.implicit import heavy, prepared
from mpm_nodes.verification.scenes import OPEN, SEPARATE, SLIP, block, changed, cloud, material, walled

SHARP = MinimisationSettings(tolerance=1e-12, krylov_tolerance=1e-10, newton_iterations=100)


def tilted_plane(rule: CollisionRule, friction: float, angle: float, at: np.ndarray, velocity: np.ndarray, dt: float) -> Collider:
    """Return a plane collider of normal (-sin, cos, 0) that has moved with `velocity` [m/s] to `at` [m] when dt ends."""
    turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    shape = PosedLevelSets(
        PLANE, pose_times=np.array([0.0, dt]), rotations=np.array([turn, turn]), translations=np.array([at - dt * velocity, at])
    )
    return Collider("plane", rule, friction, shape)


def solved(problem: Minimisation) -> np.ndarray:
    """Minimise; return the velocities of all nodes, shape (nodes, 3), and leave the gradient at them."""
    assert problem.run().converged
    velocity = problem.velocity[: 256 * problem.count].reshape(-1, 4)[:, :3].copy()
    problem.value(problem.velocity)
    return velocity


class ImplicitCollisionRules(VerificationProblem):
    """Where nothing but inertia acts, contact inside an implicit step is the collision rule of explicit ones.

    Scene: nodes of a particle cloud, cut in half by an oblique, moving plane; a minimisation without energy terms once per
        rule, float64. Velocities are random; for a plane with friction 0.6 all nodes slide along it at 1.5 m/s and approach
        it at 0.1 m/s.
    Exact: for sticky and slip planes the rule of explicit steps applied to v~, the nearest velocities in kinetic energy that
        obey it (a separating plane lets go as implicit_contact_conditions says). With friction the impulse along the surface
        is mu times the normal one, in all.
    Tolerance: 1e-12 m/s; 1e-3 of the impulse with friction, for the slip speed below which it holds, 1e-4 h / dt.
    """

    name = "implicit_collision_rules"
    source = "Stomakhin 2013, section 8"

    def findings(self) -> Iterator[Finding]:
        """Apply every rule."""
        for rule in (CollisionRule.STICKY, CollisionRule.SLIP):
            before, after, _, plane = self._minimised(rule, 0.0)
            exact = collided(*before[:3], 0.1, plane, before[3])
            counts = before[1] > 0
            yield Finding(0.0, float(np.abs(after - exact)[counts].max()), 1e-12, f"velocity {rule.value}")
            touched = len(contacts_of(*before[:2], 0.1, plane).nodes) / counts.sum()
            yield Finding(0.5, touched, 0.25, f"share of nodes in contact {rule.value}")
        (_, mass, v, _), after, nodes, plane = self._minimised(CollisionRule.SEPARATE, 0.6)
        impulse = mass[nodes] @ (after - v)[nodes]
        push = impulse @ plane.normal
        drag = np.linalg.norm(impulse - push * plane.normal)
        yield Finding.relative(0.6, float(drag / push), 1e-3, "drag over push, friction 0.6")

    @staticmethod
    def _minimised(rule: CollisionRule, friction: float) -> tuple[tuple, np.ndarray, np.ndarray, HalfSpace]:
        """Return what was before (positions, masses, velocities and dt), velocities after, the nodes with mass, and the plane."""
        angle, dt, at, body = np.radians(25.0), 0.01, np.array([0.01, 0.02, 0.0]), np.array([0.3, -0.2, 0.1])
        collider = tilted_plane(rule, friction, angle, at, body, dt)
        plane = HalfSpace(np.array([-np.sin(angle), np.cos(angle), 0.0]), at, body, rule, friction)
        start = cloud(material("neo_hookean"), 300, 0.6, 0.1)
        if rule is CollisionRule.SEPARATE:
            along = np.array([plane.normal[1], -plane.normal[0], 0.0])
            alike = np.broadcast_to(body - 0.1 * plane.normal + 1.5 * along, (300, 3))
            start = changed(start, velocity=alike, affine=np.zeros((300, 3, 3)))
        problem = prepared(start, dt, settings=SHARP, colliders=[collider])
        problem.energy.begin_substep()
        v = problem.predicted[: 256 * problem.count].reshape(-1, 4)[:, :3].copy()
        after, nodes = solved(problem), heavy(problem)
        mass = np.zeros(len(v))
        mass[nodes] = problem.grid.unpack("mass")[nodes]
        return (problem.grid.unpack("position"), mass, v, dt), after, nodes, plane


class ImplicitContactConditions(VerificationProblem):
    """Separating contacts push and never pull, and what they push does not move into or away from them.

    Scene: a rubber block of 4 x 3 x 4 cells on a floor wall, strained at random by 20 %, so that elasticity presses some floor
        nodes down and lifts others; one implicit substep of ten times the elastic limit, float64. The same on a slip floor, which
        pulls.
    Exact: at every contact g = (v_i - r v_j).n >= 0, lam = dE/dv_i . n >= 0 and lam g = 0.
    Tolerance: 1e-9 m/s, and 1e-9 of the largest impulse, of rounding and a solve to 1e-12 cells.
    """

    name = "implicit_contact_conditions"
    source = "Signorini; Karush, Kuhn and Tucker"

    def findings(self) -> Iterator[Finding]:
        """Let go on one floor, hold on the other."""
        normal, impulse = self._floor(SEPARATE)
        size = impulse.max()
        yield Finding(0.0, max(-normal.min(), 0.0), 1e-9, "speed into the floor [m/s]")
        yield Finding(0.0, max(-impulse.min(), 0.0) / size, 1e-9, "pull, of the largest impulse")
        yield Finding(0.0, np.minimum(normal / np.abs(normal).max(), impulse / size).max(), 1e-9, "both at once")
        yield Finding(0.5, float((normal > 1e-6).mean()), 0.45, "share of floor nodes that lift off")
        _, impulse = self._floor(SLIP)
        yield Finding(1.0, float(impulse.min() < -0.01 * impulse.max()), 0.0, "a slip floor has to pull")

    @staticmethod
    def _floor(rule: object) -> tuple[np.ndarray, np.ndarray]:
        """Return normal speeds [m/s] and normal impulses [kg m/s] of the contacts after a substep."""
        h = 0.1
        start = block(material("neo_hookean", youngs_modulus=1e6), (0, 0, 0), (4 * h, 3 * h, 4 * h), h)
        strain = 0.2 * np.random.default_rng(3).uniform(-1, 1, (len(start), 3, 3))
        walls = walled((-1, 0, -1), (2, 2, 2), OPEN, OPEN, rule, OPEN, OPEN, OPEN)
        problem = prepared(changed(start, deformation=np.eye(3) + strain), 0.01, walls=walls, settings=SHARP)
        velocity = solved(problem)
        # nodes of at least a thousandth of a particle: what moves lighter ones never reaches matter
        mass = problem.grid.unpack("mass")[problem.contacts.rows[:, contact_rows.NODE].astype(int)]
        rows = problem.contacts.rows[mass > 1e-3 * problem.grid.particle_mass]
        node, n = rows[:, contact_rows.NODE].astype(int), rows[:, contact_rows.NORMAL : contact_rows.BODY]
        gradient = problem.gradient[: 256 * problem.count].reshape(-1, 4)[:, :3]
        image, r = rows[:, contact_rows.FELLOW].astype(int), rows[:, contact_rows.RATIO]
        apart = velocity[node] - r[:, None] * np.where(image[:, None] >= 0, velocity[image], 0.0)
        return (apart * n).sum(axis=1), (gradient[node] * n).sum(axis=1)


class ImplicitBlockOnRamp(VerificationProblem):
    """In implicit steps of 10 ms a block slides down a ramp against Coulomb friction, or stays where friction holds it.

    Scene: that of block_on_ramp, in steps some forty times as long.
    Exact: g (sin a - mu cos a) = 2.356 m/s^2 for mu = 0.3; 0 for mu = 0.7 > tan 30 = 0.577.
    Tolerance: 3 % of it; 3 % of g sin a for the block that sticks.
    """

    name = "implicit_block_on_ramp"
    source = "Coulomb"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let the blocks slide."""
        slope, g = np.radians(30.0), 9.81
        for ground in ("plane", "wall"):
            for friction in (0.3, 0.7):
                exact = max(0.0, g * (np.sin(slope) - friction * np.cos(slope)))
                measured = sliding_acceleration(ground, friction, slope, g, substeps="implicit_apic")
                yield Finding(exact, measured, 0.03 * (exact or g * np.sin(slope)), f"{ground}, friction {friction:g} [m/s^2]")
