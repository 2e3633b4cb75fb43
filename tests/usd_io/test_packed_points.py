"""Packed particles: how far they are off, what they take, and that all that reads particles of a cache reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pxr import Sdf

from mpm_nodes import cli
from mpm_nodes.data import InputError, OutputError, Particles
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.preview.scene import open_scene
from usd_io.check import check_cache
from usd_io.stage import CacheNames, FrameContent, frame_layer
from usd_io.stage_reader import open_stage, read_points

CELL, PRECISION = 0.05, 0.001
STEP = 2.0**-14
"""The power of two next below twice a thousandth of a cell."""
NAMES = ("velocity", "id", "material", "mass", "volume", "displayColor")


def drop(precision: float = PRECISION, end: int = 4) -> Graph:
    """Return a ball that falls on the floor and is written."""
    graph = Graph(cell_size=CELL, start=1, end=end)
    jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=5e3)
    ball = graph.add("emit_sphere", "ball", material=jelly, radius=0.25, centre=(0.3, 0.26, -0.2), velocity=(0.5, -2.0, 0.0))
    ground = graph.add("collide_plane", "ground")
    fall = graph.add("solve", "fall", sources=[ball], colliders=[ground])
    graph.add("write_cache", "cache", particles=fall["particles"], position_precision=precision)
    return graph


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> dict[float, Path]:
    """Return revision folders of the same cook with exact and with packed particles."""
    return {
        precision: execute(drop(precision), out=tmp_path_factory.mktemp("cook")).revision_folder for precision in (0.0, PRECISION)
    }


def test_packed_particles_are_as_near_as_is_said(both):
    """Positions within half a step, velocities within what makes as much of a frame's motion, all else as it was."""
    for frame in range(1, 5):
        exact, packed = (read_points(both[precision] / "cache.usda", frame) for precision in (0.0, PRECISION))
        off = np.abs(packed["position"] - exact["position"]).max()
        slack = 1e-7  # the exact cache has float32, packed numbers come from the solve's own
        assert 0.25 * STEP < off <= 0.5 * STEP + slack and 0.5 * STEP <= PRECISION * CELL
        speed = 2.0 ** np.floor(np.log2(24.0 * STEP))
        slower = np.abs(packed["velocity"] - exact["velocity"]).max()
        assert slower <= 0.5 * speed * (1.0 + 1e-5) and (slower > 0.0 or frame == 1)
        for name in ("id", "material", "mass", "volume"):
            assert np.array_equal(packed[name], exact[name]), name
        assert packed.spacing == exact.spacing and packed.materials == exact.materials


def test_packed_particles_take_less_than_20_bytes(both):
    """Of 24 bytes for positions and velocities less than 15 stay."""
    taken = {}
    for precision, folder in both.items():
        count = len(read_points(folder / "cache.usda", 4))
        empty = len(_layer_of(Particles({"position": np.zeros((0, 3))})))
        taken[precision] = ((folder / "cache/cache.0004.usdc").stat().st_size - empty) / count
    assert taken[0.0] > 24.0 and taken[PRECISION] < 20.0, taken


def _layer_of(particles: Particles) -> str:
    layer = frame_layer(CacheNames("a"), 1, 24.0, FrameContent(particles, precision=PRECISION * CELL))
    return layer.ExportToString()


def test_the_stage_and_the_checker_say_what_is_rounded(both, capsys):
    """The error stands on the prim; `check` prints it, and finds nothing wrong."""
    stage = open_stage(both[PRECISION] / "cache.usda")
    facts = stage.GetPrimAtPath("/cache/particles").GetCustomData()
    assert facts["mpm_position_error"] == 0.5 * STEP and facts["mpm_velocity_error"] == 2.0**-11
    assert not stage.GetPrimAtPath("/cache/particles").HasAttribute("points")
    assert check_cache(both[PRECISION] / "cache.usda") == []
    assert cli.main(["check", str(both[PRECISION] / "cache.usda")]) == 0
    assert "/cache/particles: positions are rounded by at most 3.1e-05 m, velocities by at most 0.00049" in capsys.readouterr().out
    assert cli.main(["check", str(both[PRECISION] / "cache.usda"), "--json"]) == 0
    assert "rounded" in json.loads(capsys.readouterr().out)["notes"][0]
    assert cli.main(["check", str(both[0.0] / "cache.usda")]) == 0
    assert "rounded" not in capsys.readouterr().out


