"""Knob values: from parameters to JSON as graph files hold it, and back."""

from __future__ import annotations

import json
import re
import shlex

import hou

EDITS = "edits"
"""Stands in the list of a preset's settings for the edits of its stages."""
SHAPES = {"step": "constant()", "linear": "linear()", "smooth": "cubic()"}
"""Houdini's functions between two keys by the graph file's names; a cubic with slopes 0 is 3 s^2 - 2 s^3."""

SEQUENCE = re.compile(r"\$\{?F(\d?)\}?(?![A-Za-z_])")


# ---------------------------------------------------------------- reading
def read_knob(node, knob, frames):
    """Return a knob's value as a graph file holds it.

    Args:
        node: The node.
        knob: The knob's facts.
        frames: First and last frame; what moves without keys is sampled there.
    """
    name, kind = knob["name"], knob["kind"]
    if knob["optional"] and not node.parm("mpm_use_" + name).eval():
        return None
    if kind in ("int", "float", "vector"):
        parms = list(node.parmTuple(name)) if kind == "vector" else [node.parm(name)]
        return read_numbers(parms, kind == "int" or knob.get("element") == "int", kind == "vector", frames)
    if kind == "table":
        return _table(node, name)
    parm = node.parm(name)
    if kind == "bool":
        return bool(parm.eval())
    if kind == "enum":
        token = parm.evalAsString()
        return next((choice for choice in knob["choices"] if str(choice) == token), token)
    if kind == "strings":
        return shlex.split(parm.evalAsString())
    if kind == "path":
        return _path(parm)
    if kind == "substeps":
        return _substeps(node, parm)
    return parm.evalAsString()


def read_numbers(parms, whole, is_vector, frames):
    def typed(value):
        return round(value) if whole else float(value)

    def joined(values):
        return [typed(value) for value in values] if is_vector else typed(values[0])

    curves = [parm.keyframes() for parm in parms]
    if not any(curves):
        return joined([parm.eval() for parm in parms])
    keys = _exact_keys(curves)
    if keys is not None:
        return {"keys": [[frame, joined(values), shape] for frame, values, shape in keys]}
    if not any(parm.isTimeDependent() for parm in parms):
        return joined([parm.eval() for parm in parms])
    span = range(int(frames[0]), int(frames[1]) + 1)
    return {"keys": [[frame, joined([parm.evalAtFrame(frame) for parm in parms]), "linear"] for frame in span]}


def _exact_keys(curves):
    """Return (frame, values, shape) of keys that a graph file can hold as they are, else None."""
    if len({len(curve) for curve in curves}) > 1:
        return None
    found = []
    for keys in zip(*curves, strict=True):
        frames = {key.frame() for key in keys}
        shapes = {_shape_of(key) for key in keys}
        if len(frames) > 1 or len(shapes) > 1 or None in shapes:
            return None
        frame = frames.pop()
        found.append((int(frame) if frame == int(frame) else frame, [key.value() for key in keys], shapes.pop()))
    return found


def _shape_of(key):
    if not key.isValueSet() or not key.isExpressionSet():
        return None
    shape = next((name for name, function in SHAPES.items() if function == key.expression()), None)
    if shape == "smooth" and not (key.isSlopeSet() and key.slope() == 0.0 and (key.isSlopeTied() or key.inSlope() == 0.0)):
        return None
    return shape


def _path(parm):
    """Return a path; $F4 of a file sequence becomes ####, everything else is expanded."""
    try:
        raw = parm.unexpandedString()
    except hou.OperationFailed:  # an expression
        return parm.evalAsString()
    if SEQUENCE.search(raw) is None:
        return parm.evalAsString()
    return hou.text.expandString(SEQUENCE.sub(lambda match: "#" * int(match[1] or 1), raw))


def _substeps(node, parm):
    """Return a preset's name, or the preset with the settings of the list below it."""
    settings = {}
    for number in range(1, node.parm("mpm_set").eval() + 1):
        name = node.parm(f"mpm_set_name{number}").evalAsString().strip()
        if name:
            settings[name] = _loose(node.parm(f"mpm_set_value{number}").evalAsString())
    preset = parm.evalAsString()
    edits = {EDITS: settings.pop(EDITS)} if EDITS in settings else {}
    beside = edits | ({"set": settings} if settings else {})
    return {"preset": preset, **beside} if beside else preset


