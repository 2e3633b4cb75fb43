"""Thin plates keep what lies on their two sides apart, and are felt nowhere else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mpm_nodes.data import (
    A,
    Collider,
    Colliders,
    CollisionRule,
    FrameContext,
    GraphSettings,
    Grid,
    MpmNodesError,
    Particles,
    Reads,
    Stage,
    StepContext,
    Writes,
)
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import joins_copies, stage
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.kernels.level_sets.build import leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver import plates
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.plates import Splines
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sides import one_sided, refuse_coupled
from mpm_nodes.verification.scenes import block, changed, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=1e5)
TURNED = (0.0, 0.0, 30.0)


def plate(size, **knobs):
    """Return a box that slips, its size in cells."""
    context = FrameContext(1, GraphSettings(cell_size=H))
    return collide_box(context, size=tuple(H * edge for edge in size), **{"rule": CollisionRule.SLIP, **knobs})


def moving(part: Particles, *velocity: float) -> Particles:
    """Return a block that moves [m/s]."""
    return changed(part, velocity=np.tile(np.array(velocity, float), (len(part), 1)))


def solve(particles: Particles, *colliders, substeps="explicit_apic", **options) -> SubstepSolver:
    """Return a solve in double precision without gravity."""
    given = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.0, 0.0, 0.0), **options}
    return SubstepSolver(particles, substeps, colliders=colliders, **given)


def rotation(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def two_blocks(thickness, degrees=0.0, offset=0.0):
    """Return blocks that touch a plate's faces, the upper one in motion along it, turned about z, and how many lie below."""
    half = 0.5 * thickness * H
    low = block(JELLY, (0, -4 * H - half, 0), (6 * H, -half, 4 * H), H)
    high = moving(block(JELLY, (0, half, 0), (6 * H, 4 * H + half, 4 * H), H), 1.0, 0.0, 0.0)
    both, turn = merge_particles([low, high]), rotation(degrees)
    position = both["position"] @ turn.T + [0.0, offset * H, 0.0]
    return changed(both, position=position, velocity=both["velocity"] @ turn.T), len(low)


@pytest.mark.parametrize(("thickness", "degrees", "offset"), [(0.2, 0.0, 0.5), (0.0, 0.0, 0.0), (1.0, 0.0, 0.3), (0.2, 30.0, 0.1)])
def test_a_plate_without_friction_drags_nothing(thickness, degrees, offset):
    """A block that slides along one side leaves the one on the other side at rest, and neither loses momentum."""
    particles, low = two_blocks(thickness, degrees, offset)
    thin = plate((40, max(thickness, 1e-6), 40), centre=(0.0, offset * H, 0.0), rotation=(0.0, 0.0, degrees))
    solver = solve(particles, thin)
    solver.advance(0.05, 2e-3)
    velocity = solver.snapshot(["velocity"])["velocity"] @ rotation(degrees)
    assert np.abs(velocity[:low]).max() < 1e-12
    assert np.abs(velocity[low:] - [1.0, 0.0, 0.0]).max() < 1e-12


@joins_copies
@stage(label="Bounce")
def bounce(
    grid: A[Grid, Reads("velocity", "mass", "position"), Writes("velocity")],
    colliders: A[Colliders, Reads("level_set")],
    step: StepContext,
) -> Stage["grid"]:
    """Meet bodies on nodes as a user's own stage would: here as `collide_grid` does."""
    colliders.pose(step.time, step.time + step.dt)
    colliders.collide_grid(grid)


def test_any_stage_that_declares_it_meets_bodies_on_nodes_keeps_sides_apart():
    """A stage of the user in the place of `collide_grid` gives the same bits: its declaration counts, not its name."""
    particles, _ = two_blocks(0.2, 0.0, 0.5)
    thin = plate((40, 0.2, 40), centre=(0.0, 0.5 * H, 0.0))
    registry = Registry((*registries.default(), bounce.declaration), registries.default().presets)
    found = []
    for substeps in ("explicit_apic", {"preset": "explicit_apic", "edits": [{"replace": "collide_grid", "type": "bounce"}]}):
        solver = solve(particles, thin, substeps=substeps, registry=registry)
        solver.advance(4e-3, 2e-3)
        assert len(solver.colliders.plates) == 1 and len(solver.particles.block_sides) > 1
        found.append(solver.snapshot(["velocity"])["velocity"])
    assert np.array_equal(*found)


