"""What each force of Houdini stands for, after SideFX's pages of the nodes (docs/houdini.md names them).

Parameters are found by their labels: these stand on the pages, names do not.
"""

from __future__ import annotations

import math

import hou

from .values import read_numbers

NUMBERS = (hou.parmTemplateType.Float, hou.parmTemplateType.Int)
MENUS = (hou.parmTemplateType.Menu, hou.parmTemplateType.Int, hou.parmTemplateType.String)
SMALL = 1e-3
"""Least length, in metres and as a share of a radius."""
PEAK = 4.0
"""Length that one vector of the noise in a thousand exceeds, over the standard deviation that its amplitude is: Houdini's amplitude
is its largest value."""
INSTEAD = {
    "popfan": "force_wind, masked by field_shape",
    "popwindshadow": "force_air",
    "popmetaballforce": "force_attraction",
    "popcurveforce": "field_curve into force_wind",
    "popadvectbyvolumes": "field_vdb into force_wind",
    "popspeedlimit": "speed_limit of the forces",
    "popkill": "drain",
    "vortexforce": "force_vortex",
}
"""What to take by hand, by the type of a node that has no translation."""
NO_FORCES = ("popobject", "popsource", "popsolver", "merge", "null", "output")
"""Types of what else stands in such networks, and need not be spoken of."""


class HoudiniForce:
    """A force of Houdini, and the piece of a graph that comes of it.

    Attributes:
        entries: Nodes of the graph by name.
        forces: Names of those that are wired into a solve.
        said: What is not taken over.
    """

    def __init__(self, node, frames, names):
        self.node, self.frames, self.names = node, frames, names
        self.entries, self.forces, self.said = {}, [], []

    # ------------------------------------------------------------ reading
    def parms(self, label, size=1, kinds=NUMBERS):
        """Return the parameters of a label.

        Raises:
            hou.OperationFailed: This Houdini's node has none.
        """
        for each in self.node.parmTuples():
            template = each.parmTemplate()
            if len(each) == size and template.type() in kinds and template.label().casefold() == label.casefold():
                return [each[number] for number in range(size)]
        raise hou.OperationFailed(
            f"has no parameter {label} in this Houdini; add the force by hand, and report it as docs/houdini.md says"
        )

    def value(self, label, size=1):
        """Return a number or a vector as a graph file holds it, with its keys."""
        return read_numbers(self.parms(label, size), False, size > 1, self.frames)

    def fixed(self, label, size=1):
        """Return a value of today for a knob that takes no keys, and say so where it moves."""
        parms = self.parms(label, size)
        if any(parm.isTimeDependent() for parm in parms):
            self.said.append(f"{label} moves, and is taken as it is at this frame")
        values = [float(parm.eval()) for parm in parms]
        return values if size > 1 else values[0]

    def product(self, label, size, other):
        """Return a value times that of another parameter of one component."""
        first, second = self.value(label, size), self.value(other)
        if not isinstance(second, dict):
            return scaled(first, second)
        if not isinstance(first, dict):
            return mapped(second, lambda number: scaled(first, number))
        parms, factor = self.parms(label, size), self.parms(other)[0]
        keys = []
        for frame in range(int(self.frames[0]), int(self.frames[1]) + 1):
            parts = [parm.evalAtFrame(frame) * factor.evalAtFrame(frame) for parm in parms]
            keys.append([frame, parts if size > 1 else parts[0], "linear"])
        return {"keys": keys}

    def chosen(self, label):
        """Return the label of a menu's choice."""
        parm = self.parms(label, kinds=MENUS)[0]
        return parm.menuLabels()[parm.menuItems().index(parm.evalAsString())]

    def on(self, label):
        """Return whether a box is ticked."""
        return bool(self.parms(label, kinds=(hou.parmTemplateType.Toggle,))[0].eval())

    def off(self):
        """Return whether the node does nothing, and say what of it holds for all its kind and is not taken over."""
        for each in self.node.parmTuples():
            label, kind = each.parmTemplate().label().casefold(), each.parmTemplate().type()
            if label == "activation" and kind in NUMBERS:
                if not each[0].isTimeDependent() and each[0].eval() <= 0:
                    return True
                if each[0].isTimeDependent():
                    self.said.append("Activation moves, and is not taken over; key the strength")
            elif label == "group" and kind == hou.parmTemplateType.String and each[0].evalAsString().strip():
                self.said.append("Group is not taken over; wire a field into mask")
            elif label.startswith("use vexpression") and kind == hou.parmTemplateType.Toggle and each[0].eval():
                self.said.append("VEXpressions are not taken over; wire a field into mask")
        return self.node.isBypassed()

    # ------------------------------------------------------------ writing
    def add(self, kind, inputs=None, /, **knobs):
        """Add a node to the graph and return its name."""
        stem = self.node.name() if kind.startswith("force_") else f"{self.node.name()}_{kind.partition('_')[2]}"
        name = self.names.free(stem)
        wires = {port: source for port, source in (inputs or {}).items() if source is not None}
        self.entries[name] = {"type": kind, "knobs": knobs, "inputs": wires}
        return name

    def force(self, kind, inputs=None, /, **knobs):
        """Add a force."""
        name = self.add(kind, inputs, **knobs)
        self.forces.append(name)

    def combined(self, operation, first, second):
        """Add what becomes of two fields, the second of which may be a number."""
        if isinstance(second, str):
            return self.add("field_math", {"a": first, "b": second}, operation=operation)
        return self.add("field_math", {"a": first}, operation=operation, b_value=second)

    def rows(self):
        """Return the names row by row: the forces, what is wired into them, and so on."""
        rows, seen = [self.forces], set(self.forces)
        while rows[-1]:
            above = [name for below in rows[-1] for name in self.entries[below]["inputs"].values()]
            rows.append([name for name in dict.fromkeys(above) if name not in seen])
            seen.update(rows[-1])
        return rows[:-1]


