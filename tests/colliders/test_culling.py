"""Culling in lanes changes nothing: particles and nodes end as they do when each takes the exact path past every body."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS, clear_lanes, write_frame
from mpm_nodes.kernels.collisions.paths import collide_particle
from mpm_nodes.kernels.collisions.posing import sample_body
from mpm_nodes.kernels.collisions.rules import to_body
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.lanes.indexed import mask_bits
from mpm_nodes.kernels.lanes.memory import load
from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, LEVEL_SET, PLANE, SPHERE, Bodies, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.state import ParticleStore

CELL = 0.1
DT = 0.01
TIMES = np.array([0.0, 0.02])
TURNS = np.array([[1.0, 0.0, 0.0, 0.0], [np.cos(0.1), 0.0, np.sin(0.08), np.sin(0.06)]])
MOVES = np.array([[0.05, -0.02, 0.03], [0.08, 0.01, 0.0]])
OPEN_BOX = Walls((-9.0,) * 3, (9.0,) * 3, (WallRule.OPEN,) * 6)


def cuboid(half: float, voxel: float = 0.04):
    """Return the level set of a mesh: a cuboid."""
    corner = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * (half, 0.7 * half, 0.4 * half)
    quads = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    return mesh_level_set(corner, np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]), voxel)


def shape(name: str) -> PosedLevelSets:
    """Return a body of each kind; all but "still" turn and move."""
    motion = {"pose_times": TIMES, "rotations": TURNS, "translations": MOVES}
    if name == "keyed":
        return PosedLevelSets(LEVEL_SET, level_sets=(cuboid(0.5), cuboid(0.55)), level_set_times=TIMES, **motion)
    if name in ("mesh", "still"):
        return PosedLevelSets(LEVEL_SET, level_sets=(cuboid(0.5),), **(motion if name == "mesh" else {}))
    kind, sizes = {
        "sphere": (SPHERE, (0.5,)),
        "box": (BOX, (0.5, 0.3, 0.2)),
        "capsule": (CAPSULE, (0.2, 0.4)),
        "plane": (PLANE, ()),
        "pea": (SPHERE, (0.12,)),
    }[name]
    return PosedLevelSets(kind, sizes, **motion)


KINDS = ("sphere", "pea", "box", "capsule", "plane", "mesh", "still", "keyed")


def cloud(dtype: type, seed: int = 1, count: int = 6000) -> ParticleStore:
    """Return particles around the origin, still to fast (0.9 cells a substep along an axis), in the order of a sort."""
    random = np.random.default_rng(seed)
    store = ParticleStore(["velocity"], cell_size=CELL, dtype=dtype)
    speed = 0.9 * CELL / DT * random.uniform(0.0, 1.0, (count, 1)) ** 4
    store.append(
        {
            "position": random.uniform(-1.1, 1.1, (count, 3)),
            "velocity": speed * random.uniform(-1.0, 1.0, (count, 3)),
            "mass": np.ones(count),
            "id": np.arange(count),
        }
    )
    store.sort()
    return store


@numba.njit
def every_path(cloud, velocity, dt, walls, doomed, b):
    """Collide every particle by itself, with every body."""
    bodies = lend_plain(b)
    offset, stride, coord, start, unit, h, shift = cloud
    every = np.arange(b.real.shape[0])
    for q in range(len(coord)):
        x0 = shift[0] + h * (4.0 * coord[q, 0] + 3.5)
        x1 = shift[1] + h * (4.0 * coord[q, 1] + 3.5)
        x2 = shift[2] + h * (4.0 * coord[q, 2] + 3.5)
        for p in range(start[q], start[q + 1]):
            collide_particle(p, (offset, velocity, stride), (x0, x1, x2), (h / unit, h, dt), walls, doomed, every, bodies)


def check_paths(colliders: ColliderSet, dtype: type) -> int:
    """Collide a cloud both ways, compare all bits, and return how many particles met something."""
    store, doomed = cloud(dtype), np.zeros(6000, np.uint8)
    offset, velocity = store.offset.copy(), store.array("velocity").copy()
    colliders.pose(0.0, DT)
    before = velocity.copy()
    every_path(
        colliders.particle_blocks(store)._replace(offset=offset),
        velocity,
        DT,
        colliders.shapes()[0],
        doomed,
        colliders.bodies(),
    )
    keep = ~doomed.astype(bool)
    rows = [row.reshape(3, -1)[:, : store.count][:, keep] for row in (offset[: 3 * store.stride], velocity[: 3 * store.stride])]
    colliders.collide_particles(store)
    np.testing.assert_array_equal(store.rows("position"), rows[0])
    np.testing.assert_array_equal(store.rows("velocity"), rows[1])
    return int((velocity != before).sum()) + int(doomed.sum())


@pytest.mark.parametrize("rule", list(CollisionRule))
@pytest.mark.parametrize("kind", KINDS)
def test_particles_past_one_body(kind, rule):
    """Every kind of body with every rule: each particle, near or far, slow or fast, ends with the bits of its own exact path."""
    assert check_paths(ColliderSet([Collider("body", rule, 0.3, shape(kind))]), np.float32) > 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_particles_past_many_bodies_and_walls(dtype):
    """Bodies that overlap each other and walls of every rule: still the same bits, in either precision."""
    bodies = [
        Collider(f"body {k}", rule, 0.2 * k, shape(kind))
        for k, (kind, rule) in enumerate(
            zip(("sphere", "plane", "mesh", "keyed"), [*CollisionRule, CollisionRule.SLIP], strict=True)
        )
    ]
    sides = (WallRule.STICKY, WallRule.SLIP, WallRule.SEPARATE, WallRule.OPEN, WallRule.DELETE, WallRule.SEPARATE)
    walls = Walls((-0.95, -0.9, -1.0), (0.9, 0.95, 0.93), sides)
    assert check_paths(ColliderSet(bodies, walls, dtype), dtype) > 1000


@numba.njit
def clear_points(b, x, offset, h, arrays):
    """Return which points at `offset` [cells] from x are found clear of body b at the end of the substep."""
    bodies = lend_plain(arrays)
    clear = np.ones(offset.shape[1], np.bool_)
    reals, integers = np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32)
    if write_frame((reals, integers), 0, b, 1, (x[0], x[1], x[2]), 14.0, (h, 0.0, 0.0), bodies):
        for p in range(0, offset.shape[1], 16):
            o0, o1, o2 = load(offset[0], p), load(offset[1], p), load(offset[2], p)
            zero = const(o0, 0.0)
            bits = mask_bits(clear_lanes((reals, integers), 0, (o0, o1, o2), (zero, zero, zero), 1.0 / h, bodies))
            for lane in range(16):
                clear[p + lane] = bits >> lane & 1
    return clear


@numba.njit
def distances(b, points, arrays):
    """Return phi [m] of body b at the end of the substep at points, shape (3, n)."""
    bodies, phi = lend_plain(arrays), np.empty(points.shape[1])
    for p in range(phi.size):
        y0, y1, y2 = to_body(b, 1, points[0, p], points[1, p], points[2, p], bodies.real)
        phi[p] = sample_body(b, 1.0, y0, y1, y2, bodies)[0]
    return phi


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "keyed"])
def test_what_is_found_clear(kind):
    """Points are found clear of a body when they lie two hundredths of a cell or more outside, and never inside it."""
    random = np.random.default_rng(4)
    colliders = ColliderSet([Collider("body", CollisionRule.SLIP, 0.0, shape(kind))])
    colliders.pose(0.0, DT)
    arrays = Bodies(colliders._integer, colliders._real, *colliders._lattices)
    inside = 0
    for centre in random.uniform(-1.0, 1.0, (40, 3)):
        offset = random.uniform(-4.0, 4.0, (3, 320)).astype(np.float32)
        clear = clear_points(0, centre, offset, CELL, arrays)
        phi = distances(0, centre[:, None] + CELL * offset, arrays)
        assert not clear[phi <= 0.0].any()
        assert clear[phi > 0.02 * CELL].all()
        inside += int((phi <= 0.0).sum())
    assert inside > 0


def test_report_agrees_with_every_distance():
    """The report counts just the particles whose exact distance is negative, and names the deepest."""
    store = cloud(np.float32, seed=8)
    colliders = ColliderSet([Collider(kind, CollisionRule.SLIP, 0.0, shape(kind)) for kind in ("mesh", "capsule", "keyed")])
    colliders.pose(0.0, DT)
    arrays = Bodies(colliders._integer, colliders._real, *colliders._lattices)
    position = store.unpack("position").T.copy()
    for b, (_, count, depth) in enumerate(colliders.report(store)):
        phi = distances(b, position, arrays)
        assert count == (phi < 0.0).sum() > 0
        assert depth == pytest.approx(-phi.min(), rel=1e-9)
