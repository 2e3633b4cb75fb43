"""Subdivision surfaces as polygons: Catmull-Clark and Loop with semi-sharp creases, corners and boundaries.

Sources: Catmull and Clark, "Recursively generated B-spline surfaces on arbitrary topological meshes" (1978); Loop, "Smooth
subdivision surfaces based on triangles" (1987); DeRose, Kass and Truong, "Subdivision surfaces in character animation" (1998),
section 3 and appendix B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ENOUGH_FACES, MOST_LEVELS, MOST_FACES = 5_000, 4, 1_000_000
"""A cage is refined until it has ENOUGH_FACES, at most MOST_LEVELS times; once where it has them, if it is below MOST_FACES."""


@dataclass(frozen=True)
class Cage:
    """Topology of a control mesh.

    Attributes:
        points: Number of points.
        counts: Corners of each face, shape (faces,).
        indices: Point of each corner, shape (corners,).
        edges: Points of creased edges, shape (creases, 2).
        edge_sharpness: Of each of them, shape (creases,).
        sharpness: Of each point, shape (points,); infinite is a corner.
    """

    points: int
    counts: np.ndarray
    indices: np.ndarray
    edges: np.ndarray
    edge_sharpness: np.ndarray
    sharpness: np.ndarray


class _Rows:
    """A sparse matrix that grows by entries, applied to values at points."""

    def __init__(self, rows: int) -> None:
        self.rows, self.entries = rows, list[tuple[np.ndarray, np.ndarray, np.ndarray]]()

    def add(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray | float) -> None:
        self.entries.append((rows, columns, np.broadcast_to(weights, rows.shape)))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        rows, columns, weights = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        flat = values.reshape(len(values), -1)
        summed = [np.bincount(rows, weights * each[columns], self.rows) for each in flat.T]
        return np.stack(summed, axis=1).reshape(self.rows, *values.shape[1:])


@dataclass(frozen=True)
class Refinement:
    """A refined cage.

    Attributes:
        points: Number of points.
        counts: Corners of each face, shape (faces,).
        indices: Point of each corner, shape (corners,).
        parents: Face of the cage that each face lies in, shape (faces,).
        steps: What takes values at the points of one level to the next.
    """

    points: int
    counts: np.ndarray
    indices: np.ndarray
    parents: np.ndarray
    steps: tuple[Callable[[np.ndarray], np.ndarray], ...]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return values at the refined points, shape (points, ...), from those at the cage's."""
        for step in self.steps:
            values = step(values)
        return values


def refine(cage: Cage, loop: bool = False, corners: bool = True) -> Refinement:
    """Return the refinement of a cage.

    Args:
        cage: The cage.
        loop: Loop's scheme, for triangles; else that of Catmull and Clark.
        corners: Whether a boundary point of one face only stays where it is.
    """
    faces, steps = len(cage.counts), []
    parents = np.arange(faces)
    levels = int(faces < MOST_FACES)
    while levels < MOST_LEVELS and 0 < faces * 4**levels < ENOUGH_FACES:
        levels += 1
    for _ in range(levels):
        step, cage, each = (_loop if loop else _catmull_clark)(cage, corners)
        steps.append(step)
        parents = np.repeat(parents, each)
    return Refinement(cage.points, cage.counts, cage.indices, parents, tuple(steps))


def refined_corners(counts: np.ndarray, values: np.ndarray, levels: int, loop: bool = False) -> np.ndarray:
    """Return values at the corners of refined faces, in the order of `Refinement.indices`, straight within the faces of the cage.

    Args:
        counts: Corners of each face of the cage, shape (faces,).
        values: At its corners, shape (corners, ...).
        levels: How many times it was refined.
        loop: Whether by Loop's scheme.
    """
    for _ in range(levels):
        ends, starts = np.cumsum(counts), np.cumsum(counts) - counts
        after = np.arange(1, len(values) + 1)
        after[ends - 1] = starts
        halves = 0.5 * (values + values[after])
        if loop:
            (a, b, c), (ab, bc, ca) = (each.reshape(-1, 3, *values.shape[1:]).swapaxes(0, 1) for each in (values, halves))
            children, counts = [a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca], np.full(4 * len(counts), 3)
        else:
            before = np.arange(-1, len(values) - 1)
            before[starts] = ends - 1
            middles = np.add.reduceat(values, starts) / counts.reshape(-1, *[1] * (values.ndim - 1))
            children = [values, halves, np.repeat(middles, counts, axis=0), halves[before]]
            counts = np.full(len(values), 4)
        values = np.stack(children, axis=1).reshape(-1, *values.shape[1:])
    return values


