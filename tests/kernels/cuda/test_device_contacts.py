"""Contacts of solves on a device: only the blocks near bodies and walls come to the host, and the numbers are those of all."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Particles, RigidBody, WallRule, Walls
from mpm_nodes.kernels.collisions import paths
from mpm_nodes.kernels.level_sets.level_set import BOX, LEVEL_SET, SPHERE, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.nodes.collide import collide_sphere
from mpm_nodes.solver import colliders
from mpm_nodes.solver.device.residency import Residency
from mpm_nodes.solver.run import SubstepSolver

sys.path.append(str(Path(__file__).parents[2] / "solver"))
import fusion_scenes as scenes
from emulated import COMPILER, Emulated

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
SUBSTEPS = 8
RIGID = pytest.mark.phenomena("rigid_bodies")


def moving(kind: int, sizes: tuple[float, ...], *places: tuple[float, float, float], **level_sets: object) -> PosedLevelSets:
    """Return a shape that is at one place, or moves from one to the other in a second."""
    return PosedLevelSets(kind, sizes, np.arange(float(len(places))), None, np.array(places), **level_sets)


def crystal() -> PosedLevelSets:
    """Return the level set of an octahedron that moves and grows."""
    corner = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], float)
    faces = np.array([(a, b, c) if (a + b + c) % 2 == 0 else (a, c, b) for a in (0, 1) for b in (2, 3) for c in (4, 5)])
    level_sets = tuple(mesh_level_set(size * corner, faces, 0.04) for size in (0.16, 0.18))
    return moving(LEVEL_SET, (), (0.25, 0.0, 0.25), (0.25, 0.6, 0.25), level_sets=level_sets, level_set_times=np.array([0.0, 0.05]))


BALL = moving(SPHERE, (0.12,), (0.5, 0.3, 0.25), (-0.4, 0.3, 0.25))
PLATE = moving(BOX, (0.4, 0.01, 0.4), (0.25, 0.27, 0.25), (0.25, 0.77, 0.25))
SCENES = {
    "bodies": scenes.SCENES["bodies"],
    "walls": scenes.SCENES["walls"],
    "surrounded": scenes.SCENES["surrounded"],
    "level set": {"colliders": (Collider("crystal", CollisionRule.SEPARATE, 0.3, crystal()),)},
    "sticky": {"colliders": (Collider("ball", CollisionRule.STICKY, 0.0, BALL), Collider("lid", CollisionRule.SLIP, 0.0, PLATE))},
    "adhesion": {"colliders": (Collider("ball", CollisionRule.SEPARATE, 0.2, BALL, adhesion=2e3),)},
    "plate": {"colliders": (Collider("plate", CollisionRule.SEPARATE, 0.3, PLATE),)},
    "rigid": {
        "colliders": (
            dataclasses.replace(
                collide_sphere(FrameContext(1), centre=(0.25, 0.62, 0.25), radius=0.12),
                rigid=RigidBody("body", 300.0, velocity=(0, -4, 0)),
            ),
            scenes.SCENES["bodies"]["colliders"][0],
        )
    },
}


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Let the CPU find all contacts: those that the device finds itself are in `test_contacts_there`."""
    monkeypatch.setattr(colliders, "on_host_because", lambda each: "asked for")


def matter() -> Particles:
    """Return the cube of `scenes.matter` with an arm upwards, and another beside it: they reach far away from all that it meets."""
    cube = scenes.matter(scenes.MIXED)
    pieces = [(np.ones(len(cube["position"]), bool), np.zeros(3))]
    for axis, shift, step in ((1, (0.0, 0.0, 0.0), 0.5), (2, (1.0, 0.0, 0.0), -0.5)):
        others = cube["position"][:, [a for a in range(3) if a != axis]]
        keep = (np.abs(others - 0.3) < 0.1).all(axis=1)
        pieces += [(keep, np.array(shift) + step * far * np.eye(3)[axis]) for far in range(1, 8)]
    columns = {name: np.concatenate([values[keep] for keep, _ in pieces]) for name, values in cube.attributes.items()}
    columns["position"] = np.concatenate([cube["position"][keep] + away for keep, away in pieces])
    return Particles(columns, cube.materials, cube.spacing)


def ran(around, device="cpu"):
    """Return attributes and forces on bodies behind some substeps, and what rounding allows both."""
    run = SubstepSolver(matter(), "explicit_apic", cell_size=scenes.CELL, device=device, **around)
    run.step_context.contact_forces = True
    allowed, mass = scenes.rounding(run, SUBSTEPS, scenes.DT), float(run.particles.rows("mass").sum())
    for number in range(SUBSTEPS):
        run.step(scenes.DT, keep=number == SUBSTEPS - 1)
    told = run.step_context.report["contact_forces"]
    found = {**scenes.attributes(run), **{name: np.array(told[name]) for name in ("force", "torque")}}
    momentum = mass * allowed["velocity"]  # in a second, about centres that lie less than a metre away
    return found, {**allowed, "force": momentum, "torque": momentum}


