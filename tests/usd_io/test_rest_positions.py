"""Places at rest: they travel through a solve with the age of the matter, and take turns behind a finished cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Gf, Usd, UsdGeom

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, Material, Particles
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.nodes.colours import COLOUR, colour_particles
from mpm_nodes.nodes.derived import column
from mpm_nodes.nodes.looks import rest_positions
from usd_io.stage_reader import read_points

LAST, PERIOD = 30, 8


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Write five points that go one metre along x every frame; the last comes with frame 11."""
    path = tmp_path / "walk.usda"
    stage = Usd.Stage.CreateNew(str(path))
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(LAST)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    points = UsdGeom.Points.Define(stage, "/walk")
    for frame in range(1, LAST + 1):
        count = 5 if frame >= 11 else 4
        points.GetPointsAttr().Set([Gf.Vec3f(frame, k, 0.0) for k in range(count)], frame)
        points.GetIdsAttr().Set(list(range(count)), frame)
        points.GetWidthsAttr().Set([0.1] * count, frame)
    stage.GetRootLayer().Save()
    return path


def test_each_place_is_renewed_where_it_does_not_show(cache):
    """No place is older than a period, none changes but while its share is 0, and the share goes evenly up and down."""
    before: tuple[float, float, float] | None = None
    for frame in range(1, LAST + 1):
        found = read_points(cache, frame, "")
        given = rest_positions(FrameContext(frame, GraphSettings(start=1, end=LAST)), found, path=cache, period=PERIOD)
        first, second = float(given["rest"][0, 0]), float(given["restB"][0, 0])
        share = float(given["rest_blend"][0])
        assert 0 <= frame - first < PERIOD and 0 <= frame - second < PERIOD and 0.0 <= share <= 1.0
        assert np.array_equal(given["rest"][:4, 1], np.arange(4))
        if before is not None:
            assert abs(share - before[2]) == pytest.approx(2.0 / PERIOD)
            assert first == before[0] or share == 1.0
            assert second == before[1] or share == 0.0
        before = first, second, share
    assert np.array_equal(given["rest"][4], [25.0, 4.0, 0.0])
    early = rest_positions(
        FrameContext(12, GraphSettings(start=1, end=LAST)), read_points(cache, 12, ""), path=cache, period=PERIOD
    )
    assert np.array_equal(early["rest"][4], [12.0, 4.0, 0.0]), "what was not there yet rests where it is"


def test_rest_and_age_come_through_a_solve(tmp_path):
    """Matter that falls keeps its place in the source; what streams in is as old as it is long since; skins carry both."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=7)
    matter = graph.add("material_liquid", "matter", bulk_modulus=1e4)
    box = graph.add("emit_box", "box", material=matter, size=(0.2, 0.1, 0.2), centre=(0.0, 2.0, 0.0))
    nozzle = graph.add("emit_box", "nozzle", material=matter, size=(0.1, 0.1, 0.1), centre=(1.0, 2.0, 0.0))
    still = graph.add("rest_positions", "still", particles=box)
    filled = graph.add("rest_positions", "filled", particles=nozzle)
    stream = graph.add("emit_stream", "stream", template=filled, velocity=(0.0, -2.0, 0.0))
    solve = graph.add("solve", "solve", sources=[still], emitters=[stream])
    skin = graph.add("surface_particles", "surface", particles=solve["particles"], attributes=["rest", "age", "speed", "J"])
    graph.add(
        "write_cache", "cache", particles=solve["particles"], mesh=skin["mesh"], attributes=["velocity", "id", "rest", "birth"]
    )
    folder = execute(graph, out=tmp_path).revision_folder
    first, last = (read_points(folder / "cache.usda", frame, "particles") for frame in (1, 7))
    fell = last["rest"][:, 0] < 0.5
    assert (last["position"][fell, 1] < last["rest"][fell, 1] - 0.1).all()
    order = [np.argsort(each["id"]) for each in (first, last)]
    count = len(first)
    assert np.array_equal(first["rest"][order[0]], last["rest"][order[1]][:count])
    age = last.time - last["birth"]
    assert np.allclose(age[fell], 6.0 / 24.0, atol=1e-6)
    late = ~fell
    assert late.sum() > 50 and age[late].min() < 0.05 and age[late].max() < 0.26
    free = 2.0 * age + 0.5 * 9.81 * age**2
    out = 1.95 - last["position"][:, 1]
    assert np.abs(out - free)[late].max() < 0.06
    stage = Usd.Stage.Open(str(folder / "cache.usda"))
    mesh = stage.GetPrimAtPath("/cache/mesh")
    for name in ("rest", "age", "speed", "J"):
        assert len(mesh.GetAttribute(f"primvars:{name}").Get(7)) == len(mesh.GetAttribute("points").Get(7))


def test_colours_follow_an_attribute():
    """Straight between the colours of the table, level beyond; vectors by their length; computed ones by name."""
    matter = Particles(
        {
            "position": np.zeros((4, 3)),
            "temperature": np.array([200.0, 300.0, 350.0, 900.0], np.float32),
            "velocity": np.array([[3.0, 4.0, 0.0]] * 4, np.float32),
            "plastic_volume_ratio": np.full(4, 1.25, np.float32),
        },
        (Material("snow", {}, 1.0),),
    )
    shown = colour_particles(matter, colours=("#000000", "#ff0000"), attribute="temperature", low=300.0, high=400.0)[COLOUR]
    assert np.allclose(shown, [[0, 0, 0], [0, 0, 0], [0.5, 0, 0], [1, 0, 0]])
    fast = colour_particles(matter, colours=("#000000", "#ff0000"), attribute="velocity", high=10.0)[COLOUR]
    assert np.allclose(fast, [[0.5, 0, 0]] * 4)
    assert np.allclose(column("x", matter, "speed"), 5.0) and np.allclose(column("x", matter, "Jp"), 1.25)
    with pytest.raises(Exception, match=r"no 'age'.*wire rest_positions in before the solve"):
        colour_particles(matter, attribute="age")
    with pytest.raises(Exception, match="give two values between which colours change"):
        colour_particles(matter, attribute="speed", low=1.0, high=1.0)
