"""Which blocks of the grid lie so near to bodies or walls that contacts look at them: block tables alone tell.

In a solve on a device these blocks come to the host, and no others.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import FELLOW_PLACE, NODE_PLACE, ContactList, GridView
from mpm_nodes.kernels.collisions.node_surfaces import EVERY, Told, find_out_of_reach
from mpm_nodes.kernels.collisions.rules import OPEN
from mpm_nodes.kernels.level_sets.level_set import Bodies, WallPlanes
from mpm_nodes.kernels.transfers.binning import BODY_BITS
from mpm_nodes.solver.contact_lists import listed_rows
from mpm_nodes.solver.grid import Copies

__all__ = ["blocks_around", "blocks_in_contact", "blocks_in_reach", "blocks_of_copies"]


def blocks_in_reach(
    grid: GridView, motion: tuple[float, np.ndarray, float], walls: WallPlanes, bodies: Bodies, told: Told
) -> np.ndarray:
    """Return the blocks of a grid of which nodes may be in contact with bodies or walls, ascending.

    Args:
        grid: The grid; its momentum is not looked at.
        motion: Grid spacing [m]; grid origin in the frame of the bodies, shape (3,) [m]; substep [s].
        walls: The walls.
        bodies: The bodies.
        told: What nodes were told by bodies that stand still.
    """
    h, shift, _ = motion
    near = np.zeros(len(grid.coord), bool)
    asked = np.flatnonzero(told.column < 0)
    if len(asked):
        out = np.empty((len(near), len(asked)), np.int64)
        find_out_of_reach(grid, motion, asked, bodies, out)
        near |= (out != EVERY).any(axis=1)
    if len(told.out):
        near |= (told.out != EVERY).any(axis=1)
    for side in range(6):
        if walls.rules[side] < OPEN:  # as `wall_contacts.may_touch`, and a little farther
            axis = side >> 1
            first = shift[axis] + h * (4.0 * grid.coord[:, axis] + (3.0 if side & 1 else 0.0)) - walls.box[side & 1, axis]
            near |= (-first if side & 1 else first) < 1.001 * h
    return np.flatnonzero(near)


def blocks_around(grid: GridView, blocks: np.ndarray) -> np.ndarray:
    """Return some blocks and those beside them, in which their nodes look for others, ascending."""
    found = np.zeros(len(grid.coord) + 1, bool)
    found[grid.around[blocks]] = True
    found = found[:-1]  # the last one stands for none
    if len(grid.master):  # `around` has the first block of each place
        place = grid.packed >> BODY_BITS
        found = found[np.searchsorted(place, place)]
    return np.flatnonzero(found)


def blocks_in_contact(contacts: ContactList, copies: Copies | None) -> np.ndarray:
    """Return the blocks of nodes in contact and of their images, and of nodes that get the velocity of others, ascending."""
    found = np.zeros(len(contacts.counts), bool)
    places = contacts.places[listed_rows(contacts)]
    found[places[:, NODE_PLACE] >> 6] = True
    images = places[:, FELLOW_PLACE]
    found[images[images >= 0] >> 6] = True
    if copies is not None:
        found[blocks_of_copies(copies)] = True
    return np.flatnonzero(found)


def blocks_of_copies(copies: Copies) -> np.ndarray:
    """Return the blocks at places that have several, ascending."""
    begin, counts = copies.places[:, 0], np.diff(copies.places, axis=1)[:, 0]
    return np.asarray(np.arange(counts.sum()) + np.repeat(begin - np.cumsum(counts) + counts, counts))
