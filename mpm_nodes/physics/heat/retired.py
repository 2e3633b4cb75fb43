"""Nodes of heat that fields have taken the place of."""

from __future__ import annotations

from mpm_nodes.physics.contract import RetiredNode
from mpm_nodes.physics.retired_nodes import Record, attribute, chosen, given, primvar_field, vdb_field

__all__ = ["RETIRED"]

_ROOM = 293.15
"""What `outside` was where a file gives none [K]."""


def _air_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    outside = {"outside": knobs.get("outside", _ROOM)}
    made = {"field": vdb_field(knobs, "temperature", version, edge="extend", **outside)}
    wires = {"field": ".field"}
    if knobs.get("mask_grid"):
        made["exposure"] = vdb_field({**knobs, "grid": knobs["mask_grid"]}, "", version)
        wires["exposure"] = ".exposure"
    return made | {"": {"type": "air", "knobs": chosen(knobs, "convection"), "inputs": wires}}


def _heat_field_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    made = {"field": vdb_field(knobs, "heat_source", version)}
    return made | {"": {"type": "heat_field", "knobs": chosen(knobs, "strength"), "inputs": {"field": ".field"}}}


def _set_heat_source(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return {"": attribute("heat_source", inputs, knobs.get("source", 1e6))}


def _set_heat_source_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    strength, outside = knobs.get("strength", 1.0), knobs.get("outside", 0.0)
    if outside and not strength:
        raise ValueError("a strength of 0 with an outside")
    shared = {"outside": outside / strength} if outside else {}  # the strength is on the value outside too
    field = vdb_field(knobs, "heat_source", version, **chosen(knobs, "strength"), **shared)
    return {"field": field, "": attribute("heat_source", inputs, field=".field")}


def _set_temperature_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    field = vdb_field(knobs, "temperature", version, edge="extend", outside=knobs.get("outside", _ROOM))
    return {"field": field, "": attribute("temperature", inputs, field=".field")}


def _tempered(knobs: Record, inputs: Record, field: Record) -> dict[str, Record]:
    of_collider = chosen(knobs, "conductance", "held", temperature="outside")
    wires = {**given(inputs, "collider"), "field": ".field"}
    return {"field": field, "": {"type": "collider_temperature", "knobs": {"temperature": _ROOM, **of_collider}, "inputs": wires}}


def _collider_temperature_vdb(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    outside = knobs.get("outside", _ROOM)
    return _tempered(knobs, inputs, vdb_field(knobs, "temperature", version, edge="spread", outside=outside))


def _collider_temperature_usd(knobs: Record, inputs: Record, version: int | None, start: int) -> dict[str, Record]:
    return _tempered(knobs, inputs, primvar_field({"outside": _ROOM, **knobs}, "temperature"))


_GRID, _SEQUENCE = ("path", "grid", "outside", "translate", "scale"), ("sequence", "interpolation", "frame_offset")
_CONTACT = ("conductance", "held")
RETIRED = {
    "air_vdb": RetiredNode(_air_vdb, (*_GRID, *_SEQUENCE, "mask_grid", "convection")),
    "heat_field_vdb": RetiredNode(_heat_field_vdb, (*_GRID, *_SEQUENCE, "strength")),
    "set_heat_source": RetiredNode(_set_heat_source, ("source",), ("particles",)),
    "set_heat_source_vdb": RetiredNode(_set_heat_source_vdb, (*_GRID, "strength"), ("particles",)),
    "set_temperature_vdb": RetiredNode(_set_temperature_vdb, _GRID, ("particles",)),
    "collider_temperature_vdb": RetiredNode(_collider_temperature_vdb, (*_GRID, *_CONTACT), ("collider",)),
    "collider_temperature_usd": RetiredNode(
        _collider_temperature_usd, ("path", "prim", "primvar", "frame_offset", "outside", *_CONTACT), ("collider",)
    ),
}