def test_extent_holds_what_is_read(both):
    """The box is that of the rounded positions with their widths."""
    prim = open_stage(both[PRECISION] / "cache.usda")
    low, high = np.array(prim.GetPrimAtPath("/cache/particles").GetAttribute("extent").Get(3))
    position = read_points(both[PRECISION] / "cache.usda", 3)["position"]
    assert (position.min(axis=0) > low).all() and (position.max(axis=0) < high).all()


def test_damaged_numbers_are_told(both, tmp_path):
    """Columns of unequal length are one line of the checker."""
    shutil.copytree(both[PRECISION], tmp_path / "copy", ignore=shutil.ignore_patterns("frames"))
    layer = Sdf.Layer.FindOrOpen(str(tmp_path / "copy/cache/cache.0002.usdc"))
    layer.SetTimeSample("/cache/particles.mpm:packed:velocities_y", 2.0, [1, 2])
    layer.Save()
    problems = "\n".join(check_cache(tmp_path / "copy/cache.usda"))
    assert "/cache/particles: velocities are packed in columns of [" in problems and ", 2, " in problems
    with pytest.raises(InputError, match="packed in columns"):
        read_points(tmp_path / "copy/cache.usda", 2)


def test_nodes_and_pictures_read_packed_particles(both, tmp_path):
    """Retiming, secondary matter, a source and the preview give what they give of the exact cache, to the rounding."""
    shown, born = {}, []
    for precision, folder in both.items():
        stage = folder / "cache.usda"
        graph = Graph(cell_size=CELL, start=1, end=6)
        graph.add("retime_points", "slow", path=str(stage), speed=0.5)
        graph.add("emit_secondary", "spray", path=str(stage), low=0.5, high=2.0, surface_only=False)
        graph.add("read_points", "again", path=str(stage), frame_offset=-3)
        outputs = execute(graph, frames=(4, 5)).outputs
        born.append(len(outputs["spray"]["particles"]))
        [cloud] = open_scene(stage).shapes(3).clouds
        later = open_scene(stage).shapes(3, later=0.02).clouds[0]
        shown[precision] = [outputs["slow"]["particles"]["position"], outputs["again"]["particles"]["position"]]
        shown[precision] += [cloud.positions, later.positions]
    assert born[0] > 100 and abs(born[1] / born[0] - 1.0) < 0.02
    for exact, packed in zip(shown[0.0], shown[PRECISION], strict=True):
        assert len(exact) > 500 and 0.0 < np.abs(exact - packed).max() < STEP


def test_a_cook_resumes_from_checkpoints_and_not_from_rounded_points(both, tmp_path):
    """Stopped and resumed, the bytes are those of the cook that ran through, and the solve is that of the exact cache."""
    execute(drop(), frames=(1, 2), out=tmp_path)
    result = execute(drop(), frames=(1, 4), out=tmp_path, resume=True)
    assert result.cooked == (3, 4)
    for frame in (3, 4):
        name = f"cache/cache.{frame:04d}.usdc"
        assert (result.revision_folder / name).read_bytes() == (both[PRECISION] / name).read_bytes()
    checkpoints = sorted(
        path.relative_to(both[0.0]) for path in both[0.0].rglob("*") if "checkpoint" in str(path) and path.is_file()
    )
    assert checkpoints
    solved = [path for path in checkpoints if path.suffix not in (".json",)]
    assert all((both[0.0] / path).read_bytes() == (result.revision_folder / path).read_bytes() for path in solved)


def test_empty_frames_and_far_places():
    """No particles are a frame like any other; where 32 bits do not reach, the cure is named."""
    layer = _layer_of(Particles({"position": np.zeros((0, 3)), "velocity": np.zeros((0, 3))}))
    assert "mpm:packed:points_x" in layer
    far = Particles({"position": np.full((1, 3), 3e5)}, (), 0.5)
    with pytest.raises(OutputError, match="raise position_precision, or move the scene nearer"):
        _layer_of(far)


def test_other_columns_do_not_come_out_as_packed_numbers(both):
    """What is read are particle attributes, and none of the columns that they were packed in."""
    packed, exact = (set(read_points(both[precision] / "cache.usda", 2).attributes) for precision in (PRECISION, 0.0))
    assert packed == exact
