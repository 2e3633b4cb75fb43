"""Contacts of grid nodes with posed bodies and domain walls, listed body by body: where a wall holds, and what it holds on to.

| symbol | meaning | unit |
|---|---|---|
| phi_i, n | signed distance of node i from the surface, unit normal out of the body | m, - |
| w_i | velocity of the body at node i | m/s |
| j | the node's fellow outside: the nearest along n that is at least half a cell out | |
| r | phi_i / phi_j, the share of the fellow's relative velocity that the node takes: between -3 and 1 | - |

A surface lies between nodes. The relative velocity is taken as linear along n through the surface, where it vanishes: nodes
nearer than half a cell, and those behind the surface, follow their fellow outside, v_i - w_i = r (v_j - w_j). On a node plane r is
0, and this is the rule of Stomakhin 2013, section 8. Nodes before a body that matter may leave wait until matter lies on it
(`touching`). As with the ghost cells of finite differences, the result does not depend on
where the surface lies between the nodes. `response` and `contacts` hold the constraint in explicit and in implicit steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS, clear_lanes, write_frame
from mpm_nodes.kernels.collisions.fellows import DEEPEST, GOAL, REACH, block_at, fellow_of, ratio_of
from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, sample, striped, striped_places, to_body, world_normal
from mpm_nodes.kernels.collisions.sides import nearer_part, side_of_plate, sides_seen, through_plate
from mpm_nodes.kernels.collisions.touching import all_behind, neighbours_behind, touched, waits
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const
from mpm_nodes.kernels.lanes.indexed import mask_bits
from mpm_nodes.kernels.lanes.memory import lane_constant, load_splat, prefetch
from mpm_nodes.kernels.level_sets.level_set import FRICTION, KIND, LEVEL_SET, PLATE, PLATES, RULE
from mpm_nodes.kernels.transfers.binning import packed_neighbour

NODE_Y, NODE_Z = lane_constant([n // 4 - 1.5 for n in range(16)]), lane_constant([n % 4 - 1.5 for n in range(16)])
"""Places of the sixteen nodes of a slice of a block, from its middle [cells]."""
HALF_DIAGONAL = 2.6
"""No node of a block is farther from its middle [cells]."""
ALL_CLEAR = 65535
"""Bits of sixteen nodes that lie outside."""

COLUMNS = 15
NODE, RULE_OF, FRICTION_OF, NORMAL, BODY, FELLOW, RATIO, FELLOW_BODY, LEVEL = 0, 1, 2, 3, 6, 9, 10, 11, 14
"""Columns of a contact: node, rule, friction, normal, velocity of the body at the node, fellow (-1: none), r, velocity of the body
at the fellow, and the place of the body among all bodies and walls."""
PLACES = 4
NODE_PLACE, FELLOW_PLACE, LEVEL_PLACE, SURFACE_PLACE = 0, 1, 2, 3
"""Columns of a contact's places: node, fellow and level for the passes that need nothing else, and the row that holds the rest."""
WALL_ROWS = 6
"""The first rows are those of the walls: what all contacts with a wall have in common is written once."""


