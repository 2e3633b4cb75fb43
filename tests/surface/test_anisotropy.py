"""Sheets and threads hold together where they are drawn out; bulk, drops and pairs keep the surfaces that spheres give them."""

import numba
import numpy as np
import pytest
from enclosed_volume import enclosed

from mpm_nodes.data import Mesh, Particles
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.kernels.surfaces.anisotropy import kernels_of
from mpm_nodes.kernels.surfaces.spheres import REACH
from mpm_nodes.kernels.surfaces.splat import bin_particles
from mpm_nodes.nodes.surface import surface_particles

SPACING, SIDE = 0.01, 24
AXES = np.linalg.qr(np.array([[0.9, 0.3, 0.25], [-0.35, 0.8, 0.4], [0.1, -0.5, 0.85]]))[0].T
"""Along and across what lies askew, in rows."""


def layer(stretch: float) -> np.ndarray:
    """One layer of particles, `stretch` times as long and wide as it was seeded."""
    line = (np.arange(SIDE) - 0.5 * (SIDE - 1)) * stretch
    flat = np.stack(np.meshgrid(line, line, [0.0], indexing="ij"), -1).reshape(-1, 3)
    flat += np.random.default_rng(7).uniform(-0.2, 0.2, flat.shape) * [stretch, stretch, 0.2]
    return SPACING * flat @ AXES


def row(stretch: float) -> np.ndarray:
    """One row of particles, `stretch` times as long as it was seeded."""
    line = np.zeros((2 * SIDE, 3))
    line[:, 0] = (np.arange(2 * SIDE) - SIDE) * stretch
    return SPACING * (line + np.random.default_rng(8).uniform(-0.15, 0.15, line.shape)) @ AXES


def ball(count: int) -> np.ndarray:
    """The points of a jittered lattice nearest to the middle."""
    axis = np.arange(-15.0, 16.0)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    nearest = lattice[np.argsort((lattice**2).sum(axis=1), kind="stable")[:count]]
    return SPACING * (nearest + np.random.default_rng(3).uniform(-0.25, 0.25, nearest.shape))


def particles_at(position: np.ndarray) -> Particles:
    return Particles({"position": position, "velocity": np.zeros(position.shape, np.float32)}, spacing=SPACING)


def pieces_and_holes(mesh: Mesh) -> tuple[int, int]:
    """Pieces of a closed mesh, and its holes: pieces less half of V - E + F."""
    starts = np.cumsum(mesh.counts) - mesh.counts
    four = starts[mesh.counts == 4]
    corners = mesh.indices[np.concatenate([starts[:, None] + [0, 1, 2], four[:, None] + [0, 2, 3]])]
    edges = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), axis=1), axis=0)
    label = np.arange(len(mesh.points))
    while (label[edges[:, 0]] != label[edges[:, 1]]).any():
        least = label[edges].min(axis=1)
        np.minimum.at(label, edges[:, 0], least)
        np.minimum.at(label, edges[:, 1], least)
    used = np.unique(corners)
    pieces = len(np.unique(label[used]))
    return pieces, pieces - (len(used) - len(edges) + len(corners)) // 2


def stretched(position: np.ndarray) -> int:
    reach = REACH * SPACING
    return len(kernels_of(bin_particles(position, reach), reach).stretched.inverses)


@pytest.mark.parametrize(("shape", "voxel"), [(layer(1.4), 0.6), (layer(1.8), 1.0), (layer(2.2), 0.6), (row(1.5), 0.6)])
def test_what_is_drawn_out_stays_in_one_piece(shape, voxel):
    """Layers drawn out up to 2.2 times their length and width, a row to 1.5 times: one piece, no holes. Spheres tear them."""
    particles = particles_at(shape)
    mesh = surface_particles(particles, voxel_size=voxel * SPACING).mesh
    assert pieces_and_holes(mesh) == (1, 0)
    whole = len(shape) * SPACING**3
    assert enclosed(mesh) == pytest.approx(whole, rel=1e-3), "thinner than a voxel"
    spheres = surface_particles(particles, voxel_size=voxel * SPACING, anisotropy=False).mesh
    assert pieces_and_holes(spheres) != (1, 0) or enclosed(spheres) < 0.5 * whole


@pytest.mark.parametrize(
    ("shape", "most"), [(layer(1.0), 0.01), (layer(1.6), 0.02), (layer(2.2), 0.02), (row(1.0), 0.05), (row(2.0), 0.05)]
)
def test_rims_and_ends_hold_their_particles(shape, most):
    """Outside are at most one in fifty particles of a layer, whose outermost are one in six, and one at each end of a row."""
    mesh = surface_particles(particles_at(shape), voxel_size=0.6 * SPACING).mesh
    assert np.mean(windings(shape, mesh) < 0.5) <= most


def windings(places: np.ndarray, mesh: Mesh) -> np.ndarray:
    """How often a mesh winds around places: 1 inside, 0 outside (van Oosterom and Strackee 1983)."""
    corners = np.asarray(mesh.points, float)[triangulate(mesh.counts, mesh.indices)[0]]
    found = np.empty(len(places))
    for n, place in enumerate(places):
        a, b, c = (corners[:, k] - place for k in range(3))
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        over = np.einsum("ij,ij->i", a, np.cross(b, c))
        under = la * lb * lc + (a * b).sum(axis=1) * lc + (b * c).sum(axis=1) * la + (c * a).sum(axis=1) * lb
        found[n] = np.arctan2(over, under).sum() / (2.0 * np.pi)
    return found


def test_thick_matter_keeps_its_surface():
    """A ball has no ellipsoids, and the same bits with and without them."""
    position = ball(6000)
    assert stretched(position) == 0
    found = [surface_particles(particles_at(position), anisotropy=on).surface.values.tobytes() for on in (True, False)]
    assert found[0] == found[1]


def test_drops_and_pairs_stay_round():
    """Single particles, pairs four spacings apart, and drops of 14 particles have spheres; a layer of particles has not."""
    for position in (np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0], [4.0 * SPACING, 0.0, 0.0]]), ball(14)):
        assert stretched(position) == 0
    assert stretched(layer(1.0)) > 0.9 * SIDE**2


def test_ellipsoids_lie_along_the_sheet_and_keep_the_volume():
    """Inside of a layer the short axis is the layer's normal, within 10 degrees, a quarter of the long ones; the volume is R^3."""
    reach = REACH * SPACING
    thin = kernels_of(bin_particles(layer(1.6), reach), reach).stretched
    inside = (np.abs(thin.particles.positions @ AXES.T)[:, :2] < 0.6 * 0.5 * SIDE * 1.6 * SPACING).all(axis=1)
    lengths, directions = np.linalg.eigh(thin.inverses[inside].astype(float))
    assert (np.abs(directions[:, :, 2] @ AXES[2]) > np.cos(np.radians(10.0))).all()
    assert lengths[:, 2] / lengths[:, 0] == pytest.approx(4.0, rel=1e-3)
    assert 1.0 / lengths.prod(axis=1) == pytest.approx(reach**3, rel=1e-3)


def test_same_bytes_on_one_thread():
    """Ellipsoids do not depend on the number of threads."""
    particles = particles_at(layer(1.6))
    both = surface_particles(particles, anisotropy=True).surface
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    alone = surface_particles(particles, anisotropy=True).surface
    numba.set_num_threads(threads)
    assert both.values.tobytes() == alone.values.tobytes()
