"""The .vdb container, without the OpenVDB library: check a file's table of grids, and stamp it with its own digest.

Layout (OpenVDB io/Archive.cc, file versions 220 and later), little-endian:
    0 int64 magic 0x56444220 · 8 uint32 file version · 12 uint32 major · 16 uint32 minor · 20 uint8 has grid offsets
    21 char[36] UUID · 57 metadata map · int32 grid count · per grid: string name, string type, string instance parent,
    int64 grid, block and end position, then the grid itself up to its end position.
    string = uint32 length + bytes; metadata map = uint32 count of (string name, string type, uint32 size + bytes).
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mpm_nodes.data import InputError
from mpm_nodes.regular_files import open_regular
from usd_io.formats import refuse_unless_vdb

__all__ = ["GridEntry", "grid_table", "has_own_digest", "stamp_digest", "verify_digest"]

MAGIC = 0x56444220
OLDEST_VERSION = 220
UUID_START, UUID_END = 21, 57
OWN_MARK = "6d706d6e"  # "mpmn": first eight digits of the UUID of files that carry their digest
LARGEST_STRING = 1 << 20
LARGEST_GRID_COUNT = 100_000


@dataclass(frozen=True)
class GridEntry:
    """One row of the table of grids: name, type ("Tree_float_5_4_3", "..._HalfFloat"), end position [bytes]."""

    name: str
    type: str
    end: int


class _Cursor:
    """Reads bounded pieces of the header; running out of bytes is an `InputError`."""

    def __init__(self, stream: BinaryIO, path: Path, size: int) -> None:
        self.stream, self.path, self.size = stream, path, size

    def take(self, count: int) -> bytes:
        data = self.stream.read(count) if count <= self.size else b""
        if len(data) != count:
            raise damaged(self.path, "ends inside its header")
        return data

    def number(self, form: str) -> int:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def string(self) -> str:
        length = self.number("I")
        if length > LARGEST_STRING:
            raise damaged(self.path, f"holds a name of {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def skip_metadata(self) -> None:
        for _ in range(self.number("I")):
            self.string()
            self.string()
            self.take(self.number("I"))


def damaged(path: Path, what: str) -> InputError:
    """Return the error for a file that cannot be trusted; `what` continues "the file ..."."""
    return InputError(f"{path}: not a whole OpenVDB file: it {what}; write it again, or copy it again from its source")


def grid_table(path: str | Path) -> tuple[GridEntry, ...]:
    """Return the grids that a .vdb file claims to hold, after checking that every one of them ends inside the file.

    Raises:
        InputError: Missing or unreadable file, not OpenVDB, too old, damaged header, truncated, or no grids.
    """
    path = Path(path)
    try:
        with open_regular(path) as stream:
            return _grid_table(_Cursor(stream, path, os.fstat(stream.fileno()).st_size))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read: {reason}; check the path and its permissions") from error


def _grid_table(cursor: _Cursor) -> tuple[GridEntry, ...]:
    path = cursor.path
    if cursor.size == 0:
        raise damaged(path, "is empty")
    if cursor.size < 8 or cursor.number("q") != MAGIC:
        refuse_unless_vdb(path)
        raise damaged(path, "does not begin with OpenVDB's magic number")
    version = cursor.number("I")
    if not OLDEST_VERSION <= version < 1000:
        raise InputError(
            f"{path}: OpenVDB file version {version}; {OLDEST_VERSION} and later are read: save it again with a current program"
        )
    cursor.take(8)
    if cursor.number("B") != 1:
        raise InputError(f"{path}: an OpenVDB stream without a table of grids; save it as a file")
    cursor.take(UUID_END - UUID_START)
    cursor.skip_metadata()
    count = cursor.number("i")
    if not 0 <= count <= LARGEST_GRID_COUNT:
        raise damaged(path, f"claims {count} grids")
    entries = []
    for _ in range(count):
        name, kind = cursor.string(), cursor.string()
        cursor.string()
        first, block, end = cursor.number("q"), cursor.number("q"), cursor.number("q")
        here = cursor.stream.tell()
        if not here <= first <= block <= end:
            raise damaged(path, f"places grid {name!r} at impossible positions")
        if end > cursor.size:
            raise damaged(path, f"ends at byte {cursor.size}, but its grid {name!r} needs {end}")
        # Unique names are stored as name, record separator, number.
        entries.append(GridEntry(name.split("\x1e")[0], kind, end))
        cursor.stream.seek(end)
    if not entries:
        raise InputError(f"{path}: holds no grids; write at least one grid into it")
    return tuple(entries)


def stamp_digest(path: str | Path) -> str:
    """Overwrite the random UUID of a .vdb file with a digest of its other bytes: equal grids then give equal files.

    The file is not synced: whoever gives it its final name does that.
    """
    digest = _digest(Path(path))
    with open(path, "r+b") as stream:
        stream.seek(UUID_START)
        stream.write(digest.encode("ascii"))
    return digest


def has_own_digest(path: str | Path) -> bool:
    """Return whether the file carries a digest in place of a random UUID (then it was written by us)."""
    return _stored_uuid(Path(path)).startswith(OWN_MARK)


def verify_digest(path: str | Path) -> None:
    """Check a stamped file against its digest; files of other programs pass.

    Raises:
        InputError: The bytes are not those that were written.
    """
    path = Path(path)
    if has_own_digest(path) and _stored_uuid(path) != _digest(path):
        raise damaged(path, "differs from the digest that was stored with it")


def _stored_uuid(path: Path) -> str:
    with open_regular(path) as stream:
        stream.seek(UUID_START)
        return stream.read(UUID_END - UUID_START).decode("ascii", "replace")


def _digest(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as stream:
        sha.update(stream.read(UUID_START))
        stream.seek(UUID_END)
        while chunk := stream.read(1 << 22):
            sha.update(chunk)
    d = OWN_MARK + sha.hexdigest()[:24]
    # Version digit 8 ("custom") and variant digit 8 keep it a valid UUID.
    return f"{d[:8]}-{d[8:12]}-8{d[13:16]}-8{d[17:20]}-{d[20:32]}"
