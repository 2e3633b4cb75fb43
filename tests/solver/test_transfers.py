"""Transfers over fields on nodes, faces, edges and corners of the grid, against the B-splines written out in NumPy."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from mpm_nodes.data import Attribute, Kernel, MpmNodesError
from mpm_nodes.solver.grid import FACES, NODES, GridField, GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, lines_of, rows_of, scatter

H = 0.1
SHIFTS = list(itertools.product((0, 1), repeat=3))
DTYPES = (np.float32, np.float64)
# every pair compiles transfers of its own: two of the four see each float type and each spline once
every_pair = [
    pytest.param(dtype, kernel, marks=() if (dtype is np.float32) == (kernel is Kernel.QUADRATIC) else pytest.mark.slow)
    for dtype in DTYPES
    for kernel in Kernel
]
every_case = pytest.mark.parametrize(
    "dtype, kernel, shift",
    [pytest.param(*pair.values, shift, marks=pair.marks) for pair in every_pair for shift in SHIFTS],
    ids=lambda value: getattr(value, "value", getattr(value, "__name__", str(value))),
)
INERTIA = {Kernel.QUADRATIC: H * H / 4.0, Kernel.CUBIC: H * H / 3.0}


def attribute(name: str, *shape: int) -> Attribute:
    return Attribute(name, name, shape, "", f"primvars:{name}", name, "Of this test.")


def fields(shift: tuple[int, int, int], name: str = "flow") -> tuple[GridField, ...]:
    return (
        GridField(name, shift, 3, "", "Weighted values.", name),
        GridField(f"{name}_weight", shift, 1, "", "Weights.", name, 3),
        GridField(f"{name}_after", shift, 3, "", "Values.", f"{name}_after"),
    )


def make(dtype, shift=NODES, origin=(0.3, -0.2, 5.0), positions=None, drift: float = 0.0):
    """Particles around the origin, on both sides of it and at the borders of blocks, and a grid with arrays of one shift."""
    rng = np.random.default_rng(3)
    if positions is None:
        border = H * np.array(list(itertools.product((1.5, 5.5 - 1e-6, -2.5), repeat=3)))
        positions = np.concatenate([rng.uniform(-0.65, 0.55, (130, 3)), border])
    count = len(positions)
    names = ["affine", "velocity_gradient", "stress", "temperature", "slope"]
    extra = (attribute("temperature"), attribute("slope", 3))
    store = ParticleStore(names, cell_size=H, origin=origin, dtype=dtype, own_fields=extra)
    store.append({"position": positions + np.array(origin), "id": np.arange(count)})
    for name, shape in (("velocity", (3,)), ("affine", (3, 3)), ("stress", (6,)), ("temperature", ()), ("slope", (3,))):
        store.pack(name, rng.normal(size=(count, *shape)))
    for name in ("mass", "volume"):
        store.pack(name, rng.uniform(1, 2, count))
    store.sort()
    if drift:
        store.offset[: 3 * store.stride] += (rng.uniform(-drift, drift, 3 * store.stride) * store.unit).astype(store.offset.dtype)
        store.drift = 2.0 + drift
    grid = GridStore(store)
    grid.follow()
    grid.declare(*fields(shift))
    return store, grid


def spline(kernel: Kernel, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return N(x) and N'(x), x in cells (Stomakhin 2013)."""
    a, s = np.abs(x), np.sign(x)
    if kernel is Kernel.QUADRATIC:
        n = np.where(a < 0.5, 0.75 - a * a, np.where(a < 1.5, 0.5 * (1.5 - a) ** 2, 0.0))
        return n, np.where(a < 0.5, -2 * x, np.where(a < 1.5, -s * (1.5 - a), 0.0))
    n = np.where(a < 1, a**3 / 2 - a * a + 2 / 3, np.where(a < 2, (2 - a) ** 3 / 6, 0.0))
    return n, np.where(a < 1, s * (1.5 * a * a - 2 * a), np.where(a < 2, -s * (2 - a) ** 2 / 2, 0.0))