class _Edges:
    """Edges of a cage: `of` each corner to the next one, their `ends`, and how sharp they are; what touches a border is."""

    def __init__(self, cage: Cage, corners: bool) -> None:
        ends = np.cumsum(cage.counts)
        self.face = np.repeat(np.arange(len(cage.counts)), cage.counts)
        after, before = np.arange(1, len(cage.indices) + 1), np.arange(-1, len(cage.indices) - 1)
        after[ends - 1], before[ends - cage.counts] = ends - cage.counts, ends - 1
        self.before, self.next = before, after
        pairs = np.sort(np.stack([cage.indices, cage.indices[after]], axis=1), axis=1)
        keys, self.of = np.unique(pairs[:, 0] * cage.points + pairs[:, 1], return_inverse=True)
        self.ends = np.stack([keys // cage.points, keys % cage.points], axis=1)
        self.inner = np.bincount(self.of, minlength=len(keys)) == 2
        self.sharpness = np.zeros(len(keys))
        creases = np.sort(cage.edges, axis=1)
        place = np.searchsorted(keys, wanted := creases[:, 0] * cage.points + creases[:, 1])
        held = np.flatnonzero(keys[np.minimum(place, len(keys) - 1)] == wanted)
        np.maximum.at(self.sharpness, place[held], cage.edge_sharpness[held])
        self.sharpness[~self.inner] = np.inf
        self.around = np.bincount(self.ends.ravel(), minlength=cage.points)
        self.corner = cage.sharpness.copy()
        if corners:
            border = np.bincount(self.ends[~self.inner].ravel(), minlength=cage.points) > 0
            alone = np.bincount(cage.indices, minlength=cage.points) == 1
            self.corner[border & alone] = np.inf

    def vertex_rule(self, rows: _Rows, smooth: Callable[[np.ndarray], None]) -> None:
        """Add the new places of the points: `smooth` adds those of smooth ones, each by a share, shape (points,)."""
        points = len(self.corner)
        every = np.arange(points)
        sharp = self.sharpness > 0.0
        meet = np.bincount(self.ends[sharp].ravel(), minlength=points)
        total = np.bincount(self.ends.ravel(), np.repeat(np.minimum(self.sharpness, 1e9), 2), points)
        crease = np.where(meet >= 2, np.minimum(total / np.maximum(meet, 1), 1.0), 0.0)
        corner = np.maximum(np.minimum(self.corner, 1.0), np.where(meet > 2, crease, 0.0))
        corner[self.around == 0] = 1.0
        crease = np.where(meet == 2, crease, 0.0) * (1.0 - corner)
        smooth(1.0 - corner - crease)
        rows.add(every, every, corner + 0.75 * crease)
        for mine, other in (self.ends[sharp].T, self.ends[sharp, ::-1].T):
            rows.add(mine, other, 0.125 * crease[mine])

    def child(self, cage: Cage, points: int, counts: np.ndarray, indices: np.ndarray) -> Cage:
        """Return the next level's cage, whose edge points follow the points; creases lose one of sharpness."""
        held = np.flatnonzero((self.sharpness > 1.0) & self.inner)
        halves = np.concatenate([np.stack([self.ends[held, side], cage.points + held], axis=1) for side in (0, 1)])
        sharpness = np.zeros(points)
        sharpness[: cage.points] = np.maximum(self.corner - 1.0, 0.0)
        return Cage(points, counts, indices, halves, np.tile(self.sharpness[held] - 1.0, 2), sharpness)


def _catmull_clark(cage: Cage, corners: bool) -> tuple[Callable[[np.ndarray], np.ndarray], Cage, np.ndarray]:
    edges, n, faces = _Edges(cage, corners), cage.points, len(cage.counts)
    many = len(edges.ends)
    middles = _Rows(faces)
    middles.add(edges.face, cage.indices, 1.0 / cage.counts[edges.face])
    rows = _Rows(n + many + faces)

    def smooth(share: np.ndarray) -> None:
        around = np.maximum(edges.around, 1)
        rows.add(np.arange(n), np.arange(n), share * (around - 2.0) / around)
        weight = share / around**2
        rows.add(cage.indices, n + edges.face, weight[cage.indices])
        for mine, other in (edges.ends.T, edges.ends[:, ::-1].T):
            rows.add(mine, other, weight[mine])

    edges.vertex_rule(rows, smooth)
    sharp = np.minimum(edges.sharpness, 1.0)
    for side in (0, 1):
        rows.add(n + np.arange(many), edges.ends[:, side], 0.25 + 0.25 * sharp)
    rows.add(n + edges.of, n + edges.face, 0.25 * (1.0 - sharp[edges.of]))
    rows.add(n + many + np.arange(faces), n + np.arange(faces), 1.0)
    quads = np.stack([cage.indices, n + edges.of, n + many + edges.face, n + edges.of[edges.before]], axis=1)
    child = edges.child(cage, n + many + faces, np.full(len(quads), 4), quads.ravel())
    return lambda values: rows(np.concatenate([values, middles(values)])), child, cage.counts


def _loop(cage: Cage, corners: bool) -> tuple[Callable[[np.ndarray], np.ndarray], Cage, np.ndarray]:
    edges, n = _Edges(cage, corners), cage.points
    many = len(edges.ends)
    rows = _Rows(n + many)

    def smooth(share: np.ndarray) -> None:
        around = np.maximum(edges.around, 1)
        beta = (0.625 - (0.375 + 0.25 * np.cos(2.0 * np.pi / around)) ** 2) / around
        rows.add(np.arange(n), np.arange(n), share * (1.0 - around * beta))
        for mine, other in (edges.ends.T, edges.ends[:, ::-1].T):
            rows.add(mine, other, (share * beta)[mine])

    edges.vertex_rule(rows, smooth)
    sharp = np.minimum(edges.sharpness, 1.0)
    for side in (0, 1):
        rows.add(n + np.arange(many), edges.ends[:, side], 0.375 + 0.125 * sharp)
    rows.add(n + edges.of, cage.indices[edges.before], 0.125 * (1.0 - sharp[edges.of]))
    a, b, c = (cage.indices.reshape(-1, 3)[:, k] for k in range(3))
    ab, bc, ca = (n + edges.of.reshape(-1, 3)[:, k] for k in range(3))
    triangles = np.stack([a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca], axis=1).reshape(-1, 3)
    child = edges.child(cage, n + many, np.full(len(triangles), 3), triangles.ravel())
    return rows, child, np.full(len(cage.counts), 4)
