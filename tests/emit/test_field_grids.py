"""Fields from VDB grids: numbers and vectors, trilinear, where they end, sequences, keys, and winds that carry matter along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, LevelSet, MpmNodesError, SpatialField
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector
from mpm_nodes.nodes.fields import field_math
from mpm_nodes.nodes.fields_of_files import GridEdge, Interpolation, field_vdb
from mpm_nodes.nodes.forces import force_wind
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.scenes import block, material
from usd_io.openvdb_module import find_openvdb
from usd_io.volumes import write_volumes

try:
    find_openvdb()
except Exception:
    pytest.skip("OpenVDB is not installed", allow_module_level=True)

VOXEL = 0.05
CORNERS = 8 * np.stack(np.meshgrid([-2, -1, 0, 1], [-1, 0], [-1, 0], indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
"""First voxels of leaves that fill 32 x 16 x 16 voxels around the origin."""
SLOPES = np.array([[1.0, 2.0, 0.5], [-1.0, 0.0, 0.25], [0.5, 0.5, -2.0]])


SETTINGS = GraphSettings(cell_size=0.1, start=1, end=9)


def written(path: Path, rows: int, corners: np.ndarray = CORNERS, factor: float = 1.0, hole: tuple[slice, ...] = ()) -> Path:
    """Write a grid that is linear in the place: 3 + slopes x, of one number or of three; holes have the background."""
    index = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    place = VOXEL * (corners[:, None, None, None] + index)
    values = (factor * (3.0 + place @ SLOPES.T)).astype(np.float32)
    if hole:
        values[(slice(None), *hole)] = 0.0
    values, kind = (values, "vector") if rows == 3 else (values[..., 0], "fog")
    write_volumes(path, [LevelSet(corners, np.ascontiguousarray(values), VOXEL, background=0.0, kind=kind, name="wind")])
    return path


def read(path: Path, number: int = 1, grid: str = "wind", **knobs) -> SpatialField:
    """Return what field_vdb gives at a frame."""
    return field_vdb(FrameContext(number, SETTINGS), SETTINGS, path=path, grid=grid, **knobs)


def line(*x: float) -> np.ndarray:
    """Return places on a line along x."""
    return np.stack([np.array(x), np.full(len(x), 0.1), np.full(len(x), 0.1)], axis=1)


@pytest.mark.parametrize("rows", [1, 3])
def test_values_are_trilinear(rows, tmp_path):
    """A linear field comes out as it is, across leaves; moved, scaled and multiplied too; outside it has its own value."""
    path = written(tmp_path / "a.vdb", rows)
    inside = np.random.default_rng(0).uniform([-0.8, -0.4, -0.4], [0.75, 0.35, 0.35], (3000, 3))
    expected = (3.0 + inside @ SLOPES.T)[:, : 3 if rows == 3 else 1].reshape(3000, -1).squeeze()
    found = read(path)
    assert found.vector == (rows == 3)
    np.testing.assert_allclose(field_values(found, inside, 1.0), expected, atol=2e-6)
    moved = read(path, strength=2.0, translate=(0.5, 1.0, 0.0), scale=10.0, outside=-4.0)
    np.testing.assert_allclose(field_values(moved, 10.0 * inside + [0.5, 1.0, 0.0], 1.0), 2.0 * expected, atol=4e-6)
    far = np.array([[99.0, 0.0, 0.0], [0.0, 1e9, 0.0], [0.0, 0.0, -50.0]])
    assert (field_values(moved, far, 1.0) == -8.0).all()


ENDS = {"no leaf": (CORNERS[:8], (), -1.0), "background": (CORNERS[4:8], (slice(4, 8),), -5.0)}
"""Leaves of a grid that ends, the voxels of each that hold the background, and the last voxel along x that holds a value."""


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rows", [1, 3])
def test_where_a_grid_ends(rows, end, tmp_path):
    """Faded it is half-way at half a voxel; extended it keeps the last values up to the next voxel. Background is as no voxel."""
    corners, hole, last = ENDS[end]
    path, last = written(tmp_path / "a.vdb", rows, corners, hole=hole), last * VOXEL
    places = line(last - 0.5 * VOXEL, last + 0.5 * VOXEL, last + 0.98 * VOXEL, last + VOXEL, last + 2.5 * VOXEL, 9.0)
    inside, edge = ((3.0 + line(x) @ SLOPES.T)[:, :rows] for x in (last - 0.5 * VOXEL, last))
    faded, extended = (
        field_values(read(path, edge=each, outside=6.0), places, 1.0).reshape(-1, rows) for each in (GridEdge.FADE, GridEdge.EXTEND)
    )
    six = np.full((1, rows), 6.0)
    shares = [inside, 0.5 * (edge + six), 0.02 * edge + 0.98 * six, six, six, six]
    np.testing.assert_allclose(faded, np.concatenate(shares), atol=2e-6)
    np.testing.assert_allclose(extended, np.concatenate([inside, edge, edge, six, six, six]), atol=2e-6)


@pytest.mark.parametrize("end", ENDS)
def test_a_grid_that_is_spread(end, tmp_path):
    """Within what it changes over a cell; it reaches one and a half cells beyond its end, cells being no smaller than voxels."""
    corners, hole, last = ENDS[end]
    path = written(tmp_path / "a.vdb", 1, corners, hole=hole)
    for size, cell in ((1.0, 0.1), (8.0, 8.0 * VOXEL)):  # of the solve, and of the voxels
        found = read(path, edge=GridEdge.SPREAD, outside=60.0, scale=size)
        inside = size * line(*np.linspace(last - 2.0, last + 0.4, 49) * VOXEL)
        slope = cell * np.abs(SLOPES[0]).sum() / size
        assert np.abs(field_values(found, inside, 1.0) - (3.0 + inside @ SLOPES[0] / size)).max() < slope
        beyond = size * line(last * VOXEL) + [[0.4 * cell, 0.0, 0.0], [2.6 * cell, 0.0, 0.0]]
        near, far = field_values(found, beyond, 1.0)
        assert near < 4.0 and far == 60.0


def test_a_distance_keeps_its_background(tmp_path):
    """Voxels of a level set that are a band away from its surface are that far, and not outside the grid."""
    values = np.full((8, 8, 8, 8), 0.15, np.float32)
    values[:, 2] = 0.05
    corners = CORNERS[4:12]
    write_volumes(tmp_path / "a.vdb", [LevelSet(corners, values, VOXEL, background=0.15, kind="level_set", name="surface")])
    found = read(tmp_path / "a.vdb", grid="surface", outside=99.0)
    assert field_values(found, line(6 * VOXEL, 9.0), 1.0) == pytest.approx([0.15, 99.0])


@pytest.mark.parametrize("edge", GridEdge)
def test_keys_move_and_grow_a_grid_within_the_frame(edge, tmp_path):
    """At any moment it is where the keys have it, as large, as strong, and with the value outside."""
    moves = {
        "translate": KeyedVector([(1, (0.0, 0.0, 0.0), "linear"), (3, (2.0, 0.0, 0.0), "linear")]),
        "scale": KeyedNumber([(1, 2.0, "linear"), (3, 6.0, "linear")]),
        "strength": KeyedNumber([(1, 1.0, "step"), (2.5, 2.0, "step")]),
        "outside": KeyedNumber([(1, 10.0, "linear"), (3, 20.0, "linear")]),
    }
    keyed, inside = read(written(tmp_path / "a.vdb", 1), 3, edge=edge, **moves), line(-0.3, 0.0, 0.3)
    for moment in (1.0, 2.25, 2.5, 3.0):
        now = {name: each.at(moment) for name, each in moves.items()}
        places = now["scale"] * inside + now["translate"]
        exact = now["strength"] * (3.0 + inside @ SLOPES[0])
        # a spread grid has cubes of a voxel, whose corners may be taken for their middles
        atol = now["strength"] * 0.51 * VOXEL * 3.5 if edge is GridEdge.SPREAD else 1e-5
        np.testing.assert_allclose(field_values(keyed, places, moment), exact, atol=atol)
        assert field_values(keyed, line(99.0), moment) == pytest.approx(now["strength"] * now["outside"])


def test_two_grids_in_one_program(tmp_path):
    """Each finds its own leaves."""
    a = read(written(tmp_path / "a.vdb", 1))
    b = read(written(tmp_path / "b.vdb", 3, CORNERS[6:]))
    places = np.array([[0.1, 0.2, -0.1], [0.5, 0.0, 0.3]])
    both = field_values(field_math(a, b), places, 1.0)
    values = 3.0 + places @ SLOPES.T
    np.testing.assert_allclose(both, values[:, :1] * values, rtol=1e-5)


def test_a_sequence_is_blended_within_the_frame(tmp_path):
    """Frame 3 goes from the file of 2 to that of 3; held it is the first; mixed kinds are refused."""
    for number, factor in ((1, 1.0), (2, 2.0), (3, 5.0)):
        written(tmp_path / f"wind.{number:04d}.vdb", 3, factor=factor)
    places = np.zeros((1, 3))
    course = read(tmp_path / "wind.0001.vdb", 3, sequence=True)
    assert [float(field_values(course, places, at)[0, 0]) for at in (2.0, 2.5, 3.0)] == pytest.approx([6.0, 10.5, 15.0])
    held = read(tmp_path / "wind.0001.vdb", 3, sequence=True, interpolation=Interpolation.HELD)
    assert field_values(held, places, 2.9)[0, 0] == pytest.approx(6.0)
    written(tmp_path / "wind.0003.vdb", 1)
    with pytest.raises(MpmNodesError, match="holds numbers in one file"):
        read(tmp_path / "wind.0001.vdb", 3, sequence=True)


def hollow(path: Path) -> Path:
    """Write a grid of which some voxels are NaN."""
    vdb = find_openvdb()
    grid = vdb.FloatGrid(0.0)
    grid.name = "wind"
    grid.copyFromArray(np.ones((8, 8, 8), np.float32))
    grid.fill((0, 0, 0), (3, 3, 3), float("nan"))
    vdb.write(str(path), [grid])
    return path


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"grid": "nothing"}, r"a\.vdb.*nothing"),
        ({"path": "none.vdb"}, r"none\.vdb: no such file"),
        ({"path": "hollow.vdb"}, r"grid 'wind' holds NaN or infinite values"),
        ({"sequence": True}, "has no frame number"),
        ({"path": "a.####.vdb", "sequence": True}, r"a\.0001\.vdb"),
        ({"grid": "flow", "edge": "spread"}, "grid 'flow' is a vector; name a grid of numbers, or let its edge fade"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_cook(tmp_path, knobs, says):
    """By its name and the file's, whoever takes the field."""
    written(tmp_path / "a.vdb", 1)
    hollow(tmp_path / "hollow.vdb")
    if knobs.get("grid") == "flow":
        values = np.ones((1, 8, 8, 8, 3), np.float32)
        write_volumes(tmp_path / "a.vdb", [LevelSet(CORNERS[:1], values, VOXEL, background=0.0, kind="vector", name="flow")])
    graph = Graph(base=tmp_path, cell_size=0.1, start=1, end=2)
    field = graph.add("field_vdb", "field", **{"path": "a.vdb", "grid": "wind", **knobs})
    box = graph.add("emit_box", "box", material=graph.add("material_liquid", "water"))
    graph.add("set_attribute", "mine", particles=box, field=field, attribute="mine")
    with pytest.raises((InputError, MpmNodesError), match=says):
        preflight.estimate(plan_graph(graph), 1)


def test_a_wind_of_a_grid_carries_matter(tmp_path):
    """A strong drag brings a cube to the grid's velocities at its particles, and a torque-free mean to that in its middle."""
    wind = force_wind(read(written(tmp_path / "a.vdb", 3)), velocity=(0.0, 0.0, 0.0), drag=1e4)
    cube = block(material("neo_hookean", youngs_modulus=1e3), (-0.2,) * 3, (0.2,) * 3, 0.1)
    run = SubstepSolver(cube, "explicit_apic", cell_size=0.1, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
    push(run, [wind])
    run.step(1e-3)
    velocity, mass = run.particles.unpack("velocity"), run.particles.unpack("mass")
    assert np.average(velocity, axis=0, weights=mass) == pytest.approx([3.0, 3.0, 3.0], rel=1e-3)
