"""Points that go along with a mesh as it deforms: each by the affine motion of the vertices near it.

Symbols
    a_i, b_i   vertices near a point before and now, from their weighted means c and d   m
    w_i        weights 1 / s_i^4, s_i the distance of a vertex from the point            1/m^4
    F          argmin sum_i w_i |F a_i - b_i|^2 + e |F - R|^2, R the rotation nearest to sum_i w_i b_i a_i^T
    e          STIFF of the mean of the moments sum_i w_i a_i a_i^T

A point goes from x to d + F (x - c). R is what counts across flat parts of a mesh, of which vertices say nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.rotations import turn_matrix
from mpm_nodes.nodes.seeding import SeedLayout

__all__ = ["Binding", "bound", "carried", "carried_affinely", "deformation_of"]

NEAR = 16
"""Vertices near a point that it goes along with."""
STIFF = 1e-2
"""Share of the moments that holds F to a rotation."""


class Binding(NamedTuple):
    """Points, and what they go along with.

    Attributes:
        vertices: Numbers of the vertices near each point, shape (n, k).
        weights: Their weights, of sum 1, shape (n, k).
        arms: Vertices from their weighted mean [m], shape (n, k, 3).
        way: Points from there [m], shape (n, 3).
    """

    vertices: np.ndarray
    weights: np.ndarray
    arms: np.ndarray
    way: np.ndarray


def bound(points: np.ndarray, vertices: np.ndarray) -> Binding:
    """Bind points to the vertices near them.

    Args:
        points: [m], shape (n, 3).
        vertices: Of a mesh as it is where the points are [m], shape (v, 3), v > 0.

    Source: Schaefer, McPhail and Warren 2006 (moving least squares).
    """
    from mpm_nodes.kernels.surfaces.nearest_points import nearest_points

    numbers, squares = nearest_points(points, vertices, min(NEAR, len(vertices)))
    weights = 1.0 / np.square(squares + 1e-6 * squares.max(axis=1, initial=1e-300, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.einsum("nk,nki->ni", weights, vertices[numbers])
    return Binding(numbers, weights, vertices[numbers] - means[:, None], points - means)


def carried(binding: Binding, vertices: np.ndarray) -> np.ndarray:
    """Return where points go with their mesh [m], shape (n, 3).

    Args:
        binding: Points, from `bound`.
        vertices: Of the mesh by now [m], as many as they were.
    """
    return carried_affinely(binding, vertices)[0]


def carried_affinely(binding: Binding, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where points go with their mesh [m], shape (n, 3), and the gradient F of how they do, shape (n, 3, 3).

    Args:
        binding: Points, from `bound`.
        vertices: Of the mesh by now [m], as many as they were.
    """
    _, weights, arms, way = binding
    there = vertices[binding.vertices]
    means = np.einsum("nk,nki->ni", weights, there)
    moments = np.einsum("nk,nki,nkj->nij", weights, arms, arms)
    moved = np.einsum("nk,nki,nkj->nij", weights, there - means[:, None], arms)
    left, _, right = np.linalg.svd(moved)
    left[:, :, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))[:, None]
    stiff = STIFF / 3.0 * np.trace(moments, axis1=1, axis2=2)[:, None, None] + 1e-300
    turned = moved + stiff * (left @ right)
    found = np.linalg.solve(moments + stiff * np.eye(3), np.swapaxes(turned, 1, 2))  # F^T: the moments are symmetric
    return np.asarray(means + np.einsum("ni,nij->nj", way, found)), np.swapaxes(found, 1, 2)


def deformation_of(
    kept: Kept, placement: SeedLayout, file: tuple[Path, str], frame: float, settings: GraphSettings
) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return what takes particles of the first frame to where a mesh has them at another; None where its faces are others.

    Args:
        kept: Where what they are bound to is kept from frame to frame.
        placement: How the particles are laid out: they are turned and shifted after they have gone along.
        file: The file, and the prim of the mesh.
        frame: The other frame.
        settings: Of the graph.
    """
    meshes = open_meshes(kept, *file)
    first, now = (shot_codes(settings, meshes.stage).code(each) for each in (float(settings.start), frame))
    if meshes.topology(first).digest != meshes.topology(now).digest:
        return None
    turn, centre = turn_matrix(placement.rotation, placement.orientation), np.asarray(placement.centre, float)

    def moved(position: np.ndarray) -> np.ndarray:
        own = (position - centre) @ turn
        key = ("bound seeds", *stamp(file[0]), file[1], first, hashlib.sha256(own.tobytes()).hexdigest())
        binding = kept.get(key, lambda: bound(own, meshes.points(first)))
        return np.asarray(carried(binding, meshes.points(now)) @ turn.T + centre)

    return moved
