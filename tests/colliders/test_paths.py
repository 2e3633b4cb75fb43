"""Particle paths against thin, fast, concave and folding bodies, and domain walls."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import BOX, LEVEL_SET, PLANE, SPHERE, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate
from mpm_nodes.solver.colliders import ColliderSet

RULES = list(CollisionRule)


def turning(rate: float, until: float, keys: int = 65) -> tuple[np.ndarray, np.ndarray]:
    """Return pose times and quaternions of a turn about z at `rate` [rad/s]."""
    times = np.linspace(0.0, until, keys)
    return times, np.stack([np.cos(rate * times / 2), 0 * times, 0 * times, np.sin(rate * times / 2)], axis=1)


def body(shape: PosedLevelSets, rule=CollisionRule.SEPARATE, friction=0.0) -> Collider:
    return Collider("body", rule, friction, shape)


@pytest.mark.parametrize("rule", RULES)
def test_thin_rotating_plate_does_not_leak(flight, rule):
    """A plate a twentieth of a cell thick, turning at 8 rad/s through a cloud, pushes it and lets nothing through."""
    random = np.random.default_rng(3)
    cloud = random.uniform((-0.8, 0.02, -0.8), (0.8, 0.5, 0.8), (1500, 3))
    times, turns = turning(8.0, 0.15)
    plate = PosedLevelSets(BOX, (1.0, 0.0025, 1.0), times, turns)
    particles = flight(cloud, np.array([0.3, -2.0, 0.1]))
    colliders = ColliderSet([body(plate, rule)])
    particles.fly(colliders, 0.15, 0.005)
    position = particles.sorted("position")
    angle = 8.0 * 0.15
    along = position[:, 0] * np.cos(angle) + position[:, 1] * np.sin(angle)
    above = -position[:, 0] * np.sin(angle) + position[:, 1] * np.cos(angle)
    over_plate = (np.abs(along) < 0.97) & (np.abs(position[:, 2]) < 0.97)
    assert over_plate.sum() > 300
    assert (above[over_plate] > 0.0025).all()
    assert colliders.report(particles.store) == [("body", 0, 0.0)]


def test_stuck_particle_follows_the_body(flight):
    """Matter that sticks to a turning plate stays at its place on it: its distance from the axis does not drift."""
    times, turns = turning(5.0, 0.2)
    plate = PosedLevelSets(BOX, (1.0, 0.01, 1.0), times, turns)
    particles = flight(np.array([[0.5, 0.012, 0.0]]), np.array([0.0, -1.0, 0.0]))
    particles.fly(ColliderSet([body(plate, CollisionRule.STICKY)]), 0.2, 0.002)
    position = particles.sorted("position")[0]
    assert np.hypot(*position[:2]) == pytest.approx(0.5, abs=2e-3)
    assert np.arctan2(position[1], position[0]) == pytest.approx(5.0 * 0.2, abs=0.03)


def shell(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a bowl: half a sphere of radius 0.6 m with walls 0.06 m thick, open above."""
    polar = np.linspace(0.5 * np.pi, np.pi, rings)
    profile = np.concatenate([np.stack([r * np.sin(p), r * np.cos(p)], 1) for r, p in ((0.6, polar), (0.54, polar[::-1]))])
    turn = 2.0 * np.pi * np.arange(3 * rings) / (3 * rings)
    points = np.stack(
        [profile[:, :1] * np.cos(turn), np.repeat(profile[:, 1:], len(turn), 1), -profile[:, :1] * np.sin(turn)], axis=-1
    )
    wide, j = len(turn), np.arange(len(turn))
    after, faces = (j + 1) % wide, []
    for r in range(len(profile)):
        s = (r + 1) % len(profile)
        faces.append(np.stack([r * wide + j, s * wide + j, s * wide + after, r * wide + after], 1))
    return points.reshape(-1, 3), triangulate(np.full(wide * len(profile), 4), np.concatenate(faces).ravel())[0]


