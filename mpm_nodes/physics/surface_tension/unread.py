"""What materials say of tensions and solutes, and no stage of the substeps reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.physics.contract import StagesOfPlan
from mpm_nodes.physics.heat.materials import with_melts

__all__ = ["check_scale", "refuse_field", "refuse_material", "unread"]


def refuse_material(material: Material, label: str, plans: Sequence[StagesOfPlan]) -> None:
    """Refuse a solute that spreads where none of the substeps' stages lets it.

    Args:
        material: The material.
        label: What messages call it.
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: It has a solute's diffusivity, and no stage asks for it.
    """
    tension = material.surface_tension
    if tension is None or not tension.solute_diffusivity > 0.0:
        return
    if not all("concentration_gradient" in plan.fields_needed["particles"] for plan in plans):
        raise MpmNodesError(
            f"material {label}: its solute has a diffusivity of {tension.solute_diffusivity:g} m^2/s, and these substeps "
            "do not let it spread; take the preset surface_tension_solute or surface_tension_heat, or set "
            "material_surfactant.diffusivity to 0"
        )


def check_scale(columns: Mapping[str, np.ndarray], materials: Sequence[Material]) -> None:
    """Refuse factors on the tension that are out of range.

    Raises:
        MpmNodesError: One is not finite or below 0.
    """
    scale = np.asarray(columns.get("tension_scale", 0.0))
    wrong = scale[~(np.isfinite(scale) & (scale >= 0.0))]
    if wrong.size:
        raise MpmNodesError(f"solve: particle tension_scale must be finite and >= 0; one is {wrong.flat[0]:g}")


def refuse_field(plans: Sequence[StagesOfPlan]) -> None:
    """Refuse a factor on the tension in places where the stages of some substeps have no surface.

    Raises:
        MpmNodesError: Some have none.
    """
    if not all("tension" in plan.fields_needed.get("samples", ()) for plan in plans):
        raise MpmNodesError(
            "solve.ambient: a tension field is wired, and these substeps have no surface; take the preset surface_tension or "
            "another with surfaces, or take the wire out"
        )


def unread(materials: Sequence[Material], plans: Sequence[StagesOfPlan], tempered: bool) -> Iterator[str]:
    """Yield which tensions have no effect in these substeps, those of what the materials may become too."""
    has_surface = any("tension" in plan.fields_needed.get("samples", ()) for plan in plans)
    for material in with_melts(materials):
        if material.surface_tension is not None and not has_surface:
            yield (
                f"material {material.label or material.law} has a surface tension, and these substeps have no surface that it "
                "pulls at; take the preset surface_tension, auto_surface_tension or another with surfaces, or leave its tensions "
                "out"
            )
