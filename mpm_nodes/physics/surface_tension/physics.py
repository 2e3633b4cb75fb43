"""The declaration of surface tension."""

import dataclasses
from collections.abc import Callable

from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.heat.materials import melting
from mpm_nodes.physics.surface_tension.fields import FIELDS
from mpm_nodes.physics.surface_tension.materials import pairs_of
from mpm_nodes.physics.surface_tension.retired import RETIRED
from mpm_nodes.physics.surface_tension.unread import check_scale, refuse_field, refuse_material, unread

_TENSE = SurfaceTension(0.07)
_SOAP = SurfaceTension(0.07, solute_tension=0.03, solute_diffusivity=1e-3)


def _water(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (dataclasses.replace(named("water"), surface_tension=_TENSE),)


def _soapy_water(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (dataclasses.replace(named("water"), surface_tension=_SOAP),)


def _melting_rubber(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (melting(*(dataclasses.replace(named(each), surface_tension=_TENSE) for each in ("rubber", "water"))),)


PHYSICS = Physics(
    __package__,
    fields=FIELDS,
    needs=("heat",),
    optional_columns={"tension_scale": "tension_scale"},
    complete=check_scale,
    refuse_material=refuse_material,
    refuse_around={"tension": refuse_field},
    refuse_matter=pairs_of,
    kinds=("sample_surface", "diffuse_concentration"),
    compiled_for={
        **dict.fromkeys(("surface_tension", "implicit_surface_tension", "auto_surface_tension"), _water),
        "surface_tension_solute": _soapy_water,
        "surface_tension_heat": _melting_rubber,
    },
    unread=unread,
    retired=RETIRED,
)
