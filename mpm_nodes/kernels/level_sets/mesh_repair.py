"""Make a closed, consistently wound triangle mesh of an imperfect one, and count what was wrong.

Seams are welded, winding is made consistent across each part, parts turned inside out are turned back (a part that lies
wholly inside the others is kept as a cavity), holes are closed by fans, and parts without an inside are left out. The
result keeps indices into the given points, so one repair serves every pose of a deforming mesh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

OPEN_SHARE = 0.2
"""Share of a part's area that its holes may have; with more it is a sheet."""


@dataclass(frozen=True, eq=False)
class SolidMesh:
    """Triangles that enclose a solid.

    Attributes:
        triangles: Indices into `extended(points)`, shape (m, 3).
        loops: Point indices around each closed hole; hole k adds the point len(points) + k.
        source: Face of the given mesh that each triangle came from, -1 for the fans over holes, shape (m,).
        open_edges: Edges used by one face only.
        flipped: Faces whose winding was turned.
        sheets: Faces left out because their part has no inside.
    """

    triangles: np.ndarray
    loops: tuple[np.ndarray, ...]
    source: np.ndarray
    open_edges: int
    flipped: int
    sheets: int

    def extended(self, points: np.ndarray) -> np.ndarray:
        """Return points (or velocities), shape (n, 3), with the middles of the holes appended."""
        middles = [points[loop].mean(axis=0) for loop in self.loops]
        return np.concatenate([points, np.array(middles).reshape(-1, 3)])

    def findings(self) -> str:
        """Return what was imperfect as a sentence, empty for a sound mesh."""
        found = []
        if self.open_edges:
            found.append(f"{self.open_edges} open edges around {len(self.loops)} holes (closed)")
        if self.flipped:
            found.append(f"{self.flipped} flipped faces (turned)")
        if self.sheets:
            found.append(f"{self.sheets} faces in parts without an inside (left out)")
        return ", ".join(found)


