"""Counting sort of particles by (block, material, cell) and the sparse grid that follows them.

| symbol | meaning |
|---|---|
| block | 4^3 cells; particles of a block are contiguous; its tile is the 2^3 grid blocks at coord + {0,1}^3 |
| body | number of what the particles of a block belong to: bodies with numbers of their own share no grid block |
| move | (dx, dy, dz) in {-2..2}^3 blocks: wherever an offset can represent (eight cells either way) |
| target | where the particles of an old block with one move go |
| key | (new block * materials + material) * 64 + cell, the bin of the counting sort |

The sort is stable and its chunks are whole blocks taken in order, so the result does not depend on the number of threads.
Nothing here depends on the extent of the domain: cost and memory follow the blocks that hold particles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.memory import prefetch

MOVES = 125


@part
def _locate_at(q, offset, stride, shift, block_start, block_count, place, moved):
    for d in range(MOVES):
        moved[q, d] = 0
    for p in range(block_start[q], block_start[q + 1]):
        cx = 2 + (offset[p] >> shift)
        cy = 2 + (offset[stride + p] >> shift)
        cz = 2 + (offset[2 * stride + p] >> shift)
        move = ((cx >> 2) + 2) * 25 + ((cy >> 2) + 2) * 5 + (cz >> 2) + 2
        place[p] = move * 64 + (cx & 3) * 16 + (cy & 3) * 4 + (cz & 3)
        moved[q, move] += 1


@compiled
def locate(offset, stride, shift, block_start, block_count, place, moved):
    """Write, per particle, move * 64 + cell into `place`, and count the particles of each block by move."""
    parallel_for(_locate_at, block_count, (offset, stride, shift, block_start, block_count, place, moved))


AXIS_BITS, BODY_BITS = 18, 9
FARTHEST = 1 << (AXIS_BITS - 1)
"""Block coordinates lie between minus this and this."""
MOST_BODIES = 1 << BODY_BITS


@inline
def pack_coord(x, y, z, body=0):
    """Pack block coordinates and a body into one sortable integer: blocks of one place follow each other, body by body."""
    x, y, z = np.int64(x) + FARTHEST, np.int64(y) + FARTHEST, np.int64(z) + FARTHEST
    return (x << (2 * AXIS_BITS + BODY_BITS)) | (y << (AXIS_BITS + BODY_BITS)) | (z << BODY_BITS) | np.int64(body)


@inline
def packed_neighbour(packed, x, y, z):
    """Return the packed coordinates of the block of the same body that lies x, y, z blocks away."""
    away = (np.int64(x) << (2 * AXIS_BITS)) + (np.int64(y) << AXIS_BITS) + np.int64(z)
    return packed + (away << BODY_BITS)


@compiled
def unpack_coord(packed, coord, body):
    """Write block coordinates and bodies of packed integers into `coord`, shape (n, 3), and `body`, shape (n,)."""
    axis = (1 << AXIS_BITS) - 1
    for q in range(packed.size):
        coord[q, 0] = (packed[q] >> (2 * AXIS_BITS + BODY_BITS)) - FARTHEST
        coord[q, 1] = ((packed[q] >> (AXIS_BITS + BODY_BITS)) & axis) - FARTHEST
        coord[q, 2] = ((packed[q] >> BODY_BITS) & axis) - FARTHEST
        body[q] = packed[q] & (MOST_BODIES - 1)


@compiled
def list_targets(coord, body, block_count, moved, packed):
    """List the packed coordinates that particles go to; return how many (with repetitions)."""
    n = 0
    for q in range(block_count):
        for d in range(MOVES):
            if moved[q, d] > 0:
                x, y, z = coord[q, 0] + d // 25 - 2, coord[q, 1] + d // 5 % 5 - 2, coord[q, 2] + d % 5 - 2
                packed[n] = pack_coord(x, y, z, body[q])
                n += 1
    return n


@compiled
def list_tiles(coord, body, block_count, packed):
    """List the packed coordinates of the 2^3 grid blocks of every particle block."""
    for q in range(block_count):
        for corner in range(8):
            packed[8 * q + corner] = pack_coord(
                coord[q, 0] + (corner >> 2), coord[q, 1] + ((corner >> 1) & 1), coord[q, 2] + (corner & 1), body[q]
            )


@compiled
def list_neighbours(coord, body, packed):
    """List the packed coordinates of each block and its 26 neighbours, shape (blocks, 27), the block itself in the middle."""
    for q in range(coord.shape[0]):
        for n in range(27):
            packed[q, n] = pack_coord(coord[q, 0] + n // 9 - 1, coord[q, 1] + n // 3 % 3 - 1, coord[q, 2] + n % 3 - 1, body[q])


class CountingSort(NamedTuple):
    """One sort under way.

    Attributes:
        block_start: First particle of each old block, and their number.
        chunk_block: First old block of each chunk, and their number.
        place: move * 64 + cell of each particle.
        key: Bin of each particle.
        counts: Particles of each chunk in each bin, shape (chunks, bins); later the place of the next one.
    """

    block_start: np.ndarray
    chunk_block: np.ndarray
    place: np.ndarray
    key: np.ndarray
    counts: np.ndarray


@part
def _histogram_at(c, sort, target, material, materials):
    block_start, chunk_block, place, key, counts = sort
    counts[c, :] = 0
    for q in range(chunk_block[c], chunk_block[c + 1]):
        for p in range(block_start[q], block_start[q + 1]):
            move, cell = place[p] >> 6, place[p] & 63
            k = (target[q, move] * materials + material[p]) * 64 + cell
            key[p] = k
            counts[c, k] += 1


@compiled
def histogram(sort, target, material, materials):
    """Turn places into sort keys and count them, chunk by chunk."""
    parallel_for(_histogram_at, sort.counts.shape[0], (sort, target, material, materials))


@compiled
def scan(counts, chunks, segment_start):
    """Exclusive prefix sums over (bin, chunk); also the starts of (block, material) segments, and the number of particles."""
    total = 0
    for s in range(segment_start.size - 1):
        segment_start[s] = total
        for k in range(64 * s, 64 * s + 64):
            for c in range(chunks):
                count = counts[c, k]
                counts[c, k] = total
                total += count
    segment_start[segment_start.size - 1] = total


@part
def _permutation_at(c, sort, source, home):
    block_start, chunk_block, place, key, counts = sort
    for p in range(block_start[chunk_block[c]], block_start[chunk_block[c + 1]]):
        at = counts[c, key[p]]
        counts[c, key[p]] = at + 1
        source[at] = p
        home[at] = place[p] >> 6


@compiled
def permutation(sort, source, home):
    """Write where each sorted particle comes from and which move its offset must undo."""
    parallel_for(_permutation_at, sort.counts.shape[0], (sort, source, home))


@part
def _move_rows_at(chunk, old, new, stride, rows, source, count):
    begin = np.int64(1024 * chunk)
    # slices, because an index into one array that may be negative is checked at every access: four times slower
    places = source[begin : min(np.int64(count), begin + 1024)]
    for r in range(rows):
        from_row = old[np.int64(r * stride) : np.int64((r + 1) * stride)]
        to_row = new[r * stride + begin : r * stride + begin + places.size]
        for i in range(to_row.size):
            prefetch(old, (r + 1) * stride + places[i])
            to_row[i] = from_row[places[i]]


@compiled
def move_rows(old, new, stride, rows, source, count):
    """Move the rows of one attribute through the permutation.

    The scattered reads of a row are asked for while the row before is moved: that doubles the speed.
    """
    parallel_for(_move_rows_at, (count + 1023) // 1024, (old, new, stride, rows, source, count))


@part
def _move_offsets_at(chunk, old, new, stride, source, home, count, block_unit):
    begin = np.int64(1024 * chunk)
    places = source[begin : min(np.int64(count), begin + 1024)]
    moves = home[begin : begin + places.size]
    for axis in range(3):
        digit = 25 if axis == 0 else (5 if axis == 1 else 1)
        from_row = old[np.int64(axis * stride) : np.int64((axis + 1) * stride)]
        to_row = new[axis * stride + begin : axis * stride + begin + places.size]
        for i in range(to_row.size):
            prefetch(old, (axis + 1) * stride + places[i])
            to_row[i] = from_row[places[i]] - (moves[i] // digit % 5 - 2) * block_unit


@compiled
def move_offsets(old, new, stride, source, home, count, block_unit):
    """Move the offsets and express them in their new block; `block_unit` is four cells in fixed point."""
    parallel_for(_move_offsets_at, (count + 1023) // 1024, (old, new, stride, source, home, count, block_unit))


BLOCK_COST = 8
"""Particles that take as long as filling and adding the tile of a block: some 700 instructions with AVX-512 and with AVX2."""


@part
def _share_out(ranges, order, shares):
    """Write where each share of the runs `order` begins: the next boundary to its part of all work."""
    threads, whole = shares.size - 1, 0
    for place in range(order.size):
        whole += ranges[order[place], 1] - ranges[order[place], 0] + BLOCK_COST
    share, done = 1, 0
    shares[0] = 0
    for place in range(order.size):
        work = ranges[order[place], 1] - ranges[order[place], 0] + BLOCK_COST
        while share < threads and (2 * done + work) * threads > 2 * whole * share:
            shares[share] = place
            share += 1
        done += work
    shares[share:] = order.size


@compiled
def share_runs(ranges, shares):
    """Share the runs (begin, end, block) among threads by the particles in them: share i is shares[i] .. shares[i + 1] - 1.

    Args:
        ranges: The runs, shape (n, 3).
        shares: Filled; shape (threads + 1,), int64.
    """
    _share_out(ranges, np.arange(ranges.shape[0]), shares)


@compiled
def colour_ranges(coord, ranges, colour_start, colour_range, colour_shares, shares):
    """List ranges (begin, end, block) by the parity of their blocks' coordinates: tiles of one colour never overlap.

    `colour_shares`, shape (8, threads + 1), are filled for each colour as by `share_runs`, counted from the colour's first entry,
    and `shares` for all.
    """
    n = 0
    for colour in range(8):
        colour_start[colour] = n
        for k in range(ranges.shape[0]):
            q = ranges[k, 2]
            if (coord[q, 0] & 1) * 4 + (coord[q, 1] & 1) * 2 + (coord[q, 2] & 1) == colour:
                colour_range[n] = k
                n += 1
        _share_out(ranges, colour_range[colour_start[colour] : n], colour_shares[colour])
    colour_start[8] = n
    _share_out(ranges, np.arange(n), shares)
