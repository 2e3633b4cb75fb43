"""Knobs: what a keyword-only parameter says about itself, and how values from graph files are checked and converted."""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpm_nodes.data import Corner, PerResolution, Quaternion, Range, SubstepGraph, Unit, WrittenPath
from mpm_nodes.data.parameter_tables import Rows, table_problem
from mpm_nodes.graph.files.strict_json import PLAIN
from mpm_nodes.graph.time import keys

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING", "__doc__": "Default of a knob that must be given."})()

SCALARS = {bool: "bool", int: "int", float: "float", str: "str", Path: "path", SubstepGraph: "substeps"}
NUMERIC = ("int", "float", "vector")
LARGEST_INTEGER = 2**63 - 1
LONGEST_PATH, LONGEST_PART = 3000, 255
"""Letters of a path and bytes of a part of it: what the systems take, with room for the folder that it is relative to."""
LONGEST_LENGTH = 1e12
"""Metres; beyond it positions are not numbers of cells any more."""

Fault = tuple[str, str, str]
"""What is wrong with a value: message, what is allowed, what to do."""


@dataclass(frozen=True)
class Knob:
    """One knob of a node or stage.

    Attributes:
        name: Parameter name.
        kind: "bool", "int", "float", "str", "enum", "path", "output_path", "vector", "strings", "table" or "substeps".
        default: Default as a Python value, or `MISSING` when a value must be given.
        unit: Symbol of its unit, "" for none.
        range: Allowed values, or None.
        doc: Help text.
        choices: Values of an enum, in order.
        enum: The enum class, or None.
        size: Components of a vector, else 1.
        element: Type of a vector's components: float or int.
        optional: Whether None (JSON null) is allowed.
        constant: Why a number cannot be keyed, "" where it can.
        keys_travel: Whether a keyed value is handed on with its keys.
        turns: Whether a vector is a quaternion.
        corner: Of a vector that is a corner of a box along the axes: the knob of the opposite one. Else "".
        steps: Whether a choice, or what is on or off, may hold keys that step.
        per_resolution: Power of the graph's resolution by which it is multiplied; 0 leaves it alone.
    """

    name: str
    kind: str
    default: Any
    unit: str = ""
    range: Range | None = None
    doc: str = ""
    choices: tuple[Any, ...] = ()
    enum: type[enum.Enum] | None = None
    size: int = 1
    element: type = float
    optional: bool = False
    constant: str = ""
    keys_travel: bool = False
    turns: bool = False
    corner: str = ""
    steps: bool = False
    per_resolution: int = 0

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is MISSING

    @property
    def animatable(self) -> bool:
        """Whether the knob may hold a key list."""
        return (self.kind in NUMERIC and not self.constant) or self.steps

    @property
    def axes(self) -> str:
        """What the numbers of a vector are along the axes, for hosts that have others; "" where they do not lie along axes.

        "signed" (a place, a direction, turns about the axes), "extent" (edges, which have no direction) or "quaternion".
        """
        if self.turns:
            return "quaternion"
        if self.kind != "vector" or self.size != 3 or self.element is not float:
            return ""
        if self.range is None or self.range.min is None or self.range.min < 0.0:
            return "signed"
        return "extent" if self.unit else ""  # numbers from 0 on without a unit are a colour, or shares

    def fault(self, raw: Any) -> Fault | None:
        """Return what is wrong with a raw (JSON) value, or None. Key lists are checked key by key."""
        if keys.is_keyed(raw) and self.kind != "substeps":
            return self._keyed_fault(raw)
        if raw is None:
            return None if self.optional else ("has no value", self.allowed(), "give a value")
        return getattr(self, f"_fault_{self.kind}")(raw)

    def convert(self, raw: Any) -> Any:
        """Return the Python value of a raw value that has no fault (not a key list): enum members, tuples, Paths."""
        if raw is None:
            return None
        if self.kind == "enum":
            assert self.enum is not None
            return self.enum(raw.value if isinstance(raw, enum.Enum) else raw)
        if self.kind == "vector":
            return tuple(self.element(component) for component in raw)
        if self.kind == "strings":
            return tuple(raw)
        if self.kind == "table":
            return tuple((float(row[0]), float(row[1])) for row in raw)
        if self.kind in ("path", "output_path"):
            return None if raw == "" and not self.required else Path(raw)  # hosts have no other word for none
        return {"bool": bool, "int": int, "float": float}.get(self.kind, lambda value: value)(raw)

    def sample(self, raw: Any, frame: float) -> Any:
        """Return the Python value of a raw value at a frame; key lists are interpolated, integers rounded."""
        if self.kind == "substeps" or not keys.is_keyed(raw):
            return self.convert(raw)
        value = keys.slerp(raw["keys"], frame) if self.turns else keys.sample(raw["keys"], frame)
        if isinstance(value, tuple):
            return tuple(self.element(component) for component in value)
        if self.steps:
            return self.convert(value)
        return round(value) if self.kind == "int" else self.element(value)

    def resolved(self, raw: Any, resolution: float) -> Any:
        """Return a raw number that follows the graph's resolution, or its keys, at a resolution; other values as they are."""
        if not self.per_resolution or resolution == 1.0 or raw is None:
            return raw
        factor = resolution**self.per_resolution
        if keys.is_keyed(raw):
            return {"keys": [[frame, value * factor, *rest] for frame, value, *rest in raw["keys"]]}
        return raw * factor

    def keyed_value(self, raw: Any) -> Any:
        """Return a key list as the value that carries its keys."""
        return keys.KeyedVector(raw["keys"]) if self.kind == "vector" else keys.KeyedNumber(raw["keys"])

    def json_default(self) -> Any:
        """Return the default as it stands in a graph file; None for a knob without one."""
        return None if self.required else to_json(self.default)

    def allowed(self) -> str:
        """Return in words what values are allowed."""
        words = {
            "bool": "true or false",
            "int": "a whole number",
            "float": "a number",
            "str": "text",
            "path": "a path",
            "output_path": "a relative path below the output folder",
            "strings": "a list of text",
            "table": f"rows [{self._place}, value] by increasing {self._place}",
            "vector": "a quaternion: 4 numbers (w, x, y, z), not all 0" if self.turns else f"{self.size} numbers",
            "enum": " | ".join(str(choice) for choice in self.choices),
            "substeps": 'a preset name, {"preset": name, "set": {...}, "edits": [...]} or a substeps document',
        }[self.kind]
        if self.range is not None and self.range.words():
            words += f" {self.range.words()}"
        if self.unit:
            words += f" [{self.unit}]"
        return words + (" or null" if self.optional else "")

    def to_json(self) -> dict[str, Any]:
        """Return the knob as plain JSON values, for hosts, documentation and `mpm-nodes nodes --json`."""
        limits = None if self.range is None else {k: v for k, v in vars(self.range).items() if v is not None and v is not False}
        record = {
            "name": self.name,
            "kind": self.kind,
            "default": self.json_default(),
            "required": self.required,
            "unit": self.unit,
            "range": limits,
            "doc": self.doc,
            "choices": list(self.choices),
            "size": self.size,
            "optional": self.optional,
            "animatable": self.animatable,
            "constant": self.constant,
        }
        if self.kind == "vector":
            record |= {"element": self.element.__name__, "axes": self.axes, "corner": self.corner}
        return record

    # ------------------------------------------------------------ one check per kind
    def _keyed_fault(self, raw: Mapping[str, Any]) -> Fault | None:
        if not self.animatable:
            reason = f": {self.constant}" if self.constant else ""
            return f"cannot be keyframed{reason}", f"{self.allowed()}, constant", "give one value"
        shape = keys.key_list_problem(raw)
        if shape is not None:
            return shape[0], shape[1], "write the keys in order of frames"
        for frame, value, mode in raw["keys"]:
            if self.steps and mode != "step":
                return f"at frame {frame:g} goes {mode} to another choice", 'keys of the interpolation "step"', "make it a step"
            fault = ("has no value", self.allowed(), "give a value") if value is None else self.fault(value)
            if keys.is_keyed(value):
                fault = "holds a key list within a key list", self.allowed(), "give one value a key"
            if fault is not None:
                return f"at frame {frame:g} {fault[0]}", fault[1], fault[2]
        return None

    def _wrong_type(self, raw: Any) -> Fault:
        return f"is {_kind_of(raw)}", self.allowed(), "give a value of that kind"

    def _fault_bool(self, raw: Any) -> Fault | None:
        return None if isinstance(raw, bool) else self._wrong_type(raw)

    def _fault_str(self, raw: Any) -> Fault | None:
        if not isinstance(raw, str):
            return self._wrong_type(raw)
        return self._text_fault(raw)

    def _text_fault(self, text: str) -> Fault | None:
        if "\0" in text:
            return "holds a NUL character", self.allowed(), "remove it"
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return "holds half a character", self.allowed(), "write it as UTF-8"
        return None

    def _fault_int(self, raw: Any) -> Fault | None:
        return self._number_fault(raw, int)

    def _fault_float(self, raw: Any) -> Fault | None:
        return self._number_fault(raw, float)

    def _fault_vector(self, raw: Any) -> Fault | None:
        if not _is_list(raw) or len(raw) != self.size:
            return self._wrong_type(raw) if not _is_list(raw) else (f"has {len(raw)} components", self.allowed(), "give each one")
        for component in raw:
            fault = self._number_fault(component, self.element)
            if fault is not None:
                return f"has a component that {fault[0]}", fault[1], fault[2]
        if self.turns and not any(raw):
            return "is not a rotation", self.allowed(), "give (1, 0, 0, 0) for none"
        return None

    def _fault_strings(self, raw: Any) -> Fault | None:
        good = _is_list(raw) and all(isinstance(item, str) for item in raw)
        if not good:
            return self._wrong_type(raw)
        return next((fault for item in raw if (fault := self._text_fault(item))), None)

    @property
    def _place(self) -> str:
        """What stands in the first column of a table."""
        return "temperature" if self.unit == "K" else "place"

    def _fault_table(self, raw: Any) -> Fault | None:
        if not _is_list(raw):
            return self._wrong_type(raw)
        for number, row in enumerate(raw, 1):
            if not _is_list(row) or len(row) != 2:
                return f"row {number} is not [{self._place}, value]", self.allowed(), "give two numbers a row"
            fault = next((fault for each in row if (fault := self._number_fault(each, float))), None)
            if fault is not None:
                return f"row {number} holds a number that {fault[0]}", fault[1], fault[2]
        problem = table_problem(raw, self.unit)
        return None if problem is None else (problem[0], self.allowed(), problem[1])

    def _fault_enum(self, raw: Any) -> Fault | None:
        value = raw.value if isinstance(raw, enum.Enum) else raw
        if any(type(choice) is type(value) and choice == value for choice in self.choices):
            return None
        return "is not one of the choices", self.allowed(), f"choose {_nearest(value, self.choices)}"

    def _fault_path(self, raw: Any) -> Fault | None:
        if not isinstance(raw, (str, Path)):
            return self._wrong_type(raw)
        text = str(raw)
        fault = self._text_fault(text)
        if fault is None and (
            len(text) > LONGEST_PATH or any(len(part.encode()) > LONGEST_PART for part in re.split(r"[/\\]", text))
        ):
            return "is too long", f"{self.allowed()} of at most {LONGEST_PATH} letters, {LONGEST_PART} bytes a part", "shorten it"
        return fault

    def _fault_output_path(self, raw: Any) -> Fault | None:
        fault = self._fault_path(raw)
        if fault is not None:
            return fault
        text = str(raw).replace("\\", "/")
        parts = text.split("/")
        if text.startswith("/") or text.startswith("~") or (len(text) > 1 and text[1] == ":"):
            return "is an absolute path", self.allowed(), "choose the folder with --out"
        if ".." in parts:
            return "climbs out of the output folder with ..", self.allowed(), "choose the folder with --out"
        if any(part.split(".")[0].upper() in _DEVICES for part in parts):
            return "is a device name", self.allowed(), "choose another name"
        return None

    def _fault_substeps(self, raw: Any) -> Fault | None:
        return None if isinstance(raw, (str, Mapping)) else self._wrong_type(raw)

    def _number_fault(self, raw: Any, element: type) -> Fault | None:
        if isinstance(raw, bool) or not isinstance(raw, (int, float)):
            return self._wrong_type(raw)
        if isinstance(raw, float) and not math.isfinite(raw):
            return "is not finite", self.allowed(), "give a finite number"
        if abs(raw) > (LARGEST_INTEGER if element is int else 1e300):
            return "is too large", self.allowed(), "give a smaller number"
        if element is int and raw != int(raw):
            return "is not a whole number", self.allowed(), f"try {round(raw)}"
        if self.unit == "m" and abs(raw) > LONGEST_LENGTH:
            return "is out of range", f"{self.allowed()} of at most {LONGEST_LENGTH:g}", "give it in metres"
        limits = self.range.problem(raw) if self.range is not None else None
        return None if limits is None else ("is out of range", self.allowed(), f"give a value {limits}")