def note_shares(patch):
    """Return a list that gets the shares of blocks, of the grid and of particles, that contacts look at."""
    shares, of_grid, of_particles = [], colliders.blocks_in_reach, paths.find_blocks_in_reach

    def note_grid(grid, *others):
        found = of_grid(grid, *others)
        shares.append(len(found) / len(grid.coord))
        return found

    def note_particles(*given):
        of_particles(*given)
        shares.append(given[-1].mean())

    patch.setattr(colliders, "blocks_in_reach", note_grid)
    patch.setattr(paths, "find_blocks_in_reach", note_particles)
    return shares


def look_at_everything(patch):
    """Let contacts look at all blocks, and bring whole arrays for them."""
    on_host = Residency.on_host
    patch.setattr(Residency, "on_host", lambda self, array, parts=None: on_host(self, array))
    patch.setattr(colliders, "blocks_in_reach", lambda grid, *others: np.arange(len(grid.coord)))
    patch.setattr(paths, "find_blocks_in_reach", lambda *given: given[-1].fill(1))


@pytest.mark.parametrize("scene", [pytest.param(each, marks=RIGID if each == "rigid" else ()) for each in SCENES])
def test_contacts_of_the_blocks_near_bodies_are_all_contacts(scene, device_folder, monkeypatch):
    """The bits are those of whole arrays, and the numbers those of the CPU to rounding."""
    with monkeypatch.context() as patch:
        shares = note_shares(patch)
        near, allowed = ran(SCENES[scene], Emulated(device_folder))
    with monkeypatch.context() as patch:
        look_at_everything(patch)
        whole, _ = ran(SCENES[scene], Emulated(device_folder))
    here, _ = ran(SCENES[scene])
    assert len(shares) == 2 * SUBSTEPS and max(shares) < 0.75
    assert scene == "walls" or np.abs(near["force"]).max() > 0.0
    assert near.keys() == whole.keys() == here.keys()
    for name, values in here.items():
        np.testing.assert_array_equal(near[name], whole[name], name)
        apart = float(np.abs(values.astype(float) - near[name]).max(initial=0.0))
        assert apart <= scenes.WITHIN * allowed.get(name, 0.0), name


# ---------------------------------------------------------------- what is copied
def column(width: int, height: int) -> Particles:
    """Return a column of jelly of so many cells, at rest."""
    spacing = 0.5 * scenes.CELL
    axes = [(np.arange(2 * cells) + 0.5) * spacing for cells in (width, height, width)]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    zero = np.zeros(len(position), np.int32)
    return Particles({"position": position, "material": zero}, (scenes.MATERIALS["fixed_corotated"],), spacing)


def standing(width: int, height: int, device, **more) -> SubstepSolver:
    """Return the solver of a column on a wall, a few substeps old."""
    floor = Walls((-2.0, 0.0, -2.0), (4.0, 9.0, 4.0), [WallRule.OPEN] * 2 + [WallRule.SEPARATE] + [WallRule.OPEN] * 3, 0.3)
    run = SubstepSolver(column(width, height), "explicit_apic", cell_size=scenes.CELL, walls=floor, device=device, **more)
    for _ in range(3):
        run.step(1e-4, keep=False)
    return run


def copied(run: SubstepSolver) -> np.ndarray:
    """Return the bytes that go up and down in a substep, by hundreds of bytes."""
    before = np.array(run.residency.moved)
    run.step(1e-4, keep=False)
    return np.array(run.residency.moved) - before


def test_copies_grow_with_the_area_in_contact_and_not_with_the_matter(device_folder):
    """A column three times as tall moves as many bytes; one four times as wide no more than four times as many."""
    short, tall, wide = (copied(standing(*size, Emulated(device_folder))) for size in ((4, 8), (4, 24), (8, 8)))
    np.testing.assert_array_equal(short, tall)
    assert (short > 0).all() and (wide <= 4 * short).all() and (wide > short).all()