def stencil(store, grid, kernel, shift):
    """Return weights (particles, points), their gradients, the points and the particles, less the origin of the grid."""
    node, x = grid.positions(shift) - grid.origin, store.unpack("position") - grid.origin
    n, d = spline(kernel, (x[:, None] - node[None]) / H)
    slopes = [d[..., 0] * n[..., 1] * n[..., 2], n[..., 0] * d[..., 1] * n[..., 2], n[..., 0] * n[..., 1] * d[..., 2]]
    return n.prod(-1), np.stack(slopes, -1) / H, node, x


def rounding(dtype) -> float:
    """200 units in the last place of values around 1: sums of some 30 particles' 4^3 products."""
    return 200.0 * float(np.finfo(dtype).eps)


FLOW = Deposit("flow", "mass", rows_of("velocity"), lines_of("affine"))


@every_case
def test_weights_sum_to_one_and_linear_fields_come_back(dtype, kernel, shift):
    """q_i = a + B x_i gives a + B x_p with gradient and affine part B, on every shift: exact to rounding."""
    store, grid = make(dtype, shift)
    rng = np.random.default_rng(2)
    a, b, x = rng.normal(size=3), rng.normal(size=(3, 3)), store.unpack("position") - grid.origin
    grid.pack("flow_after", a + (grid.positions(shift) - grid.origin) @ b.T)
    gather(store, grid, kernel, Take("flow_after", rows_of("velocity"), lines_of("affine"), lines_of("velocity_gradient")))
    np.testing.assert_allclose(store.unpack("velocity"), a + x @ b.T, atol=rounding(dtype))
    for name in ("affine", "velocity_gradient"):
        np.testing.assert_allclose(store.unpack(name), np.broadcast_to(b, (store.count, 3, 3)), atol=rounding(dtype) / H)


@every_case
def test_scatter_is_the_sum_over_the_splines(dtype, kernel, shift):
    """m_i, m_i q_i with the affine part, and the force of a stress, from the definition."""
    store, grid = make(dtype, shift)
    force = Deposit("flow_after", force=Force("stress"))
    scatter(store, grid, kernel, FLOW, force)
    w, gradient, node, x = stencil(store, grid, kernel, shift)
    m, v, c = store.unpack("mass"), store.unpack("velocity"), store.unpack("affine")
    local = v[:, None] + np.einsum("pab,pnb->pna", c, node[None] - x[:, None])
    np.testing.assert_allclose(grid.unpack("flow_weight"), w.T @ m, atol=rounding(dtype))
    np.testing.assert_allclose(grid.unpack("flow"), np.einsum("pn,p,pna->na", w, m, local), atol=4 * rounding(dtype))
    xx, xy, xz, yy, yz, zz = store.unpack("stress").T
    tau = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    exact = -np.einsum("p,pab,pnb->na", store.unpack("volume"), tau, gradient)
    np.testing.assert_allclose(grid.unpack("flow_after"), exact, atol=4 * rounding(dtype) / H)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_forces_come_along_with_momentum_and_scalars_have_fluxes(kernel):
    """One deposit of momentum and force is their sum; a scalar's flux - sum V q . grad w is taken from three rows."""
    store, grid = make(np.float64, (0, 1, 0))
    scatter(store, grid, kernel, Deposit("flow", "mass", FLOW.values, FLOW.slopes, Force("stress", factor=-0.1)))
    together = grid.unpack("flow")
    grid.clear("flow")
    scatter(store, grid, kernel, FLOW, Deposit("flow", force=Force("stress", factor=-0.1)))
    np.testing.assert_allclose(together, grid.unpack("flow"), atol=1e-12)
    scatter(store, grid, kernel, Deposit("flow_after", force=Force("slope", ((0, 1, 2), None, None))))
    _, gradient, _, _ = stencil(store, grid, kernel, (0, 1, 0))
    exact = -np.einsum("p,pb,pnb->n", store.unpack("volume"), store.unpack("slope"), gradient)
    np.testing.assert_allclose(grid.unpack("flow_after")[:, 0], exact, atol=1e-11)
    assert not grid.unpack("flow_after")[:, 1:].any()


