"""Before the cook a solve says how much of its sources lies inside colliders that are read from files, as its first frame does."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import Mesh
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes.collider_meshes import Solid
from mpm_nodes.nodes.collider_motion import box_mesh
from usd_io.openvdb_module import find_openvdb

CELL = 0.05
UPRIGHT = np.eye(4)
FLAT = np.array([(-1.0, 0.0, -1.0), (-1.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 0.0, -1.0)])


def cube(low: float) -> Mesh:
    """Return a cube of a meter whose lower face is at a height."""
    mesh = box_mesh((1.0, 1.0, 1.0))
    return Mesh(mesh.points + [0.0, 0.5 + low, 0.0], mesh.counts, mesh.indices)


def shifted(up: float) -> np.ndarray:
    """Return a row vector matrix that lifts."""
    matrix = UPRIGHT.copy()
    matrix[3, 1] = up
    return matrix


def bodies(kind: str, write_usd, tmp_path) -> tuple[str, dict]:
    """Return the collider's node and knobs; at the first frame the body of each kind ends at y = 0 with all below it solid."""
    mesh = cube(-1.0)
    if kind == "still":
        return "collide_usd", {"path": write_usd(mesh)}
    if kind == "rigid":  # it comes from far below only after the first frame
        return "collide_usd", {"path": write_usd(mesh, matrices={1: UPRIGHT, 24: shifted(-3.0)})}
    if kind == "deforming":
        flatter = mesh.points * [1.0, 0.5, 1.0]
        return "collide_usd", {"path": write_usd(mesh, points={1: mesh.points, 24: flatter - [0.0, 3.0, 0.0]})}
    if kind == "sheet":
        sheet = Mesh(FLAT - [0.0, 0.1, 0.0], np.array([4], np.int32), np.arange(4, dtype=np.int32))
        return "collide_usd", {"path": write_usd(sheet), "thickness": 0.2}
    vdb, quads = find_openvdb(), np.asarray(mesh.indices, np.uint32).reshape(-1, 4)
    grid = vdb.FloatGrid.createLevelSetFromPolygons(
        np.asarray(mesh.points, np.float32), quads=quads, transform=vdb.createLinearTransform(0.5 * CELL)
    )
    grid.name = "surface"
    vdb.write(str(tmp_path / "body.vdb"), [grid])
    return "collide_vdb", {"path": tmp_path / "body.vdb"}


def scene(height: float, node: str, end: int = 3, **knobs) -> Graph:
    """Return a graph: a block of 0.2 m whose middle is at a height, before a collider."""
    graph = Graph(cell_size=CELL, start=1, end=end)
    matter = graph.add("material_library", "matter", name="jelly")
    block = graph.add("emit_box", "block", material=matter, size=(0.2, 0.2, 0.2), centre=(0.0, height, 0.0))
    graph.add("solve", "fall", sources=[block], colliders=[graph.add(node, "wall", **knobs)])
    return graph


def before(graph: Graph) -> list[str]:
    """Return what is said before the cook."""
    texts = [text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), 1))]
    return [text for text in texts if "start inside" in text]


@pytest.mark.parametrize("kind", ["still", "rigid", "deforming", "sheet", "vdb"])
def test_a_collider_from_a_file_is_told_before_the_cook_as_in_its_first_frame(kind, write_usd, tmp_path):
    """A block that is a quarter under the top: the same share and depth before and in the cook; above it nothing is said."""
    node, knobs = bodies(kind, write_usd, tmp_path)
    (told,) = before(scene(0.05, node, **knobs))
    assert told.startswith("25 % of the particles of 'block' start inside collider 'wall', up to 0.0375 m deep")
    cooked = [text for text in execute(scene(0.05, node, end=1, **knobs)).warnings if "start inside" in text]
    assert [text.split(": ", 1)[-1] if text[0].islower() else text for text in cooked] == [told, told]  # before, and in it
    assert before(scene(0.11, node, **knobs)) == []
    assert before(scene(0.05, node, clamp=True, rule="sticky", **knobs)) == []


def test_matter_far_from_a_mesh_builds_no_level_set(write_usd, monkeypatch):
    """What is cheap decides: points beyond the mesh's box, and those that it does not enclose."""
    asked = []
    monkeypatch.setattr(Solid, "level_set", lambda *a, **k: asked.append(a))
    path = write_usd(cube(-1.0))
    assert before(scene(3.0, "collide_usd", path=path)) == before(scene(0.11, "collide_usd", path=path)) == asked == []
