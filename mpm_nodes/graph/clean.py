"""What may be deleted below an output root, and how much that frees; nothing is deleted by looking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpm_nodes.graph.folder import Folder
from mpm_nodes.graph.lock import FolderLock
from mpm_nodes.graph.records import read_manifest
from mpm_nodes.graph.revision import (
    KEEP_EVERY,
    Revision,
    latest_revision,
    list_revisions,
    temporary_files,
)
from mpm_nodes.graph.transaction import writing

__all__ = ["Removable", "removable"]


@dataclass(frozen=True)
class Removable:
    """Something that `clean` may remove: a file below `folder`, or the folder itself where `name` is empty; bytes, and why."""

    folder: Path
    name: str
    bytes: int
    why: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder / self.name

    def remove(self) -> None:
        """Remove it from disk; links are removed themselves, never followed."""
        with writing(str(self.path)):
            if self.name:
                Folder(self.folder).unlink(self.name)
            else:
                shutil.rmtree(self.folder)


def removable(root: Path, old_revisions: bool = False, keep_every: int = KEEP_EVERY) -> Iterator[list[Removable]]:
    """Yield, revision by revision and with the revision locked, what may be removed below an output root.

    Temporary files of dead cooks and checkpoints beyond retention; with `old_revisions`, every revision but the newest.

    Raises:
        InputError: `root` holds no cook.
        OutputError: A cook is writing the revision.
    """
    newest = latest_revision(root)
    folders = [root] if newest == root else list_revisions(root)
    for folder in folders:
        files = Folder(folder)
        manifest = read_manifest(files)
        if manifest is None:
            continue
        lock = FolderLock(folder)
        try:
            if old_revisions and folder != newest:
                yield [Removable(folder, "", _folder_bytes(folder), "older revision")]
                continue
            surplus = Revision(folder, manifest, lock).surplus_checkpoints(every=keep_every)
            left = [path.relative_to(folder).as_posix() for path in temporary_files(folder)]
            yield [
                *(Removable(folder, name, files.size(name) or 0, "temporary file of a dead cook") for name in left),
                *(Removable(folder, name, files.size(name) or 0, "checkpoint beyond retention") for name in surplus),
            ]
        finally:
            lock.release()


def _folder_bytes(folder: Path) -> int:
    return sum((Path(base) / name).lstat().st_size for base, _, names in os.walk(folder) for name in names)
