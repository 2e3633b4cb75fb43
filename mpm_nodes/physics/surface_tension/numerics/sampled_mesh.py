"""The closed mesh that samples of the surface lie on, around particles that a solve published.

It is made as `sample_surface` makes it in a substep: the union of spheres on the nodes of the grid, closed marching cubes, drawn in
to where the matter ends, for each liquid of a pair by itself. Walls and planes of symmetry do not cut it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Particles, Vec3
from mpm_nodes.kernels.cells.bins import bins_of, places_of, rows_of
from mpm_nodes.physics.surface_tension.kernels.edge_cuts import NO_MIRRORS, cut_edges, shares_at
from mpm_nodes.physics.surface_tension.kernels.sampling import triangles_of
from mpm_nodes.physics.surface_tension.kernels.union import union_of_spheres
from mpm_nodes.physics.surface_tension.materials import have_surfaces, pairs_of
from mpm_nodes.physics.surface_tension.numerics.samples import drawn_in_by
from mpm_nodes.solver.state import ParticleStore

__all__ = ["SampledMesh", "sampled_meshes", "welded"]


class SampledMesh(NamedTuple):
    """A closed mesh of triangles around one body of matter.

    Attributes:
        points: Shape (n, 3) [m].
        corners: Points of each triangle, counter-clockwise seen from outside, shape (triangles, 3), int64.
        group: Of `materials.LiquidPairs`, 0 where there are no pairs.
        shares: Of space that matter of each group fills at the points, shape (groups, n); none where there are no pairs.
        inside: Which particles it is around, shape (particles,), bool.
    """

    points: np.ndarray
    corners: np.ndarray
    group: int
    shares: np.ndarray
    inside: np.ndarray


def sampled_meshes(particles: Particles, radius: float, shift: bool, origin: Vec3) -> Iterator[SampledMesh]:
    """Yield the surface of the matter, or those of each liquid that a pair names and of the rest, where they pull.

    Args:
        particles: Published particles; the grid's cells are two spacings wide.
        radius: Of the spheres [cells].
        shift: Whether the surface is drawn in to where the matter ends.
        origin: A node of the grid [m].
    """
    if not len(particles):
        return
    h = 2.0 * particles.spacing
    store = ParticleStore((), cell_size=h, origin=origin, materials=len(particles.materials))
    count = len(particles)
    material = np.asarray(particles["material"]) if "material" in particles else np.zeros(count, np.int32)
    volume = np.asarray(particles["volume"]) if "volume" in particles else np.full(count, particles.spacing**3)
    store.append({"position": particles["position"], "volume": volume, "material": material, "id": np.arange(count)})
    store.sort()
    places = places_of(store.block_coord, store.block_body)
    material = store.array("material")
    bins = bins_of(store.offset, store.stride, store.shift, store.block_start, material, places)
    share = store.array("volume") * (1.0 / h**3)
    pairs = pairs_of(particles.materials)
    groups = [bins] if pairs is None else [rows_of(bins, pairs.group == each) for each in range(len(pairs.tension))]
    tense = have_surfaces(particles.materials, pairs)
    for group, of in enumerate(groups):
        if not len(of.index) or (pairs is not None and not tense[pairs.group == group].any()):
            continue
        inside, phi = union_of_spheres(of, places, 2.0 * radius, 0)
        cuts = cut_edges(of, places, (inside, phi), share, drawn_in_by(radius, shift), NO_MIRRORS, 0)
        vertices, corners, start = welded(places.coord, *triangles_of(places, inside, cuts))
        first = np.repeat(places.coord, np.diff(start), axis=0)
        points = store.origin + h * (4.0 * first + 1.5 + 0.5 * vertices)
        if pairs is None:
            yield SampledMesh(points, corners, group, np.empty((0, len(points))), np.ones(count, bool))
            continue
        shares = np.array([shares_at(each, places, start, vertices, share, NO_MIRRORS, 0) for each in groups])
        mine = np.zeros(count, bool)
        mine[store.rows("id")[0, of.index]] = True
        yield SampledMesh(points, corners, group, shares, mine)


def welded(
    coord: np.ndarray, place: np.ndarray, corners: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vertices from the low corner of their place [r], those of each triangle, and where those of each place begin.

    Args:
        coord: Of the places, shape (places, 3).
        place, corners, edges: As in `sampling.Triangles`: corners on one edge of the grid are one vertex.
    """
    nodes = (edges[..., :3] + 4 * coord[place].astype(np.int64)[:, None, :]).reshape(-1, 3)
    low = nodes.min(axis=0, initial=0)
    size = nodes.max(axis=0, initial=0) - low + 1
    named = np.ravel_multi_index((*(nodes - low).T, edges[..., 3].reshape(-1)), (*size, 3))
    _, first, which = np.unique(named, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they come, place by place
    place_in_order = np.empty_like(order)
    place_in_order[order] = np.arange(len(order))
    of = place[first[order] // 3]
    start = np.searchsorted(of, np.arange(len(coord) + 1))
    return corners.reshape(-1, 3)[first[order]], place_in_order[which.reshape(-1, 3)], start
