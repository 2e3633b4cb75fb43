"""Contacts of grid nodes with the walls of the domain, listed a layer of nodes at a time; see `grid` for symbols and method."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import (
    BODY,
    COLUMNS,
    FELLOW_BODY,
    FRICTION_OF,
    LAG,
    LEVEL,
    NORMAL,
    RULE_OF,
    SURFACE_PLACE,
    across,
    answers,
    write_place,
)
from mpm_nodes.kernels.collisions.image_nodes import DEEPEST, GOAL, REACH, block_beside, image_of, ratio_of
from mpm_nodes.kernels.collisions.touching import AHEAD, BEHIND, CLOSE, FARTHEST, SPAN, gap_before, gap_of, share_of
from mpm_nodes.kernels.compile.jit import inline, part
from mpm_nodes.kernels.lanes.memory import prefetch

NOWHERE = np.int64(-(1 << 40))
"""In the place of a layer of nodes that the grid does not have."""


@part
def write_wall(row, side, level, walls):
    """Write what contacts with a wall have in common."""
    row[:] = 0.0
    row[RULE_OF], row[FRICTION_OF], row[LEVEL] = walls.rules[side], walls.rules[6], level
    row[NORMAL + (side >> 1)] = 1.0 - 2.0 * (side & 1)
    row[BODY + (side >> 1)] = row[FELLOW_BODY + (side >> 1)] = walls.rules[7 + side]


@inline
def may_touch(side, base, motion, walls):
    """Return whether some node of a block may be in contact with a wall: most blocks are far from all of them."""
    (h, shift, _), axis = motion, side >> 1
    nearest = shift[axis] + h * (base[axis] + (3 if side & 1 else 0)) - walls.box[side & 1, axis]
    return (-nearest if side & 1 else nearest) < h


@part
def list_wall(block, side, level, grid, base, motion, walls, found):
    """List the contacts of the nodes of a block with one wall."""
    axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
    h, shift, dt = motion
    n0, n1, n2 = sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0
    low = base[0] if axis == 0 else (base[1] if axis == 1 else base[2])
    momentum, copies, least_mass = grid.momentum, len(grid.master) > 0, grid.least_mass[0]
    places, ratios, at, stop = found.places, found.ratios, found.start[block] + found.counts[block], found.stop[block]
    fetched = False
    for layer in range(4):
        phi = sign * (shift[axis] + h * (low + layer) - walls.box[side & 1, axis])
        if phi >= REACH * h:
            continue
        behind = _layers_beside(block, axis, layer, sign * (BEHIND - phi / h), grid)
        ahead = _layers_beside(block, axis, layer, sign * (AHEAD - phi / h), grid)
        spread = (behind[2] * (1.0 - behind[2]), ahead[2] * (1.0 - ahead[2]))
        near, far = share_of(CLOSE, BEHIND, spread, grid.spline[0]), share_of(CLOSE + SPAN, BEHIND, spread, grid.spline[0])
        deep = phi / h <= -DEEPEST
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
            if own <= 0.0 or (copies and not answers(grid, block * 64 + node)):
                continue
            if copies:
                gap = gap_before(grid, block, node, phi / h, (n0, n1, n2), BEHIND)
            else:
                gap = 0.0 if deep else gap_of(near, far, _mass_beside(behind, node, momentum), _mass_beside(ahead, node, momentum))
            if gap >= FARTHEST:
                continue
            image, ratio = first + node, along
            mass = np.float64(momentum[4 * image + 3]) if outside else 0.0
            if mass <= least_mass:
                image, ratio, _, _, _ = image_of(grid, block, node, phi / h, n0, n1, n2)
            elif mass < own:
                ratio = mass / own * along
            if at < stop:
                write_place(places, ratios, at, (block * 64 + node, image, level, side, ratio))
                if gap > 0.0:
                    _note_gap(found, at, side, gap, ratio, h / dt)
            at += 1
    found.counts[block] = at - found.start[block]


@part
def _note_gap(found, at, side, gap, ratio, per_second):
    """Give a contact with a wall a row of its own: matter is still a gap before it [cells]."""
    rows = found.rows
    for column in range(COLUMNS):
        rows[at, column] = rows[side, column]
    n = (rows[at, NORMAL], rows[at, NORMAL + 1], rows[at, NORMAL + 2])
    w = (rows[at, BODY], rows[at, BODY + 1], rows[at, BODY + 2])
    surface = (np.int64(rows[at, LEVEL]), np.int64(rows[at, RULE_OF]), rows[at, FRICTION_OF], 0.0)
    surface, v, lag = across(gap, surface, ratio, per_second, n, w)
    rows[at, RULE_OF], rows[at, FRICTION_OF], rows[at, LAG] = surface[1], surface[2], lag
    rows[at, BODY], rows[at, BODY + 1], rows[at, BODY + 2] = v
    found.places[at, SURFACE_PLACE] = at


@inline
def _layers_beside(block, axis, layer, way, grid):
    """Return what is added to a node's number for the layers around a place along the axis, and the second one's share."""
    place = layer + np.int64(np.floor(way + 1e-9))
    return _layer_at(block, axis, layer, place, grid), _layer_at(block, axis, layer, place + 1, grid), max(layer + way - place, 0.0)


@inline
def _mass_beside(layers, node, momentum):
    """Return the mass beside a node at the place of `_layers_beside` [kg]."""
    first, second, share = layers
    mass = (1.0 - share) * momentum[4 * (first + node) + 3] if first > NOWHERE else 0.0
    return mass + share * momentum[4 * (second + node) + 3] if second > NOWHERE and share > 1e-9 else mass


@inline
def _layer_at(block, axis, layer, place, grid):
    """Return what is added to the number of a block's node in a layer for the one beside it at another place, or `NOWHERE`."""
    stride, beyond = (16 if axis == 0 else (4 if axis == 1 else 1)), np.int64(block)
    if place >> 2:
        x, y, z = (place >> 2) * (axis == 0), (place >> 2) * (axis == 1), (place >> 2) * (axis == 2)
        beyond = block_beside(grid, block, x, y, z)
    return beyond * 64 + stride * ((place & 3) - layer) if beyond >= 0 else NOWHERE


@inline
def _layer_outside(block, axis, layer, sign, phi, grid):
    """Return where the nodes of a layer find their images in front of a wall: what `image_of` finds, for sixteen nodes at once.

    Whether there is such a layer, what is added to a node's number inside the block, and its distance from the wall [cells].
    """
    steps = np.int64(np.floor((GOAL - phi) * sign + 1e-6))
    rest = (GOAL - phi) * sign - steps
    # in the middle of two layers, and where nodes have copies, they are looked at one by one
    if phi <= -DEEPEST or len(grid.master) or abs(rest - 0.5) <= 1e-9:
        return False, np.int64(0), 1.0
    steps += 1 if rest > 0.5 else 0
    out, place = phi + sign * steps, layer + steps
    if out < REACH:
        return False, np.int64(0), 1.0
    first = _layer_at(block, axis, layer, place, grid)
    return first > NOWHERE, first if first > NOWHERE else np.int64(0), out
