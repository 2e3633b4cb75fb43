"""How the particles around a weak one lie: the weighted covariance of Y15 section 7.4, for a few particles among many.

| symbol | meaning | unit |
|---|---|---|
| d | x_q - x_p of a neighbour q of the particle p | h |
| w | cubic B-spline N(d_x) N(d_y) N(d_z): neighbours have w > 0, all three within 2 h | - |
| c | sum w m d / sum w m | h |
| V | sum w^2 m^2 (d - c)(d - c)^T / sum w^2 m^2 | h^2 |
| chunk | sixteen particles that follow each other in a block | - |
| box | lowest and highest offset along each axis, of a chunk or a block | fixed point |

Particles are sorted by cell, so a chunk is a small box: most blocks and chunks are left out by their box, the others take sixteen
neighbours at once. Sums run over blocks and chunks in one order, whatever the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.algebra.eigen import eigen
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import absolute, broadcast, const, fma, maximum, select
from mpm_nodes.kernels.lanes.memory import lane_constant, load, store, to_float
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.binning import pack_coord

LANE = lane_constant(range(WIDTH))


@part
def _mark_blocks_at(q, weak, block_start, marked):
    marked[q] = 0
    for p in range(block_start[q], block_start[q + 1]):
        if weak[p] != 0:
            marked[q] = 1


@compiled
def mark_blocks(weak, block_start, marked):
    """Mark the blocks that hold a weak particle."""
    parallel_for(_mark_blocks_at, marked.size, (weak, block_start, marked))


@part
def _find_near_blocks_at(k, block_coord, packed, marked_blocks, reach, near):
    q, n = marked_blocks[k], 0
    for x in range(-reach, reach + 1):
        for y in range(-reach, reach + 1):
            for z in range(-reach, reach + 1):
                key = pack_coord(block_coord[q, 0] + x, block_coord[q, 1] + y, block_coord[q, 2] + z)
                first = np.searchsorted(packed, key)
                last = first
                while last < packed.size and packed[last] == key:
                    last += 1
                near[k, n, 0], near[k, n, 1] = first, last
                n += 1


@compiled
def find_near_blocks(block_coord, packed, marked_blocks, reach, near):
    """Write which of the sorted block coordinates lie at most `reach` blocks away along each axis, per marked block.

    Args:
        block_coord: Shape (blocks, 3).
        packed: Packed block coordinates, ascending; blocks that share one follow each other.
        marked_blocks: Blocks to look around.
        reach: Blocks either way.
        near: Shape (marked blocks, (2 reach + 1)^3, 2): first and last + 1 place in `packed`.
    """
    parallel_for(_find_near_blocks_at, marked_blocks.size, (block_coord, packed, marked_blocks, reach, near))


@part
def _find_boxes_at(k, offset, stride, block_start, blocks, chunk_start, boxes, block_boxes):
    q, chunk = blocks[k], chunk_start[k]
    for first in range(block_start[q], block_start[q + 1], WIDTH):
        last = min(first + WIDTH, block_start[q + 1])
        for axis in range(3):
            low = high = offset[axis * stride + first]
            for p in range(first + 1, last):
                low, high = min(low, offset[axis * stride + p]), max(high, offset[axis * stride + p])
            boxes[chunk, axis], boxes[chunk, 3 + axis] = low, high
        chunk += 1
    for axis in range(3):
        low, high = boxes[chunk_start[k], axis], boxes[chunk_start[k], 3 + axis]
        for c in range(chunk_start[k] + 1, chunk):
            low, high = min(low, boxes[c, axis]), max(high, boxes[c, 3 + axis])
        block_boxes[q, axis], block_boxes[q, 3 + axis] = low, high


@compiled
def find_boxes(offset, stride, block_start, blocks, chunk_start, boxes, block_boxes):
    """Write the boxes of every chunk of the given blocks, shape (chunks, 6), and of these blocks, shape (all blocks, 6)."""
    parallel_for(_find_boxes_at, blocks.size, (offset, stride, block_start, blocks, chunk_start, boxes, block_boxes))


@inline
def _apart(boxes, k, x, y, z, reach):
    """Return whether box k lies farther than `reach` from the point along some axis."""
    # one branch, not six that are hard to predict
    gap = max(
        max(max(boxes[k, 0] - x, x - boxes[k, 3]), max(boxes[k, 1] - y, y - boxes[k, 4])), max(boxes[k, 2] - z, z - boxes[k, 5])
    )
    return gap >= reach


@inline
def _spline(d):
    """Return the cubic B-spline at the distance d [cells]."""
    o, one = const(d, 0.0), const(d, 1.0)
    a = absolute(d)
    u, v = maximum(o, one + one - a), maximum(o, one - a)
    return (u * u * u - const(d, 4.0) * v * v * v) * const(d, 1.0 / 6.0)


@part
def _add_block(points, first, end, chunk, boxes, place, inverse_mass, sums):
    """Add what the particles first .. end-1 of one block contribute to the sums over the neighbours of a particle.

    Args:
        points: Offsets, masses, stride of the rows, and fixed-point units per cell.
        place: Its position (x, y, z) in the block's own frame, fixed point.
        inverse_mass: One over its mass: the sums do not underflow.
        sums: Added to, lane by lane, sixteen values each: w m, three times w m d, w^2 m^2, three times w^2 m^2 d, six times
            w^2 m^2 d d^T (xx xy xz yy yz zz).
    """
    (offset, mass, stride, unit), (x, y, z) = points, place
    cells, reach = 1.0 / unit, 2 * np.int64(unit)
    s0, s1, s2, s3, s4 = load(sums, 0), load(sums, 16), load(sums, 32), load(sums, 48), load(sums, 64)
    s5, s6, s7, s8, s9 = load(sums, 80), load(sums, 96), load(sums, 112), load(sums, 128), load(sums, 144)
    s10, s11, s12, s13 = load(sums, 160), load(sums, 176), load(sums, 192), load(sums, 208)
    for i in range(first, end, WIDTH):
        chunk += 1
        if _apart(boxes, chunk - 1, x, y, z, reach):
            continue
        m = load(mass, i)
        scale = broadcast(m, cells)
        dx = to_float(load(offset, i)) * scale - broadcast(m, x * cells)
        dy = to_float(load(offset, stride + i)) * scale - broadcast(m, y * cells)
        dz = to_float(load(offset, 2 * stride + i)) * scale - broadcast(m, z * cells)
        w = _spline(dx) * _spline(dy) * _spline(dz) * m * broadcast(m, inverse_mass)
        w = select(LANE(m) < broadcast(m, end - i), w, const(m, 0.0))
        v = w * w
        vx, vy, vz = v * dx, v * dy, v * dz
        s0, s1, s2, s3, s4 = s0 + w, fma(w, dx, s1), fma(w, dy, s2), fma(w, dz, s3), s4 + v
        s5, s6, s7, s8, s9 = s5 + vx, s6 + vy, s7 + vz, fma(vx, dx, s8), fma(vx, dy, s9)
        s10, s11, s12, s13 = fma(vx, dz, s10), fma(vy, dy, s11), fma(vy, dz, s12), fma(vz, dz, s13)
    store(sums, 0, s0)
    store(sums, 16, s1)
    store(sums, 32, s2)
    store(sums, 48, s3)
    store(sums, 64, s4)
    store(sums, 80, s5)
    store(sums, 96, s6)
    store(sums, 112, s7)
    store(sums, 128, s8)
    store(sums, 144, s9)
    store(sums, 160, s10)
    store(sums, 176, s11)
    store(sums, 192, s12)
    store(sums, 208, s13)


@inline
def covariance(sums):
    """Return V of the sums of one particle, as nine values [h^2]."""
    cx, cy, cz = sums[1] / sums[0], sums[2] / sums[0], sums[3] / sums[0]
    k = 1.0 / sums[4]
    ex, ey, ez = k * sums[5], k * sums[6], k * sums[7]
    xx, yy, zz = k * sums[8] - cx * (ex + ex - cx), k * sums[11] - cy * (ey + ey - cy), k * sums[13] - cz * (ez + ez - cz)
    xy = k * sums[9] - cx * ey - cy * ex + cx * cy
    xz = k * sums[10] - cx * ez - cz * ex + cx * cz
    yz = k * sums[12] - cy * ez - cz * ey + cy * cz
    return (xx, xy, xz, xy, yy, yz, xz, yz, zz)


@inline
def is_thin(V, anisotropy):
    """Return whether min / max eigenvalue of V, or the largest one, is below `anisotropy`."""
    trace = mat3.trace(V)
    if trace >= 3.0 * anisotropy and mat3.is_positive(mat3.add_diagonal(V, -anisotropy * trace)):
        return False  # min > anisotropy trace: most particles need no eigenvalues
    _U, s = eigen(V)
    low, high = min(s[0], s[1], s[2]), max(s[0], s[1], s[2])
    return low < anisotropy * high or high < anisotropy


class Neighbourhood(NamedTuple):
    """Blocks around those that hold weak particles.

    Attributes:
        block_coord: Shape (blocks, 3).
        block_start: Shape (blocks + 1,).
        order: Blocks in the order of `near`.
        marked_blocks: Blocks that hold weak particles.
        near: From `find_near_blocks`.
        chunk_of: First chunk of each block.
        boxes, block_boxes: From `find_boxes`.
    """

    block_coord: np.ndarray
    block_start: np.ndarray
    order: np.ndarray
    marked_blocks: np.ndarray
    near: np.ndarray
    chunk_of: np.ndarray
    boxes: np.ndarray
    block_boxes: np.ndarray


@part
def _mark_thin_at(k, points, weak, around, anisotropy, thin):
    offset, mass, stride, unit = points
    block_coord, block_start, order, marked_blocks, near, chunk_of, boxes, block_boxes = around
    cell = np.int64(unit)
    q = marked_blocks[k]
    lanes, sums = np.empty(14 * WIDTH, mass.dtype), np.empty(14)
    for p in range(block_start[q], block_start[q + 1]):
        if weak[p] == 0:
            continue
        lanes[:] = 0.0
        for n in range(near.shape[1]):
            for j in range(near[k, n, 0], near[k, n, 1]):
                b = order[j]
                x = np.int64(offset[p]) + 4 * np.int64(block_coord[q, 0] - block_coord[b, 0]) * cell
                y = np.int64(offset[stride + p]) + 4 * np.int64(block_coord[q, 1] - block_coord[b, 1]) * cell
                z = np.int64(offset[2 * stride + p]) + 4 * np.int64(block_coord[q, 2] - block_coord[b, 2]) * cell
                if block_start[b] < block_start[b + 1] and not _apart(block_boxes, b, x, y, z, 2 * cell):
                    start, inverse_mass = block_start[b], 1.0 / np.float64(mass[p])
                    _add_block(points, start, block_start[b + 1], chunk_of[b], boxes, (x, y, z), inverse_mass, lanes)
        for n in range(14):
            sums[n] = 0.0
            for lane in range(WIDTH):
                sums[n] += lanes[n * WIDTH + lane]
        thin[p] = is_thin(covariance(sums), anisotropy)


@compiled(fastmath=False)
def mark_thin(points, weak, around, anisotropy, thin):
    """Mark the weak particles whose neighbours lie in a sheet, on a thread or in a point (Y15 Algorithm 15).

    Args:
        points: Fixed-point offsets in three rows, masses [kg], distance of rows, and fixed-point units per cell, a float.
        weak: 1 where a particle is weak.
        around: `Neighbourhood` of the blocks.
        anisotropy: A particle is marked where min / max eigenvalue of V, or the largest one over h^2, is below it.
        thin: Set to 1 where a particle is marked; shape (count,).
    """
    parallel_for(_mark_thin_at, around.marked_blocks.size, (points, weak, around, anisotropy, thin))
