"""The declaration of surface tension."""

from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.surface_tension.unread import check_material

PHYSICS = Physics(__package__, needs=("heat",), check_material=check_material)
