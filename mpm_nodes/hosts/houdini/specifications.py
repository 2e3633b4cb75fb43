"""The specification of every asset as a text file: what `hda_specs/` holds, and what libraries are built from.

One file for each node and stage, called after it, is its record of the host specification (mpm_nodes.hosts.spec describes the
fields); `shared.json` holds what all assets need, and what the two are made of that stand for no node: MPM Cook and Substep Begin.
What a field says when nothing is special is left out, and `read` puts it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import Folder, holds_json, replace_named
from mpm_nodes.hosts.houdini.assets import PROGRAM
from mpm_nodes.hosts.houdini.parameters import Spec

SHARED = ("types", "settings", "reserved_names", "graph_format", "substeps_format")
KINDS = {"nodes": "graph", "stages": "substeps"}
"""Lists of the host specification, with the scope that their files name."""

WIDTH = 110
"""Most characters of a line that is one value."""

PORT: dict[str, Any] = {"optional": False, "many": False, "internal": False}
RANGE: dict[str, Any] = dict.fromkeys(("min", "max", "soft_min", "soft_max")) | {"log": False, "exclusive_min": False}
KNOB: dict[str, Any] = {"required": False, "unit": "", "range": None, "choices": [], "size": 1, "optional": False, "keyable": False}
KNOB |= {"menu": [], "file": None}


def texts(spec: Spec) -> dict[str, str]:
    """Return the specification files of a host specification: text by name."""
    shared = {key: spec[key] for key in SHARED} | {"settings": [_brief_knob(knob) for knob in spec["settings"]]}
    found = {"shared.json": _text(shared | {"cook": {key: spec["cook"][key] for key in PROGRAM}})}
    for kind, scope in KINDS.items():
        for record in spec[kind]:
            parts = {
                "inputs": [_brief(port, PORT) for port in record["inputs"]],
                "outputs": [_brief(port, PORT) for port in record["outputs"]],
                "knobs": [_brief_knob(knob) for knob in record["knobs"]],
            }
            found[f"{record['id']}.json"] = _text({"scope": scope} | {**record, **parts})
    return dict(sorted(found.items()))


def read(folder: Path, presets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what assets are made from, out of specification files.

    Args:
        folder: Holds shared.json and a file for each node and stage.
        presets: Records of the substep presets, as the host specification has them: they are files of their own already.

    Raises:
        InputError: The folder holds no specifications, or one lacks a field.
    """
    if not (folder / "shared.json").is_file():
        raise InputError(f"{folder}: holds no shared.json; give a folder that `mpm-nodes host houdini --specs` has written")
    spec: dict[str, Any] = {**strict_json.read(folder / "shared.json"), "presets": presets, "nodes": [], "stages": []}
    spec["settings"] = [_whole_knob(knob) for knob in spec["settings"]]
    for path in sorted(folder.glob("*.json")):
        if path.name == "shared.json":
            continue
        record = strict_json.read(path)
        kind = next((kind for kind, scope in KINDS.items() if record.get("scope") == scope), None)
        lacking = {"id", "label", "version", "category", "doc", "inputs", "outputs", "knobs"} - record.keys()
        if kind is None or lacking:
            what = f"has no {', '.join(sorted(lacking))}" if lacking else f"has scope {record.get('scope')!r}"
            raise InputError(f"{path}: {what}; a specification has a scope ({', '.join(KINDS.values())}) and those fields")
        del record["scope"]
        record["inputs"] = [_whole(port, PORT) for port in record["inputs"]]
        record["outputs"] = [_whole(port, PORT) for port in record["outputs"]]
        record["knobs"] = [_whole_knob(knob) for knob in record["knobs"]]
        spec[kind].append(record)
    return spec


def write(spec: Spec, folder: Path) -> list[Path]:
    """Write the specification files; those of nodes that are gone are removed. Return the files.

    Raises:
        OutputError: A file cannot be written, or another file has the name of a specification.
    """
    wanted = texts(spec)
    for name, text in wanted.items():
        replace_named(folder / name, text.encode(), _is_specification, make=True)
    files = Folder(folder.resolve())
    try:
        for name in files.names():
            if name.endswith(".json") and name not in wanted and _is_specification(files.read(name)):
                files.unlink(name)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or error}); choose another folder with --specs") from error
    return [folder / name for name in wanted]


def _is_specification(data: bytes) -> bool:
    return holds_json(data, lambda found: found.get("scope") in KINDS.values() or set(SHARED) <= set(found))


def differences(spec: Spec, folder: Path) -> list[str]:
    """Return what differs between specification files and the registry's: names with a word."""
    wanted, found = texts(spec), {path.name: path for path in folder.iterdir() if path.is_file()}
    missing = [f"{name}: missing" for name in sorted(wanted.keys() - found.keys())]
    extra = [f"{name}: not of this registry" for name in sorted(found.keys() - wanted.keys())]
    shared = sorted(wanted.keys() & found.keys())
    return [*missing, *extra, *(f"{name}: differs" for name in shared if found[name].read_bytes() != wanted[name].encode())]


# ---------------------------------------------------------------- brief and whole records
def _brief(record: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without the fields that say what is usual."""
    return {key: value for key, value in record.items() if key not in usual or value != usual[key]}


def _whole(record: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {**usual, **record}


def _brief_knob(knob: Mapping[str, Any]) -> dict[str, Any]:
    knob = {key: value for key, value in knob.items() if key not in ("axes", "corner")}  # Houdini's are those of graph files
    return _brief(knob if knob["range"] is None else {**knob, "range": _brief(knob["range"], RANGE)}, KNOB)


def _whole_knob(knob: Mapping[str, Any]) -> dict[str, Any]:
    found = _whole(knob, KNOB)
    return found if found["range"] is None else {**found, "range": _whole(found["range"], RANGE)}


# ---------------------------------------------------------------- text
def _text(value: Any) -> str:
    """Return JSON for people: what fits a line stands on one."""
    return _lines(value, 0) + "\n"


def _lines(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or 2 * depth + len(flat) <= WIDTH:
        return flat
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(key, ensure_ascii=False)}: {_lines(each, depth + 1)}" for key, each in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + "  " * depth + "}"
    return "[\n" + ",\n".join(pad + _lines(each, depth + 1) for each in value) + "\n" + "  " * depth + "]"
