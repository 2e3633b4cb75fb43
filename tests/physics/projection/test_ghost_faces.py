"""Faces inside sticky bodies: what they mirror, and that matter does not slip on them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from solver_scenes import LIQUID, cube

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HELD
from mpm_nodes.physics.projection.numerics.ghost_faces import HEAVIEST, NEAREST, GhostFaces
from mpm_nodes.physics.projection.numerics.projection import ProjectionSettings, fields_of, solid_faces_of
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import changed

H = 0.1
SYRUP = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 20.0}, 1000.0, "syrup")
Where = Callable[[np.ndarray], np.ndarray]
SHORT = 1e-6
"""A substep in which a body hardly turns [s]."""
OFFSETS = ((0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0))
"""Where faces of each axis lie in their cell."""


def sloped(degrees: float, height: float) -> PosedLevelSets:
    """Return a plane through a point of the y axis, turned about z."""
    half = 0.5 * math.radians(degrees)
    pose = np.array([[math.cos(half), 0.0, 0.0, math.sin(half)]])
    return PosedLevelSets(PLANE, pose_times=np.zeros(1), rotations=pose, translations=np.array([[0.0, height, 0.0]]))


def scene(*colliders: Collider, walls: Walls | None = None, where: Where = lambda x: x[:, 0] > 0.0) -> SubstepSolver:
    """Return six cells of liquid on a side, where it is to be, after a step of nothing, with the bodies."""
    box = Walls((-1.0,) * 3, (2.0,) * 3, (WallRule.OPEN,) * 6)
    run = SubstepSolver(
        kept(cube(LIQUID, cells=6), where),
        "incompressible",
        cell_size=H,
        walls=walls or box,
        colliders=list(colliders),
        gravity=(0, 0, 0),
        dtype=np.float64,
        dt_max=1e-3,
        origin=(0.0, 0.0, 0.0),
    )
    run.step(1e-3)
    return run


def kept(particles: Particles, where: Where) -> Particles:
    """Return the particles at places for which `where` is true."""
    there = where(particles["position"])
    return dataclasses.replace(particles, attributes={name: values[there] for name, values in particles.attributes.items()})


def mirrors_of(run: SubstepSolver) -> tuple[GhostFaces, list[np.ndarray], list[np.ndarray]]:
    """Return the mirrored faces, the states of all and their places [m]."""
    staggered = run.stores["staggered"]
    run.colliders.pose(0.0, SHORT)
    solid = solid_faces_of(staggered, run.colliders, SHORT)
    found = GhostFaces(solid, staggered)
    places = [staggered.positions(tuple(int(2 * o) for o in offset)) for offset in OFFSETS]
    return found, [state.copy() for state in solid.states], places


@pytest.mark.parametrize("height", [0.2, 0.225, 0.25, 0.28])
def test_a_shear_that_is_0_at_the_surface_goes_on_behind_it(height):
    """Velocities that grow with the distance from a level plane are continued into it to rounding, wherever it lies."""
    along = (1.0, 0.0, 0.3)
    plane = Collider("plane", CollisionRule.STICKY, 0.0, sloped(0.0, height))
    run = scene(plane, where=lambda x: x[:, 1] > height)
    found, states, places = mirrors_of(run)
    exact = [speed * (x[:, 1] - height) for speed, x in zip(along, places, strict=True)]
    values = [np.where(state == FREE, v, 0.0) for state, v in zip(states, exact, strict=True)]
    found.extend(values)
    seen = 0
    for axis, each in enumerate(found.axes):
        assert (states[axis][each.faces] == HELD).all() and (states[axis][each.leaders] == FREE).all()
        # a surface just before a leader is not a long lever, nor is one where the matter before it is about to end
        mass = run.stores["staggered"].array(f"face_{'xyz'[axis]}")[3::4]
        light = -each.factor * mass[each.faces] < 0.999 * HEAVIEST * mass[each.leaders]
        clear = (places[axis][each.leaders][:, 1] - height > 0.999 * NEAREST * H) & light
        np.testing.assert_allclose(values[axis][each.faces][clear], exact[axis][each.faces][clear], atol=1e-12)
        assert (each.factor <= 0.0).all() and (each.factor >= -2.0 / NEAREST).all()
        seen += int(clear.sum())
    assert seen > 20 and not len(found.axes[1].faces)


def test_slopes_are_not_mirrored():
    """A slope that crosses the grid holds what is inside, as it is told."""
    assert mirrors_of(scene(Collider("plane", CollisionRule.STICKY, 0.0, sloped(20.0, 0.23))))[0].idle


def test_what_turns_with_a_body_is_mirrored_as_such():
    """Matter that turns with a plate has the plate's velocity behind its surface, too."""
    spin, height = 2.0, 0.25
    turns = np.array([[1.0, 0.0, 0.0, 0.0], [math.cos(0.5 * spin), 0.0, math.sin(0.5 * spin), 0.0]])
    shape = PosedLevelSets(PLANE, pose_times=np.array([0.0, 1.0]), rotations=turns, translations=np.array([[0.3, height, 0.3]] * 2))
    run = scene(Collider("plate", CollisionRule.STICKY, 0.0, shape), where=lambda x: x[:, 1] > height)
    found, _, places = mirrors_of(run)
    exact = [np.cross([0.0, spin, 0.0], x - [0.3, height, 0.3])[:, axis] for axis, x in enumerate(places)]
    values = [v.copy() for v in exact]
    found.extend(values)
    for axis in (0, 2):
        each = found.axes[axis]
        assert len(each.faces) > 10 and np.abs(exact[axis][each.faces]).max() > 0.1
        np.testing.assert_allclose(values[axis][each.faces], exact[axis][each.faces], atol=1e-5)


