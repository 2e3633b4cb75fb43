"""The sample `footprints`: its shoe, and its measures on made-up matter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.cli import main
from mpm_nodes.data import Particles
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Shot
from tests.reproduction import directed

CELL = 0.009


def script():
    """Return make_foot.py as a module."""
    spec = importlib.util.spec_from_file_location("make_foot", FOLDER / "make_foot.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_graph_is_valid_and_small(capsys):
    """It tells forces, sticks by the shoe alone, and ends no later than the shoe's keys."""
    assert main(["validate", str(FOLDER / "footprints.json")]) == 0, capsys.readouterr()
    graph = sizes.graph_of(SAMPLES["footprints"])
    assert graph.nodes["step"].knobs["contact_forces"] is True
    assert [name for name, entry in graph.nodes.items() if entry.knobs.get("adhesion")] == ["shoe"]
    assert graph.settings.end <= script().MOTION[-1][0] and graph.settings.cell_size == CELL


def test_the_shoe_is_what_its_script_makes_and_bends(tmp_path: Path):
    """The same points, to rounding; closed, its faces outwards; lengths along the sole are kept as it bends."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    made = script()
    made.main(tmp_path / "foot.usdc")
    for frame in (1, 24, 50):
        stages = [Usd.Stage.Open(str(folder / "foot.usdc")) for folder in (tmp_path, FOLDER)]
        points = [np.array(UsdGeom.Mesh(stage.GetPrimAtPath("/shoe")).GetPointsAttr().Get(frame)) for stage in stages]
        assert np.abs(points[0] - points[1]).max() < 2e-5
    for points, faces in (made.shoe(), made.leg()):
        edges = [pair for face in faces for pair in zip(face, [*face[1:], face[0]], strict=True)]
        assert sorted(edges) == sorted((b, a) for a, b in edges)
        fans = [(points[f[0]], points[f[n]], points[f[n + 1]]) for f in faces for n in range(1, len(f) - 1)]
        assert sum(float(a @ np.cross(b, c)) for a, b, c in fans) > 0.0
    sole = np.array([(x, 0.0, 0.0) for x in np.linspace(-0.2, 0.08, 29)])
    bent = made.bent(sole, 24)
    steps = np.linalg.norm(np.diff(bent, axis=0), axis=1)
    assert steps == pytest.approx(0.01, rel=1e-3) and bent[0, 1] - bent[20, 1] > 0.05


def test_measures_tell_strings_from_lumps():
    """A block with a string up to the sole, which is gone in the end, but for a lump that stays there."""
    spacing = 0.5 * CELL
    block = spacing * (np.stack(np.meshgrid(*map(np.arange, (90, 12, 50)), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)
    block += [-0.27, 0.0, -0.1125]
    string = np.array([(0.0, y, 0.0) for y in np.arange(block[:, 1].max(), 0.15, spacing)])
    lump = np.array([(x, 0.19, 0.0) for x in spacing * np.arange(5)])
    frames = {
        frame: Particles({"position": points, "mass": np.full(len(points), 1e-3)})
        for frame, points in {
            30: np.concatenate([block, string]),
            33: np.concatenate([block, string]),
            37: np.concatenate([block, string]),
            43: np.concatenate([block, lump]),
        }.items()
    }
    shot = Shot(FOLDER, tuple(frames), CELL, graph=sizes.graph_of(SAMPLES["footprints"]), kept=frames)
    depth, last, high, stuck = (figure.measured for figure in directed.footprints(shot))
    assert depth == pytest.approx(1e3 * (directed.MUD - block[:, 1].max())) and last == 37
    assert high == pytest.approx(1e3 * string[:, 1].max()) and stuck == pytest.approx(5.0)
