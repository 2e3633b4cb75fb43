"""Rigid bodies that matter moves: what they take is what it gives, they float at their density, and bounce as they are told to."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, JointKind, Particles, RigidBody, RigidJoint, WallRule
from mpm_nodes.kernels.level_sets.build import leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.nodes.collide import collide_box, collide_plane, collide_sphere
from mpm_nodes.physics.rigid_bodies.numerics.bodies import RigidBodies
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contact import rotation_matrix_of
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import angular_momentum, column, momentum
from mpm_nodes.verification.scenes import block, material, settle, walled

__all__ = ["FloatingBalls", "HangingBodies", "MomentumWithBodies", "RigidBounces", "RollingBall", "SphereInViscousBath"]

CELL, WATER, G = 0.05, 1000.0, 9.81


def rigid(collider: Collider, density: float, **motion: Any) -> Collider:
    """Return a collider that moves by itself."""
    return dataclasses.replace(collider, rigid=RigidBody(collider.name, density, **motion))


def bodies_of(run: SubstepSolver) -> RigidBodies:
    """Return the rigid bodies of a solver."""
    bodies = run.stores["rigid_bodies"]
    assert isinstance(bodies, RigidBodies)
    return bodies


def whole(run: SubstepSolver) -> tuple[np.ndarray, np.ndarray]:
    """Return momentum [N s] and angular momentum about the solve's origin [N m s] of matter and bodies together."""
    world = bodies_of(run).world
    own, centres = world.momenta(), world.centres() - run.particles.origin
    about = own[:, 3:] + np.cross(centres, own[:, :3])
    return momentum(run) + own[:, :3].sum(axis=0), angular_momentum(run) + about.sum(axis=0)


class MomentumWithBodies(VerificationProblem):
    """What a rigid body loses matter gets, at once and to rounding, whether the body is light or heavy, slides or sticks.

    Scene: a tumbling box of 4 x 6 x 4.8 cells hits a block of rubber of 8 cells off its centre at 3 m/s, free of gravity; it is 100
        times lighter than the block's matter, as heavy, and 10 times heavier; 0.2 s, double precision, explicit and implicit.
    Exact: momentum of the whole is kept.
    Tolerance: rounding, 1e-11 of what the body brought, implicit 1e-6; angular momentum to 1e-3 of it times a metre: the ends of
        particle paths that meet a body are set down outside of it, which turns the whole a little. Backward Euler turns it, too:
        implicit substeps miss that.
    """

    name = "momentum_with_bodies"
    source = "conservation"
    slow = True
    misses = tuple(f"implicit_apic, 1000 kg/m^3, {rule}: angular momentum lost [m]" for rule in ("separate", "slip", "sticky"))

    def findings(self) -> Iterator[Finding]:
        """Throw boxes at blocks."""
        start = block(material("neo_hookean", 1000.0, youngs_modulus=1e5), (-0.18, -0.2, -0.2), (0.22, 0.2, 0.2), CELL)
        for substeps, density in itertools.product(("explicit_apic", "implicit_apic"), (10.0, 1000.0, 10000.0)):
            for rule in ("separate", "slip", "sticky"):
                box = collide_box(FrameContext(1), centre=(0.05, 0.45, 0.06), size=(0.2, 0.3, 0.24), friction=0.3)
                box = dataclasses.replace(box, rule=type(box.rule)(rule))
                body = rigid(box, density, velocity=(0.3, -3.0, 0.1), angular_velocity=(3.5, 0.9, -0.5))
                run = SubstepSolver(start, substeps, cell_size=CELL, dtype=np.float64, colliders=[body], gravity=(0.0, 0.0, 0.0))
                before, brought = whole(run), float(np.abs(bodies_of(run).world.momenta()[0, :3]).max())
                run.advance(0.2)
                after = whole(run)
                lost = [float(np.abs(b - a).max()) / brought for a, b in zip(before, after, strict=True)]
                explicit, what = substeps == "explicit_apic", f"{substeps}, {density:g} kg/m^3, {rule}"
                yield Finding(0.0, lost[0], 1e-11 if explicit else 1e-6, f"{what}: momentum lost")
                yield Finding(0.0, lost[1], 1e-3, f"{what}: angular momentum lost [m]")


