"""One clock for files: every node that reads a USD stage finds a frame at its second, whatever the file's codes per second are."""

from __future__ import annotations

import enum
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import NodeDeclaration
from mpm_nodes.nodes.caches import read_points
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.secondary import emit_secondary
from usd_io.stage_reader import frames_of
from usd_io.time_codes import Codes, StageFrames, frames_of_samples

FRAMES, ASKED = 6, 3
"""Frames in a file, and the one that is asked for, from the first."""
MATTER = Material("liquid", {}, 1000.0, "matter")
NO_STAGE = ("emit_level_set", "export_points", "field_image", "field_curve", "emit_stream", "deform_mesh")
"""Nodes whose path names no stage that changes, besides those with `vdb` in their names: readers of other files, of curves, and of
the first frame, a writer."""

NODES = {each.id: each for each in registries.default() if isinstance(each, NodeDeclaration)}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "emit_mesh": ("mesh", {"lattice": "body"}),
    "collide_usd": ("mesh", {}),
    "field_primvar": ("mesh", {}),
    "read_points": ("points", {}),
    "retime_points": ("points", {}),
    "rest_positions": ("points", {"period": 4}),
    "emit_secondary": ("points", {"low": 1.0, "high": 2.0, "amount": 200.0, "size": 0.01}),
}
"""Readers of USD files: what their file holds, and their knobs."""


def written(folder: Path, kind: str, codes: float, fps: float, start: int, digits: int | None = None) -> Path:
    """Write a box that moves and grows, as a mesh with painted values or as points, with a sample for each frame of the shot."""
    from pxr import Sdf, Usd, UsdGeom, Vt

    path, box = folder / f"{kind}_{codes:g}_{fps:g}_{start}_{digits}.usda", box_mesh((0.613, 0.587, 0.631))
    stage = Usd.Stage.CreateNew(str(path))
    stage.SetTimeCodesPerSecond(codes)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    times = [frame * codes / fps for frame in range(start, start + FRAMES)]
    times = times if digits is None else [round(time, digits) for time in times]
    stage.SetStartTimeCode(times[0])
    stage.SetEndTimeCode(times[-1])
    prim = (UsdGeom.Mesh if kind == "mesh" else UsdGeom.Points).Define(stage, f"/{kind}")
    mask = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("mask", Sdf.ValueTypeNames.FloatArray, "vertex")
    for since, time in enumerate(times):
        points = box.points * (1.0 + 0.05 * since) + (0.1 * since, 1.017, 0.0031)  # off the cells' borders
        prim.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)), time)
        if kind == "points":
            prim.CreateVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(np.full((8, 3), (3.0, 0.0, 0.0), np.float32)), time)
            prim.CreateWidthsAttr().Set(Vt.FloatArray([0.05] * 8), time)
            continue
        mask.Set([0.5 * (1.0 + 0.1 * since + 0.02 * corner) for corner in range(8)], time)
    if kind == "mesh":
        prim.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
        prim.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
    stage.GetRootLayer().Save()
    return path


def numbers(value: Any) -> np.ndarray:
    """Return all numbers within a nested value, one after the other; names and times do not count."""
    if isinstance(value, np.ndarray):
        return value.astype(float).ravel() if value.dtype.kind in "biuf" else np.zeros(0)
    if isinstance(value, (bool, int, float)):
        return np.array([float(value)])
    if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, enum.Enum):
        value = vars(value)
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value) if key not in ("name", "time", "key", "digest")]
    return np.concatenate([np.zeros(0), *map(numbers, value)]) if isinstance(value, (list, tuple)) else np.zeros(0)


def found(node: str, path: Path, fps: float, start: int, since: int = ASKED) -> np.ndarray:
    """Return where what a node reads is: all that it publishes `since` frames after the shot's first one, as numbers."""
    graph = Graph(cell_size=0.1, fps=fps, start=start, end=start + FRAMES - 1)
    matter = graph.add("material_liquid", "matter", bulk_modulus=1e4)
    declaration = NODES[node]
    given: dict[str, Any] = {"path": str(path), **CASES[node][1]}
    if declaration.knob("frame"):
        given["frame"] = float(start + since)
    if declaration.port("material"):
        given["material"] = matter
    if declaration.port("particles"):
        given["particles"] = graph.add("emit_box", "block", material=matter, size=(0.8,) * 3)
    graph.add(node, "it", **given)
    value = Evaluator(graph).value(f"it.{declaration.outputs[0].name}", start + since)
    return numbers(value)


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_every_reader_of_a_stage_is_held_to_the_clock():
    """Each node with the path of a USD file is among the cases below."""
    readers = {
        name
        for name, each in NODES.items()
        if any(knob.name == "path" for knob in each.knobs) and "vdb" not in name and name not in NO_STAGE
    }
    assert readers == set(CASES)


