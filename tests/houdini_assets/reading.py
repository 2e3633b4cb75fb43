"""Reads packed digital assets, as `mpm_nodes.hosts.houdini.packed` writes them."""

from __future__ import annotations

import struct
import time

from mpm_nodes.data import InputError
from mpm_nodes.hosts.houdini.packed import BOOL, INDEX, MAGIC, MARKER, OPTIONS, STRING
from mpm_nodes.hosts.houdini.sections import Option, encoded, index_text, options_text, sections_list


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
