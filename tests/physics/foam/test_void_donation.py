"""Donation and averages: nothing is made, nothing lost, and a field that is the same everywhere stays so."""

from __future__ import annotations

import numpy as np
import pytest
from void_scenes import COVERAGE, lattice, nearest, store, tables, world

from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.physics.foam.kernels import grid_averages
from mpm_nodes.physics.foam.kernels.darts import Samples, throw_darts
from mpm_nodes.physics.foam.kernels.distance import interior_distance
from mpm_nodes.physics.foam.kernels.donation import Matter, donate, nearest_particles

R = 1.0


def given(particles, dtype=np.float64):
    """Return random velocities, masses and volumes in the layout of the store."""
    random = np.random.default_rng(6)
    velocity = random.normal(size=3 * particles.stride).astype(dtype)
    return velocity, *(random.uniform(0.5, 1.5, particles.stride).astype(dtype) for _ in range(2))


def gifts_of(particles, bins, samples, velocity, mass, volume):
    """Let the particles donate, without affine velocities."""
    matter = Matter(particles.offset, velocity, np.empty(0, velocity.dtype), mass, volume)
    return donate(bins, samples, matter, particles.stride, particles.shift, R, 1.0)


def thrown(position: np.ndarray, **columns):
    """Return a store, its tables, and samples in its gaps."""
    particles = store(position, **columns)
    bins, places = tables(particles)
    return particles, bins, places, throw_darts(bins, places, interior_distance(bins, places), radius=COVERAGE, depth=2.2, seed=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_made_or_lost(dtype):
    """Mass, volume, momentum and first moment of donors and samples together are what they were; all masses stay positive."""
    particles, bins, _, samples = thrown(lattice(6.0) * [1.4, 1.0, 1.0])
    n = particles.count
    velocity, mass, volume = given(particles, dtype)
    v, x = velocity.reshape(3, -1)[:, :n].T.astype(float), particles.unpack("position")
    m, w = mass[:n].astype(float), volume[:n].astype(float)
    gifts = gifts_of(particles, bins, samples, velocity, mass, volume)
    after, point = mass[:n].astype(float), world(particles, samples.slot, samples.position)
    assert gifts.mass.min() > 0 and after.min() > 0 and gifts.volume.min() > 0 and len(point) > 100
    assert after.sum() + gifts.mass.sum() == pytest.approx(m.sum(), rel=1e-14)
    assert volume[:n].astype(float).sum() + gifts.volume.sum() == pytest.approx(w.sum(), rel=1e-14)
    np.testing.assert_allclose(after @ v + gifts.momentum.sum(axis=0), m @ v, atol=1e-12)
    np.testing.assert_allclose(after @ x + gifts.mass @ point - gifts.moment.sum(axis=0), m @ x, atol=1e-11)
    turned = np.cross(x, after[:, None] * v).sum(axis=0) + np.cross(point, gifts.momentum).sum(axis=0) + gifts.spin.sum(axis=0)
    np.testing.assert_allclose(turned, np.cross(x, m[:, None] * v).sum(axis=0), atol=1e-11)


def test_one_sample_takes_the_share_of_the_printed_algorithm():
    """The first sample gets 1 / (N + 1) of what its N neighbours closer than r had."""
    particles, bins, _, samples = thrown(lattice(6.0) * [1.2, 1.0, 1.0])
    velocity, mass, volume = given(particles)
    first = Samples(samples.slot[:1], samples.position[:1])
    point = world(particles, first.slot, first.position)
    near = np.sqrt(((particles.unpack("position") - point) ** 2).sum(axis=1)) < R
    expected = mass[: particles.count][near].sum() / (near.sum() + 1)
    gifts = gifts_of(particles, bins, first, velocity, mass, volume)
    assert gifts.donors[0] == near.sum() > 1
    assert gifts.mass[0] == pytest.approx(expected, rel=1e-12)


def test_the_search_widens_until_there_is_a_donor():
    """A sample with nobody closer than r asks further away, up to 2 r; one with nobody there gets nothing."""
    particles = store(np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]))
    bins, _ = tables(particles)
    for away, donors in ((0.9, 1), (1.3, 1), (1.9, 1), (2.1, 0)):
        local = (np.array([away, 0.0, 0.0]) - world(particles, np.array([0]), np.zeros((1, 3))))[0]
        samples = Samples(np.array([0]), local[None].astype(np.float32))
        velocity, mass, volume = given(particles)
        assert gifts_of(particles, bins, samples, velocity, mass, volume).donors[0] == donors


