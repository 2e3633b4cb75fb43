"""Knobs in Blender are in the scene's axes and units; graph files keep Y up and metres. Older .blend files are turned once."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from blender_process import in_blender

import mpm_nodes.hosts

SOURCE = Path(mpm_nodes.hosts.__file__).parent / "blender_addon" / "axes.py"
TO_SCENE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""A graph's (x, y, z) in the scene."""
LENGTHS = {"m": "LENGTH", "m/s": "VELOCITY", "m/s^2": "ACCELERATION"}

EVERY = """
from bl_ext.user_default.mpm_nodes import axes
scene = bpy.context.scene
answer["nodes"] = {}
def keyed(raw):
    return {"keys": [[1, raw, "linear"], [7, [3 * each for each in raw] if isinstance(raw, list) else 3 * raw, "step"]]}
for scale in given["scales"]:
    scene.unit_settings.scale_length = scale
    tree, inner = trees.new_tree(trees.GRAPH_TREE, "all"), trees.new_tree(trees.SUBSTEP_TREE, "all stages")
    for kind, knobs_given in given["raw"].items():
        holder, prefix = (tree, "MpmNode_") if kind in nodes.NODE_CLASSES else (inner, "MpmStage_")
        def values(node):
            return {name: knobs.value(node, specification.knob(node.record, name)) for name in knobs_given}
        def properties(node):
            found = {name: getattr(node, f"k_{name}") for name in knobs_given}
            return {name: value if isinstance(value, float) else list(value) for name, value in found.items()}
        fresh, loaded, animated = (holder.nodes.new(prefix + kind) for _ in range(3))
        facts = {"fresh": values(fresh)}
        for name, raw in knobs_given.items():
            knobs.set_value(loaded, specification.knob(loaded.record, name), raw)
        facts["kept"] = values(loaded)
        facts["properties"] = properties(loaded)
        loaded.as_loaded = ""
        facts["written"] = values(loaded)
        keyable = [name for name in knobs_given if specification.knob(animated.record, name)["keyable"]]
        for name in keyable:
            knobs.set_value(animated, specification.knob(animated.record, name), keyed(knobs_given[name]))
        animated.as_loaded = ""
        keys = values(animated)
        facts["keys"] = {name: [keys[name], keyed(knobs_given[name])] for name in keyable}
        rna = loaded.bl_rna.properties
        facts["units"] = {name: rna[f"k_{name}"].unit for name in knobs_given}
        answer["nodes"].setdefault(kind, []).append(facts)
scene.unit_settings.scale_length = 1.0
fall = add(tree, "solve", "fall", substeps="surface_tension_heat")
substep_operators.opened_substeps(fall, "substeps")
scene.unit_settings.scale_length = 0.01
answer["looked"] = knobs.value(fall, specification.knob(fall.record, "substeps"), graph_file.save_substeps)
"""

