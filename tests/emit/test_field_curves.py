"""Flows along curves of USD files, and the distance from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import GraphSettings, MpmNodesError
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.graph.values.kept import NOTHING_KEPT
from mpm_nodes.nodes.fields_of_curves import CurveOutput, field_curve
from mpm_nodes.nodes.forces import force_wind
from mpm_nodes.solver.field_programs import field_values

UsdGeom = pytest.importorskip("pxr.UsdGeom")
SETTINGS = GraphSettings(cell_size=0.02)
BOW = 0.5522847498
"""Of the handles of a Bezier curve that is nearly a quarter of a circle."""


def curve_file(path: Path, points: list, wrap: str = "nonperiodic", linear: bool = True, unit: float = 1.0) -> Path:
    """Write one curve."""
    from pxr import Usd

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    curve = UsdGeom.BasisCurves.Define(stage, "/curve")
    curve.CreateTypeAttr("linear" if linear else "cubic")
    curve.CreateBasisAttr("bezier")
    curve.CreateWrapAttr(wrap)
    curve.CreatePointsAttr([tuple(map(float, each)) for each in points])
    curve.CreateCurveVertexCountsAttr([len(points)])
    stage.GetRootLayer().Save()
    return path


def circle(path: Path) -> Path:
    """Write a circle of 1 m around y, in centimetres, clockwise as it is seen from above."""
    quarter = [(1, 0, 0), (1, 0, BOW), (BOW, 0, 1)]
    turns = [np.array([[0, 0, -1], [0, 1, 0], [1, 0, 0]]), np.diag([-1, 1, -1]), np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]])]
    points = np.concatenate([np.array(quarter, float), *(np.array(quarter, float) @ turn.T for turn in turns)])
    return curve_file(path, list(100.0 * points), "periodic", linear=False, unit=0.01)


def test_the_flow_around_a_circle_follows_it_and_closes(tmp_path):
    """Speed along, pull towards, none beyond the radius; distance and inside are of the same circle, and there is no seam."""
    path = circle(tmp_path / "circle.usda")
    random = np.random.default_rng(3)
    angle, gap, rise = random.uniform(0.0, 2.0 * np.pi, 3000), random.uniform(-0.35, 0.35, 3000), random.uniform(-0.35, 0.35, 3000)
    across = np.column_stack([np.cos(angle), 0.0 * angle, np.sin(angle)])
    places = (1.0 + gap)[:, None] * across + np.column_stack([0.0 * rise, rise, 0.0 * rise])
    distance = np.hypot(gap, rise)
    flow = field_values(field_curve(SETTINGS, path=path, speed=2.0, pull=3.0, radius=0.3), places, 1.0)
    along = np.column_stack([-np.sin(angle), 0.0 * angle, np.cos(angle)])
    wanted = 2.0 * along + 3.0 * (across - places)
    piece = 2.0 * np.pi / 256.0  # by which the direction turns from one to the next
    assert np.abs(flow - wanted)[distance < 0.3].max() < 2.0 * 0.5 * piece + 0.01
    assert not flow[distance > 0.3 + 0.08].any()
    told = field_values(field_curve(SETTINGS, path=path, output=CurveOutput.DISTANCE, radius=0.25), places, 1.0)
    far = distance > 0.04
    np.testing.assert_allclose(told[far], np.minimum(distance, 0.25)[far], atol=2e-3)
    inside = field_values(field_curve(SETTINGS, path=path, output=CurveOutput.INSIDE, radius=0.1, falloff=0.1), places, 1.0)
    assert (inside[distance < 0.098] == 1.0).all() and (inside[distance > 0.202] == 0.0).all()
    assert inside[abs(distance - 0.15) < 1e-3] == pytest.approx(0.5, abs=0.03)


def test_beyond_its_ends_an_open_curve_goes_straight_on(tmp_path):
    """At 0.1 m behind the last point and 0.05 m beside it the flow goes on, and is drawn to the line that it goes on along."""
    path = curve_file(tmp_path / "line.usda", [(0, 0, 0), (0, 1, 0)])
    spots = np.array([[0.05, 1.1, 0.0], [0.0, -0.1, 0.05], [0.05, 0.5, 0.0]])
    flow = field_values(field_curve(SETTINGS, path=path, speed=1.0, pull=2.0), spots, 1.0)
    np.testing.assert_allclose(flow, [[-0.1, 1.0, 0.0], [0.0, 1.0, -0.1], [-0.1, 1.0, 0.0]], atol=1e-6)


def test_speed_and_pull_take_keys(tmp_path):
    """Halfway between two keys it is their mean."""
    path = curve_file(tmp_path / "line.usda", [(0, 0, 0), (0, 1, 0)])
    speed, pull = KeyedNumber([(1, 0.0, "linear"), (3, 4.0, "linear")]), KeyedNumber([(1, 6.0, "linear"), (3, 0.0, "linear")])
    flow = field_curve(SETTINGS, NOTHING_KEPT, path=path, speed=speed, pull=pull)
    np.testing.assert_allclose(field_values(flow, np.array([[0.1, 0.5, 0.0]]), 2.0), [[-0.3, 2.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize(
    ("points", "radius", "says"),
    [
        (
            [(0, 0, 0), (0, 1, 0)],
            40.0,
            "field_curve.radius: with the falloff 40 m around a curve of 1 m is too far",
        ),
        ([(0, 0, 0), (0, 0, 0)], 0.3, "has no length"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_cook(points, radius, says, tmp_path):
    """A reach of too many voxels, and a curve without length."""
    path = curve_file(tmp_path / "curve.usda", points)
    graph = Graph(cell_size=0.1, start=1, end=2)
    flow = graph.add("field_curve", "flow", path=str(path), radius=radius)
    graph.add("force_wind", "wind", field=flow)
    with pytest.raises(MpmNodesError, match=says):
        preflight.estimate(plan_graph(graph), 1)


def test_a_distance_is_refused_as_a_velocity(tmp_path):
    """It is said at the port that it is wired to."""
    path = curve_file(tmp_path / "curve.usda", [(0, 0, 0), (0, 1, 0)])
    with pytest.raises(Exception, match=r"force_wind\.field: is a field of numbers"):
        force_wind(field_curve(SETTINGS, path=path, output=CurveOutput.DISTANCE))
