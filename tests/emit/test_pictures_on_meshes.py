"""Pictures on USD meshes: through UVs by point and by corner, on meshes that move and are subdivided, and what is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, SpatialField
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes.fields_of_pictures import Channel, field_image
from mpm_nodes.solver.field_programs import field_values

Sdf, Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Sdf", "Usd", "UsdGeom"))
SETTINGS = GraphSettings(cell_size=0.05, start=1, end=11)
X = np.linspace(-0.85, 0.85, 35)
POINTS = [(x, 0.0, z) for z in (-1.0, 1.0) for x in (-1.0, 0.0, 1.0)]
FACES = [3, 4, 1, 0, 4, 5, 2, 1]
"""Two squares of 1 m x 2 m that meet at x = 0."""


def rising(path: Path) -> Path:
    """Write a picture of 256 columns: red is the share of the way to the right, green that to the top, blue 1."""
    way = (np.arange(256) + 0.5) / 256
    red, green = np.meshgrid(way, way[::-1])
    Image.fromarray(np.round(255 * np.stack([red, green, np.ones_like(red)], axis=-1)).astype(np.uint8)).save(path)
    return path


def floor(path: Path, uv: list[tuple[float, float]], interpolation: str, turns: dict[float, float] | None = None, **facts) -> Path:
    """Write the two squares with UVs, with turns about y [degrees] by frame."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/floor")
    mesh.GetFaceVertexCountsAttr().Set([4, 4])
    mesh.GetFaceVertexIndicesAttr().Set(FACES)
    mesh.GetPointsAttr().Set(POINTS)
    for name, value in facts.items():
        mesh.GetPrim().GetAttribute(name).Set(value)
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, interpolation).Set(uv)
    turn = UsdGeom.Xformable(mesh).AddRotateYOp() if turns else None
    for frame, degrees in (turns or {}).items():
        turn.Set(degrees, frame)
    stage.Save()
    return path


def across(point: tuple[float, float, float]) -> tuple[float, float]:
    return 0.5 + 0.5 * point[0], 0.5 - 0.5 * point[2]


def read(folder: Path, mesh: Path, frame: int = 1, channel: Channel = Channel.RED, **knobs) -> SpatialField:
    ctx = FrameContext(frame, SETTINGS)
    return field_image(ctx, SETTINGS, path=rising(folder / "rising.png"), channel=channel, mesh=mesh, **knobs)


def line(height: float = 0.0, degrees: float = 0.0) -> np.ndarray:
    """Return places along x, turned about y."""
    turn = np.radians(degrees)
    return np.stack([X * np.cos(turn), np.full_like(X, height), -X * np.sin(turn)], axis=1)


MIRRORED = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
"""UVs by corner: both squares show the whole picture, the right one mirrored."""
CASES = {
    "vertex": ([across(p) for p in POINTS], 0.5 + 0.5 * X),
    "varying": ([across(p) for p in POINTS], 0.5 + 0.5 * X),
    "faceVarying": (MIRRORED, 1.0 - np.abs(X)),
}


@pytest.mark.parametrize("scheme", ["none", "catmullClark"])
@pytest.mark.parametrize("interpolation", list(CASES))
def test_the_picture_lies_where_uvs_say(tmp_path, interpolation, scheme):
    """By point and by corner, on and near the surface; away from it is the value outside. The rise is straight up to a pixel."""
    uv, expected = CASES[interpolation]
    mesh = floor(tmp_path / "a.usda", uv, interpolation, subdivisionScheme=scheme, interpolateBoundary="edgeAndCorner")
    found = read(tmp_path, mesh, outside=7.0)
    away = np.abs(X) > 0.1  # where the faces meet, the rise bends
    for height in (-0.02, 0.0, 0.05):
        np.testing.assert_allclose(field_values(found, line(height), 1.0)[away], expected[away], atol=0.02)
    assert (field_values(found, line(0.2), 1.0) == 7.0).all()


