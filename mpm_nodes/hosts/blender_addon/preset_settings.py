"""Settings of a preset as fields of their own: one property for each parameter that a preset names, beside the JSON of the rest."""

import json

import bpy

from .specification import PRESETS

EDITS = "edits"
"""Stands among a preset's settings for the edits of its stages."""

KINDS = ("bool", "int", "float", "vector", "enum", "str")
"""Kinds of parameters that get a field; what else there is stays text."""


def text_prop(name):
    """Return the name of the property that holds, as JSON text, what no field of a preset stands for."""
    return f"set_{name}"


def fields(name, preset):
    """Return the parameters of a preset as knobs, by the parameter's name; their own names are those of the properties."""
    known = PRESETS.get(preset, {"parameters": []})["parameters"]
    own = {"in_metres": True}  # one that is not set shows what the preset has, whatever the Unit Scale
    return {each["name"]: {**each, **own, "name": f"{name}_{preset}_{each['name']}"} for each in known if each["kind"] in KINDS}


def properties(name, made):
    """Return the properties of all presets; `made(knob)` makes those of a knob."""
    found = {
        text_prop(name): bpy.props.StringProperty(
            name="More Settings",
            description='Settings without a field, as JSON, Y up: {"rasterize.kernel": "cubic"}; "edits" changes the stages',
        )
    }
    for preset in PRESETS:
        for knob in fields(name, preset).values():
            found.update(made(knob))
    return found


def given(owner, name, preset, prop, spelled):
    """Return the settings that the artist has made: those of fields that were set, and those of the text; a text that is not JSON.

    Args:
        owner: The node.
        name: Name of its knob.
        preset: The preset chosen.
        prop: Gives the property of a knob's name.
        spelled: Returns the value of a field, as a graph file holds it.
    """
    found = {
        parameter: spelled(knob) for parameter, knob in fields(name, preset).items() if owner.is_property_set(prop(knob["name"]))
    }
    text = getattr(owner, text_prop(name)).strip()
    if not text:
        return found
    try:
        more = json.loads(text)
    except ValueError:  # validation says what is wrong with it
        return text
    return {**more, **found} if isinstance(more, dict) else text


def show(owner, name, preset, settings, prop, set_field):
    """Show settings: in their fields where these can hold them, else as text; other fields show what the preset has."""
    rest = {}
    known = fields(name, preset)
    for knob in known.values():
        owner.property_unset(prop(knob["name"]))
    for key, value in settings.items():
        if key in known and _fits(known[key], value):
            set_field(known[key], value)
        else:
            rest[key] = value
    setattr(owner, text_prop(name), json.dumps(rest) if rest else "")


def _fits(knob, value):
    """Return whether a field can hold a value: keys and values of another kind it cannot."""
    kind = knob["kind"]
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "enum":
        return value in [item["value"] for item in knob["menu"]]
    if kind in ("int", "float"):
        number = isinstance(value, int if kind == "int" else (int, float)) and not isinstance(value, bool)
        limits = knob["range"]
        low, high = limits["min"], limits["max"]
        return number and (low is None or value >= low) and (high is None or value <= high)
    if kind == "vector":
        return isinstance(value, list) and len(value) == knob["size"] and all(isinstance(each, (int, float)) for each in value)
    return isinstance(value, str) and kind == "str"


def as_preset(preset, settings):
    """Return a substeps value as a graph file spells it."""
    if not settings:
        return preset
    if not isinstance(settings, dict) or EDITS not in settings:
        return {"preset": preset, "set": settings}
    edits, rest = settings[EDITS], {key: value for key, value in settings.items() if key != EDITS}
    return {"preset": preset, "edits": edits, **({"set": rest} if rest else {})}