def bath(size: Sequence[float], clear: tuple[float, float]) -> Particles:
    """Return water of a size [m] that stands on y = 0, without the ball about (0, `clear[0]`, 0) with the radius `clear[1]`."""
    water = block(material("liquid", WATER, bulk_modulus=2e5, viscosity=1.0), *_corners(size), CELL)
    kept = np.linalg.norm(water["position"] - [0.0, clear[0], 0.0], axis=1) > clear[1]
    return dataclasses.replace(water, attributes={name: values[kept] for name, values in water.attributes.items()})


def _corners(size: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    half = np.array([0.5 * size[0], 0.0, 0.5 * size[2]])
    return -half, half + [0.0, size[1], 0.0]


class FloatingBalls(VerificationProblem):
    """A ball floats in water with the share of its volume below the surface that its density says.

    Scene: balls of a tenth, half and nine tenths of the density of water, without friction, in a box of 20 x 20 cells filled 10
        cells deep, from near where they float; damped for 1 s, then free for 1 s; means over the last half.
    Exact: Archimedes: the share below the level, as the water stands away from the ball, is the ratio of the densities.
    Tolerance: of half the ball 5 %; 0.03 of the ball else. Water pushes a still ball of 3, 4 and 5 cells up by 0.91, 0.92 and
        0.96 of its buoyancy (`held_balls`), so that small balls lie too deep: one of half the density misses at 3 cells, those
        of nine tenths do at 3 and 4.
    """

    name = "floating_balls"
    source = "Archimedes"
    slow = True
    misses = (
        "0.5 of the density, radius 3 cells: share below the level",
        "0.9 of the density, radius 3 cells: share below the level",
        "0.9 of the density, radius 4 cells: share below the level",
    )

    def findings(self) -> Iterator[Finding]:
        """Let balls float."""
        for share, cells, bar in (
            (0.5, 3, 0.025),
            (0.5, 4, 0.025),
            (0.5, 5, 0.025),
            (0.1, 4, 0.03),
            (0.9, 3, 0.03),
            (0.9, 4, 0.03),
        ):
            radius, begin = cells * CELL, {0.1: 0.65, 0.5: 0.5, 0.9: 0.4}[share]
            ball = rigid(collide_sphere(FrameContext(1), centre=(0.0, begin, 0.0), radius=radius), share * WATER)
            walls = walled((-0.5, 0.0, -0.5), (0.5, 2.0, 0.5), *[WallRule.SLIP] * 6)
            run = SubstepSolver(
                bath((1.0, 0.5, 1.0), (begin, radius)), "explicit_apic", cell_size=CELL, colliders=[ball], walls=walls
            )
            settle(run, 1.0, 4.0)
            run.advance(0.5)
            below = np.mean([self._below(run, radius) for _ in range(24)])
            yield Finding(share, float(below), bar, f"{share:g} of the density, radius {cells} cells: share below the level")

    @staticmethod
    def _below(run: SubstepSolver, radius: float) -> float:
        """Return the share below the level: of the uppermost particles of columns a cell wide, 6 cells and more off the axis."""
        run.advance(1.0 / 48.0)
        place = column(run, "position")
        place = place[np.hypot(place[:, 0], place[:, 2]) > 6.0 * CELL]
        columns = np.unique(np.floor(place[:, [0, 2]] / CELL), axis=0, return_inverse=True)[1].ravel()
        tops = np.full(columns.max() + 1, -np.inf)
        np.maximum.at(tops, columns, place[:, 1])
        level = float(tops.mean()) + 0.25 * CELL
        height = float(bodies_of(run).world.centres()[0, 1])
        return _cap(level - height + radius, radius) / (4.0 / 3.0 * math.pi * radius**3)


def _cap(depth: float, radius: float) -> float:
    """Return the volume of a cap of a ball [m^3]."""
    depth = min(max(depth, 0.0), 2.0 * radius)
    return math.pi * depth * depth * (3.0 * radius - depth) / 3.0


class SphereInViscousBath(VerificationProblem):
    """A heavy ball sinks in a very viscous liquid as fast as Stokes' drag in a tube lets it.

    Scene: a ball of twice the density of a liquid of 34 Pa s, to both of which it sticks as to the wall, on the axis of a tube that
        is filled three tube radii deep; at a Reynolds number of 0.1. Means over a quarter second after 0.45 s: the liquid, which
        gives way a little, swings at first.
    Exact: U = 2/9 (density difference) g R^2 / viscosity / K, with K of a sphere on the axis of a cylinder (Haberman and Sayre
        1958).
    Tolerance: 10 %. Missed: what sticks reaches half a cell beyond the surface, so that a ball of 3 cells, 9 cells from the wall,
        sinks a quarter too slowly, one of 5 cells by a tenth.
    """

    name = "sphere_in_viscous_bath"
    source = "Stokes 1851; Haberman and Sayre 1958"
    slow = True
    misses = ("radius 3 cells: speed, of the exact one", "radius 5 cells: speed, of the exact one")

    def findings(self) -> Iterator[Finding]:
        """Let balls sink."""
        for cells, wide in ((3, 12), (5, 15)):
            yield Finding(1.0, self._speed(cells, wide), 0.1, f"radius {cells} cells: speed, of the exact one")

    @staticmethod
    def _speed(cells: int, wide: int, viscosity: float = 34.0, h: float = 0.01) -> float:
        """Return the speed over the exact one, of a ball and a tube with radii in cells."""
        radius, tube = cells * h, wide * h
        begin = (0.0, 1.86 * tube, 0.0)
        ball = collide_sphere(FrameContext(1), centre=begin, radius=radius)
        colliders = [hollow_cylinder(tube, 3.0 * tube, h), rigid(dataclasses.replace(ball, rule=CollisionRule.STICKY), 2.0 * WATER)]
        liquid = block(
            material("liquid", WATER, bulk_modulus=2e5, viscosity=viscosity), (-tube, 0, -tube), (tube, 3 * tube, tube), h
        )
        place = liquid["position"]
        kept = (np.hypot(place[:, 0], place[:, 2]) < tube) & (np.linalg.norm(place - begin, axis=1) > radius)
        liquid = dataclasses.replace(liquid, attributes={name: values[kept] for name, values in liquid.attributes.items()})
        floor = [WallRule.OPEN, WallRule.OPEN, WallRule.STICKY, *[WallRule.OPEN] * 3]
        run = SubstepSolver(
            liquid, "explicit_apic", cell_size=h, colliders=colliders, walls=walled((-1.0, 0.0, -1.0), (1.0, 5.0, 1.0), *floor)
        )
        run.advance(0.45)
        before = bodies_of(run).world.centres()[0, 1]
        run.advance(0.25)
        share = radius / tube
        wall = 1.0 - 0.75857 * share**5
        wall /= 1.0 - 2.105 * share + 2.0865 * share**3 - 1.7068 * share**5 + 0.72603 * share**6
        exact = 2.0 / 9.0 * WATER * G * radius**2 / viscosity / wall
        return float((before - bodies_of(run).world.centres()[0, 1]) / 0.25 / exact)


def hollow_cylinder(radius: float, height: float, h: float) -> Collider:
    """Return what is outside of a tube about the y axis, open above, as a body that matter sticks to."""
    voxel = 0.5 * h
    wide, high = int((radius + 4.0 * h) / (8.0 * voxel)) + 1, int((height + 5.0 * h) / (8.0 * voxel)) + 2
    leaf = np.stack(np.meshgrid(np.arange(-wide, wide), np.arange(-2, high), np.arange(-wide, wide), indexing="ij"), -1)
    origins = 8 * leaf.reshape(-1, 3)
    place = voxel * (origins[:, None, None, None] + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1))
    inside = radius - np.hypot(place[..., 0], place[..., 2])
    band = 3.0 * voxel
    near = (np.abs(inside) < band).any(axis=(1, 2, 3))
    to_index = np.hstack([np.eye(3) / voxel, np.zeros((3, 1))])
    level_set = leaf_level_set(origins[near], np.clip(inside[near], -band, band), band, to_index, voxel)
    return Collider("tube", CollisionRule.STICKY, 0.0, PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,)))


