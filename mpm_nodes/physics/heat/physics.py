"""The declaration of heat."""

from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.heat.fields import FIELDS
from mpm_nodes.physics.heat.materials import first_phase, melting_rubber, with_melts
from mpm_nodes.physics.heat.retired import RETIRED
from mpm_nodes.physics.heat.unread import refuse_ambient, refuse_heat_source, require_of_material, unread

PHYSICS = Physics(
    __package__,
    fields=FIELDS,
    optional_columns={"freezing_shift": "freezing_shift", "heat_source": "heat_source", "heating_rate": "heat_source"},
    further_materials=with_melts,
    complete=first_phase,
    require_of_material=require_of_material,
    refuse_columns={"heat_source": refuse_heat_source},
    refuse_around={"heat": refuse_ambient},
    kinds=("conduct_heat",),
    compiled_for={"explicit_heat": melting_rubber},
    unread=unread,
    retired=RETIRED,
)
