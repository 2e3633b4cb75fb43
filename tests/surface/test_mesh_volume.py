"""The mesh holds the volume of its particles where no grid can show it: drawn-out sheets and threads, drops, packed matter."""

import numba
import numpy as np
import pytest
from enclosed_volume import enclosed

from mpm_nodes.data import Material, Mesh, Particles
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree
from mpm_nodes.nodes.surface import surface_particles

SPACING, SIDE = 0.01, 24
AXES = np.linalg.qr(np.array([[0.9, 0.3, 0.25], [-0.35, 0.8, 0.4], [0.1, -0.5, 0.85]]))[0].T
"""Along and across what lies askew, in rows."""


def lattice(counts: tuple[int, int, int], stretch: tuple[float, float, float]) -> np.ndarray:
    """A jittered block of particles, askew, drawn out along each of its axes."""
    rows = [np.arange(count) - 0.5 * (count - 1) for count in counts]
    places = np.stack(np.meshgrid(*rows, indexing="ij"), -1).reshape(-1, 3)
    return SPACING * ((places + np.random.default_rng(7).uniform(-0.15, 0.15, places.shape)) * stretch) @ AXES


def spray() -> np.ndarray:
    """Single particles, at least seven spacings from each other."""
    places = np.stack(np.meshgrid(*[np.arange(6) * 9.0] * 3, indexing="ij"), -1).reshape(-1, 3)
    return SPACING * (places + np.random.default_rng(4).uniform(-1.0, 1.0, places.shape))


SHAPES = {
    "layer": lattice((SIDE, SIDE, 1), (1.6, 1.6, 1.0)),
    "row": lattice((2 * SIDE, 1, 1), (1.5, 1.0, 1.0)),
    "block, loose": lattice((16, 16, 16), (1.06, 1.06, 1.06)),
    "block, packed": lattice((16, 16, 16), (0.9, 0.9, 0.9)),
    "block, packed to 1.6 times its density": lattice((20, 20, 20), (0.85, 0.85, 0.85)),
    "spray": spray(),
}


def skin_of(position: np.ndarray, **knobs: object) -> Mesh:
    return surface_particles(Particles({"position": position}, spacing=SPACING), **knobs).mesh


def windings(mesh: Mesh, places: np.ndarray) -> np.ndarray:
    return winding_numbers(winding_tree(mesh.points, triangulate(mesh.counts, mesh.indices)[0]), places)


@pytest.mark.parametrize("voxel", [0.6, 1.0])
@pytest.mark.parametrize("name", SHAPES)
def test_mesh_holds_the_volume(name, voxel):
    """Within 2 %, with voxels of 0.6 and 1 spacing. A level set alone was 13 to 100 % off for the layer, the row and the
    spray; points that went half a spacing outward at most were 11 % off for the last block."""
    position = SHAPES[name]
    assert enclosed(skin_of(position, voxel_size=voxel * SPACING)) == pytest.approx(len(position) * SPACING**3, rel=0.02)


def test_what_is_pressed_beyond_the_limits_counts():
    """A third of a block at 0.05 of its volume: the mesh holds what the particles tell, and says so (2 %; was 10 %)."""
    position = SHAPES["block, packed"]
    change = np.where(np.arange(len(position)) % 3 == 0, 0.05, 1.0) - 1.0
    cream = Material("herschel_bulkley", {}, 100.0)
    mesh = surface_particles(Particles({"position": position, "volume_change": change}, (cream,), SPACING)).mesh
    own = float((1.0 + change).sum()) * SPACING**3
    assert mesh.matter_volume == pytest.approx(own, rel=1e-6) and enclosed(mesh) == pytest.approx(own, rel=0.02)


@pytest.mark.parametrize("voxel", [0.6, 1.0])
def test_sides_of_a_thin_layer_stay_apart(voxel):
    """A layer of 0.4 of its thickness: fewer than one place in a hundred of its inside is wound around the wrong way, or twice."""
    position = SHAPES["layer"]
    mesh = skin_of(position, voxel_size=voxel * SPACING)
    places = position[:, None, :] + SPACING * np.linspace(-1.2, 1.2, 13)[None, :, None] * AXES[2]
    found = windings(mesh, places.reshape(-1, 3))
    inside = (found > 0.5) & (found < 1.5)
    assert inside.any() and ((found < -0.5) | (found > 1.5)).sum() < 0.01 * inside.sum()


def test_every_single_particle_is_a_round_bead():
    """With voxels of 0.4 spacings each is inside, and all points lie 0.62 spacings from one, within a quarter."""
    position = spray()
    mesh = skin_of(position, voxel_size=0.4 * SPACING)
    assert (windings(mesh, position) > 0.5).all()
    radius = np.linalg.norm(mesh.points[:, None, :] - position[None], axis=2).min(axis=1) / SPACING
    assert np.abs(radius / 0.62 - 1.0).max() < 0.25


def test_normals_point_outward_on_a_thin_layer():
    """Along the normal of the side that a point lies on, within 45 degrees, away from the rim."""
    mesh = skin_of(SHAPES["layer"])
    local = mesh.points @ AXES.T
    flat = (np.abs(local[:, :2]) < 0.5 * SIDE * SPACING).all(axis=1)
    assert (mesh.normals[flat] @ AXES[2] * np.sign(local[flat, 2])).min() > np.cos(np.radians(45.0))


def test_mesh_does_not_depend_on_threads():
    """The same bytes on one thread."""
    both = skin_of(SHAPES["layer"]).points
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    alone = skin_of(SHAPES["layer"]).points
    numba.set_num_threads(threads)
    assert both.tobytes() == alone.tobytes()
