"""Lineage keys: what a node's value at a frame is made of. Equal keys mean equal values, so nothing is marked dirty.

A key holds the node's type and version, its knobs (keyed ones as they run up to the frame), the keys of its inputs, the
content of its input files, the frame where the node asks for it, and its own key of the frame before where it is
sequential. The code counts for user nodes only. The last frame of the shot does not count: a longer shot keeps what is
cooked.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph import keys
from mpm_nodes.graph.declare import NodeDeclaration
from mpm_nodes.graph.knobs import Knob, to_json
from mpm_nodes.graph.substep_document import Substeps

LARGEST_DIGESTED = 64 * 2**20
MOST_FILES = 100_000


def settings_fact(settings: GraphSettings) -> list[float]:
    """Return what of the settings counts."""
    return [settings.cell_size, settings.fps, settings.start]


def knob_fact(knob: Knob, raw: Any, frame: int, whole_interval: bool) -> Any:
    """Return what of a knob counts at a frame: its value, or the curve over the interval that the node may sample."""
    if not keys.is_keyed(raw):
        return to_json(knob.convert(raw))
    if not whole_interval:
        return to_json(knob.sample(raw, frame))
    curve = (
        [[f, to_json(knob.convert(value)), mode] for f, value, mode in raw["keys"]]
        if knob.kind != "int"
        else raw["keys"]
    )
    return keys.interval(curve, frame - 1, frame)


def substeps_fact(substeps: Substeps, frame: int) -> str:
    """Return a digest of a substep graph as it runs at a frame, names left out."""
    return substeps.signature(lambda knob, raw: knob_fact(knob, raw, frame, True))


class FileFacts:
    """What counts of input files; each file is looked at once in the life of this object."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._known: dict[Path, Any] = {}

    def fact(self, path: Path) -> Any:
        """Return what counts of a file: digest, or size and time of a large one; of a sequence or folder, all of them."""
        path = self.base / path
        if path not in self._known:
            self._known[path] = self._look(path)
        return self._known[path]

    def _look(self, path: Path) -> Any:
        if re.search(r"#|%0?\d*d|\$F", path.name):
            pattern = re.sub(r"#+|%0?\d*d|\$F\d*", "*", path.name)
            return [[file.name, self._file(file)] for file in sorted(path.parent.glob(pattern))[:MOST_FILES]]
        if path.is_dir():
            return [[file.name, self._file(file)] for file in sorted(path.iterdir())[:MOST_FILES] if file.is_file()]
        return self._file(path)

    def _file(self, path: Path) -> Any:
        try:
            status = path.stat()
            if not path.is_file():
                return None
            if status.st_size < LARGEST_DIGESTED:
                return hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return None
        return [status.st_size, status.st_mtime_ns]


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
