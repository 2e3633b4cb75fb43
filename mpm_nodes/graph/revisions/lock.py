"""One writer at a time: a revision folder is locked through the operating system."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.transaction import output_error, writing

__all__ = ["FolderLock"]

_WIDTH = 20
_CONTENT = re.compile(rb"\d{0,10} *")


class FolderLock:
    """Holds `cook.lock` through the operating system, which lets go when the process dies.

    The file holds the number of the process, in letters of a fixed count. It is never cut: a file that has its name but other
    content, or a second name, is not a lock of ours and is refused untouched.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "cook.lock"
        with writing(str(path)):
            self._handle = Folder(folder).open("cook.lock", os.O_RDWR | os.O_CREAT, 0o644)
        if os.fstat(self._handle).st_nlink > 1 or not _CONTENT.fullmatch(_read(self._handle)):
            os.close(self._handle)
            raise OutputError(f"{path}: is not a lock file of ours; move it away, or cook without --resume")
        try:
            _take(self._handle)
        except OSError as error:
            holder = _read(self._handle).decode(errors="replace").strip() or "unknown"
            os.close(self._handle)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise OutputError(
                    f"{folder}: another cook (process {holder}) is writing it; wait for it, or give another folder with --out"
                ) from error
            raise output_error(str(path), error) from error
        self._write(str(os.getpid()))

    def release(self) -> None:
        """Let go; harmless when done twice."""
        if self._handle < 0:
            return
        self._write("")
        os.close(self._handle)
        self._handle = -1

    def _write(self, holder: str) -> None:
        with contextlib.suppress(OSError):
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, holder.ljust(_WIDTH).encode())


def _read(handle: int) -> bytes:
    """Return what the lock file holds; empty where another process keeps it from being read (Windows)."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        return os.read(handle, _WIDTH + 1)
    except OSError:
        return b""


def _take(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
