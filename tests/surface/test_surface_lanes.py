"""Kernels of surfaces that run on lanes, against the same sums and sweeps written with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import LevelSet
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.level_sets.regions import level_set_normals
from mpm_nodes.kernels.surfaces.anisotropy import _covariances
from mpm_nodes.kernels.surfaces.averages import average_at_points
from mpm_nodes.kernels.surfaces.filter import leaf_neighbours, redistance, smooth, sort_leaves
from mpm_nodes.kernels.surfaces.neighbourhoods import blur, gaussian, load_cells
from mpm_nodes.kernels.surfaces.runs import in_columns
from mpm_nodes.kernels.surfaces.splat import ALONG, Stretched, bin_particles, blend_spheres
from mpm_nodes.kernels.surfaces.volume import NarrowBand, contents, match_volume

DX, REACH, RADIUS, LIMIT, FAR = 0.1, 0.42, 0.17, 0.21, 9.0
LEAVES = 8 * np.stack(np.meshgrid(*(np.arange(-1, 1),) * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)


def dense(values: np.ndarray) -> np.ndarray:
    """Return the values of LEAVES as one block of 16^3."""
    return values.reshape(2, 2, 2, 8, 8, 8).transpose(0, 3, 1, 4, 2, 5).reshape(16, 16, 16)


def blended(points: np.ndarray, inverses: np.ndarray, shortest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return phi and the sum of weights at the voxels of LEAVES: the sums over all particles, in double precision."""
    voxels = DX * np.stack(np.meshgrid(*(np.arange(-8, 8),) * 3, indexing="ij"), -1)[..., None, :]
    ways = voxels - points
    turned = np.einsum("pab,xyzpb->xyzpa", inverses, ways)
    left = np.maximum(1.0 - (turned**2).sum(axis=-1), 0.0)
    weight = (left**3).sum(axis=-1)
    counted = (1.0 - ALONG) * ways + ALONG * shortest[:, None] * turned
    mean = np.einsum("xyzp,xyzpa->xyza", left**3, counted) / np.maximum(weight, 1e-300)[..., None]
    nearest = REACH * np.sqrt(1.0 - left.max(axis=-1))
    phi = np.maximum(np.linalg.norm(mean, axis=-1) - RADIUS, nearest - LIMIT)
    return np.where(weight < 1e-12, FAR, phi), weight


def test_blended_spheres_and_ellipsoids_are_the_sums_over_all_particles():
    """Forty particles of either kind, some of them beyond the leaves: a thousandth of a voxel, where weights are not tiny."""
    random = np.random.default_rng(3)
    points = random.uniform(-1.1, 1.1, (80, 3))
    bins = bin_particles(points[:40], REACH)
    thin = bin_particles(points[40:], 1.6 * REACH)
    turned = np.linalg.qr(random.standard_normal((40, 3, 3)))[0]
    axes = REACH * np.exp(random.uniform(-0.45, 0.45, (40, 3)))
    shapes = np.einsum("pik,pk,pjk->pij", turned, axes, turned)
    inverses, shortest = np.linalg.inv(shapes), axes.min(axis=1)
    stretched = Stretched(
        thin,
        np.ascontiguousarray(inverses[thin.order], np.float32),
        shortest.astype(np.float32)[thin.order],
        np.ascontiguousarray(np.sqrt((shapes**2).sum(axis=2))[thin.order], np.float32),
    )
    found = dense(blend_spheres(bins, LEAVES, DX, REACH, RADIUS, LIMIT, FAR, stretched))
    spheres = np.tile(np.eye(3) / REACH, (40, 1, 1)), np.full(40, REACH)
    expected, weight = blended(points, np.concatenate([spheres[0], inverses]), np.concatenate([spheres[1], shortest]))
    sure = (weight > 1e-5) | (weight == 0.0)
    assert sure.mean() > 0.95 and (weight > 1e-5).mean() > 0.3
    assert np.abs(found - expected)[sure].max() < 1e-3 * DX


