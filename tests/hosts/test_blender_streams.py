"""Meshes of a scene that matter streams out of: they stream from where they are at every frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from blender_process import in_blender

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.nodes.emit import emit_mesh
from mpm_nodes.nodes.materials import material_liquid
from mpm_nodes.nodes.seeding import Lattice

MOVING = """
import math
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 5
def cube(name, size, location):
    bpy.ops.mesh.primitive_cube_add(size=size, location=location)
    bpy.context.object.name = name
    return bpy.context.object
def key(thing, path, values, owner=None):
    for frame, value in values:
        setattr(owner or thing, path, value)
        (owner or thing).keyframe_insert(path, frame=frame)
still, carried = cube("Still", 0.2, (3.0, 0.0, 1.0)), cube("Carried", 0.2, (1.0, 2.0, 1.0))
carried.scale = (3.0, 1.0, 1.0)
key(carried, "location", ((1, (1.0, 2.0, 1.0)), (5, (2.0, 2.0, 1.5))))
key(carried, "rotation_euler", ((1, (0.0, 0.0, 0.0)), (5, (0.0, 0.0, math.radians(90.0)))))
swollen = cube("Swollen", 0.2, (-1.0, 0.0, 1.0))
key(swollen, "scale", ((1, (1.0, 1.0, 1.0)), (5, (2.0, 2.0, 2.0))))
shaped = cube("Shaped", 0.2, (-2.0, 0.0, 1.0))
shaped.shape_key_add(name="Basis")
raised = shaped.shape_key_add(name="Raised")
for point in raised.data:
    point.co.z += 1.0
key(shaped, "value", ((1, 0.0), (5, 1.0)), raised)
tree = trees.new_tree(trees.GRAPH_TREE, "streams")
tree.folder, tree.k_end, tree.k_cell_size = given["folder"], 5, 0.05
fall = add(tree, "solve", "fall")
for thing in (still, carried, swollen, shaped):
    scene_input.add_source(tree, thing, fall, stream=True)
scene_input.add_source(tree, carried, fall).name = "Once"
scene.frame_set(2)
path = cook.write_graph(tree, scene)
answer["status"], answer["frame"] = tree.status, scene.frame_current
answer["graph"], answer["folder"] = graph_file.read(path), str(path.parent)
answer["where"] = {}
for frame in range(1, 6):
    scene.frame_set(frame)
    for thing in (still, carried, swollen, shaped):
        seen = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
        corners = [seen.matrix_world @ vertex.co for vertex in seen.to_mesh().vertices]
        box = [[pick(c[axis] for c in corners) for axis in range(3)] for pick in (min, max)]
        answer["where"].setdefault(thing.name, []).append(box)
        answer.setdefault("matrices", {}).setdefault(thing.name, []).append([list(row) for row in seen.matrix_world])
"""


def _at(value, frame):
    """Return a knob's value at a frame: keys stand at every frame."""
    return next(key[1] for key in value["keys"] if key[0] == frame) if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """A scene of four meshes that pour, and one of them once more as a source."""
    return in_blender(MOVING, folder=str(tmp_path_factory.mktemp("streams")))


def _filled(moving, name, frame):
    """Return where the particles of a mesh are at a frame, in the scene's axes."""
    knobs = moving["graph"]["nodes"][name]["knobs"]
    moved = {each: _at(knobs.get(each, (0.0, 0.0, 0.0)), frame) for each in ("rotation", "translation")}
    settings = GraphSettings(cell_size=0.05, fps=24.0, start=1, end=5)
    path = Path(moving["folder"]) / knobs["path"]
    laid = Lattice(knobs.get("lattice", "world"))
    place = emit_mesh(settings, material_liquid(), path=path, frame=_at(knobs["frame"], frame), lattice=laid, **moved)["position"]
    return place[:, [0, 2, 1]] * (1.0, -1.0, 1.0)


@pytest.mark.parametrize("name", ["Still", "Swollen", "Shaped"])
def test_a_mesh_that_changes_streams_from_where_it_is_at_every_frame(moving, name):
    """It is filled where the scene has it at each frame, to a spacing (2.5 cm) from its box."""
    for frame, box in enumerate(moving["where"][name], 1):
        place = _filled(moving, name, frame)
        seen = np.array([place.min(axis=0), place.max(axis=0)])
        np.testing.assert_allclose(seen, box, atol=0.025, err_msg=f"frame {frame}")


def test_a_mesh_that_moves_and_turns_streams_from_where_it_is(moving):
    """Along its own axes it is filled to a spacing (2.5 cm) from its sides at every frame, and nowhere beyond them."""
    for frame, matrix in enumerate(np.array(moving["matrices"]["Carried"]), 1):
        way = np.linalg.inv(matrix)
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        own = scale * (_filled(moving, "Carried", frame) @ way[:3, :3].T + way[:3, 3])
        sides = 0.1 * scale
        assert np.all(np.abs(own) <= sides + 1e-4), f"frame {frame}"
        np.testing.assert_allclose([own.min(axis=0), own.max(axis=0)], [-sides, sides], atol=0.025, err_msg=f"frame {frame}")


def test_a_mesh_that_only_moves_carries_its_particles(moving):
    """Every particle goes where the object's matrix takes it (0.1 mm), so that what comes out takes the motion on."""
    first, matrices = _filled(moving, "Carried", 1), np.array(moving["matrices"]["Carried"])
    for frame, matrix in enumerate(matrices, 1):
        way = matrix @ np.linalg.inv(matrices[0])
        np.testing.assert_allclose(_filled(moving, "Carried", frame), first @ way[:3, :3].T + way[:3, 3], atol=1e-4)


def test_what_stands_still_or_begins_once_has_no_keys(moving):
    """Only what pours out of a mesh that moves is keyed, and the scene is left at its frame."""
    for name in ("Still", "Once"):
        knobs = moving["graph"]["nodes"][name]["knobs"]
        assert not any(isinstance(value, dict) for value in knobs.values()), name
    entries = {name: moving["graph"]["nodes"][name]["knobs"] for name in moving["where"]}
    keyed = {name: sorted(knob for knob, value in knobs.items() if isinstance(value, dict)) for name, knobs in entries.items()}
    assert keyed == {"Still": [], "Carried": ["rotation", "translation"], "Swollen": ["frame"], "Shaped": ["frame"]}
    assert moving["frame"] == 2, moving["status"]


def test_a_cook_pours_along_the_way_of_the_mesh(moving):
    """At every frame something new has come out where the mesh stands then, to a spacing (2.5 cm)."""
    (path,) = Path(moving["folder"]).glob("*.json")
    graph = load_graph(path)
    graph.set("fall.gravity", (0.0, 0.0, 0.0))
    cook, known = Evaluator(graph), set()
    for frame in range(1, 6):
        found = cook.value("fall.particles", frame)
        place, ids = found["position"][:, [0, 2, 1]] * (1.0, -1.0, 1.0), found["id"]
        for name in ("Carried", "Swollen"):
            low, high = np.array(moving["where"][name][frame - 1])
            near = np.all((place > low - 0.025) & (place < high + 0.025), axis=1)
            assert np.any(near & ~np.isin(ids, list(known))), f"{name}: nothing came out at frame {frame}"
        known |= set(ids.tolist())
