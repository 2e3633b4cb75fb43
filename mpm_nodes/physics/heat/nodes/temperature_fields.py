"""Temperatures from files: VDB grids over matter and bodies, and primvars of USD meshes over bodies."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    FrameContext,
    GraphSettings,
    Kelvins,
    Metres,
    MpmNodesError,
    Particles,
    Range,
    SurfaceField,
    Unitless,
    Vec3,
    WattsPerSquareMetreKelvin,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import passed_on, tempered
from mpm_nodes.nodes.collider_motion import sampled
from mpm_nodes.nodes.values_of_files import (
    field_of,
    first_values,
    grid_values,
    over_frame,
    over_meshes,
    primvar_contents,
    primvar_values,
    volume_of,
    voxels,
)

_START = NotKeyable("it is what particles begin with")
_Temperature = Range(min=0.0, soft_min=200.0, soft_max=2000.0)
_Conductance = A[
    float, WattsPerSquareMetreKelvin, Range(min=0.0, exclusive_min=True, soft_min=10.0, soft_max=1e6, log=True), KeysTravel()
]
_Outside = A[float, Kelvins, _Temperature, KeysTravel()]
_Scale = Range(min=0.0, exclusive_min=True, soft_max=100.0)


def _told_of_grid(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the matter is passed on; a grid that is not there, or holds one below 0 K, is told now."""
    values = voxels(volume_of(told.kept, told.knobs["path"], told.knobs["grid"]), 1.0)[1]
    _refuse_below_zero("set_temperature_vdb.grid", values)
    return passed_on(told, "temperature")


def _tempered_by_grid(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the body has a temperature; a grid that is not there, or holds one below 0 K, is told now."""
    values = voxels(volume_of(told.kept, told.knobs["path"], told.knobs["grid"]), 1.0)[1]
    _refuse_below_zero("collider_temperature_vdb.grid", values)
    return tempered(told)


def _tempered_by_primvar(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the body has a temperature; a primvar that is not there, or is below 0 K as the shot begins, is told now."""
    _refuse_below_zero("collider_temperature_usd.primvar", first_values(told))
    return tempered(told)


@node(category="Emit", label="Temperature from VDB", preflight=_told_of_grid)
def set_temperature_vdb(
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    outside: A[float, Kelvins, _Temperature, _START] = 293.15,
    translate: A[Vec3, Metres, _START] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale, _START] = 1.0,
) -> Particles:
    """Give particles the temperature that a grid of a .vdb file has where they are.

    Args:
        particles: Particles of an emitter, or the template of a stream.
        path: The file.
        grid: Name of a grid of numbers: temperatures in kelvin.
        outside: Temperature where the grid holds nothing.
        translate: Moves the grid.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: A particle's temperature is below 0 K.
    """
    found = dataclasses.replace(grid_values(kept, path, grid), translate=translate, scale=scale, outside=outside)
    values = found.at(particles["position"])
    if len(values) and not (values.min() >= 0.0 and np.isfinite(values).all()):
        raise MpmNodesError(
            f"set_temperature_vdb.grid: '{grid}' in {path} has {values.min():g} K where there is matter; write kelvin"
        )
    return dataclasses.replace(particles, attributes={**particles.attributes, "temperature": values})


@node(category="Collide", label="Collider Temperature from VDB", preflight=_tempered_by_grid)
def collider_temperature_vdb(
    collider: Collider,
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    outside: _Outside = 293.15,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale] = 1.0,
    conductance: _Conductance = 1e4,
    held: bool = False,
) -> Collider:
    """Give the surface of a collider the temperatures of a grid of a .vdb file; the grid stands still while the body moves.

    Keys are sampled at several moments of a frame.

    Args:
        collider: Any collider.
        path: The file.
        grid: Name of a grid of numbers: temperatures in kelvin.
        outside: Temperature where the grid holds nothing.
        translate: Moves the grid; keys carry it along with a body.
        scale: Factor on all lengths of the file, for files that are not in metres.
        conductance: Heat through a square metre of contact, a kelvin of difference: 1000 loose, 1e4 firm, 1e6 as one piece.
        held: Whether matter at the surface has the temperature itself; the conductance then says nothing.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: A temperature is below 0 K.
    """
    volume = volume_of(kept, path, grid)
    places, values, apart = voxels(volume, 1.0)

    def field_at(frame: float) -> SurfaceField:
        shift, grown, rest = (
            sampled(ctx, knob, value, frame) for knob, value in (("translate", translate), ("scale", scale), ("outside", outside))
        )
        edge = max(settings.cell_size, grown * apart)
        return _temperatures("collider_temperature_vdb.grid", grown * places + np.asarray(shift), values, edge, rest)

    field = over_frame(ctx, ("translate", "scale", "outside"), field_at)
    firmness = math.inf if held else conductance
    return dataclasses.replace(collider, temperature=outside, temperatures=field, conductance=firmness)


@node(
    category="Collide", label="Collider Temperature from USD", preflight=_tempered_by_primvar, contents={"path": primvar_contents}
)
def collider_temperature_usd(
    collider: Collider,
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    primvar: str = "temperature",
    frame_offset: A[float, Unitless] = 0.0,
    outside: _Outside = 293.15,
    conductance: _Conductance = 1e4,
    held: bool = False,
) -> Collider:
    """Give the surface of a collider the temperatures that a primvar of USD meshes has; both may be animated.

    Args:
        collider: Any collider, as a rule that of the same meshes (collide_usd).
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one value a point, or one for all: temperatures in kelvin.
        frame_offset: Added to the frame number before the stage is read.
        outside: Temperature away from the meshes.
        conductance: Heat through a square metre of contact, a kelvin of difference: 1000 loose, 1e4 firm, 1e6 as one piece.
        held: Whether matter at the surface has the temperature itself; the conductance then says nothing.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: A temperature is below 0 K.
    """
    where, file, rest = "collider_temperature_usd", (path, prim, primvar), sampled(ctx, "outside", outside, ctx.frame)

    def field_at(frame: float) -> SurfaceField:
        places, samples = primvar_values(where, file, frame, settings, kept)
        return _temperatures(f"{where}.primvar", places, samples, settings.cell_size, rest)

    field = over_meshes(ctx, kept, file, frame_offset, field_at)
    firmness = math.inf if held else conductance
    return dataclasses.replace(collider, temperature=outside, temperatures=field, conductance=firmness)


def _temperatures(where: str, places: np.ndarray, values: np.ndarray, edge: float, rest: float) -> SurfaceField:
    """Return the field of temperatures, with the place in messages."""
    _refuse_below_zero(where, values)
    return field_of(where, places, values, edge, rest)


def _refuse_below_zero(where: str, values: np.ndarray) -> None:
    if len(values) and values.min() < 0.0:
        raise MpmNodesError(f"{where}: a temperature is {values.min():g} K; temperatures are >= 0 K")