class RigidBounces(VerificationProblem):
    """A ball falls freely, and bounces off a plane with the share of its speed that its restitution says; matter is not near.

    Scene: balls fall by 0.5 m onto a plane of the domain, and onto a plane that is a collider.
    Exact: v^2 = 2 g s; the speed after the bounce is the restitution times the speed before.
    Tolerance: 1 % of the speed, the step of 1 ms; 0.05 in the restitution: the contact is a spring, which gravity presses.
    """

    name = "rigid_bounces"
    source = "textbook (Newton's impact law)"

    def findings(self) -> Iterator[Finding]:
        """Let balls fall."""
        for restitution in (0.0, 0.5, 0.9):
            for ground in ("wall", "plane"):
                yield from self._of(restitution, ground)

    @staticmethod
    def _of(restitution: float, ground: str) -> Iterator[Finding]:
        ball = collide_sphere(FrameContext(1), centre=(0.0, 0.6, 0.0), radius=0.1)
        colliders = [rigid(ball, 2000.0, restitution=restitution)]
        walls = None
        if ground == "wall":
            walls = walled((-5.0, 0.0, -5.0), (5.0, 9.0, 5.0), *[WallRule.SEPARATE] * 6)
        else:
            colliders.append(collide_plane(FrameContext(1)))
        far = block(material("neo_hookean", 1000.0, youngs_modulus=1e4), (3.0, 3.0, 3.0), (3.1, 3.1, 3.1), CELL)
        run = SubstepSolver(far, "explicit_apic", cell_size=CELL, colliders=colliders, walls=walls)
        speeds = [0.0]
        while run.time < 0.45:
            run.step(0.001)
            speeds.append(float(bodies_of(run).world.twists()[0, 1]))
        fall = -min(speeds)
        what = f"restitution {restitution}, {ground}"
        yield Finding.relative(math.sqrt(2.0 * G * 0.5), fall, 0.01, f"{what}: speed of the fall [m/s]")
        rebound = max(speeds[int(np.argmin(speeds)) :])
        yield Finding(restitution, rebound / fall, 0.05, f"{what}: of the speed after the bounce")


