"""The declaration of rigid bodies in projected substeps."""

from mpm_nodes.physics.contract import Physics

PHYSICS = Physics(__package__, needs=("projection", "rigid_bodies"))
