"""Surface tension that is painted: on matter, which takes it along, and in places, which matter comes to and leaves."""

from __future__ import annotations

import dataclasses
import enum
import math
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import A, Ambient, FrameContext, Frames, GraphSettings, Metres, MpmNodesError, Particles, Range, Unitless, Vec3
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable, carries_keys
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.values_of_files import (
    GridValues,
    Interpolation,
    field_of,
    files_contents,
    first_values,
    grid_values,
    held_as_before,
    over_files,
    primvar_contents,
    primvar_values,
)

_START = NotKeyable("matter keeps what it begins with")
_Factor = A[float, Unitless, Range(min=0.0, soft_max=2.0), KeysTravel()]
_FactorAtStart = A[float, Unitless, Range(min=0.0, soft_max=2.0), _START]
_Scale = Range(min=0.0, exclusive_min=True, soft_max=100.0)
_ROUNDING = 1e-6
"""How far a number may lie beyond its range: files hold single precision, and faces are interpolated."""


def _told_with_factor(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the matter is passed on, and told to have a factor on its tension."""
    return {**passed_on(told, "tension_scale"), "scaled": True}


class TensionPaint(enum.Enum):
    """What the numbers of a painted file are.

    FACTOR: what the tension is multiplied by.
    MASK: 0 where the factor is that outside, 1 where it is the painted one, shares of the way in between.
    """

    FACTOR = "factor"
    MASK = "mask"


@node(category="Emit", label="Tension Scale", preflight=_told_with_factor)
def set_tension_scale(particles: Particles, *, scale: _FactorAtStart = 0.5) -> Particles:
    """Multiply the surface tension of particles by a number that they take along.

    Particles that read_points brings have their own where the file has `primvars:tension_scale`.

    Args:
        particles: Particles of an emitter, or the template of a stream; their material has a tension.
        scale: Factor on the tension of the surface that they own: 1 leaves it as it is, 0 takes it away.

    Raises:
        MpmNodesError: The factor is not finite.

    Source: C21 section 3.3.
    """
    return _scaled("set_tension_scale.scale", particles, np.full(len(particles), scale))


@node(category="Emit", label="Tension Scale from VDB", preflight=_told_with_factor)
def set_tension_scale_vdb(
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "tension_scale",
    values: TensionPaint = TensionPaint.FACTOR,
    outside: _FactorAtStart = 1.0,
    painted: _FactorAtStart = 0.5,
    translate: A[Vec3, Metres, _START] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale, _START] = 1.0,
) -> Particles:
    """Multiply the surface tension of particles by what a grid of a .vdb file has where they begin; they take it along.

    Args:
        particles: Particles of an emitter, or the template of a stream; their material has a tension.
        path: The file.
        grid: Name of a grid of numbers.
        values: What they are: a `factor` on the tension, or a `mask`.
        outside: Factor where the grid holds nothing, and where a mask is 0.
        painted: Factor where a mask is 1.
        translate: Moves the grid.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: A factor is below 0, or a mask lies outside 0 to 1.

    Source: C21 section 3.3.
    """
    where = f"set_tension_scale_vdb.grid: '{grid}' in {path}"
    found = _painted(where, grid_values(kept, path, grid, fades=True), values, (outside, painted))
    placed = dataclasses.replace(found, translate=translate, scale=scale)
    return _scaled(where, particles, placed.at(particles["position"]))


def _told_with_primvar(told: PreflightContext) -> dict[str, Any]:
    """Preflight: as `_told_with_factor`; a mesh or a primvar that cannot be used is told now."""
    first_values(told)
    return _told_with_factor(told)


@node(category="Emit", label="Tension Scale from USD", preflight=_told_with_primvar, contents={"path": primvar_contents})
def set_tension_scale_usd(
    particles: Particles,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    primvar: str = "tension_scale",
    values: TensionPaint = TensionPaint.FACTOR,
    frame: A[float, Frames, _START] = 1.0,
    outside: _FactorAtStart = 1.0,
    painted: _FactorAtStart = 0.5,
) -> Particles:
    """Multiply the surface tension of particles by what a primvar of USD meshes has next to them; they take it along.

    Args:
        particles: Particles of an emitter, as a rule of the same meshes (emit_mesh); their material has a tension.
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one value a point, or one for all.
        values: What they are: a `factor` on the tension, or a `mask`.
        frame: Frame at which the meshes are read.
        outside: Factor further than about a cell from the meshes, inside the matter too, and where a mask is 0.
        painted: Factor where a mask is 1.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: A factor is below 0, or a mask lies outside 0 to 1.

    Source: C21 section 3.3.
    """
    where = f"set_tension_scale_usd.primvar: '{primvar}' in {path}"
    places, numbers = primvar_values("set_tension_scale_usd", (path, prim, primvar), frame, settings, kept)
    _refuse(where, numbers, values)
    factors = _factors(numbers, values, (outside, painted))
    field = field_of("set_tension_scale_usd.primvar", places, factors, settings.cell_size, outside)
    return _scaled(where, particles, field.at(particles["position"]))


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told that the tension is painted in places."""
    return {"tension_fields": 1}


@node(
    category="Solve",
    label="Tension Field from VDB",
    version=2,
    preflight=_told,
    upgrades={1: held_as_before},
    contents={"path": files_contents},
)
def tension_field_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "tension_scale",
    values: TensionPaint = TensionPaint.FACTOR,
    sequence: bool = False,
    interpolation: Interpolation = Interpolation.LINEAR,
    frame_offset: int = 0,
    outside: _Factor = 1.0,
    painted: _Factor = 0.5,
    translate: A[Vec3, Metres, KeysTravel()] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale, KeysTravel()] = 1.0,
) -> Ambient:
    """Multiply the surface tension in places by what a grid of a .vdb file has there, while matter comes and goes.

    Vapour of alcohol over water, for instance: differences along a surface drive Marangoni flow. For a factor that matter takes
    along there is set_tension_scale_vdb. Files and keys are sampled at every substep.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers.
        values: What they are: a `factor` on the tension, or a `mask`.
        sequence: One file a frame.
        interpolation: What a sequence is between two frames: `linear` blends its files, `held` keeps each until the next.
        frame_offset: Added to the frame number to find the file of a sequence.
        outside: Factor where the grid holds nothing, and where a mask is 0.
        painted: Factor where a mask is 1. Keys switch it.
        translate: Moves the grid; keys let it sweep over the matter.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: A file cannot be read, or has no such grid of numbers.
        MpmNodesError: A factor is below 0, or a mask lies outside 0 to 1.

    Source: C21 section 3.3.
    """
    largest = [_largest(outside)]

    def factors(file: Path) -> GridValues:
        where = f"tension_field_vdb.grid: '{grid}' in {file}"
        found = _painted(where, grid_values(kept, file, grid, fades=True), values, (outside, painted))
        # a mask is at most 1: the factor lies between those outside and inside
        highest = float(_known(found).max(initial=0.0))
        largest.append(highest * _largest(painted) + (1.0 - highest) * _largest(outside) if found.painted is not None else highest)
        return dataclasses.replace(found, translate=translate, scale=scale)

    field = over_files(ctx, path, frame_offset if sequence else None, interpolation, factors)
    return Ambient(tension=field, most_tension=max(largest))


