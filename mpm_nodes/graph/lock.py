"""One writer at a time: a revision folder is locked through the operating system."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from mpm_nodes.data import OutputError
from mpm_nodes.graph.transaction import output_error, writing

__all__ = ["FolderLock"]


class FolderLock:
    """Holds `cook.lock` through the operating system, which lets go when the process dies."""

    def __init__(self, folder: Path) -> None:
        path = folder / "cook.lock"
        with writing(str(path)):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _take(self._handle)
        except OSError as error:
            holder = os.read(self._handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._handle)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise OutputError(
                    f"{folder}: another cook (process {holder}) is writing it; "
                    "wait for it, or give another folder with --out"
                ) from error
            raise output_error(str(path), error) from error
        with contextlib.suppress(OSError):
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0) if hasattr(os, "pwrite") else None

    def release(self) -> None:
        """Let go; harmless when done twice."""
        if self._handle < 0:
            return
        with contextlib.suppress(OSError):
            os.truncate(self._handle, 0)
        os.close(self._handle)
        self._handle = -1


def _take(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
