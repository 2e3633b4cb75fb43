"""Kernels of surfaces that run on lanes, against the same sums and sweeps written with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.kernels.surfaces.filter import leaf_neighbours, redistance, smooth, sort_leaves
from mpm_nodes.kernels.surfaces.neighbourhoods import load_cells
from mpm_nodes.kernels.surfaces.splat import Stretched, bin_particles, blend_spheres

DX, REACH, RADIUS, LIMIT, FAR = 0.1, 0.42, 0.17, 0.21, 9.0
LEAVES = 8 * np.stack(np.meshgrid(*(np.arange(-1, 1),) * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)


def dense(values: np.ndarray) -> np.ndarray:
    """Return the values of LEAVES as one block of 16^3."""
    return values.reshape(2, 2, 2, 8, 8, 8).transpose(0, 3, 1, 4, 2, 5).reshape(16, 16, 16)


def blended(points: np.ndarray, inverses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return phi and the sum of weights at the voxels of LEAVES: the sums over all particles, in double precision."""
    voxels = DX * np.stack(np.meshgrid(*(np.arange(-8, 8),) * 3, indexing="ij"), -1)[..., None, :]
    s2 = (np.einsum("pab,xyzpb->xyzpa", inverses, voxels - points) ** 2).sum(axis=-1)
    left = np.maximum(1.0 - s2, 0.0)
    weight = (left**3).sum(axis=-1)
    mean = np.einsum("xyzp,pa->xyza", left**3, points) / np.maximum(weight, 1e-300)[..., None]
    nearest = REACH * np.sqrt(1.0 - left.max(axis=-1))
    phi = np.maximum(np.linalg.norm(voxels[..., 0, :] - mean, axis=-1) - RADIUS, nearest - LIMIT)
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
    inverses = np.linalg.inv(shapes)
    stretched = Stretched(
        thin,
        np.ascontiguousarray(inverses[thin.order], np.float32),
        np.ascontiguousarray(np.sqrt((shapes**2).sum(axis=2))[thin.order], np.float32),
    )
    found = dense(blend_spheres(bins, LEAVES, DX, REACH, RADIUS, LIMIT, FAR, stretched))
    expected, weight = blended(points, np.concatenate([np.tile(np.eye(3) / REACH, (40, 1, 1)), inverses]))
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
            load_cells(field, neighbours, row, reach, wide, block)
            x, y, z = (4 + (np.array(origin) + 8) // 2 - reach).tolist()
            assert (block.reshape(wide, wide, wide) == whole[x : x + wide, y : y + wide, z : z + wide]).all()
