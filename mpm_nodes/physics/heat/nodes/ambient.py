"""What is around matter: air that is warmer here than there, and places that heat what is in them."""

from __future__ import annotations

from typing import Any

from mpm_nodes.data import (
    A,
    Ambient,
    FrameContext,
    Kelvins,
    Range,
    SpatialField,
    Unitless,
    WattsPerSquareMetreKelvin,
)
from mpm_nodes.graph.declare import found_by, node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import KeysTravel
from mpm_nodes.nodes.fields import constant, scaled
from mpm_nodes.nodes.through_space import at_least, refuse_misfits, through_space


def _told_of_air(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told of the air."""
    refuse_misfits(told, "air.field", "air.exposure")
    return {"ambient": 1, "air": 1}


def _told_of_heat(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told that something is around its matter."""
    refuse_misfits(told, "heat_field.field")
    constant(told.knobs["strength"])
    return {"ambient": 1}


@node(category="Solve", label="Air", preflight=_told_of_air)
def air(
    ctx: FrameContext,
    field: SpatialField | None = None,
    exposure: SpatialField | None = None,
    *,
    temperature: A[float, Kelvins, Range(min=0.0, soft_min=200.0, soft_max=2000.0), KeysTravel()] = 293.15,
    convection: A[float, WattsPerSquareMetreKelvin, Range(min=0.0, soft_max=1000.0), KeysTravel()] = 10.0,
) -> Ambient:
    """Give the air around matter temperatures: smoke of a fire, an oven, a draught.

    Free surfaces exchange heat with it in substeps with heat stages; it takes the place of conduct_heat's air_temperature and
    air_convection. Fields and keys are sampled at every substep.

    Args:
        field: Temperatures [K]; without it `temperature` everywhere.
        exposure: Factor on the convection, 1 where the air blows and 0 where matter is sheltered; without it 1 everywhere.
        temperature: Temperature where no field is wired.
        convection: Heat that a square metre of free surface exchanges with the air, a kelvin of difference: still air 10, wind 100.

    Raises:
        MpmNodesError: A field is one of vectors.

    Source: S14 section 5.8; C21 eq. 6.
    """
    warm = constant(temperature) if field is None else at_least(ctx, "air.field", field, 0.0)
    open_to = None if exposure is None else through_space(ctx, "air.exposure", at_least(ctx, "air.exposure", exposure, 0.0))
    return Ambient(through_space(ctx, "air.field", warm), convection, open_to)


@found_by("fire", "oven", "burner", "warm")
@node(category="Solve", label="Heat Field", preflight=_told_of_heat)
def heat_field(
    field: SpatialField,
    ctx: FrameContext,
    *,
    strength: A[float, Unitless, Range(soft_min=0.0, soft_max=1e7), KeysTravel()] = 1.0,
) -> Ambient:
    """Make heat in the matter that is in a place, which stays there while matter comes and goes: a microwave, a laser, a coil.

    For heat that matter takes along there is set_attribute. Fields and keys are sampled at every substep.

    Args:
        field: W/m^3 of matter, or a mask of 0 to 1.
        strength: Factor on it: 1 where it is W/m^3; for a mask the W/m^3 where it is 1. Keys switch it.

    Raises:
        MpmNodesError: The field is one of vectors, or the strength is not finite.
    """
    return Ambient(source=through_space(ctx, "heat_field.field", scaled(field, constant(strength))))
