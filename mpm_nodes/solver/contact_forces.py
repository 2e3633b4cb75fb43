"""What bodies get from the matter in contact with them, and how much matter there is beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpm_nodes.data import Fact, Facts, MpmNodesError, Reduction, StepContext
from mpm_nodes.kernels.collisions import sides
from mpm_nodes.kernels.level_sets.level_set import KEY_LATTICES, KIND, LEVEL_SET, POSE
from mpm_nodes.kernels.transfers import fields, scatter
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import adding_up
from mpm_nodes.solver.rows import aligned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpm_nodes.graph.plan.substeps import SubstepPlan
    from mpm_nodes.solver.colliders import ColliderSet

__all__ = ["CONTACT_FORCES", "refuse_untold_contacts", "tell_forces", "volumes_of_nodes"]

CONTACT_FORCES = Facts(
    "contact_forces",
    "What the matter does to each collider, as the mean over a frame, in the order of the wires; where solve.contact_forces asks.",
    (
        Fact("colliders", "", Reduction.LAST, "Their names."),
        Fact("force", "N", Reduction.SUM, "Force on each: three numbers one after the other."),
        Fact("torque", "N m", Reduction.SUM, "Torque on each about its centre: three numbers one after the other."),
    ),
    by_rank=True,
)


def refuse_untold_contacts(plans: Sequence[SubstepPlan], what: str) -> None:
    """Refuse adhesion, or forces on colliders, where some substeps do not hold their contacts as impulses on nodes.

    Args:
        plans: The substeps that the solve may take.
        what: What is asked for, as the beginning of the message.

    Raises:
        MpmNodesError: Some do not.
    """
    for plan in plans:
        meeting = [part.declaration for part in plan.parts if part.declaration.joins]
        if not meeting or not all(CONTACT_FORCES in declaration.facts for declaration in meeting):
            raise MpmNodesError(
                f"{what}, and these substeps do not find it; take explicit_apic, implicit_apic or a preset whose contacts "
                "are those of collide_grid or minimise_energy"
            )


def volumes_of_nodes(grid: GridStore) -> np.ndarray:
    """Return (0, 0, 0, undeformed volume of the matter) of each node, flat [m^3]; copies that are one node have their sum."""
    points = grid.particles
    found = aligned(256 * max(grid.count, 1), grid.dtype)
    found[:] = 0.0
    given = fields.Given((0, 0, 0), points.array("volume"), (None, None, None), None, None, found)
    with adding_up(grid.halo, found):
        scatter.scatter_arrays((0,) * grid.spline, points.geometry(), (given,), grid.scatter_tables())
    if grid.copies is not None:
        sides.join_copies(grid.copies.places, grid.copies.master, found, np.zeros_like(found))
    return found


def tell_forces(step: StepContext, colliders: ColliderSet, grid: GridStore, contacts: Iterable[np.ndarray]) -> None:
    """Tell the forces and torques of a substep on the bodies.

    Args:
        step: The substep.
        colliders: The bodies, as posed last.
        grid: The grid of the contacts.
        contacts: Of each contact its node, its image (-1: none), r, its place among bodies and walls, and the impulse on the body,
            shape (n, 3) [N s].
    """
    node, image, ratio, level, given = contacts
    count = len(colliders.colliders)
    mine = (level >= 0) & (level < count)
    if grid.halo.own is not None:
        mine &= grid.halo.own[node >> 6]
    node, image, ratio, level, given = node[mine], image[mine], ratio[mine, None], level[mine], given[mine]
    # a contact acts where the surface cuts the line from the node to its image, which takes - r of its impulse
    outside = np.where(image >= 0, image, node)
    place = _places(grid, node)
    place += ratio / (1.0 - ratio) * (place - _places(grid, outside))
    arm = place - (colliders.centres() + colliders.origin - grid.origin)[level]
    both = np.concatenate([given, np.cross(arm, given)], axis=1) / colliders.frame_length
    sums = np.array([np.bincount(level, both[:, axis], count) for axis in range(6)]).T
    names = tuple(collider.name for collider in colliders.colliders)
    step.tell(
        CONTACT_FORCES, colliders=names, force=tuple(sums[:, :3].ravel().tolist()), torque=tuple(sums[:, 3:].ravel().tolist())
    )


def _places(grid: GridStore, node: np.ndarray) -> np.ndarray:
    """Return places of nodes from the grid's origin [m], shape (n, 3)."""
    block, rest = np.divmod(node, 64)
    inside = np.stack([rest >> 4, (rest >> 2) & 3, rest & 3], axis=1)
    return np.asarray(grid.h * (4.0 * grid.coord[block] + inside), float)


def centres_of(integer: np.ndarray, real: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the centres of bodies at the end of the substep, in the frame of the bodies, shape (bodies, 3) [m].

    Args:
        integer, real: `Bodies.integer` and `Bodies.real`.
        centres: Centres of the level sets, shape (level sets, 3) [m].
    """
    own = np.zeros((len(integer), 3))
    of_level_set = integer[:, KIND] == LEVEL_SET
    own[of_level_set] = centres[integer[of_level_set, KEY_LATTICES + 3]]
    turn, shift = real[:, POSE + 12 : POSE + 21].reshape(-1, 3, 3), real[:, POSE + 21 : POSE + 24]
    return np.asarray(np.einsum("bij,bj->bi", turn, own) + shift)
