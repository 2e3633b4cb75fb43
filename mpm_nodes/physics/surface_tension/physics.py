"""The declaration of surface tension."""

from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.surface_tension.unread import refuse_material

PHYSICS = Physics(__package__, needs=("heat",), refuse_material=refuse_material)
