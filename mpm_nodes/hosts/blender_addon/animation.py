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


def _holder(tree):
    """Return what holds the F-curves of a tree: of an action with slots (4.4 and later), those of the tree's own; or None."""
    data = tree.animation_data
    if data is None or data.action is None:
        return None
    if not hasattr(data.action, "layers"):
        return data.action.fcurves
    strips = [strip for layer in data.action.layers for strip in layer.strips]
    bags = [strip.channelbag(data.action_slot) for strip in strips if data.action_slot is not None]
    return next((bag.fcurves for bag in bags if bag is not None), None)


def _all_curves(tree):
    holder = _holder(tree)
    return [] if holder is None else list(holder)


def curves_at(owner, homes):
    """Return the F-curves of numbers that properties hold: (property, index) of each, index -1 for a single number."""
    there = {(curve.data_path, curve.array_index): curve for curve in _all_curves(owner.id_data)}
    found = [there.get((_path(owner, name), max(index, 0))) for name, index in homes] if there else []
    return [curve for curve in found if curve is not None]


def clear(owner, homes):
    """Remove the keys of numbers."""
    for curve in curves_at(owner, homes):
        _holder(owner.id_data).remove(curve)


def is_driven(owner, name):
    """Return whether drivers or NLA strips have a say in a property, beside its own keys."""
    data = owner.id_data.animation_data
    if data is None:
        return False
    path = _path(owner, name)
    return any(curve.data_path == path and not curve.mute for curve in data.drivers) or in_strips(owner, name)


def in_strips(owner, name):
    """Return whether NLA strips have a say in a property."""
    data, path = owner.id_data.animation_data, _path(owner, name)
    if data is None:
        return False
    strips = [strip for track in data.nla_tracks if not track.mute for strip in track.strips if not strip.mute]
    return data.use_nla and any(path in _paths(strip) for strip in strips)


def _paths(strip):
    """Return the data paths that an NLA strip, or those inside a meta strip, may move."""
    found = {path for inner in strip.strips for path in _paths(inner)} if strip.type == "META" else set()
    action = strip.action
    if action is None:
        return found
    if not hasattr(action, "layers"):
        return found | {curve.data_path for curve in action.fcurves}
    bags = [bag for layer in action.layers for part in layer.strips for bag in part.channelbags]
    return found | {curve.data_path for bag in bags for curve in bag.fcurves}


def paths_of(owner):
    """Return the data paths that an action, NLA strips or drivers of a data-block move."""
    data = owner.animation_data
    strips = [strip for track in data.nla_tracks for strip in track.strips]
    curves = [*_all_curves(owner), *data.drivers]
    return {curve.data_path for curve in curves}.union(*map(_paths, strips))


def fingerprint(curves):
    """Return the keys as plain JSON, to tell whether they were changed."""
    return [
        [curve.array_index, [[*key.co, key.interpolation, *key.handle_left, *key.handle_right] for key in curve.keyframe_points]]
        for curve in curves
    ]


def set_keys(owner, homes, keys, knob):
    """Make F-curves of a key list; "smooth" becomes a Bezier curve with level handles, which is the same curve."""
    many = knob["kind"] == "vector"
    for frame, value, _ in keys:
        for name, index in homes:
            if many:
                getattr(owner, name)[index] = value[index]
            else:
                setattr(owner, name, value if knob["kind"] == "float" else round(value))
            owner.keyframe_insert(name, index=index, frame=frame)
    for curve in curves_at(owner, homes):
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
