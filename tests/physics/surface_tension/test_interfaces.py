"""The surface of the matter: marching cubes close every mesh, samples hang on nothing but places, derivatives run everywhere."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.cells.bins import bins_of, places_of
from mpm_nodes.physics.surface_tension.kernels.cubes import COUNTS, MOST, STARTS, TRIANGLES, _edge, _faces
from mpm_nodes.physics.surface_tension.kernels.edge_cuts import NO_MIRRORS, cut_edges
from mpm_nodes.physics.surface_tension.kernels.energy import second_derivative, surface_gradient
from mpm_nodes.physics.surface_tension.kernels.sampling import Spread, sample_union
from mpm_nodes.physics.surface_tension.kernels.union import union_of_spheres
from mpm_nodes.physics.surface_tension.problems.surface_tension import samples_of
from mpm_nodes.solver.state import ParticleStore
from tests.kernels.cuda.traced import needs_compiler, traced


def segments(case: int, face: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return the directed segments that a case's triangles leave on a face, by edges."""
    sides = [(int(t[n]), int(t[(n + 1) % 3])) for t in TRIANGLES[case, : COUNTS[case]] for n in range(3)]
    open_sides = {side for side in sides if side[::-1] not in sides}
    mine = {_edge(face[n - 1], face[n]) for n in range(4)}
    return {side for side in open_sides if set(side) <= mine}


def test_neighbouring_cells_meet_edge_to_edge():
    """On each face the triangles of a case end in segments that hang on the face's own corners alone, reversed from behind."""
    assert COUNTS.max() == MOST == 5 and not COUNTS[0] and not COUNTS[255]
    faces = _faces()
    for axis in range(3):
        high, low, bit = faces[2 * axis], faces[2 * axis + 1], (4, 2, 1)[axis]
        found: dict[tuple[bool, ...], set] = {}
        for case in range(256):
            signs = tuple(bool(case >> corner & 1) for corner in high)
            mine = segments(case, high)
            assert found.setdefault(signs, mine) == mine
        moved = {_edge(high[n - 1], high[n]): _edge(high[n - 1] ^ bit, high[n] ^ bit) for n in range(4)}
        for case in range(256):
            signs = tuple(bool(case >> (corner ^ bit) & 1) for corner in high)
            assert segments(case, low) == {(moved[b], moved[a]) for a, b in found[signs]}


def test_every_cut_edge_is_a_corner_of_a_triangle():
    """The edges of a case's triangles are those whose ends have different signs."""
    for case in range(256):
        cut = {e for e in range(12) if (case >> int(STARTS[e]) & 1) != (case >> (int(STARTS[e]) | (4 >> (e >> 2))) & 1)}
        assert set(TRIANGLES[case, : COUNTS[case]].ravel().tolist()) == cut


COARSE = Spread(1.0, seed=7)


def surface(
    position: np.ndarray, order: np.ndarray | None = None, *, depth: float = 1.234, spread: Spread = COARSE, dtype=np.float32
):
    """Return place, area and normal of every sample, and the position of its owner; `depth` 0 leaves the union's own surface."""
    store = ParticleStore(["velocity"], cell_size=0.1, dtype=dtype)
    store.append({"position": position if order is None else position[order]})
    store.sort()
    places = places_of(store.block_coord, store.block_body)
    bins = bins_of(store.offset, store.stride, store.shift, store.block_start, store.array("material"), places, dtype)
    inside, phi = union_of_spheres(bins, places, 1.734, 0)
    everywhere = np.full(3, -(1 << 40), np.int64), np.full(3, 1 << 40, np.int64)
    cuts = cut_edges(bins, places, (inside, phi), np.full(store.count, 0.125), depth, NO_MIRRORS, 0)
    points = sample_union(bins, places, inside, cuts, everywhere, spread, 0)
    return np.column_stack([points.position, points.normal, points.area, store.unpack("position")[points.owner]])


