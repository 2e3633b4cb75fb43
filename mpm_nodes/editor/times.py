"""Seconds that cooks took, by node and by stage, beside what they cooked: `rNNN/times.json`.

Commit records hold nothing that differs between two machines; so a host that has followed a cook keeps its times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.files.folder import Folder

__all__ = ["keep_times", "kept_times", "times_of"]

FORMAT, NAME = "mpm_nodes.times", "times.json"
LARGEST = 1 << 22
"""Bytes of a file that are read."""
Times = dict[str, dict[str, Any]]


def times_of(events: Iterable[Mapping[str, Any]]) -> Times:
    """Return seconds by node, and by solve and stage, of the events of a cook; stages that are fused are joined by "+"."""
    nodes: dict[str, float] = {}
    stages: dict[str, dict[str, float]] = {}
    for event in events:
        name = str(event.get("node", ""))
        if event["event"] == "node":
            nodes[name] = nodes.get(name, 0.0) + event["seconds"]
        elif event["event"] == "stages":
            _add(stages.setdefault(name, {}), event["stages"])
    return {"nodes": nodes, "stages": stages}


def kept_times(files: Folder, revision: str) -> Times:
    """Return the times that were kept of a revision, empty where there are none that are whole."""
    try:
        found = json.loads(files.read(f"{revision}/{NAME}", LARGEST))
        if found["format"] != FORMAT:
            raise ValueError(found["format"])
        return {"nodes": _numbers(found["nodes"]), "stages": {name: _numbers(each) for name, each in found["stages"].items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MpmNodesError):
        return {"nodes": {}, "stages": {}}


def keep_times(files: Folder, revision: str, spent: Times) -> None:
    """Add the times of a cook to those that a revision has: a cook that was resumed took both.

    Args:
        files: The output root.
        revision: Name of the revision; where it has no cook.json, nothing is written.
        spent: What `times_of` gave.
    """
    if not spent["nodes"] or files.size(f"{revision}/cook.json") is None:
        return
    found = kept_times(files, revision)
    _add(found["nodes"], spent["nodes"])
    for solve, each in spent["stages"].items():
        _add(found["stages"].setdefault(solve, {}), each)
    files.replace(f"{revision}/{NAME}", json.dumps({"format": FORMAT, **found}).encode())


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, seconds in more.items():
        sums[name] = sums.get(name, 0.0) + seconds


def _numbers(given: Mapping[str, Any]) -> dict[str, float]:
    found = {str(name): float(seconds) for name, seconds in given.items()}
    if not all(math.isfinite(each) for each in found.values()):
        raise ValueError("not a number")
    return found