OLD = """
scene = bpy.context.scene
tree = trees.new_tree(trees.GRAPH_TREE, "older")
tree.folder, tree.k_end = given["folder"], 5
kinds = {"loaded": "emit_box", "set": "emit_box", "moves": "collide_box", "fall": "solve", "driven": "collide_sphere",
         "untouched": "collide_plane"}
made = [add(tree, kind, name) for name, kind in kinds.items()]
loaded, chosen, moves, fall, driven, untouched = made
scene.unit_settings.scale_length = given["scale"]
# as an add-on of then has left them: numbers of graph files in the properties
def old(node, name, value):
    setattr(node, f"k_{name}", value)
loaded.as_loaded = ""
for name, raw in given["loaded"].items():
    old(loaded, name, raw)
    seen = getattr(loaded, f"k_{name}")
    memory.remember(loaded, name, raw, list(seen) if isinstance(raw, list) else seen)
old(chosen, "centre", (0.25, 0.5, -0.75))
old(chosen, "size", (0.5, 1.5, 2.5))
old(chosen, "orientation", (0.5, 0.25, -0.25, 0.75))
for frame, place in ((1, (0.0, 1.0, 2.0)), (5, (4.0, -3.0, 0.5))):
    old(moves, "centre", place)
    moves.keyframe_insert("k_centre", frame=frame)
answer["eased"] = [[curve.evaluate(frame) for curve in animation.curves_of(moves, "k_centre")] for frame in range(1, 6)]
old(fall, "wall_low", (-1.0, -2.0, -3.0))
old(fall, "wall_high", (4.0, 5.0, 6.0))
fall.k_substeps = "surface_tension_heat"
flux = preset_settings.fields("substeps", "surface_tension_heat")["flux_from"]
setattr(fall, knobs.prop(flux["name"]), (1.0, 2.0, 3.0))
driven.driver_add("k_centre", 2).driver.expression = "frame / 10"
old(driven, "radius", 0.125)
for node in made:
    node.property_unset("in_scene_axes")
bpy.ops.wm.save_as_mainfile(filepath=given["folder"] + "/older.blend")
bpy.ops.wm.open_mainfile(filepath=given["folder"] + "/older.blend")
tree = bpy.data.node_groups["older"]
answer["scene"] = [list(tree.nodes["set"].k_centre), list(tree.nodes["fall"].k_wall_low)]
answer["turned"] = all(node.in_scene_axes for node in tree.nodes)
answer["graph"] = graph_file.read(cook.write_graph(tree, bpy.context.scene))
bpy.ops.wm.save_mainfile()
bpy.ops.wm.open_mainfile(filepath=given["folder"] + "/older.blend")
answer["again"] = graph_file.read(cook.write_graph(bpy.data.node_groups["older"], bpy.context.scene))
"""

WORDS = """
said = {}
for kind, names in given["names"].items():
    rna = nodes.class_of(kind, trees.GRAPH_TREE if kind in nodes.NODE_CLASSES else trees.SUBSTEP_TREE).bl_rna.properties
    for name in names:
        one = rna[f"k_{name}"]
        said[f"{kind}.{name}"] = [one.name, one.description, [item.name for item in one.enum_items] if one.type == "ENUM" else []]
answer["said"] = said
"""


def _axes():
    found = importlib.util.spec_from_file_location("axes_of_the_addon", SOURCE)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _records(spec):
    return [*spec["nodes"], *spec["stages"]]


def _numbers(spec):
    """Return by node or stage the knobs that axes or units of the scene change."""
    found = {}
    for record in _records(spec):
        own = [
            knob for knob in record["knobs"] if knob["kind"] == "vector" or (knob["kind"] == "float" and knob["unit"] in LENGTHS)
        ]
        if own:
            found[record["id"]] = own
    return found


def _raw(knob, seed):
    """Return a value whose numbers all differ, exact in a few decimals, as a graph file has it."""
    if knob["kind"] == "float":
        return 0.375
    first = [0.5] if knob["axes"] == "quaternion" else []
    return first + [0.25 + seed, 1.5, 2.75] if knob["axes"] == "extent" else first + [0.25 + seed, -1.5, 2.75]


def _in_scene(knob, raw, knobs, values):
    """Return a value in the scene, as this test understands the axes."""
    if knob["kind"] == "float":
        return raw
    *first, x, y, z = raw
    if knob["axes"] == "extent":
        return [*first, x, z, y]
    turned = list(TO_SCENE @ [x, y, z])
    if knob["corner"]:
        turned[1] = -values[knob["corner"]][2]
    return [*first, *turned]


def test_every_vector_says_what_its_numbers_are_along_the_axes(spec):
    """A new vector knob without it is found; edges are never negative; corners name one another; a quaternion starts at rest."""
    count = 0
    parameters = [{"id": preset["name"], "knobs": preset["parameters"]} for preset in spec["presets"]]
    for record in [*_records(spec), *parameters]:
        knobs = {knob["name"]: knob for knob in record["knobs"]}
        for name, knob in knobs.items():
            if knob["kind"] != "vector":
                assert "axes" not in knob
                continue
            count += 1
            assert knob["axes"] in ("signed", "extent", "quaternion"), (record["id"], name)
            assert knob["axes"] != "extent" or min(knob["default"]) >= 0.0, (record["id"], name)
            assert knob["axes"] != "quaternion" or knob["default"] == [1.0, 0.0, 0.0, 0.0], (record["id"], name)
            assert not knob["corner"] or knobs[knob["corner"]]["corner"] == name, (record["id"], name)
            opposite = name.replace("_low", "_high") if name.endswith("_low") else ""
            assert opposite not in knobs or knob["corner"] == opposite, f"{record['id']}.{name}: a corner is marked with Corner"
    assert count > 45


