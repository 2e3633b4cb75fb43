"""The forces of the matter on bodies, told from the impulses of their contacts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mpm_nodes.data import StepContext
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import CONTACT_FORCES, impulses_on_bodies, places_of_contacts
from mpm_nodes.solver.device.contacts import SummedContacts
from mpm_nodes.solver.grid import GridStore

__all__ = ["tell_forces", "tell_impulses"]


def tell_forces(
    step: StepContext, colliders: ColliderSet, grid: GridStore, contacts: Iterable[np.ndarray] | SummedContacts
) -> None:
    """Tell the forces and torques of a substep on the bodies.

    Args:
        step: The substep.
        colliders: The bodies, as posed last.
        grid: The grid of the contacts.
        contacts: Of each contact its node, its image (-1: none), r, its place among bodies and walls, and the impulse on the body,
            shape (n, 3) [N s]; or their sums.
    """
    if isinstance(contacts, SummedContacts):
        tell_impulses(step, colliders, *contacts)
        return
    node, image, ratio, level, given = contacts
    count = len(colliders.colliders)
    mine = (level >= 0) & (level < count)
    if grid.halo.own is not None:
        mine &= grid.halo.own[node >> 6]
    place = places_of_contacts(grid, node[mine], image[mine], ratio[mine])
    tell_impulses(step, colliders, level[mine], place + grid.origin, given[mine])


def tell_impulses(
    step: StepContext,
    colliders: ColliderSet,
    level: np.ndarray,
    place: np.ndarray,
    given: np.ndarray,
    moment: np.ndarray | None = None,
) -> None:
    """Tell the forces and torques of a substep on the bodies.

    Args:
        step: The substep.
        colliders: The bodies, as posed last.
        level: Which of them gets each impulse, or which wall, shape (n,).
        place: Where, shape (n, 3) [m].
        given: The impulses, shape (n, 3) [N s].
        moment: Their moments about these places, shape (n, 3) [N m s]; None: they have none.
    """
    count = len(colliders.colliders)
    mine = level < count
    arm = place[mine] - (colliders.centres() + colliders.origin)[level[mine]]
    sums = impulses_on_bodies(level[mine], arm, given[mine], count)
    if moment is not None and count:
        np.add.at(sums[:, 3:], level[mine], moment[mine])
    sums = sums / colliders.frame_length
    names = tuple(collider.name for collider in colliders.colliders)
    step.tell(
        CONTACT_FORCES, colliders=names, force=tuple(sums[:, :3].ravel().tolist()), torque=tuple(sums[:, 3:].ravel().tolist())
    )