@pytest.mark.parametrize("step", [1, 2, 5])
def test_smoothing_steps_are_those_of_one_block(step):
    """Two pairs of steps over the borders of eight leaves: averages of six neighbours `step` voxels off, as NumPy takes them."""
    block = np.random.default_rng(5).standard_normal((16, 16, 16)).astype(np.float32)
    expected = block.astype(float)
    for amount in (0.60, -0.62) * 2:
        wide = np.pad(expected, step, constant_values=FAR)
        around = sum(np.roll(wide, way, axis)[step:-step, step:-step, step:-step] for axis in range(3) for way in (-step, step))
        expected = (1.0 - amount) * expected + amount / 6.0 * around
    leaves = block.reshape(2, 8, 2, 8, 2, 8).transpose(0, 2, 4, 1, 3, 5).reshape(8, 8, 8, 8)
    keys, origins, values = sort_leaves(LEAVES, leaves)
    found = smooth(values, leaf_neighbours(keys, origins), FAR, 2, step)
    place = {tuple(origin): row for row, origin in enumerate(origins)}
    found = dense(found[[place[tuple(origin)] for origin in LEAVES]])
    assert np.abs(found - expected).max() < 1e-4


def test_redistancing_sweeps_as_the_eikonal_equation_says():
    """A ball across eight leaves: the band is that of the same sweeps in double precision, to a ten-thousandth of a voxel."""
    axis = DX * (np.arange(-8, 8) + 0.3)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    band = 3.0 * DX
    start = (np.linalg.norm(grid, axis=-1) - 0.5) * (1.0 + 0.3 * np.sin(7.0 * grid[..., 0]))
    leaves = start.reshape(2, 8, 2, 8, 2, 8).transpose(0, 2, 4, 1, 3, 5).reshape(8, 8, 8, 8).astype(np.float32)
    keys, origins, values = sort_leaves(LEAVES, leaves)
    found = redistance(values, leaf_neighbours(keys, origins), DX, band)
    places = {tuple(origin): row for row, origin in enumerate(np.asarray(origins))}
    found = dense(np.stack([found[places[tuple(origin)]] for origin in LEAVES]))
    assert np.abs(found - swept(start.astype(np.float32).astype(float), band)).max() < 1e-4 * DX


def test_a_voxel_on_the_surface_is_at_a_distance_of_nothing():
    """Also where the voxels beside it are below zero by the least number there is; none beside a change of sign is a voxel away."""
    values = np.full((8, 8, 8, 8), 0.5 * DX, np.float32)
    values[0, 4, 4, 4], values[0, 4, 4, 5] = 0.0, np.float32(-1e-40)
    values[0, 2, 2, 2] = -0.25 * DX
    keys, origins, values = sort_leaves(LEAVES, values)
    found = redistance(values, leaf_neighbours(keys, origins), DX, 3.0 * DX)[0]
    assert abs(found[4, 4, 4]) < 1.001 * DX and abs(found[4, 4, 5]) <= 1e-3 * DX
    assert found[2, 2, 2] == pytest.approx(-DX / 3.0 / np.sqrt(3.0), rel=1e-5)


def shifted(values: np.ndarray, axis: int, step: int, outside: float) -> np.ndarray:
    """Return the value of each voxel's neighbour along an axis."""
    moved = np.roll(values, -step, axis)
    moved[tuple(slice(None) if a != axis else (-1 if step > 0 else 0) for a in range(3))] = outside
    return moved


def swept(phi: np.ndarray, band: float) -> np.ndarray:
    """Return the band after the sweeps of `redistance`, in double precision."""
    total = np.zeros_like(phi)
    for axis in range(3):
        nearest = np.full_like(phi, 2.0)
        for step in (-1, 1):
            other = shifted(phi, axis, step, band)
            cut = np.abs(phi) / np.maximum(np.abs(phi - other), 1e-30)
            nearest = np.where((other < 0.0) != (phi < 0.0), np.minimum(nearest, cut), nearest)
        total += np.where(nearest < 2.0, 1.0 / np.maximum(nearest, 1e-4) ** 2, 0.0)
    fixed = total > 0.0
    size = np.where(fixed, DX / np.sqrt(np.maximum(total, 1e-30)), band)
    for _ in range(int(np.ceil(band / DX)) + 2):
        near = [np.minimum(shifted(size, axis, -1, band), shifted(size, axis, 1, band)) for axis in range(3)]
        a, b, c = np.sort(near, axis=0)
        one = a + DX
        two = 0.5 * (a + b + np.sqrt(np.maximum(2.0 * DX**2 - (b - a) ** 2, 0.0)))
        all_three = a + b + c
        three = (all_three + np.sqrt(np.maximum(all_three**2 - 3.0 * (a**2 + b**2 + c**2 - DX**2), 0.0))) / 3.0
        found = np.where(one > b, np.where(two > c, three, two), one)
        size = np.where(fixed, size, np.minimum(found, np.minimum(size, band)))
    return np.where(phi < 0.0, -size, size)