def test_only_one_material_gives():
    """Donors are of the material of the nearest particle."""
    position = lattice(6.0) * [1.3, 1.0, 1.0]
    particles, bins, _, samples = thrown(position, material=(position[:, 1] > 0).astype(int))
    velocity, mass, volume = given(particles)
    before = mass[: particles.count].copy()
    kind = particles.unpack("material")
    taken = kind[nearest_particles(bins, samples)]
    gifts = gifts_of(particles, bins, samples, velocity, mass, volume)
    lost = before - mass[: particles.count]
    for material in (0, 1):
        assert (taken == material).sum() > 20
        assert lost[kind == material].sum() == pytest.approx(gifts.mass[taken == material].sum(), rel=1e-12)


@pytest.mark.parametrize("kernel", STENCIL)
def test_averages_keep_constants_and_follow_slopes(kernel):
    """A constant field comes back to rounding; a linear one within a fifth of its change over a cell, also near the surface."""
    particles, _, places, samples = thrown(lattice(6.0) * [1.3, 1.0, 1.0], dtype=np.float64)
    x = particles.unpack("position")
    constant, slope = (np.zeros(particles.stride) for _ in range(2))
    constant[: len(x)], slope[: len(x)] = 7.0, x @ [1.0, -2.0, 0.5]
    sums = np.zeros(64 * 16 * len(places.coord) + 16)
    for run in range(len(particles.ranges)):
        grid_averages.add_to_nodes(
            STENCIL[kernel],
            (particles.offset, particles.stride, 1.0 / particles.unit),
            np.ones(particles.stride),
            grid_averages.Stack((constant, slope), np.ones(2, int), particles.stride, np.zeros(0, int), 16),
            particles.ranges,
            np.array([run]),
            grid_averages.SummedNodes(places.near, places.of_slot, np.ones(64 * len(places.coord), np.uint8), sums),
        )
    assert sums[::16].sum() == pytest.approx(particles.count, rel=1e-12)
    averages, at = np.empty((len(samples.slot), 2)), 1.5 + 0.5 * samples.position.astype(float)
    grid_averages.average_at(STENCIL[kernel], places.of_slot[samples.slot], at, places.near, sums, 16, averages)
    wanted = np.zeros(64 * len(places.coord), np.uint8)
    grid_averages.mark_nodes(STENCIL[kernel], places.of_slot[samples.slot], at, places.near, wanted)
    sums.reshape(-1, 16)[: len(wanted)][wanted == 0] = np.nan
    again = np.empty_like(averages)
    grid_averages.average_at(STENCIL[kernel], places.of_slot[samples.slot], at, places.near, sums, 16, again)
    assert np.array_equal(again, averages)  # no other node matters
    point = world(particles, samples.slot, samples.position)
    np.testing.assert_allclose(averages[:, 0], 7.0, rtol=1e-12)
    change = 2.0 * (1.0 + 2.0 + 0.5)  # over a cell, 2 r
    assert np.abs(averages[:, 1] - point @ [1.0, -2.0, 0.5]).max() < 0.2 * change


def test_the_nearest_particle_is_the_nearest():
    """What a sample copies comes from the particle next to it."""
    particles, bins, _, samples = thrown(lattice(6.0) * [1.3, 1.0, 1.0])
    point, x = world(particles, samples.slot, samples.position), particles.unpack("position")
    found = np.sqrt(((x[nearest_particles(bins, samples)] - point) ** 2).sum(axis=1))
    np.testing.assert_allclose(found, nearest(point, x), atol=1e-6)
