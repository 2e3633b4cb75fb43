"""The room that liquids find in the grid, and the volume ratio that follows it."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule, Walls, concatenate
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.kernels.collisions.open_share import find_open_shares
from mpm_nodes.kernels.level_sets.level_set import BOX, SPHERE, PosedLevelSets
from mpm_nodes.kernels.transfers.room import follow_room, write_room
from mpm_nodes.kernels.transfers.weights import DRIFT_LIMIT
from mpm_nodes.solver import filling
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.program import program_of
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages import density
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SEPARATE, block, material, walled

CELL = 0.1
BLOCKS = np.array([(x, y, z) for x in (-1, 0) for y in (-1, 0) for z in (-1, 0)], np.int32)
"""Blocks around the origin: nodes -4 to 3 along each axis."""
NODES = (4 * BLOCKS[:, None] + np.array([(i, j, k) for i in range(4) for j in range(4) for k in range(4)])).reshape(-1, 3)
WATER = material("liquid", 1000.0, bulk_modulus=1e5)


def spline_samples(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return points within reach of a spline [cells], and its weights over them, which sum up to 1."""
    at = 3.0 * (np.arange(count) + 0.5) / count - 1.5
    weight = np.where(abs(at) < 0.5, 0.75 - at**2, 0.5 * (1.5 - abs(at)) ** 2)
    return at, weight / weight.sum()


def shares_of(shape: PosedLevelSets | None, walls: Walls | None = None) -> np.ndarray:
    """Return what is open of `NODES`."""
    bodies = [] if shape is None else [Collider("body", CollisionRule.SEPARATE, 0.0, shape)]
    colliders = ColliderSet(bodies, walls)
    colliders.pose(0.0, 0.0)
    opened = np.empty(512)
    find_open_shares(BLOCKS, CELL, np.zeros(3), *colliders.shapes(), opened)
    return opened


@pytest.mark.parametrize(
    ("kind", "sizes", "offset"),
    [
        (SPHERE, (0.17,), (0.0, 0.0, 0.0)),
        (SPHERE, (0.05,), (0.02, 0.01, 0.03)),  # smaller than a cell
        (BOX, (0.15, 0.1, 0.2), (0.03, 0.0, 0.01)),
        (BOX, (0.3, 0.02, 0.3), (0.0, 0.0, 0.0)),  # thinner than a cell
    ],
)
def test_bodies_close_the_splines_integral_inside_them(kind, sizes, offset):
    """Each node's open share is one less its spline's integral over the body: edges, small and thin bodies too."""
    found = shares_of(PosedLevelSets(kind, sizes, pose_times=np.zeros(1), rotations=np.eye(4)[:1], translations=np.array([offset])))
    at, weight = spline_samples()
    for node in range(0, 512, 7):
        x, y, z = (CELL * (NODES[node, axis] + at) - offset[axis] for axis in range(3))
        if kind == SPHERE:
            inside = x[:, None, None] ** 2 + y[None, :, None] ** 2 + z[None, None, :] ** 2 < sizes[0] ** 2
            closed = np.einsum("i,j,k,ijk->", weight, weight, weight, inside)
        else:
            closed = np.prod([weight[abs(each) < size].sum() for each, size in zip((x, y, z), sizes, strict=True)])
        assert found[node] == pytest.approx(1.0 - closed, abs=0.05), NODES[node]
    assert found.min() < 0.9


def test_walls_close_exactly_what_lies_beyond_them():
    """Between nodes, too, and in the corner of two walls the shares multiply."""
    sides = (WallRule.SEPARATE, WallRule.OPEN, WallRule.SLIP, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN)
    found = shares_of(None, Walls((-0.03, 0.02, -9.0), (9.0,) * 3, sides))
    at, weight = spline_samples(6000)
    wanted = [weight[CELL * (x + at) > -0.03].sum() * weight[CELL * (y + at) > 0.02].sum() for x, y, _ in NODES]
    assert np.abs(found - wanted).max() < 1e-3


