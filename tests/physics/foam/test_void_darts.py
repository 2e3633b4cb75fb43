"""Dart throwing: ends, covers what is deep inside, and puts nothing where it must not."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from void_scenes import COVERAGE, lattice, nearest, store, tables, world

from mpm_nodes.physics.foam.kernels.coverage import open_cells
from mpm_nodes.physics.foam.kernels.darts import throw_darts
from mpm_nodes.physics.foam.kernels.distance import interior_distance

DEPTH = 2.2
needs_two = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")


def thrown(position: np.ndarray, seed: int = 1):
    """Return particles [r], new samples [r] and the distance of any point, after one call."""
    particles = store(position)
    bins, places = tables(particles)
    distance = interior_distance(bins, places)
    samples = throw_darts(bins, places, distance, radius=COVERAGE, depth=DEPTH, seed=seed)

    def distance_of(points: np.ndarray) -> np.ndarray:
        dense, low = dense_grid(places.coord, distance)
        return trilinear(dense, points - (particles.origin + 3.0) - low)

    return particles.unpack("position"), world(particles, samples.slot, samples.position), distance_of


def dense_grid(coord: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances on a dense grid, and its low node."""
    low = 8 * coord.min(axis=0)
    dense = np.full(8 * (coord.max(axis=0) + 1) - low, 4.0)
    for block, values in zip(8 * coord - low, distance.reshape(-1, 8, 8, 8), strict=True):
        dense[tuple(slice(b, b + 8) for b in block)] = values
    return dense, low


def trilinear(dense: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Interpolate a dense grid at points in cells."""
    i = np.clip(np.floor(x).astype(int), 0, np.array(dense.shape) - 2)
    f, value = x - i, 0.0
    for corner in np.ndindex(2, 2, 2):
        value = value + np.prod(np.where(corner, f, 1.0 - f), axis=1) * dense[tuple((i + corner).T)]
    return value


@pytest.mark.parametrize("shift", [0.5, 0.0, (0.13, 0.77, 0.4)])
def test_an_undeformed_lattice_gets_nothing(shift):
    """Eight particles a cell leave no gap, wherever the lattice lies."""
    assert len(thrown(lattice(7.0, shift))[1]) == 0


@pytest.mark.parametrize("stretch", [1.1, 1.2, 1.4, 1.6, 2.0])
def test_a_stretched_ball_is_filled(stretch):
    """A ball of radius 6 r, stretched: the call ends, samples lie deep and apart, and no gap wider than r / 8 is left."""
    particles, samples, distance_of = thrown(lattice(6.0) * [stretch, 1.0, 1.0])
    assert len(samples) > 20
    assert nearest(samples, particles).min() > COVERAGE - 1e-6  # single precision in a block 8 wide
    apart = np.sort(((samples[:, None] - samples[None]) ** 2).sum(axis=2), axis=1)[:, 1]
    assert np.sqrt(apart.min()) > COVERAGE - 1e-6
    assert distance_of(samples).max() < -DEPTH + 1e-5
    probes = np.random.default_rng(3).uniform(particles.min(axis=0), particles.max(axis=0), (60_000, 3))
    probes = probes[distance_of(probes) < -DEPTH]
    assert len(probes) > 100
    assert nearest(probes, np.concatenate([particles, samples])).max() < COVERAGE + 1.0 / 16.0


def test_gaps_of_random_clouds_are_found():
    """Of the points of a fine random probe that are deep and not covered, all but one in twenty-five lie in an open cell.

    Those few lie in slivers narrower than r / 16, or beyond half an r from the middle of a gap of odd shape.
    """
    random = np.random.default_rng(5)
    position = lattice(9.0)
    particles = store(position + random.uniform(-0.45, 0.45, position.shape))
    bins, places = tables(particles)
    distance = interior_distance(bins, places)
    opened = open_cells(bins, places, distance, np.float32(COVERAGE), np.float32(DEPTH))
    slot = random.integers(0, len(bins.near), 300_000)
    local = random.uniform(0.0, 8.0, (300_000, 3))
    dense, low = dense_grid(places.coord, distance)
    deep = trilinear(dense, local + 8 * particles.block_coord[slot] - low) < -DEPTH
    slot, local = slot[deep], local[deep]
    gap = nearest(world(particles, slot, local), particles.unpack("position")) > COVERAGE + 0.02
    assert gap.sum() > 60
    cell = np.floor(2.0 * local[gap]).astype(int) @ [256, 16, 1]
    assert opened[slot[gap], cell].mean() > 0.96
    assert opened.mean() < 0.2  # most of the matter is passed over


def test_the_seed_decides():
    """Equal seeds give equal samples, others give others."""
    position = lattice(5.0) * [1.5, 1.0, 1.0]
    first, same, other = (thrown(position, seed)[1] for seed in (3, 3, 4))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@needs_two
def test_samples_do_not_depend_on_the_number_of_threads():
    """One and two threads throw the same darts."""
    position, found = lattice(10.0) * [1.3, 1.0, 1.0], []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        found.append(thrown(position)[1])
    assert np.array_equal(*found) and len(found[0]) > 100


def test_a_surface_and_a_thin_sheet_get_nothing():
    """Nothing is put into a sheet thinner than twice the depth, however it is torn."""
    sheet = lattice(12.0)
    sheet = sheet[np.abs(sheet[:, 1]) < 2.0] * [1.5, 1.0, 1.5]
    assert len(thrown(sheet)[1]) == 0
