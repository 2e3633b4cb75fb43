"""The fellow of a grid node beside a surface: the node outside whose relative velocity it takes a share of (see `grid`)."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.sides import kept_apart, sides_seen
from mpm_nodes.kernels.compile.jit import inline, part
from mpm_nodes.kernels.transfers.binning import BODY_BITS, packed_neighbour

__all__ = ["DEEPEST", "GOAL", "REACH", "block_at", "fellow_of", "node_at", "ratio_of"]

REACH = 0.5 - 1e-6
"""Nodes nearer to a surface than this are in contact [cells]; the layer beyond is that of the fellows. Rounding does not decide."""
GOAL = 0.75
"""Distance from the surface at which a fellow is looked for [cells]: the first layer from half a cell on is nearest to it."""
DEEPEST = 2.0
"""Nodes farther behind a surface than this move with the body [cells]: no spline reaches them from outside."""
STEEPEST = 3.0
"""Largest |r|."""
HEAVIER = 1.0 + 1e-5
"""A node is the heavier of two from here on [mass of the other]."""


@inline
def _first_from(packed, key):
    """Return the place of the first packed coordinate that is not below a key."""
    low, high = 0, packed.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if packed[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def block_at(packed, key):
    """Return the place of a packed coordinate, or -1."""
    low = _first_from(packed, key)
    return low if low < packed.shape[0] and packed[low] == key else -1


@part
def _copy_at(grid, sides, key, rest):
    """Return the master of node `rest` of the blocks at a packed coordinate for matter of these sides, or -1."""
    place = key >> BODY_BITS
    block = _first_from(grid.packed, place << BODY_BITS)
    while block < grid.packed.shape[0] and grid.packed[block] >> BODY_BITS == place:
        node, other = 64 * block + rest, grid.block_sides[block]
        if kept_apart(sides, sides_seen(sides, node, grid.node_sides)) == kept_apart(
            other, sides_seen(other, node, grid.node_sides)
        ):
            return np.int64(grid.master[64 * block + rest])
        block += 1
    return np.int64(-1)


@part
def node_at(grid, block, x, y, z):
    """Return the node at places x, y, z counted from a block's first, or -1 where the grid has none."""
    return node_of(grid, block, grid.block_sides[block] if grid.master.shape[0] else np.int64(0), x, y, z)


@part
def node_of(grid, block, sides, x, y, z):
    """Return the node at places x, y, z counted from a block's first that matter of these sides has, or -1."""
    if grid.master.shape[0]:
        key = packed_neighbour(grid.packed[block], x >> 2, y >> 2, z >> 2)
        return _copy_at(grid, sides, key, (x & 3) * 16 + (y & 3) * 4 + (z & 3))
    if (x >> 2) | (y >> 2) | (z >> 2):
        block = block_at(grid.packed, packed_neighbour(grid.packed[block], x >> 2, y >> 2, z >> 2))
        if block < 0:
            return np.int64(-1)
    return np.int64(block * 64 + (x & 3) * 16 + (y & 3) * 4 + (z & 3))


@inline
def sides_at(grid, block, node):
    """Return the sides of a block's matter, and of plates that it is too far from to have one, those on which its node lies."""
    if grid.master.shape[0] == 0:
        return np.int64(0)
    matter = grid.block_sides[block]
    return matter | kept_apart(matter, sides_seen(matter, 64 * block + node, grid.node_sides))


@part
def fellow_of(grid, block, node, phi, n0, n1, n2):
    """Return the fellow of a node and r, or -1 and 0; phi in cells.

    Of the eight nodes around the goal on the normal, the nearest with mass that lies half a cell outside. What is lighter than the
    node itself leads it by that much less: matter that barely reaches the surface has nothing outside to hold on to.
    """
    none = (np.int64(-1), 0.0, np.int64(0), np.int64(0), np.int64(0))
    if phi <= -DEEPEST or n0 * n0 + n1 * n1 + n2 * n2 < 0.5:
        return none
    t0, t1, t2 = (GOAL - phi) * n0, (GOAL - phi) * n1, (GOAL - phi) * n2
    # rounding must not decide which side of a node the goal is on
    f0, f1, f2 = np.int64(np.floor(t0 + 1e-6)), np.int64(np.floor(t1 + 1e-6)), np.int64(np.floor(t2 + 1e-6))
    at0, at1, at2 = node >> 4, (node >> 2) & 3, node & 3
    mass = grid.momentum[(block * 64 + node) * 4 + 3]
    found, nearest, out = np.int64(-1), np.inf, 1.0
    d0 = d1 = d2 = np.int64(0)
    # from the nearest corner on: where no other is as near and it will do, it is the one
    nearer = (4 if t0 - f0 > 0.5 else 0) + (2 if t1 - f1 > 0.5 else 0) + (1 if t2 - f2 > 0.5 else 0)
    alone = min(abs(t0 - f0 - 0.5), abs(t1 - f1 - 0.5), abs(t2 - f2 - 0.5)) > 1e-9
    for other_way in range(8):
        if alone and other_way == 1 and found >= 0:
            break
        corner = nearer ^ other_way
        s0, s1, s2 = f0 + (corner >> 2), f1 + ((corner >> 1) & 1), f2 + (corner & 1)
        there = phi + n0 * s0 + n1 * s1 + n2 * s2
        away = (s0 - t0) ** 2 + (s1 - t1) ** 2 + (s2 - t2) ** 2
        # with the goal on a layer of nodes, the next layer is as far on either side: that on one side would be no mirror image
        beside = (s0 > f0 and t0 - f0 < 1e-6) or (s1 > f1 and t1 - f1 < 1e-6) or (s2 > f2 and t2 - f2 < 1e-6)
        if there < REACH or away > nearest + 1e-9 or beside:
            continue
        other = node_at(grid, block, at0 + s0, at1 + s1, at2 + s2)
        if other < 0 or grid.momentum[4 * other + 3] <= grid.least_mass[0]:
            continue
        # of two that lie alike the heavier, so that a turned scene chooses the turned one; rounding does not make one heavier
        if away < nearest - 1e-9 or grid.momentum[4 * other + 3] > HEAVIER * grid.momentum[4 * found + 3]:
            found, nearest, out = other, away, there
            d0, d1, d2 = s0, s1, s2
    if found < 0:
        return none
    share = min(1.0, np.float64(grid.momentum[4 * found + 3]) / np.float64(mass))
    return found, share * ratio_of(phi, out), d0, d1, d2


@inline
def ratio_of(phi, out):
    """Return r of a node at the distance phi whose fellow, no lighter, is at the distance `out`."""
    return min(max(phi / out, -STEEPEST), 1.0)
