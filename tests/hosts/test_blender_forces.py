"""Force fields of a Blender scene as nodes: the accelerations that Blender's own law gives, at any place, with keys and units."""

from __future__ import annotations

import numpy as np
import pytest
from blender_process import in_blender

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.solver.field_programs import field_values

SCENE = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 5
scene.unit_settings.scale_length = given["metres"]
def field(kind, name, location, rotation=(0.0, 0.0, 0.0), **values):
    bpy.ops.object.effector_add(type=kind, location=location, rotation=rotation)
    thing = bpy.context.object
    thing.name = name
    for key, value in values.items():
        setattr(thing.field, key, value)
    return thing
things = [
    field("FORCE", "push", (1.0, 2.0, 3.0), strength=4.0),
    field("FORCE", "far", (0.0, 0.0, 1.0), strength=4.0, falloff_power=2.0, use_min_distance=True, distance_min=0.5,
          use_max_distance=True, distance_max=3.0),
    field("HARMONIC", "spring", (0.0, 1.0, 0.0), strength=3.0, harmonic_damping=0.5),
    field("WIND", "gust", (0.0, 0.0, 0.0), rotation=(0.0, 1.2, 0.4), strength=7.0),
    field("VORTEX", "whirl", (1.0, 0.0, 0.0), rotation=(0.7, 0.0, 0.0), strength=5.0, inflow=2.0),
    field("DRAG", "syrup", (0.0, 0.0, 0.0), linear_drag=1.5, quadratic_drag=0.25),
    field("TURBULENCE", "gusts", (0.0, 0.0, 0.0), strength=6.0, size=0.5, seed=3),
]
keyed = field("FORCE", "blast", (0.0, 0.0, 0.0), strength=-2.0)
for frame, strength, height in ((1, -2.0, 0.0), (3, 6.0, 1.0)):
    keyed.field.strength, keyed.location.z = strength, height
    keyed.keyframe_insert("field.strength", frame=frame)
    keyed.keyframe_insert("location", frame=frame)
for curve in (*animation.curves_of(keyed.field, "strength"), *animation.curves_of(keyed, "location")):
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
scene.frame_set(1)
spark = field("MAGNET", "spark", (0.0, 0.0, 0.0))
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_end = given["folder"], 5
for each in bpy.context.view_layer.objects:
    each.select_set(each in things or each == keyed or each == spark)
answer["done"] = list(bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="FORCE"))
path = cook.write_graph(tree, scene)
answer["graph"] = graph_file.read(path)
answer["said"] = []
try:
    from bl_ext.user_default.mpm_nodes import force_fields
    force_fields.add_force(tree, spark, scene)
except scene_input.ObjectFault as fault:
    answer["said"].append(str(fault))
bpy.ops.mesh.primitive_cube_add(size=0.2)
snow = quick.make(quick_presets.found()[0]["snow"], bpy.context.object, [], scene, 500)
answer["quick"] = len(next(node for node in snow.nodes if node.record["id"] == "solve").inputs["forces"].links)
"""


def forces_of(document: dict) -> dict:
    """Return the forces of a graph by the name of their node, with keys."""
    found = Evaluator(load_graph(document))
    names = [name for name, entry in document["nodes"].items() if entry["type"].startswith("force_")]
    return {name: found.value(name, 1) for name in names}


@pytest.mark.parametrize("metres", [1.0, 0.1])
def test_fields_push_as_blenders_law_says(metres, tmp_path):
    """For particles of a kilogram: direction and strength, falloff, keys; in metres, with Y up, whatever the scene's unit."""
    seen = in_blender(SCENE, folder=str(tmp_path), metres=metres)
    assert seen["done"] == ["FINISHED"] and "force field of type magnet" in seen["said"][0]
    forces = forces_of(seen["graph"])
    assert seen["quick"] == len(forces) == 10  # drag and spring are two nodes each
    assert len(seen["graph"]["nodes"]["MPM_Solve" if "MPM_Solve" in seen["graph"]["nodes"] else "solve"]["inputs"]["forces"]) == 10
    places = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 3))

    def pull(name: str, at: np.ndarray = places, frame: float = 1.0, part: str = "value") -> np.ndarray:
        """Return a field of a force at places of the scene, in its axes and units."""
        values = field_values(getattr(forces[name], part), metres * np.c_[at[:, 0], at[:, 2], -at[:, 1]], frame)
        if values.ndim == 1:
            return values
        return np.c_[values[:, 0], -values[:, 2], values[:, 1]] / metres

    def away(centre: tuple[float, ...], at: np.ndarray = places) -> tuple[np.ndarray, np.ndarray]:
        arm = at - np.array(centre)
        distance = np.linalg.norm(arm, axis=1)
        return arm / distance[:, None], distance

    out, _ = away((1.0, 2.0, 3.0))
    np.testing.assert_allclose(pull("push"), 4.0 * out, atol=1e-5)
    out, distance = away((0.0, 0.0, 1.0))
    expected = 4.0 * (1.0 + np.maximum(distance - 0.5, 0.0)) ** -2.0 * (distance <= 3.0)
    np.testing.assert_allclose(pull("far"), expected[:, None] * out, atol=1e-5)
    out, distance = away((0.0, 1.0, 0.0))
    np.testing.assert_allclose(pull("spring"), -3.0 * distance[:, None] * out, atol=1e-4)
    turned = np.array([np.sin(1.2) * np.cos(0.4), np.sin(1.2) * np.sin(0.4), np.cos(1.2)])
    np.testing.assert_allclose(pull("gust"), np.tile(7.0 * turned, (40, 1)), atol=1e-5)
    axis, arm = np.array([0.0, -np.sin(0.7), np.cos(0.7)]), places - [1.0, 0.0, 0.0]
    across = arm - (arm @ axis)[:, None] * axis
    across /= np.linalg.norm(across, axis=1)[:, None]
    np.testing.assert_allclose(pull("whirl"), 5.0 * np.cross(axis, across) - 2.0 * across, atol=1e-5)
    drags = {(forces[name].quadratic, round(float(pull(name, part="rate")[0]) * (metres if forces[name].quadratic else 1.0), 6))
             for name in forces if name.startswith("syrup")}  # fmt: skip
    assert drags == {(False, 1.5), (True, 0.25)}
    (damped,) = (name for name in forces if name.startswith("spring") and forces[name].rate is not None)
    assert pull(damped, part="rate")[0] == pytest.approx(0.5 * 2.0 * 3.0**0.5)
    gusts = pull("gusts")
    assert 3.0 < gusts.std() < 9.0 and np.abs(gusts.mean(axis=0)).max() < 3.0
    for frame, strength, height in ((1.0, -2.0, 0.0), (2.0, 2.0, 0.5), (3.0, 6.0, 1.0)):
        out, _ = away((0.0, 0.0, height))
        np.testing.assert_allclose(pull("blast", frame=frame), strength * out, atol=1e-4)
