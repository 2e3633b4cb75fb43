"""Nodes of surface tension that fields have taken the place of."""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.physics.contract import RetiredNode
from mpm_nodes.physics.retired_nodes import Record, attribute, chosen, given, primvar_field, vdb_field

__all__ = ["RETIRED"]


def _set_concentration(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return {"": attribute("concentration", inputs, knobs.get("concentration", 1.0))}


def _set_tension_scale(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return {"": attribute("tension_scale", inputs, knobs.get("scale", 0.5))}


def _factor(knobs: Record, field: Record) -> dict[str, Record]:
    """Return a field of factors, as the node "field": of a mask by a ramp from `outside` to `painted`."""
    outside = knobs.get("outside", 1.0)
    if knobs.get("values", "factor") == "mask":
        ends = {"from_value": outside, "to_value": knobs.get("painted", 0.5)}
        return {"mask": field, "field": {"type": "field_ramp", "knobs": ends, "inputs": {"field": ".mask"}}}
    field["knobs"]["outside"] = outside
    return {"field": field}


def _set_tension_scale_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return _factor(knobs, vdb_field(knobs, "tension_scale", version)) | {"": attribute("tension_scale", inputs, field=".field")}


def _set_tension_scale_usd(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    offset = knobs.get("frame", 1.0) - start
    field = primvar_field(knobs, "tension_scale", ("outside", "frame_offset"), frame_offset=offset, animated=False)
    return _factor(knobs, field) | {"": attribute("tension_scale", inputs, field=".field")}


def _tension_field_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    made = _factor(knobs, vdb_field(knobs, "tension_scale", version))
    return made | {"": {"type": "tension_field", "inputs": {"field": ".field"}}}


def _ratio(angle: Any) -> Any:
    """Return k_SL / k_LG of an angle [degrees], or of each key of one."""
    if isinstance(angle, dict):
        return {"keys": [[frame, _ratio(value), mode] for frame, value, mode in angle["keys"]]}
    return -math.cos(math.radians(angle))


def _wetted(knobs: Record, inputs: Record, field: Record) -> dict[str, Record]:
    outside, values = knobs.get("outside", 90.0), knobs.get("values", "angle")
    made = {"field": field}
    if values == "mask":
        ends = {"from_value": _ratio(outside), "to_value": _ratio(knobs.get("painted", 30.0))}
        made = {"mask": field, "field": {"type": "field_ramp", "knobs": ends, "inputs": {"field": ".mask"}}}
    else:
        field["knobs"]["outside"] = outside if values == "angle" else _ratio(outside)
    of_collider = {"angle": outside, "values": "angle" if values == "angle" else "ratio", **chosen(knobs, "hysteresis")}
    wires = {**given(inputs, "collider"), "field": ".field"}
    return made | {"": {"type": "collider_contact_angle", "knobs": of_collider, "inputs": wires}}


def _collider_contact_angle_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return _wetted(knobs, inputs, vdb_field(knobs, "contact_angle", version, edge="spread"))


def _collider_contact_angle_usd(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return _wetted(knobs, inputs, primvar_field(knobs, "contact_angle", ("outside",)))


_GRID, _SEQUENCE = ("path", "grid", "outside", "translate", "scale"), ("sequence", "interpolation", "frame_offset")
_MESH, _PAINT = ("path", "prim", "primvar", "outside"), ("values", "painted")
RETIRED = {
    "set_concentration": RetiredNode(_set_concentration, ("concentration",), ("particles",)),
    "set_tension_scale": RetiredNode(_set_tension_scale, ("scale",), ("particles",)),
    "set_tension_scale_vdb": RetiredNode(_set_tension_scale_vdb, (*_GRID, *_PAINT), ("particles",)),
    "set_tension_scale_usd": RetiredNode(_set_tension_scale_usd, (*_MESH, *_PAINT, "frame"), ("particles",)),
    "tension_field_vdb": RetiredNode(_tension_field_vdb, (*_GRID, *_SEQUENCE, *_PAINT)),
    "collider_contact_angle_vdb": RetiredNode(_collider_contact_angle_vdb, (*_GRID, *_PAINT, "hysteresis"), ("collider",)),
    "collider_contact_angle_usd": RetiredNode(
        _collider_contact_angle_usd, (*_MESH, *_PAINT, "frame_offset", "hysteresis"), ("collider",)
    ),
}