# ---------------------------------------------------------------- what they share
def _known(grid: GridValues) -> np.ndarray:
    """Return the values that a grid holds."""
    return np.asarray(grid.values[..., 0][grid.values[..., 1] > 0.0])


def _largest(value: Any) -> float:
    """Return the largest of a number's keys, or the number."""
    return max(float(key[1]) for key in value.keys) if carries_keys(value) else float(value)


def _painted(where: str, grid: GridValues, values: TensionPaint, factors: tuple[float, float]) -> GridValues:
    """Return a grid as factors; `factors` are those where a mask is 0 and 1."""
    held = grid.values[..., 1]
    _refuse(where, _known(grid), values)
    mask = values is TensionPaint.MASK
    numbers = np.clip(grid.values[..., 0], 0.0, 1.0 if mask else None)
    changed = np.stack([held * numbers, held, 0.0 * held], axis=-1)
    return dataclasses.replace(grid, values=changed, outside=factors[0], painted=factors[1] if mask else None)


def _factors(numbers: np.ndarray, values: TensionPaint, factors: tuple[float, float]) -> np.ndarray:
    """Return the factors that painted numbers stand for."""
    if values is TensionPaint.FACTOR:
        return np.maximum(numbers, 0.0)
    outside, painted = factors
    return np.asarray(outside + (painted - outside) * np.clip(numbers, 0.0, 1.0))


def _refuse(where: str, numbers: np.ndarray, values: TensionPaint) -> None:
    """Refuse what is not a factor, or not a mask."""
    low, high = float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))
    if low < -_ROUNDING or not math.isfinite(high):
        raise MpmNodesError(f"{where}: has a value of {low if low < 0.0 else high:g}; a tension is >= 0, and so are factors on it")
    if values is TensionPaint.MASK and high > 1.0 + _ROUNDING:
        raise MpmNodesError(f"{where}: has a value of {high:g}; masks lie from 0 to 1, or set `values` to factor")


def _scaled(where: str, particles: Particles, factors: np.ndarray) -> Particles:
    wrong = factors[~(np.isfinite(factors) & (factors >= 0.0))]
    if len(wrong):
        raise MpmNodesError(f"{where}: has a factor of {wrong[0]:g} where there is matter; give finite factors >= 0")
    return dataclasses.replace(particles, attributes={**particles.attributes, "tension_scale": factors})
