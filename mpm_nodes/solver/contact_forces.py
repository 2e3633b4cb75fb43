"""What bodies get from the matter in contact with them, and how much matter there is beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpm_nodes.data import Fact, Facts, MpmNodesError, Reduction, Report, frozen
from mpm_nodes.kernels.collisions import sides
from mpm_nodes.kernels.level_sets.level_set import KEY_LATTICES, KIND, LEVEL_SET, POSE
from mpm_nodes.kernels.transfers import fields, scatter
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import adding_up
from mpm_nodes.solver.rows import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpm_nodes.graph.plan.substeps import SubstepPlan

__all__ = [
    "CONTACT_FORCES",
    "centres_of",
    "forces_by_name",
    "impulses_on_bodies",
    "places_of_contacts",
    "refuse_untold_contacts",
    "refuse_untold_forces",
    "volumes_of_nodes",
]

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
    """Refuse adhesion, or contacts that vary, where some substeps do not hold their contacts as impulses on nodes.

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


def refuse_untold_forces(plans: Sequence[SubstepPlan]) -> None:
    """Refuse to tell forces on colliders where some substeps do not find them.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Some do not.
    """
    asked = "solve.contact_forces: forces are asked for"
    for plan in plans:
        meeting = [part for part in plan.parts if part.declaration.joins or part.declaration.moves_bodies is not None]
        told = [CONTACT_FORCES in part.declaration.facts for part in meeting]
        if not meeting or not all(told):
            raise MpmNodesError(
                f"{asked}, and these substeps do not find them; take explicit_apic, implicit_apic, incompressible or a "
                "preset whose contacts are those of collide_grid, minimise_energy or project_velocity"
            )
        for part in meeting:
            stage = part.declaration.id
            on = next((knob for knob in part.declaration.moves_bodies or () if part.knobs.get(knob)), None)
            if on is not None:
                raise MpmNodesError(f"{asked}, and {stage} finds none with {on}; turn {stage}.{on} off")


def forces_by_name(report: Report, frame: int) -> dict[str, np.ndarray]:
    """Return force [N] and torque [N m] on each collider in a frame, shape (2, 3), by its name; none of those that share one."""
    values = next((values for group, values in report.of_frame(frame) if group is CONTACT_FORCES), None)
    if values is None:
        return {}
    names = values["colliders"]
    both = np.stack([np.reshape(values[each], (-1, 3)) for each in ("force", "torque")], axis=1)
    return {name: frozen(both[k]) for k, name in enumerate(names) if names.count(name) == 1}


def volumes_of_nodes(grid: GridStore, blocks: np.ndarray | None = None) -> np.ndarray:
    """Return (0, 0, 0, undeformed volume of the matter) of each node, flat [m^3]; copies that are one node have their sum.

    Args:
        grid: The grid.
        blocks: Places of the blocks whose nodes are asked for; None: all.
    """
    points = grid.particles
    found = aligned(256 * max(grid.count, 1), grid.dtype)
    found[:] = 0.0
    given = fields.Given((0, 0, 0), points.array("volume"), (None, None, None), None, None, found)
    if blocks is None:
        place, tables = points.geometry(), grid.scatter_tables()
    else:
        asked = np.zeros(grid.count, bool)
        asked[blocks] = True
        giving = np.flatnonzero(asked[grid.particle_tiles()].any(axis=1))
        place, tables = points.geometry(points.parts("particles around contacts", giving)), grid.scatter_tables_of(giving)
    with adding_up(grid.halo, found):
        scatter.scatter_arrays((0,) * grid.spline, place, (given,), tables)
    if grid.copies is not None:
        sides.join_copies(grid.copies.places, grid.copies.master, found, np.zeros_like(found))
    return found


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


def places_of_contacts(grid: GridStore, node: np.ndarray, image: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return where contacts act, from the grid's origin [m], shape (n, 3).

    That is where the surface cuts the line from the node to its image, which takes - r of the impulse on the node.

    Args:
        grid: The grid.
        node, image: Numbers of the nodes, and of their images (-1: none).
        ratio: r.
    """
    place = grid.places_of(node)
    return np.asarray(place + (ratio / (1.0 - ratio))[:, None] * (place - grid.places_of(np.where(image >= 0, image, node))))


def impulses_on_bodies(body: np.ndarray, arm: np.ndarray, impulses: np.ndarray, count: int) -> np.ndarray:
    """Return the impulse on each body [N s] and its moment about the body's centre [N m s], shape (count, 6).

    Args:
        body: Which body each impulse acts on, shape (n,).
        arm: From its centre to where it acts [m], shape (n, 3).
        impulses: [N s], shape (n, 3).
        count: How many bodies there are.
    """
    both = np.concatenate([impulses, np.cross(arm, impulses)], axis=1)
    return np.array([np.bincount(body, both[:, axis], count) for axis in range(6)]).T
