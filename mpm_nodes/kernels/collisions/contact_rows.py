"""Rows of contacts of grid nodes with bodies and walls, and what all that list them share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.rules import SEPARATE
from mpm_nodes.kernels.collisions.touching import HOLDS
from mpm_nodes.kernels.compile.jit import inline

COLUMNS = 18
NODE, RULE_OF, FRICTION_OF, NORMAL, BODY, FELLOW, RATIO, FELLOW_BODY, LEVEL, LAG, COMES = 0, 1, 2, 3, 6, 9, 10, 11, 14, 15, 16
PULL = 17
"""Columns of a contact: node, rule, friction, normal, velocity of the body at the node, image (-1: none), r, velocity of the body
at the image, the place of the body among all bodies and walls, how fast matter that is held may still come nearer, and how fast
it does in an implicit step [m/s]; the largest impulse by which adhesion holds the node in this substep [N s]."""
PLACES = 4
NODE_PLACE, FELLOW_PLACE, LEVEL_PLACE, SURFACE_PLACE = 0, 1, 2, 3
"""Columns of a contact's places: node, image and level for the passes that need nothing else, and the row that holds the rest."""
WALL_ROWS = 6
"""The first rows are those of the walls: what all contacts with a wall have in common is written once."""


class ContactList(NamedTuple):
    """Where contacts are listed.

    Attributes:
        start: First row of each block, shape (n,), int64.
        stop: Behind the last row that a block may write, shape (n,), int64.
        counts: Contacts of each block, shape (n,), int64, written: more than there are rows when those did not suffice.
        rows: COLUMNS of every contact with a body, float64, written; in the first six rows those of the walls, but for node, image
            and r.
        places: PLACES of every contact, int32, written.
        ratios: r of every contact, float64, written.
    """

    start: np.ndarray
    stop: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    ratios: np.ndarray


class GridView(NamedTuple):
    """The grid as contacts see it.

    Attributes:
        momentum: (px, py, pz, m) of the nodes, flat.
        coord: Blocks, shape (n, 3).
        packed: Their packed coordinates, ascending.
        around: The blocks around each, as `image_nodes.find_around` writes them.
        least_mass: Mass of a node that counts as empty, shape (1,).
        spline: Nodes of the widest spline along an axis, shape (1,).
        volume: Of a grid beside bodies with adhesion (-, -, -, volume of the matter) of the nodes, flat [m^3]; an empty array else.
        block_sides, node_sides, master: Of a grid whose nodes have copies on the sides of plates the sides of each block's matter
            and of each node, and the master of each node (`sides`); empty arrays else.
    """

    momentum: np.ndarray
    coord: np.ndarray
    packed: np.ndarray
    around: np.ndarray
    least_mass: np.ndarray
    spline: np.ndarray
    volume: np.ndarray
    block_sides: np.ndarray
    node_sides: np.ndarray
    master: np.ndarray


@inline
def write_place(places, ratios, at, contact):
    """Write node, image, level and surface of a contact, and its r."""
    places[at, NODE_PLACE], places[at, FELLOW_PLACE], places[at, LEVEL_PLACE], places[at, SURFACE_PLACE], ratios[at] = contact


@inline
def answers(grid, node):
    """Return whether a node has mass, and velocities of its own or those of its copies to answer for."""
    return grid.momentum[node * 4 + 3] > 0.0 and (len(grid.master) == 0 or grid.master[node] == node)


@inline
def across(gap, surface, ratio, per_second, n, w):
    """Return surface and velocity of a body as matter meets them that is a gap before it [cells], and how fast it may come nearer.

    What holds on to matter lets it come nearer all the same: else it would hold it at the farthest place from which it does, and
    lose it again at once. Speeds are in m/s.

    Args:
        gap: Distance beyond `CLOSE` [cells].
        surface: The body's place, its rule, its friction, and the largest impulse of its adhesion [N s].
        ratio: r.
        per_second: A cell in a substep [m/s].
        n, w: Normal, and velocity of the body.
    """
    level, rule, friction, pull = surface
    speed = (1.0 - ratio) * gap * per_second
    if rule != SEPARATE or pull > 0.0:
        if gap <= HOLDS:
            return surface, w, speed
        rule, friction, pull = np.int64(SEPARATE), 0.0, 0.0
    return (level, rule, friction, pull), (w[0] - speed * n[0], w[1] - speed * n[1], w[2] - speed * n[2]), 0.0
