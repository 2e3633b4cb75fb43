"""Contacts of rigid bodies among each other and with colliders: on surfaces that move, and in hollows; matter is not near."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Mesh
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.nodes.collide import collide_box, collide_sphere
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import CELL, G, bodies_of, rigid
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import block, material

__all__ = ["BodiesInHollows", "MovingSurfaces", "lathe_mesh", "mesh_collider"]


def _run(*colliders: Collider, gravity: float = G, cell_size: float = CELL) -> SubstepSolver:
    """Return a solver of bodies, with a little matter far off."""
    far = block(material("neo_hookean", 1000.0, youngs_modulus=1e4), (3.0, 3.0, 3.0), (3.1, 3.1, 3.1), cell_size)
    return SubstepSolver(far, "explicit_apic", cell_size=cell_size, colliders=colliders, gravity=(0.0, -gravity, 0.0))


def _moving(collider: Collider, way: tuple[float, float, float], turn: float = 0.0, span: float = 1.0) -> Collider:
    """Return a collider that moves by `way` [m] and turns by `turn` [rad] about y in `span` seconds."""
    shape = collider.shape
    turns = np.array([[1.0, 0.0, 0.0, 0.0], [math.cos(0.5 * turn), 0.0, math.sin(0.5 * turn), 0.0]])
    places = np.stack([shape.translations[0], shape.translations[0] + way])
    moved = dataclasses.replace(shape, pose_times=np.array([0.0, span]), rotations=turns, translations=places)
    return dataclasses.replace(collider, shape=moved)


class MovingSurfaces(VerificationProblem):
    """A belt drags a box along, a turntable carries it round, and a bat hits a ball: colliders with keys have a velocity.

    Scene: a box of 0.2 m on a belt of 2 m/s with a friction of 0.3; a box 0.3 m off the axis of a disc that turns by 2 rad/s,
        with a friction of 0.5; free of gravity a bat of 1 m/s and a ball at rest.
    Exact: mu g t until the belt's speed; the speed of its place on the disc; (1 + restitution) times the speed of the bat.
    Tolerance: 2 % of speeds; of the bat 0.05 m/s, as of bounces. Missed: what slides fast hops on MuJoCo's contacts, here by a
        fifth of a cell, so that friction comes in pushes; it slides so on a floor that stands, too.
    """

    name = "moving_surfaces"
    source = "textbook (friction on a belt, uniform rotation, Newton's impact law)"
    misses = ("on a belt after 0.3 s: speed [m/s]",)

    def findings(self) -> Iterator[Finding]:
        """Drag, carry and hit."""
        box = collide_box(FrameContext(1), centre=(0.0, 0.1, 0.0), size=(0.2, 0.2, 0.2))
        floor = collide_box(FrameContext(1), centre=(0.0, -0.1, 0.0), size=(8.0, 0.2, 8.0), friction=0.3)
        run = _run(rigid(box, 1500.0), _moving(floor, (2.0, 0.0, 0.0)))
        speeds = []
        for _ in range(900):
            run.step(0.001)
            speeds.append(float(bodies_of(run).world.twists()[0, 0]))
        yield Finding.relative(0.3 * G * 0.3, speeds[299], 0.02, "on a belt after 0.3 s: speed [m/s]")
        yield Finding.relative(2.0, speeds[-1], 0.02, "on a belt after 0.9 s: speed [m/s]")
        off = collide_box(FrameContext(1), centre=(0.3, 0.1, 0.0), size=(0.1, 0.2, 0.1))
        disc = dataclasses.replace(floor, friction=0.5)
        run = _run(rigid(off, 1500.0, velocity=(0.0, 0.0, -0.6), angular_velocity=(0.0, 2.0, 0.0)), _moving(disc, (0, 0, 0), 2.0))
        for _ in range(500):
            run.step(0.001)
        twist = bodies_of(run).world.twists()[0]
        yield Finding.relative(0.6, float(np.hypot(twist[0], twist[2])), 0.02, "on a turntable: speed [m/s]")
        yield Finding.relative(2.0, float(twist[4]), 0.02, "on a turntable: turn [rad/s]")
        for restitution in (0.0, 0.5, 0.9):
            ball = rigid(collide_sphere(FrameContext(1), centre=(0.0, 0.25, 0.0), radius=0.1), 2000.0, restitution=restitution)
            run = _run(ball, _moving(floor, (0.0, 1.0, 0.0)), gravity=0.0)
            for _ in range(400):
                run.step(0.001)
            leaves = float(bodies_of(run).world.twists()[0, 1])
            yield Finding(1.0 + restitution, leaves, 0.05, f"off a bat, restitution {restitution:g}: speed [m/s]")


def lathe_mesh(profile: np.ndarray, sides: int) -> Mesh:
    """Return the mesh that a closed profile (radius, height), counter-clockwise, shape (n, 2) [m], makes as it turns about y."""
    angle, count = 2.0 * np.pi * np.arange(sides) / sides, len(profile)
    radius, height = profile.T
    rings = [radius * np.cos(angle[:, None]), np.broadcast_to(height, (sides, count)), -radius * np.sin(angle[:, None])]
    k, j = np.meshgrid(np.arange(sides), np.arange(count), indexing="ij")
    after, above = (k + 1) % sides, (j + 1) % count
    faces = np.stack([k * count + j, after * count + j, after * count + above, k * count + above], axis=-1)
    return Mesh(np.stack(rings, axis=-1).reshape(-1, 3), np.full(sides * count, 4, np.int32), faces.reshape(-1).astype(np.int32))


def mesh_collider(name: str, mesh: Mesh, voxel: float, friction: float = 0.0) -> Collider:
    """Return a closed mesh of quads as a collider that stands still; voxels of its level set in metres."""
    corners = mesh.indices.reshape(-1, 4)
    triangles = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]).astype(np.int64)
    level_set = mesh_level_set(mesh.points, triangles, voxel, 0.0, None, name)
    return Collider(name, CollisionRule.SEPARATE, friction, PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,)), mesh)


class BodiesInHollows(VerificationProblem):
    """Meshes that are not convex meet as what they are: a ball slides in a bowl, and a ring lies about a post.

    Scene: a ball of 0.1 m slides without friction in a bowl of 0.5 m, a mesh of 96 x 24 quads, from 12 degrees aside; a ring, a
        rigid body of a mesh, falls over a post of the same height and lies on the floor.
    Exact: the period 2 pi sqrt((R - r) / g) (1 + a^2 / 16) of a pendulum; the lowest place of the ball; half of the ring's height.
    Tolerance: 3 % of the period, whose bowl has edges; a tenth of a cell of places.
    """

    name = "bodies_in_hollows"
    source = "textbook (pendulum)"

    def findings(self) -> Iterator[Finding]:
        """Let them slide and fall."""
        angle = math.radians(12.0)
        swings = np.linspace(0.0, 0.5 * np.pi, 25)
        inner = np.stack([0.5 * np.sin(swings), 0.5 - 0.5 * np.cos(swings)], axis=1)[::-1]
        outer = np.stack([0.6 * np.sin(swings), 0.5 - 0.6 * np.cos(swings)], axis=1)
        profile = np.maximum(np.concatenate([outer, inner]), [[1e-4, -1.0]])
        bowl = mesh_collider("bowl", lathe_mesh(profile, 96), 0.5 * CELL)
        place = (0.4 * math.sin(angle), 0.5 - 0.4 * math.cos(angle), 0.0)
        run = _run(rigid(collide_sphere(FrameContext(1), centre=place, radius=0.1), 2000.0), bowl)
        crossings, low, before = list[float](), 9.0, place[0]
        while len(crossings) < 3 and run.time < 4.0:
            run.step(0.001)
            x, y, _ = (float(each) for each in bodies_of(run).world.centres()[0])
            low = min(low, y)
            if before * x <= 0.0 and x != before:
                crossings.append(run.time - 0.001 * x / (x - before))
            before = x
        exact = 2.0 * math.pi * math.sqrt(0.4 / G) * (1.0 + angle**2 / 16.0)
        yield Finding.relative(exact, crossings[2] - crossings[0], 0.03, "a ball in a bowl: period [s]")
        yield Finding(0.1, low, 0.1 * CELL, "a ball in a bowl: lowest place [m]")
        yield from self._ring()

    @staticmethod
    def _ring() -> Iterator[Finding]:
        profile = np.array([[0.2, -0.1], [0.3, -0.1], [0.3, 0.1], [0.2, 0.1]])
        mesh = lathe_mesh(profile, 48)
        own = mesh_collider("ring", mesh, 0.5 * CELL)
        shape = dataclasses.replace(own.shape, translations=np.array([[0.02, 0.5, 0.0]]))
        ring = dataclasses.replace(own, shape=shape, mesh=dataclasses.replace(mesh, points=mesh.points + [0.02, 0.5, 0.0]))
        post = collide_box(FrameContext(1), centre=(0.0, 0.1, 0.0), size=(0.1, 0.2, 0.1))
        floor = collide_box(FrameContext(1), centre=(0.0, -0.1, 0.0), size=(8.0, 0.2, 8.0), friction=0.3)
        run = _run(rigid(ring, 500.0), floor, post)
        for _ in range(800):
            run.step(0.001)
        world = bodies_of(run).world
        yield Finding(0.1, float(world.centres()[0, 1]), 0.1 * CELL, "a ring about a post: height [m]")
        mass = 500.0 * 0.2 * 0.5 * 48 * math.sin(2.0 * math.pi / 48) * (0.3**2 - 0.2**2)
        yield Finding.relative(1.0 / mass, float(world.inverse_masses()[0, 0]), 1e-5, "a ring: 1 / its mass [1/kg]")
