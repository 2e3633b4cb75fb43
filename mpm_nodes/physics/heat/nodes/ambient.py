"""What is around matter, from VDB grids: air that is warmer here than there, and places that heat what is in them."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from mpm_nodes.data import (
    A,
    Ambient,
    FrameContext,
    Kelvins,
    Metres,
    MpmNodesError,
    Range,
    Unitless,
    Vec3,
    WattsPerSquareMetreKelvin,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import KeyedNumber, KeysTravel
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.values_of_files import GridValues, Interpolation, files_contents, grid_values, held_as_before, over_files

_Scale = A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=100.0), KeysTravel()]
_Translate = A[Vec3, Metres, KeysTravel()]


def _told_of_air(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told of the air; what is wrong with the file of the first frame is told now."""
    air_vdb(FrameContext(told.settings.start, told.settings), told.kept, **told.knobs)
    return {"ambient": 1, "air": 1}


def _told_of_field(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told that something is around its matter; what is wrong with the first file is told now."""
    heat_field_vdb(FrameContext(told.settings.start, told.settings), told.kept, **told.knobs)
    return {"ambient": 1}


@node(
    category="Solve",
    label="Air from VDB",
    version=2,
    preflight=_told_of_air,
    upgrades={1: held_as_before},
    contents={"path": files_contents},
)
def air_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    mask_grid: str = "",
    sequence: bool = False,
    interpolation: Interpolation = Interpolation.LINEAR,
    frame_offset: int = 0,
    outside: A[float, Kelvins, Range(min=0.0, soft_min=200.0, soft_max=2000.0), KeysTravel()] = 293.15,
    convection: A[float, WattsPerSquareMetreKelvin, Range(min=0.0, soft_max=1000.0), KeysTravel()] = 10.0,
    translate: _Translate = (0.0, 0.0, 0.0),
    scale: _Scale = 1.0,
) -> Ambient:
    """Give the air around matter the temperatures of a grid of a .vdb file: smoke of a fire, an oven, a draught.

    Free surfaces exchange heat with it in substeps with heat stages; it takes the place of conduct_heat's air_temperature and
    air_convection. Files and keys are sampled at every substep.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers: temperatures in kelvin.
        mask_grid: Name of a grid of numbers that multiplies the convection, 1 where the air blows and nothing where matter is
            sheltered; empty: the convection holds everywhere.
        sequence: One file a frame.
        interpolation: What a sequence is between two frames: `linear` blends its files, `held` keeps each until the next.
        frame_offset: Added to the frame number to find the file of a sequence.
        outside: Temperature where the grid holds nothing.
        convection: Heat that a square metre of free surface exchanges with the air, a kelvin of difference: still air 10, wind 100.
        translate: Moves the grids.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: A file cannot be read, or has no such grid of numbers.
        MpmNodesError: A temperature is below 0 K, or a mask below 0.

    Source: S14 section 5.8; C21 eq. 6.
    """

    def air(file: Path) -> GridValues:
        found = _placed(kept, file, grid, translate, scale, fades=False)
        _refuse_below_zero("air_vdb.grid", file, grid, found, " K; write kelvin")
        return dataclasses.replace(found, outside=outside)

    def exposure(file: Path) -> GridValues:
        found = _placed(kept, file, mask_grid, translate, scale, fades=True)
        _refuse_below_zero("air_vdb.mask_grid", file, mask_grid, found, "; a mask is >= 0")
        return found

    offset = frame_offset if sequence else None
    mask = over_files(ctx, path, offset, interpolation, exposure) if mask_grid else None
    return Ambient(over_files(ctx, path, offset, interpolation, air), convection, mask)


@node(
    category="Solve",
    label="Heat Field from VDB",
    version=2,
    preflight=_told_of_field,
    upgrades={1: held_as_before},
    contents={"path": files_contents},
)
def heat_field_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "heat_source",
    sequence: bool = False,
    interpolation: Interpolation = Interpolation.LINEAR,
    frame_offset: int = 0,
    strength: A[float, Unitless, Range(soft_min=0.0, soft_max=1e7), KeysTravel()] = 1.0,
    translate: _Translate = (0.0, 0.0, 0.0),
    scale: _Scale = 1.0,
) -> Ambient:
    """Make heat in the matter that is in a place: what a grid of a .vdb file says, which stays there while matter comes and goes.

    A microwave, a laser, a coil. For heat that matter takes along there is set_heat_source_vdb. Files and keys are sampled at every
    substep.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers: W/m^3 of matter, or a mask of 0 to 1.
        sequence: One file a frame.
        interpolation: What a sequence is between two frames: `linear` blends its files, `held` keeps each until the next.
        frame_offset: Added to the frame number to find the file of a sequence.
        strength: Factor on the grid's values: 1 where they are W/m^3; for a mask the W/m^3 where it is 1. Keys switch it.
        translate: Moves the grid; keys let it sweep over the matter.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: A file cannot be read, or has no such grid of numbers.
        MpmNodesError: The strength is not finite.
    """
    for value in (key[1] for key in strength.keys) if isinstance(strength, KeyedNumber) else (strength,):
        if not math.isfinite(value):
            raise MpmNodesError(f"heat_field_vdb.strength: is {value:g}; give a finite number")

    def heating(file: Path) -> GridValues:
        return dataclasses.replace(_placed(kept, file, grid, translate, scale, fades=True), factor=strength)

    return Ambient(source=over_files(ctx, path, frame_offset if sequence else None, interpolation, heating))


def _placed(kept: Kept, file: Path, grid: str, translate: Vec3, scale: float, fades: bool) -> GridValues:
    return dataclasses.replace(grid_values(kept, file, grid, fades), translate=translate, scale=scale)


def _refuse_below_zero(where: str, file: Path, grid: str, found: GridValues, cure: str) -> None:
    least = float(found.values[..., 0].min(initial=0.0))
    if least < 0.0:
        raise MpmNodesError(f"{where}: '{grid}' in {file} holds {least:g}{cure}")
