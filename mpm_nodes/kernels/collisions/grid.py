"""Contacts of grid nodes with posed bodies and domain walls, listed body by body: where a wall holds, and what it holds on to.

| symbol | meaning | unit |
|---|---|---|
| phi_i, n | signed distance of node i from the surface, unit normal out of the body | m, - |
| w_i | velocity of the body at node i | m/s |
| j | the node's fellow outside: the nearest along n that is at least half a cell out | |
| r | phi_i / phi_j, the share of the fellow's relative velocity that the node takes: between -3 and 1 | - |

A surface lies between nodes. The relative velocity is taken as linear along n through the surface, where it vanishes: nodes
nearer than half a cell, and those behind the surface, follow their fellow outside, v_i - w_i = r (v_j - w_j). On a node plane r is
0, and this is the rule of Stomakhin 2013, section 8. As with the ghost cells of finite differences, the result does not depend on
where the surface lies between the nodes. `response` and `contacts` hold the constraint in explicit and in implicit steps.

Matter that is still before the surface, by a gap g (`touching`), may come nearer by as much as is between them: w_i has
- (1 - r) g / dt along n more, so that nothing hangs on a decision. Bodies that hold on to matter do so once it touches.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import (
    BODY,
    COMES,
    FELLOW,
    FELLOW_BODY,
    FRICTION_OF,
    LAG,
    LEVEL,
    NODE,
    NORMAL,
    RATIO,
    RULE_OF,
    WALL_ROWS,
    across,
    answers,
    write_place,
)
from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS, clear_lanes, write_frame
from mpm_nodes.kernels.collisions.fellows import REACH, fellow_of
from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, sample, striped, striped_places, to_body, world_normal
from mpm_nodes.kernels.collisions.sides import nearer_part, side_of_plate, sides_seen, through_plate
from mpm_nodes.kernels.collisions.touching import BEHIND, FARTHEST, depth_behind, gap_before
from mpm_nodes.kernels.collisions.wall_contacts import list_wall, may_touch, write_wall
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const
from mpm_nodes.kernels.lanes.indexed import mask_bits
from mpm_nodes.kernels.lanes.memory import lane_constant, load_splat
from mpm_nodes.kernels.level_sets.level_set import FRICTION, KIND, LEVEL_SET, PLATE, PLATES, RULE

NODE_Y, NODE_Z = lane_constant([n // 4 - 1.5 for n in range(16)]), lane_constant([n % 4 - 1.5 for n in range(16)])
"""Places of the sixteen nodes of a slice of a block, from its middle [cells]."""
HALF_DIAGONAL = 2.6
"""No node of a block is farther from its middle [cells]."""
ALL_CLEAR = 65535
"""Bits of sixteen nodes that lie outside."""


@compiled(fastmath=False)
def list_contacts(found, blocks, grid, h, shift, dt, walls, bodies):
    """List the contacts of every node with mass on, behind or just before the surface of a body or wall, block by block.

    Those of a block come in the order of bodies and walls.

    Args:
        found: `ContactList` that takes them.
        blocks: Places of the blocks to look at, int64.
        grid: `GridView` of the nodes: those without mass are left alone.
        h: Grid spacing [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        dt: Substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`.
    """
    for side in range(WALL_ROWS):
        write_wall(found.rows[side], side, len(bodies.real) + side, walls)
    given = (plain(blocks), lend_plain(grid), (h, shift, dt), lend_plain(walls), lend_plain(bodies), lend_plain(found))
    parallel_for(_list_block, striped_places(blocks.shape[0]), given)


# ---------------------------------------------------------------- rows
@part
def _note(found, block, node, surface, n, motion, held_by, u):
    """Count a contact of a block, and write it where there is room.

    `surface` is the body's place, its rule and its friction, `held_by` the fellow and r, `motion` the velocity of the body at the
    node and how fast matter may come nearer; u is the velocity of the body at the fellow.
    """
    (level, rule, friction), (w, lag), (fellow, ratio) = surface, motion, held_by
    at = found.start[block] + found.counts[block]
    found.counts[block] += 1
    if at < found.stop[block]:
        rows = found.rows
        write_place(found.places, found.ratios, at, (block * 64 + node, fellow, level, at, ratio))
        rows[at, NODE], rows[at, RULE_OF], rows[at, FRICTION_OF], rows[at, LEVEL] = block * 64 + node, rule, friction, level
        rows[at, NORMAL], rows[at, NORMAL + 1], rows[at, NORMAL + 2] = n
        rows[at, BODY], rows[at, BODY + 1], rows[at, BODY + 2] = w
        rows[at, FELLOW], rows[at, RATIO], rows[at, LAG], rows[at, COMES] = fellow, ratio, lag, 0.0
        rows[at, FELLOW_BODY], rows[at, FELLOW_BODY + 1], rows[at, FELLOW_BODY + 2] = u


# ---------------------------------------------------------------- blocks
@part
def _list_block(place, blocks, grid, motion, walls, bodies, found):
    index = striped(place, len(blocks))
    if index >= len(blocks):
        return
    block = blocks[index]
    found.counts[block] = 0
    coord = grid.coord
    base = (4 * coord[block, 0], 4 * coord[block, 1], 4 * coord[block, 2])
    if len(bodies.real):
        _meet_bodies(block, grid, base, motion, bodies, found)
    for side in range(6):
        if int(walls.rules[side]) < OPEN and may_touch(side, base, motion, walls):
            list_wall(block, side, len(bodies.real) + side, grid, base, motion, walls, found)


@part
def _meet_bodies(block, grid, base, motion, bodies, found):
    """List contacts of a block's nodes with the bodies, in order: sixteen are tried at a time, then each that is left."""
    h, shift, _ = motion
    m0, m1, m2 = shift[0] + h * (base[0] + 1.5), shift[1] + h * (base[1] + 1.5), shift[2] + h * (base[2] + 1.5)
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for b in range(len(bodies.real)):
        for node in range(64 * int(len(grid.master) > 0 and bodies.integer[b, PLATE] >= 0)):
            if _has_sides(grid, block, node, b, bodies):
                _meet_side(block, node, grid, base, b, motion, bodies, found)
        if not write_frame(frames, np.int64(0), b, np.int64(1), (m0, m1, m2), HALF_DIAGONAL, (h, 0.0, REACH), bodies):
            continue
        for layer in range(4):
            clear = _clear_nodes(layer, frames, 1.0 / h, bodies)
            for rest in range(16 * int(clear != ALL_CLEAR)):
                if not clear >> rest & 1 and not _has_sides(grid, block, 16 * layer + rest, b, bodies):
                    _meet_node(block, 16 * layer + rest, grid, base, b, motion, bodies, found)


@part
def _clear_nodes(layer, frames, per_metre, bodies):
    """Return the bits of those nodes of a layer of a block that surely lie out of reach of the body of frame 0."""
    like = load_splat(frames[0], 0)
    o0, zero = broadcast(like, layer - 1.5), const(like, 0.0)
    return mask_bits(clear_lanes(frames, 0, (o0, NODE_Y(like), NODE_Z(like)), (zero, zero, zero), per_metre, bodies))


@part
def _meet_node(block, node, grid, base, b, motion, bodies, found):
    """List the contact of a node of a block with body b, if it has mass and the surface is near or it lies behind it."""
    if not answers(grid, block * 64 + node):
        return
    h, shift, dt = motion
    x0 = shift[0] + h * (base[0] + (node >> 4))
    x1 = shift[1] + h * (base[1] + ((node >> 2) & 3))
    x2 = shift[2] + h * (base[2] + (node & 3))
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    phi, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
    if phi >= REACH * h:
        return
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    n = (n0, n1, n2)
    depth = depth_behind(b, (y0, y1, y2), h, (phi, g0, g1, g2), bodies)
    gap = gap_before(grid, block, node, phi / h, n, depth)
    if gap >= FARTHEST:
        return
    w0, w1, w2 = body_velocity(b, dt, y0, y1, y2, bodies)
    fellow, ratio, s0, s1, s2 = fellow_of(grid, block, node, phi / h, n0, n1, n2)
    u0, u1, u2 = w0, w1, w2
    if fellow >= 0:
        y0, y1, y2 = to_body(b, 1, x0 + h * s0, x1 + h * s1, x2 + h * s2, bodies.real)
        u0, u1, u2 = body_velocity(b, dt, y0, y1, y2, bodies)
        # deep inside, a level set knows neither its distance nor its normal well: what it takes for outside may lie inside
        if bodies.integer[b, KIND] == LEVEL_SET and sample(b, 1.0, y0, y1, y2, bodies)[0] < 0.5 * REACH * h:
            fellow, ratio = np.int64(-1), 0.0
    surface = (b, bodies.integer[b, RULE], bodies.real[b, FRICTION])
    held_by, w, u = (fellow, ratio), (w0, w1, w2), (u0, u1, u2)
    surface, w, lag = across(gap, surface, ratio, h / dt, n, w)
    _note(found, block, node, surface, n, (w, lag), held_by, u)


@inline
def _has_sides(grid, block, node, b, bodies):
    """Return whether matter of a block has its node on a side of one of the plates of body b."""
    if len(grid.master) == 0 or bodies.integer[b, PLATE] < 0:
        return False
    plates = ((np.int64(1) << (2 * bodies.integer[b, PLATES])) - 1) << (2 * bodies.integer[b, PLATE])
    return (sides_seen(grid.block_sides[block], 64 * block + node, grid.node_sides) & plates) != 0


@part
def _meet_side(block, node, grid, base, b, motion, bodies, found):
    """List the contact of a node with the plates of body b as matter on one side sees them: all not on that side is plate.

    Of several plates of a body that which the node lies deepest in counts.
    """
    if not answers(grid, block * 64 + node):
        return
    h, shift, dt = motion
    x0 = shift[0] + h * (base[0] + (node >> 4))
    x1 = shift[1] + h * (base[1] + ((node >> 2) & 3))
    x2 = shift[2] + h * (base[2] + (node & 3))
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    deepest = (np.inf, 0.0, 0.0, 0.0)
    matter, first = grid.block_sides[block], bodies.integer[b, PLATE]
    seen = sides_seen(matter, 64 * block + node, grid.node_sides)
    for sheet in range(bodies.integer[b, PLATES]):
        side = through_plate(first + sheet, matter, seen)
        if side:
            met = side_of_plate((b, np.int64(sheet)), side, np.int64(1), (y0, y1, y2), h, bodies)
            if met[0] < deepest[0]:
                deepest = met
    phi, g0, g1, g2 = nearer_part(b, np.int64(1), (y0, y1, y2), deepest, h, bodies)
    if phi >= REACH * h:
        return
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    n = (n0, n1, n2)
    gap = gap_before(grid, block, node, phi / h, n, BEHIND)
    if gap >= FARTHEST:
        return
    w0, w1, w2 = body_velocity(b, dt, y0, y1, y2, bodies)
    fellow, ratio, s0, s1, s2 = fellow_of(grid, block, node, phi / h, n0, n1, n2)
    u0, u1, u2 = w0, w1, w2
    if fellow >= 0:
        y0, y1, y2 = to_body(b, 1, x0 + h * s0, x1 + h * s1, x2 + h * s2, bodies.real)
        u0, u1, u2 = body_velocity(b, dt, y0, y1, y2, bodies)
    surface = (b, bodies.integer[b, RULE], bodies.real[b, FRICTION])
    held_by, w, u = (fellow, ratio), (w0, w1, w2), (u0, u1, u2)
    surface, w, lag = across(gap, surface, ratio, h / dt, n, w)
    _note(found, block, node, surface, n, (w, lag), held_by, u)