def test_a_block_beside_the_rim_moves_as_without_the_plate():
    """A spinning block two and a half cells beside the rim, astride the plate's plane, keeps its bits to rounding.

    One that goes along the rim a tenth of a cell away, where its nodes lie over the plate, is not held up either.
    """
    thin = plate((10, 0.2, 40), centre=(-5 * H, 0.0, 0.0))
    spun = block(JELLY, (2.6 * H, -2 * H, 0), (6.6 * H, 2 * H, 4 * H), H)
    spun = changed(spun, velocity=np.cross([0.0, 0.0, 8.0], spun["position"] - spun["position"].mean(axis=0)))
    ends = []
    for colliders in ((), (thin,)):
        solver = solve(spun, *colliders)
        for _ in range(40):
            solver.step(5e-4)
        ends.append(solver.snapshot(["velocity"]))
    assert len(solver.particles.block_sides) == 3
    assert np.abs(ends[0]["velocity"] - ends[1]["velocity"]).max() < 1e-11
    along = moving(block(JELLY, (0.1 * H, -2 * H, 0), (4.1 * H, 2 * H, 4 * H), H), 0.0, 0.0, 1.0)
    solver = solve(along, thin)
    solver.advance(0.05, 2e-3)
    assert np.abs(solver.particles.unpack("velocity") - [0.0, 0.0, 1.0]).max() < 1e-12


@pytest.mark.parametrize("rule", [CollisionRule.SEPARATE, CollisionRule.STICKY])
def test_nothing_goes_through(rule):
    """Blocks thrown at both sides of a plate of a hundredth of a cell stay on theirs; momentum does not cross it by the grid."""
    low = moving(block(JELLY, (0, -4.2 * H, 0), (4 * H, -0.2 * H, 4 * H), H), 0.0, 5.0, 0.0)
    high = moving(block(JELLY, (0, 1.2 * H, 0), (4 * H, 5.2 * H, 4 * H), H), 0.5, -1.0, 0.0)
    thin = plate((40, 0.01, 40), rule=rule)
    solver = solve(merge_particles([low, high]), thin)
    alone = solve(high, thin)
    for _ in range(100):
        solver.step(2e-4)
        alone.step(2e-4)
    position = solver.snapshot([])["position"][:, 1]
    assert position[: len(low)].max() < 0.0 < position[len(low) :].min()
    velocity = solver.snapshot(["velocity"])["velocity"][len(low) :]
    assert np.abs(velocity - alone.snapshot(["velocity"])["velocity"]).max() < 1e-11


@pytest.mark.parametrize("place", [0.0, 0.25])
def test_a_knife_cuts_a_falling_block(place):
    """A block falls on an upright blade without friction: in two parts, as fast as it would fall.

    The blade stands between the particles, or under a whole layer of them, which slide off its edge to either side.
    """
    blade = plate((0.1, 20, 40), centre=(place * H, -10 * H, 0.0), rule=CollisionRule.SEPARATE)
    start = moving(block(JELLY, (-3 * H, 0.5 * H, 0), (3 * H, 4.5 * H, 4 * H), H), 0.0, -2.0, 0.0)
    solver = solve(start, blade, gravity=(0.0, -9.81, 0.0))
    solver.advance(0.2, 5e-4)
    end = solver.snapshot(["velocity"])
    fall = (start["position"] - end["position"])[:, 1].mean()
    assert fall == pytest.approx(2.0 * 0.2 + 0.5 * 9.81 * 0.2 * (0.2 + 5e-4), rel=1e-3)
    x, other = start["position"][:, 0] - place * H, end["position"][:, 0] - place * H
    assert (np.abs(other) > 0.04 * H).all()
    assert (np.sign(x) == np.sign(other))[np.abs(x) > 1e-9].all()
    assert abs(end["velocity"][:, 0].mean()) < 1e-9


def test_sides_survive_what_solves_go_through():
    """On one thread, restored in the middle and in checked mode the same bits; a plate that grows thick is one body again."""
    import numba

    particles, _ = two_blocks(0.2, 0.0, 0.4)
    thin = plate((40, 0.2, 40), centre=(0.1, 0.4 * H, 0.0), rule=CollisionRule.SEPARATE, friction=0.3)
    substeps = {"preset": "explicit_apic", "set": {"transfer": "flip"}}
    made = [solve(particles, thin, substeps=substeps, gravity=(0, -9.81, 0), **more) for more in ({}, {}, {}, {"checked": True})]
    threads = numba.get_num_threads()
    for n, each in enumerate(made):
        numba.set_num_threads(1 if n == 1 else threads)
        for step in range(6):
            if n == 2 and step == 3:
                saved = each.particles.save()
                each.particles.restore(type(saved)(saved.facts, saved.fields, saved.tables))
            each.step(5e-4)
    numba.set_num_threads(threads)
    first, *others = (each.particles.unpack("position") for each in made)
    assert all(np.array_equal(first, other) for other in others)
    made[0].set_colliders([plate((40, 20, 40), centre=(0.0, -20 * H, 0.0))])
    made[0].step(5e-4)
    assert len(made[0].particles.block_sides) == 1


