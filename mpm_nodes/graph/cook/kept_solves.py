"""What solves hand on, kept from one cook to the next: a shot whose look alone changed is not solved again.

Surfaces, colours, volumes and caches follow from what the solve gives at each frame. Under an output root these values lie by
lineage key, which says of what graph, input files and code they are made::

    out/solved/3f60...c1.particles.value

A cook takes the frames that are there, solves the others, and leaves those that it used or made: they take the disk of one shot.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.graph.plan.plan import Plan, PlannedNode
from mpm_nodes.graph.revisions.clean import SOLVES
from mpm_nodes.graph.values.store import ABSENT, DiskStore

__all__ = ["KeptSolves"]

OURS = re.compile(r"[0-9a-f]{64}\.")
SHARE = 0.1
"""Of the disk that is free as a cook begins, what solves may take: a shot that needs more is solved again each time."""


class KeptSolves:
    """The solves that are kept below an output root.

    Args:
        root: The output root.
        plan: What is cooked.
        expected: Bytes that keeping all frames takes; where it is more than a share of the free disk, nothing more is kept.
    """

    def __init__(self, root: Path, plan: Plan, expected: int) -> None:
        free = shutil.disk_usage(_there(root)).free
        self._store = DiskStore(root / SOLVES, int(SHARE * free))
        self._there = not (root / SOLVES).is_symlink()  # what a link leads to is someone else's
        self._keeps = self._there and expected <= SHARE * free
        self._code = _code()
        self._used: set[str] = set()
        self._wired: dict[str, list[str]] = {}
        for node in plan.nodes:
            for source, output in (wire for wires in node.inputs.values() for wire in wires):
                if plan[source].is_sequential:
                    self._wired.setdefault(source, []).append(output)
        self.taken = 0

    def find(self, node: PlannedNode, key: str) -> dict[str, Any] | None:
        """Return what a solve hands on at the frame of a lineage key; None where it is not there, or not whole."""
        outputs = self._outputs(node) if self._there else ()
        found = {}
        for output in outputs:
            declared = node.declaration.output(output)
            found[output] = ABSENT if declared is None else self._store.get(self._name(key), output, declared.type)
            if found[output] is ABSENT:
                return None
        if not outputs:
            return None
        self._used.add(self._name(key))
        self.taken += 1
        return found

    def keep(self, node: PlannedNode, key: str, values: Mapping[str, Any]) -> None:
        """Keep what a solve hands on, if it can be stored."""
        outputs = self._outputs(node)
        if self._keeps and outputs and all(output in values for output in outputs):
            self._used.add(self._name(key))
            self._keeps = all(self._store.put(self._name(key), output, values[output]) for output in outputs)

    def prune(self) -> None:
        """Remove what this cook has neither used nor made."""
        if not self._there:
            return
        for path in self._store.folder.glob(f"*{DiskStore.SUFFIX}"):
            if OURS.match(path.name) and path.name.partition(".")[0] not in self._used:
                with contextlib.suppress(OSError):
                    path.unlink()
        with contextlib.suppress(OSError):
            self._store.folder.rmdir()  # where nothing is left

    def _outputs(self, node: PlannedNode) -> Collection[str]:
        return sorted(set(self._wired.get(node.id, ())))

    def _name(self, key: str) -> str:
        return hashlib.sha256(f"{key} {self._code}".encode()).hexdigest()


def _there(root: Path) -> Path:
    """Return the folder itself, or the nearest one above it that is there."""
    return next(each for each in (root.absolute(), *root.absolute().parents) if each.is_dir())


def _code() -> str:
    """Return a digest of which files this package is made of, so that other code solves again."""
    package = Path(__file__).resolve().parents[2]
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        told = os.stat(path)
        found.update(f"{path.relative_to(package).as_posix()} {told.st_size} {told.st_mtime_ns}\n".encode())
    return found.hexdigest()