class ContactList(NamedTuple):
    """Where contacts are listed.

    Attributes:
        start: First row of each block, shape (n,), int64.
        stop: Behind the last row that a block may write, shape (n,), int64.
        counts: Contacts of each block, shape (n,), int64, written: more than there are rows when those did not suffice.
        rows: COLUMNS of every contact with a body, float64, written; in the first six rows those of the walls, but for node, fellow
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
    """The grid as contacts see it: (px, py, pz, m) of the nodes, flat; blocks, shape (n, 3); their packed coordinates, ascending;
    mass of a node that counts as empty, shape (1,); nodes of the widest spline along an axis, shape (1,); of a grid whose nodes
    have copies on the sides of plates the sides of each block's matter and of each node, and the master of each node (`sides`),
    empty arrays else."""

    momentum: np.ndarray
    coord: np.ndarray
    packed: np.ndarray
    least_mass: np.ndarray
    spline: np.ndarray
    block_sides: np.ndarray
    node_sides: np.ndarray
    master: np.ndarray


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
        _write_wall(found.rows[side], side, bodies.real.shape[0] + side, walls)
    given = (blocks, lend(grid), (h, shift, dt), lend(walls), lend(bodies), lend(found))
    parallel_for(_list_block, striped_places(blocks.shape[0]), given)


@part
def _write_wall(row, side, level, walls):
    """Write what contacts with a wall have in common."""
    row[:] = 0.0
    row[RULE_OF], row[FRICTION_OF], row[LEVEL] = walls.rules[side], walls.rules[6], level
    row[NORMAL + (side >> 1)] = 1.0 - 2.0 * (side & 1)
    row[BODY + (side >> 1)] = row[FELLOW_BODY + (side >> 1)] = walls.rules[7 + side]


# ---------------------------------------------------------------- rows
@part
def _note(found, block, node, surface, n, w, held_by, u):
    """Count a contact of a block, and write it where there is room.

    `surface` is the body's place, its rule and its friction, `held_by` the fellow and r; w and u are velocities of the body at node
    and fellow.
    """
    (level, rule, friction), (fellow, ratio) = surface, held_by
    at = found.start[block] + found.counts[block]
    found.counts[block] += 1
    if at < found.stop[block]:
        row = found.rows[at]
        _place(found.places, found.ratios, at, (block * 64 + node, fellow, level, at, ratio))
        row[NODE], row[RULE_OF], row[FRICTION_OF], row[LEVEL] = block * 64 + node, rule, friction, level
        row[NORMAL], row[NORMAL + 1], row[NORMAL + 2] = n
        row[BODY], row[BODY + 1], row[BODY + 2] = w
        row[FELLOW], row[RATIO] = fellow, ratio
        row[FELLOW_BODY], row[FELLOW_BODY + 1], row[FELLOW_BODY + 2] = u


@inline
def _place(places, ratios, at, contact):
    """Write node, fellow, level and surface of a contact, and its r."""
    places[at, NODE_PLACE], places[at, FELLOW_PLACE], places[at, LEVEL_PLACE], places[at, SURFACE_PLACE], ratios[at] = contact


# ---------------------------------------------------------------- blocks
@part
def _list_block(place, blocks, grid, motion, walls, bodies, found):
    index = striped(place, blocks.shape[0])
    if index >= blocks.shape[0]:
        return
    block = blocks[index]
    found.counts[block] = 0
    coord = grid.coord
    base = (4 * coord[block, 0], 4 * coord[block, 1], 4 * coord[block, 2])
    if bodies.real.shape[0]:
        _meet_bodies(block, grid, base, motion, bodies, found)
    for side in range(6):
        if int(walls.rules[side]) < OPEN and _may_touch(side, base, motion, walls):
            _wall_block(block, side, bodies.real.shape[0] + side, grid, base, motion, walls, found)


@part
def _meet_bodies(block, grid, base, motion, bodies, found):
    """List contacts of a block's nodes with the bodies, in order: sixteen are tried at a time, then each that is left."""
    h, shift, _ = motion
    m0, m1, m2 = shift[0] + h * (base[0] + 1.5), shift[1] + h * (base[1] + 1.5), shift[2] + h * (base[2] + 1.5)
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for b in range(bodies.real.shape[0]):
        for node in range(64 * int(grid.master.shape[0] > 0 and bodies.integer[b, PLATE] >= 0)):
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
    if not _answers(grid, block * 64 + node):
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
    if waits(bodies.integer[b, RULE], phi / h):
        behind = neighbours_behind(b, (x0, x1, x2), h, phi / h, (n0, n1, n2), bodies)
        if not touched(grid, block, node, phi / h, (n0, n1, n2), behind):
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
    _note(found, block, node, surface, (n0, n1, n2), (w0, w1, w2), (fellow, ratio), (u0, u1, u2))


@inline
def _answers(grid, node):
    """Return whether a node has mass, and velocities of its own or those of its copies to answer for."""
    return grid.momentum[node * 4 + 3] > 0.0 and (grid.master.shape[0] == 0 or grid.master[node] == node)


@inline
def _has_sides(grid, block, node, b, bodies):
    """Return whether matter of a block has its node on a side of one of the plates of body b."""
    if grid.master.shape[0] == 0 or bodies.integer[b, PLATE] < 0:
        return False
    plates = ((np.int64(1) << (2 * bodies.integer[b, PLATES])) - 1) << (2 * bodies.integer[b, PLATE])
    return (sides_seen(grid.block_sides[block], 64 * block + node, grid.node_sides) & plates) != 0


