"""How far matter still is from a surface, told by the masses of nodes on the two sides of it.

| symbol | meaning | unit |
|---|---|---|
| phi, n | distance of a node before the surface, unit normal out of the body | cells, - |
| s | distance of the matter from the surface | cells |
| F(t) | integral of the spline up to t: share of its spline that a node sees filled, t behind the face of matter | - |

Splines reach 1.5 cells and more ahead of the particles: a body that held all nodes with mass would stop in the air what falls,
and hold on to what has left. Approach alone does not tell (Bardenhagen 2000; Nairn 2013), and where the matter is has to be
found. Matter that fills the half space beyond s gives a place at the distance t before the surface the share F(t - s). The masses
at two places on the normal through a node, `BEHIND` the surface and `AHEAD` of it, have a ratio that falls as s grows, whatever
the density is, and what matter ends at sideways cancels. Two places at fixed distances from the surface, with masses interpolated
between nodes, tell the same wherever the surface lies between the nodes: interpolation widens the spline, by a variance that is
known. A spline's second moment is the same in all directions, so that F of one axis does for oblique surfaces, too.

Source: Bardenhagen 2000 and Nairn 2013 for contact that is told by the distance of matter; the estimate is chosen here.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.image_nodes import DEEPEST, node_of, sides_at
from mpm_nodes.kernels.collisions.rules import sample
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.level_sets.level_set import KIND, PLANE

__all__ = [
    "AHEAD",
    "BEHIND",
    "CLOSE",
    "FARTHEST",
    "HOLDS",
    "SPAN",
    "depth_behind",
    "filled",
    "gap_before",
    "gap_of",
    "share_of",
    "touching_area",
]

BEHIND, AHEAD = -0.75, 1.0
"""Distances from the surface at which masses are compared [cells]."""
SHALLOWEST = -0.43
"""Depth of the place at `BEHIND` on the diagonal of the corner of a box [cells]: none is taken for less deep."""
CLOSE = 0.1
"""Matter this near touches [cells]: what lies on a surface is found within 0.07 of it."""
HOLDS = 0.1
"""Bodies that hold on to matter let go of it farther away than this beyond `CLOSE` [cells]: less than a quarter of a cell in all,
where the particles of matter come that is stretched to twice its length."""
SPAN = 0.25
"""Distance by which shares are compared [cells]."""
LEAST_FILLED = 1e-3
"""Of nodes that see less of matter at the surface rounding would tell how much of it there is."""
FARTHEST = 1.0
"""Matter farther away than this is not met [cells]: it moves less in a substep."""


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
def _spline_at(t, nodes):
    """Return a spline of so many nodes, 3 (quadratic) or 4 (cubic), at t, the derivative of `filled` [1/cells]."""
    away = abs(t)
    if nodes == 4:
        if away >= 2.0:
            return 0.0
        return (2.0 - away) ** 3 / 6.0 if away >= 1.0 else 2.0 / 3.0 + away * away * (0.5 * away - 1.0)
    if away >= 1.5:
        return 0.0
    return 0.5 * (1.5 - away) ** 2 if away >= 0.5 else 0.75 - away * away


@part
def touching_area(grid, node, image, h):
    """Return the area of the contact of matter and body that a node stands for [m^2].

    A pull on the matter at the surface reaches the nodes by their splines there: h^2 w(phi). With the share r of their images the
    nodes above a place of the surface have its area: sum (1 - r) w = 1, as splines sum to 1 and have their mean at the place.
    What matter covers of it is told by the volume at the image, over that of matter that goes on to all sides.

    Args:
        grid: `GridView` with volumes.
        node: The node, and its distance from the surface [cells].
        image: Its image, or -1, and that one's distance.
        h: Grid spacing [m].
    """
    nodes = grid.spline[0]
    who, phi = image if image[0] >= 0 else node
    whole = h * h * h * max(filled(phi, nodes), LEAST_FILLED)
    return h * h * _spline_at(node[1], nodes) * min(np.float64(grid.volume[4 * who + 3]) / whole, 1.0)


@inline
def gap_of(near, far, there, here):
    """Return how far beyond `CLOSE` the matter is [cells] of which a node has the mass `there` where its neighbour has `here`.

    Args:
        near, far: The ratio of the two for matter at `CLOSE`, and farther away by `SPAN`.
        there, here: Mass of the one nearer to the body, and of the other [kg].
    """
    if there >= near * here:
        return 0.0
    if there <= 0.0:
        return np.inf
    return SPAN * np.log(near * here / there) / np.log(near / far)


@inline
def share_of(s, depth, spread, nodes):
    """Return what matter at the distance s gives to the place behind the surface, of what it gives to that ahead [cells].

    `depth` is the distance from the surface of the place behind it, below zero, and `spread` the variance that interpolation adds
    at each of the two [cells^2].
    """
    behind, ahead = np.sqrt(1.0 + 12.0 * spread[0] / nodes), np.sqrt(1.0 + 12.0 * spread[1] / nodes)
    return filled((depth - s) / behind, nodes) / filled((AHEAD - s) / ahead, nodes)


@part
def gap_before(grid, block, node, phi, n, depth):
    """Return how far beyond `CLOSE` the matter of a node is from the surface [cells]: 0 where it touches, or inf.

    Args:
        grid: `GridView`.
        block, node: The node.
        phi: Its distance from the surface [cells], below half a cell.
        n: Unit normal out of the body, three values.
        depth: Distance from the surface of the place at `BEHIND` along n [cells]: `BEHIND` itself but for edges.
    """
    if phi <= -DEEPEST or n[0] * n[0] + n[1] * n[1] + n[2] * n[2] < 0.5:
        return 0.0
    sides = sides_at(grid, block, node)
    there, there_spread = _mass_along(grid, (block, sides), node, BEHIND - phi, n)
    here, here_spread = _mass_along(grid, (block, sides), node, AHEAD - phi, n)
    spread, nodes = (there_spread, here_spread), grid.spline[0]
    near = share_of(CLOSE, depth, spread, nodes)
    # most nodes touch: what the others need is left for them
    return 0.0 if there >= near * here else gap_of(near, share_of(CLOSE + SPAN, depth, spread, nodes), there, here)


@part
def depth_behind(b, y, h, met, bodies):
    """Return the distance from the surface of body b of the place that lies at `BEHIND` along a node's normal [cells].

    Behind an edge it is less deep than `BEHIND`. In bodies so thin that it lies beyond their middle it counts as that deep.

    Args:
        b: Body.
        y: The node in the frame of the body, three values [m].
        h: Grid spacing [m].
        met: Its distance from the surface [m], and the gradient of the distance in the frame of the body, three values.
        bodies: `Bodies`.
    """
    phi, g0, g1, g2 = met
    square = g0 * g0 + g1 * g1 + g2 * g2
    if bodies.integer[b, KIND] == PLANE or phi <= -DEEPEST * h or square < 0.5:
        return BEHIND
    way = (BEHIND * h - phi) / np.sqrt(square)
    depth, b0, b1, b2 = sample(b, 1.0, y[0] + way * g0, y[1] + way * g1, y[2] + way * g2, bodies)
    if g0 * b0 + g1 * b1 + g2 * b2 < -0.25 * square:
        return BEHIND
    return min(max(depth / h, BEHIND), SHALLOWEST)


@part
def _mass_along(grid, matter, node, way, n):
    """Return the mass some way along n from a node, linear between nodes [kg], and the variance along n that this adds.

    `matter` is the block of the node, and the sides of plates of the matter that counts.
    """
    block, sides = matter
    x, y, z = (node >> 4) + way * n[0], ((node >> 2) & 3) + way * n[1], (node & 3) + way * n[2]
    # rounding must not reach for one node more
    x0, y0, z0 = np.int64(np.floor(x + 1e-9)), np.int64(np.floor(y + 1e-9)), np.int64(np.floor(z + 1e-9))
    fx, fy, fz = max(x - x0, 0.0), max(y - y0, 0.0), max(z - z0, 0.0)
    mass = 0.0
    for i in range(1 + int(fx > 1e-9)):
        for j in range(1 + int(fy > 1e-9)):
            for k in range(1 + int(fz > 1e-9)):
                found = node_of(grid, block, sides, x0 + i, y0 + j, z0 + k)
                if found >= 0:
                    share = (fx if i else 1.0 - fx) * (fy if j else 1.0 - fy) * (fz if k else 1.0 - fz)
                    mass += share * np.float64(grid.momentum[4 * found + 3])
    return mass, n[0] * n[0] * fx * (1.0 - fx) + n[1] * n[1] * fy * (1.0 - fy) + n[2] * n[2] * fz * (1.0 - fz)
