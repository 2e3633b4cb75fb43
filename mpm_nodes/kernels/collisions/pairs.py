"""Bodies and walls as blocks near them see them, in single precision: what contacts on a device are found from.

A pair is a block, of the grid or of particles, and a body or wall in its reach. Its columns hold the body's motion and shape seen
from the middle of the block, in cells: what is computed from them is small, so that 32 bits lose nothing that matters. They are
written here in double precision, and a kernel needs no other.

Symbols
    o       place from the middle of the block, along the axes of the world     cells
    e       the same in the body's own frame, at the first pose                 cells
    y       place of the middle in the body's own frame, at the first pose      cells
    u       place in voxels                                                     voxels
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions import image_nodes, paths, response, rules, touching
from mpm_nodes.kernels.collisions.culling import FRAME_INTEGERS, FRAME_REALS, write_frame
from mpm_nodes.kernels.collisions.image_nodes import REACH
from mpm_nodes.kernels.collisions.node_surfaces import HALF_DIAGONAL
from mpm_nodes.kernels.collisions.rules import OPEN, signed_distance, to_body
from mpm_nodes.kernels.collisions.wall_contacts import may_touch
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets import level_set
from mpm_nodes.kernels.level_sets.level_set import (
    ADHESION,
    BAND,
    BOX,
    CAPSULE,
    DRIFT,
    FRICTION,
    HAS_VELOCITY,
    KEY_LATTICES,
    KEY_MIX,
    KEY_SPAN,
    KIND,
    LEAF,
    LEAF_OFFSET,
    LEVEL_SET,
    OWN_SPEED,
    PLANE,
    POSE,
    RULE,
    SIZES,
    SPHERE,
    TABLE_LOW,
    TABLE_OFFSET,
    TABLE_SIZE,
    VOXEL,
)

__all__ = ["PAIR_INTEGERS", "PAIR_REALS", "definitions", "mark_grid_blocks", "mark_particle_blocks", "write_pairs"]

# rows of R^T at the first pose, how they change until the end, displacement of the block's middle relative to the body, velocity
# of the body at the middle [m/s], its derivative along the axes of the body [m/s per cell], friction, adhesion [Pa], a lower bound
# on the distance of the middle, how far the body's own motion takes its surface in a substep
TURN, TURNS, MOVE, SPEED, SPIN, RUBS, STICKS, AT_MIDDLE, OWN = 0, 9, 18, 21, 24, 33, 34, 35, 36
# an analytic shape
SHAPE = 37
# or a level set: place between its two keys at the start and at the end, seconds between them, the velocity that carries them
# [m/s], and of each of the two the place in the voxel of the middle, rows of du/de, edge of a voxel [m], band [m]
MIX, SPAN_OF_KEYS, CARRIED, IN_VOXEL, TO_VOXELS, VOXEL_SIZE, BAND_SIZE, LATTICE_REALS = 37, 39, 40, 43, 46, 55, 56, 14
PAIR_REALS = 72
# block, kind of the shape, rule, place among bodies and walls, level sets that it is between, whether they carry velocities; of
# each level set the voxel of the middle from the table's first, size of the table in leaves, its first entry, its first leaf; the
# blocks around the block
BLOCK, FORM, HOW, WHICH, KEYS, HAS_SPEED, AT_VOXEL, LEAVES, ENTRY, FIRST_LEAF, LATTICE_INTEGERS = 0, 1, 2, 3, 4, 5, 6, 9, 12, 13, 8
AROUND = 22
PAIR_INTEGERS = 52


def definitions() -> str:
    """Return as C++ what kernels and this package must agree on."""
    here = globals()
    columns = "TURN TURNS MOVE SPEED SPIN RUBS STICKS AT_MIDDLE OWN SHAPE MIX SPAN_OF_KEYS CARRIED PAIR_REALS".split()
    columns += "IN_VOXEL TO_VOXELS VOXEL_SIZE BAND_SIZE LATTICE_REALS BLOCK FORM HOW WHICH KEYS HAS_SPEED".split()
    columns += "AT_VOXEL LEAVES ENTRY FIRST_LEAF LATTICE_INTEGERS AROUND PAIR_INTEGERS".split()
    numbers = {name: here[name] for name in columns}
    for module, names in (
        (level_set, "LEVEL_SET SPHERE BOX CAPSULE PLANE LEAF PADDED PADDED_VOLUME STEEP"),
        (rules, "STICKY SLIP SEPARATE OPEN DELETE"),
        (image_nodes, "GOAL DEEPEST STEEPEST HEAVIER"),
        (touching, "BEHIND AHEAD SHALLOWEST CLOSE HOLDS SPAN FARTHEST LEAST_FILLED"),
        (response, "OPPOSITE"),
        (paths, "MARGIN STEP PUSH BOUNCES LARGEST_SHIFT FASTEST"),
    ):
        numbers |= {name: getattr(module, name) for name in names.split()}
    return "".join(
        f"#define {name} {value}\n" if isinstance(value, int) else f"#define {name} ({float(value)!r}f)\n"
        for name, value in numbers.items()
    )


# ---------------------------------------------------------------- which pairs there are
@compiled(fastmath=False)
def mark_grid_blocks(coord, motion, walls, bodies, found):
    """Set the marks, shape (blocks, bodies + 6), uint8, of bodies and walls that nodes of grid blocks may be in contact with.

    Args:
        coord: Blocks, shape (n, 3).
        motion: Grid spacing [m]; grid origin in the frame of the bodies, shape (3,) [m].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        found: Written.
    """
    h, shift = motion
    given = (plain(coord), (h, plain(shift)), lend_plain(walls), lend_plain(bodies), plain(found))
    parallel_for(_mark_grid_block, found.shape[0], given)


@part
def _mark_grid_block(block, coord, motion, walls, bodies, found):
    h, shift = motion
    base = (4 * np.int64(coord[block, 0]), 4 * np.int64(coord[block, 1]), 4 * np.int64(coord[block, 2]))
    middle = (shift[0] + h * (base[0] + 1.5), shift[1] + h * (base[1] + 1.5), shift[2] + h * (base[2] + 1.5))
    frames, count = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32)), len(bodies.real)
    for b in range(count):
        found[block, b] = write_frame(frames, np.int64(0), b, np.int64(1), middle, HALF_DIAGONAL, (h, 0.0, REACH), bodies)
    for side in range(6):
        found[block, count + side] = int(walls.rules[side]) < OPEN and may_touch(side, base, (h, shift, 0.0), walls)


@compiled(fastmath=False)
def mark_particle_blocks(coord, motion, reach, walls, bodies, found, sides):
    """Set the marks, shape (blocks, bodies + 1), uint8, of bodies that paths of particles of a block may meet; last, of any wall.

    Args:
        coord: Blocks, shape (n, 3).
        motion: Grid spacing [m]; particle origin in the frame of the bodies, shape (3,) [m]; substep [s].
        reach: Farthest that a particle lies, and moves, from the middle of its block along an axis [cells].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        found: Written.
        sides: Written: places of the walls from the middle of each block [cells], shape (blocks, 6); infinite where there is none.
    """
    h, shift, dt = motion
    given = (plain(coord), (h, plain(shift), dt), reach, lend_plain(walls), lend_plain(bodies), plain(found), plain(sides))
    parallel_for(_mark_particle_block, found.shape[0], given)


@part
def _mark_particle_block(block, coord, motion, reach, walls, bodies, found, sides):
    (h, shift, dt), count = motion, len(bodies.real)
    middle = (
        shift[0] + h * (4.0 * coord[block, 0] + 3.5),
        shift[1] + h * (4.0 * coord[block, 1] + 3.5),
        shift[2] + h * (4.0 * coord[block, 2] + 3.5),
    )
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for b in range(count):
        touching_at = 1.5 * paths.MARGIN if bodies.integer[b, RULE] != rules.SEPARATE else 0.0
        found[block, b] = write_frame(frames, np.int64(0), b, np.int64(0), middle, 3.0**0.5 * reach, (h, dt, touching_at), bodies)
    near = False
    for side in range(6):
        centre = middle[0] if side < 2 else (middle[1] if side < 4 else middle[2])
        place = np.inf if side & 1 else -np.inf
        if walls.rules[side] != OPEN:
            place = (walls.box[side & 1, side >> 1] - centre) / h
        sides[block, side] = place
        near |= place < reach if side & 1 else place > -reach
    found[block, count] = near


# ---------------------------------------------------------------- what they are
@compiled(fastmath=False)
def write_pairs(which, blocks, motion, walls, bodies, pairs):
    """Write pairs.

    Args:
        which: Block of each; its body, or the number of bodies and a side; each shape (n,), int64.
        blocks: Coordinates of the blocks, shape (m, 3); place of a block's middle from its first node [cells]; which pose comes
            first: 0 for paths over the substep, 1 for nodes at its end.
        motion: Grid spacing [m]; origin of the blocks in the frame of the bodies, shape (3,) [m]; substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`, none of which passes a key of its shape in the substep.
        pairs: Written but for `AROUND`, shapes (n, PAIR_INTEGERS), int32, and (n, PAIR_REALS), float32.
    """
    (block, body), (coord, middle, start), (h, shift, dt), (integers, reals) = which, blocks, motion, pairs
    given = (
        (plain(block), plain(body)),
        (plain(coord), middle, start),
        (h, plain(shift), dt),
        lend_plain(walls),
        lend_plain(bodies),
    )
    parallel_for(_write_pair, block.shape[0], (*given, (plain(integers), plain(reals))))


@part
def _write_pair(k, which, blocks, motion, walls, bodies, pairs):
    (coord, middle, start), (h, shift, dt), (integers, reals) = blocks, motion, pairs
    block, b = which[0][k], which[1][k]
    x0 = shift[0] + h * (4.0 * coord[block, 0] + middle)
    x1 = shift[1] + h * (4.0 * coord[block, 1] + middle)
    x2 = shift[2] + h * (4.0 * coord[block, 2] + middle)
    integers[k, BLOCK], integers[k, WHICH] = block, b
    for column in range(PAIR_REALS):
        reals[k, column] = 0.0
    if b >= len(bodies.real):
        _write_wall(k, b - len(bodies.real), (x0, x1, x2), h, walls, integers, reals)
        return
    real, p, q, cells = bodies.real, POSE + 12 * start, POSE + 12, 1.0 / h
    integers[k, FORM], integers[k, HOW] = bodies.integer[b, KIND], bodies.integer[b, RULE]
    reals[k, RUBS], reals[k, STICKS] = real[b, FRICTION], real[b, ADHESION]
    y0, y1, y2 = to_body(b, start, x0, x1, x2, real)
    reals[k, OWN] = dt * real[b, OWN_SPEED] * cells
    reals[k, AT_MIDDLE] = signed_distance(b, float(start), y0, y1, y2, bodies) * cells
    z0, z1, z2 = to_body(b, 1, x0, x1, x2, real)
    reals[k, MOVE], reals[k, MOVE + 1], reals[k, MOVE + 2] = (z0 - y0) * cells, (z1 - y1) * cells, (z2 - y2) * cells
    for i in range(3):
        speed = real[b, q + 9 + i] - real[b, POSE + 9 + i]
        for j in range(3):
            reals[k, TURN + 3 * i + j] = real[b, p + 3 * j + i]
            reals[k, TURNS + 3 * i + j] = real[b, q + 3 * j + i] - real[b, p + 3 * j + i]
            change = real[b, q + 3 * i + j] - real[b, POSE + 3 * i + j]
            speed += change * (y0 if j == 0 else (y1 if j == 1 else y2))
            reals[k, SPIN + 3 * i + j] = change * h / dt
        reals[k, SPEED + i] = speed / dt
    if bodies.integer[b, KIND] == LEVEL_SET:
        _write_level_set(k, b, (y0, y1, y2), h, bodies, integers, reals)
    else:
        s = (real[b, SIZES] * cells, real[b, SIZES + 1] * cells, real[b, SIZES + 2] * cells)
        _write_shape(k, bodies.integer[b, KIND], (y0 * cells, y1 * cells, y2 * cells), s, reals)


@part
def _write_wall(k, side, x, h, walls, integers, reals):
    """Write a wall, as a plane."""
    axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
    along = x[0] if axis == 0 else (x[1] if axis == 1 else x[2])
    integers[k, FORM], integers[k, HOW] = PLANE, int(walls.rules[side])
    reals[k, RUBS], reals[k, SPEED + axis], reals[k, TURN + 3 + axis] = walls.rules[6], walls.rules[7 + side], sign
    reals[k, SHAPE] = sign * (along - walls.box[side & 1, axis]) / h


@part
def _write_shape(k, kind, y, s, reals):
    """Write an analytic shape; what is squared is squared here, and distances from faces are taken here.

    | shape | columns |
    |---|---|
    | plane | y1 |
    | sphere | y, its square less that of the radius, radius |
    | capsule | y0, y1 from the upper centre, y2, y1 from the lower one, radius, y0^2 + y2^2 - radius^2, squares of the two |
    | box | y - s, - y - s, sum of s |
    """
    (y0, y1, y2), (s0, s1, s2) = y, s
    if kind == PLANE:
        reals[k, SHAPE] = y1
    elif kind == BOX:
        reals[k, SHAPE], reals[k, SHAPE + 1], reals[k, SHAPE + 2] = y0 - s0, y1 - s1, y2 - s2
        reals[k, SHAPE + 3], reals[k, SHAPE + 4], reals[k, SHAPE + 5] = -y0 - s0, -y1 - s1, -y2 - s2
    else:
        low = y1 + s1 if kind == CAPSULE else y1
        high = y1 - s1 if kind == CAPSULE else y1
        reals[k, SHAPE], reals[k, SHAPE + 1], reals[k, SHAPE + 2], reals[k, SHAPE + 3] = y0, high, y2, low
        reals[k, SHAPE + 4], reals[k, SHAPE + 5] = s0, y0 * y0 + y2 * y2 - s0 * s0
        reals[k, SHAPE + 6], reals[k, SHAPE + 7] = high * high, low * low
        if kind == SPHERE:
            reals[k, SHAPE + 5], reals[k, SHAPE + 6] = y0 * y0 + y1 * y1 + y2 * y2 - s0 * s0, 0.0


@part
def _write_level_set(k, b, y, h, bodies, integers, reals):
    """Write a level set, which lies between the same two keys all through the substep, or has one alone."""
    first, real = bodies.integer[b, KEY_LATTICES + 2], bodies.real
    changes = first != bodies.integer[b, KEY_LATTICES + 3]
    integers[k, KEYS], integers[k, HAS_SPEED] = 1 + int(changes), bodies.integer[b, HAS_VELOCITY]
    reals[k, MIX], reals[k, MIX + 1], reals[k, SPAN_OF_KEYS] = real[b, KEY_MIX], real[b, KEY_MIX + 1], real[b, KEY_SPAN + 1]
    for i in range(3):
        reals[k, CARRIED + i] = real[b, DRIFT + 3 + i]
    for key in range(1 + int(changes)):
        _write_lattice(k, key, bodies.integer[b, KEY_LATTICES + 2 + key], y, h, bodies, integers, reals)


@part
def _write_lattice(k, key, lattice, y, h, bodies, integers, reals):
    ints, to_voxel = bodies.lattice_integer, bodies.lattice_real
    whole, of = key * LATTICE_INTEGERS, key * LATTICE_REALS
    for i in range(3):
        u = to_voxel[lattice, 4 * i] * y[0] + to_voxel[lattice, 4 * i + 1] * y[1] + to_voxel[lattice, 4 * i + 2] * y[2]
        u += to_voxel[lattice, 4 * i + 3] - LEAF * ints[lattice, TABLE_LOW + i]
        voxel = np.floor(u)
        integers[k, whole + AT_VOXEL + i], integers[k, whole + LEAVES + i] = int(voxel), ints[lattice, TABLE_SIZE + i]
        reals[k, of + IN_VOXEL + i] = u - voxel
        for j in range(3):
            reals[k, of + TO_VOXELS + 3 * i + j] = to_voxel[lattice, 4 * i + j] * h
    integers[k, whole + ENTRY], integers[k, whole + FIRST_LEAF] = ints[lattice, TABLE_OFFSET], ints[lattice, LEAF_OFFSET]
    reals[k, of + VOXEL_SIZE], reals[k, of + BAND_SIZE] = to_voxel[lattice, VOXEL], to_voxel[lattice, BAND]
