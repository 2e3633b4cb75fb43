"""The image node of a grid node beside a surface: the node outside whose relative velocity it takes a share of (see `grid`).

In the words of immersed boundaries the node beside or behind the surface is a ghost node, and this one stands for its image point.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.sides import PAIRS, kept_apart, sides_seen
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.transfers.binning import BODY_BITS, packed_neighbour

__all__ = ["DEEPEST", "GOAL", "REACH", "block_beside", "find_around", "image_of", "node_of", "ratio_of", "sides_at"]

ROUNDING = 1e-6
"""Share of a cell that the single precision of level sets leaves open."""
REACH = 0.5 - ROUNDING
"""Nodes nearer to a surface than this are in contact [cells]; the layer beyond is that of the images. Rounding does not decide."""
GOAL = 0.75
"""Distance from the surface at which a image is looked for [cells]: the first layer from half a cell on is nearest to it."""
DEEPEST = 2.0
"""Nodes farther behind a surface than this move with the body [cells]: no spline reaches them from outside."""
STEEPEST = 3.0
"""Largest |r|."""
HEAVIER = 1.0 + 1e-5
"""A node is the heavier of two from here on [mass of the other]."""


@compiled(fastmath=False)
def find_around(packed, copies, around):
    """Write which blocks lie at the 27 places around each block, -1 for none; those of one body, or of any where nodes have copies.

    Args:
        packed: Packed coordinates of the blocks, ascending.
        copies: Whether nodes have copies: then it is the first block of each place.
        around: Written, shape (n, 27), int32; see `block_beside`.
    """
    for column in range(27):
        at = 0
        for block in range(packed.size):
            key = packed_neighbour(packed[block], column // 9 - 1, column // 3 % 3 - 1, column % 3 - 1)
            bits = BODY_BITS if copies else 0
            while at < packed.size and packed[at] >> bits < key >> bits:
                at += 1
            around[block, column] = at if at < packed.size and packed[at] >> bits == key >> bits else -1


@inline
def block_beside(grid, block, x, y, z):
    """Return the block that lies x, y, z blocks from another, none of them farther than one, or -1."""
    if max(abs(x), abs(y), abs(z)) > 1:
        return np.int64(-1)
    return np.int64(grid.around[block, 9 * x + 3 * y + z + 13])


@part
def _copy_at(grid, sides, first, rest):
    """Return the master of node `rest` of the blocks at a place, from its first on, for matter of these sides, or -1."""
    place, last = grid.packed[first] >> BODY_BITS, first
    while last < len(grid.packed) and grid.packed[last] >> BODY_BITS == place:
        if grid.block_sides[last] == sides:  # matter of the same sides has the same node: no need to look at those of the node
            return np.int64(grid.master[64 * last + rest])
        last += 1
    for block in range(first, last):
        node, other = 64 * block + rest, grid.block_sides[block]
        if kept_apart(sides, sides_seen(sides, node, grid.node_sides)) == kept_apart(
            other, sides_seen(other, node, grid.node_sides)
        ):
            return np.int64(grid.master[node])
    return np.int64(-1)


@part
def node_of(grid, block, sides, x, y, z):
    """Return the node at places x, y, z counted from a block's first that matter of these sides has, or -1."""
    rest = (x & 3) * 16 + (y & 3) * 4 + (z & 3)
    beside = block_beside(grid, block, x >> 2, y >> 2, z >> 2)
    if beside < 0:
        return np.int64(-1)
    return _copy_at(grid, sides, beside, rest) if len(grid.master) else np.int64(beside * 64 + rest)


