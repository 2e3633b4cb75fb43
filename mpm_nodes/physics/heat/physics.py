"""The declaration of heat."""

from collections.abc import Callable

from mpm_nodes.data import Material
from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.heat.materials import first_phase, melting, with_melts
from mpm_nodes.physics.heat.unread import refuse_heat_source, require_of_material, unread


def _rubber(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (melting(named("rubber"), named("water")),)


PHYSICS = Physics(
    __package__,
    optional_columns={"freezing_shift": "freezing_shift", "heat_source": "heat_source", "heating_rate": "heat_source"},
    further_materials=with_melts,
    complete=first_phase,
    require_of_material=require_of_material,
    refuse_columns={"heat_source": refuse_heat_source},
    kinds=("conduct_heat",),
    compiled_for=dict.fromkeys(("explicit_heat", "melting", "auto_melting"), _rubber),
    unread=unread,
)
