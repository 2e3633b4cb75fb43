"""Knobs as Blender properties: made from the specification, read and written as a graph file spells them."""

import json

import bpy

from . import animation, axes, curves, memory, preset_settings, surfaces
from .axes import short
from .specification import PRESETS

LARGEST_FLOAT = 3.0e38
LARGEST_INT = 2**31 - 1
OWN = "OWN_GRAPH"
"""Choice of a `substeps` knob: the stages of a tree of its own, not a preset."""


def prop(name):
    """Return the name of a knob's property; nodes have a `name` and a `label` of their own."""
    return f"k_{name}"


def tree_prop(name):
    """Return the name of the property that holds a substep tree."""
    return f"tree_{name}"


# ---------------------------------------------------------------- from the specification
def annotations(record):
    """Return the properties of all knobs of a node or stage, for a class's `__annotations__`."""
    found, knobs = {}, {knob["name"]: knob for knob in record["knobs"]}
    for knob in record["knobs"]:
        if knob.get("corner"):
            (x, y, _), (*_, z) = knob["default"], knobs[knob["corner"]]["default"]
            knob = {**knob, "default": [x, y, z]}
        found.update(knob_properties(knob))
    return found


def knob_properties(knob):
    """Return the properties of one knob."""
    name, common = knob["name"], {"name": title(knob), "description": help_of(knob)}
    if knob["kind"] == "table":
        return {curves.curve_prop(name): bpy.props.PointerProperty(type=bpy.types.NodeTree, **common)}
    if knob["kind"] != "substeps":
        return {prop(name): _PROPERTIES[knob["kind"]](knob, common)}
    items = [(preset["name"], preset["label"] or preset["name"], preset["doc"]) for preset in PRESETS.values()]
    items.append((OWN, "Own Graph", "Stages that are wired in a substep graph of their own"))
    return {
        prop(name): bpy.props.EnumProperty(items=items, default=knob["default"], **common),
        tree_prop(name): bpy.props.PointerProperty(type=bpy.types.NodeTree, name="Substep Graph", poll=_is_substep_tree),
        **preset_settings.properties(name, _field),
    }


def _field(knob):
    """Return the property of a preset's parameter: the same as a knob's, without keys."""
    common = {"name": title(knob), "description": help_of(knob), "options": set()}
    return {prop(knob["name"]): _PROPERTIES[knob["kind"]](knob, common)}


def _is_substep_tree(_node, tree):
    return tree.bl_idname == "MpmSubstepTree"


def title(knob):
    """Return a knob's label with the scene's names of axes, and its unit where Blender does not write one beside the number."""
    label = axes.label(knob["label"])
    return f"{label} [{knob['unit']}]" if knob["unit"] and not axes.unit_of(knob) else label


def help_of(knob):
    """Return a knob's help; Blender adds the full stop itself."""
    limits = knob["range"] or {}
    bounds = [f"{word} {limits[key]:g}" for key, word in (("min", "from"), ("max", "to")) if limits.get(key) is not None]
    if limits.get("exclusive_min"):
        bounds[0] = f"above {limits['min']:g}"
    return axes.words(knob) + (f" ({' '.join(bounds)})" if bounds else "")


def _limits(knob, largest):
    keys = ("soft_min", "soft_max") if knob.get("axes") == "signed" else ("min", "max", "soft_min", "soft_max")
    limits = {key: value for key, value in (knob["range"] or {}).items() if key in keys}
    return {key: max(-largest, min(largest, value)) for key, value in limits.items() if value is not None}


def _number(knob, common):
    limits = _limits(knob, LARGEST_FLOAT)
    fine = 0.0 < abs(knob["default"] or 0.0) < 0.01 if knob["kind"] == "float" else False
    fine = fine or limits.get("soft_max", 1.0) <= 0.1
    return {**limits, "precision": 6 if fine else 3, "unit": axes.unit_of(knob) or "NONE", **common}


def _vector(knob, common):
    size, default = knob["size"], knob["default"] or [0] * knob["size"]
    if knob.get("element") == "int":
        return bpy.props.IntVectorProperty(size=size, default=default, **_limits(knob, LARGEST_INT), **common)
    kind = {"": "NONE", "quaternion": "QUATERNION"}.get(knob["axes"], "XYZ")
    default = axes.to_scene(knob, default, 1.0)
    return bpy.props.FloatVectorProperty(size=size, default=default, subtype=kind, **_number(knob, common))


def _enum(knob, common):
    items = [(str(item["value"]), axes.choice(knob, item), "") for item in knob["menu"]]
    return bpy.props.EnumProperty(items=items, default=str(knob["default"]) if knob["default"] is not None else None, **common)


