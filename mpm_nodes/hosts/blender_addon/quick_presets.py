"""Quick presets: graph files with open slots in a folder. Knows nothing of bpy: files are read, scaled and filled as documents.

A preset is a graph file whose `editor.quick` has `label`, `doc`, `order`, `size` and `look`. A slot is a node whose `editor.slot`
is "source" (takes the object that is simulated), "collider" (is repeated for every other object, and left out where there is none)
or "ground" (is put below everything). `size` is the edge in metres of the body that the preset's numbers are made for.
"""

import copy
import json
import os
from pathlib import Path

from .specification import NODES, PRESETS, STAGES, knob

BUILTIN = Path(__file__).parent / "quick"
VARIABLE = "MPM_NODES_QUICK"
SLOTS = ("source", "collider", "ground")

POWERS = {
    "m": 1.0, "s": 0.5, "m/s": 0.5, "rad/s": -0.5, "Pa": 1.0, "Pa s": 1.5, "N/m": 2.0, "J/kg": 1.0, "J/(kg K)": 1.0,
    "W/(m K)": 2.5, "W/(m^2 K)": 1.5, "W/m^3": 0.5,
}  # fmt: skip
"""Power of the size by which a number of a unit grows when a body of the same density looks the same under the same gravity."""


class PresetFault(Exception):
    """A file that cannot be used as a preset; the message says why and what to do."""


def folders(own=""):
    """Return the folders that hold presets: those that come with the extension, those of MPM_NODES_QUICK, and `own`."""
    named = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [BUILTIN, *map(Path, named), *([Path(own)] if own else [])]


def found(own=""):
    """Return the presets by name (that of their file), in the order of their numbers, and what is wrong with others.

    A later folder's file replaces an earlier one of the same name.
    """
    presets, faults = {}, []
    for folder in folders(own):
        for path in sorted(folder.glob("*.json")):
            try:
                presets[path.stem] = read(path)
            except PresetFault as fault:
                faults.append(str(fault))
    facts = {name: document["editor"]["quick"] for name, document in presets.items()}
    order = sorted(presets, key=lambda name: (facts[name].get("order", 1000), facts[name].get("label", name)))
    return {name: presets[name] for name in order}, faults


