"""Knobs in the axes and units of the scene. Knows nothing of bpy.

A graph file has Y up and metres; the scene has Z up, and units of as many metres as its Unit Scale says. The file's (x, y, z) is
the scene's (x, -z, y). What a knob's numbers are along the axes stands in its declaration: `axes` and `corner` of its record.
"""

import re
import struct

UNITS = {"m": "LENGTH", "m/s": "VELOCITY", "m/s^2": "ACCELERATION"}
"""Blender's units of what grows with the Unit Scale; other numbers are in the unit that their label names."""

LETTERS = {"x": "X", "y": "Z", "z": "Y"}
"""What a graph's axes are called in the scene."""
REVERSED = 1
"""The axis of the scene that a graph's axis is against: the scene's Y."""
ENDS = {"low": "high", "high": "low", "Low": "High", "High": "Low"}

MENU = re.compile(r"none|(?=.)x?y?z?")
"""What each choice of a menu of axes is."""


def unit_of(knob):
    """Return Blender's unit of a knob that is held in units of the scene, else ""."""
    if knob.get("in_metres") or knob["kind"] not in ("float", "vector") or knob.get("element") == "int":
        return ""
    return UNITS.get(knob["unit"], "")


def to_scene(knob, value, unit):
    """Return a number or a vector of a graph file as the scene has it.

    Args:
        knob: Record of the knob.
        value: What stands in the file.
        unit: Metres of a unit of the scene.

    Raises:
        TypeError, ValueError: The value is none of the knob's kind.
    """
    if knob.get("axes"):
        *first, x, y, z = value
        value = [*first, x, z if knob["axes"] == "extent" else 0.0 - z, y]
    if unit == 1.0 or not unit_of(knob):
        return value
    return [each / unit for each in value] if isinstance(value, list) else value / unit


def to_file(knob, value, unit):
    """Return a number or a vector of the scene, as decimals that single precision rounds to, as a graph file has it."""
    if knob.get("axes"):
        *first, x, y, z = value
        value = [*first, x, z, y if knob["axes"] == "extent" else 0.0 - y]
    if unit == 1.0 or not unit_of(knob):
        return value
    return [_times(each, unit) for each in value] if isinstance(value, list) else _times(value, unit)


def _times(number, unit):
    """Return a length in metres, with the figures that single precision has."""
    return float(f"{number * unit:.7g}")


def single(value):
    """Return a number, or a list of them, as single precision holds it."""
    if isinstance(value, list):
        return [single(each) for each in value]
    return struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3.4e38 else value


def short(number):
    """Return the shortest decimal that single precision rounds to `number`: 0.1, not 0.10000000149."""
    for digits in range(1, 10):
        candidate = float(f"{number:.{digits}g}")
        if single(candidate) == number:
            return candidate
    return number


# ---------------------------------------------------------------- words
def label(text):
    """Return a knob's label with the scene's axes: "Wall Z Low" is "Wall Y High"."""
    text = re.sub(r"\b([XYZ]) (Low|High)\b", lambda found: f"{found[1]} {_end(found[1], found[2])}", text)
    return re.sub(r"\b[XYZ]\b", lambda found: LETTERS[found[0].lower()], text)


def _end(axis, end):
    """Return the end of the scene's axis where a graph's axis has `end`."""
    return ENDS[end] if axis in "zZ" else end


def words(knob):
    """Return a knob's help with the scene's axes; of text, which stays as a graph file has it, with what its letters mean."""
    doc = knob["doc"].rstrip(".")
    if knob["kind"] in ("str", "strings"):
        return f"{doc} (axes of graph files: y is up, z against the scene's Y)" if re.search(r"\b[xyz]\b", doc) else doc
    if not knob.get("axes") and label(knob["label"]) == knob["label"]:
        return doc
    doc = re.sub(r"\bx, y, z\b", "X, Y, Z", doc)  # the numbers of a vector, and not turns one after the other
    doc = re.sub(r"\b(low|high) ([xyz])\b", lambda found: f"{_end(found[2], found[1])} {found[2]}", doc)
    return re.sub(r"\b[xyz]\b", lambda found: LETTERS[found[0]], doc)


def choice(knob, item):
    """Return the label of a menu's item; in a menu of axes with the scene's, a single one with the way that it points."""
    value = item["value"]
    if value == "none" or not all(MENU.fullmatch(str(each)) for each in knob["choices"]):
        return item["label"]
    return "-Y" if value == "z" else "".join(sorted(LETTERS[letter] for letter in value))
