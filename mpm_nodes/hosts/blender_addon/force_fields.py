"""Force fields of the scene as nodes, with the strengths that Blender's own particles of a kilogram would feel."""

from mathutils import Vector

from . import animation, knobs, nodes, places
from .scene_input import ObjectFault, is_field
from .surfaces import metres

KINDS = {
    "FORCE": "force_attraction", "HARMONIC": "force_attraction", "VORTEX": "force_vortex", "WIND": "force_acceleration",
    "TURBULENCE": "force_acceleration", "DRAG": "force_wind",
}  # fmt: skip
"""Node by the type of a force field."""
NEAR = 1e-3
"""Radius within which a force about a point falls to 0, where Blender's does not [units of the scene]."""


def add_force(tree, thing, scene, solve=None):
    """Add the nodes that a force field stands for, and wire them into a solve; return the forces.

    Strength and place follow the object's keys; the direction of winds and axes is the object's Z axis as it is now.

    Raises:
        ObjectFault: The object is not a force field, or one of a kind that nodes have not.
    """
    if not is_field(thing):
        raise ObjectFault(f"{thing.name} is not a force field; give it one in its physics properties")
    field = thing.field
    kind = KINDS.get(field.type)
    if kind is None:
        shown = field.type.replace("_", " ").lower()
        raise ObjectFault(
            f"{thing.name} is a force field of type {shown}; nodes have force, wind, vortex, harmonic, turbulence, drag"
        )
    return _Force(tree, thing, metres(scene), solve).made(kind)


class _Force:
    """The nodes of a force field."""

    def __init__(self, tree, thing, unit, solve):
        self.tree, self.thing, self.field, self.unit, self.solve = tree, thing, thing.field, unit, solve
        x, y = solve.location if solve else (0.0, 0.0)
        beside = sum(1 for each in tree.nodes if abs(each.location[0] - (x - 240.0)) < 1.0)
        self.corner = Vector((x - 240.0, y - 400.0 - 260.0 * beside))

    def made(self, kind):
        """Return the forces, with all that hangs on them."""
        field, axis = self.field, self.thing.matrix_world.to_3x3() @ Vector((0.0, 0.0, 1.0))
        free = []  # what does not fall off
        axis = tuple(axis.normalized()) if axis.length else (0.0, 0.0, 1.0)
        if field.type == "DRAG":
            forces = [self._slowing(kind, "linear_drag", False)] if field.linear_drag or not field.quadratic_drag else []
            forces += [self._slowing(kind, "quadratic_drag", True)] if field.quadratic_drag else []
        elif field.type == "FORCE":
            forces = [self._placed(kind, radius=NEAR)]
            self._follow(forces[0], "strength", "strength", -1.0)
        elif field.type == "HARMONIC":
            forces = [self._placed(kind, radius=1.0, falloff=-1.0)]
            self._follow(forces[0], "strength", "strength")
            if field.harmonic_damping:
                free.append(self._slowing("force_wind", "harmonic_damping", False, 2.0 * abs(field.strength) ** 0.5))
        elif field.type == "VORTEX":
            forces = [self._placed(kind, radius=NEAR, axis=axis)]
            self._follow(forces[0], "strength", "strength")
            self._follow(forces[0], "inward", "inflow")
        else:
            wind = field.type == "WIND"
            noise = "field_vector" if wind else "field_noise"
            knobs_of = {"vector": axis} if wind else {"kind": "curl", "size": max(field.size, NEAR), "seed": field.seed}
            forces = [self._node(kind, 0.0)]
            nodes.connect(self._node(noise, -240.0, **knobs_of), "", forces[0], "field")
            self._follow(forces[0], "strength", "strength")
        mask = self._mask()
        for force in forces if mask is not None else ():
            nodes.connect(mask, "", force, "mask")
        for force in (*forces, *free):
            if self.solve is not None:
                nodes.connect(force, "", self.solve, "forces")
        return [*forces, *free]

    def _node(self, kind, left, /, **values):
        node = self.tree.nodes.new(f"MpmNode_{kind}")
        node.name = places.file_name(self.thing.name)
        node.location = self.corner + Vector(
            (left, -260.0 * sum(1 for each in self.tree.nodes if each.location[0] == self.corner.x + left))
        )
        for name, value in values.items():
            setattr(node, knobs.prop(name), value)
        return node

    def _placed(self, kind, /, **values):
        """Return a node that is where the object is."""
        node = self._node(kind, 0.0, **values)
        node.scene_object = self.thing
        return node

    def _slowing(self, kind, member, quadratic, factor=1.0):
        node = self._node(kind, 0.0, velocity=(0.0, 0.0, 0.0), quadratic=quadratic)
        self._follow(node, "drag", member, factor / self.unit if quadratic else factor)
        return node

    def _follow(self, node, name, member, factor=1.0):
        """Give a knob the value of a member of the field, with its keys."""
        setattr(node, knobs.prop(name), factor * getattr(self.field, member))
        curves = animation.curves_of(self.field, member)
        frames = sorted({point.co[0] for curve in curves for point in curve.keyframe_points})
        for frame in animation.sampled_frames(frames) if frames else ():
            setattr(node, knobs.prop(name), factor * curves[0].evaluate(frame))
            node.keyframe_insert(knobs.prop(name), frame=frame)

    def _mask(self):
        """Return the node of how the field falls off with the distance from its place; None where it does not.

        Blender's law is (1 + d - least)^-power between the least and the largest distance, 0 beyond, and 1 within the least.
        """
        field, mask = self.field, None
        least = field.distance_min if field.use_min_distance else 0.0
        if field.falloff_power:
            away = self._shape(output="distance", radius=max(least, NEAR))
            beyond = self._math("maximum", away, 0.0)
            if self.unit != 1.0:
                beyond = self._math("divide", beyond, self.unit)  # fields are in metres
            mask = self._math("power", self._math("add", beyond, 1.0), -field.falloff_power)
        if field.use_max_distance:
            inside = self._shape(radius=max(field.distance_max, NEAR))
            mask = inside if mask is None else self._math("multiply", mask, inside)
        return mask

    def _shape(self, **values):
        node = self._node("field_shape", -480.0, shape="ball", **values)
        node.scene_object = self.thing
        return node

    def _math(self, operation, first, second):
        number = second if isinstance(second, float) else 1.0
        node = self._node("field_math", -240.0, operation=operation, b_value=number)
        nodes.connect(first, "", node, "a")
        if not isinstance(second, float):
            nodes.connect(second, "", node, "b")
        return node