def _table(node, name):
    """Return the rows of a ramp; what is not a straight piece of it becomes sixteen."""
    ramp, top = node.parm(name).eval(), node.parm("mpm_top_" + name).eval()
    low, high = (parm.eval() for parm in node.parmTuple("mpm_ends_" + name))
    places = list(ramp.keys())
    for begin, end, basis in zip(ramp.keys(), ramp.keys()[1:], ramp.basis(), strict=False):
        if basis != hou.rampBasis.Linear:
            places += [begin + (end - begin) * k / 16 for k in range(1, 16)]
    given = dict(zip(ramp.keys(), ramp.values(), strict=True))
    return [[_tidy(low + (high - low) * place), _tidy(top * given.get(place, ramp.lookup(place)))] for place in sorted({*places})]


def _tidy(number):
    """Return a number without the rounding of its way through 0 to 1."""
    return float(f"{number:.7g}")


def _loose(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


# ---------------------------------------------------------------- writing
def write_knob(node, knob, value):
    """Set a knob's parameters from a value of a graph file.

    Raises:
        hou.OperationFailed: The value cannot stand in a parameter.
    """
    name, kind = knob["name"], knob["kind"]
    if knob["optional"]:
        node.parm("mpm_use_" + name).set(int(value is not None))
    if value is None:
        return
    if kind == "substeps":
        _write_substeps(node, name, value)
    elif kind in ("int", "float", "vector"):
        _write_numbers(list(node.parmTuple(name)) if kind == "vector" else [node.parm(name)], kind == "vector", value)
    elif kind in ("bool", "enum") and isinstance(value, dict):
        raise hou.OperationFailed(f"{name}: its keys step between choices, and parameters of Houdini have keys of numbers alone")
    elif kind == "bool":
        node.parm(name).set(int(value))
    elif kind == "table":
        _write_table(node, name, value)
    elif kind == "strings":
        node.parm(name).set(_literal(name, shlex.join(value)))
    else:
        node.parm(name).set(_literal(name, str(value)))


def _literal(name, text):
    if "$" in text or "`" in text:
        raise hou.OperationFailed(f"{name}: Houdini would expand the text {text!r}; take $ and ` out of it")
    return text


def _write_numbers(parms, is_vector, value):
    for parm in parms:
        parm.deleteAllKeyframes()
    if not isinstance(value, dict):
        for parm, component in zip(parms, value if is_vector else [value], strict=True):
            parm.set(component)
        return
    for frame, values, shape in value["keys"]:
        for parm, component in zip(parms, values if is_vector else [values], strict=True):
            key = hou.Keyframe()
            key.setFrame(frame)
            key.setValue(component)
            key.setSlope(0.0)
            key.setExpression(SHAPES[shape], hou.exprLanguage.Hscript)
            parm.setKeyframe(key)


def _write_table(node, name, rows):
    low, high = rows[0][0], rows[-1][0] if len(rows) > 1 else rows[0][0] + 1.0
    top = max(abs(value) for _, value in rows) or 1.0
    for parm, end in zip(node.parmTuple("mpm_ends_" + name), (low, high), strict=True):
        parm.set(end)
    node.parm("mpm_top_" + name).set(top)
    places = [(temperature - low) / (high - low) for temperature, _ in rows]
    node.parm(name).set(hou.Ramp([hou.rampBasis.Linear] * len(rows), places, [value / top for _, value in rows]))


def _write_substeps(node, name, value):
    value = value if isinstance(value, dict) else {"preset": value}
    if "preset" in value:  # else the stages of a whole document are wired in
        node.parm(name).set(_literal(name, value["preset"]))
    settings = {**value.get("set", {}), **({EDITS: value[EDITS]} if EDITS in value else {})} if "preset" in value else {}
    node.parm("mpm_set").set(len(settings))
    for number, (key, setting) in enumerate(settings.items(), 1):
        node.parm(f"mpm_set_name{number}").set(_literal(key, key))
        node.parm(f"mpm_set_value{number}").set(_literal(key, setting if _is_word(setting) else json.dumps(setting)))


def _is_word(value):
    return isinstance(value, str) and _loose(value) == value
