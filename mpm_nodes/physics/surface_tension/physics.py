"""The declaration of surface tension."""

import dataclasses
from collections.abc import Callable

from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.heat.materials import melting
from mpm_nodes.physics.surface_tension.unread import refuse_material

_SOAP = SurfaceTension(0.07, solute_tension=0.03, solute_diffusivity=1e-3)


def _soapy_water(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (dataclasses.replace(named("water"), surface_tension=_SOAP),)


def _melting_rubber(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (melting(*(dataclasses.replace(named(each), surface_tension=SurfaceTension(0.07)) for each in ("rubber", "water"))),)


PHYSICS = Physics(
    __package__,
    needs=("heat",),
    refuse_material=refuse_material,
    kinds=("diffuse_concentration",),
    compiled_for={"surface_tension_solute": _soapy_water, "surface_tension_heat": _melting_rubber},
)