def test_pushes_are_handed_over_as_velocities_are_mirrored():
    """Power is the same: what pushes mirrored faces, times their velocity, is what leaders get, times theirs."""
    found, states, _ = mirrors_of(scene(Collider("plane", CollisionRule.STICKY, 0.0, sloped(0.0, 0.23))))
    random = np.random.default_rng(1)
    velocity = [np.where(state == FREE, random.normal(size=len(state)), 0.0) for state in states]
    push = [random.normal(size=len(state)) for state in states]
    handed = [each.copy() for each in push]
    found.hand_over(handed)
    leading = sum(float(v @ f) for v, f in zip(velocity, handed, strict=True))
    found.extend(velocity, apart=False)
    assert sum(float(v @ f) for v, f in zip(velocity, push, strict=True)) == pytest.approx(leading, rel=1e-12)


def test_in_a_corner_faces_are_mirrored_twice():
    """Beyond two sticky walls a face along both has the sign of its leader; beyond a sticky and a smooth one the other."""
    rules = (WallRule.STICKY, WallRule.OPEN, WallRule.STICKY, WallRule.OPEN, WallRule.SLIP, WallRule.OPEN)
    run = scene(walls=Walls((0.0, 0.0, 0.0), (2.0,) * 3, rules))
    found, _, places = mirrors_of(run)

    def factor(axis: int, place: tuple[float, float, float]) -> float:
        each = found.axes[axis]
        near = np.abs(places[axis][each.faces] / H - place).max(axis=1) < 1e-6
        assert near.sum() == 1
        return float(each.factor[near][0])

    assert factor(2, (-0.5, -0.5, 2.0)) == pytest.approx(1.0)
    assert factor(2, (-0.5, 2.5, 2.0)) == pytest.approx(-1.0)
    assert factor(0, (2.0, -0.5, -0.5)) == pytest.approx(-1.0)


def test_a_body_that_clamps_holds_what_is_inside():
    """Nothing is mirrored in a body that clamps: the matter in it is part of it."""
    plane = sloped(0.0, 0.25)
    assert not mirrors_of(scene(Collider("plane", CollisionRule.STICKY, 0.0, plane)))[0].idle
    assert mirrors_of(scene(Collider("plane", CollisionRule.STICKY, 0.0, plane, clamp=True)))[0].idle


