"""Thin meshes and level sets keep what lies on their sides apart, as thin boxes do (`test_sides`)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver import sides
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sides import one_sided
from mpm_nodes.verification.scenes import block, changed, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=1e5)


def rotation(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def body(*level_sets, rule=CollisionRule.SLIP, **motion) -> Collider:
    """Return a collider of one level set, or of one per key of its motion."""
    times = motion.pop("times", np.zeros(1))
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=level_sets, level_set_times=times, **motion)
    return Collider("card", rule, 0.0, shape, None)


def card(size, centre=(0.0, 0.0, 0.0), degrees=0.0, open_sheet=False):
    """Return the level set of a box mesh, its size and centre in cells, or of an open sheet in its place."""
    half = 0.5 * np.array(size)
    if open_sheet:
        points = np.array([(-half[0], 0, -half[2]), (-half[0], 0, half[2]), (half[0], 0, half[2]), (half[0], 0, -half[2])])
        triangles = np.array([[0, 1, 2], [0, 2, 3]])
    else:
        mesh = box_mesh(tuple(size))
        points, triangles = mesh.points, triangulate(mesh.counts, mesh.indices)[0]
    voxel = 0.5 * H * min(min(size), 1.0)
    points = H * (points + centre) @ rotation(degrees).T
    return mesh_level_set(points, triangles, voxel, H * size[1] if open_sheet else 0.0)


def walls(*boxes, voxel=0.5):
    """Return the level set of boxes (low and high corner in cells) that overlap."""
    points, triangles = [], []
    for n, (low, high) in enumerate(boxes):
        mesh = box_mesh(tuple(np.subtract(high, low)))
        points.append(H * (mesh.points + 0.5 * np.add(low, high)))
        triangles.append(triangulate(mesh.counts, mesh.indices)[0] + 8 * n)
    return mesh_level_set(np.concatenate(points), np.concatenate(triangles), voxel * H)


def solve(particles, *colliders, **options) -> SubstepSolver:
    """Return a solve in double precision without gravity."""
    given = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.0, 0.0, 0.0), **options}
    return SubstepSolver(particles, given.pop("substeps", "explicit_apic"), colliders=colliders, **given)


def taken(particles, chosen):
    """Return some of the particles."""
    return type(particles)({n: particles[n][chosen] for n in particles.attributes}, particles.materials, particles.spacing)


def moving(part, *velocity):
    """Return a block that moves [m/s]."""
    return changed(part, velocity=np.tile(np.array(velocity, float), (len(part), 1)))


def box(low, high):
    """Return a jelly block between corners in cells."""
    return block(JELLY, tuple(H * np.array(low, float)), tuple(H * np.array(high, float)), H)


@pytest.mark.parametrize(("thickness", "degrees", "open_sheet"), [(0.4, 30.0, False), (0.2, 30.0, True), (1.0, 0.0, False)])
def test_a_mesh_without_friction_drags_nothing_across(thickness, degrees, open_sheet):
    """A block that slides along one side of a card leaves the one on the other side at rest, to the bit."""
    half = 0.5 * thickness
    particles = merge_particles([box((0, -4 - half, 0), (6, -half, 4)), moving(box((0, half, 0), (6, 4 + half, 4)), 1.0, 0.0, 0.0)])
    low, turn = len(particles) // 2, rotation(degrees)
    shift = [0.0, 0.1 * H, 0.0]
    particles = changed(particles, position=particles["position"] @ turn.T + shift, velocity=particles["velocity"] @ turn.T)
    thin = body(card((16, thickness, 12), (2, 0, 2), degrees, open_sheet), translations=np.array([shift]))
    solver = solve(particles, thin)
    assert not one_sided(solver.colliders, solver.spline_width, H)
    solver.advance(0.05, 2e-3)
    velocity = solver.snapshot(["velocity"])["velocity"] @ turn
    assert np.abs(velocity[:low]).max() == 0.0
    assert np.abs(velocity[low:] - [1.0, 0.0, 0.0]).max() < 1e-3


def test_a_bowl_keeps_its_inside_from_its_outside():
    """Matter that turns in a bowl of 0.3 cells goes on turning; the layer below the bowl stays at rest; none comes through."""
    radius, thickness = 8.0, 0.3
    angles, rings = np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0.0, 0.5 * np.pi, 18)[1:]
    ring = np.stack(
        [np.outer(np.sin(rings), np.cos(angles)), -np.outer(np.cos(rings), np.ones(64)), np.outer(np.sin(rings), np.sin(angles))],
        -1,
    )
    points = H * radius * np.concatenate([[(0.0, -1.0, 0.0)], ring.reshape(-1, 3)])
    near, following = np.arange(64), (np.arange(64) + 1) % 64
    triangles = [np.stack([0 * near, 1 + near, 1 + following], -1)]
    for k in range(len(rings) - 1):
        a, b, c, d = 1 + 64 * k + near, 1 + 64 * k + following, 65 + 64 * k + near, 65 + 64 * k + following
        triangles += [np.stack([a, c, b], -1), np.stack([b, c, d], -1)]
    bowl = mesh_level_set(points, np.concatenate(triangles), 0.5 * thickness * H, thickness * H)
    every = box((-11, -11, -11), (11, -3, 11))
    away = np.linalg.norm(every["position"], axis=1) / H
    inner, outer = (away < radius - 0.45) & (away > 5.0), (away > radius + 0.45) & (away < 10.5)
    spin = np.cross([0.0, 1.0, 0.0], every["position"]) * inner[:, None]
    particles, alone = (taken(changed(every, velocity=spin), part) for part in (inner | outer, inner))
    solvers = [solve(particles, body(bowl)), solve(alone)]
    assert len(solvers[0].colliders.plates) == 1
    for solver in solvers:
        solver.advance(0.02, 2e-3)
    end, free = (solver.snapshot(["velocity"]) for solver in solvers)
    inner = inner[inner | outer]
    assert np.abs(end["velocity"][~inner]).max() < 1e-12
    away = np.linalg.norm(end["position"], axis=1) / H
    assert (away[inner] < radius).all() and (away[~inner] > radius).all()
    kept, given = (
        np.cross(x, v)[:, 1].sum()
        for x, v in ((end["position"][inner], end["velocity"][inner]), (free["position"], free["velocity"]))
    )
    assert kept == pytest.approx(given, rel=0.01)


@pytest.mark.parametrize("bends", [False, True])
def test_a_card_that_moves_takes_only_what_is_before_it(bends):
    """A card at 3 m/s pushes the block before it; the one behind stays at rest, and nobody passes. Keys of its shape or pose."""
    span, way = 0.04, 0.04 * 3.0
    particles = merge_particles([box((0, 0.5, 0), (4, 3.5, 4)), box((0, -3.5, 0), (4, -0.5, 4))])
    if bends:
        times = np.linspace(0.0, span, 7)
        keys = [card((12, 0.4, 12), (2, 3.0 * t / H, 2)) for t in times]
        thin = body(*keys, rule=CollisionRule.SEPARATE, times=times)
    else:
        moves = np.array([[0.0, 0.0, 0.0], [0.0, way, 0.0]])
        thin = body(
            card((12, 0.4, 12), (2, 0, 2)),
            rule=CollisionRule.SEPARATE,
            pose_times=np.array([0.0, span]),
            translations=moves,
            rotations=np.tile([1.0, 0, 0, 0], (2, 1)),
        )
    solver = solve(particles, thin)
    for _ in range(80):
        solver.step(5e-4)
    end, before = solver.snapshot(["velocity"]), len(particles) // 2
    assert np.abs(end["velocity"][before:]).max() == 0.0
    assert end["position"][:before, 1].min() > way
    assert end["velocity"][:before, 1].mean() > 2.0


def test_sides_are_found_anew_when_something_has_moved(monkeypatch):
    """Slow motion asks for sides in few substeps; a solve that goes on from a checkpoint between two of them has the same bits."""
    particles = merge_particles([box((0, 0.5, 0), (4, 3.5, 4)), box((0, -3.5, 0), (4, -0.5, 4))])
    thin = body(
        card((12, 0.4, 12), (2, 0, 2)),
        rule=CollisionRule.SEPARATE,
        pose_times=np.array([0.0, 0.1]),
        translations=np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.0]]),
        rotations=np.tile([1.0, 0, 0, 0], (2, 1)),
    )
    asked = {"mark_sides": 0, "sides_of_particles": 0}
    for name in asked:
        kernel = getattr(sides.kernels, name)

        def counted(*arguments, kernel=kernel, name=name):
            asked[name] += 1
            return kernel(*arguments)

        monkeypatch.setattr(sides.kernels, name, counted)
    whole, first, second = (solve(particles, thin) for _ in range(3))
    for _ in range(60):
        whole.step(time_left=0.02)
    moved = (whole.time * 3.0 + 2.0 * np.abs(whole.snapshot(["velocity"])["velocity"]).max() * whole.time) / H
    assert 2 <= asked["mark_sides"] <= 3 + whole.time * 3.0 / (sides.LAG * H)
    assert 2 <= asked["sides_of_particles"] <= 3 + moved / sides.TRAVEL
    for _ in range(23):
        first.step(time_left=0.02)
    facts, arrays = SolverState(first).to_arrays()
    SolverState.from_arrays(facts, {name: values.copy() for name, values in arrays.items()}).revive(second)
    for _ in range(37):
        second.step(time_left=0.02)
    assert second.time == whole.time
    assert np.array_equal(second.particles.unpack("position"), whole.particles.unpack("position"))


@pytest.mark.parametrize(("foot", "slides"), [(2.5, (0.0, 0.0, 1.0)), (0.5, (0.0, 0.0, 1.0)), (0.5, (1.0, 0.0, 0.0))])
def test_walls_that_meet_make_rooms(foot, slides):
    """Where a wall stands on another each is a sheet: matter in each of three rooms moves as if it were alone.

    Also right at the foot of the wall, where a node lies in both, and where matter is pushed against the wall.
    """
    level_set = walls(((-10, -0.5, -4), (10, 0.5, 8)), ((-0.5, 0, -4), (0.5, 10, 8)))
    rooms = [
        moving(box((-3, -4.5, 0), (3, -0.5, 4)), 1.0, 0.0, 0.0),
        moving(box((-4.5, foot, 0), (-0.5, foot + 4, 4)), *slides),
        box((0.5, foot, 0), (4.5, foot + 4, 4)),
        box((4.5, 0.5, 0), (8.5, 2.5, 4)),
    ]
    solver = solve(merge_particles(rooms), body(level_set))
    assert len(solver.colliders.plates) == 2
    solver.advance(0.02, 2e-3)
    velocity = np.split(solver.snapshot(["velocity"])["velocity"], np.cumsum([len(room) for room in rooms])[:-1])
    assert np.abs(velocity[2]).max() < 1e-12 and np.abs(velocity[3]).max() < 1e-12
    assert np.abs(velocity[0] - [1.0, 0.0, 0.0]).max() < 1e-3
    assert foot < 1.0 or np.abs(velocity[1] - slides).max() < 1e-3  # at the foot the mesh's own corner is uneven


def test_a_knife_of_a_mesh_cuts_a_falling_block():
    """A block falls on the edge of an upright card of 0.2 cells: in two parts, as fast as it would fall, none through the blade."""
    blade = body(card((12, 0.2, 12), (-6, 0, 2), 90.0, open_sheet=True), rule=CollisionRule.SEPARATE)
    start = moving(box((-3, 0.5, 0), (3, 4.5, 4)), 0.0, -2.0, 0.0)
    solver = solve(start, blade, gravity=(0.0, -9.81, 0.0))
    solver.advance(0.1, 5e-4)
    end = solver.snapshot(["velocity"])
    fall = (start["position"] - end["position"])[:, 1].mean()
    assert fall == pytest.approx(2.0 * 0.1 + 0.5 * 9.81 * 0.1 * (0.1 + 5e-4), rel=5e-3)
    assert (np.sign(start["position"][:, 0]) == np.sign(end["position"][:, 0])).all()


def test_a_block_beside_the_rim_of_a_mesh_moves_as_without_it():
    """A spinning block two and a half cells beside the rim, astride the card's plane, keeps its velocities to rounding."""
    spun = box((2.6, -2, 0), (6.6, 2, 4))
    spun = changed(spun, velocity=np.cross([0.0, 0.0, 8.0], spun["position"] - spun["position"].mean(axis=0)))
    ends = []
    for colliders in ((), (body(card((10, 0.4, 12), (-5, 0, 2))),)):
        solver = solve(spun, *colliders)
        for _ in range(20):
            solver.step(5e-4)
        ends.append(solver.snapshot(["velocity"]))
    assert len(solver.particles.block_sides) == 3
    assert np.abs(ends[0]["velocity"] - ends[1]["velocity"]).max() < 1e-11


def test_fronts_are_the_same_from_key_to_key():
    """A card that turns over in eight keys has one front in all of them: no matter changes sides between two keys."""
    keys = [card((12, 0.4, 12), (0, 0, 0), 25.0 * n) for n in range(8)]
    solver = solve(box((0, 1, 0), (2, 3, 2)), body(*keys, times=np.linspace(0.0, 0.1, 8)))
    found = [solver.colliders.sheets_of(level_set)[0].points.normals.mean(axis=0) for level_set in keys]
    assert all(before @ after > 0.85 for before, after in pairwise(found))