def test_what_is_left_handed_or_repeated_lies_right(tmp_path):
    """Faces listed clockwise have the same picture; beyond 0 to 1 it comes again."""
    clockwise = floor(tmp_path / "a.usda", MIRRORED, "faceVarying", orientation="leftHanded")
    away = np.abs(X) > 0.1
    np.testing.assert_allclose(field_values(read(tmp_path, clockwise), line(), 1.0)[away], 1.0 - np.abs(X)[away], atol=0.02)
    up = field_values(read(tmp_path, clockwise, channel=Channel.GREEN), np.array([[0.4, 0.0, -0.6], [-0.4, 0.0, 0.6]]), 1.0)
    np.testing.assert_allclose(up, [0.8, 0.2], atol=0.02)
    three = floor(tmp_path / "b.usda", [(1.5 * (1.0 + p[0]) + 4.0, 0.0) for p in POINTS], "vertex")
    expected = (1.5 * (1.0 + X)) % 1.0
    away = np.abs(expected - np.round(expected)) > 0.2
    np.testing.assert_allclose(field_values(read(tmp_path, three), line(), 1.0)[away], expected[away], atol=0.02)


def test_colours_are_vectors(tmp_path):
    """Red, green and blue; green rises with v."""
    mesh = floor(tmp_path / "a.usda", [across(p) for p in POINTS], "vertex")
    found = read(tmp_path, mesh, channel=Channel.COLOUR)
    assert found.vector
    places = np.array([[0.4, 0.0, -0.6], [-0.4, 0.0, 0.6]])
    np.testing.assert_allclose(field_values(found, places, 1.0), [[0.7, 0.8, 1.0], [0.3, 0.2, 1.0]], atol=0.01)


def test_the_picture_turns_with_its_mesh(tmp_path):
    """At frames, and within one; held at the first frame where it is not animated."""
    mesh = floor(tmp_path / "a.usda", [across(p) for p in POINTS], "vertex", {1.0: 0.0, 11.0: 90.0})
    for frame in (5.0, 5.5, 6.0):
        places = line(0.0, 9.0 * (frame - 1.0))
        np.testing.assert_allclose(field_values(read(tmp_path, mesh, 6), places, frame), 0.5 + 0.5 * X, atol=0.02)
    np.testing.assert_allclose(field_values(read(tmp_path, mesh, 6, animated=False), line(), 6.0), 0.5 + 0.5 * X, atol=0.02)
    shifted = read(tmp_path, mesh, 1, frame_offset=5.0)
    np.testing.assert_allclose(field_values(shifted, line(0.0, 45.0), 1.0), 0.5 + 0.5 * X, atol=0.02)


@pytest.mark.parametrize(
    ("uv", "interpolation", "knobs", "says"),
    [
        (MIRRORED, "faceVarying", {"uv": "map1"}, r"mesh /floor.* has no primvar 'map1'; it has .*st"),
        (MIRRORED, "vertex", {}, r"mesh /floor: primvar 'st' is vertex, and its 8 values do not fit the mesh"),
        (MIRRORED, "uniform", {}, r"mesh /floor: primvar 'st' is uniform, and its 8 values do not fit"),
        ([*MIRRORED[:7], (np.nan, 0.0)], "faceVarying", {}, r"mesh /floor: primvar 'st' holds NaN"),
        (MIRRORED, "faceVarying", {"mesh": "none.usda"}, r"none\.usda.*no such file"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_cook(tmp_path, uv, interpolation, knobs, says):
    """With the mesh or the file."""
    mesh = floor(tmp_path / "a.usda", uv, interpolation)
    graph = Graph(cell_size=0.05, start=1, end=2)
    paint = graph.add("field_image", "paint", **{"path": str(rising(tmp_path / "a.png")), "mesh": str(mesh), **knobs})
    box = graph.add("emit_box", "box", material=graph.add("material_liquid", "water"))
    graph.add("set_attribute", "painted", particles=box, field=paint, attribute="mine")
    with pytest.raises(InputError, match=says):
        preflight.estimate(plan_graph(graph), 1)


def test_frames_of_the_mesh_that_are_not_read_do_not_count(tmp_path):
    """A later key of the mesh's turn changes what is cooked from its frame on."""

    def keys(degrees: float) -> list[str]:
        turns = {1.0: 0.0, 2.0: 9.0, 3.0: 18.0, 4.0: degrees}
        floor(tmp_path / f"{degrees}.usda", MIRRORED, "faceVarying", turns).rename(tmp_path / "mesh.usda")
        graph = Graph(base=tmp_path, cell_size=0.1, start=1, end=4)
        graph.add("field_image", "it", path=rising(tmp_path / "a.png").name, mesh="mesh.usda")
        plan = plan_graph(graph)
        return [plan.key("it", frame) for frame in (1, 2, 3, 4)]

    assert [one == other for one, other in zip(keys(27.0), keys(30.0), strict=True)] == [True, True, True, False]