def test_room_is_not_found_beside_the_air_and_crowding_is():
    """Of thin cells those with a face to the air tell nothing, across blocks too; crowded ones always tell."""
    random = np.random.default_rng(3)
    index = {tuple(place): n for n, place in enumerate(BLOCKS)}
    steps = [step * np.eye(3, dtype=int)[axis] for axis in range(3) for step in (-1, 1)]
    around = np.array([[index.get(tuple(place + step), -1) for step in steps] for place in BLOCKS], np.int32)
    filled = random.choice([0.1, 0.95, 1.0, 1.25], size=(8, 8, 8), p=[0.08, 0.3, 0.32, 0.3])
    cells = np.zeros(256 * 8 + 64)
    cells[3 : 256 * 8 : 4] = filled[tuple(NODES.T + 4)]
    told = np.zeros((8, 3))
    write_room(cells, 1.0, np.ones(512), np.zeros(512, bool), around, np.empty(512, bool), told)
    air = np.pad(filled < 0.52, 1, constant_values=True)
    beside = np.any([np.roll(air, step, axis) for axis in range(3) for step in (-1, 1)], axis=0)[1:-1, 1:-1, 1:-1]
    room = np.where(filled < 0.52, 0.0, 1.0 / filled - 1.0)
    room = np.where(beside, np.minimum(room, 0.0), room)
    assert np.abs(cells[: 256 * 8 : 4] - room[tuple(NODES.T + 4)]).max() < 1e-12
    assert told[:, 0].max() == 1.25 and told[:, 2].sum() == pytest.approx(filled[filled > 1.2].sum())
    assert told[:, 1].sum() == pytest.approx(filled.sum())


def packed(rate: float, cells: int = 6, preset: str = "explicit_apic", **knobs: object) -> SubstepSolver:
    """Return a block of liquid that says it is at rest, twice as dense as it should be, on a floor."""
    size = cells * CELL
    parts = [block(WATER, (0, 0, 0), (size,) * 3, CELL, jitter=0.3, seed=seed) for seed in (1, 2)]
    return SubstepSolver(
        concatenate(parts),
        {"preset": preset, "set": {"density_rate": rate}},
        cell_size=CELL,
        gravity=(0.0, -9.81, 0.0),
        walls=walled((-1.0, 0.0, -1.0), (2.0, 3.0, 2.0), SEPARATE),
        **knobs,
    )


@pytest.mark.parametrize(
    "preset", ["explicit_apic", pytest.param("separate_bodies", marks=pytest.mark.phenomena("separate_bodies"))]
)
def test_packed_liquid_takes_its_room(preset):
    """Twice too dense and told to be at rest, a block spreads until no cell is crowded; without the stage it stays packed."""
    told = {}
    for rate in (5.0, 1e-9):
        run = packed(rate, preset=preset)
        run.advance(0.4)
        run.step_context.frame = 2  # facts are those of a frame
        run.advance(0.05)
        told[rate] = dict(run.step_context.report["density"])
    assert told[5.0]["densest"] < 1.5 and told[5.0]["crowded"] == 0.0
    assert told[1e-9]["densest"] > 1.7 and told[1e-9]["crowded"] > 30.0


def test_momentum_is_kept_while_liquid_takes_its_room():
    """In free fall packed liquid spreads, and its momentum is that of its weight, to rounding."""
    parts = [block(WATER, (0, 0, 0), (0.6,) * 3, CELL, jitter=0.3, seed=seed) for seed in (1, 2)]
    run = SubstepSolver(concatenate(parts), "explicit_apic", cell_size=CELL, gravity=(0.0, -9.81, 0.0), dtype=np.float64)
    wide = np.ptp(column(run, "position"), axis=0)
    run.advance(0.05)
    mass, velocity = column(run, "mass"), column(run, "velocity")
    momentum = (mass[:, None] * velocity).sum(axis=0)
    assert momentum == pytest.approx([0.0, -9.81 * 0.05 * mass.sum(), 0.0], abs=1e-9 * mass.sum())
    assert (np.ptp(column(run, "position"), axis=0) > 1.02 * wide).all()


