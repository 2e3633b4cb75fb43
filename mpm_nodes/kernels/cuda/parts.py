"""Parts of arrays on the host, packed one behind the other for a copy, and back: the counterpart of `parts.cuh`."""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for

__all__ = ["pack_parts", "unpack_parts"]


@compiled
def pack_parts(array, packed, pieces, step):
    """Write parts of an array one behind the other.

    Args:
        array: Its elements, int32 whatever they mean.
        packed: Written.
        pieces: Of each piece its first element in the array, its place in `packed` and its number of elements, shape (n, 3), int64.
        step: Distance of the elements that are taken.
    """
    parallel_for(_pack_piece, pieces.shape[0], (array, packed, pieces, step), FEW)


@part
def _pack_piece(k, array, packed, pieces, step):
    first, at = pieces[k, 0], pieces[k, 1]
    for i in range(pieces[k, 2]):
        packed[at + i] = array[first + i * step]


@compiled
def unpack_parts(packed, array, pieces, step):
    """Write what `pack_parts` packed back to its places in the array."""
    parallel_for(_unpack_piece, pieces.shape[0], (packed, array, pieces, step), FEW)


@part
def _unpack_piece(k, packed, array, pieces, step):
    first, at = pieces[k, 0], pieces[k, 1]
    for i in range(pieces[k, 2]):
        array[first + i * step] = packed[at + i]
