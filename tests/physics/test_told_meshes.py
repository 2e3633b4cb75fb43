"""Every node that reads meshes names the prim that cannot be used, in validate where it looks and in the cook, and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material, MpmNodesError, Particles
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.nodes.caches import read_points
from mpm_nodes.nodes.collide import collide_usd
from mpm_nodes.nodes.deform_mesh import deform_mesh
from mpm_nodes.nodes.emit import emit_box, emit_mesh
from mpm_nodes.nodes.fields_of_files import field_primvar
from mpm_nodes.nodes.fields_of_pictures import field_image
from mpm_nodes.nodes.looks import rest_positions
from mpm_nodes.nodes.retime import retime_points
from mpm_nodes.nodes.secondary import emit_secondary
from usd_io.formats import MESHES
from usd_io.vdb_file import grid_table

Usd, UsdGeom, Sdf = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom", "Sdf"))
SETTINGS = GraphSettings(cell_size=0.1, start=1, end=2)
WATER = Material("liquid", {}, 1000.0, "water")
BOX = 0.2 * np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def context():
    return FrameContext(1, SETTINGS, lambda kind, **facts: None)


def kept():
    return Kept(MemoryStore(1 << 28))


BLOCK = emit_box(SETTINGS, WATER)
AT_REST = Particles({**BLOCK.attributes, "rest": BLOCK["position"]}, BLOCK.materials, BLOCK.spacing)
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "stencil.png"
READERS = {
    "collide_usd": lambda path, **more: collide_usd(context(), SETTINGS, kept(), path=path, **more),
    "emit_mesh": lambda path, **more: emit_mesh(SETTINGS, WATER, kept(), path=path, **more),
    "field_primvar": lambda path, **more: field_primvar(context(), SETTINGS, kept(), path=path, primvar="paint"),
    "field_image": lambda path, **more: field_image(context(), SETTINGS, kept(), path=PICTURE, mesh=path),
    "deform_mesh": lambda path: deform_mesh(SETTINGS, AT_REST, kept(), path=path),
}
NAN_POINT = BOX.copy()
NAN_POINT[3, 1] = np.nan
FAULTS = {
    "nan": (NAN_POINT, (1.0, 1.0, 1.0), r"points hold NaN or infinity at time code .* \(point 3\); export it again"),
    "nan_transform": (BOX, (1.0, np.nan, 1.0), "(transform holds NaN|not finite).*"),
    "line": (BOX * (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), "its 6 faces have no area .*give it a surface"),
    "point": (BOX * 0.0, (1.0, 1.0, 1.0), "its 6 faces have no area .*give it a surface"),
    "scale_0": (BOX, (0.0, 0.0, 0.0), "its 6 faces have no area .*scale of 0.*make it invisible"),
    "loose": (BOX, (1.0, 1.0, 1.0), "has 8 points and no faces"),
}


def written(path, fault, alone):
    """Write /shot/bad with a fault, with two sound meshes around it or `alone`."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    for name in ("bad",) if alone else ("first", "bad", "last"):
        points, scale, _ = FAULTS[fault] if name == "bad" else (BOX, (1.0, 1.0, 1.0), "")
        faces = () if name == "bad" and fault == "loose" else FACES
        mesh = UsdGeom.Mesh.Define(stage, f"/shot/{name}")
        mesh.CreatePointsAttr(points.tolist())
        mesh.CreateFaceVertexCountsAttr([4] * len(faces))
        mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
        mesh.AddScaleOp().Set(scale)
        UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("paint", Sdf.ValueTypeNames.FloatArray).Set([1.0])
        UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray).Set([(0.5, 0.5)])
    stage.Save()
    return path


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("reader", READERS)
def test_the_prim_is_named(tmp_path, reader, fault, alone):
    path = written(tmp_path / "meshes.usda", fault, alone)
    with pytest.raises(InputError, match=f"mesh /shot/bad: .*{FAULTS[fault][2]}"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", ["collide_usd", "emit_mesh"])
@pytest.mark.parametrize("fault", FAULTS)
def test_sheets_too(tmp_path, reader, fault):
    """A thickness makes a solid of a sheet, not of a line."""
    with pytest.raises(InputError, match="mesh /shot/bad: "):
        READERS[reader](written(tmp_path / "meshes.usda", fault, False), thickness=0.2)


def test_a_box_that_its_transform_makes_flat_is_told(tmp_path):
    """The points of a flat box have an area; as a rigid collider its transform has no inverse."""
    path = written(tmp_path / "meshes.usda", "nan_transform", False)
    stage = Usd.Stage.Open(str(path))
    stage.GetPrimAtPath("/shot/bad").GetAttribute("xformOp:scale").Set((1.0, 0.0, 1.0))
    stage.Save()
    with pytest.raises(InputError, match=r"mesh /shot/bad: its transform has a scale of 0 .*give every axis a scale"):
        READERS["collide_usd"](path, thickness=0.2)


def test_copies_that_an_instancer_hides_are_left_out(tmp_path):
    """A scale of 0 is how instancers hide copies; an instancer without copies is nothing, beside a mesh."""
    path = written(tmp_path / "meshes.usda", "scale_0", False)
    stage = Usd.Stage.Open(str(path))
    stage.GetPrimAtPath("/shot/bad").SetActive(False)
    for name, kinds, scales in (("hidden", [0, 0], [(1.0,) * 3, (0.0,) * 3]), ("empty", [], [])):
        copies = UsdGeom.PointInstancer.Define(stage, f"/{name}")
        copies.CreatePrototypesRel().SetTargets(["/shot/first"])
        copies.CreateProtoIndicesAttr(kinds)
        copies.CreatePositionsAttr([(2.0, 0.0, 0.0)] * len(kinds))
        copies.CreateScalesAttr(scales)
    stage.Save()
    particles = READERS["emit_mesh"](path)
    assert particles["position"][:, 0].max() > 1.8


# ---------------------------------------------------------------- files of other formats
READERS_OF_POINTS = {
    "read_points": lambda path: read_points(context(), WATER, path=path),
    "retime_points": lambda path: retime_points(context(), WATER, kept(), path=path),
    "emit_secondary": lambda path: emit_secondary(context(), WATER, kept(), path=path),
    "rest_positions": lambda path: rest_positions(context(), emit_box(SETTINGS, WATER), kept(), path=path),
}


def test_no_reader_of_meshes_or_points_is_left_out():
    """Those that the sweeps here go through are all that name a prim of a file, but for a curve."""
    named = {each.id for each in registry.default() if {"path", "prim"} <= {knob.name for knob in each.knobs}}
    assert named == {"emit_stream", "field_curve", *READERS, *READERS_OF_POINTS}


@pytest.mark.parametrize("ending", [*MESHES, ".OBJ", ".vdb", ".txt"])
@pytest.mark.parametrize("reader", {**READERS, **READERS_OF_POINTS})
def test_a_file_that_is_no_usd_is_told_what_to_do(tmp_path, reader, ending):
    path = tmp_path / f"rock{ending}"
    path.write_text("v 0 0 0\n")
    cure = "take collide_vdb or emit_level_set" if ending == ".vdb" else "export it as USD"
    with pytest.raises(InputError, match=rf"rock{ending}.*{cure}"):
        {**READERS, **READERS_OF_POINTS}[reader](path)


@pytest.mark.parametrize("ending", [*MESHES, ".usd", ".usdz"])
def test_a_mesh_where_a_volume_is_read_is_told_what_to_do(tmp_path, ending):
    path = tmp_path / f"rock{ending}"
    path.write_text("v 0 0 0\n")
    with pytest.raises(InputError, match=rf"rock{ending}.*take collide_usd or emit_mesh"):
        grid_table(path)


def taken(graph, kind, path):
    """Add a node that reads a file, with what it needs; a field is painted on matter."""
    matter = graph.add("material_library", "matter", name="honey")
    ball = graph.add("emit_sphere", "ball", material=matter)
    given = {"material": matter} if kind.startswith("emit") else {"primvar": "paint"} if kind == "field_primvar" else {}
    if kind == "deform_mesh":
        given["particles"] = graph.add("rest_positions", "rest", particles=ball)
    files = {"path": str(PICTURE), "mesh": str(path)} if kind == "field_image" else {"path": str(path)}
    told = graph.add(kind, "told", **files, **given)
    if kind == "deform_mesh":
        return graph
    if kind.startswith("field"):
        told = graph.add("set_attribute", "painted", particles=ball, field=told, attribute="paint")
    collides = kind.startswith("collide")
    graph.add("solve", "solve", sources=[ball if collides else told], colliders=[told] if collides else [])
    return graph


@pytest.mark.parametrize("kind", [*READERS, "emit_level_set"])
def test_validate_tells_other_formats_and_flat_meshes(tmp_path, kind):
    """What a file cannot be used for is known before the cook, whichever node reads it."""
    rock = tmp_path / "rock.obj"
    rock.write_text("v 0 0 0\n")
    files = [(rock, r"rock\.obj: is Wavefront OBJ.*export it as USD")]
    if kind in READERS:
        files.append((written(tmp_path / "meshes.usda", "line", False), "mesh /shot/bad: its 6 faces have no area"))
    for path, says in files:
        graph = taken(Graph(cell_size=0.1, start=1, end=2), kind, path)
        with pytest.raises(MpmNodesError, match=says):
            preflight.estimate(plan_graph(graph), graph.settings.start)
