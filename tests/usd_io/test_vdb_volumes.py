"""Volumes to and from .vdb: exact round trips, sparse far apart, equal bytes, damaged files, other programs' grids."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from cache_samples import fog_and_velocity, joined, sphere

from mpm_nodes.data import InputError, LevelSet, OutputError
from usd_io.openvdb_module import find_openvdb
from usd_io.vdb_file import has_own_digest
from usd_io.vdb_grids import level_set_from_grid
from usd_io.volumes import mesh_level_set, read_volumes, write_volumes

VOXEL = 0.02


def sorted_leaves(volume: LevelSet) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort(volume.origins.T)
    return volume.origins[order], volume.values[order]


def enclosed_volume(mesh) -> float:
    """Return the signed volume of a closed mesh, positive when its faces wind outward."""
    starts = np.cumsum(mesh.counts) - mesh.counts
    total = 0.0
    for k in range(1, int(mesh.counts.max()) - 1):
        use = mesh.counts > k + 1
        a, b, c = (mesh.points[mesh.indices[starts[use] + j]] for j in (0, k, k + 1))
        total += np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    return total


@pytest.mark.parametrize("half", [False, True])
def test_round_trip_of_every_kind(tmp_path, half):
    """Level set, fog and vectors come back: band values exactly (half: to 11 bits), beyond it +-background."""
    surface = sphere((0.1, 0.0, -0.2), 0.2, VOXEL)
    volumes = (surface, *fog_and_velocity(surface))
    write_volumes(tmp_path / "a.vdb", volumes, {"frame": 3}, half)
    found = read_volumes(tmp_path / "a.vdb")
    kinds = {name: info.kind for name, info in found.items()}
    assert kinds == {"surface": "level_set", "density": "fog", "vel": "vector"}
    tolerance = 2.0**-11 if half else 0.0
    for volume in volumes:
        info = found[volume.name]
        assert info.uniform
        assert np.allclose(info.transform, np.diag([VOXEL, VOXEL, VOXEL, 1.0]))
        assert info.level_set.background == pytest.approx(volume.background, rel=max(tolerance, 1e-6))
        wanted = np.clip(volume.values, -volume.background, volume.background) if volume is surface else volume.values
        origins, values = sorted_leaves(dataclasses.replace(volume, values=wanted))
        got = {tuple(origin): leaf for origin, leaf in zip(info.level_set.origins, info.level_set.values, strict=True)}
        for origin, leaf in zip(origins, values, strict=True):
            stored = got.get(tuple(origin), np.full_like(leaf, volume.background))
            assert np.abs(stored - leaf).max() <= tolerance * max(1.0, np.abs(leaf).max())


def test_published_volumes_can_be_written(tmp_path):
    """Values on a wire are frozen: volumes whose arrays are read-only are written all the same."""
    volumes = [sphere((0, 0, 0), 0.2, 0.05), *fog_and_velocity(sphere((0, 0, 0), 0.2, 0.05))]
    for volume in volumes:
        volume.values.setflags(write=False)
    write_volumes(tmp_path / "frozen.vdb", volumes)
    assert set(read_volumes(tmp_path / "frozen.vdb")) == {volume.name for volume in volumes}


def test_inside_of_a_read_level_set_is_negative(tmp_path):
    """The flood fill signs what lies beyond the band: the middle of a ball, far from any leaf written, is inside."""
    ball = sphere((0.0, 0.0, 0.0), 0.6, VOXEL)
    assert not (ball.origins == 0).all(axis=1).any()
    write_volumes(tmp_path / "ball.vdb", [ball])
    found = read_volumes(tmp_path / "ball.vdb")["surface"].level_set
    middle = found.values[(found.origins == 0).all(axis=1)][0]
    assert (middle == np.float32(-3 * VOXEL)).all()
    assert (found.values < 0).sum() == pytest.approx(4 / 3 * np.pi * 30**3, rel=5e-3)


def test_two_drops_far_apart_stay_sparse(tmp_path, stopwatch):
    """Two drops 100 m apart cost two drops: in leaves, bytes and time, not the box around them (10^10 voxels)."""
    one = sphere((0.0, 0.0, 0.0), 0.3, VOXEL)
    two = joined(one, sphere((100.0, 0.0, 0.0), 0.3, VOXEL))
    mesh_level_set(one)  # compiled before the clock runs
    with stopwatch() as taken:
        write_volumes(tmp_path / "one.vdb", [one])
        write_volumes(tmp_path / "two.vdb", [two])
        found = read_volumes(tmp_path / "two.vdb")["surface"].level_set
        mesh = mesh_level_set(two)
    assert taken.seconds < 10.0
    assert (tmp_path / "two.vdb").stat().st_size < 2.2 * (tmp_path / "one.vdb").stat().st_size
    assert len(found.origins) <= 2 * (len(one.origins) + 64)
    assert mesh.points[:, 0].max() == pytest.approx(100.3, abs=0.1 * VOXEL)
    assert enclosed_volume(mesh) == pytest.approx(2 * 4 / 3 * np.pi * 0.3**3, rel=0.01)


def test_equal_input_gives_equal_bytes(tmp_path):
    """The library's random UUID is replaced by a digest, which also depends on the content."""
    a, b = sphere((0, 0, 0), 0.2, VOXEL), sphere((0, 0, 0), 0.21, VOXEL)
    for name, volume in (("1", a), ("2", a), ("3", b)):
        write_volumes(tmp_path / name, [volume], {"frame": 1})
    first, second, third = ((tmp_path / name).read_bytes() for name in "123")
    assert first == second
    assert first[21:57] != third[21:57]
    assert has_own_digest(tmp_path / "1")