def test_plates_whose_sides_are_not_kept_apart_are_said():
    """Bodies, heat and projection share nodes across a thin plate: a warning names it; explicit and implicit steps do not."""
    particles = block(material("herschel_bulkley"), (0, 0, 0), (4 * H, 4 * H, 4 * H), H)
    thin, thick = plate((40, 0.2, 40), name="card"), plate((40, 5, 40), centre=(0.0, -9.0, 0.0))
    for substeps, said in (
        ("explicit_apic", ""),
        ("implicit_apic", ""),
        ("auto", ""),
        ("separate_bodies", "card"),
        ("continuum_foam", ""),
        ("explicit_heat", "card"),
        ("incompressible", "card"),
    ):
        solver = solve(particles, thin, thick, substeps=substeps)
        texts = one_sided(solver.colliders, solver.spline_width, H)
        assert len(texts) == bool(said) and all(said in text for text in texts)


FOAM = material("herschel_bulkley")
ABOVE, BELOW = ((0, 0.5, 0), (4, 4.5, 4)), ((0, -4.5, 0), (4, -0.5, 4))
"""Corners of blocks that lie half a cell from a plate in y = 0, in cells."""


def coupled(*corners, body=None, substeps="explicit_heat") -> None:
    """Make a solve of blocks, and let it refuse what its substeps would couple."""
    lying = [block(FOAM, *(H * np.array(corner, float) for corner in pair), H) for pair in corners]
    turned = merge_particles(lying)
    turned = changed(turned, position=turned["position"] @ rotation(30.0).T)
    solver = solve(turned, body or plate((20, 0.2, 20), rotation=TURNED, name="card"), substeps=substeps)
    refuse_coupled(solver.particles, solver.colliders, Splines(solver.spline_width, H), 0.0)


@pytest.mark.parametrize(
    "substeps",
    [
        pytest.param("separate_bodies", marks=pytest.mark.phenomena("separate_bodies")),
        "explicit_heat",
        "incompressible",
        "surface_tension",
    ],
)
def test_matter_on_both_sides_of_a_plate_that_are_not_kept_apart_is_refused(substeps):
    """With the name, the place and what to do; explicit and implicit steps keep the sides apart."""
    with pytest.raises(
        MpmNodesError, match=r"'card': matter lies on both its sides, at .*explicit_apic or implicit_apic.* of its own"
    ):
        coupled(ABOVE, BELOW, substeps=substeps)
    for fine in ("explicit_apic", "implicit_apic", "continuum_foam"):
        coupled(ABOVE, BELOW, substeps=fine)


@pytest.mark.parametrize(
    "corners",
    [(ABOVE,), (BELOW,), (ABOVE, ((9, -4.5, 0), (12, -0.5, 4))), (ABOVE, ((0, -6, 0), (4, -3.2, 4)))],
    ids=["above", "below", "far to the side", "far below"],
)
def test_matter_that_shares_no_node_across_a_plate_is_not_refused(corners):
    """On one side, or on both out of the splines' reach: there is nothing to keep apart."""
    coupled(*corners)


def test_matter_on_both_sides_of_a_sheet_is_refused():
    """So it is with a card of voxels."""
    flat = level_set(slab(0.7, 0.4 * H, 0.6, degrees=60.0))  # in voxels that are turned by 30
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=(flat,), level_set_times=np.zeros(1))
    card = Collider("card", CollisionRule.SLIP, 0.0, shape, None)
    with pytest.raises(MpmNodesError, match="'card': matter lies on both its sides"):
        coupled(((0, 0.6, 0), (4, 4, 4)), ((0, -4, 0), (4, -0.6, 4)), body=card)
    coupled(((0, 0.6, 0), (4, 4, 4)), body=card)


