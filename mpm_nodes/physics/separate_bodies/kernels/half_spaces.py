"""How far matter reaches before a node, by the middle that it has under the spline; see `contacts` for symbols and method."""

from __future__ import annotations

import functools

import numpy as np

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.transfers.weights import weights

__all__ = ["distances", "half_space", "smeared_spline"]


@functools.cache
def distances(nodes: int) -> np.ndarray:
    """Return d [cells], b(d) and int_-R^d b at equal steps of the middle x(d), from x = -R to 0, shape (513, 3).

    Args:
        nodes: Of the spline along an axis: 3 (quadratic) or 4 (cubic).
    """
    reach = 0.5 * nodes
    d = np.linspace(-reach, reach, 20001)
    first = np.minimum(np.floor(d + reach), nodes - 1).astype(int)
    spline = np.choose(nodes - 1 - first, weights((0,) * nodes, d + reach - first))
    step = d[1] - d[0]
    mass = np.cumsum(0.5 * (spline[1:] + spline[:-1])) * step
    moment = np.cumsum(0.5 * (spline[1:] * d[1:] + spline[:-1] * d[:-1])) * step
    middle = np.concatenate([[-reach], moment / mass])
    steps, middle = np.linspace(-reach, 0.0, 513), np.maximum.accumulate(middle)
    return np.stack([np.interp(steps, middle, each) for each in (d, spline, np.concatenate([[0.0], mass]))], axis=1)


@inline
def half_space(middle, table, column):
    """Return how far behind a surface a node lies [cells] (column 0), the spline there (1), or its integral up to there (2).

    Args:
        middle: Where the middle of the matter is along the outward normal [cells].
        table: `distances`.
    """
    reach, last = -table[0, 0], table.shape[0] - 1
    at = min(max((middle + reach) / reach, 0.0), 1.0) * last
    k = min(int(at), last - 1)
    return table[k, column] + (at - k) * (table[k + 1, column] - table[k, column])


@inline
def smeared_spline(cubic, x, wide):
    """Return the first node of a spline's stencil, and for its four nodes weights, moments and slopes [cells].

    A quadratic spline's fourth node has none.

    Matter is spread over the particle's own width: a lattice of particles then has the sums of the matter that it stands for,
    wherever its surface lies. To the fourth order a mean over the width l adds l^2/24 times the second derivative.

    Args:
        cubic: Whether the spline is cubic.
        x: Place of the particle [cells].
        wide: l^2/24 [cells^2].
    """
    if cubic:
        first = np.floor(x) - 1.0
        t = x - first - 1.0
        r = 1.0 - t
        b = (r * r * r / 6.0, t * t * (0.5 * t - 1.0) + 2.0 / 3.0, r * r * (0.5 * r - 1.0) + 2.0 / 3.0, t * t * t / 6.0)
        s = (-0.5 * r * r, t * (1.5 * t - 2.0), -r * (1.5 * r - 2.0), 0.5 * t * t)
        bend = (r, 3.0 * t - 2.0, 3.0 * r - 2.0, t)
    else:
        first = np.floor(x - 0.5)
        t = x - first - 1.0
        b = (0.5 * (0.5 - t) * (0.5 - t), 0.75 - t * t, 0.5 * (0.5 + t) * (0.5 + t), 0.0)
        s = (t - 0.5, -2.0 * t, t + 0.5, 0.0)
        bend = (1.0, -2.0, 1.0, 0.0)
    w = (b[0] + wide * bend[0], b[1] + wide * bend[1], b[2] + wide * bend[2], b[3] + wide * bend[3])
    m = (
        (t + 1.0) * w[0] + 2.0 * wide * s[0],
        t * w[1] + 2.0 * wide * s[1],
        (t - 1.0) * w[2] + 2.0 * wide * s[2],
        (t - 2.0) * w[3] + 2.0 * wide * s[3],
    )
    return first, w, m, s
