"""Tables over the temperature as curves.

Blender keeps curves in nodes of its own only, so each such knob has a hidden shader tree with one Float Curve node in it. Points
stand at (temperature, value) as they are; straight pieces have vector handles.
"""

import bpy

PIECES = 16
"""Straight pieces that stand for one that the artist has bent."""


def curve_prop(name):
    """Return the name of the property that holds a knob's curve: that of every knob's property."""
    return f"k_{name}"


def mapping_of(owner, name):
    """Return the node with a knob's curve, or None."""
    tree = getattr(owner, curve_prop(name))
    return None if tree is None else tree.nodes[0]


def rows_of(owner, name):
    """Return the rows of a knob's curve, None where it has none; bent pieces become straight ones."""
    node = mapping_of(owner, name)
    if node is None:
        return None
    mapping = node.mapping
    mapping.initialize()
    curve, found = mapping.curves[0], []
    points = sorted(curve.points, key=lambda point: point.location[0])
    for here, after in zip(points, [*points[1:], None], strict=True):
        found.append([_short(here.location[0]), _short(here.location[1])])
        if after is not None and "VECTOR" not in (here.handle_type, after.handle_type):
            low, high = here.location[0], after.location[0]
            places = [low + (high - low) * k / PIECES for k in range(1, PIECES)]
            found += [[_short(place), _short(mapping.evaluate(curve, place))] for place in places]
    return found


def _short(number):
    return float(f"{number:.6g}")


def show(owner, name, rows):
    """Give a knob a curve through rows; None takes it away."""
    old = getattr(owner, curve_prop(name))
    if old is not None:
        setattr(owner, curve_prop(name), None)
        bpy.data.node_groups.remove(old)
    if not rows:
        return
    tree = bpy.data.node_groups.new(f".mpm {name}", "ShaderNodeTree")
    mapping = tree.nodes.new("ShaderNodeFloatCurve").mapping
    values = [value for _, value in rows]
    low, high = rows[0][0], max(rows[-1][0], rows[0][0] + 1.0)
    bottom, top = min(0.0, *values), max(0.0, *values)
    mapping.use_clip = False
    mapping.extend = "HORIZONTAL"
    points = mapping.curves[0].points
    while len(points) < len(rows):
        points.new(high, values[-1])
    places = [*rows, *[[high, values[-1]]] * (len(points) - len(rows))]  # Blender's curves have two points at least
    for point, place in zip(points, places, strict=True):
        point.location = place
        point.handle_type = "VECTOR"
    mapping.clip_min_x, mapping.clip_max_x = low, high
    mapping.clip_min_y, mapping.clip_max_y = bottom, max(top, bottom + 1e-9)
    mapping.update()
    mapping.reset_view()
    setattr(owner, curve_prop(name), tree)


def part(owner, name):
    """Give a copied node a curve of its own."""
    tree = getattr(owner, curve_prop(name))
    if tree is not None:
        setattr(owner, curve_prop(name), tree.copy())


def draw(owner, layout, knob, title):
    """Draw a curve, or a button that adds one."""
    node = mapping_of(owner, knob["name"])
    box = layout.column(align=True)
    row = box.row()
    row.label(text=title)
    if node is None or knob["optional"]:
        button = row.operator("mpm_nodes.curve", text="", icon="ADD" if node is None else "X")
        button.knob, button.remove = knob["name"], node is not None
    if node is not None:
        box.template_curve_mapping(node, "mapping")


class MpmCurve(bpy.types.Operator):
    """Add or remove the curve of a knob."""

    bl_idname = "mpm_nodes.curve"
    bl_label = "Curve"
    bl_options = {"REGISTER", "UNDO"}

    knob: bpy.props.StringProperty()
    remove: bpy.props.BoolProperty()

    def execute(self, context):
        """Add one that is level at the middle of what Blender shows, or take the knob's away."""
        node = context.active_node
        show(node, self.knob, None if self.remove else [[273.15, 1.0], [373.15, 1.0]])
        return {"FINISHED"}


CLASSES = [MpmCurve]
