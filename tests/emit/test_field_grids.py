"""Fields from VDB grids: numbers and vectors, trilinear, with holes, sequences, and winds that carry matter along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import FrameContext, GraphSettings, InputError, LevelSet, MpmNodesError
from mpm_nodes.nodes.fields import field_math, field_vdb
from mpm_nodes.nodes.forces import force_wind
from mpm_nodes.nodes.values_of_files import Interpolation
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


def written(path: Path, rows: int, corners: np.ndarray = CORNERS, factor: float = 1.0) -> Path:
    """Write a grid that is linear in the place: 3 + slopes x, of one number or of three."""
    index = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    place = VOXEL * (corners[:, None, None, None] + index)
    values = (factor * (3.0 + place @ SLOPES.T)).astype(np.float32)
    values, kind = (values, "vector") if rows == 3 else (values[..., 0], "fog")
    write_volumes(path, [LevelSet(corners, np.ascontiguousarray(values), VOXEL, background=0.0, kind=kind, name="wind")])
    return path


def frame(number: int = 1) -> FrameContext:
    return FrameContext(number, GraphSettings(cell_size=0.1, start=1, end=9))


@pytest.mark.parametrize("rows", [1, 3])
def test_values_are_trilinear(rows, tmp_path):
    """A linear field comes out as it is, across leaves; moved, scaled and multiplied too; outside it has its own value."""
    path = written(tmp_path / "a.vdb", rows)
    inside = np.random.default_rng(0).uniform([-0.8, -0.4, -0.4], [0.75, 0.35, 0.35], (3000, 3))
    expected = (3.0 + inside @ SLOPES.T)[:, : 3 if rows == 3 else 1].reshape(3000, -1).squeeze()
    found = field_vdb(frame(), path=path, grid="wind")
    assert found.vector == (rows == 3)
    np.testing.assert_allclose(field_values(found, inside, 1.0), expected, atol=2e-6)
    moved = field_vdb(frame(), path=path, grid="wind", strength=2.0, translate=(0.5, 1.0, 0.0), scale=10.0, outside=-4.0)
    np.testing.assert_allclose(field_values(moved, 10.0 * inside + [0.5, 1.0, 0.0], 1.0), 2.0 * expected, atol=4e-6)
    far = np.array([[99.0, 0.0, 0.0], [0.0, 1e9, 0.0], [0.0, 0.0, -50.0]])
    assert (field_values(moved, far, 1.0) == -8.0).all()


def test_a_hole_has_the_value_outside(tmp_path):
    """A leaf that is not there, and halfway to it the mean."""
    path = written(tmp_path / "a.vdb", 1, CORNERS[:8])  # nothing from x = 0 on
    found = field_vdb(frame(), path=path, grid="wind", outside=6.0)
    last = 3.0 + SLOPES[0] @ [-VOXEL, 0.1, 0.1]
    places = np.array([[-VOXEL, 0.1, 0.1], [-0.5 * VOXEL, 0.1, 0.1], [0.0, 0.1, 0.1]])
    np.testing.assert_allclose(field_values(found, places, 1.0), [last, 0.5 * (last + 6.0), 6.0], atol=1e-6)


def test_two_grids_in_one_program(tmp_path):
    """Each finds its own leaves."""
    a = field_vdb(frame(), path=written(tmp_path / "a.vdb", 1), grid="wind")
    b = field_vdb(frame(), path=written(tmp_path / "b.vdb", 3, CORNERS[6:]), grid="wind")
    places = np.array([[0.1, 0.2, -0.1], [0.5, 0.0, 0.3]])
    both = field_values(field_math(a, b), places, 1.0)
    values = 3.0 + places @ SLOPES.T
    np.testing.assert_allclose(both, values[:, :1] * values, rtol=1e-5)


def test_a_sequence_is_blended_within_the_frame(tmp_path):
    """Frame 3 goes from the file of 2 to that of 3; held it is the first; mixed kinds are refused."""
    for number, factor in ((1, 1.0), (2, 2.0), (3, 5.0)):
        written(tmp_path / f"wind.{number:04d}.vdb", 3, factor=factor)
    places = np.zeros((1, 3))
    course = field_vdb(frame(3), path=tmp_path / "wind.0001.vdb", grid="wind", sequence=True)
    assert [float(field_values(course, places, at)[0, 0]) for at in (2.0, 2.5, 3.0)] == pytest.approx([6.0, 10.5, 15.0])
    held = field_vdb(frame(3), path=tmp_path / "wind.0001.vdb", grid="wind", sequence=True, interpolation=Interpolation.HELD)
    assert field_values(held, places, 2.9)[0, 0] == pytest.approx(6.0)
    written(tmp_path / "wind.0003.vdb", 1)
    with pytest.raises(MpmNodesError, match="holds numbers in one file"):
        field_vdb(frame(3), path=tmp_path / "wind.0001.vdb", grid="wind", sequence=True)


def test_a_grid_that_is_not_there_is_told(tmp_path):
    """By its name and the file's."""
    with pytest.raises(InputError, match=r"a\.vdb.*nothing"):
        field_vdb(frame(), path=written(tmp_path / "a.vdb", 1), grid="nothing")


def test_a_wind_of_a_grid_carries_matter(tmp_path):
    """A strong drag brings a cube to the grid's velocities at its particles, and a torque-free mean to that in its middle."""
    wind = force_wind(field_vdb(frame(), path=written(tmp_path / "a.vdb", 3), grid="wind"), velocity=(0.0, 0.0, 0.0), drag=1e4)
    cube = block(material("neo_hookean", youngs_modulus=1e3), (-0.2,) * 3, (0.2,) * 3, 0.1)
    run = SubstepSolver(cube, "explicit_apic", cell_size=0.1, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
    push(run, [wind])
    run.step(1e-3)
    velocity, mass = run.particles.unpack("velocity"), run.particles.unpack("mass")
    assert np.average(velocity, axis=0, weights=mass) == pytest.approx([3.0, 3.0, 3.0], rel=1e-3)
