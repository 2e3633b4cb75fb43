"""Fields from primvars of USD meshes: straight over their faces, animated within the frame, and what is told before a cook."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, MpmNodesError, SpatialField
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.collider_motion import key_frames
from mpm_nodes.nodes.fields_of_files import field_primvar
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.forces import BodyForce, turns

Sdf, Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Sdf", "Usd", "UsdGeom"))
SETTINGS = GraphSettings(cell_size=0.1, start=1, end=11)
CORNERS = np.array([(-1.0, 0.0, -1.0), (1.0, 0.0, -1.0), (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)])


def floor(path: Path, values: dict[float, list[float]], shifts: dict[float, float] | None = None) -> Path:
    """Write a floor of 2 m, y = 0, with a mask of its corners (-x -z, x -z, x z, -x z) and shifts along x [m], by frame."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/floor")
    mesh.GetFaceVertexCountsAttr().Set([4])
    mesh.GetFaceVertexIndicesAttr().Set([3, 2, 1, 0])
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("mask", Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex)
    for frame, each in values.items():
        primvar.Set(each, frame) if len(values) > 1 else primvar.Set(each)
    if shifts is None:
        mesh.GetPointsAttr().Set(CORNERS.tolist())
    for frame, shift in (shifts or {}).items():
        mesh.GetPointsAttr().Set((CORNERS + [shift, 0.0, 0.0]).tolist(), frame)
    stage.Save()
    return path


def read(path: Path, number: int = 1, settings: GraphSettings = SETTINGS, **knobs) -> SpatialField:
    """Return what field_primvar gives at a frame."""
    return field_primvar(FrameContext(number, settings), settings, path=path, **knobs)


def above(*x: float, height: float = 0.0) -> np.ndarray:
    """Return places above the floor."""
    return np.stack([np.array(x), np.full(len(x), height), 0.3 * np.array(x)], axis=1)


def test_values_are_straight_between_corners(tmp_path):
    """Within what they change over half a cell, to one and a half cells beside the surface; away from it that outside."""
    path, x = floor(tmp_path / "a.usda", {1: [0.0, 1.0, 1.0, 0.0]}), np.linspace(-0.8, 0.8, 33)
    found = read(path, outside=5.0)
    assert not found.vector
    for height in (-0.08, 0.0, 0.12):
        np.testing.assert_allclose(field_values(found, above(*x, height=height), 1.0), 0.5 + 0.5 * x, atol=0.026)
    assert (field_values(found, above(*x, height=0.26), 1.0) == 5.0).all()
    fine = read(path, settings=dataclasses.replace(SETTINGS, cell_size=0.02))
    np.testing.assert_allclose(field_values(fine, above(*x), 1.0), 0.5 + 0.5 * x, atol=0.006)


def test_values_change_within_a_frame(tmp_path):
    """Exact at the file's samples and straight between them at any moment; where nothing changes nothing is run over the frame."""
    path = floor(tmp_path / "a.usda", {1: [0.0, 1.0, 1.0, 0.0], 6: [5.0, 6.0, 6.0, 5.0], 11: [0.0, 1.0, 1.0, 0.0]})
    places = above(*np.linspace(-0.8, 0.8, 9))
    even = field_values(read(path), places, 1.0)
    for end in (1, 2, 6, 9):
        found = read(path, end)
        for frame in (end - 1.0, end - 0.7, end - 0.25, float(end)) if end > 1 else (1.0,):
            more = min(frame - 1.0, 11.0 - frame)
            np.testing.assert_allclose(field_values(found, places, frame) - even, more, atol=1e-5)
    assert turns([BodyForce(read(path, 6))], 5.0, 6.0)
    assert turns([BodyForce(read(floor(tmp_path / "still.usda", {1: [0.0, 1.0, 1.0, 0.0]}), 6))], 5.0, 6.0) is None


def test_the_frame_of_the_file_may_be_another_one(tmp_path):
    """`frame_offset` is added to the shot's frame; its keys run within the frame as well."""
    path, places = floor(tmp_path / "a.usda", {1: [0.0] * 4, 11: [10.0] * 4}), above(0.0)
    assert field_values(read(path, 3, frame_offset=4.0), places, 3.0) == pytest.approx(6.0, abs=1e-5)
    graph = Graph(cell_size=0.1, start=1, end=9)
    graph.add("field_primvar", "it", path=str(path), frame_offset={"keys": [[1, 0.0, "linear"], [2, 3.0, "linear"]]})
    found = Evaluator(graph).value("it", 2)
    for frame, value in ((1.0, 0.0), (1.5, 2.0), (2.0, 4.0)):
        assert field_values(found, places, frame) == pytest.approx(value, abs=1e-5)