def test_a_cook_is_refused_before_its_first_substep():
    """The solve node says it at the first frame that moves."""
    graph = Graph(cell_size=H, start=1, end=3)
    matter = graph.add("material_neo_hookean", "matter")
    parts = [
        graph.add("emit_box", name, material=matter, size=(0.2, 0.2, 0.2), centre=(0.0, side * 0.13, 0.0))
        for name, side in (("above", 1.0), ("below", -1.0))
    ]
    card = graph.add("collide_box", "wall", size=(1.0, 0.01, 1.0), name="card")
    graph.add("solve", "fall", sources=parts, colliders=card, substeps="separate_bodies")
    with pytest.raises(MpmNodesError, match=r"fall.*'card': matter lies on both its sides"):
        execute(graph)


# ---------------------------------------------------------------- level sets
VOXEL = 0.5 * H


def level_set(distance, extent=1.0):
    """Return a level set of a distance function of points (..., 3) [m] in a cube, in voxels of half a cell, and turned."""
    cells = np.arange(-int(extent / VOXEL / 8) - 1, int(extent / VOXEL / 8) + 1)
    origins = 8 * np.stack(np.meshgrid(cells, cells, cells, indexing="ij"), -1).reshape(-1, 3)
    node = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    values = distance(VOXEL * (origins[:, None, None, None] + node))
    near = (np.abs(values) < 3.0 * VOXEL).any(axis=(1, 2, 3))
    to_index = np.hstack([rotation(30.0) / VOXEL, [[0.5], [0.25], [0.0]]])
    return leaf_level_set(origins[near], np.clip(values[near], -3.0 * VOXEL, 3.0 * VOXEL), 3.0 * VOXEL, to_index, VOXEL)


def slab(*half, degrees=20.0):
    """Return the distance function of a box with these half edges [m], turned."""

    def distance(points):
        q = np.abs(points @ rotation(degrees)) - half
        return np.linalg.norm(np.maximum(q, 0.0), axis=-1) + np.minimum(q.max(axis=-1), 0.0)

    return distance


def bowl(points):
    """Return the distance to a hemisphere of radius 0.6 m, two cells thick."""
    radius = np.linalg.norm(points, axis=-1)
    rim = np.hypot(np.hypot(points[..., 0], points[..., 2]) - 0.6, points[..., 1])
    return np.where(points[..., 1] < 0.0, np.abs(radius - 0.6), rim) - H


@pytest.mark.parametrize(
    ("distance", "thickness"),
    [
        (slab(0.7, 0.4 * H, 0.6), 0.8),
        (slab(0.7, 1.2 * H, 0.6), 2.4),
        (bowl, 2.0),
        (slab(0.7, 1.8 * H, 0.6), None),
        (slab(0.7, H, H), None),
        (slab(0.5, 0.5, 0.5), None),
        (lambda points: np.linalg.norm(points, axis=-1) - 1.2 * H, None),
    ],
    ids=["card", "board", "bowl", "thick board", "rod", "block", "small ball"],
)
def test_thin_sheets_of_level_sets_are_said(distance, thickness):
    """Sheets thinner than three cells, flat and round, are named with their thickness and the cure; nothing else is."""
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=(level_set(distance),), level_set_times=np.zeros(1))
    colliders = ColliderSet([Collider("tray", CollisionRule.SLIP, 0.0, shape, None)])
    texts = one_sided(colliders, 3.0 * H, H)
    assert len(texts) == (thickness is not None)
    if thickness is not None:
        told = float(re.search(r"([0-9.]+) cells, over", texts[0])[1])
        assert told == pytest.approx(thickness, rel=0.05) and "'tray'" in texts[0] and "explicit_apic" in texts[0]


@pytest.mark.parametrize("distance", [slab(0.5, 0.5, 0.5), slab(0.7, 0.4 * H, 0.6)], ids=["block", "card"])
def test_a_level_set_is_looked_at_once(distance, monkeypatch):
    """What is known of it serves in the frames that follow, also that it has no sheet: blocks were searched for one every frame."""
    looked, search = [], plates.thin_sheet
    monkeypatch.setattr(plates, "thin_sheet", lambda *arguments: looked.append(arguments) or search(*arguments))
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=(level_set(distance),), level_set_times=np.zeros(1))
    bodies = [Collider("tray", CollisionRule.SLIP, 0.0, shape, None)]
    frame = None
    for _ in range(3):
        frame = ColliderSet(bodies, previous=frame, two_sided=plates.Splines(3.0 * H, H))
    assert len(looked) == 1
