"""Contacts of grid nodes with posed bodies and domain walls, listed body by body: where a wall holds, and what it holds on to.

| symbol | meaning | unit |
|---|---|---|
| phi_i, n | signed distance of node i from the surface, unit normal out of the body | m, - |
| w_i | velocity of the body at node i | m/s |
| j | the node's image outside: the nearest along n that is at least half a cell out | |
| r | phi_i / phi_j, the share of the image's relative velocity that the node takes: between -3 and 1 | - |

A surface lies between nodes. The relative velocity is taken as linear along n through the surface, where it vanishes: nodes
nearer than half a cell, and those behind the surface, follow their image outside, v_i - w_i = r (v_j - w_j). On a node plane r is
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
    PULL,
    RATIO,
    RULE_OF,
    WALL_ROWS,
    across,
    answers,
    write_place,
)
from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS
from mpm_nodes.kernels.collisions.image_nodes import REACH, image_of
from mpm_nodes.kernels.collisions.node_surfaces import has_sides, hides_image, nodes_out_of_reach, surface_at
from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, striped, striped_places, to_body
from mpm_nodes.kernels.collisions.touching import FARTHEST, gap_before, touching_area
from mpm_nodes.kernels.collisions.wall_contacts import list_wall, may_touch, write_wall
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import ADHESION, FRICTION, PLATE, RULE


@compiled(fastmath=False)
def list_contacts(found, blocks, grid, motion, walls, bodies, told):
    """List the contacts of every node with mass on, behind or just before the surface of a body or wall, block by block.

    Those of a block come in the order of bodies and walls.

    Args:
        found: `ContactList` that takes them.
        blocks: Places of the blocks to look at, int64.
        grid: `GridView` of the nodes: those without mass are left alone.
        motion: Grid spacing [m]; grid origin in the frame of the bodies, shape (3,) [m]; substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        told: `Told`: what nodes know already, and are told now, of bodies that stand still.
    """
    for side in range(WALL_ROWS):
        write_wall(found.rows[side], side, len(bodies.real) + side, walls)
    solids = (lend_plain(bodies), lend_plain(told))
    h, shift, dt = motion
    given = (plain(blocks), lend_plain(grid), (h, plain(shift), dt), lend_plain(walls), solids, lend_plain(found))
    parallel_for(_list_block, striped_places(blocks.shape[0]), given)


# ---------------------------------------------------------------- rows
@part
def _note(found, block, node, surface, n, motion, held_by, u):
    """Count a contact of a block, and write it where there is room.

    `surface` is the body's place, its rule, its friction and its pull, `held_by` the image and r, `motion` the velocity of the body
    at the node and how fast matter may come nearer; u is the velocity of the body at the image.
    """
    (level, rule, friction, pull), (w, lag), (image, ratio) = surface, motion, held_by
    at = found.start[block] + found.counts[block]
    found.counts[block] += 1
    if at < found.stop[block]:
        rows = found.rows
        write_place(found.places, found.ratios, at, (block * 64 + node, image, level, at, ratio))
        rows[at, NODE], rows[at, RULE_OF], rows[at, FRICTION_OF], rows[at, LEVEL] = block * 64 + node, rule, friction, level
        rows[at, NORMAL], rows[at, NORMAL + 1], rows[at, NORMAL + 2] = n
        rows[at, BODY], rows[at, BODY + 1], rows[at, BODY + 2] = w
        rows[at, FELLOW], rows[at, RATIO], rows[at, LAG], rows[at, COMES] = image, ratio, lag, 0.0
        rows[at, FELLOW_BODY], rows[at, FELLOW_BODY + 1], rows[at, FELLOW_BODY + 2] = u
        rows[at, PULL] = pull


# ---------------------------------------------------------------- blocks
@part
def _list_block(place, blocks, grid, motion, walls, solids, found):
    index = striped(place, len(blocks))
    if index >= len(blocks):
        return
    block = blocks[index]
    found.counts[block] = 0
    held = _held_nodes(grid, block)
    if held == 0:
        return
    count, coord = len(solids[0].real), grid.coord
    base = (4 * coord[block, 0], 4 * coord[block, 1], 4 * coord[block, 2])
    if count:
        _meet_bodies(block, held, grid, base, motion, solids, found)
    for side in range(6):
        if int(walls.rules[side]) < OPEN and may_touch(side, base, motion, walls):
            list_wall(block, side, count + side, grid, base, motion, walls, found)


@part
def _held_nodes(grid, block):
    """Return the bits of those nodes of a block that answer for mass."""
    held = np.int64(0)
    for node in range(64):
        if answers(grid, 64 * block + node):
            held |= np.int64(1) << node
    return held


@part
def _meet_bodies(block, held, grid, base, motion, solids, found):
    """List contacts of a block's nodes with the bodies, in order; those on sides of a body's plates come first."""
    bodies, told = solids
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for b in range(len(bodies.real)):
        if told.column[b] >= 0:
            out = told.out[block, told.column[b]]
        else:
            out = nodes_out_of_reach(block, held, b, grid, motion, frames, bodies)
        left = held & ~out
        if left == 0:
            continue
        sides = len(grid.master) > 0 and bodies.integer[b, PLATE] >= 0
        for turn in range(1 + int(sides)):
            for node in range(64):
                if left >> node & 1 and (not sides or has_sides(grid, block, node, b, bodies) == (turn == 0)):
                    _meet_node(block, node, grid, base, b, motion, solids, found)


@part
def _meet_node(block, node, grid, base, b, motion, solids, found):
    """List the contact of a node of a block with body b, if the surface is near or it lies behind it."""
    (h, shift, dt), (bodies, told) = motion, solids
    x0 = shift[0] + h * (base[0] + (node >> 4))
    x1 = shift[1] + h * (base[1] + ((node >> 2) & 3))
    x2 = shift[2] + h * (base[2] + (node & 3))
    y = to_body(b, 1, x0, x1, x2, bodies.real)
    phi, n0, n1, n2, depth = surface_at(block, node, b, y, h, grid, bodies, told)
    if phi >= REACH * h:
        return
    n = (n0, n1, n2)
    gap = gap_before(grid, block, node, phi / h, n, depth)
    if gap >= FARTHEST:
        return
    w = body_velocity(b, dt, y[0], y[1], y[2], bodies)
    image, ratio, s0, s1, s2 = image_of(grid, block, node, phi / h, n0, n1, n2)
    u = w
    if image >= 0:
        y = to_body(b, 1, x0 + h * s0, x1 + h * s1, x2 + h * s2, bodies.real)
        u = body_velocity(b, dt, y[0], y[1], y[2], bodies)
        if hides_image((block, node), b, image, y, h, grid, bodies, told):
            image, ratio = np.int64(-1), 0.0
    pull = bodies.real[b, ADHESION]
    if pull > 0.0:
        out = phi / h + n0 * s0 + n1 * s1 + n2 * s2
        pull *= dt * touching_area(grid, (block * 64 + node, phi / h), (image, out), h)
    surface = (b, bodies.integer[b, RULE], bodies.real[b, FRICTION], pull)
    surface, w, lag = across(gap, surface, ratio, h / dt, n, w)
    _note(found, block, node, surface, n, (w, lag), (image, ratio), u)
