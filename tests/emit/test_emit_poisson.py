"""Poisson-disc sampling against its own definition: distance, coverage, density, components (Bridson 2007)."""

import numpy as np
import pytest

from mpm_nodes.data import LevelSet
from mpm_nodes.kernels.level_sets.poisson import background_bytes, poisson_disc
from mpm_nodes.kernels.level_sets.regions import box_region, level_set_region, sphere_region

R = 0.05


def nearest(points: np.ndarray, probes: np.ndarray, skip_self: bool = False) -> np.ndarray:
    """Distance of each probe to the nearest point, by brute force in slabs."""
    found = np.empty(len(probes))
    for n in range(0, len(probes), 256):
        square = ((probes[n : n + 256, None, :] - points[None]) ** 2).sum(axis=2)
        if skip_self:
            square[np.arange(len(square)), np.arange(n, n + len(square))] = np.inf
        found[n : n + 256] = np.sqrt(square.min(axis=1))
    return found


def ball_level_set(centres, radius: float, dx: float) -> LevelSet:
    """Narrow-band level set of disjoint balls, deep interior left out, as foreign files store it."""
    origins, values = [], []
    for centre in np.asarray(centres, float):
        low = np.floor((centre - radius) / dx / 8).astype(int) - 1
        high = np.floor((centre + radius) / dx / 8).astype(int) + 1
        for corner in np.ndindex(*(high - low + 1)):
            origin = 8 * (low + corner)
            x = (origin + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), axis=-1)) * dx
            phi = np.linalg.norm(x - centre, axis=-1) - radius
            if np.abs(phi).min() < 3 * dx:
                origins.append(origin)
                values.append(np.clip(phi, -3 * dx, 3 * dx))
    return LevelSet(np.array(origins, np.int32), np.array(values, np.float32), dx, background=3 * dx)


@pytest.mark.parametrize("region", [box_region((9 * R, 9 * R, 9 * R)), sphere_region(5 * R)], ids=["box", "ball"])
def test_no_pair_is_closer_than_the_distance_and_all_lie_inside(region):
    """Min pair distance >= r exactly; every point inside its region."""
    points = poisson_disc(region, R, seed=3)
    assert nearest(points, points, skip_self=True).min() >= R
    assert region.inside(points).all()


def test_density_and_coverage_of_a_box_of_side_nine():
    """N r^3 / V in 0.55..0.70, at most 1 % of probes further than r from all samples, none further than 2 r."""
    points = poisson_disc(box_region((9 * R, 9 * R, 9 * R)), R, seed=1)
    assert 0.55 <= len(points) / 9**3 <= 0.70
    gaps = nearest(points, np.random.default_rng(0).uniform(-4.5 * R, 4.5 * R, (20_000, 3)))
    assert (gaps > R).mean() <= 0.01
    assert gaps.max() <= 2 * R


def test_equal_seeds_give_equal_points_and_others_do_not():
    """The points are a function of region, distance, tries and seed."""
    region = box_region((0.3, 0.2, 0.4))
    first, again, other = (poisson_disc(region, R, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:20], other[:20])


def test_every_component_of_a_level_set_is_filled_without_a_grid_around_both():
    """Two balls 100 m apart get their share each, and the background cells stay bounded by the matter."""
    region = level_set_region(ball_level_set([(0, 0, 0), (100, 100, 100)], 0.2, 0.02))
    points = poisson_disc(region, R, seed=0)
    far = points[:, 0] > 50
    exact = 4 / 3 * np.pi * 0.2**3 / R**3
    assert 0.5 < far.sum() / exact < 0.8 and 0.5 < (~far).sum() / exact < 0.8
    assert background_bytes(region, R) < 2e6


@pytest.mark.parametrize("place", [(0.3, 0.4, 0.5), (7.0, 0.0, 7.0), (8.2, -0.1, 15.4)])
def test_a_body_thinner_than_a_voxel_gets_a_point(place):
    """A ball of 1/500 of its leaf, which random places miss: at least one point, inside; so that no body comes out empty."""
    dx = R / 20
    centre = np.array(place).round() * dx
    points = poisson_disc(level_set_region(ball_level_set([centre], 0.02 * dx, dx)), R, seed=1)
    assert len(points) == 1
    assert np.linalg.norm(points - centre) <= dx


def test_touching_components_keep_their_distance():
    """Components closer than r, sampled in boxes that meet, still hold the minimum distance between each other."""
    region = level_set_region(ball_level_set([(0, 0, 0), (0.42, 0, 0)], 0.2, 0.02))
    points = poisson_disc(region, R, seed=0)
    assert nearest(points, points, skip_self=True).min() >= R


def test_volume_of_a_level_set_with_a_hollow_band():
    """A narrow band without its interior measures the ball's volume to half a percent (voxel = radius / 10)."""
    region = level_set_region(ball_level_set([(0.3, -0.1, 0.2)], 0.4, 0.04))
    assert region.volume == pytest.approx(4 / 3 * np.pi * 0.4**3, rel=0.005)
    assert region.inside(np.array([[0.3, -0.1, 0.2]])).all()