def mapped(value, function):
    """Return a function of a value; of one with keys, of each key."""
    if isinstance(value, dict):
        return {"keys": [[frame, function(each), shape] for frame, each, shape in value["keys"]]}
    return function(value)


def scaled(value, factor):
    """Return a number or a vector, with keys or without, times a number."""
    return mapped(value, lambda each: [factor * part for part in each] if isinstance(each, list) else factor * each)


def _is_zero(value):
    return not isinstance(value, dict) and not any(value if isinstance(value, list) else [value])


# ---------------------------------------------------------------- kinds
def _noise(source):
    """Add the noise of POP Force and POP Wind; return its name, None where there is none."""
    amplitude = source.value("Amplitude")
    if _is_zero(amplitude):
        return None
    scale, pulse = source.fixed("Swirl Scale", 3), source.fixed("Pulse Length")
    if len(set(scale)) > 1:
        source.said.append("Swirl Scale differs between the axes, and its mean is taken")
    return source.add(
        "field_noise",
        kind="curl",
        size=max(source.fixed("Swirl Size") * sum(scale) / 3.0, SMALL),
        amplitude=scaled(amplitude, 1.0 / PEAK),
        evolution=1.0 / pulse if pulse > 0.0 else 0.0,
        octaves=min(1 + max(round(source.fixed("Turbulence")), 0), 8),
    )


def _force(source):
    source.force("force_acceleration", {"field": _noise(source)}, acceleration=source.value("Force", 3))


def _even(source):
    source.force("force_acceleration", acceleration=source.value("Force", 3))


def _gravity(source):
    _even(source)
    source.said.append("adds to Gravity of the MPM Solve; set that to 0, or take this force out")


def _is_quadratic(source):
    """Return whether drag grows with the square of the difference, as the POP Solver of the network says."""
    solvers = [node for node in source.node.parent().children() if node.type().nameComponents()[2] == "popsolver"]
    if not solvers:
        return True
    solver = HoudiniForce(solvers[0], source.frames, source.names)
    exponent = solver.fixed("Drag Exponent")
    source.said += solver.said
    if exponent not in (1.0, 2.0):
        source.said.append(f"Drag Exponent {exponent:g} of {solvers[0].name()} becomes {1 if exponent < 1.5 else 2}")
    return exponent >= 1.5


def _wind(source):
    source.force(
        "force_wind",
        {"field": _noise(source)},
        velocity=source.product("Wind Velocity", 3, "Wind Speed"),
        drag=source.value("Air Resistance"),
        quadratic=_is_quadratic(source),
    )