def triangulate(counts: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fan triangles of polygons, shape (m, 3), and the polygon that each came from, shape (m,)."""
    counts = np.asarray(counts, np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else np.zeros(0, np.int64)
    fans = np.maximum(counts - 2, 0)
    face = np.repeat(np.arange(len(counts)), fans)
    within = np.arange(len(face)) - np.repeat(np.cumsum(fans) - fans, fans)
    first = starts[face]
    corners = np.stack([first, first + within + 1, first + within + 2], axis=1)
    return np.asarray(indices, np.int64)[corners], face


def weld(points: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return triangles over one representative of each place, and which triangles are kept (area, three places)."""
    extent = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    places = np.rint((points - points.min(axis=0)) * (1e6 / max(extent, 1e-300))).astype(np.int64)
    _, first, inverse = np.unique(places, axis=0, return_index=True, return_inverse=True)
    welded = first[inverse.reshape(-1)][triangles]
    a, b, c = points[welded[:, 0]], points[welded[:, 1]], points[welded[:, 2]]
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    kept = (welded[:, 0] != welded[:, 1]) & (welded[:, 1] != welded[:, 2]) & (welded[:, 2] != welded[:, 0])
    kept &= area > 1e-14 * extent**2
    return welded[kept], kept


def solid_mesh(points: np.ndarray, triangles: np.ndarray, name: str = "mesh") -> SolidMesh:
    """Repair a mesh. Points [m], shape (n, 3); triangles, shape (m, 3).

    Raises:
        InputError: No faces with an area, or no part of the mesh encloses anything.
    """
    source = np.arange(len(triangles))
    if len(triangles):
        triangles, kept = weld(points, triangles)
        source = source[kept]
    if not len(triangles):
        raise InputError(f"{name}: the mesh has no faces; a collider needs a surface")
    pairs, open_edges = _shared_edges(triangles)
    part, turned = _orient(len(triangles), pairs)
    parts = int(part.max()) + 1
    share = np.bincount(part, turned, parts) / np.bincount(part, minlength=parts)
    turned ^= (share > 0.5)[part]  # the majority keeps its winding
    triangles = np.where(turned[:, None], triangles[:, ::-1], triangles)
    loops = _loops(triangles)
    fans, fan_part = _fans(loops, triangles, part, len(points))
    solid = SolidMesh(triangles, loops, source, 0, 0, 0)
    every = np.concatenate([triangles, fans])
    every_part = np.concatenate([part, fan_part])
    volume, area, capped = _measure(solid.extended(points), every, every_part, parts, len(triangles))
    flat = np.abs(volume) < 1e-6 * area**1.5
    empty = (capped > OPEN_SHARE * area) | flat
    if empty.any() and not empty.all():
        empty &= flat | ~_mouth_covered(solid.extended(points), every, every_part, fans, fan_part, volume, empty)
    if empty.all():
        raise InputError(f"{name}: the mesh is a sheet, it has no inside ({open_edges} open edges); give it a thickness above 0 m")
    inverted = _inside_out(solid.extended(points), every, every_part, volume, empty)
    every = np.where(inverted[every_part][:, None], every[:, ::-1], every)
    keep = ~empty[every_part]
    flipped = int((turned ^ inverted[part])[~empty[part]].sum())
    source = np.concatenate([source, np.full(len(fans), -1)])
    return SolidMesh(np.ascontiguousarray(every[keep]), loops, source[keep], open_edges, flipped, int(empty[part].sum()))


def _edges(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edge keys sorted, with the face and direction of each use."""
    a = triangles[:, [0, 1, 2]].ravel()
    b = triangles[:, [1, 2, 0]].ravel()
    key = np.minimum(a, b) * (int(triangles.max()) + 1) + np.maximum(a, b)
    order = np.argsort(key, kind="stable")
    return key[order], order // 3, (a < b)[order]


def _shared_edges(triangles: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (face, face, same direction) for each edge of just two faces, and the number of edges of one face."""
    key, face, forward = _edges(triangles)
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    uses = np.diff(np.concatenate([start, [len(key)]]))
    two = start[uses == 2]
    pairs = np.stack([face[two], face[two + 1], forward[two] == forward[two + 1]], axis=1).astype(np.int64)
    return pairs, int((uses == 1).sum())


def _orient(count: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each face's part and whether it must be turned to agree with the first face of its part."""
    both = np.concatenate([pairs, pairs[:, [1, 0, 2]]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    start = np.searchsorted(both[:, 0], np.arange(count + 1))
    part, turned = np.full(count, -1, np.int64), np.zeros(count, np.bool_)
    _spread_winding(start, np.ascontiguousarray(both), part, turned)
    return part, turned


@compiled(fastmath=False)
def _spread_winding(start, neighbours, part, turned):
    """Walk every part and give each face the winding that agrees with the face it was reached from."""
    stack = np.empty(part.shape[0], np.int64)
    parts = 0
    for seed in range(part.shape[0]):
        if part[seed] >= 0:
            continue
        part[seed] = parts
        stack[0] = seed
        top = 1
        while top > 0:
            top -= 1
            face = stack[top]
            for k in range(start[face], start[face + 1]):
                other = neighbours[k, 1]
                if part[other] < 0:
                    part[other] = parts
                    turned[other] = turned[face] != (neighbours[k, 2] == 1)
                    stack[top] = other
                    top += 1
        parts += 1


def _loops(triangles: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the point loops around holes, each walked against the faces, so that its fan is wound like them."""
    a = triangles[:, [0, 1, 2]].ravel()
    b = triangles[:, [1, 2, 0]].ravel()
    key = np.minimum(a, b) * (int(triangles.max()) + 1) + np.maximum(a, b)
    _, inverse, uses = np.unique(key, return_inverse=True, return_counts=True)
    single = uses[inverse.reshape(-1)] == 1
    following: dict[int, list[int]] = {}
    for start, end in zip(b[single].tolist(), a[single].tolist(), strict=True):
        following.setdefault(start, []).append(end)
    loops = []
    for start in sorted(following):
        while following.get(start):
            loop, at = [start], following[start].pop()
            while at != start and following.get(at):
                loop.append(at)
                at = following[at].pop()
            if len(loop) > 2:
                loops.append(np.array(loop))
    return tuple(loops)


def _fans(loops: tuple[np.ndarray, ...], triangles: np.ndarray, part: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangles that close the holes and the part that each belongs to."""
    if not loops:
        return np.zeros((0, 3), np.int64), np.zeros(0, np.int64)
    part_of = np.zeros(int(triangles.max()) + 1, np.int64)
    part_of[triangles.ravel()] = np.repeat(part, 3)
    fans = [np.stack([loop, np.roll(loop, -1), np.full(len(loop), base + k)], axis=1) for k, loop in enumerate(loops)]
    parts = [np.full(len(loop), part_of[loop[0]]) for loop in loops]
    return np.concatenate(fans), np.concatenate(parts)


def _measure(points, triangles, part, parts, own) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return signed volume [m^3], area without fans [m^2] and area of fans [m^2] of each part."""
    middle = points[triangles[:, 0]].mean(axis=0)
    a, b, c = (points[triangles[:, k]] - middle for k in range(3))
    cross = np.cross(b - a, c - a)
    size = 0.5 * np.linalg.norm(cross, axis=1)
    volume = np.bincount(part, (a * cross).sum(axis=1) / 6.0, parts)
    area = np.bincount(part[:own], size[:own], parts)
    return volume, area, np.bincount(part[own:], size[own:], parts)


def _mouth_covered(points, triangles, part, fans, fan_part, volume, empty) -> np.ndarray:
    """Return which parts are open only inside the others, like an eyeball's shell in its socket: closing them is harmless."""
    outward = np.where((volume < 0.0)[part][:, None], triangles[:, ::-1], triangles)
    tree = winding_tree(points, outward[~empty[part]])
    covered = np.zeros(len(volume), bool)
    for k in np.flatnonzero(empty):
        mouth = points[fans[fan_part == k]].mean(axis=1)
        covered[k] = len(mouth) > 0 and (winding_numbers(tree, mouth) > 0.5).mean() > 0.7
    return covered


def _inside_out(points, triangles, part, volume, empty) -> np.ndarray:
    """Return which parts to turn: those of negative volume, unless the other parts enclose them (cavities)."""
    negative = (volume < 0.0) & ~empty
    sound = (volume > 0.0) & ~empty
    if not negative.any() or not sound.any():
        return negative
    tree = winding_tree(points, triangles[sound[part]])
    for k in np.flatnonzero(negative):
        places = np.unique(triangles[part == k])
        places = places[:: max(1, len(places) // 64)]
        if (winding_numbers(tree, points[places]) > 0.5).mean() > 0.98:
            negative[k] = False
    return negative