def _text(subtype="NONE"):
    return lambda knob, common: bpy.props.StringProperty(default=knob["default"] or "", subtype=subtype, **common)


_PROPERTIES = {
    "bool": lambda knob, common: bpy.props.BoolProperty(default=bool(knob["default"]), **common),
    "int": lambda knob, common: bpy.props.IntProperty(
        default=_clamped(knob["default"] or 0), **_limits(knob, LARGEST_INT), **common
    ),
    "float": lambda knob, common: bpy.props.FloatProperty(default=knob["default"] or 0.0, **_number(knob, common)),
    "vector": _vector,
    "enum": _enum,
    "str": _text(),
    "path": _text("FILE_PATH"),
    "output_path": _text(),
    "strings": lambda knob, common: bpy.props.StringProperty(
        **{**common, "description": f"{common['description']} (separated by commas)"}, default=", ".join(knob["default"] or [])
    ),
}


# ---------------------------------------------------------------- what is shown
def unit_now():
    """Return how many metres a unit of the scene in the window is: Blender shows lengths by it."""
    scene = bpy.context.scene
    return 1.0 if scene is None else short(surfaces.metres(scene))


def homes(knob):
    """Return the (property, index) of each number of a knob, in the scene's order; index -1 where it is one number."""
    own = prop(knob["name"])
    if knob["kind"] != "vector":
        return [(own, -1)]
    found = [(own, index) for index in range(knob["size"])]
    if knob.get("corner"):
        found[axes.REVERSED] = prop(knob["corner"]), axes.REVERSED
    return found


def shown(owner, knob):
    """Return what Blender shows for a knob, as plain JSON; keys where the knob is animated. With the unit, where not metres."""
    curves = animation.curves_at(owner, homes(knob)) if knob["keyable"] else []
    seen = animation.fingerprint(curves) if curves else constant_of(owner, knob)
    unit = unit_now()
    return seen if unit == 1.0 or not axes.unit_of(knob) else [seen, unit]


def constant_of(owner, knob):
    """Return what Blender shows for a knob at this moment, keys or not."""
    if knob["kind"] == "table":
        return curves.rows_of(owner, knob["name"])
    if knob["kind"] == "vector":
        return [getattr(owner, name)[index] for name, index in homes(knob)]
    value = getattr(owner, prop(knob["name"]))
    if knob["kind"] == "substeps":
        tree = getattr(owner, tree_prop(knob["name"]))
        return [value, settings_of(owner, knob["name"], value), tree.name if tree and value == OWN else ""]
    return value


# ---------------------------------------------------------------- as in a graph file
def value(owner, knob, document_of=None):
    """Return a knob's value as it stands in a graph file; `memory.NOTHING` where none is given.

    `document_of(tree)` returns the document of a substep tree.
    """
    if knob["kind"] == "substeps":
        _own_what_changed(owner, knob["name"], document_of)
    if knob["kind"] == "substeps" and getattr(owner, prop(knob["name"])) == OWN:
        tree = getattr(owner, tree_prop(knob["name"]))
        return knob["default"] if tree is None else document_of(tree)
    seen = shown(owner, knob)
    kept = memory.recall(owner, knob["name"], seen)
    if kept is not memory.NOTHING:
        return kept
    curves = animation.curves_at(owner, homes(knob)) if knob["keyable"] else []
    if curves:
        return animation.key_list(curves, constant_of(owner, knob), plain(knob))
    return _spelled(knob, constant_of(owner, knob))


def number_of(owner, knob):
    """Return a number or a vector as it is at this moment, in the axes and the metres of a graph file."""
    return plain(knob)(constant_of(owner, knob))


def _own_what_changed(owner, name, document_of):
    """Make the stages that were opened to look at a graph of the node's own where they have been changed."""
    tree, preset = getattr(owner, tree_prop(name)), getattr(owner, prop(name))
    if document_of is None or tree is None or not tree.looked_at or preset == OWN:
        return
    if json.loads(tree.looked_at)[0] == preset and looked_at(preset, document_of(tree)) != tree.looked_at:
        tree.looked_at = ""
        setattr(owner, prop(name), OWN)


def looked_at(preset, document):
    """Return as text a preset and its stages, without what nothing comes of: places, comments."""
    stages = {name: {**entry, "position": None, "comment": None} for name, entry in document["nodes"].items()}
    return json.dumps([preset, {**document, "nodes": stages}], sort_keys=True)


