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

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpm_nodes.data import InputError

__all__ = ["read_archive", "write_archive"]

MAGIC = b"mpm_nodes arrays 1\n"
_ALIGN = 64
_KINDS = "biuf"
_DIGEST_BYTES = 32
_LARGEST_HEADER = 64 << 20


class _HashedWriter:
    """Pass bytes on to a file and into a digest."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()
        self.position = 0

    def write(self, data: bytes | memoryview) -> None:
        self.stream.write(data)
        self.digest.update(data)
        self.position += len(data)

    def pad(self) -> None:
        self.write(b"\0" * (-self.position % _ALIGN))


def write_archive(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Write `facts` and `arrays` to `path`; return its SHA-256 as hex. Arrays hold numbers or booleans."""
    columns: dict[str, np.ndarray] = {}
    table = []
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"array {name!r} has dtype {array.dtype}; only booleans and numbers can be stored")
        columns[name] = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        table.append({"name": name, "dtype": columns[name].dtype.str, "shape": list(array.shape)})
    header = json.dumps({"facts": facts, "arrays": table}, sort_keys=True, allow_nan=True).encode()
    with open(path, "wb") as stream:
        out = _HashedWriter(stream)
        out.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for column in columns.values():
            out.pad()
            if column.size:
                out.write(memoryview(column.reshape(-1).view(np.uint8)))
        stream.write(out.digest.digest())
    return out.digest.hexdigest()


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the arrays (fresh, writable) of `path`.

    Raises:
        InputError: The file is missing, damaged, cut short, or no such archive.
    """
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    body = memoryview(data)[:-_DIGEST_BYTES] if len(data) > _DIGEST_BYTES else memoryview(b"")
    start = len(MAGIC) + 8
    if bytes(body[: len(MAGIC)]) != MAGIC:
        raise InputError(f"{path}: is no archive of arrays that this version can read")
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
