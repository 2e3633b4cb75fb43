"""Bodies that matter may leave hold the nodes before them once matter touches: not sooner, not later, and they let go."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, FrameContext, WallRule, Walls
from mpm_nodes.kernels.collisions.contact_rows import BODY, NORMAL
from mpm_nodes.kernels.collisions.touching import filled
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.kernels.transfers.weights import weights
from mpm_nodes.nodes.collide import collide_box, collide_plane
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contact import sliding_acceleration
from mpm_nodes.verification.scenes import block, changed, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=5e4)
OPEN, SEPARATE = WallRule.OPEN, WallRule.SEPARATE
FLOORS = ("wall", "plane", "box", "mesh")
BESIDE = 0.25
"""Distance of a node before the surface in most tests [cells]: the surface lies three quarters of a cell above one."""


def floor(kind, friction=0.0):
    """Return options that put a floor with its surface at y = 0, on which matter may part from it."""
    context, knobs = FrameContext(1), {"rule": CollisionRule.SEPARATE, "friction": friction}
    size, centre = (20 * H, 8 * H, 20 * H), (2 * H, -4 * H, 2 * H)
    if kind == "wall":
        return {"walls": Walls((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), (OPEN, OPEN, SEPARATE, OPEN, OPEN, OPEN), friction)}
    if kind == "plane":
        return {"colliders": [collide_plane(context, **knobs)]}
    if kind == "box":
        return {"colliders": [collide_box(context, size=size, centre=centre, **knobs)]}
    mesh = box_mesh(size)
    level_set = mesh_level_set(mesh.points + centre, triangulate(mesh.counts, mesh.indices)[0], 0.5 * H)
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,), level_set_times=np.zeros(1))
    return {"colliders": [Collider("floor", CollisionRule.SEPARATE, friction, shape)]}


def solve(kind, before=BESIDE, above=0.0, velocity=(0.0, 0.0, 0.0), gravity=0.0, substeps="explicit_apic", friction=0.0):
    """Return a jelly cube `above` cells over a floor that lies `before` cells under a layer of nodes."""
    start = block(JELLY, (0, above * H, 0), (4 * H, (4 + above) * H, 4 * H), H)
    start = changed(start, velocity=np.tile(np.array(velocity, float), (len(start), 1)))
    options = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, -gravity, 0.0), "origin": (0.0, before * H, 0.0)}
    return SubstepSolver(start, substeps, **options, **floor(kind, friction))


def sinking(*scene, **options):
    """Return how far a cube that stands on the floor sinks in 0.06 s [m]."""
    solver = solve(*scene, gravity=9.81, **options)
    before = solver.particles.unpack("position")[:, 1].mean()
    solver.advance(0.06, 3e-4 if options.get("substeps", "explicit_apic") == "explicit_apic" else 4e-3)
    return before - solver.particles.unpack("position")[:, 1].mean()


def held(solver):
    """Return the contacts that stop matter of 1 m/s in a short substep: those before which no gap is left."""
    solver.step(1e-5, keep=True)
    solver.colliders.pose(0.0, 1e-5)
    rows = solver.colliders.grid_contacts(solver.grid)
    return rows[(rows[:, BODY : BODY + 3] * rows[:, NORMAL : NORMAL + 3]).sum(axis=1) > -1.0]


def held_layers(solver):
    """Return the distances from the floor of the nodes that it holds before its surface [cells]."""
    rows = held(solver)
    y = solver.grid.unpack("position")[rows[:, 0].astype(int), 1] / H
    return np.unique(np.round(y[y > 1e-3], 3))


@pytest.mark.parametrize("kind", FLOORS)
def test_matter_lies_as_deep_wherever_the_floor_is_between_the_nodes(kind):
    """A cube sinks alike, within 5 %, with a layer of nodes on the floor and with one 1/8 and 3/8 of a cell before it."""
    ways = np.array([sinking(kind, before) for before in (0.0, 0.125, 0.375)])
    assert np.abs(ways / ways.mean() - 1).max() < 0.05


def test_implicit_steps_lie_as_deep():
    """The same in implicit steps thirteen times as long."""
    implicit = {"preset": "implicit_apic", "set": {"tolerance": 1e-6}}
    ways = np.array([sinking("wall", before, substeps=implicit) for before in (0.0, 0.125)])
    assert abs(ways[1] / ways[0] - 1) < 0.05


@pytest.mark.parametrize("substeps", ["explicit_apic", {"preset": "explicit_apic", "set": {"kernel": "cubic"}}])
@pytest.mark.parametrize("kind", FLOORS)
@pytest.mark.parametrize("before", [0.05, 0.25, 0.45])
def test_nodes_before_a_floor_are_held_once_matter_touches_it(kind, before, substeps):
    """Held where the cube stands on it, and not where it comes from half a cell above, though its mass reaches the nodes."""
    down = {"velocity": (0.0, -1.0, 0.0), "substeps": substeps}
    assert held_layers(solve(kind, before, **down)) == pytest.approx([before])
    assert len(held_layers(solve(kind, before, above=0.5, **down))) == 0


@pytest.mark.parametrize("kind", FLOORS)
def test_matter_leaves_freely(kind):
    """A cube that touches a floor and goes up, and along it, keeps every bit of its momentum: nothing pulls or rubs."""
    solver = solve(kind, velocity=(0.5, 1.0, 0.0), friction=0.6)
    solver.advance(0.06, 3e-4)
    velocity = solver.particles.unpack("velocity")
    assert np.abs(velocity - [0.5, 1.0, 0.0]).max() < 1e-12


@pytest.mark.parametrize("kind", FLOORS)
def test_no_contact_adds_energy_or_takes_too_much(kind):
    """A cube thrown on the floor: its kinetic energy relative to the floor falls in a contact, and friction keeps to its cone."""
    solver = solve(kind, velocity=(1.0, -1.0, 0.0), friction=0.3)
    solver.step(1e-5, keep=True)
    grid = solver.grid
    mass = grid.unpack("mass")
    before = np.random.default_rng(4).normal(size=(len(mass), 3)) + [1.0, -1.0, 0.0]
    grid.pack("velocity", before)
    solver.colliders.pose(0.0, 1e-5)
    solver.colliders.collide_grid(grid)
    after = grid.unpack("velocity")
    energy = [float(mass @ (v**2).sum(axis=1)) for v in (before, after)]
    assert energy[1] < energy[0] * (1 + 1e-12)
    before[:], speed = [1.0, -1.0, 0.0], mass.sum()
    grid.pack("velocity", before)
    solver.colliders.collide_grid(grid)
    impulse = mass @ (grid.unpack("velocity") - before) / speed
    assert impulse[1] > 0.0
    assert -impulse[0] == pytest.approx(0.3 * impulse[1], rel=1e-3 if kind == "mesh" else 1e-9)


def test_beside_an_edge_nothing_is_stopped_in_the_air():
    """Matter that comes down on a box from half a cell above is not held by nodes beside its edges: neighbours lie before a face.

    Nodes before the side faces, behind which its mass reaches through the top, hold it sideways alone.
    """
    context = FrameContext(1)
    pedestal = collide_box(context, size=(4 * H, 8 * H, 4 * H), centre=(0.0, -4 * H, 0.0), rule=CollisionRule.SEPARATE)
    start = block(JELLY, (-4 * H, 0.5 * H, -4 * H), (4 * H, 4.5 * H, 4 * H), H)
    start = changed(start, velocity=np.tile([0.0, -1.0, 0.0], (len(start), 1)))
    options = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.3 * H, 0.3 * H, 0.3 * H)}
    solver = SubstepSolver(start, colliders=[pedestal], **options)
    rows = held(solver)
    x = solver.grid.unpack("position")[rows[:, 0].astype(int)] / H
    away = np.linalg.norm(np.maximum(np.abs(x - [0, -4, 0]) - [2, 4, 2], 0.0), axis=1)
    assert len(rows) > 0 and (np.abs(rows[away > 1e-3, NORMAL + 1]) < 1e-6).all()


@pytest.mark.slow
def test_friction_is_coulombs_between_nodes():
    """The block of `block_on_ramp` slides by mu = 0.3 and is held by 0.7 with the floor 0.3 cells under a layer of nodes."""
    slope, g, origin = np.radians(30.0), 9.81, (0.0, 0.3 * H, 0.0)
    exact = g * (np.sin(slope) - 0.3 * np.cos(slope))
    assert sliding_acceleration("wall", 0.3, slope, g, origin=origin) == pytest.approx(exact, rel=0.03)
    assert abs(sliding_acceleration("wall", 0.7, slope, g, origin=origin)) < 0.03 * g * np.sin(slope)


@pytest.mark.parametrize("nodes", [3, 4])
def test_filled_is_the_integral_of_the_spline(nodes):
    """From 0 to 1, and its slope is the spline, to the second order of the difference."""
    reach, t = 0.5 * nodes, np.linspace(-0.5 * nodes, 0.5 * nodes, 49)
    assert filled(-reach, nodes) == 0.0
    assert filled(reach, nodes) == 1.0
    assert filled(0.0, nodes) == pytest.approx(0.5, abs=1e-15)
    for x in t[1:-1]:
        first = np.minimum(np.floor(x + reach), nodes - 1).astype(int)
        spline = weights((0,) * nodes, x + reach - first)[nodes - 1 - first]
        assert (filled(x + 1e-4, nodes) - filled(x - 1e-4, nodes)) / 2e-4 == pytest.approx(spline, abs=1e-7)
