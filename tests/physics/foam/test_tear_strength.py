"""Strength that varies: the field, what is torn by it, and a column that tears alike at two cell sizes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from mpm_nodes import Graph, SubstepSolver, execute
from mpm_nodes.data import Material, MpmNodesError, Particles
from mpm_nodes.physics.foam.nodes.tear_strength import random_field, vary_tear_strength
from tests.reproduction.measures import pieces

PASTE = Material("herschel_bulkley", {"shear_modulus": 1e4, "yield_stress": 1.0}, 1000.0, tear_threshold=1.0)


def scattered(count: int = 20000, extent: float = 1.0) -> Particles:
    """Return particles at random places of a cube."""
    place = np.random.default_rng(5).uniform(0.0, extent, (count, 3))
    return Particles({"position": place}, (PASTE,), 0.01)


# ---------------------------------------------------------------- the field
def test_the_field_has_the_spread_and_the_correlations_it_says():
    """Over 200 seeds at two places: mean 0, variance 1, correlation exp(-r^2 / (2 size^2)), within four standard errors."""
    size, seeds = 0.1, 200
    for distance in (0.05, 0.1, 0.3):
        pair = np.array([[0.3, 0.2, 0.1], [0.3, 0.2 + distance, 0.1]])
        values = np.array([random_field(pair, size, seed) for seed in range(seeds)])
        assert np.abs(values.mean(axis=0)).max() < 4.0 / np.sqrt(seeds)
        assert np.abs(values.var(axis=0) - 1.0).max() < 4.0 * np.sqrt(2.0 / seeds)
        expected = np.exp(-0.5 * (distance / size) ** 2)
        found = np.corrcoef(values.T)[0, 1]
        assert abs(found - expected) < 4.0 * (1.0 - expected**2) / np.sqrt(seeds)


def test_strength_hangs_on_the_place_and_not_on_the_particles_around():
    """Half of the particles get what they get among all; another seed gives another field; variation 0 gives 1."""
    points = scattered(2000)
    part = Particles({"position": points["position"][::2]}, points.materials, points.spacing)
    whole, half = (np.asarray(vary_tear_strength(each, size=0.1)["tear_scale"]) for each in (points, part))
    assert np.allclose(whole[::2], half, rtol=1e-12)
    assert not np.allclose(whole, vary_tear_strength(points, size=0.1, seed=1)["tear_scale"])
    assert (np.asarray(vary_tear_strength(points, variation=0.0)["tear_scale"]) == 1.0).all()


def test_strength_is_spread_by_its_logarithm_and_two_fields_multiply():
    """Strengths are positive, their logarithm has the given deviation, and a second node multiplies what is there."""
    points = scattered()
    once = vary_tear_strength(points, variation=0.5, size=0.03)
    logarithm = np.log(once["tear_scale"])
    assert abs(logarithm.std() - 0.5) < 0.02 and abs(logarithm.mean()) < 0.02
    twice = vary_tear_strength(once, variation=0.2, size=0.1, seed=3)
    other = vary_tear_strength(points, variation=0.2, size=0.1, seed=3)
    assert np.allclose(twice["tear_scale"], once["tear_scale"] * other["tear_scale"])


def test_matter_that_cannot_tear_is_refused():
    """The message names the node that lets matter tear."""
    whole = dataclasses.replace(PASTE, tear_threshold=None)
    with pytest.raises(MpmNodesError, match=r"no material of theirs can tear; put material_tearing behind"):
        vary_tear_strength(dataclasses.replace(scattered(10), materials=(whole,)))


# ---------------------------------------------------------------- what it does
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fuse", [True, False])
def test_a_particle_is_torn_by_its_own_threshold(dtype: type, fuse: bool):
    """Of particles with one distortion those are torn whose factor times the threshold lies below it."""
    stretch, count = 2.0, 512
    distortion = math.sqrt(2.0 / 3.0) * (stretch**2 - 1.0 / stretch)
    scale = np.linspace(0.5, 1.5, count) * distortion / PASTE.tear_threshold
    solver = still(stretch, count, dtype, fuse, tear_scale=scale)
    solver.step(1e-9)
    torn = solver.particles.unpack("weak")[np.argsort(solver.particles.unpack("id"))] == 1
    assert (torn == (scale * PASTE.tear_threshold < distortion)).all()


def test_factors_of_one_change_no_bit():
    """A column of ones gives the bits of no column."""
    plain, ones = still(1.5, 512, np.float32, True), still(1.5, 512, np.float32, True, tear_scale=np.ones(512))
    for solver in (plain, ones):
        for _ in range(5):
            solver.step(1e-4)
    for name in ("position", "velocity", "total_deformation", "weak"):
        assert (plain.particles.unpack(name) == ones.particles.unpack(name)).all()


def test_a_factor_that_is_no_factor_is_refused():
    """Zero and what is not a number are told."""
    for wrong in (0.0, np.nan):
        with pytest.raises(MpmNodesError, match="particle tear_scale must be finite and > 0"):
            still(1.0, 8, np.float32, True, tear_scale=np.full(8, wrong))


def still(stretch: float, count: int, dtype: type, fuse: bool, **columns: np.ndarray) -> SubstepSolver:
    """Return a solver of a lattice of paste that has flowed by a stretch, without stress."""
    side = math.ceil(count ** (1 / 3))
    place = 0.05 * np.stack(np.unravel_index(np.arange(count), (side,) * 3), 1)
    flowed = np.tile(np.diag([stretch, stretch**-0.5, stretch**-0.5]), (count, 1, 1))
    particles = Particles({"position": place, "total_deformation": flowed, **columns}, (PASTE,), 0.05)
    return SubstepSolver(particles, "continuum_foam", cell_size=0.1, dtype=dtype, fuse=fuse, gravity=(0.0, 0.0, 0.0))


def pulled(cell: float) -> Particles:
    """Return a waisted column of brittle paste, 24 mm high, after its ends were pulled 36 mm apart."""
    graph = Graph(cell_size=cell, fps=60, start=1, end=16)
    paste = graph.add("material_library", "paste", name="viscoplastic")
    brittle = graph.add("material_tearing", "brittle", material=paste, tear_threshold=1.0, recovery_time=100.0)
    parts = [
        graph.add("emit_box", name, material=brittle, size=(width, height, width), centre=(0.0, middle, 0.0), seeding="poisson")
        for name, width, height, middle in (
            ("low", 0.012, 0.0105, 0.00525),
            ("waist", 0.007, 0.003, 0.012),
            ("high", 0.012, 0.0105, 0.01875),
        )
    ]
    column = graph.add("merge_particles", "column", sources=parts)
    uneven = graph.add("vary_tear_strength", "uneven", particles=column, variation=1.0, size=0.002, seed=1)
    floor = graph.add("collide_box", "floor", size=(0.04, 0.01, 0.04), centre=(0.0, -0.003, 0.0), rule="sticky")
    lid = graph.add("collide_box", "lid", size=(0.04, 0.01, 0.04), rule="sticky")
    graph.key("lid.centre", 1, (0.0, 0.027, 0.0), "linear")
    graph.key("lid.centre", 16, (0.0, 0.063, 0.0), "linear")
    graph.add("solve", "pull", sources=[uneven], colliders=[floor, lid], substeps="continuum_foam", gravity=(0.0, 0.0, 0.0))
    return execute(graph).outputs["pull"]["particles"]


@pytest.mark.slow
def test_a_waist_tears_into_the_same_pieces_at_any_cell_size():
    """At cells of 2 and 1 mm a brittle column is in two pieces, whose masses agree within a twentieth of the whole."""
    shares = []
    for cell in (0.002, 0.001):
        particles = pulled(cell)
        mass = np.asarray(particles["mass"], float)
        piece = pieces(np.asarray(particles["position"], float), 0.0015)
        share = np.bincount(piece, mass) / mass.sum()
        shares.append(np.sort(share[share > 0.02]))
    assert len(shares[0]) == len(shares[1]) == 2
    assert np.abs(shares[0] - shares[1]).max() <= 0.05
