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
from mpm_nodes.graph.declarations import PreflightContext
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_volumes import frame_contents, numbered
from mpm_nodes.nodes.values_of_files import GridValues, grid_values

_Scale = Range(min=0.0, exclusive_min=True, soft_max=100.0)


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told that something is around its matter."""
    return {"ambient": 1}


@node(category="Solve", label="Air from VDB", preflight=lambda told: {**_told(told), "air": 1}, contents={"path": frame_contents})
def air_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    mask_grid: str = "",
    sequence: bool = False,
    frame_offset: int = 0,
    outside: A[float, Kelvins, Range(min=0.0, soft_min=200.0, soft_max=2000.0)] = 293.15,
    convection: A[float, WattsPerSquareMetreKelvin, Range(min=0.0, soft_max=1000.0)] = 10.0,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale] = 1.0,
) -> Ambient:
    """Give the air around matter the temperatures of a grid of a .vdb file: smoke of a fire, an oven, a draught.

    Free surfaces exchange heat with it in substeps with heat stages; it takes the place of conduct_heat's air_temperature and
    air_convection. A frame takes its own file and its own keys as a whole.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers: temperatures in kelvin.
        mask_grid: Name of a grid of numbers that multiplies the convection, 1 where the air blows and nothing where matter is
            sheltered; empty: the convection holds everywhere.
        sequence: One file a frame.
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
    file = numbered(path, ctx.frame + frame_offset) if sequence else path
    air = _placed(kept, file, grid, translate, scale, fades=False)
    _refuse_below_zero("air_vdb.grid", file, grid, air, " K; write kelvin")
    exposure = None
    if mask_grid:
        exposure = _placed(kept, file, mask_grid, translate, scale, fades=True)
        _refuse_below_zero("air_vdb.mask_grid", file, mask_grid, exposure, "; a mask is >= 0")
    return Ambient(dataclasses.replace(air, outside=outside), convection, exposure)


@node(category="Solve", label="Heat Field from VDB", preflight=_told, contents={"path": frame_contents})
def heat_field_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "heat_source",
    sequence: bool = False,
    frame_offset: int = 0,
    strength: A[float, Unitless, Range(soft_min=0.0, soft_max=1e7)] = 1.0,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale] = 1.0,
) -> Ambient:
    """Make heat in the matter that is in a place: what a grid of a .vdb file says, which stays there while matter comes and goes.

    A microwave, a laser, a coil. For heat that matter takes along there is set_heat_source_vdb. A frame takes its own file and
    its own keys as a whole.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers: W/m^3 of matter, or a mask of 0 to 1.
        sequence: One file a frame.
        frame_offset: Added to the frame number to find the file of a sequence.
        strength: Factor on the grid's values: 1 where they are W/m^3; for a mask the W/m^3 where it is 1. Keys switch it.
        translate: Moves the grid; keys let it sweep over the matter.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: A file cannot be read, or has no such grid of numbers.
        MpmNodesError: The strength is not finite.
    """
    if not math.isfinite(strength):
        raise MpmNodesError(f"heat_field_vdb.strength: is {strength:g}; give a finite number")
    file = numbered(path, ctx.frame + frame_offset) if sequence else path
    return Ambient(source=dataclasses.replace(_placed(kept, file, grid, translate, scale, fades=True), factor=strength))


def _placed(kept: Kept, file: Path, grid: str, translate: Vec3, scale: float, fades: bool) -> GridValues:
    return dataclasses.replace(grid_values(kept, file, grid, fades), translate=translate, scale=scale)


def _refuse_below_zero(where: str, file: Path, grid: str, found: GridValues, cure: str) -> None:
    least = float(found.values[..., 0].min(initial=0.0))
    if least < 0.0:
        raise MpmNodesError(f"{where}: '{grid}' in {file} holds {least:g}{cure}")