def test_mesh_winds_outward_and_keeps_place_far_away():
    """A ball 1 km from the origin gives the mesh of one at the origin, moved: faces outward, to float64 rounding."""
    near = sphere((0.0, 0.0, 0.0), 0.3, VOXEL)
    shift = np.array([50_000, -50_000, 8], np.int64)
    far = dataclasses.replace(near, origins=near.origins + shift)
    for adaptivity, error in ((0.0, 0.01), (0.2, 0.1)):
        a, b = mesh_level_set(near, adaptivity), mesh_level_set(far, adaptivity)
        assert np.array_equal(a.indices, b.indices)
        assert np.abs(b.points - a.points - shift * VOXEL).max() < 1e-9
        assert enclosed_volume(a) == pytest.approx(4 / 3 * np.pi * 0.3**3, rel=error)


def test_empty_level_set_is_no_error(tmp_path):
    """A frame without matter still writes its grid and has a mesh without points."""
    empty = LevelSet(np.zeros((0, 3), np.int32), np.zeros((0, 8, 8, 8), np.float32), VOXEL, background=0.06)
    write_volumes(tmp_path / "empty.vdb", [empty])
    assert read_volumes(tmp_path / "empty.vdb")["surface"].level_set.values.shape == (0, 8, 8, 8)
    assert len(mesh_level_set(empty).points) == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"values": np.full((1, 8, 8, 8), np.nan, np.float32)}, "NaN"),
        ({"origins": np.array([[1, 0, 0]])}, "multiples of 8"),
        ({"values": np.zeros((2, 8, 8, 8), np.float32)}, "shape"),
        ({"background": 0.0}, "background"),
        ({"voxel_size": -1.0}, "voxel size"),
    ],
)
def test_bad_volumes_are_refused(tmp_path, change, says):
    """Whatever OpenVDB would take silently is refused with the reason, and no file is left."""
    good = LevelSet(np.zeros((1, 3), np.int32), np.zeros((1, 8, 8, 8), np.float32), VOXEL, background=0.06)
    with pytest.raises(OutputError, match=says):
        write_volumes(tmp_path / "bad.vdb", [dataclasses.replace(good, **change)])
    assert not (tmp_path / "bad.vdb").exists()


def test_full_disk_is_noticed():
    """A device without space gives an OutputError, although the library may not notice."""
    with pytest.raises(OutputError, match="cannot be written"):
        write_volumes("/dev/full", [sphere((0, 0, 0), 0.1, VOXEL)])


