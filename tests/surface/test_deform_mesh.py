"""Meshes that ride along with their matter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, Material, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.kernels.surfaces.nearest_points import nearest_points
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.deform_mesh import deform_mesh
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.rotations import turn_matrix

SETTINGS, JELLY = GraphSettings(cell_size=0.1), Material("neo_hookean", {}, 1000.0, "jelly")


@pytest.fixture
def box(tmp_path):
    """A file with a box of 0.8 x 0.4 x 0.6 m."""
    from pxr import Usd, UsdGeom

    shape, path = box_mesh((0.8, 0.4, 0.6)), tmp_path / "box.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/box")
    mesh.CreatePointsAttr(shape.points.tolist())
    mesh.CreateFaceVertexCountsAttr(shape.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr(shape.indices.tolist())
    stage.Save()
    return path


def matter(moved):
    """Return the particles of the box, and where a function takes them."""
    found = emit_box(SETTINGS, JELLY, size=(0.8, 0.4, 0.6), centre=(0.0, 0.0, 0.0))
    columns = {**found.attributes, "rest": found["position"], "position": moved(found["position"])}
    return dataclasses.replace(found, attributes=columns)


def test_the_nearest_points_are_those_of_all_pairs():
    """Inside and far outside, of a flat cloud, of points that coincide; of equally far ones the first."""
    random = np.random.default_rng(1)
    flat = np.concatenate([random.random((300, 2)), np.zeros((300, 1))], axis=1)
    for points in (random.random((500, 3)), flat, np.repeat(random.random((40, 3)), 3, axis=0), np.zeros((20, 3))):
        places = 3.0 * random.normal(size=(200, 3))
        squares = np.square(places[:, None] - points).sum(axis=2)
        order = np.argsort(squares, axis=1, kind="stable")[:, :12]
        numbers, found = nearest_points(places, points, 12)
        assert found == pytest.approx(np.take_along_axis(squares, order, axis=1), rel=1e-12, abs=1e-300)
        assert np.array_equal(numbers, order) or np.take_along_axis(squares, numbers, axis=1) == pytest.approx(found, rel=1e-12)


def test_a_mesh_turns_and_stretches_with_its_matter(box):
    """A turn and a shift are exact; a stretch is to a hundredth, by which flat parts are held to a turn."""
    turn, shift = turn_matrix((30.0, 50.0, -20.0)), np.array([1.0, 2.0, -3.0])
    mesh = deform_mesh(SETTINGS, matter(lambda x: x @ turn.T + shift), Kept(MemoryStore(1 << 24)), path=box)
    assert mesh.points == pytest.approx(box_mesh((0.8, 0.4, 0.6)).points @ turn.T + shift, abs=1e-6)  # the file has floats
    assert np.array_equal(mesh.counts, box_mesh((1.0, 1.0, 1.0)).counts) and mesh.materials == (JELLY,)
    wide = deform_mesh(SETTINGS, matter(lambda x: x * [1.5, 0.8, 1.0]), Kept(MemoryStore(1 << 24)), path=box)
    assert np.ptp(wide.points, axis=0) == pytest.approx([1.2, 0.32, 0.6], rel=0.01)


def test_a_mesh_is_gone_where_its_matter_is(box, tmp_path):
    """A drain that takes all matter ends no cook: the cache goes on without points."""
    from pxr import Usd, UsdGeom

    graph = Graph(cell_size=0.1, start=1, end=4)
    matter = graph.add("material_neo_hookean", "matter")
    body = graph.add("emit_mesh", "body", path=box, material=matter)
    rest = graph.add("rest_positions", "rest", particles=body)
    everywhere = graph.add("field_constant", "everywhere", value={"keys": [[1, 0.0, "step"], [2, 1.0, "step"]]})
    drain = graph.add("drain", "gone", field=everywhere)
    solve = graph.add("solve", "solve", sources=[rest], drains=[drain])
    pieces = graph.add("label_pieces", "pieces", particles=solve)
    graph.add("write_cache", "cache", mesh=graph.add("deform_mesh", "skin", particles=pieces, path=box))
    done = execute(graph, out=tmp_path / "out")
    stage = Usd.Stage.Open(str(done.revision_folder / "cache.usda"))
    mesh = next(UsdGeom.Mesh(prim) for prim in stage.TraverseAll() if prim.GetName() == "mesh")
    counts = [len(mesh.GetPointsAttr().Get(frame) or ()) for frame in range(1, 5)]
    assert counts[0] > 0 and counts[-1] == 0


def test_matter_without_its_places_at_rest_is_refused_before_the_cook(box, tmp_path):
    """And told in words by the node; with them it cooks, and the mesh falls."""
    with pytest.raises(MpmNodesError, match="have no rest places; wire rest_positions in before the solve"):
        deform_mesh(SETTINGS, emit_box(SETTINGS, JELLY), Kept(MemoryStore(1 << 24)), path=box)
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=3)
    jelly = graph.add("material_neo_hookean", "jelly")
    body = graph.add("emit_mesh", "body", material=jelly, path=str(box))
    solve = graph.add("solve", "fall", sources=[body])
    skin = graph.add("deform_mesh", "skin", particles=solve, path=str(box))
    graph.add("write_cache", "cache", mesh=skin)
    with pytest.raises(MpmNodesError, match="have no rest places"):
        execute(graph, out=tmp_path / "out")
    graph.nodes["fall"].inputs["sources"] = []
    graph.nodes["fall"].connect("sources", [graph.add("rest_positions", "rest", particles=body)])
    result = execute(graph, out=tmp_path / "out")
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(result.revision_folder / "cache.usda"))
    prim = stage.GetPrimAtPath("/cache/mesh")
    heights = [np.mean(UsdGeom.Mesh(prim).GetPointsAttr().Get(frame), axis=0)[1] for frame in (1, 2, 3)]
    assert heights == pytest.approx([0.0, -0.5 * 9.81 / 24.0**2, -2.0 * 9.81 / 24.0**2], abs=3e-3)
    assert UsdGeom.PrimvarsAPI(prim).GetPrimvar("rest").Get(3) is not None
