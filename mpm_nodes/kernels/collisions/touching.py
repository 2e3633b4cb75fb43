"""Whether matter has come to a surface from which it may part again, told by the mass that it has behind the surface.

| symbol | meaning | unit |
|---|---|---|
| phi, n | distance of a node before the surface, unit normal out of the body | cells, - |
| s | distance of the matter from the surface | cells |
| F(t) | integral of the spline up to t: share of its spline that a node sees filled, t behind the face of matter | - |

A node less than half a cell before a surface must follow it once matter lies on the surface, and must not before: splines reach
1.5 cells and more ahead of the particles, and what falls would be stopped in the air. Approach alone does not tell the two apart
(Bardenhagen 2000; Nairn 2013). Matter that fills the half space beyond s gives the node the share F(phi - s) and its neighbour
along an axis, |n_a| nearer to the body, the share F(phi - |n_a| - s). The ratio of the two masses grows as s falls, whatever
the density is, and what matter ends at sideways cancels. A spline's second moment is the same in all directions, so that F of one
axis does for oblique surfaces, too. Neighbours that are not behind the surface know nothing of it.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.fellows import REACH, node_at
from mpm_nodes.kernels.collisions.rules import SEPARATE, sample, to_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.level_sets.level_set import KIND, PLANE

__all__ = ["BEFORE", "CLOSE", "all_behind", "filled", "neighbours_behind", "touched"]

BEFORE = 1e-6
"""Nodes farther than this before a body that matter may leave are in contact only once matter touches it [cells]."""
CLOSE = 0.25
"""Matter this near touches [cells]: half of what lies between particles, eight of which fill a cell."""


@compiled(fastmath=False)
def filled(t, nodes):
    """Return the integral of a spline of so many nodes, 3 (quadratic) or 4 (cubic), from minus infinity to t [cells]."""
    away = abs(t)
    if nodes == 4:
        if away >= 2.0:
            rest = 0.0
        elif away >= 1.0:
            rest = (2.0 - away) ** 4 / 24.0
        else:
            rest = 0.5 - away * (2.0 / 3.0 - away * away * (1.0 / 3.0 - away / 8.0))
    elif away >= 1.5:
        rest = 0.0
    elif away >= 0.5:
        rest = (1.5 - away) ** 3 / 6.0
    else:
        rest = 0.5 - away * (0.75 - away * away / 3.0)
    return rest if t < 0.0 else 1.0 - rest


@inline
def waits(rule, phi):
    """Return whether a node within reach is in contact only once matter touches the surface."""
    return rule == SEPARATE and phi >= BEFORE and phi < REACH


@part
def touched(grid, block, node, phi, n, behind):
    """Return whether the matter of a node has come to the surface before which it lies.

    Args:
        grid: `GridView`.
        block, node: The node.
        phi: Its distance from the surface [cells].
        n: Unit normal out of the body, three values.
        behind: Of which axes the neighbour nearer to the body lies behind the surface, a bit each.
    """
    own, there, due = np.float64(grid.momentum[4 * (64 * block + node) + 3]), 0.0, 0.0
    x, y, z = node >> 4, (node >> 2) & 3, node & 3
    whole = filled(phi - CLOSE, grid.spline[0])
    for axis in range(3):
        if not behind >> axis & 1:
            continue
        along = n[0] if axis == 0 else (n[1] if axis == 1 else n[2])
        step = np.int64(-1 if along > 0.0 else 1)
        other = node_at(grid, block, x + step * (axis == 0), y + step * (axis == 1), z + step * (axis == 2))
        if other >= 0:
            there += along * along * np.float64(grid.momentum[4 * other + 3])
        due += along * along * filled(phi - CLOSE - abs(along), grid.spline[0]) / whole
    return there > 0.0 and there >= due * own


@inline
def all_behind(phi, n):
    """Return the bits of the axes whose neighbour nearer to the body lies behind a flat surface; arguments as in `touched`."""
    return (1 if abs(n[0]) > phi else 0) + (2 if abs(n[1]) > phi else 0) + (4 if abs(n[2]) > phi else 0)


@part
def neighbours_behind(b, x, h, phi, n, bodies):
    """Return the bits of the axes whose neighbour nearer to body b lies behind its surface: beside an edge it does not.

    Args:
        b: Body.
        x: The node, three values [m].
        h: Grid spacing [m].
        phi, n: As in `touched`.
        bodies: `Bodies`.
    """
    flat = all_behind(phi, n)
    if bodies.integer[b, KIND] == PLANE:
        return flat
    found = 0
    for axis in range(3):
        if flat >> axis & 1:
            along = n[0] if axis == 0 else (n[1] if axis == 1 else n[2])
            step = -h if along > 0.0 else h
            y0, y1, y2 = to_body(b, 1, x[0] + step * (axis == 0), x[1] + step * (axis == 1), x[2] + step * (axis == 2), bodies.real)
            found += (1 << axis) * (sample(b, 1.0, y0, y1, y2, bodies)[0] < 0.0)
    return found
