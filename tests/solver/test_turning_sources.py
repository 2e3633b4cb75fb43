"""Streams whose nozzle turns with its path, or bends: directions, births between frames, and the same bits."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from solver_scenes import LIQUID, cube, shot

from mpm_nodes.data import CurvePath, GraphSettings, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.fields import constant
from mpm_nodes.nodes.streams import emit_stream
from mpm_nodes.solver.emission import Stream
from mpm_nodes.solver.metering import MeteredStream
from mpm_nodes.verification.emission import SurfaceSource, TurningSource

SETTINGS = GraphSettings(cell_size=0.02, fps=24.0, start=1, end=49)
NOZZLE = emit_box(SETTINGS, LIQUID, size=(0.08, 0.04, 0.08), centre=(0.0, 0.5, 0.0))


def line(points: list[tuple[float, float, float]], travel: float = 0.0) -> CurvePath:
    """Return a polygon that is followed."""
    places = np.array(points, float)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    return CurvePath(places, np.concatenate([[0.0], np.cumsum(steps)]), travel, follows=True)


@pytest.mark.parametrize("problem", [TurningSource, SurfaceSource])
def test_closed_forms(problem):
    """A quarter of a circle, a sheet that bends, a ball and a plane."""
    for record in problem().records():
        assert record.passed, record


def test_a_polygon_turns_in_its_corners():
    """By a right angle at each, at once; straight pieces and pieces without length turn nothing; ends hold."""
    path = line([(0, 0, 0), (1, 0, 0), (1, 0, 0), (2, 0, 0), (2, 1, 0), (2, 1, 1)])
    for share, way in (
        (-1.0, [1, 0, 0]),
        (0.3, [1, 0, 0]),
        (0.499, [1, 0, 0]),
        (0.501, [0, 1, 0]),
        (0.76, [0, 0, 1]),
        (2.0, [0, 0, 1]),
    ):
        np.testing.assert_allclose(path.turn(share) @ [1.0, 0.0, 0.0], way, atol=1e-12)
        np.testing.assert_allclose(path.turn(share) @ path.turn(share).T, np.eye(3), atol=1e-12)
    back = line([(0, 0, 0), (1, 0, 0), (0, 0, 0)])
    np.testing.assert_allclose(back.turn(0.9) @ [1.0, 0.0, 0.0], [-1, 0, 0], atol=1e-12)
    assert np.linalg.det(back.turn(0.9)) == pytest.approx(1.0)


def test_a_flat_curve_gives_no_twist():
    """Around a circle and back to its beginning the turn is none."""
    turns = np.linspace(0.0, 2.0 * np.pi, 721)
    path = line([(np.cos(a), np.sin(a), 0.0) for a in turns])
    np.testing.assert_allclose(path.turn(1.0), np.eye(3), atol=0.01)
    np.testing.assert_allclose(path.turn(0.25), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=0.01)


@pytest.mark.parametrize("knobs", [{}, {"rate": 2e-3}], ids=["stream", "metered"])
def test_substeps_do_not_show(knobs):
    """Cut into 1, 7 or 300 spans a stream that follows its path is the same."""
    turns = np.linspace(0.0, 3.0, 400)
    path = line(
        [(0.3 * np.cos(a), 0.1 * a, 0.3 * np.sin(a)) for a in turns], KeyedNumber([(1, 0.0, "linear"), (25, 1.0, "smooth")])
    )
    found = []
    for spans in (1, 7, 300):
        emitter = dataclasses.replace(emit_stream(SETTINGS, NOZZLE, velocity=(0.0, -0.5, 0.1), **knobs), path=path)
        stream = (MeteredStream if knobs else Stream)(emitter, np.zeros(1, np.int32), Clock.of(SETTINGS))
        parts = []
        for begin, end in itertools.pairwise([-np.inf, *np.linspace(0.0, 0.9, spans + 1)]):
            columns = stream.between(begin, end)
            if columns is not None:
                parts.append(columns["position"] + (0.9 - end) * columns["velocity"])
        places = np.concatenate(parts)
        found.append(places[np.lexsort(places.round(6).T)])
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, atol=1e-7)
    assert len(found[0]) > 1000


def test_a_stream_of_points_that_bend_resumes_to_the_same_bits(tmp_path):
    """Points of a file that keep their order: births between frames, as an interrupted cook makes them."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    from usd_io.stage_reader import read_points

    rest = cube(LIQUID, cells=4)["position"][:64] * [1.0, 1.0, 1.0]
    stage = Usd.Stage.CreateNew(str(tmp_path / "sheet.usda"))
    stage.SetTimeCodesPerSecond(24)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    points = UsdGeom.Points.Define(stage, "/sheet")
    for frame in range(1, 7):
        bent = rest + np.column_stack([0.0 * rest[:, 2], 0.0 * rest[:, 2], 0.05 * np.sin(9.0 * rest[:, 1] + frame)])
        points.CreatePointsAttr().Set([tuple(map(float, each)) for each in bent], frame)
    stage.GetRootLayer().Save()
    graph = shot(end=6, material="material_liquid", size=0.2, centre=(2.0, 0.0, 0.0))
    sheet = graph.add("read_points", "sheet", material=graph["matter"], path=str(tmp_path / "sheet.usda"), spacing=0.05)
    stream = graph.add("emit_stream", "stream", template=sheet, velocity=(3.0, 0.0, 0.0), deforms=True)
    graph.nodes["sim"].connect("emitters", [stream])
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id"])
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 3), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    found = [read_points(each.revision_folder / "cache.usda", 6) for each in (whole, parts)]
    for name in ("position", "velocity", "id"):
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert np.abs(found[0]["velocity"][:, 2]).max() > 0.5


