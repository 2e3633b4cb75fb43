"""Outlines of emitters, colliders and walls in the 3D viewport, for what is not an object of the scene.

`outlines` says what is drawn, in units of the scene with Z up; `draw` draws it.
"""

import itertools
import math

import bpy
from mathutils import Euler, Matrix, Quaternion, Vector

from . import knobs, specification, surfaces, trees

COLOURS = {"source": (0.36, 0.62, 0.90, 0.9), "collider": (0.75, 0.75, 0.78, 0.9), "wall": (0.95, 0.55, 0.25, 0.9)}
PARTS = 32
"""Straight parts of a circle."""

_HANDLE = []


def outlines(tree, scene):
    """Return (role, [(start, end), ...]) of every place of a graph; role is "source", "collider" or "wall".

    Nodes that stand for an object of the scene are left out: the object is there.
    """
    found = []
    to_scene = surfaces.Y_UP.transposed() * (1.0 / surfaces.metres(scene))
    for node in tree.nodes:
        record = getattr(node, "record", None)
        if record is None or node.mute or node.scene_object is not None:
            continue
        role = {"Emit": "source", "Collide": "collider"}.get(record["category"])
        lines = _shape(node) if role else _walls(node) if record["sequential"] else []
        if lines:
            found.append((role or "wall", [(to_scene @ start, to_scene @ end) for start, end in lines]))
    return found


def _shape(node):
    """Return the lines of a node with a place, in the metres and axes of the graph."""
    centre = _value(node, "centre")
    if centre is None:
        return []
    size, radius, shown = _value(node, "size"), _value(node, "radius"), _value(node, "shown_size")
    half = _value(node, "half_height")
    length = _value(node, "length") or (2.0 * half if half else None)
    if size is not None:
        lines = _box(-0.5 * Vector(size), 0.5 * Vector(size))
    elif radius is not None and length is not None:
        lines = _capsule(radius, length)
    elif radius is not None:
        lines = [line for axis in range(3) for line in _circle(radius, axis)]
    elif shown is not None:
        lines = _box(Vector((-0.5 * shown, 0.0, -0.5 * shown)), Vector((0.5 * shown, 0.0, 0.5 * shown)))
        lines += [(Vector(), Vector((0.0, 0.1 * shown, 0.0)))]
    else:
        return []
    turn = Euler([math.radians(each) for each in _value(node, "rotation") or (0.0, 0.0, 0.0)], "XYZ").to_quaternion()
    turn = turn @ Quaternion(_value(node, "orientation") or (1.0, 0.0, 0.0, 0.0)).normalized()  # one of them is given
    place = Matrix.Translation(centre) @ turn.to_matrix().to_4x4()
    return [(place @ start, place @ end) for start, end in lines]


def _walls(node):
    """Return the box of a solve whose walls are not all open."""
    low, high = _value(node, "wall_low"), _value(node, "wall_high")
    sides = [f"wall_{axis}_{end}" for axis in "xyz" for end in ("low", "high")]
    closed = [side for side in sides if (_value(node, side) or "open") != "open"]
    if low is None or high is None or not closed:
        return []
    low, high, lines = Vector(low), Vector(high), []
    for side in closed:
        axis = "xyz".index(side[5])
        first, second = low.copy(), high.copy()
        first[axis] = second[axis] = (low if side.endswith("low") else high)[axis]
        lines += _box(first, second)
    return lines


def _value(node, name):
    """Return a knob as a graph file has it, None where there is none."""
    knob = specification.knob(node.record, name)
    if knob is None:
        return None
    return knobs.number_of(node, knob) if knob["kind"] in ("float", "vector") else knobs.constant_of(node, knob)


def _box(low, high):
    """Return the edges of a box; those of no length are left out."""
    corners = [Vector(each) for each in itertools.product(*zip(low, high, strict=True))]
    lines = [(a, b) for a, b in itertools.combinations(corners, 2) if sum(p != q for p, q in zip(a, b, strict=True)) == 1]
    return [(a, b) for index, (a, b) in enumerate(lines) if (a, b) not in lines[:index]]


def _circle(radius, axis, at=0.0):
    points = []
    for part in range(PARTS + 1):
        angle = 2.0 * math.pi * part / PARTS
        point = [radius * math.cos(angle), radius * math.sin(angle)]
        point.insert(axis, at)
        points.append(Vector(point))
    return list(itertools.pairwise(points))


def _capsule(radius, length):
    lines = _circle(radius, 1, -0.5 * length) + _circle(radius, 1, 0.5 * length)
    for x, z in ((radius, 0.0), (-radius, 0.0), (0.0, radius), (0.0, -radius)):
        lines.append((Vector((x, -0.5 * length, z)), Vector((x, 0.5 * length, z))))
    return lines


def draw():
    """Draw the outlines of every graph; called by Blender for every viewport."""
    context = bpy.context
    if not getattr(context.window_manager, "mpm_nodes_guides", False):
        return
    import gpu
    from gpu_extras.batch import batch_for_shader

    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    gpu.state.blend_set("ALPHA")
    gpu.state.depth_test_set("LESS_EQUAL")
    for tree in bpy.data.node_groups:
        if tree.bl_idname != trees.GRAPH_TREE:
            continue
        for role, lines in outlines(tree, context.scene):
            batch = batch_for_shader(shader, "LINES", {"pos": [tuple(point) for line in lines for point in line]})
            shader.uniform_float("color", COLOURS[role])
            batch.draw(shader)
    gpu.state.depth_test_set("NONE")
    gpu.state.blend_set("NONE")


def register():
    """Draw in viewports, and give them the choice."""
    bpy.types.WindowManager.mpm_nodes_guides = bpy.props.BoolProperty(
        name="Outlines", default=True, description="Draw emitters, colliders and walls of graphs in the viewport"
    )
    if not bpy.app.background:
        _HANDLE.append(bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", "POST_VIEW"))


def unregister():
    """Draw no longer."""
    while _HANDLE:
        bpy.types.SpaceView3D.draw_handler_remove(_HANDLE.pop(), "WINDOW")
    del bpy.types.WindowManager.mpm_nodes_guides