def test_matter_in_a_body_is_not_a_long_lever():
    """A face with as much mass as its leader is led no further than that leaves the leader most of its push."""
    run = scene(Collider("plane", CollisionRule.STICKY, 0.0, sloped(0.0, 0.15)))
    found, _, _ = mirrors_of(run)
    for axis, each in enumerate(found.axes):
        mass = run.stores["staggered"].array(f"face_{'xyz'[axis]}")[3::4]
        assert (-each.factor * mass[each.faces] <= HEAVIEST * mass[each.leaders] * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("off", [0.0, 0.25, 0.5, 0.75])
def test_a_sheared_layer_keeps_its_profile(off):
    """A viscous layer sheared between sticky plates has the same rate at the plates as within, wherever they lie."""
    low, edge, rate = off * H, 0.4, 1.0
    start = kept(cube(SYRUP, cells=6), lambda x: (x[:, 1] > low) & (x[:, 1] < low + edge))
    gradient = np.zeros((len(start), 3, 3))
    gradient[:, 0, 1] = rate
    velocity = np.zeros((len(start), 3))
    velocity[:, 0] = rate * (start["position"][:, 1] - low)
    over = np.array([[0.0, 1.0, 0.0, 0.0]] * 2)
    lid = PosedLevelSets(
        PLANE,
        pose_times=np.array([0.0, 1.0]),
        rotations=over,
        translations=np.array([[0.0, low + edge, 0.0], [rate * edge, low + edge, 0.0]]),
    )
    plates = [Collider("lid", CollisionRule.STICKY, 0.0, lid), Collider("floor", CollisionRule.STICKY, 0.0, sloped(0.0, low))]
    slip = (WallRule.OPEN,) * 4 + (WallRule.SLIP,) * 2
    run = SubstepSolver(
        changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
        "incompressible",
        cell_size=H,
        walls=Walls((-1.0, -1.0, 0.0), (2.0, 2.0, 0.6), slip),
        colliders=plates,
        gravity=(0, 0, 0),
        dtype=np.float64,
        dt_max=1e-3,
    )
    for _ in range(10):
        run.step(1e-3)
    place, found = run.particles.unpack("position"), run.particles.unpack("velocity_gradient").reshape(-1, 9)[:, 1]
    middle = np.abs(place[:, 0] - 0.3) < 0.11
    # the open ends turn, and are felt by a few per cent two cells away; faces held half a cell deep lost a third at the plates
    np.testing.assert_allclose(found[middle], rate, rtol=0.05)


def test_a_tube_a_cell_wide_keeps_its_liquid_whole():
    """Where a leader leads faces on four sides pressure still pushes it: uneven liquid falls no faster than g."""
    rules = (WallRule.OPEN, WallRule.OPEN, *(WallRule.STICKY,) * 4)
    start = kept(cube(LIQUID, cells=6), lambda x: (x[:, 1] < H) & (x[:, 2] < H))
    random = np.random.default_rng(3)
    place = start["position"] + random.uniform(-0.2 * H, 0.2 * H, start["position"].shape)
    run = SubstepSolver(
        changed(start, position=np.clip(place, 1e-3, [0.6, H - 1e-3, H - 1e-3])),
        "incompressible",
        cell_size=H,
        walls=Walls((-1.0, 0.0, 0.0), (2.0, H, H), rules),
        gravity=(9.81, 0, 0),
        dtype=np.float64,
        dt_max=2e-3,
        origin=(0.0, 0.0, 0.0),
    )
    for _ in range(50):
        run.step(2e-3)
        assert run.step_context.report["projection"]["unsolved"] == 0
    assert np.abs(run.particles.unpack("velocity")).max() < 9.81 * run.time


@pytest.mark.parametrize("height", [0.23, 0.37, 0.4, 0.43])
def test_handing_over_keeps_all_but_what_the_body_takes(height):
    """Bound velocities are the nearest ones in the energy of single faces, also across the edges of blocks.

    What a leader and its faces lose together, each times its share, is nothing; what is lost of the energy is that of the change.
    """
    run = scene(Collider("plane", CollisionRule.STICKY, 0.0, sloped(0.0, height)), where=lambda x: x[:, 1] > height - 0.15)
    staggered = run.stores["staggered"]
    random = np.random.default_rng(2)
    for axis in "xyz":
        staggered.array(f"velocity_{axis}")[:] = random.normal(size=staggered.array(f"velocity_{axis}").shape)
    run.colliders.pose(0.0, SHORT)
    solid = solid_faces_of(staggered, run.colliders, SHORT)
    fields = fields_of(staggered, solid, SHORT, ProjectionSettings())
    ghosts = GhostFaces(solid, staggered)
    own = ghosts.own(fields)
    masses = [staggered.array(f"face_{axis}")[3::4][: 64 * staggered.count].astype(float) for axis in "xyz"]
    for single, mass in zip((fields.nx, fields.ny, fields.nz), masses, strict=True):
        single[:] = mass
    before = [v.astype(float) for v in GhostFaces.velocities(fields)]
    for v, each, its in zip(before, ghosts.axes, own, strict=True):
        np.testing.assert_array_equal(v[each.faces], its)
    ghosts.fold(fields, np.zeros(192 * staggered.count), own, np.zeros(192 * staggered.count, np.uint8))
    after = [v.astype(float) for v in GhostFaces.velocities(fields)]
    ghosts.extend(after)
    crossing = 0
    for each, m, v, new, whole in zip(ghosts.axes, masses, before, after, (fields.nx, fields.ny, fields.nz), strict=True):
        lost, handed = m * (v - new), np.zeros(len(m))
        np.add.at(handed, each.leaders, each.factor * lost[each.faces])
        np.testing.assert_allclose(lost[each.leaders], -handed[each.leaders], atol=1e-12 * np.abs(m * v).max())
        assert 0.5 * m @ (v**2 - new**2) == pytest.approx(0.5 * m @ (v - new) ** 2, rel=1e-9, abs=1e-15)
        bound = m.copy()
        np.add.at(bound, each.leaders, each.factor**2 * m[each.faces])
        np.testing.assert_allclose(whole, bound, rtol=1e-12)
        crossing += int((each.faces >> 6 != each.leaders >> 6).sum())
    assert sum(len(each.faces) for each in ghosts.axes) > 20
    assert (crossing > 10) == (height > 0.3)


@pytest.mark.parametrize("coupled", [False, True])
def test_what_moves_with_a_body_keeps_its_velocity(coupled):
    """Viscous matter that goes along with a sticky plate goes on: faces inside are bound to the plate as it moves."""
    height, speed = 0.23, np.array([0.3, 0.2, -0.1])
    over = np.array([[0.0, height, 0.0], [0.0, height, 0.0] + speed])
    level = np.array([[1.0, 0.0, 0.0, 0.0]] * 2)
    shape = PosedLevelSets(PLANE, pose_times=np.array([0.0, 1.0]), rotations=level, translations=over)
    start = kept(cube(SYRUP, cells=6), lambda x: x[:, 1] > height)
    run = SubstepSolver(
        changed(start, velocity=np.tile(speed, (len(start), 1))),
        {"preset": "incompressible", "set": {"coupled": coupled}},
        cell_size=H,
        walls=Walls((-1.0,) * 3, (2.0,) * 3, (WallRule.OPEN,) * 6),
        colliders=[Collider("plate", CollisionRule.STICKY, 0.0, shape)],
        gravity=(0, 0, 0),
        dtype=np.float64,
        dt_max=1e-3,
    )
    for _ in range(5):
        run.step(1e-3)
    np.testing.assert_allclose(run.particles.unpack("velocity"), np.tile(speed, (len(start), 1)), atol=1e-9)