def read(path):
    """Return the document of a preset.

    Raises:
        PresetFault: It cannot be read, or has no slot for the object that is simulated.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        quick, slots = document["editor"]["quick"], open_slots(document)
        size = float(quick.get("size", 1.0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PresetFault(f"{path}: is not a quick preset ({type(error).__name__}: {error}); see docs/blender.md") from None
    if len(slots["source"]) != 1:
        raise PresetFault(f'{path}: {len(slots["source"])} nodes have "editor": {{"slot": "source"}}; give it to one emitter')
    if not 0.0 < size < 1e6:
        raise PresetFault(f"{path}: size is {size:g}; give the edge of a body in metres")
    return document


def open_slots(document):
    """Return the names of the nodes of every slot."""
    slots = {slot: [] for slot in SLOTS}
    for name, entry in document["nodes"].items():
        slot = (entry.get("editor") or {}).get("slot")
        if slot in slots:
            slots[slot].append(name)
    return slots


def cell_size(volume, area, particles):
    """Return the cell size at which a body takes a number of particles, eight a cell.

    Args:
        volume: [m^3]; 0 for a sheet, which is filled two cells thick.
        area: Its surface [m^2].
        particles: The budget.
    """
    cell = (8.0 * volume / particles) ** (1.0 / 3.0) if volume > 0.0 else (16.0 * area / particles) ** 0.5
    return float(f"{cell:.3g}")


def power_of(record_knob, knobs):
    """Return the power of the size by which a knob grows; 0 for numbers without a unit of length, time or stress."""
    if record_knob.get("unit") == "Pa s^n":
        return 1.0 + 0.5 * float(knobs.get("flow_index", 1.0))
    return POWERS.get(record_knob.get("unit"), 0.0)


def scaled(document, factor):
    """Return a preset for a body `factor` times as large as the one that its numbers are made for, which then looks the same.

    Every number that the file spells out is scaled by its unit: stresses grow with the size, times with its square root. A node's
    comment says which of its numbers were.
    """
    document = copy.deepcopy(document)
    for entry in document["nodes"].values():
        record, given = NODES.get(entry["type"]), entry.get("knobs", {})
        if record is None or entry["type"] == "solve":
            _scale_settings(given, factor)
            continue
        changed = []
        for name, value in given.items():
            known = knob(record, name)
            power = power_of(known, given) if known else 0.0
            if power:
                given[name] = _times(value, factor**power)
            if given[name] != value:
                changed.append(f"{known['label']} {_figure(given[name])} {known['unit']} (from {_figure(value)})")
        if changed:
            said = f"Scaled by Quick to a body {_figure(factor)} times as large: {', '.join(changed)}"
            entry["comment"] = "\n".join(filter(None, [entry.get("comment", ""), said]))
    return document


def _figure(value):
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, (int, float)) else str(value)


def _scale_settings(knobs, factor):
    """Scale the settings of a preset of substeps by the units of the stage knobs that they stand for."""
    chosen = knobs.get("substeps")
    if not isinstance(chosen, dict) or "set" not in chosen or chosen.get("preset") not in PRESETS:
        return
    document = PRESETS[chosen["preset"]]["document"]
    for name, value in chosen["set"].items():
        for place in document.get("parameters", {}).get(name, ()):
            stage, _, inner = place.partition(".")
            known = knob(STAGES[document["nodes"][stage]["type"]], inner)
            power = power_of(known, {}) if known else 0.0
            if power:
                chosen["set"][name] = _times(value, factor**power)
            break


def _times(value, factor):
    if isinstance(value, list):
        return [_times(each, factor) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(f"{value * factor:.6g}")
    return value


def filled(document, source, colliders, ground, sheets, cell):
    """Return a preset with its slots filled.

    Args:
        document: The preset.
        source: Name of the object that is simulated.
        colliders: Names of the objects that it meets.
        ground: Height of the ground [m]; None leaves it out.
        sheets: Names of objects without an inside, which get a thickness of two cells.
        cell: Cell size [m].
    """
    document = copy.deepcopy(document)
    slots, nodes = open_slots(document), {}
    renamed = {name: [name] for name in document["nodes"]}
    for name, entry in document["nodes"].items():
        slot = (entry.get("editor") or {}).pop("slot", None)
        if slot == "source":
            nodes[name] = _stand_for(entry, source, sheets, cell)
        elif slot == "collider":
            renamed[name] = [f"{name}_{number}" for number in range(1, len(colliders) + 1)]
            for copied, thing in zip(renamed[name], colliders, strict=True):
                nodes[copied] = _stand_for(copy.deepcopy(entry), thing, sheets, cell)
                nodes[copied].setdefault("knobs", {})["name"] = thing
        elif slot == "ground":
            renamed[name] = [] if ground is None else [name]
            if ground is not None:
                entry.setdefault("knobs", {})["centre"] = [0.0, float(f"{ground:.6g}"), 0.0]
                nodes[name] = entry
        else:
            nodes[name] = entry
    document["nodes"] = nodes
    for name in [name for name in nodes if name not in slots["source"]]:
        _rewire(nodes[name], renamed)
    for name in slots["source"]:
        _rewire(nodes[name], renamed)
    _drop_unfed(nodes)
    document["settings"] = {**document.get("settings", {}), "cell_size": cell}
    return document


def _stand_for(entry, thing, sheets, cell):
    entry["editor"] = {**(entry.get("editor") or {}), "blender": {"object": thing}}
    if thing in sheets:
        entry.setdefault("knobs", {})["thickness"] = 2.0 * cell
    return entry


def _rewire(entry, renamed):
    """Let wires start from what took the place of a slot."""
    for port, given in entry.get("inputs", {}).items():
        many, found = isinstance(given, list), []
        for wire in given if many else [given]:
            name, dot, output = wire.partition(".")
            found += [f"{each}{dot}{output}" for each in renamed.get(name, [name])]
        entry["inputs"][port] = found if many else (found[0] if found else [])
    entry["inputs"] = {port: given for port, given in entry.get("inputs", {}).items() if given}


def _drop_unfed(nodes):
    """Leave out what changes a collider that is not there, with all that hangs on it alone."""
    for _ in range(len(nodes)):
        lacking = [
            name
            for name, entry in nodes.items()
            if (record := NODES.get(entry["type"]))
            and any(
                not port["optional"] and not port["many"] and port["name"] not in entry.get("inputs", {})
                for port in record["inputs"]
            )
        ]
        if not lacking:
            return
        for name in lacking:
            del nodes[name]
        renamed = {name: [] for name in lacking}
        for entry in nodes.values():
            _rewire(entry, renamed)