def test_a_surface_that_comes_or_goes_keeps_its_value(tmp_path):
    """Between two moments it has its value where it was and where it will be; at a moment only where it is then."""
    path = floor(tmp_path / "a.usda", {1: [500.0] * 4}, {1: 0.0, 2: 40.0})
    ctx = FrameContext(2, SETTINGS)
    moments, found = list(map(float, key_frames(ctx))), read(path, 2, outside=300.0)
    assert len(moments) > 2 and (moments[0], moments[-1]) == (1.0, 2.0)
    places = above(*(40.0 * (each - 1.0) for each in moments), 99.0) * [1.0, 1.0, 0.0]
    frames = np.unique([moments, np.add(moments, 0.01), np.subtract(moments, 0.01)])
    for frame in frames[(frames >= 1.0) & (frames <= 2.0)]:
        before = max(each for each in moments if each <= frame)
        after = min(each for each in moments if each >= frame)
        known = [each in (before, after) for each in moments]
        np.testing.assert_allclose(field_values(found, places, frame), np.where([*known, False], 500.0, 300.0), err_msg=f"{frame}")


def test_the_course_is_straight_where_a_surface_slides(tmp_path):
    """Where the surface lies at both ends of a moment the value goes from one to the other, and never to that outside."""
    path = floor(tmp_path / "a.usda", {1: [0.0, 1.0, 1.0, 0.0]}, {1: 0.0, 2: 0.5})
    found, x = read(path, 2, outside=99.0), np.linspace(-0.4, 0.8, 13)
    for frame in (1.0, 1.3, 1.5, 2.0):
        places = above(*x)
        np.testing.assert_allclose(field_values(found, places, frame), 0.5 + 0.5 * (x - 0.5 * (frame - 1.0)), atol=0.03)


def test_the_value_outside_follows_its_keys(tmp_path):
    """At every moment of the frame, away from the mesh alone."""
    keyed = KeyedNumber([(1, 10.0, "linear"), (2, 20.0, "linear")])
    found = read(floor(tmp_path / "a.usda", {1: [0.25] * 4}), 2, outside=keyed)
    for frame, value in ((1.0, 10.0), (1.5, 15.0), (2.0, 20.0)):
        np.testing.assert_allclose(field_values(found, above(0.0, 9.0), frame), [0.25, value], atol=1e-6)


def test_only_what_is_at_or_below_the_prim_counts(tmp_path):
    """An empty `prim` takes all meshes; another prim has no mesh."""
    path = floor(tmp_path / "a.usda", {1: [0.25] * 4})
    assert field_values(read(path, prim="/floor"), above(0.0), 1.0) == pytest.approx(0.25)
    with pytest.raises(InputError, match="/wall"):
        read(path, prim="/wall")


