"""A closed mesh cut into pieces along tears: each piece closed by inner faces, which two pieces share.

The cuts are made at rest. Around every place the particles near it vote by weights that fall with their distance; a piece ends
where its votes are half of all. One piece after the other is cut out of what is left, so that nothing is lost or counted twice.
The surfaces come from, and are cut by, Manifold (github.com/elalish/manifold), whose results are closed by construction.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.mesh_repair import SolidMesh

__all__ = ["INNER", "CutMesh", "Voters", "cut_along", "refuse_without_manifold"]

INNER = "inner"
"""Attribute of corners: 1 on faces that a cut made, 0 on those of the mesh."""
VOTERS = 32
"""Particles near a place that say which piece it is of."""
MARGIN = 3.29
"""How far beyond the mesh cuts reach, in spacings of the particles. With a multiple of a quarter the lattice of the cuts would lie
on faces that are so many spacings apart, and leave triangles without an area there."""
MISSING = 'deform_mesh: Manifold, which cuts meshes into pieces, is not installed: pip install "mpm-nodes[pieces]"'


class CutMesh(NamedTuple):
    """Pieces of a mesh at rest, one after the other.

    Attributes:
        points: [m], shape (p, 3).
        triangles: Shape (t, 3).
        values: What the corners of the mesh have, shape (t, 3, k); 0 on inner faces.
        inner: Whether a triangle is an inner face, shape (t,).
        piece: Number of the piece of each point, shape (p,).
    """

    points: np.ndarray
    triangles: np.ndarray
    values: np.ndarray
    inner: np.ndarray
    piece: np.ndarray


class Voters(NamedTuple):
    """Particles that say which piece a place is of.

    Attributes:
        rest: Where they are at rest [m], shape (n, 3).
        piece: Shape (n,).
        spacing: Distance of neighbours [m].
    """

    rest: np.ndarray
    piece: np.ndarray
    spacing: float


def refuse_without_manifold() -> None:
    """Raise `MpmNodesError` where Manifold is not installed."""
    if importlib.util.find_spec("manifold3d") is None:
        raise MpmNodesError(MISSING)


def cut_along(solid: SolidMesh, points: np.ndarray, values: np.ndarray, voters: Voters, name: str) -> CutMesh:
    """Cut a closed mesh between the pieces of particles.

    Args:
        solid: The mesh.
        points: Its own points at rest [m], shape (p, 3).
        values: What the corners of its triangles have, shape (t, 3, k).
        voters: Particles with two pieces or more.
        name: What messages call the mesh.

    Raises:
        MpmNodesError: Manifold is not installed.
        InputError: The mesh is not closed, and could not be repaired.
    """
    refuse_without_manifold()
    whole = _manifold_of(solid, points, values, name)
    outer = whole.original_id()
    numbers = np.unique(voters.piece)
    low, high = points.min(axis=0) - MARGIN * voters.spacing, points.max(axis=0) + MARGIN * voters.spacing
    votes = _Votes(voters, low, high)
    parts: list[tuple[int, Any]] = []
    left = whole
    for number in numbers[:0:-1]:  # those that were born last first: what is left keeps its older faces
        cutter = votes.surface_of(int(number), low, high)
        taken, left = left.split(cutter)
        parts.append((int(number), taken))
    parts.append((int(numbers[0]), left))
    return _joined(parts[::-1], outer)


def _manifold_of(solid: SolidMesh, points: np.ndarray, values: np.ndarray, name: str) -> Any:
    """Return the mesh as Manifold holds it: corners with the same point and values are one vertex."""
    import manifold3d

    corners = solid.triangles.ravel()
    rows = np.concatenate([corners[:, None].astype(float), values.reshape(len(corners), -1)], axis=1)
    vertices, which = np.unique(rows, axis=0, return_inverse=True)
    owner = vertices[:, 0].astype(np.int64)
    _, first = np.unique(owner, return_index=True)
    one = first[np.searchsorted(owner[first], owner)]
    again = np.flatnonzero(one != np.arange(len(owner)))
    mesh = manifold3d.Mesh64(
        np.ascontiguousarray(np.concatenate([solid.extended(points)[owner], vertices[:, 1:]], axis=1)),
        np.ascontiguousarray(which.reshape(-1, 3).astype(np.uint64)),
        merge_from_vert=again.astype(np.uint64),
        merge_to_vert=one[again].astype(np.uint64),
    )
    found = manifold3d.Manifold(mesh)
    if found.status() != manifold3d.Error.NoError or found.is_empty():
        raise InputError(f"{name}: cannot be cut into pieces, since it is not closed ({found.status().name}); close and weld it")
    return found.as_original()


class _Votes:
    """Which piece the places around a mesh are of: particles near nodes of a lattice, and their weights."""

    def __init__(self, voters: Voters, low: np.ndarray, high: np.ndarray) -> None:
        from mpm_nodes.kernels.surfaces.nearest_points import nearest_points

        self.voters, self.low = voters, low
        self.shape = tuple((np.ceil((high - low) / voters.spacing).astype(int) + 2).tolist())
        nodes = low + voters.spacing * np.indices(self.shape).reshape(3, -1).T
        self.numbers, squares = nearest_points(nodes, voters.rest, min(VOTERS, len(voters.rest)))
        weights = np.square(1.0 - squares / (1.0001 * squares[:, -1:] + 1e-300))
        self.weights = weights / weights.sum(axis=1, keepdims=True)

    def surface_of(self, number: int, low: np.ndarray, high: np.ndarray) -> Any:
        """Return the space that a piece has, up to a box around the mesh, as Manifold holds it."""
        import manifold3d

        share = np.einsum("nk,nk->n", self.weights, self.voters.piece[self.numbers] == number)
        read = _interpolation((2.0 * share - 1.0).reshape(self.shape), self.low, self.voters.spacing)
        return manifold3d.Manifold.level_set(read, [*low.tolist(), *high.tolist()], self.voters.spacing)


def _interpolation(values: np.ndarray, low: np.ndarray, edge: float) -> Callable[[float, float, float], float]:
    """Return the trilinear interpolation of values on a lattice, one place after the other, as `level_set` asks for them."""
    flat = values.ravel().tolist()
    _, ny, nz = values.shape
    (lx, ly, lz), (mx, my, mz), scale = low.tolist(), (n - 2 for n in values.shape), 1.0 / edge
    step = ny * nz

    def read(x: float, y: float, z: float) -> float:
        u, v, w = (x - lx) * scale, (y - ly) * scale, (z - lz) * scale
        i, j, k = min(max(int(u), 0), mx), min(max(int(v), 0), my), min(max(int(w), 0), mz)
        u, v, w = min(max(u - i, 0.0), 1.0), min(max(v - j, 0.0), 1.0), min(max(w - k, 0.0), 1.0)
        at = i * step + j * nz + k
        found = 0.0
        for a, b, c in itertools.product((0, 1), repeat=3):
            weight = (u if a else 1.0 - u) * (v if b else 1.0 - v) * (w if c else 1.0 - w)
            found += weight * flat[at + a * step + b * nz + c]
        return found

    return read


def _joined(parts: list[tuple[int, Any]], outer: int) -> CutMesh:
    """Return pieces as one mesh; vertices of one place in a piece are one point."""
    points, triangles, values, inner, piece = [], [], [], [], []
    base = 0
    for number, part in parts:
        mesh = part.to_mesh64()
        held = np.asarray(mesh.vert_properties)
        corners = np.asarray(mesh.tri_verts).astype(np.int64)
        one = np.arange(len(held))
        one[np.asarray(mesh.merge_from_vert, np.int64)] = np.asarray(mesh.merge_to_vert, np.int64)
        used, index = np.unique(one[corners], return_inverse=True)
        runs = np.diff(np.asarray(mesh.run_index, np.int64)) // 3
        owner = np.repeat(np.asarray(mesh.run_original_id, np.int64), runs)
        points.append(held[used, :3])
        triangles.append(index.reshape(-1, 3) + base)
        values.append(held[corners][:, :, 3:])
        inner.append(owner != outer)
        piece.append(np.full(len(used), number))
        base += len(used)
    width = max(each.shape[2] for each in values)
    values = [np.concatenate([each, np.zeros((*each.shape[:2], width - each.shape[2]))], axis=2) for each in values]
    return CutMesh(*(np.concatenate(each) for each in (points, triangles, values, inner, piece)))