def test_samples_hang_on_no_order_and_no_number_of_threads():
    """The same particles in another order, or with one thread, have the same samples, bit for bit, and the same owners."""
    position = np.random.default_rng(2).uniform(-0.4, 0.4, (700, 3))
    whole = surface(position)
    assert len(whole) > 500
    assert np.array_equal(whole, surface(position, np.random.default_rng(3).permutation(700)))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(whole, surface(position))
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("spread", [COARSE, Spread(1.0, even=True)], ids=["random", "even"])
@pytest.mark.parametrize("depth", [0.0, 1.234])
def test_in_double_precision_samples_move_as_little_as_particles_do(depth, spread):
    """Particles that lie 1e-13 m elsewhere: no sample lies a thousandth of the steps of single precision elsewhere.

    A first bar of 1e-11 was missed (3e-11): where spheres cut each other at small angles, a cut moves more than they do.
    """
    random = np.random.default_rng(4)
    position = random.uniform(-0.4, 0.4, (700, 3))
    found = surface(position, depth=depth, spread=spread, dtype=np.float64)
    moved = surface(position + random.uniform(-1e-13, 1e-13, (700, 3)), depth=depth, spread=spread, dtype=np.float64)
    assert found.shape == moved.shape and 0.0 < np.abs(found[:, :3] - moved[:, :3]).max() < 5e-10


def test_even_samples_sum_linear_functions_exactly():
    """Area and first moments hang on the surface alone, not on how many samples it has; with random samples moments do."""
    position = np.random.default_rng(5).uniform(0.0, 0.5, (300, 3))
    coarse, fine, random = (surface(position, spread=each) for each in (COARSE, Spread(0.1), Spread(1.0, False, 7)))
    assert len(fine) > 3 * len(coarse)
    for each in (fine, random):
        assert each[:, 6].sum() == pytest.approx(coarse[:, 6].sum(), rel=1e-12)
    moments = [each[:, 6] @ each[:, :3] for each in (coarse, fine, random)]
    np.testing.assert_allclose(moments[1], moments[0], rtol=1e-12)
    assert np.abs(moments[2] / moments[0] - 1.0).max() > 1e-6


@pytest.mark.parametrize(("count", "size"), [(200, 0.5), (60, 2.0), (3000, 0.1)], ids=["cloud", "lone particles", "crowd"])
def test_owners_are_the_nearest_particles(count, size):
    """Of all particles none is nearer to a sample than its owner, where a cell sees a few, one, or more than there is room for."""
    position = np.random.default_rng(6).uniform(0.0, size, (count, 3))
    at, _, owner = samples_of(position)
    assert len(at) > 100
    nearest = np.array([np.linalg.norm(position - each, axis=1).min() for each in at])
    np.testing.assert_allclose(np.linalg.norm(at - owner, axis=1), nearest, rtol=0.0, atol=1e-8)


def test_a_ball_has_the_area_of_its_spheres_or_of_its_matter():
    """A lattice ball of eight cells: 4 pi (R + 0.617)^2 cells, and up to 4 % for the bumps between spheres.

    Drawn in it is the ball's own area, with as much for bumps as the spheres are allowed (1.00 to 1.06).
    """
    axis = (np.arange(-16, 16) + 0.5) * 0.05
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    position = position[(position**2).sum(axis=1) < 0.8**2]
    area = surface(position, depth=0.0)[:, 6].sum() * 0.05**2
    exact = 4.0 * np.pi * (0.8 + 0.617 * 0.1) ** 2
    assert exact < area < 1.04 * exact
    area = surface(position)[:, 6].sum() * 0.05**2
    assert 1.0 < area / (4.0 * np.pi * 0.8**2) < 1.06


@needs_compiler
@pytest.mark.parametrize("whole", [False, True])
def test_the_energy_traces_for_gpus(whole, tmp_path):
    """Gradient and Hessian of a sample in C++ for a GPU, in single precision, agree with those of the CPU."""
    random = np.random.default_rng(0)
    n, A, Q = random.normal(size=(6, 3)), random.normal(0.0, 0.1, (6, 9)), random.normal(size=(6, 9))
    n /= np.linalg.norm(n, axis=1)[:, None]

    def point(n, A, Q, k, whole):
        return surface_gradient(n, A), second_derivative(n, A, Q, k, whole)

    found = traced(tmp_path, point, n, A, Q, np.float32(0.7), whole)
    expected = point(*(tuple(each.astype(np.float32).astype(float).T) for each in (n, A, Q)), 0.7, whole)
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-5)