@part
def sides_at(grid, block, node):
    """Return the sides of the matter that shares a node, and of plates that it is too far from to have one, those on which it lies.

    Copies that no plate keeps apart are one node, of which matter near a plate may share only some: whichever block comes first
    must not decide. Beyond a rim, where matter of both sides meets, it has neither.
    """
    if len(grid.master) == 0:
        return np.int64(0)
    matter, last = np.int64(0), np.int64(block_beside(grid, block, 0, 0, 0))
    place = grid.packed[last] >> BODY_BITS
    while last < len(grid.packed) and grid.packed[last] >> BODY_BITS == place:
        if grid.master[64 * last + node] == grid.master[64 * block + node]:
            matter |= grid.block_sides[last]
        last += 1
    matter &= ~(3 * (matter & (matter >> 1) & PAIRS))
    return matter | kept_apart(matter, sides_seen(matter, 64 * block + node, grid.node_sides))


@part
def image_of(grid, block, node, phi, n0, n1, n2):
    """Return the image of a node and r, or -1 and 0; phi in cells.

    Of the eight nodes around the goal on the normal, the nearest with mass that lies half a cell outside. What is lighter than the
    node itself leads it by that much less: matter that barely reaches the surface has nothing outside to hold on to.
    """
    none = (np.int64(-1), 0.0, np.int64(0), np.int64(0), np.int64(0))
    if phi <= -DEEPEST or n0 * n0 + n1 * n1 + n2 * n2 < 0.5:
        return none
    t0, t1, t2 = (GOAL - phi) * n0, (GOAL - phi) * n1, (GOAL - phi) * n2
    # rounding must not decide which side of a node the goal is on
    f0, f1, f2 = np.int64(np.floor(t0 + ROUNDING)), np.int64(np.floor(t1 + ROUNDING)), np.int64(np.floor(t2 + ROUNDING))
    at0, at1, at2 = node >> 4, (node >> 2) & 3, node & 3
    mass = grid.momentum[(block * 64 + node) * 4 + 3]
    sides = sides_at(grid, block, node)
    found, nearest, out = np.int64(-1), np.inf, 1.0
    d0 = d1 = d2 = np.int64(0)
    # from the nearest corner on: where no other is as near and it will do, it is the one
    nearer = (4 if t0 - f0 > 0.5 else 0) + (2 if t1 - f1 > 0.5 else 0) + (1 if t2 - f2 > 0.5 else 0)
    alone = min(abs(t0 - f0 - 0.5), abs(t1 - f1 - 0.5), abs(t2 - f2 - 0.5)) > ROUNDING
    for other_way in range(8):
        if alone and other_way == 1 and found >= 0:
            break
        corner = nearer ^ other_way
        s0, s1, s2 = f0 + (corner >> 2), f1 + ((corner >> 1) & 1), f2 + (corner & 1)
        there = phi + n0 * s0 + n1 * s1 + n2 * s2
        away = (s0 - t0) ** 2 + (s1 - t1) ** 2 + (s2 - t2) ** 2
        # with the goal on a layer of nodes, the next layer is as far on either side: that on one side would be no mirror image
        beside = (s0 > f0 and t0 - f0 < ROUNDING) or (s1 > f1 and t1 - f1 < ROUNDING) or (s2 > f2 and t2 - f2 < ROUNDING)
        if there < REACH or away > nearest + ROUNDING or beside:
            continue
        other = node_of(grid, block, sides, at0 + s0, at1 + s1, at2 + s2)
        if other < 0 or grid.momentum[4 * other + 3] <= grid.least_mass[0]:
            continue
        # of two that lie alike the heavier, so that a turned scene chooses the turned one; rounding does not make one heavier
        if away < nearest - ROUNDING or grid.momentum[4 * other + 3] > HEAVIER * grid.momentum[4 * found + 3]:
            found, nearest, out = other, away, there
            d0, d1, d2 = s0, s1, s2
    if found < 0:
        return none
    share = min(1.0, np.float64(grid.momentum[4 * found + 3]) / np.float64(mass))
    return found, share * ratio_of(phi, out), d0, d1, d2


@inline
def ratio_of(phi, out):
    """Return r of a node at the distance phi whose image, no lighter, is at the distance `out`."""
    return min(max(phi / out, -STEEPEST), 1.0)
