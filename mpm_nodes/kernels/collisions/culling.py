"""Which of sixteen points surely stay clear of a body: its distance in lanes, for all that is far from any contact.

A block of particles or nodes looks at a body through a frame: the body's poses seen from the block's centre, in cells, so that
single precision is enough. What is not found clear by `SLACK` takes the exact path in float64, so culling changes no result.

Symbols
    o, d        offset from the block's centre, displacement during the substep     cells
    y           position in the body's own frame                                    cells
    u           position in voxels, from the frame's first voxel                    voxels
    phi         signed distance                                                     cells
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.rules import signed_distance, to_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.lanes.arithmetic import (
    absolute,
    all_lanes,
    both,
    broadcast,
    broadcast_lanes,
    const,
    fma,
    maximum,
    minimum,
    select,
    sqrt,
)
from mpm_nodes.kernels.lanes.indexed import gather_lanes
from mpm_nodes.kernels.lanes.memory import bit_and, load_splat, shift_right, to_float, to_int
from mpm_nodes.kernels.level_sets.level_set import (
    BAND,
    CAPSULE,
    KEY_LATTICES,
    KIND,
    LEAF,
    LEAF_OFFSET,
    LEVEL_SET,
    OWN_SPEED,
    PADDED,
    PADDED_VOLUME,
    PLANE,
    POSE,
    SIZES,
    SPHERE,
    TABLE_LOW,
    TABLE_OFFSET,
    TABLE_SIZE,
    VOXEL,
)

SLACK = 1e-3
"""What counts as clear is clear by this distance [cells]: far above the rounding of lanes."""
FARTHEST = 14.0
"""No particle of a block is farther from its centre [cells]: offsets reach eight cells along each axis."""

# columns of a frame: rows of R^T at the first pose, of R^T at the end pose and of their difference; y of the block's centre and
# its displacement relative to the body; distance that the body's own motion adds, contact distance, slack, distance of the
# block's centre; sizes of a shape; rows of du/do, u of the block's centre, voxel and band of a level set
FIRST, LAST, TURN, PLACE, MOVE, OWN, TOUCHING, MARGIN, AT_CENTRE, SIZE = 0, 9, 18, 27, 30, 33, 34, 35, 36, 37
TO_VOXELS, CENTRE_VOXEL, VOXEL_SIZE, BAND_SIZE = 40, 49, 52, 53
FRAME_REALS = 54
# what the lanes know of a body (its kind, or NEITHER), first entry of the frame's part of the table, table rows, first leaf,
# and where the table ends [voxels]
FORM, ENTRY, ROW, SLICE, LEAVES, END = 0, 1, 2, 3, 4, 5
FRAME_INTEGERS = 8
NEITHER = 5
"""Form of a level set between two keys: there is only its distance at the block's centre."""


