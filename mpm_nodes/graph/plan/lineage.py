"""Lineage keys: what a node's value at a frame is made of. Equal keys mean equal values (memoization), so nothing is marked dirty.

A key holds the node's type and version, its knobs (keyed ones as they run up to the frame), the keys of its inputs, the
content of its input files (where the node says so, as far as it reads them at the frame), the frame where the node asks for
it, and its own key of the frame before where it is sequential. The code counts for user nodes only. The last frame of the
shot does not count: a longer shot keeps what is cooked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.declare.decorators import NodeDeclaration
from mpm_nodes.graph.declare.knobs import Knob, to_json
from mpm_nodes.graph.document.substep_document import Substeps
from mpm_nodes.graph.time import keys

LARGEST_DIGESTED = 64 * 2**20


def settings_fact(settings: GraphSettings) -> list[float]:
    """Return what of the settings counts."""
    facts = [settings.cell_size, settings.fps, settings.start]
    return facts if settings.resolution == 1.0 else [*facts, settings.resolution]


def knob_fact(knob: Knob, raw: Any, frame: int, whole_interval: bool) -> Any:
    """Return what of a knob counts at a frame: its value, or the curve over the interval that the node may sample.

    Keys that travel with the value count as a whole.
    """
    if not keys.is_keyed(raw):
        return to_json(knob.convert(raw))
    if knob.keys_travel and not whole_interval:
        return to_json(raw)
    if not whole_interval:
        return to_json(knob.sample(raw, frame))
    curve = [(f, to_json(knob.convert(value)), mode) for f, value, mode in raw["keys"]] if knob.kind != "int" else raw["keys"]
    return keys.interval(curve, frame - 1, frame, straight=not knob.turns)


def substeps_fact(substeps: Substeps, frame: int) -> str:
    """Return a digest of a substep graph as it runs at a frame, names left out."""
    return substeps.signature(lambda knob, raw: knob_fact(knob, raw, frame, True))


class FileFacts:
    """What counts of input files; each is looked at once in the life of this object.

    A file counts by its content, a large one by size and time. Of a numbered sequence every file counts, by size and
    time: which of them a node reads at a frame is its own affair. Files that an input file refers to do not count.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self._known: dict[tuple[Path, bool], Any] = {}

    def fact(self, path: Path, over_time: bool) -> Any:
        """Return what counts of a file; `over_time` when a node may take it for one of a numbered sequence."""
        path = self.base / path
        if (path, over_time) not in self._known:
            try:
                self._known[path, over_time] = self._look(path, over_time)
            except (OSError, ValueError):  # no name that the system takes: the node that reads it says so
                self._known[path, over_time] = None
        return self._known[path, over_time]

    def _look(self, path: Path, over_time: bool) -> Any:
        if path.is_dir():
            return _stamps(path, re.compile(".*"))
        number = _PATTERN.search(path.name) or (_LAST_NUMBER.search(path.name) if over_time else None)
        if number is None:
            return _content(path)
        before, after = path.name[: number.start()], path.name[number.end() :]
        name = re.compile(re.escape(before) + r"-?\d+" + re.escape(after))
        return [_content(path), _stamps(path.parent, name)]


_PATTERN = re.compile(r"#+|%0?\d*d|\$F\d*")
_LAST_NUMBER = re.compile(r"\d+(?=\D*\.[^.]*$)")


def _content(path: Path) -> Any:
    try:
        status = path.stat()
        if not path.is_file():
            return None
        if status.st_size < LARGEST_DIGESTED:
            return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def _stamps(folder: Path, name: re.Pattern[str]) -> list[list[Any]]:
    """Return name, size and time of the files in a folder whose whole name matches, sorted."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if name.fullmatch(entry.name) and entry.is_file()]
            return sorted([entry.name, entry.stat().st_size, entry.stat().st_mtime_ns] for entry in files)
    except OSError:
        return []


def key_of(
    declaration: NodeDeclaration,
    facts: dict[str, Any],
    inputs: list[Any],
    settings: GraphSettings,
    frame: int,
    previous: str | None,
) -> str:
    """Return the lineage key of a node at a frame from the facts that decide its value."""
    context: dict[str, Any] = {}
    if declaration.wants_ctx or declaration.wants_settings:
        context["settings"] = settings_fact(settings)
    if declaration.wants_ctx:
        context["frame"] = frame
    if declaration.previous_type is not None:
        context["previous"] = previous
    record = [declaration.id, declaration.version, declaration.code_digest, facts, inputs, context]
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
