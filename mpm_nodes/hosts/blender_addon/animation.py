"""Keyframes of knobs: Blender's F-curves and the key lists of graph files."""

from itertools import pairwise

SHAPES = {"step": "CONSTANT", "linear": "LINEAR", "smooth": "BEZIER"}


def curves_of(owner, name):
    """Return the F-curves of a property of a node or tree, by component."""
    path = _path(owner, name)
    return sorted((curve for curve in _all_curves(owner.id_data) if curve.data_path == path), key=lambda c: c.array_index)


def _path(owner, name):
    try:
        return owner.path_from_id(name)
    except ValueError:  # the property is not an animatable one
        return name


def _all_curves(tree):
    """Return every F-curve of a tree; Blender 5 keeps them in channel bags."""
    data = tree.animation_data
    if data is None or data.action is None:
        return []
    if hasattr(data.action, "fcurves"):
        return list(data.action.fcurves)
    bag = _bag(data)
    return list(bag.fcurves) if bag is not None else []


def _bag(data):
    from bpy_extras import anim_utils

    return anim_utils.action_get_channelbag_for_slot(data.action, data.action_slot)


def clear(owner, name):
    """Remove the keys of a property."""
    curves = curves_of(owner, name)
    if curves:
        data = owner.id_data.animation_data
        holder = data.action.fcurves if hasattr(data.action, "fcurves") else _bag(data).fcurves
        for curve in curves:
            holder.remove(curve)


def fingerprint(curves):
    """Return the keys as plain JSON, to tell whether they were changed."""
    return [
        [curve.array_index, [[*key.co, key.interpolation, *key.handle_left, *key.handle_right] for key in curve.keyframe_points]]
        for curve in curves
    ]


def set_keys(owner, name, keys, knob):
    """Make F-curves of a key list; "smooth" becomes a Bezier curve with level handles, which is the same curve."""
    many = knob["kind"] == "vector"
    for frame, value, _ in keys:
        setattr(owner, name, value if many or knob["kind"] == "float" else round(value))
        owner.keyframe_insert(name, frame=frame)
    for curve in curves_of(owner, name):
        for point, (_, value, shape) in zip(curve.keyframe_points, keys, strict=True):
            point.co[1] = value[curve.array_index] if many else value
            point.interpolation = SHAPES[shape]
        _level_handles(curve)
        curve.update()


def _level_handles(curve):
    points = curve.keyframe_points
    for point in points:
        point.handle_left_type = point.handle_right_type = "FREE"
    for here, after in pairwise(points):
        third = (after.co[0] - here.co[0]) / 3.0
        here.handle_right = (here.co[0] + third, here.co[1])
        after.handle_left = (after.co[0] - third, after.co[1])


def key_list(curves, constant, plain):
    """Return the key list of a property as a graph file spells it.

    Straight and stepped keys are kept as they are; other curves are sampled at every frame between their first and last key.

    Args:
        curves: F-curves of the components that are animated.
        constant: Value of the property, for the components that are not.
        plain: Turns Blender's value into JSON.
    """
    names = {"CONSTANT": "step", "LINEAR": "linear"}
    marks = [[(key.co[0], key.interpolation) for key in curve.keyframe_points] for curve in curves]
    if all(mark == marks[0] for mark in marks) and all(shape in names for _, shape in marks[0]):
        times = [(frame, names[shape]) for frame, shape in marks[0]]
    else:
        times = [(frame, "linear") for frame in sampled_frames(sorted({frame for mark in marks for frame, _ in mark}))]
    keys = [[round(f) if f == round(f) else f, plain(_at(curves, constant, f)), shape] for f, shape in times]
    return {"keys": keys}


def sampled_frames(frames):
    """Return every whole frame between the first and the last one, and those two."""
    first, last = frames[0], frames[-1]
    return sorted({first, last, *(float(f) for f in range(int(first) + 1, int(last) + 1) if first < f < last)})


def _at(curves, constant, frame):
    if not isinstance(constant, list):
        return curves[0].evaluate(frame)
    values = list(constant)
    for curve in curves:
        values[curve.array_index] = curve.evaluate(frame)
    return values