# ---------------------------------------------------------------- a block's view of a body
@compiled(fastmath=False)
def write_frame(frames, k, b, start, x, radius, motion, bodies):
    """Write frame k, body b as seen from a block's centre x, unless nothing within a radius can meet the body: return whether.

    Args:
        frames: FRAME_REALS per frame, flat, float32, and FRAME_INTEGERS per frame, flat, int32.
        k: The frame's place.
        b: Body.
        start: Which pose the points are compared with first: 0 for paths over the substep, 1 for points at its end.
        x: The block's centre [m].
        radius: Of the ball around x that holds all paths or points [cells].
        motion: Grid spacing [m]; substep [s], 0 for points; distance at which a path begins in contact [cells].
        bodies: All bodies.
    """
    (reals, integers), (x0, x1, x2), (h, dt, touching) = frames, x, motion
    real, at = bodies.real, k * FRAME_REALS
    p, q, cells = POSE + 12 * start, POSE + 12, 1.0 / h
    a0, a1, a2 = to_body(b, start, x0, x1, x2, real)
    c0, c1, c2 = to_body(b, 1, x0, x1, x2, real)
    own = dt * real[b, OWN_SPEED] * cells
    at_centre = signed_distance(b, float(start), a0, a1, a2, bodies) * cells
    moved = np.sqrt((c0 - a0) ** 2 + (c1 - a1) ** 2 + (c2 - a2) ** 2) * cells
    if at_centre > radius + moved + own + touching:
        return False
    for i in range(3):
        for j in range(3):
            reals[at + FIRST + 3 * i + j] = real[b, p + 3 * j + i]
            reals[at + LAST + 3 * i + j] = real[b, q + 3 * j + i]
            reals[at + TURN + 3 * i + j] = real[b, q + 3 * j + i] - real[b, p + 3 * j + i]
        reals[at + SIZE + i] = real[b, SIZES + i] * cells
    reals[at + PLACE], reals[at + PLACE + 1], reals[at + PLACE + 2] = a0 * cells, a1 * cells, a2 * cells
    reals[at + MOVE], reals[at + MOVE + 1] = (c0 - a0) * cells, (c1 - a1) * cells
    reals[at + MOVE + 2] = (c2 - a2) * cells
    reals[at + OWN], reals[at + TOUCHING] = own, touching
    reals[at + AT_CENTRE] = at_centre
    kind = bodies.integer[b, KIND]
    largest = abs(a1) if kind == PLANE else max(abs(a0), abs(a1), abs(a2))
    reals[at + MARGIN] = SLACK + 1e-6 * (largest * cells + FARTHEST)
    integers[k * FRAME_INTEGERS + FORM] = kind
    if kind == LEVEL_SET:
        _write_lattice(frames, k, b, p, (a0, a1, a2), h, bodies)
    return True


@part
def _write_lattice(frames, k, b, p, a, h, bodies):
    """Write what frame k knows of the level set of body b, whose pose is at column p and sees the block's centre at a."""
    (reals, integers), (a0, a1, a2) = frames, a
    at, place = k * FRAME_REALS, k * FRAME_INTEGERS
    lattice = bodies.integer[b, KEY_LATTICES]
    sampled = lattice == bodies.integer[b, KEY_LATTICES + 1] and lattice == bodies.integer[b, KEY_LATTICES + 3]
    integers[place + FORM] = LEVEL_SET
    if not sampled or len(bodies.values) < PADDED_VOLUME or max(len(bodies.values), len(bodies.table)) >= 1 << 31:
        integers[place + FORM] = NEITHER
        return
    ints, to_voxel, cells = bodies.lattice_integer, bodies.lattice_real, 1.0 / h
    entry = 0
    for i in range(3):
        size = ints[lattice, TABLE_SIZE + i]
        u = to_voxel[lattice, 4 * i] * a0 + to_voxel[lattice, 4 * i + 1] * a1 + to_voxel[lattice, 4 * i + 2] * a2
        u += to_voxel[lattice, 4 * i + 3] - LEAF * ints[lattice, TABLE_LOW + i]
        squares = 0.0
        for j in range(3):
            step = 0.0
            for m in range(3):
                step += to_voxel[lattice, 4 * i + m] * bodies.real[b, p + 3 * j + m]
            squares += step * step
            reals[at + TO_VOXELS + 3 * i + j] = step * h
        # from a leaf below the block on, so that indices keep their precision in large tables
        low = np.floor((u - FARTHEST * h * np.sqrt(squares)) / LEAF)
        leaf = int(min(max(low, 0.0), size - 1.0))
        entry = entry * size + leaf
        reals[at + CENTRE_VOXEL + i] = u - LEAF * leaf
        integers[place + END + i] = LEAF * (size - leaf)
    voxel, band = to_voxel[lattice, VOXEL], to_voxel[lattice, BAND]
    reals[at + VOXEL_SIZE], reals[at + BAND_SIZE] = voxel * cells, band * cells
    reals[at + MARGIN] = SLACK + 1e-6 * (4.0 * FARTHEST + (16.0 * voxel + band) * cells)
    integers[place + ENTRY] = ints[lattice, TABLE_OFFSET] + entry
    integers[place + ROW] = ints[lattice, TABLE_SIZE + 2]
    integers[place + SLICE] = ints[lattice, TABLE_SIZE + 1] * ints[lattice, TABLE_SIZE + 2]
    integers[place + LEAVES] = ints[lattice, LEAF_OFFSET]


