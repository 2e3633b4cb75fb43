"""Parameters of an asset: from the knobs of the specification to the text of a DialogScript."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Spec = Mapping[str, Any]

UNIT_TAGS: dict[str, str] = {
    "m": "m1",
    "s": "s1",
    "kg": "kg1",
    "Pa": "kg1m-1s-2",
    "Pa s": "kg1m-1s-1",
    "m/s": "m1s-1",
    "m/s^2": "m1s-2",
    "kg/m^3": "kg1m-3",
    "N/m": "kg1s-2",
}
"""Houdini's unit tags; angles, frames and units with a free exponent have none, their unit stands in the label."""


@dataclass(frozen=True)
class Parm:
    """One parameter as a DialogScript writes it.

    Attributes:
        name: Houdini's name: the knob's.
        label: Text beside it.
        type: DialogScript type: "float", "vector", "ordinal", ...
        defaults: One text for each component; a text that begins with "$" is an HScript expression.
        size: Components.
        help: Tooltip.
        menu: (token, label) pairs.
        range: Low and high as written, "!" for a hard limit.
        tags: parmtags.
        join_next: Whether the next parameter stands on the same line.
        disable: Condition under which it is greyed out.
    """

    name: str
    label: str
    type: str
    defaults: tuple[str, ...] = ()
    size: int = 1
    help: str = ""
    menu: tuple[tuple[str, str], ...] = ()
    range: tuple[str, str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    join_next: bool = False
    disable: str = ""


@dataclass(frozen=True)
class ParmFolder:
    """A tab, or with `repeated` a list of blocks whose parameter names end in "#"."""

    label: str
    parms: tuple[Parm | ParmFolder, ...]
    name: str = ""
    repeated: bool = False


# ---------------------------------------------------------------- knobs
def knob_parms(knob: Spec, presets: Sequence[Spec], taken_over: str = "") -> list[Parm | ParmFolder]:
    """Return the parameters that stand for one knob, in order; `taken_over` is the condition under which an input replaces it."""
    parms: list[Parm | ParmFolder] = []
    if knob["optional"]:
        parms.append(
            Parm(
                f"mpm_use_{knob['name']}",
                f"Use {knob['label']}",
                "toggle",
                (_number(knob["default"] is not None),),
                help=f"Off leaves {knob['name']} without a value.",
                join_next=True,
            )
        )
    if knob["kind"] == "substeps":
        return [*parms, *_substeps_parms(knob, presets, taken_over)]
    if knob["kind"] == "table":
        return [*parms, *_table_parms(knob)]
    return [*parms, replace(_value_parm(knob), disable=taken_over)]


def _value_parm(knob: Spec) -> Parm:
    kind, size, default = knob["kind"], knob["size"], knob["default"]
    text = {"name": knob["name"], "label": _label(knob), "help": _help(knob)}
    if kind == "bool":
        return Parm(type="toggle", defaults=(_number(bool(default)),), **text)
    if kind == "enum":
        menu = tuple((str(item["value"]), item["label"]) for item in knob["menu"])
        return Parm(type="ordinal", defaults=(str(knob["choices"][0] if default is None else default),), menu=menu, **text)
    if kind in ("int", "float", "vector"):
        values = default if kind == "vector" and default is not None else [default or 0] * size
        tag = UNIT_TAGS.get(knob["unit"])
        return Parm(
            type=_number_type(knob),
            size=size,
            defaults=tuple(_number(value) for value in values),
            range=_slider(knob),
            tags={"units": tag} if tag else {},
            **text,
        )
    if kind == "path":
        tags = {"filechooser_mode": "read"}
        if knob["file"]["patterns"]:
            tags = {"filechooser_pattern": " ".join(knob["file"]["patterns"])} | tags
        return Parm(type="file", defaults=(default or "",), tags=tags, **text)
    if kind == "strings":
        return Parm(type="string", defaults=(" ".join(map(_word, default or ())),), **text)
    return Parm(type="string", defaults=(str(default or ""),), **text)


def _substeps_parms(knob: Spec, presets: Sequence[Spec], taken_over: str) -> list[Parm | ParmFolder]:
    name = knob["name"]
    menu = tuple((preset["name"], preset["label"] or preset["name"]) for preset in presets)
    note = " Stages wired into the last input take its place."
    values = [
        Parm(
            "mpm_set_name#",
            "Name",
            "string",
            ("",),
            join_next=True,
            help="A parameter of the substeps (cfl), or a stage and its knob (rasterize.kernel).",
        ),
        Parm("mpm_set_value#", "Value", "string", ("",), help="Its value: a number, a word, or JSON."),
    ]
    return [
        Parm(name, knob["label"], "string", (str(knob["default"]),), menu=menu, help=knob["doc"] + note, disable=taken_over),
        ParmFolder("Substep Settings", tuple(values), name="mpm_set", repeated=True),
    ]


def _table_parms(knob: Spec) -> list[Parm | ParmFolder]:
    """Return a ramp, and what its ends and its top stand for: positions and values of ramps run from 0 to 1."""
    name, rows = knob["name"], knob["default"] or [[273.15, 0.0], [373.15, 1.0]]
    low, high = rows[0][0], rows[-1][0] if len(rows) > 1 else rows[0][0] + 1.0
    top = max(abs(value) for _, value in rows) or 1.0
    keys = [
        f"{n}pos ( {_number((T - low) / (high - low))} ) {n}value ( {_number(value / top)} ) {n}interp ( linear )"
        for n, (T, value) in enumerate(rows, 1)
    ]
    return [
        Parm(
            name,
            knob["label"],
            "ramp_flt",
            (str(len(rows)),),
            help=_help(knob) + " The curve between the two temperatures below; 1 stands for the value at the top.",
            range=("1!", "64"),
            tags={"rampfloatdefault": "  ".join(keys)},
        ),
        Parm(
            f"mpm_ends_{name}",
            f"{knob['label']} from, to ({knob['unit']})",
            "vector2",
            (_number(low), _number(high)),
            size=2,
            help="Temperatures at the left and at the right end of the curve.",
        ),
        Parm(f"mpm_top_{name}", f"{knob['label']} Top", "float", (_number(top),), help="What 1 of the curve stands for."),
    ]


def _word(text: str) -> str:
    """Return a word of a list as `shlex.split` reads it, in quotes only where it must be."""
    return text if re.fullmatch(r"[^\s'\"\\]+", text) else shlex.quote(text)


def _number_type(knob: Spec) -> str:
    whole = knob["kind"] == "int" or knob.get("element") == "int"
    if knob["size"] > 1:
        return "integer" if whole else {2: "vector2", 3: "vector", 4: "vector4"}.get(knob["size"], "float")
    logarithmic = bool(knob["range"] and knob["range"]["log"])
    if whole:
        return "intlog" if logarithmic else "integer"
    return "log" if logarithmic else "float"


def _slider(knob: Spec) -> tuple[str, str]:
    """Return a slider's ends: hard limits where values outside are refused, else those of the specification."""
    limits, whole = knob["range"], knob["kind"] == "int"
    low, high = limits["min"], limits["max"]
    if limits["log"]:  # a logarithmic slider cannot begin at 0, and no hard limit may cut values off
        low = None if low is None or low <= 0 else low
    return (
        _number(limits["soft_min"], whole) if low is None else _number(low, whole) + "!",
        _number(limits["soft_max"], whole) if high is None else _number(high, whole) + "!",
    )


def _label(knob: Spec) -> str:
    return knob["label"] + (f" ({knob['unit']})" if knob["unit"] and knob["unit"] not in UNIT_TAGS else "")


def _help(knob: Spec) -> str:
    """Return a tooltip: what it is, its unit, what it may be."""
    limits = knob["range"] or {}
    low, high = limits.get("min"), limits.get("max")
    parts = [knob["doc"]]
    if knob["unit"]:
        parts.append(f"Unit: {knob['unit']}.")
    if low is not None or high is not None:
        above = "above" if limits.get("exclusive_min") else "at least"
        words = [*([] if low is None else [f"{above} {low:g}"]), *([] if high is None else [f"at most {high:g}"])]
        parts.append(f"Allowed: {' and '.join(words)}.")
    if knob["kind"] == "strings":
        parts.append("Words, separated by spaces; in quotes where one holds a space.")
    if knob["required"]:
        parts.append("Must be given.")
    return " ".join(parts)


def _number(value: Any, whole: bool = False) -> str:
    """Return a number as Houdini writes it: no point behind whole ones."""
    if isinstance(value, bool) or whole:
        return str(int(value))
    return repr(int(value)) if float(value) == int(value) and abs(value) < 1e15 else repr(float(value))


# ---------------------------------------------------------------- text
def dialog_script(operator: str, name: str, label: str, inputs: Sequence[str], output: str, folders: Sequence[ParmFolder]) -> str:
    """Return a DialogScript.

    Args:
        operator: Full operator name, "mpm_nodes::emit_box::1.0".
        name: Name that new nodes get.
        label: Name that artists see.
        inputs: Label of each input.
        output: Label of the output, "" for none.
        folders: Tabs, in order.
    """
    lines = [
        f"# {operator}",
        "",
        "{",
        f"    name\t{operator}",
        f"    script\t{name}",
        f"    label\t{quoted(label)}",
        "",
        "    help {",
        '\t""',
        "    }",
        "",
    ]
    lines += [f"    inputlabel\t{number}\t{quoted(text)}" for number, text in enumerate(inputs, 1)]
    lines += [f"    outputlabel\t1\t{quoted(output)}"] if output else []
    lines += [""]
    tabs = "stdswitcher"
    for number, folder in enumerate(folders):
        lines += _group("group", f"{tabs}_{number}" if number else tabs, folder.label, folder.parms, 1)
    return "\n".join([*lines, "}", ""])


def _group(keyword: str, name: str, label: str, items: Iterable[Parm | ParmFolder], depth: int) -> list[str]:
    pad = "    " * depth
    lines = [f"{pad}{keyword} {{", f'{pad}    name    "{name}"', f"{pad}    label   {quoted(label)}"]
    lines += [f"{pad}    default 0"] if keyword == "multiparm" else []
    lines.append("")
    for item in items:
        if isinstance(item, ParmFolder):
            lines += _group("multiparm" if item.repeated else "groupsimple", item.name, item.label, item.parms, depth + 1)
        else:
            lines += _parm(item, depth + 1)
    return [*lines, f"{pad}}}", ""]


def _parm(parm: Parm, depth: int) -> list[str]:
    pad = "    " * depth
    lines = [
        f"{pad}parm {{",
        f'{pad}    name    "{parm.name}"',
        f"{pad}    label   {quoted(parm.label)}",
        f"{pad}    type    {parm.type}",
    ]
    lines += [f"{pad}    joinnext"] if parm.join_next else []
    lines += [f"{pad}    size    {parm.size}"] if parm.size > 1 else []
    defaults = [
        f"[ {quoted(text)} hscript-expr ]" if text.startswith("$") and parm.type in ("float", "integer") else quoted(text)
        for text in parm.defaults
    ]
    lines += [f"{pad}    default {{ {' '.join(defaults)} }}"] if defaults else []
    lines += [f"{pad}    help    {quoted(parm.help)}"] if parm.help else []
    lines += [f"{pad}    disablewhen {quoted(parm.disable)}"] if parm.disable else []
    if parm.menu:
        keyword = "menu" if parm.type == "ordinal" else "menureplace"  # a string's menu only offers
        lines += [
            f"{pad}    {keyword} {{",
            *(f"{pad}        {quoted(token)} {quoted(label)}" for token, label in parm.menu),
            f"{pad}    }}",
        ]
    lines += [f"{pad}    range   {{ {parm.range[0]} {parm.range[1]} }}"] if parm.range else []
    lines += [f"{pad}    parmtag {{ {quoted(key)} {quoted(value)} }}" for key, value in parm.tags.items()]
    return [*lines, f"{pad}}}"]


def quoted(text: str) -> str:
    """Return text in double quotes, as DialogScripts write it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