def test_concave_bowl_holds_what_is_thrown_in(flight):
    """Particles thrown into a thin-walled mesh bowl from all sides stay in it, whatever they slide along."""
    points, triangles = shell(12)
    level_set = mesh_level_set(points, solid_mesh(points, triangles).triangles, 0.02)
    random = np.random.default_rng(5)
    cloud = random.uniform((-0.3, -0.35, -0.3), (0.3, -0.05, 0.3), (800, 3))
    heading = random.normal(size=(800, 3))
    heading[:, 1] = -np.abs(heading[:, 1]) - 0.3
    particles = flight(cloud, 3.0 * heading / np.linalg.norm(heading, axis=1, keepdims=True))
    colliders = ColliderSet([body(PosedLevelSets(LEVEL_SET, level_sets=(level_set,)), CollisionRule.SLIP)])
    particles.fly(colliders, 0.3, 0.01)
    position = particles.sorted("position")
    below_rim = position[:, 1] < -0.05
    assert below_rim.sum() > 200
    assert (np.linalg.norm(position[below_rim], axis=1) < 0.57).all()
    ((_, inside, depth),) = colliders.report(particles.store)
    assert inside == 0 and depth == 0.0


def test_mesh_that_folds_within_a_frame_does_not_leak(flight):
    """A flat slab folds up like a book in one frame of 1/24 s: nothing that lay on it comes out below."""
    columns = np.linspace(-0.5, 0.5, 21)
    points, faces = [], []
    for k, x in enumerate(columns):
        points += [(x, y, z) for y in (-0.03, 0.03) for z in (-0.5, 0.5)]
        if k:
            a, b = 4 * (k - 1), 4 * k
            faces += [(a, a + 1, b + 1, b), (a + 2, b + 2, b + 3, a + 3), (a, b, b + 2, a + 2), (a + 1, a + 3, b + 3, b + 1)]
    end = 4 * (len(columns) - 1)
    faces += [(0, 2, 3, 1), (end, end + 1, end + 3, end + 2)]
    points = np.array(points)
    triangles, _ = triangulate(np.full(len(faces), 4), np.array(faces).ravel())
    solid = solid_mesh(points, triangles)

    def folded(angle: float) -> np.ndarray:
        bent, x = points.copy(), points[:, 0]
        bent[:, 0] = np.cos(angle) * x - np.sin(angle) * np.sign(x) * points[:, 1]
        bent[:, 1] = np.sin(angle) * np.abs(x) + np.cos(angle) * points[:, 1]
        return bent

    frame, keys = 1.0 / 24.0, 17
    times = np.linspace(0.0, frame, keys)
    poses = [folded(np.radians(70.0) * t / frame) for t in times]
    speeds = np.gradient(np.array(poses), times, axis=0)
    sets = tuple(mesh_level_set(pose, solid.triangles, 0.03, velocities=speed) for pose, speed in zip(poses, speeds, strict=True))
    random = np.random.default_rng(7)
    cloud = random.uniform((-0.4, 0.05, -0.4), (0.4, 0.2, 0.4), (600, 3))
    particles = flight(cloud, np.zeros(3))
    colliders = ColliderSet([body(PosedLevelSets(LEVEL_SET, level_sets=sets, level_set_times=times))])
    steps = 48
    particles.fly(colliders, frame, frame / steps)
    position = particles.sorted("position")
    angle = np.radians(70.0)
    above = np.cos(angle) * position[:, 1] - np.sin(angle) * np.abs(position[:, 0])  # height over the fold's mid surface
    along = np.cos(angle) * np.abs(position[:, 0]) + np.sin(angle) * position[:, 1]  # those past 0.5 m were flung off the edge
    on_slab = along < 0.48
    assert on_slab.sum() > 300
    assert (above[on_slab] > 0.02).all()
    assert position[on_slab, 1].max() > 0.3  # carried up, not left behind
    assert colliders.report(particles.store)[0][1] == 0


def test_report_counts_particles_inside(flight):
    """The report names the body, counts the particles inside it and gives the greatest depth."""
    places = np.array([[0.0, 0.0, 0.0], [0.45, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, -0.2], [3.0, 3.0, 3.0]])
    particles = flight(places, np.zeros(3))
    colliders = ColliderSet([body(PosedLevelSets(SPHERE, (0.5,))), body(PosedLevelSets(PLANE))])
    colliders.pose(0.0, 0.001)
    (first, count, depth), (_, below, _) = colliders.report(particles.store)
    assert (first, count, below) == ("body", 3, 0)
    assert depth == pytest.approx(0.5, abs=1e-6)


