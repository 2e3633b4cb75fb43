"""The declaration of rigid bodies."""

from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.rigid_bodies.preflight import refuse_moved_bodies, wired

PHYSICS = Physics(
    __package__, moved_bodies="numerics.coupled_bodies:CoupledBodies", refuse_moved_bodies=refuse_moved_bodies, wired=wired
)
