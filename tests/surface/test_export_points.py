"""Exported points parse back: OBJ lines, binary PLY, names and every n-th frame."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import FrameContext, GraphSettings, MpmNodesError, OutputError, Particles
from mpm_nodes.nodes.export import PointFormat, export_points, numbered, obj_bytes, ply_bytes

RANDOM = np.random.default_rng(0)
POINTS = Particles(
    {
        "position": RANDOM.normal(size=(50, 3)),
        "velocity": RANDOM.normal(size=(50, 3)),
        "mass": RANDOM.random(50),
        "id": np.arange(50),
    }
)


class Folder:
    """Stands in for a frame transaction: files go straight into a folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number = folder, number

    def path(self, relative: str) -> Path:
        target = self.folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def read_ply(content: bytes) -> np.ndarray:
    """Parse a binary little-endian PLY of one element by its own header."""
    header, _, body = content.partition(b"end_header\n")
    lines = header.decode().splitlines()
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    count = next(int(line.split()[2]) for line in lines if line.startswith("element vertex"))
    codes = {"float": "<f4", "int": "<i4", "uchar": "u1"}
    fields = [(line.split()[2], codes[line.split()[1]]) for line in lines if line.startswith("property")]
    record = np.frombuffer(body, np.dtype(fields))
    assert len(record) == count
    return record


def test_obj_holds_every_point_to_nine_digits():
    """One v line a particle, in order."""
    lines = [line.split() for line in obj_bytes(POINTS).decode().splitlines()]
    found = np.array([[float(word) for word in line[1:]] for line in lines if line[0] == "v"])
    assert np.allclose(found, POINTS["position"], rtol=1e-8)


def test_ply_holds_positions_velocities_and_chosen_columns():
    """Binary values come back in float32; integers stay integers."""
    record = read_ply(ply_bytes(POINTS, ("velocity", "mass", "id")))
    assert np.array_equal(np.stack([record[n] for n in "xyz"], 1), POINTS["position"].astype(np.float32))
    assert np.array_equal(np.stack([record[f"v{n}"] for n in "xyz"], 1), POINTS["velocity"].astype(np.float32))
    assert np.array_equal(record["mass"], POINTS["mass"].astype(np.float32))
    assert np.array_equal(record["id"], POINTS["id"])
    with pytest.raises(MpmNodesError, match="have no 'heat'; they have J, id, mass, position, speed, surface_tension, velocity"):
        ply_bytes(POINTS, ("heat",))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("points.####.obj", "points.0007.obj"), ("a/p##", "a/p07"), ("p", "p.0007"), ("p.#.ply", "p.7.ply")],
)
def test_frame_numbers_take_the_place_of_hashes(pattern, name):
    """#### is the padded frame number; without any it is appended."""
    assert numbered(pattern, 7) == name


def test_hashes_in_two_places_are_refused():
    """The pattern must hold one run of #."""
    with pytest.raises(OutputError, match="keep one run"):
        numbered("a##/b##.obj", 7)


def test_every_third_frame_is_written(tmp_path: Path):
    """Frames 1, 4, 7 of 1..7 make files; the ending follows the format and is not doubled."""
    ctx = FrameContext(1, GraphSettings(start=1))
    for frame in range(1, 8):
        at = replace(ctx, frame=frame, files=Folder(tmp_path, frame))
        made = export_points(at, POINTS, path=Path("out/p.###.obj"), every=3)
        assert made.file == (f"out/p.{frame:03d}.obj" if frame in (1, 4, 7) else "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["p.001.obj", "p.004.obj", "p.007.obj"]
    made = export_points(replace(ctx, files=Folder(tmp_path, 1)), POINTS, format=PointFormat.PLY)
    assert made.file == "points/points.0001.ply"
    assert len(read_ply((tmp_path / made.file).read_bytes())) == 50


def test_without_an_output_folder_it_says_how_to_cook():
    """No transaction: the message holds the command."""
    with pytest.raises(OutputError, match="mpm-nodes cook GRAPH --out DIR"):
        export_points(FrameContext(1), POINTS)