@every_case
def test_momentum_and_angular_momentum_are_kept(dtype, kernel, shift):
    """sum m_i = sum m_p, sum m_i v_i = sum m_p v_p, sum x_i x m_i v_i = sum x_p x m_p v_p + m_p D eps : C_p, there and back."""
    store, grid = make(dtype, shift)
    scatter(store, grid, kernel, FLOW)
    x, m = store.unpack("position") - grid.origin, store.unpack("mass").astype(float)
    allowed = 20 * rounding(dtype)

    def totals():
        v, c = store.unpack("velocity").astype(float), store.unpack("affine").astype(float)
        spin = np.stack([c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]], 1)
        return m @ v, m @ (np.cross(x, v) + INERTIA[kernel] * spin)

    momentum, angular = totals()
    p, weight = grid.unpack("flow").astype(float), grid.unpack("flow_weight").astype(float)
    node = grid.positions(shift) - grid.origin
    assert weight.sum() == pytest.approx(m.sum(), rel=rounding(dtype))
    np.testing.assert_allclose(p.sum(0), momentum, atol=allowed)
    np.testing.assert_allclose(np.cross(node, p).sum(0), angular, atol=allowed)
    grid.pack("flow_after", np.divide(p, weight[:, None], out=np.zeros_like(p), where=weight[:, None] > 0))
    gather(store, grid, kernel, Take("flow_after", rows_of("velocity"), lines_of("affine"), lines_of("velocity_gradient")))
    there_and_back = totals()
    np.testing.assert_allclose(there_and_back[0], momentum, atol=allowed)
    np.testing.assert_allclose(there_and_back[1], angular, atol=allowed)


@every_case
def test_gather_is_the_transpose_of_scatter(dtype, kernel, shift):
    """<scatter(q), g> = <q, gather(g)> for values, affine parts and forces."""
    store, grid = make(dtype, shift)
    scatter(store, grid, kernel, FLOW, Deposit("flow_after", force=Force("stress", factor=1.0)))
    g = np.random.default_rng(7).normal(size=(64 * grid.count, 3))
    m, v, c = (store.unpack(name).astype(float) for name in ("mass", "velocity", "affine"))
    volume, stress = store.unpack("volume").astype(float), store.unpack("stress").astype(float)
    left = (grid.unpack("flow") * g).sum(), (grid.unpack("flow_after") * g).sum()
    grid.pack("flow_after", g)
    gather(store, grid, kernel, Take("flow_after", rows_of("velocity"), lines_of("affine"), lines_of("velocity_gradient")))
    value, slope, gradient = (store.unpack(name).astype(float) for name in ("velocity", "affine", "velocity_gradient"))
    values = np.einsum("p,pa,pa->", m, v, value) + INERTIA[kernel] * np.einsum("p,pab,pab->", m, c, slope)
    symmetric = 0.5 * (gradient + gradient.transpose(0, 2, 1)).reshape(-1, 9)[:, [0, 1, 2, 4, 5, 8]]
    forces = np.einsum("p,pk,pk,k->", volume, stress, symmetric, [1, 2, 2, 1, 2, 1])
    scale = np.abs(grid.unpack("flow_after")).sum()
    assert abs(left[0] - values) < rounding(dtype) * scale
    assert abs(left[1] - forces) < rounding(dtype) * scale / H


