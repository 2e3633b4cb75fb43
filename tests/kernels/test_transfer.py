"""Transfers against a plain NumPy evaluation of the B-splines (Stomakhin 2013, Jiang 2015)."""

import numpy as np
import pytest

from mpm_nodes.data import Kernel
from mpm_nodes.kernels.transfers import motion, weights
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, lines_of, rows_of, scatter

H = 0.1
KERNELS = ("quadratic", "cubic")
DTYPES = (np.float32, np.float64)


def spline(kernel, x):
    """N(x) and N'(x) of one axis."""
    a, s = np.abs(x), np.sign(x)
    if kernel == "quadratic":
        n = np.where(a < 0.5, 0.75 - a * a, np.where(a < 1.5, 0.5 * (1.5 - a) ** 2, 0.0))
        return n, np.where(a < 0.5, -2 * x, np.where(a < 1.5, -s * (1.5 - a), 0.0))
    n = np.where(a < 1, a**3 / 2 - a * a + 2 / 3, np.where(a < 2, (2 - a) ** 3 / 6, 0.0))
    return n, np.where(a < 1, s * (1.5 * a * a - 2 * a), np.where(a < 2, -s * (2 - a) ** 2 / 2, 0.0))


def stencil(kernel, store, grid):
    """Weights (particles, nodes), their gradients and node positions, from the unpacked state."""
    node, x = grid.unpack("position"), store.unpack("position")
    n, d = spline(kernel, (x[:, None] - node[None]) / H)
    w = n.prod(-1)
    gradient = (
        np.stack([d[..., 0] * n[..., 1] * n[..., 2], n[..., 0] * d[..., 1] * n[..., 2], n[..., 0] * n[..., 1] * d[..., 2]], -1) / H
    )
    return w, gradient, node, x


def make(dtype, kernel, count=150, drift=True):
    rng = np.random.default_rng(3)
    store = ParticleStore(["affine", "velocity_gradient", "stress"], cell_size=H, origin=(0.3, -0.2, 5.0), dtype=dtype)
    store.append({"position": rng.uniform(-0.35, 0.55, (count, 3)) + (0.3, -0.2, 5.0), "id": np.arange(count)})
    store.pack("velocity", rng.normal(size=(count, 3)))
    store.pack("affine", rng.normal(size=(count, 3, 3)))
    store.pack("mass", rng.uniform(1, 2, count))
    store.pack("volume", rng.uniform(1, 2, count))
    store.pack("stress", rng.normal(size=(count, 6)))
    store.sort()
    if drift:  # particles may leave their block before the next sort
        reach = weights.DRIFT_LIMIT[kernel] - 2.0
        for axis in range(3):
            row = store.offset[axis * store.stride : axis * store.stride + count]
            row += (rng.uniform(-reach, reach, count) * store.unit).astype(row.dtype)
    grid = GridStore(store)
    grid.follow()
    return store, grid


def run_gather(store, grid, kernel, **flip):
    gather(
        store,
        grid,
        Kernel(kernel),
        Take("velocity", rows_of("velocity"), lines_of("affine"), lines_of("velocity_gradient"), **flip),
    )


