"""Where published values live: frozen in memory up to a limit in bytes, and on disk when a folder is given.

Keys are lineage keys: they say how a value came about, so an entry can be dropped at any time and never goes stale.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.archive import read_archive, write_archive

__all__ = ["ABSENT", "DiskStore", "MemoryStore", "freeze", "size_in_bytes"]

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT", "__doc__": "Answer of a store without the value."})()
_ENTRY_BYTES = 256
_STORED = re.compile(r"[^.]+\.\w+\.value")
"""Names of the files of a `DiskStore`; others in its folder are someone's."""


def freeze(value: Any) -> Any:
    """Make every array in `value` (in tuples, mappings and dataclasses, however deep) read-only; return `value`."""
    for array in _arrays(value):
        array.setflags(write=False)
    return value


def size_in_bytes(value: Any) -> int:
    """Return the bytes that `value` holds: its own `nbytes`, else what its parts hold, each counted once.

    A view counts with the whole array that it keeps alive.
    """
    held: dict[int, int] = {}
    for part in _parts(value):
        while isinstance(part, np.ndarray) and isinstance(part.base, np.ndarray):
            part = part.base
        held[id(part)] = sys.getsizeof(part) if isinstance(part, (str, bytes)) else int(part.nbytes)
    return sum(held.values()) + _ENTRY_BYTES


def _parts(value: Any, depth: int = 16) -> Iterator[Any]:
    """Yield the arrays, texts, and objects that know their `nbytes`, in `value`."""
    if isinstance(value, (str, bytes)) or isinstance(getattr(value, "nbytes", None), (int, np.integer)):
        yield value
    elif depth and isinstance(value, Mapping):
        for item in value.values():
            yield from _parts(item, depth - 1)
    elif depth and isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from _parts(item, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for entry in dataclasses.fields(value):
            yield from _parts(getattr(value, entry.name, None), depth - 1)


def _arrays(value: Any, depth: int = 16) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif depth and isinstance(value, Mapping):
        for item in value.values():
            yield from _arrays(item, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for entry in dataclasses.fields(value):
            yield from _arrays(getattr(value, entry.name, None), depth - 1)


class MemoryStore:
    """Values by key; beyond `limit` bytes the least recently used are dropped. May be used from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int, int]] = OrderedDict()  # value, bytes, round of its last use
        self._round = 0
        self._guard = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """Return the value of `key`, or `ABSENT`."""
        with self._guard:
            if key not in self._entries:
                return ABSENT
            value, size, _ = self._entries[key]
            self._entries[key] = (value, size, self._round)
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: Any, size: int | None = None) -> None:
        """Keep `value`, of `size` bytes (counted when None); one larger than the whole limit is not kept."""
        size = size_in_bytes(value) if size is None else size + _ENTRY_BYTES
        with self._guard:
            self.held -= self._entries.pop(key, (None, 0, 0))[1]
            if size > self.limit:
                return
            self._entries[key] = (value, size, self._round)
            self.held += size
            while self.held > self.limit:
                _, (_, dropped, _) = self._entries.popitem(last=False)
                self.held -= dropped

    def drop_unused(self) -> None:
        """Drop what was neither put nor asked for since the last call."""
        with self._guard:
            for key in [key for key, (_, _, used) in self._entries.items() if used < self._round]:
                self.held -= self._entries.pop(key)[1]
            self._round += 1

    def clear(self) -> None:
        """Drop everything."""
        with self._guard:
            self._entries.clear()
            self.held = 0

    def __len__(self) -> int:
        return len(self._entries)


class DiskStore:
    """Values that have `to_arrays` and `from_arrays`, one file each, oldest use dropped first beyond `limit` bytes.

    It is a convenience: a file that cannot be written or read back counts as absent, and damaged files are removed.
    """

    SUFFIX = ".value"

    def __init__(self, folder: Path, limit: int = 4 << 30) -> None:
        self.folder = folder
        self.limit = limit

    def _path(self, key: str, port: str) -> Path:
        return self.folder / f"{key}.{port}{self.SUFFIX}"

    def get(self, key: str, port: str, kind: Any) -> Any:
        """Return the value of one port, rebuilt by `kind.from_arrays`, or `ABSENT`."""
        path = self._path(key, port)
        if not hasattr(kind, "from_arrays") or path.is_symlink() or not path.is_file():  # what a link leads to is someone else's
            return ABSENT
        try:
            header, arrays = read_archive(path)
            if header["format"] != getattr(kind, "STATE_FORMAT", 1) or header["of"] != path.name:  # a copy under another name
                return ABSENT
            value = kind.from_arrays(header["facts"], arrays)
            os.utime(path)
        except (InputError, KeyError, TypeError, ValueError):
            with contextlib.suppress(OSError):
                path.unlink()
            return ABSENT
        except OSError:
            return ABSENT
        return freeze(value)

    def put(self, key: str, port: str, value: Any) -> bool:
        """Keep the value when it can be stored; return whether it was."""
        if not hasattr(value, "to_arrays") or size_in_bytes(value) > self.limit:
            return False
        path = self._path(key, port)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            facts, arrays = value.to_arrays()
            temporary.unlink(missing_ok=True)  # a link of that name is not followed
            write_archive(temporary, {"format": getattr(value, "STATE_FORMAT", 1), "of": path.name, "facts": facts}, arrays)
            os.replace(temporary, path)
            self._trim()
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            return False
        return True

    def _trim(self) -> None:
        found = [path for path in self.folder.glob(f"*{self.SUFFIX}") if _STORED.fullmatch(path.name)]
        files = sorted((path.lstat().st_mtime, path.lstat().st_size, path) for path in found)
        excess = sum(size for _, size, _ in files) - self.limit
        for _, size, path in files:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