class HangingBodies(VerificationProblem):
    """Bodies swing, turn and slide as their joints and motors let them; matter is not near.

    Scene: a box of 0.1 x 0.4 x 0.1 m hangs by a hinge at its upper end, 2 degrees aside, and by a ball joint; two such boxes hang
        on each other; a motor turns an impeller from rest with a torque that it needs all of, and with one that is plenty; a
        force pushes a slider up.
    Exact: the period of a small swing 2 pi sqrt(I / (m g l)), with I about the hinge; anchors stay together; the torque over I
        times the time, then the speed of the motor; force over mass, less gravity.
    Tolerance: 1 % of the period and of speeds; 1e-6 m.
    """

    name = "hanging_bodies"
    source = "textbook (physical pendulum, uniform acceleration)"

    def findings(self) -> Iterator[Finding]:
        """Hang, turn and push them."""
        density, tilt = 800.0, math.radians(2.0)
        mass = density * 0.1 * 0.4 * 0.1
        about = mass * (0.4**2 + 0.1**2) / 12.0 + mass * 0.2**2
        period = 2.0 * math.pi * math.sqrt(about / (mass * G * 0.2))
        centre = (0.2 * math.sin(tilt), 1.0 - 0.2 * math.cos(tilt), 0.0)
        box = collide_box(FrameContext(1), centre=centre, size=(0.1, 0.4, 0.1), rotation=(0.0, 0.0, 2.0), name="upper")
        for kind in (JointKind.HINGE, JointKind.BALL):
            run = _alone(rigid(box, density, joint=RigidJoint(kind, "", (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))))
            swing = [(0.0, centre[0])]
            yield Finding.relative(period, 2.0 * _half_swing(run, centre[0], swing), 0.01, f"{kind.value}: period [s]")
            (time, aside), axes = np.array(swing).T, ("time [s]", "centre aside [m]")
            self.show(f"{kind.value}", axes, (time, aside), (time, centre[0] * np.cos(2.0 * math.pi * time / period)))
        yield from self._chain(box, density)
        yield from self._driven(density)

    @staticmethod
    def _chain(upper: Collider, density: float) -> Iterator[Finding]:
        """Let two boxes hang on each other, thrown aside."""
        lower = collide_box(FrameContext(1), centre=(0.0, 0.4, 0.0), size=(0.1, 0.4, 0.1), name="lower")
        hung = rigid(upper, density, joint=RigidJoint(JointKind.BALL, "", (0.0, 1.0, 0.0)))
        also = rigid(lower, density, velocity=(1.0, 0.0, 0.5), joint=RigidJoint(JointKind.BALL, "upper", (0.0, 0.6, 0.0)))
        run, apart, held = _alone(also, hung), 0.0, list[np.ndarray]()
        for _ in range(200):
            turns, places = bodies_of(run).world.poses()
            frames = [rotation_matrix_of(turn) for turn in turns]
            held = held or [frame.T @ (np.array([0.0, 0.6, 0.0]) - place) for frame, place in zip(frames, places, strict=True)]
            one, other = (frame @ point + place for frame, point, place in zip(frames, held, places, strict=True))
            apart = max(apart, float(np.abs(one - other).max()))
            run.step(0.001)
        yield Finding(0.0, apart, 1e-6, "a chain of two: its anchors apart [m]")

    @staticmethod
    def _driven(density: float) -> Iterator[Finding]:
        """Turn an impeller, and push a slider."""
        bar = collide_box(FrameContext(1), centre=(0.0, 0.5, 0.0), size=(0.4, 0.1, 0.1))
        mass = density * 0.4 * 0.1 * 0.1
        about = mass * (0.4**2 + 0.1**2) / 12.0
        for torque, speed in ((0.05, 10.0), (5.0, 10.0)):
            joint = RigidJoint(JointKind.HINGE, "", (0.0, 0.5, 0.0), (0.0, 0.0, 1.0), None, speed, torque)
            run = _alone(rigid(bar, density, joint=joint))
            for _ in range(200):
                run.step(0.001)
            exact, found = min(torque * 0.2 / about, speed), float(bodies_of(run).world.twists()[0, 5])
            yield Finding.relative(exact, found, 0.01, f"a motor of {torque:g} N m: speed [rad/s]")
        run = _alone(rigid(bar, density, joint=RigidJoint(JointKind.SLIDER, speed=100.0, strength=60.0)))
        for _ in range(100):
            run.step(0.001)
        exact = (60.0 / mass - G) * 0.1
        yield Finding.relative(exact, float(bodies_of(run).world.twists()[0, 1]), 0.01, "a slider pushed by 60 N: speed [m/s]")