@pytest.mark.parametrize("dtype, kernel", every_pair)
def test_one_pass_over_several_arrays_gives_what_several_passes_give(dtype, kernel):
    """Faces and nodes together, each with its own values, equal bit for bit to one call each."""
    store, grid = make(dtype)
    arrays = [f"face_{axis}" for axis in "xyz"]
    for name, shift in zip((*arrays, "heat"), (*FACES, NODES), strict=True):
        grid.declare(*fields(shift, name))
    deposits = [
        Deposit(name, "mass", (("velocity", i), None, None), (("affine", 3 * i), None, None)) for i, name in enumerate(arrays)
    ]
    deposits.append(Deposit("heat", "volume", ("temperature", None, None), ("slope", None, None)))
    together, takes = {}, []
    scatter(store, grid, kernel, *deposits)
    for deposit in deposits:
        together[deposit.array] = grid.array(deposit.array)[: 256 * grid.count].copy()
        assert np.abs(together[deposit.array]).max() > 0.0
        grid.clear(deposit.array)
        scatter(store, grid, kernel, deposit)
        assert np.array_equal(grid.array(deposit.array)[: 256 * grid.count], together[deposit.array])
        grid.pack(f"{deposit.array}_after", np.random.default_rng(1).normal(size=(64 * grid.count, 3)))
    for i, name in enumerate(arrays):
        row, line = (("velocity", i), None, None), (("velocity_gradient", 3 * i), None, None)
        takes.append(Take(f"{name}_after", row, gradient=line, before=name, flip=0.95))
    takes.append(Take("heat_after", ("temperature", None, None), before="heat", flip=0.95))
    start = {name: store.array(name).copy() for name in ("velocity", "temperature")}
    gather(store, grid, kernel, *takes)
    found = {name: store.array(name).copy() for name in ("velocity", "temperature", "velocity_gradient")}
    for name, values in start.items():
        store.array(name)[:] = values
    for take in takes:
        gather(store, grid, kernel, take)
    for name, values in found.items():
        assert np.array_equal(values, store.array(name))


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("shift", [NODES, *FACES])
def test_flip_of_a_scalar_adds_its_change(kernel, shift):
    """q_p <- a q_p + sum w (q_i' - a q_i), with and without its gradient; empty points count as zero before."""
    store, grid = make(np.float64, shift)
    scatter(store, grid, kernel, Deposit("flow", "mass", ("temperature", None, None), ("slope", None, None)))
    after = np.random.default_rng(4).normal(size=(64 * grid.count, 3))
    grid.pack("flow_after", after)
    mass, before = grid.unpack("flow_weight"), store.unpack("temperature")
    old = np.divide(grid.unpack("flow")[:, 0], mass, out=np.zeros_like(mass), where=mass > 1e-37)
    w, gradient, _, _ = stencil(store, grid, kernel, shift)
    expected = 0.9 * before + w @ (after[:, 0] - 0.9 * old)
    take = Take("flow_after", ("temperature", None, None), before="flow", flip=0.9)
    gather(store, grid, kernel, take)
    np.testing.assert_allclose(store.unpack("temperature"), expected, atol=1e-12)
    store.pack("temperature", before)
    gather(store, grid, kernel, Take(**{**vars(take), "gradient": ("slope", None, None)}))
    np.testing.assert_allclose(store.unpack("temperature"), expected, atol=1e-12)
    np.testing.assert_allclose(store.unpack("slope"), np.einsum("n,pnb->pb", after[:, 0], gradient), atol=1e-10)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("dtype, kernel", every_pair)
