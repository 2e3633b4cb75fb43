"""Pairs to merge: close, disjoint, of one material."""

from __future__ import annotations

import numpy as np
from void_scenes import lattice, store, tables

from mpm_nodes.physics.foam.kernels.merging import close_pairs

REACH = 0.03


def pairs_of(position: np.ndarray, material: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the members of each pair, shape (n, 2, 3), and their materials, shape (n, 2)."""
    particles = store(position, material=material)
    bins, _ = tables(particles)
    found = close_pairs(bins, REACH)
    return particles.unpack("position")[found], particles.unpack("material")[found]


def test_a_lattice_has_none():
    """Particles that keep their distance stay as they are."""
    assert len(pairs_of(lattice(5.0))[0]) == 0


def test_each_twin_is_found_once():
    """Twins anywhere, across faces of cells and blocks too, are found; what is a little further apart is not."""
    position, random = lattice(6.0, 0.0), np.random.default_rng(7)
    way = random.normal(size=position.shape)
    way /= np.linalg.norm(way, axis=1)[:, None]
    away = np.where(np.arange(len(position)) % 2 == 0, 0.029, 0.031)
    found, _ = pairs_of(np.concatenate([position, position + away[:, None] * way]))
    assert len(found) == (len(position) + 1) // 2
    assert np.linalg.norm(found[:, 0] - found[:, 1], axis=1).max() < REACH


def test_pairs_are_disjoint_and_the_closest_come_first():
    """Of three in a row the two closest merge; no particle is in two pairs."""
    row = np.array([[0.0, 0.0, 0.0], [0.02, 0.0, 0.0], [0.03, 0.0, 0.0]])
    found, _ = pairs_of(row)
    np.testing.assert_allclose(np.sort(found[0, :, 0]), [0.02, 0.03], atol=1e-6)
    assert len(found) == 1
    cloud = np.random.default_rng(8).uniform(0.0, 0.1, (60, 3))
    found, _ = pairs_of(cloud)
    members = found.reshape(-1, 3)
    assert 5 < len(found) and len(np.unique(members, axis=0)) == len(members)


def test_light_ones_that_lie_close_merge_and_seeds_do_not():
    """Pairs closer than CROWDED merge up to the volume that they may have together; farther apart, or heavier, they stay."""
    position = np.array([[0.0, 0.0, 0.0], [0.7, 0.0, 0.0], [3.0, 0.0, 0.0], [3.9, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 3.7, 0.0]])
    particles = store(position)
    bins, _ = tables(particles)
    now = particles.unpack("position")
    was = np.argmin(np.linalg.norm(now[:, None] - position, axis=2), axis=1)
    for volumes, merged in (
        ((0.8, 0.79, 0.8, 0.79, 0.8, 0.79), {(0, 1), (4, 5)}),
        ((0.8, 0.81, 0.1, 0.1, 0.5, 0.5), {(4, 5)}),
        ((1.0,) * 6, set()),
    ):
        found = close_pairs(bins, REACH, np.array(volumes, np.float32)[was][bins.index], 1.6)
        assert {tuple(sorted(was[pair])) for pair in found} == merged
    assert len(close_pairs(bins, REACH)) == 0


def test_materials_do_not_mix():
    """Twins of different materials stay two."""
    position = lattice(4.0)
    twins = np.concatenate([position, position + [0.01, 0.0, 0.0]])
    found, _ = pairs_of(twins, (np.arange(len(twins)) >= len(position)).astype(int))
    assert len(found) == 0
    found, material = pairs_of(twins, np.tile(np.arange(len(position)) % 2, 2))
    assert len(found) == len(position) and (material[:, 0] == material[:, 1]).all()
