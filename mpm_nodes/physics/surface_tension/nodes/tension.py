"""Surface tension in the outer graph: what materials have of it, and how bodies are wetted."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mpm_nodes.data import (
    A,
    Ambient,
    FrameContext,
    Kelvins,
    Material,
    MpmNodesError,
    NewtonsPerMetre,
    Range,
    SpatialField,
    SquareMetresPerSecond,
    SurfaceTension,
    Unitless,
)
from mpm_nodes.data.parameter_tables import Rows
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.through_space import at_least, refuse_misfits, through_space

_KEPT = NotKeyable("matter keeps the tension that it was made with")
_Tension = A[float, NewtonsPerMetre, Range(min=0.0, soft_max=1.0), _KEPT]
_Temperature = A[float, Kelvins, Range(min=0.0, soft_min=200.0, soft_max=2000.0), _KEPT]


def _told_with_tension(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the wired materials with the tension."""
    return {"materials": tuple(material_surface_tension(each, **told.knobs) for each in told.every("material", "materials"))}


def _told_with_solute(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the wired materials with the solute, which one without a tension refuses."""
    return {"materials": tuple(material_surfactant(each, **told.knobs) for each in told.every("material", "materials"))}


@node(category="Material", label="Surface Tension", preflight=_told_with_tension)
def material_surface_tension(
    material: Material,
    *,
    tension: _Tension = 0.072,
    hot_tension: _Tension = 0.0,
    temperature: _Temperature = 293.15,
    hot_temperature: _Temperature = 293.15,
    table: A[Rows | None, Kelvins, _KEPT] = None,
) -> Material:
    """Give a material a surface tension: for substep graphs with surface stages, such as the preset `surface_tension`.

    Args:
        material: Material of any law, a liquid as a rule.
        tension: Surface energy density against air: water 0.072, oil 0.03, soap water 0.025, mercury 0.49.
        hot_tension: That at the hot temperature and above; in between it is linear. Differences drive Marangoni flow.
        temperature: Temperature up to which the tension is that of the cold liquid.
        hot_temperature: Temperature from which on it is the hot tension; the same as `temperature` leaves it constant.
        table: Tension over the temperature [K], a curve, straight between its points and level beyond them: it takes the place of
            the four numbers.

    Raises:
        MpmNodesError: The hot temperature lies below the cold one, or a tension of the curve is negative.

    Source: C21 sections 3.3 and 6.
    """
    changed = dataclasses.replace(
        material.surface_tension or SurfaceTension(tension),
        tension=tension,
        hot_tension=hot_tension,
        temperature=temperature,
        hot_temperature=hot_temperature,
        table=table or (),
    )
    return dataclasses.replace(material, surface_tension=changed)


@node(category="Material", label="Surfactant", preflight=_told_with_solute)
def material_surfactant(
    material: Material,
    *,
    tension: _Tension = 0.025,
    table: A[Rows | None, Unitless, _KEPT] = None,
    diffusivity: A[float, SquareMetresPerSecond, Range(min=0.0, soft_max=1e-3), _KEPT] = 0.0,
) -> Material:
    """Let soap, alcohol or another solute change a material's surface tension, in proportion to its concentration or by a curve.

    Args:
        material: Material with a tension of its own (material_surface_tension).
        tension: Where the concentration is 1: soap water 0.025, ethanol 0.022. Of the particles' attribute `concentration`, which
            set_attribute gives, or which was painted on points that read_points reads.
        table: Share of the way to that tension over the concentration, both from 0 to 1: ((0, 0), (0.1, 0.8), (1, 1)) for a soap of
            which a little does almost all. Without one the share is the concentration.
        diffusivity: With which the solute spreads in the liquid: salt in water 1.5e-9; 0 leaves it where the matter carries it.
            Above 0 the substeps must be `surface_tension_solute` or `surface_tension_heat`.

    Raises:
        MpmNodesError: The material has no tension that could change, or a concentration or share of the table lies outside 0 to 1.

    Source: C21 sections 3.3 and 6.6.
    """
    if material.surface_tension is None:
        raise MpmNodesError(
            f"material {material.label}: it has no surface tension that a solute could change; wire material_surface_tension before"
        )
    changed = dataclasses.replace(
        material.surface_tension, solute_tension=tension, solute_table=table or (), solute_diffusivity=diffusivity
    )
    return dataclasses.replace(material, surface_tension=changed)


def _told_with_interface(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the wired materials with the tension of a pair."""
    return {"materials": tuple(material_interface_tension(each, **told.knobs) for each in told.every("material", "materials"))}


@node(category="Material", label="Interface Tension", preflight=_told_with_interface)
def material_interface_tension(
    material: Material, *, other: str = "oil", tension: _Tension = 0.05, table: A[Rows | None, Kelvins, _KEPT] = None
) -> Material:
    """Give a material a tension against another liquid: oil in water, a lens of fat on soup.

    Both then have closed surfaces of their own, and the interface bears the tension of the pair. Where three kinds of matter meet,
    the angles come out as their tensions say. One of the two materials says it; each pair takes a node of its own.

    Args:
        material: Material of any law, a liquid as a rule; against air it has the tension of material_surface_tension, or none.
        other: Label of the other material.
        tension: Energy density of the interface: water and oil 0.05, water and olive oil 0.02, water and mercury 0.4.
        table: That over the temperature [K], a curve as in material_surface_tension, in place of the one number. Each side of the
            interface bears half of it at its own temperature; differences along it drive Marangoni flow.

    Raises:
        MpmNodesError: No other material is named, or one twice, or a tension of the curve is negative.

    Source: Neumann 1894; C21 section 3.3.
    """
    if not other:
        raise MpmNodesError(
            f"material {material.label}: material_interface_tension.other is empty; give the other material's label"
        )
    own = material.surface_tension or SurfaceTension(0.0)
    curves = own.interface_tables
    if table:
        tension, curves = max(value for _, value in table), (*curves, (other, table))
    changed = dataclasses.replace(own, interfaces=(*own.interfaces, (other, tension)), interface_tables=curves)
    return dataclasses.replace(material, surface_tension=changed)


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve is told that the tension varies in places; a factor without a bound is told now."""
    refuse_misfits(told, "tension_field.field")
    for facts in told.inputs.get("field", ()):
        if "field" in facts:
            _largest(facts["field"])
    return {"tension_fields": 1}


@node(category="Solve", label="Tension Field", preflight=_told)
def tension_field(field: SpatialField, ctx: FrameContext) -> Ambient:
    """Multiply the surface tension in places by a factor, while matter comes and goes.

    Vapour of alcohol over water, for instance: differences along a surface drive Marangoni flow. For a factor that matter takes
    along there is set_attribute. The field is sampled at every substep.

    Args:
        field: Factor on the tension, 1 leaves it as it is. It has a largest value, which limits the substep.

    Raises:
        MpmNodesError: The field is one of vectors, or can grow without bound.

    Source: C21 section 3.3.
    """
    factor = at_least(ctx, "tension_field.field", field, 0.0)
    return Ambient(tension=through_space(ctx, "tension_field.field", factor), most_tension=_largest(factor))


def _largest(field: SpatialField) -> float:
    from mpm_nodes.solver.field_bounds import bounds

    _, high = bounds(field)
    if not math.isfinite(high):
        raise MpmNodesError("tension_field.field: can grow without bound; limit it by field_ramp, or by field_math minimum")
    return max(high, 0.0)
