"""The interior distance: the sign is that of the union of spheres, the magnitude that of the printed algorithm."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from void_scenes import lattice, nearest, store, tables, world

from mpm_nodes.physics.foam.kernels.distance import interior_distance

NODES = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1).reshape(-1, 3)


def measured(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all nodes [r] and their distances."""
    particles = store(position)
    bins, places = tables(particles)
    nodes = particles.origin + 3.0 + (8 * places.coord[:, None, :] + NODES).reshape(-1, 3)
    return nodes, interior_distance(bins, places).reshape(-1)


def printed(nodes: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return what the printed algorithm gives on a dense grid of these nodes; 4 stands for "further"."""
    low = nodes.min(axis=0)
    index = np.rint(nodes - low).astype(int)
    d = np.full(index.max(axis=0) + 1, np.inf)
    d[tuple(index.T)] = nearest(nodes, centres) - 1.0
    d[d >= 1.0] = np.inf
    crossings = []
    for axis in range(3):
        here, there = (np.take(d, np.arange(d.shape[axis] - 1) + s, axis) for s in (0, 1))
        for place in np.argwhere((here < 0) != (there < 0)):
            a, b = here[tuple(place)], there[tuple(place)]
            crossings.append(low + place + np.eye(3)[axis] * a / (a - b))
    away = np.minimum(nearest(nodes, np.array(crossings)), 4.0)
    return np.where(d[tuple(index.T)] < 0, -away, away)


@pytest.mark.parametrize("cloud", ["lattice", "random", "two parts"])
def test_it_is_the_printed_algorithm(cloud):
    """On a lattice, in a random cloud full of holes and for separate parts, every node has the distance of a dense brute force."""
    random = np.random.default_rng(2)
    position = {
        "lattice": lattice(6.0, (0.2, 0.4, 0.9)),
        "random": random.uniform(-5.0, 5.0, (700, 3)),
        "two parts": np.concatenate([lattice(3.0), lattice(3.5) + [21.0, 3.0, 0.0]]),
    }[cloud]
    nodes, distance = measured(position)
    np.testing.assert_allclose(distance, printed(nodes, position), atol=2e-5)  # single precision at lengths up to 8


def test_a_ball_is_a_ball():
    """In a ball of lattice particles it is the distance to the ball, within a sphere's radius and the spacing of the crossings."""
    radius = 9.0
    nodes, distance = measured(lattice(radius))
    away = np.sqrt((nodes**2).sum(axis=1)) - radius
    assert (distance[away < -1.0] < 0).all() and (distance[away > 1.0] > 0).all()
    near = np.abs(away) < 3.0
    assert np.abs(distance - away)[near].max() < 1.25
    assert (distance[away < -5.5] == -4.0).all() and (distance[away > 5.5] == 4.0).all()


def test_every_place_around_the_matter_is_there():
    """The nodes reach a block beyond the particles on every side, where all is outside."""
    particles = store(lattice(4.0))
    bins, places = tables(particles)
    known = {tuple(coord) for coord in places.coord}
    around = {tuple(coord + side) for coord in particles.block_coord for side in itertools.product((-1, 0, 1), repeat=3)}
    assert known == around
    empty = places.slot < 0
    assert (interior_distance(bins, places)[empty][:, 7 * 73] > 0).all()  # their middle nodes


def test_bins_hold_every_particle_where_it_is():
    """The bins list each particle once, in its cell and at its place."""
    particles = store(np.random.default_rng(4).uniform(-9.0, 9.0, (3000, 3)))
    bins, _ = tables(particles)
    row = np.arange(particles.count)
    cell = np.searchsorted(bins.start, row, side="right") - 1
    local = np.stack([bins.x, bins.y, bins.z], 1)
    assert (np.sort(bins.index) == row).all()
    assert (np.floor(local).astype(int) @ [64, 8, 1] == cell % 512).all()
    np.testing.assert_allclose(world(particles, cell // 512, local), particles.unpack("position")[bins.index], atol=2e-6)
