"""What the surface of a body is at a node: which nodes are out of its reach, distance and normal at the others.

Bodies that stand still are asked once: as long as neither they nor the blocks of the grid are others than in the substep before, a
node finds what it was told then. Those that move are asked in every substep, for sixteen nodes at a time and then for each that
may be in reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS, clear_lanes, write_frame
from mpm_nodes.kernels.collisions.image_nodes import REACH
from mpm_nodes.kernels.collisions.rules import sample, signed_distance, world_normal
from mpm_nodes.kernels.collisions.sides import nearer_part, side_of_plate, sides_seen, through_plate
from mpm_nodes.kernels.collisions.touching import BEHIND, depth_behind
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const
from mpm_nodes.kernels.lanes.indexed import mask_bits
from mpm_nodes.kernels.lanes.memory import lane_constant, load_splat
from mpm_nodes.kernels.level_sets.level_set import KIND, LEVEL_SET, PLATE, PLATES

__all__ = ["EVERY", "STORED", "Told", "find_out_of_reach", "has_sides", "hides_image", "nodes_out_of_reach", "surface_at"]

EVERY = -1
"""Bits of all nodes of a block."""
NODE_Y, NODE_Z = lane_constant([n // 4 - 1.5 for n in range(16)]), lane_constant([n % 4 - 1.5 for n in range(16)])
"""Places of the sixteen nodes of a slice of a block, from its middle [cells]."""
HALF_DIAGONAL = 2.6
"""No node of a block is farther from its middle [cells]."""
STORED = 6
PHI, NORMAL, DEPTH, HIDDEN = 0, 1, 4, 5
"""Columns of what a node was told: distance [m], normal, what `depth_behind` says, and twice the image that it had, one more where
that lies in the body; -1 for none."""


class Told(NamedTuple):
    """What nodes were told by bodies that stand still. Nodes are bits of an int64, 0 to 63.

    Attributes:
        column: Column of each body in the tables below, shape (bodies,), int64; -1 for those that are asked in every substep.
        out: Nodes out of reach, a row a block, int64.
        known: Nodes that have a row in `values`, a row a block, int64.
        slot: First row over 64 in `values`, a row a block, int32; -1 where all nodes are out of reach.
        values: What they were told, shape (64 slots, STORED).
    """

    column: np.ndarray
    out: np.ndarray
    known: np.ndarray
    slot: np.ndarray
    values: np.ndarray


# ---------------------------------------------------------------- out of reach
@compiled(fastmath=False)
def find_out_of_reach(grid, motion, which, bodies, out):
    """Write the nodes of every block that are out of reach of some bodies.

    Args:
        grid: `GridView`.
        motion: Grid spacing [m]; grid origin in the frame of the bodies, shape (3,) [m]; substep [s].
        which: The bodies, int64.
        bodies: `Bodies`.
        out: Written, shape (blocks, bodies of `which`), int64: bits of nodes.
    """
    h, shift, dt = motion
    given = (lend_plain(grid), (h, plain(shift), dt), plain(which), lend_plain(bodies), plain(out))
    parallel_for(_find_out_of_block, out.shape[0], given)


@part
def _find_out_of_block(block, grid, motion, which, bodies, out):
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for k in range(len(which)):
        out[block, k] = nodes_out_of_reach(block, EVERY, which[k], grid, motion, frames, bodies)


@part
def nodes_out_of_reach(block, asked, b, grid, motion, frames, bodies):
    """Return the bits of those nodes of a block that body b is surely too far from, of those `asked`: sixteen are tried at a time.

    Nodes on the sides of its plates may meet it from afar, as matter that sees all beyond its side as plate.
    """
    h, shift, _ = motion
    sided = np.int64(0)
    if len(grid.master) and bodies.integer[b, PLATE] >= 0:
        for node in range(64):
            if asked >> node & 1 and has_sides(grid, block, node, b, bodies):
                sided |= np.int64(1) << node
    m0 = shift[0] + h * (4 * grid.coord[block, 0] + 1.5)
    m1 = shift[1] + h * (4 * grid.coord[block, 1] + 1.5)
    m2 = shift[2] + h * (4 * grid.coord[block, 2] + 1.5)
    clear = np.int64(EVERY)
    if write_frame(frames, np.int64(0), b, np.int64(1), (m0, m1, m2), HALF_DIAGONAL, (h, 0.0, REACH), bodies):
        clear = np.int64(0)
        for layer in range(4):
            clear |= _clear_nodes(layer, frames, 1.0 / h, bodies) << (16 * layer)
    return clear & ~sided


@part
def _clear_nodes(layer, frames, per_metre, bodies):
    """Return the bits of those nodes of a layer of a block that surely lie out of reach of the body of frame 0."""
    like = load_splat(frames[0], 0)
    o0, zero = broadcast(like, layer - 1.5), const(like, 0.0)
    return mask_bits(clear_lanes(frames, 0, (o0, NODE_Y(like), NODE_Z(like)), (zero, zero, zero), per_metre, bodies))


@inline
def has_sides(grid, block, node, b, bodies):
    """Return whether matter of a block has its node on a side of one of the plates of body b."""
    if len(grid.master) == 0 or bodies.integer[b, PLATE] < 0:
        return False
    plates = ((np.int64(1) << (2 * bodies.integer[b, PLATES])) - 1) << (2 * bodies.integer[b, PLATE])
    return (sides_seen(grid.block_sides[block], 64 * block + node, grid.node_sides) & plates) != 0


# ---------------------------------------------------------------- one node
@part
def surface_at(block, node, b, y, h, grid, bodies, told):
    """Return the distance of a node from body b [m], the normal, and what `depth_behind` says; out of reach the distance alone.

    Args:
        block, node: The node.
        b: Body.
        y: The node in the frame of the body, three values [m].
        h: Grid spacing [m].
        grid: `GridView`.
        bodies: `Bodies`.
        told: `Told`.
    """
    column, values = told.column[b], told.values
    if column < 0:
        return _ask(block, node, b, y, h, grid, bodies)
    row = 64 * np.int64(told.slot[block, column]) + node
    if told.known[block, column] >> node & 1:
        return values[row, PHI], values[row, NORMAL], values[row, NORMAL + 1], values[row, NORMAL + 2], values[row, DEPTH]
    phi, n0, n1, n2, depth = _ask(block, node, b, y, h, grid, bodies)
    if phi >= REACH * h:
        told.out[block, column] |= np.int64(1) << node
    else:
        told.known[block, column] |= np.int64(1) << node
        values[row, PHI], values[row, DEPTH], values[row, HIDDEN] = phi, depth, -1.0
        values[row, NORMAL], values[row, NORMAL + 1], values[row, NORMAL + 2] = n0, n1, n2
    return phi, n0, n1, n2, depth


@part
def _ask(block, node, b, y, h, grid, bodies):
    """Return what `surface_at` does, of the body itself."""
    sided = has_sides(grid, block, node, b, bodies)
    if sided:
        phi, g0, g1, g2 = _on_a_side(block, node, b, y, h, grid, bodies)
    else:
        phi, g0, g1, g2 = sample(b, 1.0, y[0], y[1], y[2], bodies)
    if phi >= REACH * h:
        return phi, 0.0, 0.0, 0.0, BEHIND
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    return phi, n0, n1, n2, BEHIND if sided else depth_behind(b, y, h, (phi, g0, g1, g2), bodies)


@part
def _on_a_side(block, node, b, y, h, grid, bodies):
    """Return phi [m] and its gradient as matter on one side of the plates of body b sees them: all not on that side is plate.

    Of several plates of a body that which the node lies deepest in counts.
    """
    deepest = (np.inf, 0.0, 0.0, 0.0)
    matter, first = grid.block_sides[block], bodies.integer[b, PLATE]
    seen = sides_seen(matter, 64 * block + node, grid.node_sides)
    for sheet in range(bodies.integer[b, PLATES]):
        side = through_plate(first + sheet, matter, seen)
        if side:
            met = side_of_plate((b, np.int64(sheet)), side, np.int64(1), y, h, bodies)
            if met[0] < deepest[0]:
                deepest = met
    return nearer_part(b, np.int64(1), y, deepest, h, bodies)


@part
def hides_image(place, b, image, y, h, grid, bodies, told):
    """Return whether a node's image, at y in the frame of body b, lies in the body itself: then the node has none.

    Deep inside, a level set knows neither its distance nor its normal well: what it takes for outside may lie inside. `place` is
    the node's block and its number there; of `y` and the others see `surface_at`.
    """
    (block, node), column, values = place, told.column[b], told.values
    if bodies.integer[b, KIND] != LEVEL_SET or has_sides(grid, block, node, b, bodies):
        return False
    row = 64 * np.int64(told.slot[block, column]) + node if column >= 0 else np.int64(0)
    if column >= 0 and values[row, HIDDEN] >= 0.0 and np.int64(values[row, HIDDEN]) >> 1 == image:
        return (np.int64(values[row, HIDDEN]) & 1) == 1
    inside = signed_distance(b, 1.0, y[0], y[1], y[2], bodies) < 0.5 * REACH * h
    if column >= 0:
        values[row, HIDDEN] = 2.0 * image + (1.0 if inside else 0.0)
    return inside