@part
def _meet_side(block, node, grid, base, b, motion, bodies, found):
    """List the contact of a node with the plates of body b as matter on one side sees them: all not on that side is plate.

    Of several plates of a body that which the node lies deepest in counts.
    """
    if not _answers(grid, block * 64 + node):
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
    rule = bodies.integer[b, RULE]
    if phi >= REACH * h:
        return
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    n = (n0, n1, n2)
    if waits(rule, phi / h) and not touched(grid, block, node, phi / h, n, all_behind(phi / h, n)):
        return
    w0, w1, w2 = body_velocity(b, dt, y0, y1, y2, bodies)
    fellow, ratio, s0, s1, s2 = fellow_of(grid, block, node, phi / h, n0, n1, n2)
    u0, u1, u2 = w0, w1, w2
    if fellow >= 0:
        y0, y1, y2 = to_body(b, 1, x0 + h * s0, x1 + h * s1, x2 + h * s2, bodies.real)
        u0, u1, u2 = body_velocity(b, dt, y0, y1, y2, bodies)
    friction = bodies.real[b, FRICTION]
    _note(found, block, node, (b, rule, friction), n, (w0, w1, w2), (fellow, ratio), (u0, u1, u2))


@inline
def _may_touch(side, base, motion, walls):
    """Return whether some node of a block may be in contact with a wall: most blocks are far from all of them."""
    (h, shift, _), axis = motion, side >> 1
    nearest = shift[axis] + h * (base[axis] + (3 if side & 1 else 0)) - walls.box[side & 1, axis]
    return (-nearest if side & 1 else nearest) < h


@part
def _wall_block(block, side, level, grid, base, motion, walls, found):
    """List the contacts of the nodes of a block with one wall."""
    axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
    h, shift, _ = motion
    n0, n1, n2 = sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0
    low = base[0] if axis == 0 else (base[1] if axis == 1 else base[2])
    # arrays are taken out of their tuples once: each time counts references
    momentum, copies, least_mass = grid.momentum, grid.master.shape[0] > 0, grid.least_mass[0]
    places, ratios, at, stop = found.places, found.ratios, found.start[block] + found.counts[block], found.stop[block]
    fetched = False
    for layer in range(4):
        phi = sign * (shift[axis] + h * (low + layer) - walls.box[side & 1, axis])
        if phi >= REACH * h:
            continue
        waiting = waits(int(walls.rules[side]), phi / h)
        outside, first, out = _layer_outside(block, axis, layer, sign, phi / h, grid)
        along = ratio_of(phi / h, out)
        if not fetched:  # all lines of the two blocks at once, instead of one by one as nodes ask for them
            fetched = True
            for line in range(0, 256, 16):
                prefetch(momentum, 256 * block + line)
                prefetch(momentum, 4 * (first - first % 64) + line)
        for rest in range(16):
            if axis == 0:
                node = 16 * layer + rest
            elif axis == 1:
                node = 16 * (rest >> 2) + 4 * layer + (rest & 3)
            else:
                node = 4 * rest + layer
            own = np.float64(momentum[4 * (block * 64 + node) + 3])
            if own <= 0.0 or (copies and not _answers(grid, block * 64 + node)):
                continue
            if waiting and not touched(grid, block, node, phi / h, (n0, n1, n2), 1 << axis):
                continue
            fellow, ratio = first + node, along
            mass = np.float64(momentum[4 * fellow + 3]) if outside else 0.0
            if mass <= least_mass:
                fellow, ratio, _, _, _ = fellow_of(grid, block, node, phi / h, n0, n1, n2)
            elif mass < own:
                ratio = mass / own * along
            if at < stop:
                _place(places, ratios, at, (block * 64 + node, fellow, level, side, ratio))
            at += 1
    found.counts[block] = at - found.start[block]


@inline
def _layer_outside(block, axis, layer, sign, phi, grid):
    """Return where the nodes of a layer find their fellows in front of a wall: what `fellow_of` finds, for sixteen nodes at once.

    Whether there is such a layer, what is added to a node's number inside the block, and its distance from the wall [cells].
    """
    steps = np.int64(np.floor((GOAL - phi) * sign + 1e-6))
    rest = (GOAL - phi) * sign - steps
    # in the middle of two layers, and where nodes have copies, they are looked at one by one
    if phi <= -DEEPEST or grid.master.shape[0] or abs(rest - 0.5) <= 1e-9:
        return False, np.int64(0), 1.0
    steps += 1 if rest > 0.5 else 0
    out, place = phi + sign * steps, layer + steps
    if out < REACH:
        return False, np.int64(0), 1.0
    stride, beyond = (16 if axis == 0 else (4 if axis == 1 else 1)), np.int64(block)
    if place >> 2:
        x, y, z = (place >> 2) * (axis == 0), (place >> 2) * (axis == 1), (place >> 2) * (axis == 2)
        beyond = block_at(grid.packed, packed_neighbour(grid.packed[block], x, y, z))
    return beyond >= 0, beyond * 64 + stride * ((place & 3) - layer), out