@pytest.mark.phenomena("separate_bodies")
def test_two_bodies_of_liquid_do_not_find_room_in_one_another():
    """Blocks that touch have cells of their own at the same places: what the other holds is not open."""
    halves = [block(WATER, (0.4 * n, 0, 0), (0.4 * n + 0.4, 0.8, 0.8), CELL, seed=n) for n in range(2)]
    run = SubstepSolver(
        concatenate(halves),
        "separate_bodies",
        cell_size=CELL,
        gravity=(0.0, 0.0, 0.0),
        dtype=np.float64,
    )
    run.advance(0.05)
    assert np.abs(column(run, "volume_change")).max() < 1e-9
    assert np.abs(column(run, "velocity")).max() < 1e-9


@pytest.mark.parametrize("sides", ["both", "one"])
def test_liquid_beside_a_plate_stays_at_rest(sides, monkeypatch):
    """A plate takes no room to speak of, and what lies on its other side is not missed: J stays 1 on either side.

    What it leaves open of the blocks of both sides, which lie at the same places, is asked once.
    """
    asked, find = [], filling.find_open_shares
    monkeypatch.setattr(filling, "find_open_shares", lambda coord, *given: (asked.append(coord), find(coord, *given))[1])
    plate = PosedLevelSets(
        BOX, (0.005, 2.0, 2.0), pose_times=np.zeros(1), rotations=np.eye(4)[:1], translations=np.array([[0.4, 0.0, 0.0]])
    )
    blocks = [block(WATER, (0.4 * n, 0, 0), (0.4 * n + 0.4, 0.8, 0.8), CELL) for n in range(2 if sides == "both" else 1)]
    run = SubstepSolver(
        concatenate(blocks),
        "explicit_apic",
        cell_size=CELL,
        colliders=[Collider("plate", CollisionRule.SLIP, 0.0, plate)],
        gravity=(0.0, 0.0, 0.0),
    )
    run.advance(0.1)
    assert np.abs(column(run, "volume_change")).max() < 0.02
    assert asked and all(len(np.unique(coord, axis=0)) == len(coord) for coord in asked)


def test_solids_are_left_alone():
    """What keeps a shape has a density of its own: nothing is measured."""
    rubber = Material("neo_hookean", {}, 1000.0, "rubber")
    run = SubstepSolver(block(rubber, (0, 0, 0), (0.4,) * 3, CELL), "explicit_apic", cell_size=CELL)
    run.advance(0.02)
    assert "density" not in run.step_context.report.told


def test_packed_liquid_is_warned_of():
    """A cook says that liquid is packed, and what to raise."""
    graph = shot(end=2, material="material_liquid", size=0.4, cell_size=0.1)
    twin = graph.add("emit_box", "twin", material=graph["matter"], size=(0.4,) * 3, seed=7, jitter=0.5)
    graph.nodes["sim"].connect("sources", [graph["block"], twin])
    graph.nodes["sim"].knobs["substeps"] = {"preset": "explicit_apic", "set": {"density_rate": 1e-9}}
    told = []
    execute(graph, on_event=told.append)
    (warned,) = {event["message"] for event in told if event["event"] == "warning" and event.get("where") == "density"}
    assert "is packed to more than 1.2 times its density" in warned and "density_rate" in warned


@pytest.mark.phenomena("foam")
def test_particles_are_not_sorted_more_often_for_it():
    """What lies between the nodes of the grid waits for a sort: splines of the nodes reach as far as they did."""
    limits = [program_of(preset, ("volume_change",), True).drift_limit for preset in ("explicit_apic", "continuum_foam")]
    assert limits == [DRIFT_LIMIT["quadratic"], DRIFT_LIMIT["cubic"]]


