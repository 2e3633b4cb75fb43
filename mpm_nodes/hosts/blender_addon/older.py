"""Nodes of a .blend that was saved when knobs had the axes and metres of graph files: turned once, keys and drivers included."""

from . import animation, axes, knobs, memory, preset_settings
from .specification import PRESETS


def turn(node):
    """Bring the knobs of a node into the axes and units of the scene; one that is there already stays as it is.

    Returns the names of the properties whose drivers or NLA strips nobody but the artist can turn.
    """
    if node.record is None or node.in_scene_axes:
        return []
    turned = [knob for knob in node.record["knobs"] if knob.get("axes") or axes.unit_of(knob)]
    before = {knob["name"]: _constant(node, knob) for knob in turned}
    kept = {knob["name"]: memory.recall(node, knob["name"], _shown(node, knob, before[knob["name"]])) for knob in turned}
    moved = [(curve, *_home(knob, curve.array_index)) for knob in turned for curve in _curves(node, knob)]
    driven = [(curve, *_home(knob, curve.array_index)) for knob in turned for curve in _drivers(node, knob)]
    for knob in turned:
        knobs.show(node, knob, before[knob["name"]])
    for curve, name, index, factor in moved:
        curve.data_path, curve.array_index = node.path_from_id(name), index
        for point in curve.keyframe_points:
            for place in (point.co, point.handle_left, point.handle_right):
                place[1] *= factor
        curve.update()
    left = [name for name in map(knobs.prop, before) if animation.in_strips(node, name)]
    for curve, name, index, factor in driven:
        curve.data_path, curve.array_index = node.path_from_id(name), index
        if factor != 1.0 and curve.driver.type == "SCRIPTED":
            curve.driver.expression = f"{factor:g} * ({curve.driver.expression})"
        elif factor != 1.0:
            left.append(name)
    _turn_settings(node)
    node.in_scene_axes = True
    for knob in turned:
        if kept[knob["name"]] is not memory.NOTHING:
            memory.remember(node, knob["name"], kept[knob["name"]], knobs.shown(node, knob))
    return left


def _constant(node, knob):
    """Return what a property held, as JSON."""
    name = knobs.prop(knob["name"])
    if not node.is_property_set(name):
        return axes.single(knob["default"] if knob["default"] is not None else [0.0] * knob["size"])
    value = getattr(node, name)
    return list(value) if knob["kind"] == "vector" else value


def _shown(node, knob, constant):
    """Return what was shown for a knob, as it was remembered."""
    curves = _curves(node, knob)
    return animation.fingerprint(curves) if curves else constant


def _curves(node, knob):
    return animation.curves_of(node, knobs.prop(knob["name"])) if knob["keyable"] else []


def _drivers(node, knob):
    data = node.id_data.animation_data
    path = node.path_from_id(knobs.prop(knob["name"]))
    return [curve for curve in data.drivers if curve.data_path == path] if data else []


def _home(knob, index):
    """Return the property and the index that a number of a graph file has now, and its factor."""
    unit = knobs.unit_now() if axes.unit_of(knob) else 1.0
    if not knob.get("axes"):
        return knobs.prop(knob["name"]), index, 1.0 / unit
    ones = [float(number == index) for number in range(knob["size"])]
    place, factor = next((at, each) for at, each in enumerate(axes.to_scene(knob, ones, unit)) if each)
    name, place = knobs.homes(knob)[place]
    return name, place, factor


def _turn_settings(node):
    """Turn the vectors among the settings of presets."""
    for knob in node.record["knobs"]:
        for preset in PRESETS if knob["kind"] == "substeps" else ():
            for field in preset_settings.fields(knob["name"], preset).values():
                if field.get("axes") and node.is_property_set(knobs.prop(field["name"])):
                    knobs.show(node, field, list(getattr(node, knobs.prop(field["name"]))))
