"""What materials say of solutes and no stage of the substeps reads."""

from __future__ import annotations

from collections.abc import Sequence

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.physics.contract import StagesOfPlan

__all__ = ["refuse_material"]


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