def _alone(*colliders: Collider) -> SubstepSolver:
    """Return a solver of bodies, with a little matter far off."""
    far = block(material("neo_hookean", 1000.0, youngs_modulus=1e4), (3.0, 3.0, 3.0), (3.1, 3.1, 3.1), CELL)
    return SubstepSolver(far, "explicit_apic", cell_size=CELL, colliders=colliders)


def _half_swing(run: SubstepSolver, before: float, swing: list[tuple[float, float]]) -> float:
    """Return the seconds between two passages of a body's centre through x = 0, from where it is before; `swing` is filled."""
    crossings: list[float] = []
    while len(crossings) < 2 and run.time < 5.0:
        run.step(0.001)
        now = float(bodies_of(run).world.centres()[0, 0])
        swing.append((run.time, now))
        if before * now <= 0.0 and now != before:
            crossings.append(run.time - 0.001 * now / (now - before))
        before = now
    return crossings[1] - crossings[0]


class RollingBall(VerificationProblem):
    """A ball rolls down a slope that is rough, and slides down one that is smooth; a box slides with friction.

    Scene: a ball of radius 0.1 m, and a box of 0.2 m, on a plane that falls by 20 degrees, 0.4 s.
    Exact: a ball that rolls is accelerated by 5/7 g sin(a), without friction by g sin(a); the box by g (sin(a) - mu cos(a)).
    Tolerance: 2 % of g sin(a): bodies begin at the plane, and their springs are pressed first.
    """

    name = "rolling_ball"
    source = "textbook (rolling and sliding on a slope)"

    def findings(self) -> Iterator[Finding]:
        """Let them go."""
        angle, span = math.radians(20.0), 0.4
        normal, along = np.array([math.sin(angle), math.cos(angle), 0.0]), np.array([math.cos(angle), -math.sin(angle), 0.0])
        pull = G * math.sin(angle)
        slope = collide_plane(FrameContext(1), rotation=(0.0, 0.0, -20.0))
        ball = collide_sphere(FrameContext(1), centre=tuple(0.1 * normal), radius=0.1)
        box = collide_box(FrameContext(1), centre=tuple(0.1 * normal), size=(0.2, 0.2, 0.2), rotation=(0.0, 0.0, -20.0))
        cases = (
            ("a ball rolls", ball, 0.6, 5.0 / 7.0 * pull),
            ("a ball slides", ball, 0.0, pull),
            ("a box slides", box, 0.2, pull - 0.2 * G * math.cos(angle)),
        )
        for what, body, friction, exact in cases:
            colliders = [rigid(dataclasses.replace(body, friction=friction), 1500.0), slope]
            run, way = _alone(*colliders), list[tuple[float, float]]()
            while run.time < span:
                run.step(0.001)
                moved = (bodies_of(run).world.centres()[0] - 0.1 * normal) @ along
                way.append((run.time, moved))
            time, measured = np.array(way).T
            self.show(what, ("time [s]", "way [m]"), (time, measured), (time, 0.5 * exact * time**2))
            yield Finding(exact, 2.0 * moved / run.time**2, 0.02 * pull, f"{what}: acceleration [m/s^2]")
