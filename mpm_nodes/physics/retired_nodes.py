"""Nodes of today that stand for retired ones in graph files, as records of such a file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["attribute", "chosen", "given", "primvar_field", "vdb_field"]

Record = dict[str, Any]


def chosen(knobs: Record, *names: str, **renamed: str) -> Record:
    """Return the knobs of these names that a file gives, some under another name: `new="old"`."""
    return {name: knobs[name] for name in names if name in knobs} | {
        new: knobs[old] for new, old in renamed.items() if old in knobs
    }


def given(inputs: Record, port: str) -> Record:
    """Return the wire of a port, if it has one."""
    return {port: inputs[port]} if port in inputs else {}


def attribute(name: str, inputs: Record, value: Any = None, field: str = "") -> Record:
    """Return a set_attribute with a number, or with the field of a new node."""
    wires = given(inputs, "particles") | ({"field": field} if field else {})
    return {"type": "set_attribute", "knobs": {"attribute": name} | ({} if field else {"value": value}), "inputs": wires}


def vdb_field(knobs: Record, grid: str, version: int | None, **more: Any) -> Record:
    """Return the field_vdb of a node that read a grid.

    Args:
        knobs: Of that node.
        grid: Which grid, where the knobs name none.
        version: Of that node; with 1 a sequence kept the file of a frame's end over the frame.
        more: Further knobs.
    """
    found = {
        "grid": grid,
        **chosen(knobs, "path", "grid", "sequence", "interpolation", "frame_offset", "translate", "scale"),
        **more,
    }
    if version == 1 and knobs.get("sequence"):
        offset = knobs.get("frame_offset", 0)
        later = {"keys": [[f, n + 1, mode] for f, n, mode in offset["keys"]]} if isinstance(offset, dict) else offset + 1
        found |= {"interpolation": "held", "frame_offset": later}
    return {"type": "field_vdb", "knobs": found}


def primvar_field(knobs: Record, primvar: str, leave_out: Collection[str] = (), **more: Any) -> Record:
    """Return the field_primvar of a node that read a primvar, without some of its knobs."""
    taken = [name for name in ("path", "prim", "primvar", "frame_offset", "outside") if name not in leave_out]
    return {"type": "field_primvar", "knobs": {"primvar": primvar, **chosen(knobs, *taken), **more}}
