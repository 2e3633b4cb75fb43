"""The declaration of the projection."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.physics.contract import Physics, StagesOfPlan
from mpm_nodes.physics.projection.fields import FIELDS


def _refuse_unread_modulus(material: Material, label: str, plans: Sequence[StagesOfPlan]) -> None:
    """Refuse a bulk modulus that is for projections where not all of the substeps have one."""
    project = ["compressibility" in plan.fields_needed["particles"] for plan in plans]
    if material.bulk_modulus is None or all(project):
        return
    told = f"{material.bulk_modulus:g} Pa" if material.bulk_modulus > 0.0 else "infinity"
    without = "not all of the substeps that the solve chooses from have one" if any(project) else "these substeps have none"
    raise MpmNodesError(
        f"material {label}: its bulk modulus of {told} is for projections, and {without}; take the "
        "preset incompressible or melting, or leave material_bulk_modulus out"
    )


def _water(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (named("water"),)


def _firm(columns: Mapping[str, np.ndarray], given: Collection[str], laws: Sequence[Any]) -> np.ndarray:
    """Return 1 for matter that keeps its shape."""
    return np.array([law.moduli.shear > 0.0 for law in laws], np.int32)[columns["material"]]


PHYSICS = Physics(
    __package__,
    fields=FIELDS,
    apart={"firm": _firm},
    refuse_material=_refuse_unread_modulus,
    compiled_for=dict.fromkeys(("incompressible", "auto_incompressible"), _water),
    for_liquids=("project_velocity",),
)
