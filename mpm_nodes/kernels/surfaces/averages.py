"""Kernel-weighted averages of particles' values at points.

| symbol | meaning                                                             | unit |
|--------|---------------------------------------------------------------------|------|
| R      | reach of the averaging kernel k(s) = (1 - s^2)^3, s = |x - x_p| / R  | m    |
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import any_lane, broadcast, const, fma, maximum, select
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.surfaces.runs import apart, find_runs, in_columns, no_runs, sum_of
from mpm_nodes.kernels.surfaces.splat import SortedParticles

_CHUNK = 256


def average_at_points(bins: SortedParticles, columns: np.ndarray, points: np.ndarray, reach: float) -> np.ndarray:
    """Return k-weighted means of columns at points; where no particle is in reach, those within twice it count.

    Args:
        bins: Particles, in bins of edge >= reach.
        columns: Values in the input order of the particles, shape (n, m).
        points: [m], shape (p, 3).
        reach: R [m].

    Returns:
        Shape (p, m), float32; zero where no particle is within 2 R.
    """
    count = columns.shape[1]
    values = np.zeros((count, len(bins.order) + WIDTH), np.float32)
    values[:, : len(bins.order)] = np.asarray(columns, np.float32)[bins.order].T
    points = np.ascontiguousarray(points, np.float64)
    return _average(in_columns(bins, 2.0 * reach), values.reshape(-1), count, points, reach)


@part
def _average_run(chunk, particles, values, points, reach, result):
    bounds, runs = no_runs()
    count = result.shape[1]
    sums = np.empty((count + 1) * WIDTH, np.float32)
    for p in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(points))):
        for wider in range(2):
            r = reach * (1 + wider)
            place = points[p, 0], points[p, 1], points[p, 2]
            found = find_runs(particles, place, r, bounds, runs)
            total = _gather(particles, values, place, r, (runs, found), sums)
            if total > 0.0:
                for c in range(count):
                    result[p, c] = sum_of(load(sums, c * WIDTH)) / total
                break


@inline
def _gather(particles, values, place, reach, found, sums):
    """Write the sums of k times each column over the particles around a place, by lanes, and return the sum of k."""
    runs, number = found
    count, length = len(sums) // WIDTH - 1, len(particles[1])
    none = const(load(sums, 0), 0.0)
    one, scale = const(none, 1.0), broadcast(none, 1.0 / (reach * reach))
    for c in range(count + 1):
        store(sums, c * WIDTH, none)
    for n in range(number):
        end = runs[n, 1]
        for row in range(runs[n, 0], end, WIDTH):
            dx, dy, dz, there = apart(particles, row, end, place)
            left = select(there, maximum(one - (dx * dx + dy * dy + dz * dz) * scale, none), none)
            if any_lane(left > none):
                weight = left * left * left
                store(sums, count * WIDTH, load(sums, count * WIDTH) + weight)
                for c in range(count):
                    store(sums, c * WIDTH, fma(weight, load(values, c * length + row), load(sums, c * WIDTH)))
    return sum_of(load(sums, count * WIDTH))


@compiled
def _average(particles, values, count, points, reach):
    result = np.zeros((len(points), count), np.float32)
    parallel_for(_average_run, (len(points) + _CHUNK - 1) // _CHUNK, (particles, values, points, reach, result))
    return result
