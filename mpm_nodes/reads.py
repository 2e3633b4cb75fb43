"""What a library reads at this moment, told to the process that waits for this one.

A library that crashes in a file, or never comes back from it, can tell nothing. So the name of the file is written down before it
is read, where the supervisor finds it afterwards.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from collections.abc import Iterator

__all__ = ["follow", "go_on", "new_mark", "now_read", "reading"]

_HEAD = struct.Struct("<qI")
LONGEST = 1000
"""Bytes of a name that are kept."""
_mark: int | None = None
_held: list[object] = []
_begun = 0


def new_mark() -> int:
    """Return the handle of a new mark, for a child and the process that started it.

    Raises:
        OSError: There is no room for it.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mpm_nodes_reads")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def follow(mark: int) -> None:
    """Write down from now on what this process reads; `mark` was inherited, and its own children do not get it."""
    global _mark
    os.set_inheritable(mark, False)
    _mark = mark


@contextlib.contextmanager
def reading(name: object) -> Iterator[None]:
    """Say that a library reads `name` inside the block; of blocks in blocks the innermost counts."""
    _held.append(name)
    _write()
    try:
        yield
    finally:
        _held.pop()
        _write()


def go_on() -> None:
    """Say that the library came back, and reads on of the same: a loop over frames is none that never ends."""
    if _held:
        _write()


def _write() -> None:
    global _begun
    if _mark is not None:
        _begun += 1
        text = str(_held[-1]).encode("utf-8", "backslashreplace")[:LONGEST] if _held else b""
        with contextlib.suppress(OSError):  # a full disk: the supervisor then knows less
            os.pwrite(_mark, _HEAD.pack(_begun, len(text)) + text, 0)


def now_read(mark: int) -> tuple[int, str]:
    """Return which reading, counted from the first, a mark tells of, and the name of what is read: "" where nothing is."""
    held = os.pread(mark, _HEAD.size + LONGEST, 0)
    if len(held) < _HEAD.size:
        return 0, ""
    begun, length = _HEAD.unpack_from(held)
    return begun, held[_HEAD.size : _HEAD.size + length].decode("utf-8", "replace")