_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))}


def knob_from_hint(name: str, hint: Any, default: Any, doc: str) -> Knob | None:
    """Return the knob that a type hint describes, or None when the hint is of no known kind."""
    metadata: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    bare = typing.get_args(hint)[0] if metadata else hint
    optional = False
    if typing.get_origin(bare) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(bare) if member is not type(None)]
        optional = len(members) < len(typing.get_args(bare))
        if len(members) != 1:
            return None
        bare = members[0]
        if getattr(bare, "__metadata__", ()):
            metadata, bare = (*metadata, *bare.__metadata__), typing.get_args(bare)[0]
    shape = _shape_of(bare, metadata)
    if shape is None:
        return None
    unit = next((item.symbol for item in metadata if isinstance(item, Unit)), "")
    limits = next((item for item in metadata if isinstance(item, Range)), None)
    constant = next((item.reason for item in metadata if isinstance(item, keys.NotKeyable)), "")
    travel = any(isinstance(item, keys.KeysTravel) for item in metadata)
    turns = any(isinstance(item, Quaternion) for item in metadata)
    corner = next((item.opposite for item in metadata if isinstance(item, Corner)), "")
    steps = shape["kind"] in ("bool", "enum") and any(isinstance(item, keys.KeyedInSteps) for item in metadata)
    power = next((item.power for item in metadata if isinstance(item, PerResolution)), 0)
    shape |= {"constant": constant, "keys_travel": travel, "turns": turns, "corner": corner, "steps": steps}
    shape |= {"per_resolution": power}
    return Knob(name=name, default=default, unit=unit, range=limits, doc=doc, optional=optional, **shape)


