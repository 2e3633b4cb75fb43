"""What solves hand on, kept from one cook to the next: a shot whose look alone changed is not solved again.

Surfaces, colours, volumes and caches follow from what the solve gives at each frame. Under an output root these values lie by
lineage key, which says of what graph, input files and code they are made::

    out/solved/3f60...c1.particles.value

A cook takes the frames that are there, solves the others, and leaves those that it used or made: they take the disk of one shot.
Nothing is kept where files that an input file leads to decide what is solved, which lineage keys do not know.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import platform
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import temporary
from mpm_nodes.graph.plan.plan import Plan, PlannedNode
from mpm_nodes.graph.revisions.clean import SOLVED_FILE, SOLVES
from mpm_nodes.graph.revisions.records import read_manifest, read_record
from mpm_nodes.graph.revisions.revision import list_revisions
from mpm_nodes.graph.revisions.transaction import FrameTransaction
from mpm_nodes.graph.values.store import ABSENT, DiskStore
from mpm_nodes.user_files import user_folders

__all__ = ["KeptSolves"]

LEADS_ON = "usd_io.dependencies"
"""Tells whether a USD file leads to others; imported only where an input is one."""
SHARE = 0.1
"""Of the disk that is free as a cook begins, what solves may take: a shot that needs more is solved again each time."""


class KeptSolves:
    """The solves that are kept below an output root.

    Args:
        root: The output root.
        plan: What is cooked.
        expected: Bytes that keeping all frames takes; where it is more than a share of the free disk, nothing more is kept.
        takes: Whether frames of earlier cooks are taken.
    """

    def __init__(self, root: Path, plan: Plan, expected: int, takes: bool = True) -> None:
        self._root, self._takes = root, takes
        free = shutil.disk_usage(_there(root)).free
        self._store = DiskStore(root / SOLVES, int(SHARE * free))
        self._there = not (root / SOLVES).is_symlink()  # what a link leads to is someone else's
        self._keeps = self._there and expected <= SHARE * free
        self._used: set[str] = set()
        self._made = _made_with()
        self._open: dict[str, bool] = {}
        self._plan = plan
        self._wired: dict[str, list[str]] = {}
        for node in plan.nodes:
            for source, output in (wire for wires in node.inputs.values() for wire in wires):
                if plan[source].is_sequential:
                    self._wired.setdefault(source, []).append(output)
        self.taken = 0

    def find(self, node: PlannedNode, key: str) -> dict[str, Any] | None:
        """Return what a solve hands on at the frame of a lineage key; None where it is not there, or not whole."""
        outputs = self._outputs(node) if self._there and self._takes and not self._leads_on(node) else ()
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

    def take_states(self, files: FrameTransaction, keys: Mapping[str, str]) -> None:
        """Let a frame whose solves were taken have the checkpoints that an older revision keeps of it, where one does.

        Args:
            files: The frame.
            keys: Lineage keys of the solves, by node.
        """
        for node, key in keys.items():
            name = files.revision.checkpoint_name(files.frame, node)
            for folder in reversed(list_revisions(self._root)):
                facts = None if folder == files.revision.folder else _checkpoint(folder, files, name, node, key)
                if facts is not None:
                    with contextlib.suppress(OSError):
                        files.revision.files.make("checkpoints")
                        os.link(folder / name, files.revision.folder / temporary(name), follow_symlinks=False)
                        files.adopt(name, facts)
                        break

    def keep(self, node: PlannedNode, key: str, values: Mapping[str, Any]) -> None:
        """Keep what a solve hands on, if it can be stored."""
        outputs = self._outputs(node)
        if not self._keeps or not outputs or not all(output in values for output in outputs) or self._leads_on(node):
            return
        for output in outputs:  # a value of another class would come back as one of the declared
            declared = node.declaration.output(output)
            if declared is None or type(values[output]) is not declared.type:
                return
        self._used.add(self._name(key))
        try:
            self._keeps = all(self._store.put(self._name(key), output, values[output]) for output in outputs)
        except (TypeError, ValueError, MemoryError):  # what a user's node hands on may not go into a file
            self._keeps = False

    def prune(self) -> None:
        """Remove what this cook has neither used nor made; one that went on from a state leaves what was before it."""
        if not self._there or not self._takes:
            return
        for path in self._store.folder.glob(f"*{DiskStore.SUFFIX}*"):
            if SOLVED_FILE.fullmatch(path.name) and (path.name.endswith(".tmp") or path.name.partition(".")[0] not in self._used):
                with contextlib.suppress(OSError):
                    path.unlink()
        with contextlib.suppress(OSError):
            self._store.folder.rmdir()  # where nothing is left

    def _outputs(self, node: PlannedNode) -> Collection[str]:
        return sorted(set(self._wired.get(node.id, ())))

    def _name(self, key: str) -> str:
        return hashlib.sha256(f"{key} {self._made}".encode()).hexdigest()

    def _leads_on(self, node: PlannedNode) -> bool:
        """Whether what is solved comes of a file that leads to others, unless the node that reads it says what it reads."""
        if node.id not in self._open:
            paths = {
                each.base / value
                for each in self._plan.needed(node.id)
                for knob in each.declaration.knobs
                if knob.kind == "path"
                and knob.name not in each.declaration.contents
                and (value := knob.convert(each.raw[knob.name])) is not None
            }
            self._open[node.id] = any(_refers(path) for path in paths)
        return self._open[node.id]


def _there(root: Path) -> Path:
    """Return the folder itself, or the nearest one above it that is there."""
    return next(each for each in (root.absolute(), *root.absolute().parents) if each.is_dir())


def _checkpoint(folder: Path, files: FrameTransaction, name: str, node: str, key: str) -> dict[str, Any] | None:
    """Return size and digest of a checkpoint of the same lineage, and by the same package; None where there is none."""
    there, own = Folder(folder), files.revision.manifest
    manifest = read_manifest(there)
    if manifest is None or any(manifest.get(each) != own.get(each) for each in ("state_format", "package_version", "frame_offset")):
        return None
    record = read_record(there, f"frames/{files.number:04d}.commit.json", files.frame)
    if record is None or record["facts"].get("lineage", {}).get(node) != key:
        return None
    facts: dict[str, Any] | None = record["files"].get(name)
    return facts if facts is not None and there.size(name) == facts["bytes"] else None


def _refers(path: Path) -> bool:
    """Return whether a USD file takes anything from other files; what cannot be looked into may."""
    if not path.suffix.lower().startswith(".usd"):
        return False
    try:
        return bool(importlib.import_module(LEADS_ON).leads_on(path))
    except (MpmNodesError, ImportError, OSError):
        return True


def _made_with() -> str:
    """Return a digest of what decides the bits of a solve beside the graph: code, compiler, and processor.

    Files of this package and of users' folders count, by size and time.
    """
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    import numpy

    package = Path(__file__).resolve().parents[2]
    found = hashlib.sha256()
    for folder in (package, package.parent / "usd_io", *user_folders()):
        for path in sorted(folder.rglob("*.py")):
            with contextlib.suppress(OSError):
                told = os.stat(path)
                found.update(f"{path.relative_to(folder).as_posix()} {told.st_size} {told.st_mtime_ns}\n".encode())
    versions = sys.version, numba.__version__, llvmlite.__version__, numpy.__version__
    processor = platform.machine(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    settings = sorted(
        f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_") and "THREADS" not in name
    )
    found.update(repr((versions, processor, settings)).encode())
    return found.hexdigest()
