"""Which blocks have the particles that they had, in nearly the same places, and which surfaces around them are still known.

What a place's level set needs lies in its 27 blocks. Its vertices and samples need the level set of the 27 places around it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.bins import Places
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["Layout", "hold_still", "unknown_places"]


class Layout(NamedTuple):
    """Particles by block.

    Attributes:
        start: Particles of block b are start[b] : start[b + 1], int64.
        offset: Fixed-point offsets from the centres of blocks, three rows, flat.
        stride: Distance of rows.
        material: Of each particle, int32.
        volume: Of each particle.
    """

    start: np.ndarray
    offset: np.ndarray
    stride: int
    material: np.ndarray
    volume: np.ndarray


def hold_still(now: Layout, was: Layout, block: np.ndarray, farthest: float, outermost: float) -> np.ndarray:
    """Put the particles of blocks that hardly changed back to where they were; return which blocks those are, a mask.

    A block is one of them where it has as many particles as it had, of the same materials and volumes in the same order, and none
    of them is farther than `farthest` from the place that one of the same number had.

    Args:
        now: The particles; the offsets are written.
        was: How they were.
        block: Of `was`, for each block of `now`; -1 where there was none, int64.
        farthest: Distance along an axis [fixed-point units].
        outermost: Largest offset that is allowed [fixed-point units].
    """
    still = np.zeros(len(block), bool)
    _hold(now, was, block, (int(farthest), int(outermost)), still)
    return still


@part
def _hold_at(b, now, was, block, most, still):
    q, (farthest, outermost) = block[b], most
    if q < 0:
        return
    first, before = now.start[b], was.start[q]
    size = now.start[b + 1] - first
    if was.start[q + 1] - before != size:
        return
    for n in range(size):
        if now.material[first + n] != was.material[before + n] or now.volume[first + n] != was.volume[before + n]:
            return
        for axis in range(3):
            old = np.int64(was.offset[axis * was.stride + before + n])
            if abs(np.int64(now.offset[axis * now.stride + first + n]) - old) > farthest or abs(old) > outermost:
                return
    still[b] = True
    for axis in range(3):
        for n in range(size):
            now.offset[axis * now.stride + first + n] = was.offset[axis * was.stride + before + n]


@compiled
def _hold(now, was, block, most, still):
    parallel_for(_hold_at, still.shape[0], (now, was, block, most, still))


def unknown_places(places: Places, was: Places, place: np.ndarray, still: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places whose level set has to be found, and those whose vertices and samples have to be, masks.

    Args:
        places: Blocks with particles and their neighbours.
        was: How they were.
        place: Of `was`, for each place, -1 where there was none.
        still: Blocks whose particles are where they were, a mask.
    """
    field, mesh = np.ones(len(place), bool), np.ones(len(place), bool)
    _find_unknown((places.near, places.slot), (was.near, was.slot), place, still, field, mesh)
    return field, mesh


@part
def _changed_at(e, tables, old, place, still, field):
    (near, slot), (old_near, old_slot) = tables, old
    if place[e] < 0:
        return
    for n in range(27):
        p, w = near[e, n], old_near[place[e], n]
        q, v = slot[p] if p >= 0 else -1, old_slot[w] if w >= 0 else -1
        if (q < 0) != (v < 0) or (q >= 0 and not still[q]):
            return
    field[e] = False


@part
def _touched_at(e, tables, old, place, field, mesh):
    near, old_near = tables[0], old[0]
    if place[e] < 0:
        return
    for n in range(27):
        p, w = near[e, n], old_near[place[e], n]
        if (p < 0) != (w < 0) or (p >= 0 and field[p]):
            return
    mesh[e] = False


@compiled
def _find_unknown(tables, old, place, still, field, mesh):
    parallel_for(_changed_at, place.shape[0], (tables, old, place, still, field))
    parallel_for(_touched_at, place.shape[0], (tables, old, place, field, mesh))
