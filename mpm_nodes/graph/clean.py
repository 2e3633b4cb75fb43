"""What may be deleted below an output root, and how much that frees; nothing is deleted by looking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpm_nodes.graph.lock import FolderLock
from mpm_nodes.graph.revision import (
    KEEP_EVERY,
    Revision,
    latest_revision,
    list_revisions,
    read_manifest,
    temporary_files,
)
from mpm_nodes.graph.transaction import writing

__all__ = ["Removable", "removable"]


@dataclass(frozen=True)
class Removable:
    """Something that `clean` may remove: where, how many bytes, why."""

    path: Path
    bytes: int
    why: str

    def remove(self) -> None:
        """Remove it from disk."""
        with writing(str(self.path)):
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink(missing_ok=True)


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
        manifest = read_manifest(folder)
        if manifest is None:
            continue
        lock = FolderLock(folder)
        try:
            if old_revisions and folder != newest:
                yield [Removable(folder, _folder_bytes(folder), "older revision")]
                continue
            surplus = Revision(folder, manifest, lock).surplus_checkpoints(every=keep_every)
            yield [
                *(
                    Removable(path, path.lstat().st_size, "temporary file of a dead cook")
                    for path in temporary_files(folder)
                ),
                *(Removable(path, path.stat().st_size, "checkpoint beyond retention") for path in surplus),
            ]
        finally:
            lock.release()


def _folder_bytes(folder: Path) -> int:
    return sum((Path(base) / name).lstat().st_size for base, _, names in os.walk(folder) for name in names)