def _shape_of(bare: Any, metadata: Sequence[Any]) -> dict[str, Any] | None:
    if bare is Path and any(isinstance(item, WrittenPath) for item in metadata):
        return {"kind": "output_path"}
    if bare in SCALARS:
        return {"kind": SCALARS[bare]}
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return {"kind": "enum", "enum": bare, "choices": tuple(member.value for member in bare)}
    arguments = typing.get_args(bare)
    if bare == list[str] or bare == tuple[str, ...]:
        return {"kind": "strings"}
    if bare == Rows:
        return {"kind": "table"}
    if typing.get_origin(bare) is tuple and arguments and set(arguments) in ({float}, {int}):
        return {"kind": "vector", "size": len(arguments), "element": arguments[0]}
    return None


def to_json(value: Any) -> Any:
    """Return a Python knob value as it stands in a graph file: enums by value, paths as text, tuples as lists."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:  # the common case by its exact type: asking for a Mapping takes four times as long
        return {
            name if type(name) is str else str(name): item if type(item) in PLAIN else to_json(item) for name, item in value.items()
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if type(item) in PLAIN else to_json(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    return value


def _is_list(raw: Any) -> bool:
    return isinstance(raw, (list, tuple))


def _kind_of(raw: Any) -> str:
    words = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
        dict: "an object",
        type(None): "null",
    }
    return words.get(type(raw), f"a {type(raw).__name__}")


def _nearest(value: Any, choices: Sequence[Any]) -> str:
    import difflib

    near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
    return repr(near[0]) if near else "one of them"
