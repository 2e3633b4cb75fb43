"""What read_points brings is told before a cook: its materials, its box, and the heat and tension that its points carry."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_unread import HEAT, PLAIN, endless, solid, told

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph

SIZE = 0.08


def points_file(folder: Path, **primvars: float) -> Path:
    """Write a cube of 8^3 points a centimetre apart, with numbers of one value each."""
    from pxr import Sdf, Usd, UsdGeom

    axis = SIZE / 8 * (np.arange(8) + 0.5)
    places = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    stage = Usd.Stage.CreateNew(str(folder / "points.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    points = UsdGeom.Points.Define(stage, "/points")
    points.GetPointsAttr().Set(places.tolist())
    points.GetWidthsAttr().Set([SIZE / 8] * len(places))
    for name, value in primvars.items():
        primvar = UsdGeom.PrimvarsAPI(points).CreatePrimvar(name, Sdf.ValueTypeNames.FloatArray, "vertex")
        primvar.Set([value] * len(places))
    stage.Save()
    return folder / "points.usda"


def scene(path: Path, material, substeps: str, **solve) -> Graph:
    """Return points of a file that are solved."""
    graph = Graph(cell_size=0.02, fps=1000.0, start=1, end=2)
    wires = {} if material is None else {"material": material(graph)}
    read = graph.add("read_points", "read", path=str(path), **wires)
    graph.add("solve", "solve", sources=[read], substeps=substeps, **solve)
    return graph


@pytest.mark.phenomena("foam", "heat", "projection", "surface_tension")
def test_a_material_that_is_wired_is_told(tmp_path):
    """No thermal parameters where heat is carried, a bulk modulus that no stage reads, and a number that none reads."""
    path = points_file(tmp_path)
    with pytest.raises(MpmNodesError, match=r"solve: material solid: has no thermal parameters"):
        told(scene(path, solid, HEAT))
    with pytest.raises(MpmNodesError, match=r"solve: material solid: its bulk modulus of infinity"):
        told(scene(path, lambda graph: endless(graph, solid(graph)), PLAIN))
    (text,) = told(scene(path, lambda graph: graph.add("material_tearing", "t", material=solid(graph)), PLAIN))
    assert "material solid has a tear threshold" in text
    assert told(scene(path, solid, PLAIN)) == []


@pytest.mark.phenomena("foam", "heat", "projection", "surface_tension")
def test_materials_of_a_cache_are_told(tmp_path):
    """Those that a cache of ours stores count as those that are wired."""
    graph = Graph(cell_size=0.02, start=1, end=1)
    tears = graph.add("material_tearing", "t", material=solid(graph))
    box = graph.add("emit_box", "box", material=tears, size=(SIZE,) * 3)
    graph.add("write_cache", "cache", particles=box)
    made = execute(graph, out=tmp_path / "out")
    (path,) = made.revision_folder.glob("*.usda")
    (text,) = told(scene(path, None, PLAIN))
    assert "material solid has a tear threshold" in text
    with pytest.raises(MpmNodesError, match=r"solve: material solid: has no thermal parameters"):
        told(scene(path, None, HEAT))


def test_the_box_around_the_points_is_told(tmp_path):
    """Its weight is compared with the moduli, as that of an emitter's box is."""
    graph = scene(points_file(tmp_path), solid, PLAIN, gravity=(0.0, -1e6, 0.0))
    facts = preflight.estimate(plan_graph(graph), 1)["read"]
    (body,) = facts["bodies"]
    assert facts["particles"] == 512 and np.allclose(body.edges, SIZE * np.eye(3), atol=1e-6) and np.allclose(body.place, 0.04)
    assert any("'solid' is 0.08 m high" in text for text in told(graph))


@pytest.mark.phenomena("foam", "heat", "projection", "surface_tension")
def test_heat_sources_and_factors_of_points_are_told(tmp_path):
    """A heat source where no heat is carried is refused, a factor on no tension is warned of."""
    with pytest.raises(MpmNodesError, match=r"solve: the matter has a heat_source"):
        told(scene(points_file(tmp_path, heat_source=1e6), solid, PLAIN))
    assert told(scene(points_file(tmp_path, heat_source=0.0), solid, PLAIN)) == []
    (text,) = told(scene(points_file(tmp_path, tension_scale=0.5), lambda g: g.add("material_liquid", "w"), "surface_tension"))
    assert "matter has a factor on its tension" in text


@pytest.mark.phenomena("foam", "heat", "projection", "surface_tension")
def test_a_frame_that_cannot_be_read_is_left_to_the_node(tmp_path):
    """Nothing is told of it before the cook; the node says why. Without the file, or with one that is no USD, nothing is valid."""
    path = points_file(tmp_path)
    graph = scene(path, solid, HEAT)
    graph.set("read.prim", "/others")
    assert told(graph) == []
    with pytest.raises(MpmNodesError, match="/others"):
        execute(graph, out=tmp_path / "out")
    (tmp_path / "mesh.obj").write_text("v 0 0 0\n")
    for name, said in (("nothing.usda", "no such file"), ("mesh.obj", "is Wavefront OBJ")):
        with pytest.raises(MpmNodesError, match=said):
            told(scene(tmp_path / name, solid, HEAT))