def test_rotations_turn_the_same_body():
    """Turns and quaternions of a graph, read by the scene's axes, are the same motion; a place and a quaternion go round."""
    axes = _axes()
    signed = {"name": "rotation", "kind": "vector", "unit": "deg", "axes": "signed", "size": 3}
    four = {"name": "orientation", "kind": "vector", "unit": "", "axes": "quaternion", "size": 4}
    angles = [20.0, -35.0, 110.0]
    x, y, z = (np.radians(each) for each in axes.to_scene(signed, angles, 1.0))
    graph = _about(2, np.radians(angles[2])) @ _about(1, np.radians(angles[1])) @ _about(0, np.radians(angles[0]))
    scene = _about(1, y) @ _about(2, z) @ _about(0, x)  # X, then Z, then Y
    assert scene == pytest.approx(TO_SCENE @ graph @ TO_SCENE.T)
    turn = [0.5, 0.1, -0.7, 0.5]
    assert _matrix(axes.to_scene(four, turn, 1.0)) == pytest.approx(TO_SCENE @ _matrix(turn) @ TO_SCENE.T)
    for knob, value in ((signed, angles), (four, turn)):
        assert axes.to_file(knob, axes.to_scene(knob, value, 0.01), 0.01) == value
    place = {**signed, "unit": "m"}
    assert axes.to_scene(place, [1.0, 2.0, 3.0], 0.01) == pytest.approx([100.0, -300.0, 200.0])
    assert axes.to_file(place, [100.0, -300.0, 200.0], 0.01) == [1.0, 2.0, 3.0]
    assert str(axes.to_file(place, [0.0, 0.0, 0.0], 1.0)) == "[0.0, 0.0, 0.0]", "no -0.0"


def _about(axis, angle):
    """Return the matrix of a turn about an axis."""
    found, (first, second) = np.eye(3), [(axis + 1) % 3, (axis + 2) % 3]
    found[first, first] = found[second, second] = np.cos(angle)
    found[second, first], found[first, second] = np.sin(angle), -np.sin(angle)
    return found