def test_blocks_far_from_the_ground_are_never_copied(device_folder):
    """What the host has of them stays as it is, and whoever asks for the whole array gets what the device has."""
    run, plain = (standing(4, 24, device) for device in (Emulated(device_folder), "cpu"))
    far = run.particles.unpack("position")[:, 1] > 1.0
    assert 0.4 < far.mean() < 0.6
    run.step(1e-4, keep=False)
    plain.step(1e-4, keep=False)
    velocity = run.particles.kept("velocity")
    rows = velocity[: 3 * run.particles.stride].reshape(3, -1)[:, : run.particles.count]
    rows[:, far] = -77.0
    for solver in (run, plain):
        solver.step(1e-4, keep=False)
    assert (rows[:, far] == -77.0).all() and (rows[:, ~far] != -77.0).all()
    found, wanted = (solver.snapshot(["velocity"])["velocity"] for solver in (run, plain))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_report_of_what_lies_inside_bodies_changes_nothing(device_folder):
    """At the end of a frame positions come to the host; the device keeps them."""
    run = scenes.solver(scenes.MIXED, **SCENES["sticky"], device=Emulated(device_folder))
    run.step(scenes.DT, keep=False)
    up, down = run.residency.moved
    assert run.colliders.report(run.particles)[0][0] == "ball"
    assert run.residency.moved[1] > down
    run.residency.on_device(run.particles.kept("position"))
    assert run.residency.moved[0] == up


# ---------------------------------------------------------------- parts of arrays
@pytest.fixture
def shared(device_folder):
    """Residency, an array of which the device has -1, -2, ... and the host 1, 2, ..., and two parts that overlap."""
    residency, array = Residency(Emulated(device_folder)), np.arange(1, 41, dtype=np.float32)
    residency.on_device(array, write=True, read=False).view(np.float32)[:] = -array
    one = residency.parts("one", np.array([2, 20]), np.array([4, 3]))
    other = residency.parts("other", np.array([4, 30]), np.array([2, 4]), 2)
    return residency, array, one, other, np.array([2, 3, 4, 5, 20, 21, 22]), np.array([4, 6, 30, 32, 34, 36])


def test_parts_alone_come_and_go(shared):
    residency, array, one, _, at, _ = shared
    wanted = np.arange(1.0, 41.0)
    wanted[at] *= -1.0
    moved = list(residency.moved)
    assert residency.on_host(array, one) is array
    np.testing.assert_array_equal(array, wanted)
    assert residency.moved == [moved[0], moved[1] + 4 * 7]
    array[at] = 5.0
    residency.on_host(array, one)  # what is there is not brought again
    there = -np.arange(1.0, 41.0)
    there[at] = 5.0
    np.testing.assert_array_equal(residency.on_device(array).view(np.float32), there)
    assert residency.moved == [moved[0] + 4 * 7, moved[1] + 4 * 7]


def test_the_whole_array_has_what_changed_in_parts(shared):
    residency, array, one, other, at, then = shared
    residency.on_host(array, one)[at] = 5.0
    residency.on_host(array, other)[then] += 0.5
    wanted = -np.arange(1.0, 41.0)
    wanted[at] = 5.0
    wanted[then] += 0.5
    np.testing.assert_array_equal(residency.on_host(array), wanted)
    np.testing.assert_array_equal(residency.on_device(array).view(np.float32), wanted)


def test_parts_that_nobody_may_write_are_not_given_back(shared):
    residency, array, one, other, at, _ = shared
    with residency.reading():
        residency.on_host(array, one)[at] = 5.0
        residency.on_host(array, other)
    np.testing.assert_array_equal(residency.on_device(array).view(np.float32), -np.arange(1.0, 41.0))
    with residency.reading():
        np.testing.assert_array_equal(residency.on_host(array), -np.arange(1.0, 41.0))


def test_an_array_that_is_on_both_sides_goes_up_in_part(shared):
    residency, array, one, _, at, _ = shared
    with residency.reading():
        residency.on_host(array)
    moved = list(residency.moved)
    residency.on_host(array, one)[at] = 5.0
    assert residency.on_device(array).view(np.float32)[2] == 5.0
    assert residency.moved == [moved[0] + 4 * 7, moved[1]]


def test_what_the_device_writes_in_full_takes_nothing_from_the_host(shared):
    residency, array, one, _, at, _ = shared
    residency.on_host(array, one)[at] = 5.0
    residency.on_device(array, write=True, read=False).view(np.float32)[:] = 3.0
    np.testing.assert_array_equal(residency.on_host(array, one)[at], 3.0)
    assert (residency.on_host(array) == 3.0).all()


def test_equal_parts_are_the_same_and_none_copy_nothing(shared):
    residency, array, one, *_ = shared
    moved = list(residency.moved)
    assert residency.parts("one", np.array([2, 9, 20]), np.array([4, 0, 3])) is one
    none = residency.parts("none", np.zeros(0, np.int64), np.zeros(0, np.int64))
    np.testing.assert_array_equal(residency.on_host(array, none), np.arange(1.0, 41.0))
    np.testing.assert_array_equal(residency.on_device(array).view(np.float32), -np.arange(1.0, 41.0))
    assert residency.moved == moved
