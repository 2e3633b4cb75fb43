"""Values on the surface of meshes carried inward: every cube inside takes those of the nearest place on the surface."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError

__all__ = ["carried_inward"]

MOST_CUBES = 50_000_000
"""Cubes in the box around meshes that are looked through."""
_AT_ONCE = 1_000_000
_AROUND = np.array([(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if (i, j, k) != (0, 0, 0)])


def carried_inward(
    where: str, places: np.ndarray, values: np.ndarray, mesh: tuple[np.ndarray, np.ndarray], edge: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values with one more for each cube inside a mesh that holds none: those of the nearest of them.

    The nearest one is handed on from cube to cube, as in Danielsson, "Euclidean distance mapping" (1980). A mesh without an inside
    adds nothing.

    Args:
        where: Node that messages name.
        places: On the surface [m], no farther than half a cube apart, shape (n, 3).
        values: There, shape (n,).
        mesh: Points [m], shape (p, 3), and triangles, shape (m, 3).
        edge: Edge of a cube [m].

    Raises:
        MpmNodesError: The mesh is too large for such cubes.
    """
    if not len(places):
        return places, values
    index = np.floor(places / edge).astype(np.int64)
    low = index.min(axis=0) - 1
    shape = index.max(axis=0) + 2 - low
    if shape.astype(float).prod() > MOST_CUBES:
        raise MpmNodesError(f"{where}.path: the meshes are too large for these cells; raise settings.cell_size")
    known, inverse, count = np.unique(np.ravel_multi_index((index - low).T, shape), return_inverse=True, return_counts=True)
    means = [np.bincount(inverse.reshape(-1), each, len(known)) / count for each in (*places.T, values)]
    nearest = np.full(int(shape.prod()), -1, np.int32)  # the sample that counts in each cube
    nearest[known] = np.arange(len(known), dtype=np.int32)
    empty = _inside(mesh, nearest, (low, shape, edge))
    if not empty.any():
        return places, values
    at = np.stack(means[:3], axis=1)
    steps = _AROUND @ [shape[1] * shape[2], shape[2], 1]
    front = known
    while len(front):  # none of these cubes lies at the border of the box
        ahead = (front[:, None] + steps).reshape(-1)
        source = np.repeat(nearest[front], len(steps))
        ahead, source = ahead[empty[ahead]], source[empty[ahead]]
        own = (np.stack(np.unravel_index(ahead, shape), axis=1) + low + 0.5) * edge
        far = np.square(own - at[source]).sum(axis=1)
        held = nearest[ahead]
        nearer = (held < 0) | (far < np.square(own - at[held]).sum(axis=1))
        ahead, source, far = ahead[nearer], source[nearer], far[nearer]
        order = np.lexsort((source, far, ahead))
        front, first = np.unique(ahead[order], return_index=True)
        nearest[front] = source[order][first]
    added = np.flatnonzero(empty & (nearest >= 0))
    middles = (np.stack(np.unravel_index(added, shape), axis=1) + low + 0.5) * edge
    return np.concatenate([places, middles]), np.concatenate([values, means[3][nearest[added]]])


def _inside(mesh: tuple[np.ndarray, np.ndarray], nearest: np.ndarray, box: tuple[np.ndarray, np.ndarray, float]) -> np.ndarray:
    """Tell which cubes of a box without a sample lie inside a mesh, shape (cubes,)."""
    from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh
    from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

    points, triangles = mesh
    low, shape, edge = box
    found = np.zeros(len(nearest), bool)
    try:
        solid = solid_mesh(points, triangles)
    except InputError:  # a sheet
        return found
    tree = winding_tree(solid.extended(points), solid.triangles)
    for begin in range(0, len(nearest), _AT_ONCE):
        cubes = begin + np.flatnonzero(nearest[begin : begin + _AT_ONCE] < 0)
        middles = (np.stack(np.unravel_index(cubes, shape), axis=1) + low + 0.5) * edge
        found[cubes] = winding_numbers(tree, middles) > 0.5
    return found
