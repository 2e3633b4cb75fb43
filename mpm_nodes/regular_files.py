"""Open what a user names as input: regular files only. A pipe or a device would be waited for without end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from mpm_nodes.data import InputError

__all__ = ["check_regular", "check_utf8", "open_regular"]

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))


def open_regular(path: str | Path, cure: str = "check the path and its permissions") -> BinaryIO:
    """Open a regular file for reading; links to one are followed.

    Raises:
        InputError: It is missing, cannot be read, or is a pipe, a device, a socket or a folder.
    """
    path = Path(path)
    try:
        handle = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name, half a character
        raise InputError(f"{shown(path)}: cannot be read ({_reason(error)}); {cure}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{shown(path)}: is not a regular file but {_kind(path)}; give a file")
    return open(handle, "rb")


def check_regular(path: str | Path, cure: str = "check the path and its permissions") -> None:
    """Raise `InputError` when `path` is not a regular file that can be read; for libraries that open it themselves."""
    open_regular(path, cure).close()


def check_utf8(path: str | Path) -> None:
    """Raise `InputError` where a path is not UTF-8: OpenUSD and OpenVDB take no other, wherever the part of it stands."""
    try:
        os.path.abspath(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{shown(path)}: a name in its path is not UTF-8; rename that file or folder") from error


def shown(path: str | Path, longest: int = 200) -> str:
    """Return a path for a message: long ones without their middle, half characters as escapes."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= longest else f"{text[: longest // 2]}...{text[-longest // 2 :]}"


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _kind(path: Path) -> str:
    kinds = (("a folder", path.is_dir), ("a pipe", path.is_fifo), ("a socket", path.is_socket))
    return next((name for name, test in kinds if test()), "a device")
