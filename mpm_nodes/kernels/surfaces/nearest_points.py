"""The points nearest to others, exactly: a table of cubes of space, searched in shells around each."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["nearest_points"]

IN_A_CUBE = 4
"""Points in a cube of the table, on average over the box around all."""


def nearest_points(places: np.ndarray, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which points are nearest to each place, nearest first, and the squares of their distances.

    Args:
        places: [m], shape (n, 3).
        points: [m], shape (m, 3), m >= `count`.
        count: How many of them.

    Returns:
        Numbers and squares [m^2], shape (n, count) each; of points equally far the one that comes first.
    """
    places, points = (np.ascontiguousarray(each, np.float64) for each in (places, points))
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    edge = float(extent.max()) / max(1.0, (len(points) / IN_A_CUBE) ** (1.0 / 3.0)) or 1.0
    shape = np.floor(extent / edge).astype(np.int64) + 1
    cubes = np.ravel_multi_index(tuple(np.floor((points - low) / edge).astype(np.int64).T), tuple(shape))
    order = np.argsort(cubes, kind="stable")
    start = np.searchsorted(cubes[order], np.arange(int(shape.prod()) + 1))
    numbers, squares = np.zeros((len(places), count), np.int64), np.full((len(places), count), np.inf)
    _search(places, points, (order, start), (low, shape, edge), numbers, squares)
    return numbers, squares


@compiled(fastmath=False)
def _search(places, points, table, grid, numbers, squares):
    parallel_for(_search_one, places.shape[0], (places, points, table, grid, numbers, squares))


@part
def _search_one(p, places, points, table, grid, numbers, squares):
    """Search the shells of cubes around a place until what may lie in the next is farther than what was found."""
    (order, start), (low, shape, edge) = table, grid
    x, y, z = places[p, 0], places[p, 1], places[p, 2]
    i = min(max(int(np.floor((x - low[0]) / edge)), 0), shape[0] - 1)
    j = min(max(int(np.floor((y - low[1]) / edge)), 0), shape[1] - 1)
    k = min(max(int(np.floor((z - low[2]) / edge)), 0), shape[2] - 1)
    last = squares.shape[1] - 1
    for shell in range(max(shape[0], shape[1], shape[2])):
        # from a place outside of the box a point in it is at least as far as from the nearest place of the box
        if shell > 0 and squares[p, last] <= ((shell - 1) * edge) ** 2:
            return
        for a in range(max(i - shell, 0), min(i + shell + 1, shape[0])):
            for b in range(max(j - shell, 0), min(j + shell + 1, shape[1])):
                inner = abs(a - i) < shell and abs(b - j) < shell
                for c in range(max(k - shell, 0), min(k + shell + 1, shape[2])):
                    if inner and abs(c - k) < shell:
                        continue
                    cube = (a * shape[1] + b) * shape[2] + c
                    for at in range(start[cube], start[cube + 1]):
                        q = order[at]
                        square = (points[q, 0] - x) ** 2 + (points[q, 1] - y) ** 2 + (points[q, 2] - z) ** 2
                        place = last
                        if square > squares[p, last] or (square == squares[p, last] and q > numbers[p, last]):
                            continue
                        while place > 0 and (
                            square < squares[p, place - 1] or (square == squares[p, place - 1] and q < numbers[p, place - 1])
                        ):
                            squares[p, place], numbers[p, place] = squares[p, place - 1], numbers[p, place - 1]
                            place -= 1
                        squares[p, place], numbers[p, place] = square, q
