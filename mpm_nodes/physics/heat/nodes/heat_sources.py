"""Heat that is made inside matter: one number for all of it, or a VDB grid or mask."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import A, Metres, MpmNodesError, Particles, Range, Unitless, Vec3, WattsPerCubicMetre
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.values_of_files import grid_values

_START = NotKeyable("matter keeps the heat source that it begins with")
_Source = A[float, WattsPerCubicMetre, Range(soft_min=0.0, soft_max=1e7), _START]


def _heated(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the matter is passed on, and told to be heated unless every number is 0."""
    given = any(told.knobs.get(knob, 0.0) != 0.0 for knob in ("source", "strength", "outside"))
    return {**passed_on(told, "heat_source"), "heated": given}


@node(category="Emit", label="Heat Source", preflight=_heated)
def set_heat_source(particles: Particles, *, source: _Source = 1e6) -> Particles:
    """Let matter make heat, wherever it goes: for substep graphs with heat stages.

    Args:
        particles: Particles of an emitter, or the template of a stream.
        source: Heat made in a cubic metre of undeformed matter; below 0 it is taken away.

    Raises:
        MpmNodesError: The source is not finite.
    """
    if not math.isfinite(source):
        raise MpmNodesError(f"set_heat_source.source: is {source:g} W/m^3; give a finite number")
    return dataclasses.replace(particles, attributes={**particles.attributes, "heat_source": np.full(len(particles), source)})


def _heated_by_grid(told: PreflightContext) -> dict[str, Any]:
    """Preflight: as of one number; a file or a grid that is not there is told now."""
    grid_values(told.kept, told.knobs["path"], told.knobs["grid"], fades=True)
    return _heated(told)


@node(category="Emit", label="Heat Source from VDB", preflight=_heated_by_grid)
def set_heat_source_vdb(
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "heat_source",
    strength: A[float, Unitless, Range(soft_min=0.0, soft_max=1e7), _START] = 1.0,
    outside: _Source = 0.0,
    translate: A[Vec3, Metres, _START] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=100.0), _START] = 1.0,
) -> Particles:
    """Let matter make the heat that a grid of a .vdb file has where the matter begins; the matter takes it along.

    Args:
        particles: Particles of an emitter, or the template of a stream.
        path: The file.
        grid: Name of a grid of numbers: W/m^3 of undeformed matter, or a mask of 0 to 1.
        strength: Factor on the grid's values: 1 where they are W/m^3; for a mask the W/m^3 where it is 1.
        outside: Heat source where the grid holds nothing.
        translate: Moves the grid.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: The file cannot be read, has no such grid of numbers, or the grid holds NaN.
        MpmNodesError: Strength or outside is not finite.
    """
    for knob, given in (("strength", strength), ("outside", outside)):
        if not math.isfinite(given):
            raise MpmNodesError(f"set_heat_source_vdb.{knob}: is {given:g}; give a finite number")
    found = dataclasses.replace(
        grid_values(kept, path, grid, fades=True), translate=translate, scale=scale, outside=outside, factor=strength
    )
    values = found.at(particles["position"])
    return dataclasses.replace(particles, attributes={**particles.attributes, "heat_source": values})
