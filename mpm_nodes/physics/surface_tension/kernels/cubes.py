"""Marching cubes whose meshes are closed: triangles of each of the 256 ways in which a surface can cut a cell.

The table is made, not printed. On each face of a cell the corners inside the matter are cut off from those outside, and where they
stand at opposite corners each is cut off by itself. A face tells both of its cells the same segments, so that triangles of
neighbouring cells always meet edge to edge: the mesh has no holes, whatever the signs (what the table of Lorensen 1987 lacks).

Corner c of a cell is the node (c >> 2, (c >> 1) & 1, c & 1) after the first; edge 4 a + b runs along axis a from corner `STARTS`.
"""

from __future__ import annotations

import itertools

import numpy as np

from mpm_nodes.kernels.compile.jit import inline

__all__ = ["COUNTS", "MOST", "STARTS", "TRIANGLES", "case_of"]

_BITS = (4, 2, 1)
"""What a corner's number grows by along each axis."""

STARTS = np.array([[c for c in range(8) if not c & _BITS[axis]] for axis in range(3)], np.int8).ravel()
"""First corner of each of the twelve edges."""


def _edge(a: int, b: int) -> int:
    axis = _BITS.index(a ^ b)
    return 4 * axis + [c for c in range(8) if not c & _BITS[axis]].index(min(a, b))


def _faces() -> list[tuple[int, int, int, int]]:
    """Return the corners of the six faces, counter-clockwise as seen from outside."""
    faces = []
    for axis in range(3):
        u, v = _BITS[(axis + 1) % 3], _BITS[(axis + 2) % 3]
        faces.append((_BITS[axis], _BITS[axis] | u, _BITS[axis] | u | v, _BITS[axis] | v))
        faces.append((0, v, u | v, u))
    return faces


def _loops(case: int) -> list[list[int]]:
    """Return the closed lines in which a surface cuts the cell's faces, as cut edges in order, seen from outside the matter."""
    following = {}
    for face in _faces():
        held = [bool(case >> corner & 1) for corner in face]
        for n in range(4):
            if held[n] and not held[n - 1]:  # matter begins here: the segment goes to where this run of corners ends
                last = n
                while held[(last + 1) % 4]:
                    last += 1
                following[_edge(face[n - 1], face[n])] = _edge(face[last % 4], face[(last + 1) % 4])
    loops = []
    while following:
        loop = [min(following)]
        while (edge := following.pop(loop[-1])) != loop[0]:
            loop.append(edge)
        loops.append(loop)
    return loops


def _table() -> tuple[np.ndarray, np.ndarray]:
    fans = [[(loop[0], *pair) for loop in _loops(case) for pair in itertools.pairwise(loop[1:])] for case in range(256)]
    counts = np.array([len(fan) for fan in fans], np.int8)
    table = np.zeros((256, counts.max(), 3), np.int8)
    for case, fan in enumerate(fans):
        table[case, : len(fan)] = np.array(fan, np.int8).reshape(-1, 3)
    return counts, table


COUNTS, TRIANGLES = _table()
"""Triangles of each case, and their edges; bit c of a case says that corner c is inside. Seen from outside, counter-clockwise."""
MOST = TRIANGLES.shape[1]
"""Most triangles of a cell."""


@inline
def case_of(held):
    """Return the case of eight corners' signs, 1 inside."""
    case = 0
    for corner in range(8):
        case |= held[corner] << corner
    return case