def test_one_and_two_threads_give_the_same_bits(dtype, kernel):
    """Colours of blocks fix the order of all sums."""
    found = []
    positions = np.random.default_rng(6).uniform(-1.3, 1.3, (4000, 3))
    for threads in (1, 2):
        numba.set_num_threads(threads)
        store, grid = make(dtype, (0, 1, 0), positions=positions)
        scatter(store, grid, kernel, FLOW)
        grid.pack("flow_after", grid.unpack("flow"))
        gather(store, grid, kernel, Take("flow_after", rows_of("velocity"), lines_of("affine"), lines_of("velocity_gradient")))
        found.append([grid.unpack("flow").tobytes(), *(store.unpack(name).tobytes() for name in ("velocity", "affine"))])
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype, kernel", every_pair)
def test_a_scene_far_from_the_origin_gives_the_same_bits(dtype, kernel):
    """Whole blocks of distance, a kilometre each way, change no bit."""
    found = []
    for away in (0.0, 1.0, -1.0):
        positions = np.random.default_rng(6).uniform(-0.5, 0.5, (300, 3))
        store, grid = make(dtype, (1, 0, 0), origin=(0.0, 0.0, 0.0), positions=positions)
        store.block_coord += np.array([2500, -2500, 2500], np.int32) * int(away)
        store.generation += 1
        grid.follow()
        scatter(store, grid, kernel, FLOW)
        found.append(grid.unpack("flow").tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("shift", SHIFTS)
def test_stencils_reach_as_far_as_tiles_do_and_no_further(kernel, shift):
    """With the largest drift that is allowed every weight lands on a point of the grid; beyond it the transfer is refused."""
    reach = {Kernel.QUADRATIC: 3.0, Kernel.CUBIC: 2.5}[kernel] - 0.5 * max(shift)
    store, grid = make(np.float64, shift, drift=reach - 2.0)
    scatter(store, grid, kernel, FLOW)
    w, _, _, _ = stencil(store, grid, kernel, shift)
    np.testing.assert_allclose(w.sum(1), 1.0, atol=1e-12)
    np.testing.assert_allclose(grid.unpack("flow_weight"), w.T @ store.unpack("mass"), atol=1e-12)
    store.drift = np.nextafter(reach, 4.0)
    with pytest.raises(MpmNodesError, match=r"transfer with 'flow'.*sort the particles first"):
        scatter(store, grid, kernel, FLOW)


def test_the_grid_follows_several_point_sets():
    """Points of another store, where no particle is, have blocks of their own under them; until then they are refused."""
    store, grid = make(np.float64, (1, 0, 0))
    samples = ParticleStore(["velocity"], cell_size=H, origin=grid.origin, dtype=np.float64)
    samples.append({"position": np.array([[2.05, 0.31, -0.77], [0.1, 0.1, 0.1]]) + grid.origin})
    samples.sort()
    with pytest.raises(MpmNodesError, match=r"grid\.follow"):
        gather(samples, grid, Kernel.CUBIC, Take("flow_after", rows_of("velocity")))
    grid.follow(samples)
    grid.pack("flow_after", grid.positions((1, 0, 0)) - grid.origin)
    gather(samples, grid, Kernel.CUBIC, Take("flow_after", rows_of("velocity")))
    np.testing.assert_allclose(samples.unpack("velocity"), samples.unpack("position") - grid.origin, atol=1e-12)
    samples.pack("mass", np.array([2.0, 3.0]))
    scatter(samples, grid, Kernel.CUBIC, Deposit("flow", "mass"))
    scatter(store, grid, Kernel.CUBIC, Deposit("flow", "mass"))
    assert grid.unpack("flow_weight").sum() == pytest.approx(5.0 + store.unpack("mass").sum(), rel=1e-12)
    elsewhere = ParticleStore([], cell_size=2 * H)
    with pytest.raises(MpmNodesError, match="cannot share a grid"):
        grid.follow(elsewhere)


@pytest.mark.parametrize(
    "field, message",
    [
        (GridField("mass", NODES, 1, "g", "Another.", "other", 3), "'mass' is declared twice"),
        (GridField("heat", NODES, 1, "J", "Heat.", "momentum", 2), "values 2 to 2 of array 'momentum' are taken"),
        (GridField("heat", NODES, 2, "J", "Heat.", "heat", 3), "values 3 to 4 of array 'heat' are taken or do not exist"),
        (GridField("heat", (1, 0, 0), 1, "J", "Heat.", "force", 3), r"shift \(1, 0, 0\) given, array 'force' lies at \(0, 0, 0\)"),
    ],
)
def test_fields_that_cannot_be_are_refused(field, message):
    """One name is one field, one value of an array belongs to one field, all fields of an array share their points."""
    _, grid = make(np.float32)
    with pytest.raises(MpmNodesError, match=message):
        grid.declare(field)


def test_unknown_arrays_are_named():
    """A transfer with an array that was never declared says which there are."""
    store, grid = make(np.float32)
    with pytest.raises(MpmNodesError, match="grid array 'faces' does not exist"):
        scatter(store, grid, Kernel.CUBIC, Deposit("faces", "mass"))
    with pytest.raises(MpmNodesError, match=r"'momentum' \(0, 0, 0\) does not lie where 'flow_after' \(1, 1, 0\) does"):
        other, staggered = make(np.float32, (1, 1, 0))
        gather(other, staggered, Kernel.QUADRATIC, Take("flow_after", rows_of("velocity"), before="momentum"))
