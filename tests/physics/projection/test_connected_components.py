"""Parts of the matter that no free surface reaches: found as a flood by hand finds them, on any number of threads."""

from __future__ import annotations

import numba
import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind, neighbour_blocks
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.physics.projection.kernels.connected_components import label_pockets
from mpm_nodes.physics.projection.kernels.pressure import EMPTY, INTERIOR, Fields
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HELD

EDGE = 4
"""Blocks along an edge of the scene."""


def _fields(seed: int) -> Fields:
    """Return a scene of random cells: rooms between held faces, with holes, some matter compressible."""
    random = np.random.default_rng(seed)
    coord = np.stack(np.meshgrid(*[np.arange(EDGE)] * 3, indexing="ij"), -1).reshape(-1, 3)
    coord = coord[random.permutation(len(coord))[: len(coord) - 5]]
    order = np.argsort(pack_coord(*coord.T, np.zeros(len(coord), np.int32)))
    coord, body = coord[order], np.zeros(len(coord), np.int32)
    around = neighbour_blocks(coord, body, pack_coord(*coord.T, body))
    size = 64 * len(coord)
    kind = np.where(random.random(size) < 0.9, INTERIOR, EMPTY).astype(np.int32)
    kind[random.random(size) < 0.5 * (seed % 2)] = INTERIOR
    cells = np.zeros((size, 4))
    cells[random.random(size) < 0.002, 2] = 1e-6
    states = [np.where(random.random(size) < 0.7, HELD, FREE).astype(np.int32) for _ in range(3)]
    mass = [np.ones(size) for _ in range(3)]
    grid = [np.ones(4 * size) for _ in range(6)]
    zero = [np.zeros(size) for _ in range(3)]
    numbers = np.array([1e-3, 0.1, 1e-9, 1.0, 1.0])
    whole = [np.ones(size) for _ in range(3)]
    return Fields(
        cells.reshape(-1),
        *grid,
        around,
        *states,
        *zero,
        *whole,
        *mass,
        *whole,
        *zero,
        np.ones(size),
        np.zeros(4 * size),
        kind,
        numbers,
    )


def _flood(f: Fields) -> list[tuple[set[int], bool]]:
    """Return the parts of the interior and whether each is open, cell by cell."""
    count, seen, parts = len(f.kind), np.zeros(len(f.kind), bool), []
    states = (f.sx, f.sy, f.sz)
    for first in range(count):
        if seen[first] or f.kind[first] != INTERIOR:
            continue
        part, left, opened = set(), [first], False
        seen[first] = True
        while left:
            c = left.pop()
            part.add(c)
            opened |= f.cells[4 * c + 2] > 0.0
            for axis in range(3):
                low, high = (int(each(f.around, c >> 6, c & 63, axis)) for each in (before, behind))
                for other, face in ((low, c), (high, high)):
                    if face < 0 or states[axis][face] != FREE:
                        continue
                    if other < 0 or f.kind[other] != INTERIOR:
                        opened = True
                    elif not seen[other]:
                        seen[other] = True
                        left.append(other)
        parts.append((part, bool(opened)))
    return parts


def test_parts_are_those_of_a_flood():
    """Numbers follow the first cells, and a part is open where a face leads out of it or a cell gives way."""
    closed = 0
    for seed in range(4):
        f = _fields(seed)
        size, expected = len(f.kind), _flood(f)
        ends = []
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            bits, label, opened = np.empty(size, np.uint8), np.empty(size, np.int32), np.empty(size, np.uint8)
            numba.set_num_threads(threads)
            parts = label_pockets(size // 64, f, bits, label, opened)
            ends.append((label, opened[:parts]))
        assert parts == len(expected)
        assert all(np.array_equal(*both) for both in zip(*ends, strict=True))
        for number, (cells, is_open) in enumerate(expected):
            assert set(np.flatnonzero(label == number)) == cells and opened[number] == is_open
            closed += not is_open
        assert (label[f.kind != INTERIOR] == -1).all()
    assert closed > 3