def _spelled(knob, seen):
    """Return a constant that the artist has set as a graph file spells it."""
    kind = knob["kind"]
    if kind in ("float", "vector"):
        default = knob["default"]
        as_default = default is not None and axes.single(axes.to_scene(knob, default, unit_now())) == seen
        return default if as_default else plain(knob)(seen)
    if kind == "enum":
        return next(item["value"] for item in knob["menu"] if str(item["value"]) == seen)
    if kind == "strings":
        return [part.strip() for part in seen.split(",") if part.strip()]
    if kind == "substeps":
        return preset_settings.as_preset(*seen[:2])
    if kind in ("path", "output_path"):
        if not seen:
            return memory.NOTHING if knob["required"] else knob["default"]
        return bpy.path.abspath(seen).replace("\\", "/") if seen.startswith("//") else seen
    return seen


def settings_of(owner, name, preset):
    """Return the settings of a preset that the artist has made, by parameter; what is not JSON as text."""
    return preset_settings.given(owner, name, preset, prop, lambda knob: _spelled(knob, constant_of(owner, knob)))


def plain(knob):
    """Return the function that turns what Blender holds for a number into JSON, in the axes and units of a graph file."""
    if knob["kind"] == "int":
        return round
    if knob.get("element") == "int":
        return lambda values: [round(each) for each in values]
    unit = unit_now()
    if knob["kind"] == "vector":
        return lambda values: axes.to_file(knob, [short(each) for each in values], unit)
    return lambda value: axes.to_file(knob, short(value), unit)


def set_value(owner, knob, raw, tree_of=None):
    """Show a value of a graph file, and keep it as it stands there.

    `tree_of(document)` makes the tree of a substep document.
    """
    name = knob["name"]
    if knob["keyable"]:
        animation.clear(owner, homes(knob))
    if isinstance(raw, dict) and "keys" in raw and knob["keyable"]:
        unit = unit_now()
        keys = [[frame, axes.to_scene(knob, each, unit), shape] for frame, each, shape in raw["keys"]]
        animation.set_keys(owner, homes(knob), keys, knob)
    elif knob["kind"] == "substeps":
        _show_substeps(owner, knob, raw, tree_of)
    elif knob["kind"] == "table":
        _show_table(owner, knob, raw)
    else:
        show(owner, knob, raw)
    memory.remember(owner, name, raw, shown(owner, knob))


def show(owner, knob, raw):
    """Set the property as near to the value as Blender can hold; what it cannot hold is kept and reported by validation."""
    try:
        if knob["kind"] == "strings":
            raw = ", ".join(raw)
        elif knob["kind"] == "enum":
            raw = str(raw)
        elif knob["kind"] == "int":
            raw = _clamped(raw)
        elif knob["kind"] == "float":
            raw = max(-LARGEST_FLOAT, min(LARGEST_FLOAT, axes.to_scene(knob, raw, unit_now())))
        elif knob["kind"] == "vector":
            raw = axes.to_scene(knob, raw, unit_now())
            if knob.get("corner"):
                there, own = homes(knob)[axes.REVERSED][0], getattr(owner, prop(knob["name"]))
                getattr(owner, there)[axes.REVERSED], raw[axes.REVERSED] = raw[axes.REVERSED], own[axes.REVERSED]
        setattr(owner, prop(knob["name"]), raw)
    except (TypeError, ValueError, OverflowError):
        pass


def _show_table(owner, knob, raw):
    """Show rows as a curve; what is not a table is kept and reported by validation."""
    try:
        rows = [[float(temperature), float(value)] for temperature, value in raw or ()]
    except (TypeError, ValueError):
        rows = []
    curves.show(owner, knob["name"], rows)


def _clamped(number):
    return int(max(-LARGEST_INT, min(LARGEST_INT, number)))


def _show_substeps(owner, knob, raw, tree_of):
    name, settings = knob["name"], {}
    if isinstance(raw, dict) and "preset" not in raw and tree_of is not None:
        setattr(owner, tree_prop(name), tree_of(raw))
        choice = OWN
    else:
        choice = raw.get("preset") if isinstance(raw, dict) else raw
        if isinstance(raw, dict):
            settings = {**raw.get("set", {}), **{key: raw[key] for key in (preset_settings.EDITS,) if key in raw}}
    show_settings(owner, name, choice, settings)
    if choice == OWN or choice in PRESETS:
        setattr(owner, prop(name), choice)


def show_settings(owner, name, preset, settings):
    """Show a preset's settings, in fields where there is one."""
    preset_settings.show(owner, name, preset, settings, prop, lambda knob, value: show(owner, knob, value))
