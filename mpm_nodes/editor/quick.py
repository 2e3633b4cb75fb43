"""Quick setups: the presets of Blender's Quick menu and of Houdini's shelf, with a box of the matter above the ground.

A preset is a graph file with open slots (see docs/blender.md): here the node of "source" is a box of the size that its numbers are
made for, "ground" stays, and "collider" is left out with what hangs on it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import mpm_nodes
from mpm_nodes.data import InputError
from mpm_nodes.regular_files import shown

__all__ = ["FOLDER", "quick_graph", "quick_names", "quick_setups"]

FOLDER = Path(mpm_nodes.__file__).parent / "hosts" / "blender_addon" / "quick"
"""The presets, each with a picture: its matter dropped on a head, in Blender."""
LOOKS = {"honey": "syrup", "toothpaste": "paste", "wet_sand": "wet_sand"}
"""Looks of presets whose label ends in none (see `mpm_nodes.materials.looks`): what falls looks like the picture."""
CELLS = 10.0
"""Cells along an edge of the box: some 8,000 particles, whose first frames are there within seconds."""


def _slot(entry: dict[str, Any]) -> str:
    return str(entry.get("editor", {}).get("slot", ""))


def quick_names() -> list[str]:
    """Return the names of all presets, in their order."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    return sorted(read, key=lambda name: read[name]["editor"]["quick"]["order"])


@cache
def _presets() -> dict[str, str]:
    """Return the texts of the presets that need no collider, by name, in their order."""
    found = {name: (FOLDER / f"{name}.json").read_text(encoding="utf-8") for name in quick_names()}
    nodes = {name: json.loads(text)["nodes"].values() for name, text in found.items()}
    return {name: found[name] for name in found if not any(entry.get("knobs", {}).get("clamp") for entry in nodes[name])}


def quick_setups() -> list[dict[str, str]]:
    """Return name, label and doc of each."""
    records = {name: json.loads(text)["editor"]["quick"] for name, text in _presets().items()}
    return [{"name": name, "label": each["label"], "doc": each["doc"]} for name, each in records.items()]


def quick_graph(name: str) -> dict[str, Any]:
    """Return the document of a setup.

    Raises:
        InputError: There is no such setup.
    """
    if name not in _presets():
        raise InputError(f"{shown(name)!r}: there is no such setup")
    document = json.loads(_presets()[name])
    size = float(document.pop("editor")["quick"]["size"])
    nodes = {each: entry for each, entry in document["nodes"].items() if _slot(entry) != "collider"}
    for entry in nodes.values():
        for port, wires in entry.get("inputs", {}).items():
            if isinstance(wires, list):
                entry["inputs"][port] = [wire for wire in wires if wire.partition(".")[0] in nodes]
        if _slot(entry) == "source":
            entry["type"] = "emit_box"
            entry["knobs"] = {"size": [size] * 3, "centre": [0.0, size, 0.0], **entry.get("knobs", {})}
        entry.pop("editor", None)
    if name in LOOKS:
        for entry in nodes.values():
            given = entry.get("inputs", {})
            given.update({port: "looks" for port, wire in given.items() if wire == "motion.particles"})
        nodes["looks"] = {"type": "set_looks", "knobs": {"looks": [LOOKS[name]]}, "inputs": {"particles": "motion.particles"}}
    document["nodes"] = nodes
    document["settings"] = {**document["settings"], "cell_size": float(f"{size / CELLS:.3g}")}
    return document