def test_particle_inside_comes_out(flight):
    """A particle that begins inside a body leaves it within a few substeps and is not thrown."""
    particles = flight(np.array([[0.0, -0.12, 0.0]]), np.zeros(3))
    colliders = ColliderSet([body(PosedLevelSets(PLANE))])
    particles.fly(colliders, 0.05, 0.01)
    assert 0.0 < particles.sorted("position")[0, 1] < 0.01
    assert np.abs(particles.sorted("velocity")).max() == 0.0


def test_walls(flight):
    """Each side of the domain does what its rule says: stick, slide, let pass, delete."""
    walls = Walls(
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0),
        (WallRule.STICKY, WallRule.SLIP, WallRule.SEPARATE, WallRule.OPEN, WallRule.DELETE, WallRule.SLIP),
    )
    middle = np.full((5, 3), 0.5)
    velocity = np.array([[-3.0, 0.0, 1.0], [3.0, 0.0, 0.5], [0.5, -3.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, -3.0]])
    particles = flight(middle, velocity)
    particles.fly(ColliderSet([], walls), 0.5, 0.01)
    assert particles.store.count == 4  # the fifth left through the deleting side
    position, speed = particles.sorted("position"), particles.sorted("velocity")
    np.testing.assert_allclose(speed, [[0, 0, 0], [0, 0, 0.5], [0.5, 0, 0], [0, 3, 0]], atol=1e-6)
    assert position[0, 0] == pytest.approx(0.0, abs=1e-6) and position[1, 0] == pytest.approx(1.0, abs=1e-6)
    assert position[2, 1] == pytest.approx(0.0, abs=1e-6) and position[3, 1] == pytest.approx(2.0, abs=1e-5)


def test_result_does_not_depend_on_threads(flight):
    """One thread and two give the same bytes."""
    random = np.random.default_rng(11)
    cloud = random.uniform(-1.0, 1.0, (2000, 3))
    results = []
    before = numba.get_num_threads()
    for threads in (1, 2):
        if threads > numba.config.NUMBA_NUM_THREADS:
            pytest.skip("this machine allows one thread only")
        numba.set_num_threads(threads)
        particles = flight(cloud, np.array([1.0, -1.0, 0.5]))
        particles.fly(ColliderSet([body(PosedLevelSets(SPHERE, (0.5,)), friction=0.3)]), 0.05, 0.01)
        results.append(particles.sorted("position").tobytes() + particles.sorted("velocity").tobytes())
    numba.set_num_threads(before)
    assert results[0] == results[1]


def test_far_from_the_origin_is_the_same(flight):
    """The scene moved by a kilometre gives the same motion to the rounding of stored positions."""
    random = np.random.default_rng(13)
    cloud = random.uniform(-0.9, 0.9, (500, 3))
    moved = []
    for shift in (0.0, 1000.0):
        particles = flight(cloud + shift, np.array([0.5, -2.0, 0.0]), origin=(shift,) * 3)
        shape = PosedLevelSets(SPHERE, (0.5,), translations=np.full((1, 3), shift))
        particles.fly(ColliderSet([body(shape, friction=0.2)], origin=(shift,) * 3), 0.1, 0.01)
        moved.append(particles.sorted("position") - shift)
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-7)


@pytest.mark.parametrize("friction", [0.0, 0.3, 2.0])
def test_friction_acts_on_paths(flight, friction):
    """On a plane and on a wall, a path that comes down at 45 degrees loses mu times its normal speed, until it stands (Coulomb)."""
    kept = max(0.0, 1.0 - friction)
    plane = ColliderSet([body(PosedLevelSets(PLANE), friction=friction)])
    floor = Walls(
        (-5.0, 0.0, -5.0), (5.0, 5.0, 5.0), tuple(WallRule.SEPARATE if k == 2 else WallRule.OPEN for k in range(6)), friction
    )
    for colliders in (plane, ColliderSet([], floor)):
        particles = flight(np.array([[0.0, 0.003, 0.0]]), np.array([1.0, -1.0, 0.0]))
        particles.step(colliders, 0.0, 0.01)
        assert np.abs(particles.sorted("velocity")[0] - [kept, 0.0, 0.0]).max() < 0.02
