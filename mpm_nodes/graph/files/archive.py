"""One file for a value made of arrays: a JSON header, the raw arrays, a SHA-256. No code, no pickle.

A value takes part by having two methods::

    def to_arrays(self) -> tuple[dict, dict[str, np.ndarray]]: ...      # JSON-able facts, and arrays
    @classmethod
    def from_arrays(cls, facts: dict, arrays: dict[str, np.ndarray]): ...

Layout of the file, little-endian: MAGIC, length of the header (8 bytes), header, arrays (each at a multiple of 64),
SHA-256 of all before.
The header names no class: who reads the file knows from the graph which class it asked for.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError

__all__ = ["read_archive", "rebuilt", "write_archive"]

MAGIC = b"mpm_nodes arrays 1\n"
_ALIGN = 64
_PIECE = 1 << 20
_KINDS = "biuf"
_DIGEST_BYTES = 32
MOST_PARTS = 1 << 16
"""Ranks that may have written parts of one value."""
_LARGEST_HEADER = 64 << 20


class _HashedFile:
    """A new file whose bytes are digested on their way: every byte is copied, hashed and written once.

    Writing past the page cache takes a buffer that starts on a page and pieces of whole pages. It saves a copy and,
    where memory is handed out page by page (a virtual machine), most of the time; file systems that do not know it get
    ordinary writes.
    """

    def __init__(self, path: Path, cached: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._direct = 0 if cached else getattr(os, "O_DIRECT", 0)
        try:
            self._handle = os.open(path, flags | self._direct, 0o666)
        except OSError as error:
            if not self._direct or error.errno != errno.EINVAL:
                raise
            self._direct = 0
            self._handle = os.open(path, flags, 0o666)
        self.digest = hashlib.sha256()
        self.position = 0
        self._buffer = mmap.mmap(-1, _PIECE)  # starts on a page
        self._view = np.frombuffer(self._buffer, np.uint8)
        self._held = 0

    def write(self, data: np.ndarray) -> None:
        """Append bytes, shape (n,), uint8."""
        done = 0
        while done < len(data):
            piece = data[done : done + _PIECE - self._held]
            self._view[self._held : self._held + len(piece)] = piece
            self._held += len(piece)
            done += len(piece)
            if self._held == _PIECE:
                self._flush()
        self.position += len(data)

    def pad(self) -> None:
        """Append zeros up to the next multiple of the alignment."""
        self.write(np.zeros(-self.position % _ALIGN, np.uint8))

    def finish(self) -> str:
        """Append the digest of all before, and return the digest of the whole file."""
        self._flush()
        self.write(np.frombuffer(self.digest.digest(), np.uint8))
        self._flush()
        return self.digest.hexdigest()

    def close(self) -> None:
        os.close(self._handle)

    def _flush(self) -> None:
        held, self._held = self._view[: self._held], 0
        self.digest.update(held.data)
        if len(held) % mmap.PAGESIZE:
            self._leave_direct()
        while len(held):
            try:
                held = held[os.write(self._handle, held.data) :]
            except OSError as error:
                if not self._direct or error.errno != errno.EINVAL:
                    raise
                self._leave_direct()

    def _leave_direct(self) -> None:
        if self._direct:
            import fcntl

            fcntl.fcntl(self._handle, fcntl.F_SETFL, fcntl.fcntl(self._handle, fcntl.F_GETFL) & ~self._direct)
            self._direct = 0


def write_archive(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, cached: bool = True) -> str:
    """Write `facts` and `arrays` to `path`; return the SHA-256 of the file as hex.

    Args:
        path: File to write, replaced when it exists.
        facts: JSON-able facts.
        arrays: Numbers or booleans, of any shape; rows that lie apart in memory are not copied together first.
        cached: Whether the file will soon be read again; else it goes past the operating system's cache where it can.
    """
    columns: dict[str, np.ndarray] = {}
    table = []
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"array {name!r} has dtype {array.dtype}; only booleans and numbers can be stored")
        columns[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
        table.append({"name": name, "dtype": columns[name].dtype.str, "shape": list(array.shape)})
    header = json.dumps({"facts": facts, "arrays": table}, sort_keys=True, allow_nan=True).encode()
    out = _HashedFile(path, cached)
    try:
        out.write(np.frombuffer(MAGIC + len(header).to_bytes(8, "little") + header, np.uint8))
        for column in columns.values():
            out.pad()
            for part in _contiguous_parts(column):
                out.write(part.reshape(-1).view(np.uint8))
        return out.finish()
    finally:
        out.close()


def _contiguous_parts(array: np.ndarray) -> list[np.ndarray]:
    """Return the array as pieces that lie together in memory: itself, its rows where those are long, else a copy."""
    if array.flags.c_contiguous or not array.size:
        return [array]
    rows_are_long = array.ndim > 1 and array[0].flags.c_contiguous and array[0].nbytes >= mmap.PAGESIZE
    return list(array) if rows_are_long else [np.ascontiguousarray(array)]


def read_archive(path: Path, stream: BinaryIO | None = None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the arrays (fresh, writable) of `path`, from `stream` where the file is open already.

    Raises:
        InputError: The file is missing, damaged, cut short, or no such archive.
    """
    try:
        data = np.fromfile(path if stream is None else stream, np.uint8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    body = memoryview(data.data)[:-_DIGEST_BYTES] if len(data) > _DIGEST_BYTES else memoryview(b"")
    start = len(MAGIC) + 8
    if bytes(body[: len(MAGIC)]) != MAGIC:
        raise InputError(f"{path}: is not an archive of arrays that this version can read")
    if hashlib.sha256(body).digest() != data[-_DIGEST_BYTES:].tobytes():
        raise InputError(f"{path}: is damaged or cut short (its checksum does not match)")
    length = int.from_bytes(body[len(MAGIC) : start], "little")
    try:
        if not 0 < length <= min(_LARGEST_HEADER, len(body) - start):
            raise ValueError("header length")
        header = json.loads(bytes(body[start : start + length]))
        return header["facts"], _arrays(data[: len(body)], start + length, header["arrays"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: has a header that does not describe its arrays ({error})") from error


def rebuilt(path: Path, kind: Any, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], cure: str) -> tuple[Any, int]:
    """Return a value that was written with `checkpoints.header_of`, by `kind.from_arrays`, and how many parts there are of it.

    Args:
        path: The file, for messages.
        kind: Class of the value.
        header: Facts of the file.
        arrays: Its arrays.
        cure: What to do where it holds something else.

    Raises:
        InputError: It does.
    """
    expected = getattr(kind, "STATE_FORMAT", 1)
    held = header.get("format") if isinstance(header, dict) else None
    if held != expected:
        raise InputError(f"{path}: holds state format {held}, this version reads {expected}; {cure}")
    try:
        parts = header.get("parts", 1)
        if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
            raise ValueError(f"{parts!r} parts")
        if not isinstance(header["facts"], dict):
            raise ValueError("no facts")
        return kind.from_arrays(header["facts"], arrays), parts
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, MpmNodesError) as error:
        raise InputError(f"{path}: does not hold what it should ({type(error).__name__}: {error}); {cure}") from error


def _arrays(data: np.ndarray, position: int, table: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    arrays = {}
    for entry in table:
        dtype = np.dtype(str(entry["dtype"]))
        shape = tuple(int(length) for length in entry["shape"])
        if dtype.kind not in _KINDS or any(length < 0 for length in shape):
            raise ValueError(f"array {entry['name']!r}")
        position += -position % _ALIGN
        size = math.prod(shape) * dtype.itemsize
        if position + size > len(data):
            raise ValueError(f"array {entry['name']!r} is longer than the file")
        arrays[str(entry["name"])] = data[position : position + size].copy().view(dtype).reshape(shape)
        position += size
    return arrays