@pytest.mark.parametrize(
    ("fps", "codes", "start"), [(24.0, 48.0, 1001), (23.976, 48.0, -5), (24.0, 1000.0, -5), (23.976, 1000.0, 1001)]
)
@pytest.mark.parametrize("node", list(CASES))
def test_readers_find_a_frame_at_its_second(tmp_path, node, fps, codes, start):
    """What a node reads from a file of other codes per second is what it reads where codes are frames."""
    kind = CASES[node][0]
    wanted = found(node, written(tmp_path, kind, fps, fps, start), fps, start)
    other = found(node, written(tmp_path, kind, codes, fps, start), fps, start)
    assert len(wanted) and len(other) == len(wanted)
    np.testing.assert_allclose(other, wanted, rtol=1e-3, atol=1e-3)  # a fiftieth of what a frame changes, or less
    before = found(node, tmp_path / f"{kind}_{fps:g}_{fps:g}_{start}_None.usda", fps, start, ASKED - 1)
    assert len(before) != len(wanted) or not np.allclose(before, wanted, rtol=1e-3, atol=1e-3)


def read(path: Path, frame: int, fps: float, start: int = 1):
    return read_points(FrameContext(frame, GraphSettings(fps=fps, start=start, end=start + 9)), MATTER, path=path)


@pytest.mark.parametrize("fps", [24.0, 30.0])
def test_codes_that_a_program_rounded_are_taken(tmp_path, fps):
    """A thousand codes a second, each a whole number: every frame finds the sample that was rounded."""
    path = written(tmp_path, "points", 1000.0, fps, 1001, digits=0)
    for since in range(FRAMES):
        assert read(path, 1001 + since, fps)["position"][:, 0].mean() == pytest.approx(0.1 * since, abs=1e-6)
    frames = frames_of(path)
    assert (frames.last - frames.first, frames.fps) == (FRAMES - 1, pytest.approx(fps, rel=0.01))


def test_points_of_another_rate_are_refused_with_the_cure(tmp_path):
    """Samples at 24 a second lie at every second frame of a shot of 48, and between those of another: told what plays them."""
    path = written(tmp_path, "points", 24.0, 24.0, 1)
    for fps in (48.0, 12.0, 25.0):
        with pytest.raises(InputError, match=rf"counts 24 time codes a second, and the frames are {fps:g} a second.*retime_points"):
            read(path, 2, fps)


def test_caches_of_ours_keep_their_numbers(tmp_path):
    """Frame 3 of a cache of 24 frames a second is frame 3 of a shot of 48, and that the velocities do not fit is told."""
    graph = Graph(cell_size=0.1, fps=24, start=1, end=3)
    matter = graph.add("material_liquid", "matter")
    box = graph.add("emit_box", "box", material=matter, size=(0.2,) * 3)
    graph.key("box.centre", 1, [0.0, 0.0, 0.0])
    graph.key("box.centre", 3, [1.0, 0.0, 0.0])
    graph.add("write_cache", "cache", particles=box)
    path = execute(graph, out=tmp_path).revision_folder / "cache.usda"
    assert frames_of(path) == StageFrames(1.0, 0.0, 1, 3, 24.0, True)
    assert read(path, 3, 48.0)["position"][:, 0].mean() == pytest.approx(1.0, abs=0.06)
    with pytest.warns(UserWarning, match=r"24 frames a second and the shot 48.*retime_points"):
        read(path, 1, 48.0)
    read(path, 1, 24.0)  # nothing to tell: warnings are errors here


def test_secondary_matter_flies_between_the_frames_of_a_file(tmp_path):
    """A file of 24 frames a second in a shot of 96: what was born is a quarter of a frame further on at each frame of the shot."""
    path, knobs = written(tmp_path, "points", 24.0, 24.0, 0), {"low": 1.0, "high": 2.0, "amount": 400.0, "fall_speed": 1e6}
    settings = GraphSettings(fps=96.0, start=0, end=20)

    def at(frame: int):
        made = emit_secondary(
            FrameContext(frame, settings), MATTER, path=path, size=0.01, spread=0.0, wind=(0.0, 1e6, 0.0), life=99.0, **knobs
        )
        return dict(zip(made["id"].tolist(), made["position"][:, 0].tolist(), strict=True))

    places = [at(frame) for frame in range(17)]
    assert len(places[0]) == 0 and 0 < len(places[2]) < len(places[4]) < len(places[16])
    for before, after in itertools.pairwise(places):
        assert set(before) <= set(after)
        for name, x in before.items():
            assert after[name] - x == pytest.approx(3.0 / 96.0, rel=0.01)


def test_frames_of_samples():
    """Even samples are frames whatever the codes; a gap leaves the least distance; without samples a code is a frame."""
    even = frames_of_samples(2.0, 12.0, 48.0, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    assert (even.first, even.last, even.fps, even.code(3), even.frame(7.0)) == (1, 6, 24.0, 6.0, 3.5)
    gap = frames_of_samples(1.0, 4.0, 24.0, [1.0, 2.0, 4.0])
    assert (gap.first, gap.last, gap.fps) == (1, 4, 24.0)
    shifted = frames_of_samples(5.0, 9.0, 48.0, [5.0, 7.0, 9.0])
    assert [shifted.code(frame) for frame in range(shifted.first, shifted.last + 1)] == [5.0, 7.0, 9.0]
    none = frames_of_samples(1.0, 4.0, 25.0, [])
    assert (none.first, none.last, none.fps, none.step) == (1, 4, 25.0, 1.0)
    assert Codes(2.0).frame(6.01) == 3.0 and Codes(2.0).frame(6.5) == 3.25