# ---------------------------------------------------------------- sixteen points
@inline
def _length(x, y, z):
    return sqrt(fma(x, x, fma(y, y, z * z)))


@inline
def _row(reals, at, x, y, z):
    """Return the product of a row of a matrix and a vector."""
    return fma(load_splat(reals, at), x, fma(load_splat(reals, at + 1), y, load_splat(reals, at + 2) * z))


@inline
def clear_lanes(frames, k, o, d, per_metre, bodies):
    """Return the mask of the points that surely do not meet the body of frame k on their way from o by d.

    The test is the first one of the exact path: the body is farther away than the way relative to it is long.
    """
    (reals, integers), (o0, o1, o2), (d0, d1, d2) = frames, o, d
    at = k * FRAME_REALS
    m0 = load_splat(reals, at + MOVE) + _row(reals, at + TURN, o0, o1, o2) + _row(reals, at + LAST, d0, d1, d2)
    m1 = load_splat(reals, at + MOVE + 1) + _row(reals, at + TURN + 3, o0, o1, o2) + _row(reals, at + LAST + 3, d0, d1, d2)
    m2 = load_splat(reals, at + MOVE + 2) + _row(reals, at + TURN + 6, o0, o1, o2) + _row(reals, at + LAST + 6, d0, d1, d2)
    margin = load_splat(reals, at + MARGIN)
    way = fma(const(m0, 1.05), _length(m0, m1, m2), load_splat(reals, at + OWN) + margin)
    contact = load_splat(reals, at + TOUCHING) + margin
    phi = load_splat(reals, at + AT_CENTRE) - _length(o0, o1, o2)
    clear = both(phi > way, phi > contact)  # not the larger of the two: it would lose a NaN
    form = integers[k * FRAME_INTEGERS + FORM]
    if all_lanes(clear) or form == NEITHER:
        return clear
    if form == LEVEL_SET:
        phi = _lattice_distance(frames, k, o, per_metre, bodies)
    else:
        phi = _shape_distance(reals, at, form, o0, o1, o2)
    return both(phi > way, phi > contact)


@inline
def _shape_distance(reals, at, form, o0, o1, o2):
    y1 = load_splat(reals, at + PLACE + 1) + _row(reals, at + FIRST + 3, o0, o1, o2)
    if form == PLANE:
        return y1
    y0 = load_splat(reals, at + PLACE) + _row(reals, at + FIRST, o0, o1, o2)
    y2 = load_splat(reals, at + PLACE + 2) + _row(reals, at + FIRST + 6, o0, o1, o2)
    s0, s1, s2 = load_splat(reals, at + SIZE), load_splat(reals, at + SIZE + 1), load_splat(reals, at + SIZE + 2)
    zero = const(y0, 0.0)
    if form == SPHERE:
        return _length(y0, y1, y2) - s0
    if form == CAPSULE:
        return _length(y0, maximum(absolute(y1) - s1, zero), y2) - s0
    q0, q1, q2 = absolute(y0) - s0, absolute(y1) - s1, absolute(y2) - s2  # a box; inside it any distance below zero will do
    return select(maximum(maximum(q0, q1), q2) > zero, _length(maximum(q0, zero), maximum(q1, zero), maximum(q2, zero)), -s0)


@inline
def _beyond(u, end):
    """Return how far u lies outside 0 .. end."""
    zero = const(u, 0.0)
    return maximum(maximum(zero - u, u - end), zero)


@inline
def _index(u, end):
    """Return the last voxel of 0 .. end - 1 that is not above u, as integer lanes."""
    i = to_int(maximum(minimum(u, to_float(end)), const(u, 0.0)))
    last = end - broadcast_lanes(end, 1)
    return select(i < last, i, last)