def test_gaps_of_what_keeps_its_particles_are_told():
    """A ball that deforms is not filled out."""
    from mpm_nodes.nodes.emit import emit_sphere

    ball = emit_sphere(SETTINGS, LIQUID, radius=0.1)
    with pytest.warns(UserWarning, match="emit_stream.template: copies of it leave gaps"):
        emitter = emit_stream(SETTINGS, ball, deforms=True)
    assert len(emitter.template) == len(ball) and emitter.deforms


def test_a_ball_that_moves_streams_all_around_and_resumes_to_the_same_bits(tmp_path):
    """Its surface goes along; what comes takes its velocity; the estimate before the cook is right to a fifth."""
    pytest.importorskip("pxr")
    from usd_io.stage_reader import read_points

    graph = shot(end=6, material="material_liquid", size=0.2, centre=(5.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0))
    centre = {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [6, [0.5, 0.0, 0.0], "linear"]]}
    ball = graph.add("emit_sphere", "ball", material=graph["matter"], radius=0.3, centre=centre, lattice="body")
    around = graph.add("field_shape", "around", radius=0.3, centre=centre, output="distance")
    stream = graph.add("emit_stream", "stream", template=ball, surface=around, velocity=(0.0, -4.0, 0.0))
    graph.nodes["sim"].connect("emitters", [stream])
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id"])
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 3), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    found = [read_points(each.revision_folder / "cache.usda", 6) for each in (whole, parts)]
    for name in ("position", "velocity", "id"):
        np.testing.assert_array_equal(found[0][name], found[1][name])
    came = found[0]["position"][:, 0] < 4.0
    assert came.sum() > 1000 and np.ptp(found[0]["position"][came], axis=0).min() > 1.0
    estimated = estimate(plan_graph(graph), 1)["sim"]["particles"] - (~came).sum()
    assert estimated == pytest.approx(came.sum(), rel=0.2)


def test_surfaces_that_are_none_are_told():
    """Vectors, attributes and profiles before the cook, and a distance that does not change."""
    graph = shot(material="material_liquid")
    for knobs, field, message in (
        ({}, graph.add("field_vector", "up"), "emit_stream.surface: is a field of vectors"),
        (
            {},
            graph.add("field_attribute", "speed", attribute="speed"),
            "emit_stream.surface: this field is looked at where there are no",
        ),
        ({"profile": "parabolic"}, graph.add("field_shape", "ball"), "emit_stream.profile: parabolic is of a nozzle"),
    ):
        graph.add("emit_stream", "stream", template=graph["block"], surface=field, **knobs)
        with pytest.raises(MpmNodesError, match=message):
            estimate(plan_graph(graph), 1)
        del graph.nodes["stream"]
    graph.add("emit_stream", "stream", template=graph["block"], surface=graph.add("field_constant", "flat"))
    with pytest.raises(MpmNodesError, match="the distance does not change where the template is"):
        estimate(plan_graph(graph), 1)
    flat = emit_stream(SETTINGS, NOZZLE, surface=constant(1.0))
    with pytest.raises(MpmNodesError, match="the distance does not change where the template is"):
        Stream(flat, np.zeros(1, np.int32))