def _matrix(quaternion):
    w, *v = np.asarray(quaternion) / np.linalg.norm(quaternion)
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def test_every_knob_is_in_the_scenes_axes_and_units_and_comes_back(spec):
    """All vectors and lengths of all nodes and stages: what the property holds, and what is written, set by hand or with keys.

    Stages are in metres: those that were only looked at stay a preset's when the Unit Scale changes.
    """
    scales, stages = [1.0, 0.01, 0.3048], {record["id"] for record in spec["stages"]}
    wanted = _numbers(spec)
    raw = {kind: {knob["name"]: _raw(knob, 0.125 * n) for n, knob in enumerate(knobs)} for kind, knobs in wanted.items()}
    answer = in_blender(EVERY, raw=raw, scales=scales)
    assert answer["looked"] == "surface_tension_heat"
    seen = answer["nodes"]
    assert set(seen) == set(wanted) and len(seen) > 25
    for kind, knobs in wanted.items():
        for scale, facts in zip(scales, seen[kind], strict=True):
            for knob in knobs:
                name, value = knob["name"], raw[kind][knob["name"]]
                where = f"{kind}.{name} at {scale} m"
                is_scaled = knob["unit"] in LENGTHS and kind not in stages
                unit = scale if is_scaled else 1.0
                assert facts["fresh"][name] == knob["default"], where
                assert facts["kept"][name] == facts["written"][name] == value, where
                scene = np.array(_in_scene(knob, value, knobs, raw[kind])) / unit
                assert np.allclose(facts["properties"][name], scene, rtol=2e-7), where
                assert facts["units"][name] == (LENGTHS[knob["unit"]] if is_scaled else "NONE"), where
                if name in facts["keys"]:
                    written, given = facts["keys"][name]
                    assert written == given, where


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_blend_of_an_older_version_says_the_same_in_the_scenes_axes(tmp_path, scale):
    """Loaded values come back as the file had them, set ones, eased keys, walls, settings and drivers exchange their axes, once."""
    loaded = {"centre": [0.1, 0.2, 0.3], "rotation": [10.0, 20.0, 30.0], "size": [0.7, 0.8, 0.9], "velocity": [1.1, 2.2, 3.3]}
    seen = in_blender(OLD, folder=str(tmp_path), scale=scale, loaded=loaded)
    knobs = {name: entry["knobs"] for name, entry in seen["graph"]["nodes"].items()}
    assert seen["turned"] and {name: knobs["loaded"][name] for name in loaded} == loaded
    assert knobs["set"]["centre"] == [0.25, 0.5, -0.75] and knobs["set"]["size"] == [0.5, 1.5, 2.5]
    assert knobs["set"]["orientation"] == [0.5, 0.25, -0.25, 0.75]
    assert knobs["fall"]["wall_low"] == [-1.0, -2.0, -3.0] and knobs["fall"]["wall_high"] == [4.0, 5.0, 6.0]
    assert knobs["fall"]["substeps"] == {"preset": "surface_tension_heat", "set": {"flux_from": [1.0, 2.0, 3.0]}}
    assert seen["scene"] == [pytest.approx([0.25 / scale, 0.75 / scale, 0.5 / scale], rel=1e-6),
                             pytest.approx([-1.0 / scale, -6.0 / scale, -2.0 / scale], rel=1e-6)]  # fmt: skip
    assert [key[1] for key in knobs["moves"]["centre"]["keys"]] == [pytest.approx(each, rel=1e-5) for each in seen["eased"]]
    assert [key[1] for key in knobs["driven"]["centre"]["keys"]] == [pytest.approx([0.0, 0.0, n / 10]) for n in range(1, 6)]
    assert knobs["driven"]["radius"] == 0.125 and knobs["untouched"]["shown_size"] == 4.0
    assert seen["again"]["nodes"] == seen["graph"]["nodes"]


def test_labels_menus_and_help_name_the_scenes_axes():
    """Sides of walls, menus of axes and turns are those of the scene; text that stays as in a file says so."""
    names = {"solve": ["wall_low", "wall_z_low", "wall_y_low"], "set_temperature": ["ramp"], "emit_box": ["centre", "rotation"],
             "sample_surface": ["mirrors", "slab"], "heat_surface": ["flames"], "collide_box": ["orientation"],
             "minimise_energy": ["preconditioner"], "collide_capsule": ["rotation"]}  # fmt: skip
    said = in_blender(WORDS, names=names)["said"]
    assert said["solve.wall_z_low"][0] == "Wall Y High" and "at high Y" in said["solve.wall_z_low"][1]
    assert said["solve.wall_y_low"][0] == "Wall Z Low" and "at low Z (the floor)" in said["solve.wall_y_low"][1]
    assert said["emit_box.centre"][0] == "Centre", "Blender writes the unit"
    assert "Turns about X, then Z, then Y" in said["emit_box.rotation"][1] and said["emit_box.rotation"][0] == "Rotation [deg]"
    assert "the axis is Z" in said["collide_capsule.rotation"][1]
    assert "(w, X, Y, Z)" in said["collide_box.orientation"][1]
    assert said["set_temperature.ramp"][2] == ["None", "X", "Z", "-Y"]
    assert said["sample_surface.mirrors"][2] == ["None", "X", "Z", "-Y", "XZ", "XY", "YZ", "XYZ"]
    assert "y is up" in said["heat_surface.flames"][1]
    assert "3 x 3" in said["minimise_energy.preconditioner"][1]
