"""Binary layers that no program writes: dictionaries and prims nested a hundred thousand deep, put together byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

from pxr import Sdf

MARK = 0x5EED5EED
DICTIONARY, INTEGER, TOKENS, SPECIFIER = 0x1F, 0x03, 0x29, 0x2A
INLINED = 1 << 62


def nested_dictionaries(path: Path, levels: int, field: str = "customLayerData", loop: bool = False) -> Path:
    """Write a mesh whose layer ("customLayerData") or prim (any other field) holds dictionaries in dictionaries.

    OpenUSD writes two of them around a number; the number then gives way to a chain at the end of the file, whose last one holds
    a number, or with `loop` the first.
    """
    layer = Sdf.Layer.CreateNew(str(path), args={"format": "usdc"})
    layer.startTimeCode, layer.endTimeCode = 1, 3
    prim = Sdf.CreatePrimInLayer(layer, "/p")
    prim.specifier, prim.typeName, layer.defaultPrim = Sdf.SpecifierDef, "Mesh", "p"
    facts = {"a": {"a": MARK}}
    if field == "customLayerData":
        layer.customLayerData = facts
    else:
        prim.SetInfo(field, facts)
    layer.Save()
    del layer, prim
    data = bytearray(path.read_bytes())
    number = struct.pack("<Q", MARK | INTEGER << 48 | INLINED)
    at, end = data.index(number), len(data)
    key = struct.unpack_from("<I", data, at - 12)[0]
    first = struct.pack("<Q", end | DICTIONARY << 48)
    data[at : at + 8] = first
    for level in range(1, levels + 1):
        held = struct.pack("<Q", end + 28 * level | DICTIONARY << 48) if level < levels else first if loop else number
        data += struct.pack("<QIq", 1, key, 8) + held
    path.write_bytes(data)
    return path


def nested_prims(path: Path, depth: int) -> Path:
    """Write a layer of prims in prims, as version 0.8 of the format has it."""
    tokens = b"\0specifier\0a\0primChildren\0"
    out, sections = bytearray(88), list[tuple[bytes, int, int]]()
    children = len(out)
    out += struct.pack("<QI4x", 1, 2)

    def section(name: bytes, count: int, *parts: bytes) -> None:
        data = struct.pack("<Q", count) + b"".join(parts)
        sections.append((name, len(out), len(data)))
        out.extend(data)

    fields = [(1, INLINED | SPECIFIER << 48), (3, TOKENS << 48 | children)]
    section(b"TOKENS", 4, struct.pack("<Q", len(tokens)), _packed(tokens))
    section(b"STRINGS", 0)
    section(b"FIELDS", 2, _integers([token for token, _ in fields]), _packed(struct.pack("<2Q", *(value for _, value in fields))))
    section(b"FIELDSETS", 7, _integers([1, -1, 0, 1, -1, 0, -1]))  # of the root, of prims, of the last one
    count = depth + 1
    section(
        b"PATHS",
        count,
        struct.pack("<Q", count),
        *map(_integers, (list(range(count)), [0] + [2] * depth, [-1] * depth + [-2])),
    )
    section(b"SPECS", count, *map(_integers, (list(range(count)), [0] + [2] * (depth - 1) + [5], [7] + [6] * depth)))
    toc = len(out)
    out += struct.pack("<Q", len(sections)) + b"".join(struct.pack("<16sqq", *each) for each in sections)
    out[:24] = b"PXR-USDC" + bytes((0, 8, 0, 0, 0, 0, 0, 0)) + struct.pack("<q", toc)
    path.write_bytes(out)
    return path


def _packed(data: bytes) -> bytes:
    """Return bytes as the format compresses them: one block of LZ4, of literals alone."""
    rest = len(data) - 15
    head = bytes([len(data) << 4]) if rest < 0 else b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255])
    return struct.pack("<Q", len(head) + len(data) + 1) + b"\0" + head + data


def _integers(values: list[int]) -> bytes:
    """Return integers as the format compresses them: the commonest step, two bits for each step, and the steps of other sizes."""
    steps = [after - before for before, after in zip([0, *values], values, strict=False)]
    common = max(set(steps), key=steps.count)
    codes, others = bytearray((2 * len(values) + 7) // 8), b""
    for number, step in enumerate(steps):
        if step != common:
            codes[number // 4] |= 3 << 2 * (number % 4)
            others += struct.pack("<i", step)
    return _packed(struct.pack("<i", common) + codes + others)
