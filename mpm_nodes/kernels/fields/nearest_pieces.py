"""Which of the pieces of a line is nearest to each of many places.

A piece is a + t d, t from 0 to 1. With b = (x - a) d of a place x, its distance squared is |x|^2 - 2 x a + |a|^2 - t (2 b - t d^2),
t the nearest to b / d^2. The products with all pieces are matrices, which are made outside.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled

__all__ = ["nearest_pieces"]


@compiled(fastmath=False)
def nearest_pieces(along, twice, spots, pieces, best, raw):
    """Find the nearest piece of each place, of several that are as near the first.

    Args:
        along: x d, shape (places, pieces), float64.
        twice: 2 x a, shape (places, pieces), float64.
        spots: |x|^2, shape (places,).
        pieces: Of each piece a d, d^2 and |a|^2, shape (3, pieces).
        best: Written: the piece, shape (places,), int64.
        raw: Written: b / d^2 of it, beyond its ends too, shape (places,).
    """
    for n in range(along.shape[0]):
        least = np.inf
        for k in range(along.shape[1]):
            square = pieces[1, k]
            b = along[n, k] - pieces[0, k]
            apart = (spots[n] - twice[n, k]) + pieces[2, k]
            t = min(max(b / square, 0.0), 1.0)
            gap = math.sqrt(max(apart - t * (2.0 * b - t * square), 0.0))
            if gap < least:
                least, best[n], raw[n] = gap, k, b / square
