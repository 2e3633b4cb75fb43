"""Private tiles of one value on the faces of each axis: a block's 8^3 faces, laid out so that a stencil's slice is one load.

| symbol | meaning |
|---|---|
| faces | one value for each face of an axis: value 64 b + 16 i + 4 j + k is face (i, j, k) of grid block b |
| slice | the 4 x 4 faces along y and z that stencils see at one x, sixteen values: its quarters are y, places inside them z |
| window | four faces along z, one behind another; a tile holds those from its face -1, 0 .. 4 on |

A tile has its windows as entry [x][window][y + 1][place]. Slices of all particles of a cell lie at one place: they begin a face
before its stencil of nodes, since stencils of centres begin there or a face later (`face_stencils`). So what one particle has added
is loaded whole by the next one, where loads across two stores would wait for both.

Faces lie in up to four windows, which costs little: a tile is filled and added once for all particles of a block. No weight is on
faces before the tile, and what lies in their place is finite: entry 0 along y of a window is entry 8 of the one before.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline, part
from mpm_nodes.kernels.lanes.arithmetic import any_lane, const
from mpm_nodes.kernels.lanes.memory import load, shuffle_by, store
from mpm_nodes.kernels.lanes.types import WIDTH

__all__ = [
    "FACE_TILE",
    "FACE_TILES",
    "IN_X",
    "IN_Y",
    "IN_Z",
    "add_face_tiles",
    "clear_face_tiles",
    "clear_tile",
    "fold_slice",
    "load_face_tiles",
]

IN_X, IN_Z, IN_Y = 8, 5, 2
"""Bits by which an index along each axis is shifted to give its place in a tile."""
FACE_TILE = 2048 + 2 * WIDTH
"""Values of the tile of one axis. A multiple of 4 kB would map tiles of all three to the same lines of the cache."""
FACE_TILES = 3 * FACE_TILE
_SLICE, _WINDOW, _WINDOWS = 1 << IN_X, 1 << IN_Z, 6


def _window(first):
    """Return what picks the window from face `first` on out of two slices, one behind the other along z."""
    places = [first + k for k in range(4)]
    return shuffle_by([4 * y + k if k < 4 else WIDTH + 4 * y + k % 4 for y in range(4) for k in places])


def _part_of(window, low):
    """Return what picks of a window's slice, or of zeros behind it, what belongs to faces 0 .. 3, or to 4 .. 7."""
    first = 0 if low else 4
    places = [first + k - (window - 1) for k in range(4)]
    return shuffle_by([4 * y + k if 0 <= k < 4 else WIDTH for y in range(4) for k in places])


_WINDOW_2, _WINDOW_3, _WINDOW_4 = (_window(first) for first in (1, 2, 3))
_BEFORE = shuffle_by([WIDTH if k == 0 else 4 * y + k - 1 for y in range(4) for k in range(4)])
"""The window from face -1 on."""
_LOW_0, _LOW_2, _LOW_3, _LOW_4 = (_part_of(window, True) for window in (0, 2, 3, 4))
_HIGH_2, _HIGH_3, _HIGH_4 = (_part_of(window, False) for window in (2, 3, 4))


@inline
def _load_tile(scratch, at, faces, begin, tile_slot, q):
    zero = const(load(scratch, at), 0.0)
    for i in range(8):
        store(scratch, at + i * _SLICE, zero)
    for half in range(4):
        x, y = 4 * (half >> 1), 4 * (half & 1) + 1
        near, far = begin + 64 * tile_slot[q, 2 * half], begin + 64 * tile_slot[q, 2 * half + 1]
        for i in range(4):
            to = at + (x + i) * _SLICE + (y << IN_Y)
            low, high = load(faces, near + 16 * i), load(faces, far + 16 * i)
            store(scratch, to, _BEFORE(low, zero))
            store(scratch, to + _WINDOW, low)
            store(scratch, to + 2 * _WINDOW, _WINDOW_2(low, high))
            store(scratch, to + 3 * _WINDOW, _WINDOW_3(low, high))
            store(scratch, to + 4 * _WINDOW, _WINDOW_4(low, high))
            store(scratch, to + 5 * _WINDOW, high)


@part
def load_face_tiles(scratch, at, faces, size, tile_slot, q):
    """Fill the three tiles from the grid blocks of particle block q.

    Args:
        scratch, at: The tiles, `FACE_TILE` values each.
        faces: Values of all faces, those of each axis `size` values behind those of the one before.
        size: 64 times the number of grid blocks, or more.
        tile_slot: Grid blocks of each particle block's tile, shape (blocks, 8).
        q: The particle block.
    """
    for axis in range(3):
        _load_tile(scratch, at + axis * FACE_TILE, faces, axis * size, tile_slot, q)


@inline
def clear_tile(scratch, at, zero):
    """Zero one tile."""
    for i in range(8):
        begin = at + i * _SLICE
        for j in range(0, _WINDOWS * _WINDOW + WIDTH, WIDTH):
            store(scratch, begin + j, zero)


@part
def clear_face_tiles(scratch, at):
    """Zero the three tiles."""
    zero = const(load(scratch, at), 0.0)
    for axis in range(3):
        clear_tile(scratch, at + axis * FACE_TILE, zero)


@inline
def fold_slice(scratch, at, corner, i, zero):
    """Return the sums of a tile's windows on the sixteen faces with x index i of the grid block at a corner, 0 to 7."""
    of = at + (4 * (corner >> 2) + i) * _SLICE + ((4 * ((corner >> 1) & 1) + 1) << IN_Y)
    two, three, four = load(scratch, of + 2 * _WINDOW), load(scratch, of + 3 * _WINDOW), load(scratch, of + 4 * _WINDOW)
    if corner & 1 == 0:
        before = _LOW_0(load(scratch, of), zero) + load(scratch, of + _WINDOW)
        return before + ((_LOW_2(two, zero) + _LOW_3(three, zero)) + _LOW_4(four, zero))
    behind = _HIGH_4(four, zero) + load(scratch, of + 5 * _WINDOW)
    return (_HIGH_2(two, zero) + _HIGH_3(three, zero)) + behind


@part
def add_face_tiles(scratch, at, faces, size, tile_slot, q):
    """Add the three tiles to the grid blocks of particle block q; arguments as of `load_face_tiles`."""
    zero = const(load(scratch, at), 0.0)
    for axis in range(3):
        for corner in range(8):
            block = axis * size + 64 * tile_slot[q, corner]
            for i in range(4):
                found = fold_slice(scratch, at + axis * FACE_TILE, corner, i, zero)
                if any_lane(found != zero):
                    store(faces, block + 16 * i, load(faces, block + 16 * i) + found)
