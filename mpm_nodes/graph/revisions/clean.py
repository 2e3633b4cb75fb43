"""What may be deleted below an output root, and how much that frees; nothing is deleted by looking."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.folder import Folder, holds_json
from mpm_nodes.graph.revisions.lock import FolderLock
from mpm_nodes.graph.revisions.records import read_manifest
from mpm_nodes.graph.revisions.revision import (
    KEEP_EVERY,
    STATE,
    Revision,
    latest_revision,
    list_revisions,
    temporary_files,
)
from mpm_nodes.graph.revisions.transaction import writing

__all__ = ["Removable", "removable"]


SOLVES = "solved"
"""Folder below an output root with what solves handed on (`graph.cook.kept_solves`)."""
SOLVED_FILE = re.compile(r"[0-9a-f]{64}\.\w+\.value(\.\d+\.tmp)?")
"""Names of the files in it, and of those that a dead cook has left half written; others are not ours."""


@dataclass(frozen=True)
class Removable:
    """Something that `clean` may remove.

    Attributes:
        folder: The revision folder.
        names: Files in it.
        bytes: How much space they take.
        why: Why they may go.
        whole: Whether they are all that a cook has left there, so that the folder goes when nothing else is in it.
    """

    folder: Path
    names: tuple[str, ...]
    bytes: int
    why: str
    whole: bool = False

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder if self.whole else self.folder / self.names[0]

    def remove(self) -> None:
        """Remove it from disk; links are removed themselves, never followed, and folders only when they are empty."""
        files = Folder(self.folder)
        with writing(str(self.path)):
            for name in self.names:
                files.unlink(name)
        if self.whole:
            with contextlib.suppress(OSError):
                for base, folders, _ in os.walk(self.folder, topdown=False):
                    for name in folders:
                        with contextlib.suppress(OSError):  # something of the user's is in it, or it is a link
                            os.rmdir(os.path.join(base, name))
                os.rmdir(self.folder)


def removable(root: Path, old_revisions: bool = False, keep_every: int = KEEP_EVERY) -> Iterator[list[Removable]]:
    """Yield, revision by revision and with the revision locked, what may be removed below an output root.

    Frames of solves that are kept for the next cook, temporary files of dead cooks and checkpoints beyond retention; with
    `old_revisions`, what cooks and pictures of them have left in every revision but the newest. What no record
    names is not ours, and stays.

    Raises:
        InputError: `root` holds no cook.
        OutputError: A cook is writing the revision.
    """
    newest = latest_revision(root)
    there = () if (root / SOLVES).is_symlink() else sorted((root / SOLVES).glob("*.value*"))
    if kept := [path for path in there if SOLVED_FILE.fullmatch(path.name)]:
        size = sum(path.lstat().st_size for path in kept)
        yield [Removable(root / SOLVES, tuple(path.name for path in kept), size, "frames of solves, kept for the next cook", True)]
    folders = [root] if newest == root else list_revisions(root)
    for folder in folders:
        files = Folder(folder)
        manifest = read_manifest(files)
        if manifest is None:
            continue
        lock = FolderLock(folder)
        try:
            if old_revisions and folder != newest:
                yield [_old(folder, Revision(folder, manifest, lock))]
                continue
            surplus = Revision(folder, manifest, lock).surplus_checkpoints(every=keep_every)
            left = [path.relative_to(folder).as_posix() for path in temporary_files(folder)]
            yield [
                *(Removable(folder, (name,), files.size(name) or 0, "temporary file of a dead cook") for name in left),
                *(Removable(folder, (name,), files.size(name) or 0, "checkpoint beyond retention") for name in surplus),
            ]
        finally:
            lock.release()


def _old(folder: Path, revision: Revision) -> Removable:
    """Return what a cook has left in a revision: what its records name, its pictures, and its own files."""
    files = revision.files
    ours = {"cook.lock", "cook.json", *(path.relative_to(folder).as_posix() for path in temporary_files(folder))}
    for frame in revision.committed():
        record = revision.record(frame) or {"files": {}}
        ours |= {revision.record_name(frame), *record["files"]}
    ours |= {f"checkpoints/{name}" for name in files.names("checkpoints") if STATE.fullmatch(name)}
    found = [(Path(base) / name).relative_to(folder).as_posix() for base, _, names in os.walk(folder) for name in names]
    ours |= {name for name in found if name.endswith((".png", ".json")) and name not in ours and _is_drawn(files, name)}
    there = [name for name in found if name in ours]
    why = "older revision" + (
        f"; {len(found) - len(there)} files in it that are not the cook's stay" if len(found) > len(there) else ""
    )
    return Removable(folder, tuple(there), sum(files.size(name) or 0 for name in there), why, True)


def _is_drawn(files: Folder, name: str) -> bool:
    """Whether a file is a picture that `mpm-nodes render` has drawn, or the figures of a sample beside it."""
    try:
        data = files.read(name)
    except (OSError, OutputError, ValueError):
        return False
    if name.endswith(".json"):
        return holds_json(data, lambda found: {"sample", "figures", "seconds_by_frame"} <= set(found))
    return data.startswith(b"\x89PNG") and b"tEXtmpm_nodes\0" in data