def tolerance(dtype):
    return 200.0 * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_momentum_is_the_apic_sum(dtype, kernel):
    """m_i = sum w m and m_i v_i = sum w m (v + C (x_i - x_p)), for particles that drifted out of their block too."""
    store, grid = make(dtype, kernel)
    grid.clear("momentum")
    scatter(store, grid, Kernel(kernel), Deposit("momentum", "mass", rows_of("velocity"), lines_of("affine")))
    w, _, node, x = stencil(kernel, store, grid)
    m, v, c = store.unpack("mass"), store.unpack("velocity"), store.unpack("affine")
    local = v[:, None] + np.einsum("pab,pnb->pna", c, node[None] - x[:, None])
    np.testing.assert_allclose(grid.unpack("mass"), w.T @ m, atol=tolerance(dtype))
    np.testing.assert_allclose(grid.unpack("momentum"), np.einsum("pn,p,pna->na", w, m, local), atol=4 * tolerance(dtype))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_force_is_the_stress_divergence(dtype, kernel):
    """f_i = - sum V0 tau grad w; forces sum to zero."""
    store, grid = make(dtype, kernel)
    grid.clear("force")
    scatter(store, grid, Kernel(kernel), Deposit("force", force=Force("stress")))
    _, gradient, _, _ = stencil(kernel, store, grid)
    xx, xy, xz, yy, yz, zz = store.unpack("stress").T
    tau = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    exact = -np.einsum("p,pab,pnb->na", store.unpack("volume"), tau, gradient)
    np.testing.assert_allclose(grid.unpack("force"), exact, atol=tolerance(dtype) / H * 4)
    assert np.abs(grid.unpack("force").sum(0)).max() < 100 * tolerance(dtype) / H


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_gives_velocity_affine_and_gradient(dtype, kernel):
    """v = sum w v_i, C = D^-1 sum w v_i (x_i - x_p)^T, L = sum v_i (grad w)^T."""
    store, grid = make(dtype, kernel)
    grid.pack("velocity", np.random.default_rng(5).normal(size=(64 * grid.count, 3)))
    inverse_inertia = {"quadratic": 4.0, "cubic": 3.0}[kernel]
    run_gather(store, grid, kernel)
    w, gradient, node, x = stencil(kernel, store, grid)
    vi = grid.unpack("velocity").astype(float)
    r = node[None] - x[:, None]
    np.testing.assert_allclose(store.unpack("velocity"), w @ vi, atol=tolerance(dtype))
    c = inverse_inertia / H**2 * np.einsum("pn,na,pnb->pab", w, vi, r)
    np.testing.assert_allclose(store.unpack("affine"), c, atol=tolerance(dtype) / H * 4)
    np.testing.assert_allclose(
        store.unpack("velocity_gradient"), np.einsum("na,pnb->pab", vi, gradient), atol=tolerance(dtype) / H * 4
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_affine_field_is_reproduced(kernel):
    """v_i = a + W x_i gives v = a + W x, C = L = W to rounding."""
    store, grid = make(np.float64, kernel)
    w = np.random.default_rng(2).normal(size=(3, 3))
    grid.pack("velocity", grid.unpack("position") @ w.T + 1.0)
    run_gather(store, grid, kernel)
    np.testing.assert_allclose(store.unpack("velocity"), store.unpack("position") @ w.T + 1.0, atol=1e-12)
    np.testing.assert_allclose(store.unpack("affine"), np.broadcast_to(w, (store.count, 3, 3)), atol=1e-11)
    np.testing.assert_allclose(store.unpack("velocity_gradient"), np.broadcast_to(w, (store.count, 3, 3)), atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_flip_adds_the_change_to_the_particles_own_velocity(dtype, kernel):
    """v_p <- a v_p + sum w (v* - a v_i) with v_i = momentum / mass, zero where there is no mass; C and L are those of v*."""
    store, grid = make(dtype, kernel)
    grid.clear("momentum")
    scatter(store, grid, Kernel(kernel), Deposit("momentum", "mass", rows_of("velocity")))
    grid.pack("velocity", np.random.default_rng(5).normal(size=(64 * grid.count, 3)))
    w, _, _, _ = stencil(kernel, store, grid)
    before, mass = store.unpack("velocity").astype(float), grid.unpack("mass").astype(float)
    old = np.where(mass[:, None] > 0, grid.unpack("momentum") / np.where(mass > 0, mass, 1)[:, None], 0)
    new = grid.unpack("velocity").astype(float)
    run_gather(store, grid, kernel)
    plain = store.unpack("affine"), store.unpack("velocity_gradient")
    store.pack("velocity", before)
    run_gather(store, grid, kernel, before="momentum", flip=0.95)
    np.testing.assert_allclose(store.unpack("velocity"), 0.95 * before + w @ (new - 0.95 * old), atol=2 * tolerance(dtype))
    for name, rows in zip(("affine", "velocity_gradient"), plain, strict=True):
        np.testing.assert_allclose(store.unpack(name), rows, atol=tolerance(dtype) / H)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_orders_cells_and_moves_everything(dtype):
    """After a sort particles are ordered by block and cell, and no attribute changed its particle."""
    store, _ = make(dtype, "quadratic")
    before = {int(i): (x, v) for i, x, v in zip(store.unpack("id"), store.unpack("position"), store.unpack("affine"), strict=True)}
    store.sort()
    for i, x, v in zip(store.unpack("id"), store.unpack("position"), store.unpack("affine"), strict=True):
        np.testing.assert_allclose(x, before[int(i)][0], atol=1e-12)
        np.testing.assert_array_equal(v, before[int(i)][1])
    cell = np.floor((store.unpack("position") - store.origin) / H - 1.5 + 1e-9).astype(int)
    key = [tuple(c // 4) + tuple(c % 4) for c in cell]
    assert key == sorted(key)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slow_creep_is_not_lost(dtype):
    """1 mm/s with dt = 1e-5 s moves a particle by 1e-8 m a step, also 1 km from the origin."""
    store = ParticleStore([], cell_size=0.05, origin=(1000.0, 0.0, 0.0), dtype=dtype)
    store.append({"position": np.array([[1000.11, 0.01, 0.02]]), "velocity": np.array([[1e-3, 0.0, 0.0]])})
    store.sort()
    begin, largest = store.unpack("position")[0, 0], np.zeros((1, 3))
    for _ in range(1000):
        motion.move_particles(store.geometry(), store.array("velocity"), 1e-5 / 0.05, store.ranges, largest)
    # each step rounds to the fixed-point unit of the position: at most half of one
    assert abs(store.unpack("position")[0, 0] - begin - 1e-5) < 1000 * 0.5 * 0.05 / store.unit + 1e-12
    assert largest[0, 1] == pytest.approx(1e-3 * 1e-5 / 0.05, rel=1e-5)


def test_a_runaway_velocity_is_reported_as_infinite():
    """A NaN velocity shows up in the displacement report instead of vanishing."""
    store = ParticleStore([], cell_size=0.05)
    store.append({"position": np.zeros((3, 3)), "velocity": np.array([[0, 0, 0], [np.nan, 0, 0], [1.0, 0, 0]])})
    store.sort()
    largest = np.zeros((1, 3))
    motion.move_particles(store.geometry(), store.array("velocity"), 1e-3, store.ranges, largest)
    assert np.isinf(largest[0, 1]) and np.isinf(largest[0, 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_follows_particles_wherever_an_offset_can_point(dtype):
    """A particle pushed seven cells out of its block keeps its place through the sort."""
    store = ParticleStore([], cell_size=H, dtype=dtype)
    store.append({"position": np.random.default_rng(8).uniform(0, 0.4, (40, 3)), "id": np.arange(40)})
    store.sort()
    push = np.random.default_rng(9).uniform(-5.5, 5.5, (3, 40))
    for axis in range(3):
        row = store.offset[axis * store.stride : axis * store.stride + 40]
        row += (push[axis] * store.unit).astype(row.dtype)
    before = dict(zip(store.unpack("id").tolist(), store.unpack("position"), strict=True))
    store.sort()
    assert store.drift <= 2.0 and np.abs(store.offset / store.unit).max() <= 2.0 + 1e-6
    for i, x in zip(store.unpack("id").tolist(), store.unpack("position"), strict=True):
        np.testing.assert_allclose(x, before[i], atol=1e-12)
