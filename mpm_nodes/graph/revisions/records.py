"""Commit records and manifests: what they hold, and what is refused before any name in them is used."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import mpm_nodes
from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.files.folder import Folder, json_bytes
from mpm_nodes.graph.files.names import checked_parts

__all__ = [
    "MANIFEST_FORMAT",
    "RECORD_FORMAT",
    "RESERVED",
    "STATE_FORMAT",
    "read_manifest",
    "read_record",
    "resealed",
    "sealed_record",
]

RECORD_FORMAT = "mpm_nodes.commit"
MANIFEST_FORMAT = "mpm_nodes.cook"
STATE_FORMAT = 1
"""Raise when checkpoints of an older version can no longer be continued."""
RESERVED = {"frames", "checkpoints", "cook.json", "cook.lock"}
"""First parts of names that belong to the cook itself."""

_CHECKPOINT = re.compile(r"checkpoints/\d{4,10}\.[^/]+\.state")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST_NUMBER = 1 << 62


def sealed_record(*, frame: int, files: Mapping[str, Any], graph_digest: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the commit record of a frame, with a digest of itself, so that half of one is never taken for a whole one."""
    record = {
        "format": RECORD_FORMAT,
        "frame": frame,
        "files": dict(files),
        "state_format": STATE_FORMAT,
        "package_version": mpm_nodes.__version__,
        "graph_digest": graph_digest,
        "facts": dict(facts),
    }
    return {**record, "seal": _seal(record)}


def resealed(record: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit record with other files, sealed; the rest stays as its cook wrote it."""
    body = {**{key: value for key, value in record.items() if key != "seal"}, "files": dict(files)}
    return {**body, "seal": _seal(body)}


def _seal(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def read_record(files: Folder, name: str, frame: int) -> dict[str, Any] | None:
    """Return the commit record of `frame` in the file `name`, or None when it is missing, cut short or altered.

    Raises:
        InputError: It is whole, but names what no cook of ours would: files elsewhere, our own, another frame.
    """
    try:
        data = files.read(name)
        record = json.loads(data)
        body = {key: value for key, value in record.items() if key != "seal"}
        if record.get("format") != RECORD_FORMAT or record.get("seal") != _seal(body) or data != json_bytes(record):
            return None
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    fault = _record_fault(record, frame)
    if fault:
        raise InputError(
            f"{files.path / name}: {fault}, so this folder was not written by mpm-nodes; "
            "nothing in it was changed: cook without --resume, or into another folder"
        )
    return record


def _record_fault(record: Mapping[str, Any], frame: int) -> str:
    """Return what is wrong with a sealed record, or ""."""
    if record.get("frame") != frame or not _is_count(abs(frame)):
        return f"is the record of another frame than {frame}"
    listed = record.get("files")
    if not isinstance(listed, dict) or not isinstance(record.get("facts"), dict):
        return "has no table of files"
    lineage = record["facts"].get("lineage", {})
    if not isinstance(lineage, dict) or not all(isinstance(key, str) for key in lineage.values()):
        return "does not say what its values were made of"
    for name, facts in listed.items():
        fault = _name_fault(name)
        if fault:
            return fault
        sound = isinstance(facts, dict) and _is_count(facts.get("bytes")) and isinstance(facts.get("sha256"), str)
        if not sound or not _DIGEST.fullmatch(facts["sha256"]):
            return f"gives no size and digest of {name!r}"
    return ""


def _name_fault(name: str) -> str:
    try:
        parts = checked_parts(name, "it names the file")
    except OutputError as error:
        return str(error).partition(";")[0]
    if "/".join(parts) != name:
        return f"it names the file {name!r} in another way than a cook does"
    if parts[0].lower() in RESERVED and not _CHECKPOINT.fullmatch(name):
        return f"it names {name!r}, which belongs to the cook itself"
    return ""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST_NUMBER


def read_manifest(files: Folder) -> dict[str, Any] | None:
    """Return the manifest of a revision folder, None when it was never finished.

    Raises:
        InputError: It is there and cannot be read, or lacks what every manifest of ours holds.
    """
    path = files.path / "cook.json"
    try:
        manifest = json.loads(files.read("cook.json"))
        if not isinstance(manifest, dict) or manifest.get("format") != MANIFEST_FORMAT:
            raise ValueError("another format")
        wrong = [name for name, sound in _MANIFEST.items() if not sound(manifest.get(name))]
        if wrong:
            raise ValueError(f"{wrong[0]} is missing or no value that a cook writes")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged or not a manifest of ours ({error}); cook without --resume") from error
    return manifest


_MANIFEST = {
    "package_version": lambda value: isinstance(value, str),
    "graph_digest": lambda value: isinstance(value, str),
    "frame_offset": lambda value: type(value) is int and 0 <= value < 1 << 31,
    "frames": lambda value: value is None or (isinstance(value, list) and len(value) == 2 and all(map(_is_frame, value))),
    "graph": lambda value: value is None or _is_graph(value),
    "taken": lambda value: value is None or _is_taken(value),
}
"""What entries of a manifest hold; those that may be None need not be there."""


def _is_frame(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 31


def _is_graph(value: Any) -> bool:
    """Whether a manifest's graph has the form that is read of it without loading it: tables of settings and of nodes."""
    if not isinstance(value, dict):
        return False
    settings, nodes = value.get("settings", {}), value.get("nodes", {})
    if not isinstance(settings, dict) or not isinstance(nodes, dict):
        return False
    return all(isinstance(node, dict) and isinstance(node.get("knobs", {}), dict) for node in nodes.values())


def _is_taken(value: Any) -> bool:
    known = isinstance(value, dict) and _is_frame(value.get("last")) and isinstance(value.get("from"), str)
    return known and isinstance(value.get("lineage"), dict)