@pytest.mark.parametrize("walls", [1, 2, 3])
def test_a_lattice_before_walls_does_not_count_as_crowded(walls):
    """Two particles a cell and axis give 27/32 of a stencil beside a wall, where the spline has 5/6: no room is missing."""
    cells, told = np.zeros(4 * 512 + 64), np.zeros((8, 3))
    opened = np.full(512, (5.0 / 6.0) ** walls)
    around = np.tile(np.arange(8, dtype=np.int32)[:, None], (1, 6))
    for filled, crowded in ((27.0 / 32.0, False), (0.87, True)):
        cells[3 : 4 * 512 : 4] = filled**walls
        write_room(cells, 1.0, opened, np.zeros(512, bool), around, np.empty(512, bool), told)
        room = cells[: 4 * 512 : 4] / opened
        assert (room < -0.01).all() if crowded else np.abs(room).max() < 1e-12


@pytest.mark.parametrize("walls", [1, 2])
def test_the_cells_behind_walls_of_a_lattice_have_no_room_left(walls):
    """Where 1/6 of a cell is open a lattice gives it 5/32 of a stencil: no room is left."""
    cells, told = np.zeros(4 * 512 + 64), np.zeros((8, 3))
    opened = np.full(512, (1.0 / 6.0) ** walls)
    around = np.tile(np.arange(8, dtype=np.int32)[:, None], (1, 6))
    for filled, thin in ((5.0 / 32.0, False), (0.153, True)):
        cells[3 : 4 * 512 : 4] = filled**walls
        write_room(cells, 1.0, opened, np.zeros(512, bool), around, np.empty(512, bool), told)
        room = cells[: 4 * 512 : 4] / opened
        assert (room > 0.01).all() if thin else np.abs(room).max() < 1e-12


def test_the_volume_of_a_particle_relaxes_to_the_open_part_of_its_room():
    """1 - exp(-s |v|) of what the difference from r = (o r) / o exceeds the tolerance by, at a fall's speed at least."""
    stride, opened, room, least, rate, off = 16, 0.5, 0.1, 0.7, 0.4, 0.01
    change, said = np.zeros(stride), np.zeros(2 * stride)
    said[:stride], said[stride : stride + 3] = opened * room, opened
    velocity = np.zeros(3 * stride)
    velocity[[0, stride, 2 * stride]] = 0.3, 0.4, 1.2  # 1.3 m/s; the second is at rest
    change[2], said[2] = 0.2, opened * room  # the third is too large
    follow_room(change, said, velocity, stride, np.array([[0, 4, 0]]), (rate, least, off))
    shares = 1.0 - np.exp(-rate * np.array([1.3, least, least]))
    np.testing.assert_allclose(change[:4], [*(shares * [room - off, room - off, -(room - off)] + [0.0, 0.0, 0.2]), 0.0], rtol=1e-12)


def test_explicit_steps_look_at_the_density_when_sound_has_crossed_two_cells(monkeypatch):
    """As often as that and no more, and what they take back then is of the time since they looked last."""
    looked, rates = [], []
    original = density.fill_cells
    monkeypatch.setattr(density, "fill_cells", lambda *given: looked.append(0) or original(*given))
    monkeypatch.setattr(density, "follow", lambda particles, grid, step, numbers: rates.append(numbers[0]))
    pool = block(WATER, (0.0, 0.0, 0.0), (0.4, 0.4, 0.4), CELL)
    run = SubstepSolver(pool, "explicit_apic", cell_size=CELL, dt_max=1.9e-3, gravity=(0.0, -9.81, 0.0))
    sound, dt = np.sqrt(1e5 / 1000.0), 1.9e-3
    for _ in range(44):
        assert run.step(dt) == pytest.approx(dt)
    between = int(np.ceil(density.WAIT * CELL / (sound * dt)))
    assert between == 11 and len(looked) == 44 // between
    np.testing.assert_allclose(rates, 5.0 * between * dt / CELL)
