"""Packed digital assets: one binary .hda file instead of a folder.

The format is not documented. What is written here was read off public files: 707 operators in 401 packed libraries come out of
`read` and go back byte for byte through `container`, and of a Python asset that its authors published packed and then expanded,
the index, the sections and their options are those that this module writes. All numbers are big-endian.

```
container   "INDX", 0 (u32), 0 (u32), entries (u32), then for each: name, offset (u32), size (u32), Unix time (u32); then the bytes
library     a container of INDEX_SECTION, houdini.hdalibrary (empty) and one container for each operator, of its sections
name        length (u32) and bytes
```
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mpm_nodes.data import InputError
from mpm_nodes.hosts.houdini.sections import Option, encoded, index_text, options_text, sections_list

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


# ---------------------------------------------------------------- reading
def read(raw: bytes, place: str = "packed asset") -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the entries of a container and their Unix times.

    Raises:
        InputError: The bytes are not container, or one that was cut off.
    """
    try:
        if raw[:4] != MAGIC:
            raise InputError(f"{place}: begins with {raw[:4]!r}, a packed asset with {MAGIC!r}; give another file")
        count, at = struct.unpack_from(">III", raw, 4)[2], 16
        found, times = {}, {}
        for _ in range(count):
            length = struct.unpack_from(">I", raw, at)[0]
            name = raw[at + 4 : at + 4 + length].decode()
            found[name] = struct.unpack_from(">II", raw, at + 4 + length)
            times[name] = struct.unpack_from(">I", raw, at + 12 + length)[0]
            at += 16 + length
    except (struct.error, UnicodeDecodeError) as error:
        raise InputError(f"{place}: is cut off or damaged ({error}); write it again") from error
    if any(at + offset + size > len(raw) for offset, size in found.values()):
        raise InputError(f"{place}: is cut off at {len(raw)} bytes; write it again")
    return {name: raw[at + offset : at + offset + size] for name, (offset, size) in found.items()}, times


def expand(raw: bytes, place: str) -> dict[str, bytes]:
    """Return a packed library as the files of an expanded one: bytes by path.

    Raises:
        InputError: It is damaged, or no packed library.
    """
    entries, _ = read(raw, place)
    try:
        files = {"INDEX__SECTION": _index_text(entries[INDEX]).encode()}
        for name, content in entries.items():
            if name in (INDEX, MARKER):
                continue
            sections, _ = read(content, f"{place}: {name}")
            sections[OPTIONS] = _options_text(sections[OPTIONS]).encode()
            files |= {f"{encoded(name)}/{encoded(section)}": text for section, text in sections.items()}
            files[f"{encoded(name)}/Sections.list"] = sections_list({encoded(each): each for each in sections}).encode()
    except (KeyError, struct.error, UnicodeDecodeError) as error:
        raise InputError(f"{place}: is not a packed library, or damaged ({error}); write it again") from error
    own_names = {INDEX: "INDEX__SECTION", MARKER: MARKER}
    files["Sections.list"] = sections_list({own_names.get(name, encoded(name)): name for name in entries}).encode()
    return files | ({MARKER: entries[MARKER]} if MARKER in entries else {})


def _index_text(raw: bytes) -> str:
    """Return the INDEX__SECTION of the records in a binary one."""
    (count,), at, found = struct.unpack_from(">I", raw), 4, []
    for _ in range(count):
        version, texts = struct.unpack_from(">I", raw, at)[0], []
        at += 4
        for _ in range(11):
            length = struct.unpack_from(">I", raw, at)[0]
            texts.append(raw[at + 4 : at + 4 + length].decode())
            at += 4 + length
        low, high, modified, *flags = struct.unpack_from(">III3B", raw, at)
        at += 15 if version < 5 else 19
        subnet, empty, python = (str(bool(flag)).lower() for flag in flags)
        names = dict(zip(("Operator", "Label", "Path", "Icon"), texts, strict=False))
        unused = {"License": "", "Extra": "", "User": ""}
        facts = {"Inputs": f"{low} to {high}", "Subnet": subnet, "Python": python, "Empty": empty}
        found.append(index_text({**names, "Table": texts[6], **unused, **facts, "Modified": time.asctime(time.gmtime(modified))}))
    return "".join(found)


def _options_text(raw: bytes) -> str:
    """Return ExtraFileOptions as JSON."""
    (count,), at = struct.unpack_from(">I", raw), 4
    options: dict[str, Option] = {}
    for _ in range(count):
        name, at = _short(raw, at)
        kind, at = struct.unpack_from(">I", raw, at)[0], at + 4
        if kind == STRING:
            options[name], at = _short(raw, at)
        elif kind == BOOL:
            options[name], at = bool(struct.unpack_from(">I", raw, at)[0]), at + 4
        else:
            size = struct.unpack_from(">Q", raw, at)[0]
            options[name], at = list(struct.unpack_from(f">{size}Q", raw, at + 8)), at + 8 + 8 * size
    return options_text(options)


def _short(raw: bytes, at: int) -> tuple[str, int]:
    """Return a text with a length of two bytes, and the place behind it."""
    length = struct.unpack_from(">H", raw, at)[0]
    return raw[at + 2 : at + 2 + length].decode(), at + 2 + length