@pytest.mark.parametrize(
    ("values", "knobs", "says"),
    [
        ([0.0] * 4, {"primvar": "heat"}, r"mesh /floor.* has no primvar 'heat'; it has mask"),
        ([0.0, np.nan, 0.0, 0.0], {}, r"(field_primvar\.primvar: a value is not finite|mesh /floor.*mask)"),
        ([0.0] * 4, {"path": "none.usda"}, r"none\.usda.*no such file"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_cook(tmp_path, values, knobs, says):
    """With the mesh or the file, whoever takes the field."""
    path = floor(tmp_path / "a.usda", {1: values})
    graph = Graph(cell_size=0.1, start=1, end=2)
    paint = graph.add("field_primvar", "paint", **{"path": str(path), **knobs})
    box = graph.add("emit_box", "box", material=graph.add("material_liquid", "water"))
    graph.add("set_attribute", "painted", particles=box, field=paint, attribute="mine")
    with pytest.raises((MpmNodesError, InputError), match=says):
        preflight.estimate(plan_graph(graph), 1)


def test_meshes_too_large_for_the_cells_are_told(tmp_path):
    """Samples half a cell apart would not fit into memory: what to raise."""
    path = floor(tmp_path / "a.usda", {1: [0.0] * 4})
    with pytest.raises(
        MpmNodesError, match=r"field_primvar\.path: the meshes are too large for these cells; raise settings\.cell_size"
    ):
        read(path, settings=dataclasses.replace(SETTINGS, cell_size=1e-4))


def test_later_frames_of_a_file_leave_the_keys_of_those_before(tmp_path):
    """A frame has the samples around it: of the points and of the primvar."""

    def keys(last: float, shift: float) -> list[str]:
        values = {frame: [0.1 * frame] * 4 for frame in (1, 2, 3)} | {4: [last] * 4}
        path = floor(tmp_path / f"{last}_{shift}.usda", values, {1: 0.0, 3: 0.3, 4: shift}).rename(tmp_path / "paint.usda")
        graph = Graph(base=tmp_path, cell_size=0.1, start=1, end=4)
        graph.add("field_primvar", "it", path=path.name)
        plan = plan_graph(graph)
        return [plan.key("it", frame) for frame in (1, 2, 3, 4)]

    before = keys(0.4, 0.4)
    for last, shift in ((0.5, 0.4), (0.4, 0.5)):
        assert [one == other for one, other in zip(keys(last, shift), before, strict=True)] == [True, True, True, False]


def painted_block(path: Path, interpolation: str, values: list[float]) -> Path:
    """Write a block of 2 m about the origin in six faces (+x, -x, +y, -y, +z, -z) with a mask."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/block")
    mesh.GetPointsAttr().Set([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    mesh.GetFaceVertexCountsAttr().Set([4] * 6)
    faces = [(4, 6, 7, 5), (0, 1, 3, 2), (2, 3, 7, 6), (0, 4, 5, 1), (1, 5, 7, 3), (0, 2, 6, 4)]
    mesh.GetFaceVertexIndicesAttr().Set([corner for face in faces for corner in face])
    mesh.GetSubdivisionSchemeAttr().Set("none")
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("mask", Sdf.ValueTypeNames.FloatArray, interpolation).Set(values)
    stage.Save()
    return path


BY_FACE = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("interpolation", "values"), [("uniform", BY_FACE), ("faceVarying", [each for each in BY_FACE for _ in range(4)])]
)
def test_values_of_faces_and_of_their_corners_count(tmp_path, interpolation, values):
    """Each face has its own, also at the edges; inside of the block there is nothing unless it is asked for."""
    path = painted_block(tmp_path / "a.usda", interpolation, values)
    found = read(path, outside=-1.0)
    sides = np.array([(1.0, 0, 0), (-1.0, 0, 0), (0, 1.0, 0), (0, -1.0, 0), (0, 0, 1.0), (0, 0, -1.0)])
    np.testing.assert_allclose(field_values(found, sides + 0.35, 1.0)[[0, 2, 4]], -1.0)
    for shift in ((0.0, 0.35, 0.0), (0.0, 0.0, -0.35)):
        on = np.abs(sides @ shift) < 1e-9
        np.testing.assert_allclose(field_values(found, sides[on] + shift, 1.0), np.array(BY_FACE)[on], atol=1e-5)
    assert field_values(found, np.zeros((1, 3)), 1.0) == -1.0


def test_places_inside_have_the_value_of_the_nearest_face(tmp_path):
    """Exactly, where the second nearest is a cube or more farther away; outside nothing has changed."""
    found = read(painted_block(tmp_path / "a.usda", "uniform", BY_FACE), inside=True, outside=-1.0)
    places = np.random.default_rng(1).uniform(-0.99, 0.99, (4000, 3))
    far = np.stack(
        [1.0 - places[:, 0], 1.0 + places[:, 0], 1.0 - places[:, 1], 1.0 + places[:, 1], 1.0 - places[:, 2], 1.0 + places[:, 2]]
    )
    clear = np.diff(np.sort(far, axis=0)[:2], axis=0)[0] > 0.3
    assert clear.sum() > 1000
    np.testing.assert_allclose(field_values(found, places[clear], 1.0), np.array(BY_FACE)[far.argmin(axis=0)[clear]], atol=1e-5)
    np.testing.assert_allclose(field_values(found, np.array([[1.3, 0.0, 0.0], [0.0, 9.0, 0.0]]), 1.0), -1.0)


def test_a_sheet_has_no_inside(tmp_path):
    """It is as without: its values reach a cell and a half."""
    path = floor(tmp_path / "a.usda", {1: [0.25] * 4})
    for height, value in ((0.05, 0.25), (0.3, 9.0)):
        np.testing.assert_allclose(field_values(read(path, inside=True, outside=9.0), above(0.1, height=height), 1.0), value)