@inline
def _lattice_distance(frames, k, o, per_metre, bodies):
    """Return phi of a level set, a lower bound outside its band, anything below zero deep inside; as `sample_lattice` does."""
    (reals, integers), (o0, o1, o2) = frames, o
    at, place = k * FRAME_REALS, k * FRAME_INTEGERS
    u0 = load_splat(reals, at + CENTRE_VOXEL) + _row(reals, at + TO_VOXELS, o0, o1, o2)
    u1 = load_splat(reals, at + CENTRE_VOXEL + 1) + _row(reals, at + TO_VOXELS + 3, o0, o1, o2)
    u2 = load_splat(reals, at + CENTRE_VOXEL + 2) + _row(reals, at + TO_VOXELS + 6, o0, o1, o2)
    end0, end1, end2 = (
        load_splat(integers, place + END),
        load_splat(integers, place + END + 1),
        load_splat(integers, place + END + 2),
    )
    i0, i1, i2 = _index(u0, end0), _index(u1, end1), _index(u2, end2)
    entry = (
        load_splat(integers, place + ENTRY)
        + shift_right(i0, 3) * load_splat(integers, place + SLICE)
        + shift_right(i1, 3) * load_splat(integers, place + ROW)
        + shift_right(i2, 3)
    )
    leaf, at_centre = gather_lanes(bodies.table, entry), gather_lanes(bodies.coarse, entry)
    nowhere, in_leaf = broadcast_lanes(leaf, 0), PADDED
    has_leaf = leaf >= nowhere
    base = (load_splat(integers, place + LEAVES) + leaf) * broadcast_lanes(leaf, PADDED_VOLUME) + bit_and(i2, LEAF - 1)
    base = base + (bit_and(i0, LEAF - 1) * broadcast_lanes(leaf, in_leaf) + bit_and(i1, LEAF - 1)) * broadcast_lanes(leaf, in_leaf)
    base = select(has_leaf, base, nowhere)
    f0, f1, f2 = u0 - to_float(i0), u1 - to_float(i1), u2 - to_float(i2)
    inside = broadcast(u0, per_metre) * _trilinear(bodies.values, base, f0, f1, f2)
    at_centre = broadcast(u0, per_metre) * at_centre
    voxel, band = load_splat(reals, at + VOXEL_SIZE), load_splat(reals, at + BAND_SIZE)
    zero = const(u0, 0.0)
    phi = select(has_leaf, inside, select(at_centre > zero, band, -band))
    half = const(u0, 0.5 * (LEAF - 1))
    c0 = to_float(bit_and(i0, LEAF - 1)) + f0 - half
    c1 = to_float(bit_and(i1, LEAF - 1)) + f1 - half
    c2 = to_float(bit_and(i2, LEAF - 1)) + f2 - half
    bound = at_centre - voxel * (_length(c0, c1, c2) + const(u0, 2.0))
    phi = select(both(phi >= band - voxel, bound > phi), bound, phi)
    d0, d1, d2 = _beyond(u0, to_float(end0)), _beyond(u1, to_float(end1)), _beyond(u2, to_float(end2))
    outside = _length(d0, d1, d2)
    return select(outside > zero, fma(voxel, outside, band), phi)


@inline
def _trilinear(values, base, f0, f1, f2):
    """Return the trilinear interpolant in the leaf cells whose first corners are `base`."""
    low = _bilinear(values, base, f1, f2)
    high = _bilinear(values, base + broadcast_lanes(base, PADDED * PADDED), f1, f2)
    return fma(f0, high - low, low)


@inline
def _bilinear(values, base, f1, f2):
    one, row = broadcast_lanes(base, 1), broadcast_lanes(base, PADDED)
    a, b = gather_lanes(values, base), gather_lanes(values, base + one)
    base = base + row
    c, d = gather_lanes(values, base), gather_lanes(values, base + one)
    ab, cd = fma(f2, b - a, a), fma(f2, d - c, c)
    return fma(f1, cd - ab, ab)