def _pop_drag(source):
    source.force(
        "force_wind",
        velocity=source.value("Wind Velocity", 3),
        drag=source.value("Air Resistance"),
        quadratic=_is_quadratic(source),
    )


def _dop_drag(source):
    source.force("force_wind", velocity=source.value("Goal Velocity", 3), drag=source.value("Scale Force"), quadratic=False)


def _axis(source):
    if source.chosen("Type") != "Sphere":
        raise hou.OperationFailed("a POP Axis Force of the type Torus is not taken over; take field_curve into force_wind")
    axis, radius = source.fixed("Axis Direction", 3), max(source.fixed("Radius"), SMALL)
    long = math.hypot(*axis)
    if not long > 0.0:
        raise hou.OperationFailed("Axis Direction is 0, so that it turns nothing")
    axis = [part / long for part in axis]
    place = {"centre": source.value("Center", 3), "orientation": _turn_from_y(axis), "length": max(source.fixed("Height"), 0.0)}
    away = source.add("field_shape", shape="capsule", output="distance", radius=radius, **place)
    edge = -max(source.fixed("Soft Edge"), SMALL) * radius
    inner, outer = source.value("Inner Strength"), source.value("Outer Strength")
    fading = source.add("field_ramp", {"field": away}, low=edge, high=0.0, from_value=inner, to_value=outer)
    inside = source.add("field_shape", shape="capsule", radius=radius, **place)
    mask = source.combined("multiply", fading, inside)
    orbit, lift, inward = (source.value(f"{name} Speed") for name in ("Orbit", "Lift", "Suction"))
    if source.on("Treat as Wind"):
        line = source.add("field_shape", shape="capsule", output="distance", radius=SMALL * radius, **place)
        _axis_wind(source, line, mask, (axis, orbit, lift, inward))
        return
    source.force(
        "force_vortex", {"mask": mask}, centre=place["centre"], axis=axis, strength=orbit, inward=inward, radius=SMALL * radius
    )
    if not _is_zero(lift):
        source.force("force_acceleration", {"mask": mask}, acceleration=mapped(lift, lambda speed: scaled(axis, speed)))


def _axis_wind(source, line, mask, motion):
    """Add the wind around, along and towards an axis."""
    axis, orbit, lift, inward = motion
    slope = source.add("field_gradient", {"field": line}, step=SMALL)
    along = source.add("field_vector", vector=axis)
    around = source.combined("cross", along, slope)
    # of the slope, what is across the axis: beyond the ends of the line it leans along it
    across = source.combined("normalize", source.combined("cross", around, along), 1.0)
    speeds = [(orbit, source.combined("normalize", around, 1.0)), (scaled(inward, -1.0), across), (lift, along)]
    moving = [source.combined("multiply", direction, speed) for speed, direction in speeds if not _is_zero(speed)]
    field = None
    for each in moving:
        field = each if field is None else source.combined("add", field, each)
    source.force(
        "force_wind",
        {"field": field, "mask": mask},
        velocity=[0.0, 0.0, 0.0],
        drag=source.value("Air Resistance"),
        quadratic=_is_quadratic(source),
    )


def _turn_from_y(axis):
    """Return the quaternion (w, x, y, z) of the shortest turn from y to an axis of length 1."""
    x, y, z = axis
    if y < -1.0 + 1e-12:
        return [0.0, 1.0, 0.0, 0.0]
    long = math.sqrt(2.0 * (1.0 + y))
    return [0.5 * long, z / long, 0.0, -x / long]


def _attract(source):
    if source.chosen("Attraction Type") != "Position":
        raise hou.OperationFailed("attracts to geometry; take force_attraction with the distance of field_collider")
    source.force(
        "force_attraction", centre=source.value("Goal", 3), strength=source.value("Force Scale"), radius=SMALL, falloff=0.0
    )
    source.said.append("its distances and the way it follows are not taken over; mask the force by field_shape")


KINDS = {
    "popforce": _force,
    "popwind": _wind,
    "popdrag": _pop_drag,
    "popaxisforce": _axis,
    "popattract": _attract,
    "gravity": _gravity,
    "uniformforce": _even,
    "drag": _dop_drag,
}
"""What is made of a node, by its type without namespace and version."""