@compiled
def copy_cells(field, neighbours, leaf, reach, wide, block):
    """Call what kernels call."""
    load_cells(field, neighbours, leaf, reach, wide, block)


def test_cells_around_a_leaf_are_copied_whole_and_in_part():
    """Blocks that take in one, two or four cells of the leaves around hold what a dense field has there, and zeros beyond."""
    keys, origins, _ = sort_leaves(LEAVES, np.zeros((8, 8, 8, 8), np.float32))
    neighbours = leaf_neighbours(keys, origins)
    field = np.random.default_rng(1).normal(size=(8, 4, 4, 4)).astype(np.float32)
    places = {tuple(origin): row for row, origin in enumerate(np.asarray(origins))}
    whole = np.zeros((16, 16, 16), np.float32)
    for origin, row in places.items():
        x, y, z = (4 + (np.array(origin) + 8) // 2).tolist()
        whole[x : x + 4, y : y + 4, z : z + 4] = field[row]
    for reach in (1, 2, 4):
        wide = 4 + 2 * reach
        for origin, row in places.items():
            block = np.full(wide**3, np.nan, np.float32)
            copy_cells(field, neighbours, row, reach, wide, block)
            x, y, z = (4 + (np.array(origin) + 8) // 2 - reach).tolist()
            assert (block.reshape(wide, wide, wide) == whole[x : x + wide, y : y + wide, z : z + wide]).all()


def test_averages_at_points_are_the_sums_over_all_particles():
    """More than sixteen in a bin, points in any order, some only within twice the reach, one with nothing: as NumPy takes them."""
    random = np.random.default_rng(7)
    places = np.concatenate([random.uniform(-1.0, 1.0, (300, 3)), 0.05 * random.standard_normal((90, 3)) + 0.4]) + [
        50.0,
        0.0,
        -70.0,
    ]
    points = np.concatenate([random.uniform(-1.3, 1.3, (400, 3)), [[5.0, 5.0, 5.0]]]) + [50.0, 0.0, -70.0]
    columns = random.standard_normal((len(places), 4))
    found = average_at_points(bin_particles(places, 0.35), columns, points, 0.3)
    square = ((points[:, None] - places) ** 2).sum(axis=-1)
    kernels = [np.maximum(1.0 - square / reach**2, 0.0) ** 3 for reach in (0.3, 0.6)]
    near = kernels[0].sum(axis=1) > 0.0
    weight = np.where(near[:, None], *kernels)
    expected = weight @ columns / np.maximum(weight.sum(axis=1), 1e-300)[:, None]
    assert 0.02 < (~near).mean() < 0.5 and (weight.sum(axis=1) == 0.0).sum() >= 1
    sure = (weight.sum(axis=1) > 1e-4) | (weight.sum(axis=1) == 0.0)
    assert sure.mean() > 0.9
    assert np.abs(found - expected)[sure].max() < 1e-4


def test_bins_that_are_too_small_for_a_reach_are_refused():
    """Runs of more bins than there is room for would be written beyond it."""
    bins = bin_particles(np.zeros((1, 3)), 0.2)
    with pytest.raises(ValueError, match=r"bins of 0\.2 m: no particle can be looked for 0\.5 m away; make them larger"):
        average_at_points(bins, np.zeros((1, 1)), np.zeros((1, 3)), 0.25)


def test_covariances_are_the_sums_over_all_particles():
    """Those of particles in a clump, in a row and alone, with every neighbour within the width counted, itself too."""
    random = np.random.default_rng(11)
    row = np.stack([np.linspace(-1.0, 1.0, 60), np.zeros(60), np.zeros(60)], axis=1) + 0.01 * random.standard_normal((60, 3))
    places = np.concatenate([row, 0.1 * random.standard_normal((70, 3)) + [0.0, 0.5, 0.0], [[9.0, 9.0, 9.0]]])
    bins = bin_particles(places, 0.2)
    found, counts = _covariances(in_columns(bins, 0.4), np.arange(len(places)), 0.4)
    ways = bins.positions[None] - bins.positions[:, None]
    share = np.linalg.norm(ways, axis=-1) / 0.4
    weight = np.where(share < 1.0, 1.0 - share**3, 0.0)
    weight /= weight.sum(axis=1)[:, None]
    mean = np.einsum("ij,ija->ia", weight, ways)
    expected = np.einsum("ij,ija,ijb->iab", weight, ways, ways) - mean[:, :, None] * mean[:, None, :]
    assert (counts == (share < 1.0).sum(axis=1)).all() and counts.min() == 1 and counts.max() > 60
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_normals_are_slopes_of_trilinear_values():
    """At points in every leaf, in no order, and beyond the leaves: differences over a voxel of the dense field's linear values."""
    random = np.random.default_rng(13)
    values = random.standard_normal((8, 8, 8, 8)).astype(np.float32)
    points = random.uniform(-8.4, 7.4, (500, 3))
    found = level_set_normals(LevelSet(LEAVES, values, DX, origin=(1.0, 2.0, 3.0), background=FAR), DX * points + [1.0, 2.0, 3.0])
    field = np.pad(dense(values), 2, constant_values=FAR).astype(float)

    def linear(places):
        low = np.floor(places).astype(int)
        total = np.zeros(len(places))
        for corner in np.ndindex(2, 2, 2):
            share = np.prod(np.where(corner, places - low, 1.0 - places + low), axis=1)
            total += share * field[tuple((low + 10 + corner).T)]
        return total

    half = 0.5 * np.eye(3)
    slope = np.stack([linear(points + h) - linear(points - h) for h in half], axis=1)
    np.testing.assert_allclose(found, slope / np.linalg.norm(slope, axis=1)[:, None], atol=1e-5)


def cells(values: np.ndarray) -> np.ndarray:
    """Return fields on the cells of LEAVES, shape (leaves, 4, 4, 4), as one block of 8^3."""
    return values.reshape(2, 2, 2, 4, 4, 4).transpose(0, 3, 1, 4, 2, 5).reshape(8, 8, 8)


def between(moved: np.ndarray) -> np.ndarray:
    """Return the linear values at 16^3 voxels of 8^3 cells that have zeros around them."""
    for axis in range(3):
        wide = np.moveaxis(np.pad(moved, [(1, 1) if a == axis else (0, 0) for a in range(3)]), axis, 0)
        fine = np.stack([0.75 * wide[1:-1] + 0.25 * wide[:-2], 0.75 * wide[1:-1] + 0.25 * wide[2:]], axis=1)
        moved = np.moveaxis(fine.reshape(-1, *fine.shape[2:]), 0, axis)
    return moved


def test_contents_and_displacements_are_those_of_linear_values_between_cells():
    """Volume and area of each cell after a displacement that varies from cell to cell, as NumPy takes them voxel by voxel."""
    random = np.random.default_rng(17)
    keys, origins, values = sort_leaves(LEAVES, DX * random.uniform(-1.5, 1.5, (8, 8, 8, 8)).astype(np.float32))
    assert (origins == LEAVES).all()
    surface = NarrowBand(values, leaf_neighbours(keys, origins), DX, 2.0 * DX)
    moved = random.uniform(-1.0, 1.0, (8, 4, 4, 4)).astype(np.float32)
    inside, area = contents(surface, moved, 0.3 * DX)
    t = dense(values) / DX + 0.3 - between(cells(moved).astype(float))
    for found, each in ((inside, np.clip(0.5 - t, 0.0, 1.0)), (area, np.maximum(1.0 - np.abs(t), 0.0))):
        np.testing.assert_allclose(cells(found), each.reshape(8, 2, 8, 2, 8, 2).sum(axis=(1, 3, 5)), atol=2e-5)
    # with nothing to fill, every voxel within the band is moved inward, most where its cell is fullest
    shrunk = match_volume(surface, np.zeros((8, 4, 4, 4), np.float32), 2.0 * DX, 0.2 * DX)
    way = (shrunk - values) / DX
    assert way.min() > -1e-5 and way.max() < 0.2 + 1e-5 and way.mean() > 0.1


def test_a_gaussian_over_leaves_is_that_of_one_block():
    """One pass over fields on eight leaves, and zeros beyond them: as NumPy convolves the block."""
    field = np.random.default_rng(19).standard_normal((2, 8, 4, 4, 4)).astype(np.float32)
    keys, origins, _ = sort_leaves(LEAVES, np.zeros((8, 8, 8, 8), np.float32))
    found = blur(field, leaf_neighbours(keys, origins), 3.3, np.arange(8))
    weights, passes = gaussian(0.5 * 3.3)
    half = len(weights) // 2
    assert passes == 1
    for each, block in zip(found, map(cells, field), strict=True):
        for axis in range(3):
            block = np.apply_along_axis(lambda line: np.convolve(line, weights)[half : half + 8], axis, block.astype(float))
        assert np.abs(cells(each) - block).max() < 1e-5
