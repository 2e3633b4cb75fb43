"""Packed digital assets: one binary .hda file instead of a folder.

The format is not documented. What is written here was read off public files: 707 operators in 401 packed libraries go back byte for
byte through `container`, and of a Python asset that its authors published packed and then expanded, the index, the sections and
their options are those that this module writes. All numbers are big-endian.

```
container   "INDX", 0 (u32), 0 (u32), entries (u32), then for each: name, offset (u32), size (u32), Unix time (u32); then the bytes
library     a container of INDEX_SECTION, houdini.hdalibrary (empty) and one container for each operator, of its sections
name        length (u32) and bytes
```
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from mpm_nodes.hosts.houdini.sections import Option

MAGIC = b"INDX"
INDEX, MARKER, OPTIONS = "INDEX_SECTION", "houdini.hdalibrary", "ExtraFileOptions"
MODIFIED = 1767225600
"""Unix time of 1 January 2026, in every entry: a real time would make equal assets differ."""
RECORD_VERSION = 4
"""Of the records in the index; 5 adds a number for several outputs."""
BOOL, STRING, INTEGERS = 1, 3, 13
"""Types of options."""


@dataclass(frozen=True)
class IndexRecord:
    """What the index says about one Python SOP.

    Attributes:
        operator: Full name, "a::b::1.0".
        label: Name that artists see.
        type_path: The operator with its table, "a::Sop/b::1.0".
        icon: Where the icon is.
        inputs: Least and greatest number of inputs.
    """

    operator: str
    label: str
    type_path: str
    icon: str
    inputs: tuple[int, int]


def library(record: IndexRecord, sections: Mapping[str, bytes], options: Mapping[str, Option]) -> bytes:
    """Return a packed library of one Python SOP with these sections; `options` go into ExtraFileOptions."""
    operator = container({**sections, OPTIONS: extra_file_options(options)})
    return container({INDEX: index_section(record), MARKER: b"", record.type_path: operator})


def container(entries: Mapping[str, bytes], times: Mapping[str, int] | None = None) -> bytes:
    """Return named bytes as one block; `times` are the entries' Unix times, `MODIFIED` where there is none."""
    table, offset = [MAGIC, struct.pack(">III", 0, 0, len(entries))], 0
    for name, raw in entries.items():
        table += [_text(name), struct.pack(">III", offset, len(raw), (times or {}).get(name, MODIFIED))]
        offset += len(raw)
    return b"".join([*table, *entries.values()])


def index_section(record: IndexRecord) -> bytes:
    """Return INDEX_SECTION with one record.

    After the table come Extra, User and others that are empty here; the last three bytes are Subnet, Empty and Python.
    """
    path = f"oplib:/{record.type_path}?{record.type_path}"
    texts = [record.operator, record.label, path, record.icon, "", "", "Sop", "", "", "", ""]
    head = struct.pack(">II", 1, RECORD_VERSION)
    return head + b"".join(map(_text, texts)) + struct.pack(">III", *record.inputs, MODIFIED) + bytes((0, 0, 1))


def extra_file_options(options: Mapping[str, Option]) -> bytes:
    """Return ExtraFileOptions: {"SECTION/OPTION": value}."""
    parts = [struct.pack(">I", len(options))]
    for name, value in options.items():
        parts.append(_short_text(name))
        if isinstance(value, bool):
            parts.append(struct.pack(">II", BOOL, value))
        elif isinstance(value, str):
            parts.append(struct.pack(">I", STRING) + _short_text(value))
        else:
            parts.append(struct.pack(f">IQ{len(value)}Q", INTEGERS, len(value), *value))
    return b"".join(parts)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">I", len(raw)) + raw


def _short_text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw
