"""Rigid bodies and the matter that moves them: what a solve asks of them (`solver.moved_bodies`)."""

from mpm_nodes.physics.rigid_bodies.numerics import agreement, coupling, implicit_coupling
from mpm_nodes.physics.rigid_bodies.numerics.bodies import RigidBodies

__all__ = ["CoupledBodies"]


class CoupledBodies(RigidBodies):
    """Rigid bodies that meet the matter of explicit, implicit and projected substeps."""

    meet = coupling.meet
    kick = coupling.kick
    meet_implicitly = implicit_coupling.meet_implicitly
    agree = agreement.agree