# ---------------------------------------------------------------- damaged and foreign files
def damages(raw: bytes) -> dict[str, bytes]:
    flipped = bytearray(raw)
    for place in np.random.default_rng(5).integers(200, len(raw), 8):
        flipped[place] ^= 0xFF
    return {
        "empty": b"",
        "text": b"# not a volume at all\n" * 50,
        "ten_bytes": raw[:10],
        "header_only": raw[:90],
        "half": raw[: len(raw) // 2],
        "last_byte": raw[:-1],
        "flipped": bytes(flipped),
    }


@pytest.mark.parametrize("damage", ["empty", "text", "ten_bytes", "header_only", "half", "last_byte", "flipped"])
def test_damaged_files_are_input_errors(tmp_path, damage):
    """Every kind of damage to a file of ours is told in one line, within the limit."""
    write_volumes(tmp_path / "good.vdb", [sphere((0, 0, 0), 0.2, VOXEL)])
    path = tmp_path / "bad.vdb"
    path.write_bytes(damages((tmp_path / "good.vdb").read_bytes())[damage])
    started = time.perf_counter()
    with pytest.raises(InputError, match=r"bad\.vdb: not a whole OpenVDB file") as error:
        read_volumes(path, timeout=20)
    assert time.perf_counter() - started < 25
    assert "\n" not in str(error.value)


def foreign_file(path, **facts):
    vdb = find_openvdb()
    grid = vdb.createLevelSetSphere(0.3, (0.0, 0.0, 0.0), VOXEL, 3.0)
    grid.name = "ball"
    for name, value in facts.items():
        setattr(grid, name, value)
    vdb.write(str(path), grid)
    return grid


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes_of_other_programs_never_take_us_along(tmp_path, seed):
    """Files without our digest may read as garbage or fail; either way this process gets numbers or an InputError."""
    path = tmp_path / "foreign.vdb"
    foreign_file(path)
    raw = bytearray(path.read_bytes())
    for place in np.random.default_rng(seed).integers(57, len(raw), 10):
        raw[place] ^= 0xFF
    path.write_bytes(raw)
    try:
        found = read_volumes(path, timeout=5)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert all(np.isfinite(info.level_set.values).all() for info in found.values())


def test_hanging_child_is_ended(tmp_path):
    """A reader that takes longer than allowed is ended and told as such (the limit is shorter than Python's start)."""
    foreign_file(tmp_path / "slow.vdb")
    with pytest.raises(InputError, match=r"not read after 0\.01 s"):
        read_volumes(tmp_path / "slow.vdb", timeout=0.01)


def test_rotated_and_non_uniform_transforms_are_told(tmp_path):
    """The matrix takes indices to the world as OpenVDB does; only equal scales at right angles are uniform."""
    vdb = find_openvdb()
    c, s = np.cos(0.5), np.sin(0.5)
    rotated = [[0.1 * c, 0.1 * s, 0, 0], [-0.1 * s, 0.1 * c, 0, 0], [0, 0, 0.1, 0], [1, 2, 3, 1]]
    stretched = [[0.1, 0, 0, 0], [0, 0.2, 0, 0], [0, 0, 0.1, 0], [0, 0, 0, 1]]
    for rows, uniform in ((rotated, True), (stretched, False)):
        grid = foreign_file(tmp_path / "g.vdb", transform=vdb.createLinearTransform(rows))
        info = read_volumes(tmp_path / "g.vdb")["ball"]
        assert info.uniform is uniform
        index = (3, -4, 5)
        assert np.allclose((info.transform @ [*index, 1.0])[:3], grid.transform.indexToWorld(index))


def test_names_types_and_sizes_are_checked(tmp_path):
    """A wrong name lists the right ones; an int grid, and more voxels than allowed, are refused by name."""
    vdb = find_openvdb()
    path = tmp_path / "many.vdb"
    ball, flags = vdb.createLevelSetSphere(0.3, (0, 0, 0), VOXEL, 3.0), vdb.BoolGrid()
    ball.name, flags.name = "ball", "flags"
    vdb.write(str(path), [ball, flags])
    assert list(read_volumes(path)) == ["ball"]
    with pytest.raises(InputError, match="no grid named 'bowl'; it holds 'ball', 'flags'"):
        read_volumes(path, ["bowl"])
    with pytest.raises(InputError, match="'flags' holds bool values"):
        read_volumes(path, ["flags"])
    with pytest.raises(InputError, match="are allowed"):
        read_volumes(path, ["ball"], largest=1000)
    with pytest.raises(InputError, match="No such file"):
        read_volumes(tmp_path / "none.vdb")


def test_tiles_and_wide_grids_come_back_as_leaves():
    """Constant tiles of 8 and 128 voxels become leaves; two leaves 2^30 voxels apart are found without a search."""
    vdb = find_openvdb()
    grid = vdb.FloatGrid(0.0)
    grid.fill((0, 0, 0), (127, 7, 7), 2.0)
    grid.fill((256, 0, 0), (383, 127, 127), 3.0)
    grid.prune()
    found = level_set_from_grid(grid)
    assert (found.values == 2.0).sum() == 128 * 64
    assert (found.values == 3.0).sum() == 128**3
    wide = vdb.FloatGrid(0.0)
    for corner in ((0, 0, 0), (2**30, -(2**30), 64)):
        wide.copyFromArray(np.ones((8, 8, 8), np.float32), corner)
    assert sorted(map(tuple, level_set_from_grid(wide).origins)) == [(0, 0, 0), (2**30, -(2**30), 64)]
