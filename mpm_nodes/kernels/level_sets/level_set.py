"""Posed signed-distance bodies: what the collision kernels sample.

A body is an analytic shape (sphere, box, capsule, plane) or one or several level sets keyed in time, and a rigid motion.
A level set is stored in leaves of 8^3 voxels with an apron of one voxel (9^3 values, so that a trilinear sample touches one
leaf), a dense table over leaf coordinates, and one coarse distance per table entry: deep inside the body, where a narrow
band holds no distance, the coarse field still says which way is out; far outside it bounds the distance from below.

Symbols
    phi     signed distance, negative inside                       m
    y       position in the body's own frame                       m
    R, t    pose: x = R y + t                                      -, m
    u       position in voxel indices, u = A y + b                 voxels
    key     (time, level set) of a deforming body
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import inline, part

LEVEL_SET, SPHERE, BOX, CAPSULE, PLANE = range(5)

# columns of Bodies.real: friction, four sizes, the poses at the start and the end of the substep, then per end of the
# substep: place between its two keys (0..1), seconds between them, and the drift velocity of the body between them; a bound
# on the speed of the level set in its own frame; last, the adhesion [Pa]
FRICTION, SIZES, POSE, KEY_MIX, KEY_SPAN, DRIFT, OWN_SPEED, ADHESION = 0, 1, 5, 29, 31, 33, 39, 40
BODY_REALS = 41
# columns of Bodies.integer: kind, rule, level sets of the two keys (start, end), whether they carry velocities, place of the first
# among the plates that keep their two sides apart (`collisions.sides`), -1: none, and how many there are
KIND, RULE, KEY_LATTICES, HAS_VELOCITY, PLATE, PLATES = 0, 1, 2, 6, 7, 8
BODY_INTEGERS = 9
# columns of the lattice tables; SHEETS is the first of the lattices that hold the sheets of a level set (`sheet_fields`), -1: none
TABLE_OFFSET, TABLE_SIZE, TABLE_LOW, LEAF_OFFSET, SHEETS = 0, 1, 4, 7, 8
LATTICE_INTEGERS = 9
TO_INDEX, VOXEL, BAND = 0, 12, 13
LATTICE_REALS = 14

LEAF = 8
PADDED = LEAF + 1
PADDED_VOLUME = PADDED**3

FAR = 1e9
"""Distance from a sheet where no part of it is near [m]."""
ON_PLANE = 1e-6
"""Points nearer than this to a plane of voxels lie on it [voxels]: rounding does not choose between its two sides."""
STEEP = 4.0
"""No distance changes as fast as this from voxel to voxel [1]: one that does is of a place beside which no sheet is known."""


class Bodies(NamedTuple):
    """Every body of a solve as flat arrays; kernels `lend` it to the functions that they call."""

    integer: np.ndarray
    real: np.ndarray
    lattice_integer: np.ndarray
    lattice_real: np.ndarray
    table: np.ndarray
    coarse: np.ndarray
    values: np.ndarray
    velocities: np.ndarray
    coarse_velocities: np.ndarray


class WallPlanes(NamedTuple):
    """The walls of a domain.

    Attributes:
        box: Corners (2, 3) in the frame of the bodies [m].
        rules: Rules of the sides -x +x -y +y -z +z, one friction, the sides' speeds along their axes [m/s], shape (13,).
    """

    box: np.ndarray
    rules: np.ndarray


# ---------------------------------------------------------------- what travels in `Collider.shape`
@dataclass(frozen=True, eq=False)
class LeafLevelSet:
    """A level set ready to be sampled; build it with `level_set_build.leaf_level_set`.

    Attributes:
        to_index: A (3, 3) and b as one (3, 4) array: voxel index = A y + b.
        voxel_size: Edge of a voxel [m].
        band: Distance at which values are clamped [m].
        low: Leaf coordinate of the table's first entry, shape (3,).
        table: Leaf number or -1, shape (nx, ny, nz), int32.
        coarse: Signed distance at leaf centres [m], shape (nx, ny, nz), float32.
        values: Leaf values with apron [m], shape (leaves, 9, 9, 9), float32.
        velocities: Velocity of the body at the same voxels [m/s], shape (leaves, 9, 9, 9, 3), float32, or None.
        coarse_velocities: Velocity at leaf centres [m/s], shape (nx, ny, nz, 3), float32, or None.
        centre: Centre of the body's inside [m], shape (3,): its drift between keys stands in for a missing velocity.
    """

    to_index: np.ndarray
    voxel_size: float
    band: float
    low: np.ndarray
    table: np.ndarray
    coarse: np.ndarray
    values: np.ndarray
    velocities: np.ndarray | None
    coarse_velocities: np.ndarray | None
    centre: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self.table, self.coarse, self.values, self.velocities, self.coarse_velocities)
        return sum(array.nbytes for array in arrays if array is not None)


@dataclass(frozen=True, eq=False)
class PosedLevelSets:
    """A body and its motion over the frame that ends at the cooked one.

    Attributes:
        kind: LEVEL_SET, SPHERE, BOX, CAPSULE or PLANE.
        sizes: Sphere: radius. Box: half edges. Capsule (along y): radius, half length. Plane (y = 0, solid below): none [m].
        pose_times: Seconds since the start frame, ascending, shape (k,).
        rotations: Unit quaternions w x y z, shape (k, 4).
        translations: [m], shape (k, 3).
        level_sets: The level sets of a LEVEL_SET body: one, or one per key.
        level_set_times: Their times [s], ascending.
    """

    kind: int
    sizes: tuple[float, ...] = ()
    pose_times: np.ndarray = None
    rotations: np.ndarray = None
    translations: np.ndarray = None
    level_sets: tuple[LeafLevelSet, ...] = ()
    level_set_times: np.ndarray = None

    def __post_init__(self) -> None:
        times = np.zeros(1) if self.pose_times is None else np.asarray(self.pose_times, np.float64).reshape(-1)
        count = len(times)
        still = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        rotations = still if self.rotations is None else np.asarray(self.rotations, np.float64).reshape(count, 4)
        moves = np.zeros((count, 3)) if self.translations is None else np.asarray(self.translations, np.float64)
        keys = np.zeros(len(self.level_sets)) if self.level_set_times is None else self.level_set_times
        object.__setattr__(self, "pose_times", times)
        object.__setattr__(self, "rotations", _same_hemisphere(rotations))
        object.__setattr__(self, "translations", moves.reshape(count, 3))
        object.__setattr__(self, "level_set_times", np.asarray(keys, np.float64).reshape(-1))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(level_set.nbytes for level_set in self.level_sets)


def _same_hemisphere(rotations: np.ndarray) -> np.ndarray:
    """Flip signs so that neighbouring quaternions are joined by the shorter arc."""
    rotations = rotations / np.linalg.norm(rotations, axis=1, keepdims=True)
    for k in range(1, len(rotations)):
        if rotations[k] @ rotations[k - 1] < 0.0:
            rotations[k] = -rotations[k]
    return rotations


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z) of a rotation matrix, shape (3, 3)."""
    m = np.asarray(rotation, np.float64)
    squares = np.array(
        [
            1 + m[0, 0] + m[1, 1] + m[2, 2],
            1 + m[0, 0] - m[1, 1] - m[2, 2],
            1 - m[0, 0] + m[1, 1] - m[2, 2],
            1 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    products = np.array(
        [
            [squares[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], squares[1], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], squares[2], m[1, 2] + m[2, 1]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[3]],
        ]
    )
    row = products[int(np.argmax(squares))]
    return row / np.linalg.norm(row)


# ---------------------------------------------------------------- packing
def pack_level_sets(level_sets: Sequence[LeafLevelSet]) -> tuple[np.ndarray, ...]:
    """Return the lattice arrays of `Bodies` (from `lattice_integer` on) for these level sets, in order."""
    integers = np.zeros((len(level_sets), LATTICE_INTEGERS), np.int64)
    reals = np.zeros((len(level_sets), LATTICE_REALS))
    entries = leaves = 0
    moving = any(level_set.velocities is not None for level_set in level_sets)
    parts: list[list[np.ndarray]] = [[], [], [], [], []]
    for k, level_set in enumerate(level_sets):
        integers[k] = (entries, *level_set.table.shape, *level_set.low, leaves, -1)
        reals[k] = (*level_set.to_index.ravel(), level_set.voxel_size, level_set.band)
        entries += level_set.table.size
        leaves += len(level_set.values)
        flat = [level_set.table, level_set.coarse, level_set.values]
        if moving:
            still = level_set.velocities is None
            flat.append(np.zeros((*level_set.values.shape, 3), np.float32) if still else level_set.velocities)
            flat.append(np.zeros((*level_set.table.shape, 3), np.float32) if still else level_set.coarse_velocities)
        for store, array in zip(parts, flat, strict=False):
            store.append(array.reshape(-1))
    kinds = (np.int32, np.float32, np.float32, np.float32, np.float32)
    return integers, reals, *(_joined(part, kind) for part, kind in zip(parts, kinds, strict=True))


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    """Join flat arrays; a single one is not copied. Read-only views are fine here: kernels only load from them."""
    if len(parts) == 1:
        array = parts[0]
        return array if array.flags.writeable else array.copy()
    return np.concatenate(parts) if parts else np.zeros(1, kind)


# ---------------------------------------------------------------- sampling one level set
@inline
def _trilinear_cell(values, base, stride_x, stride_y, fx, fy, fz):
    """Return value and gradient (per cell) of the trilinear interpolant in the cell whose first corner is `base`."""
    a, b = values[base], values[base + 1]
    c, d = values[base + stride_y], values[base + stride_y + 1]
    base += stride_x
    e, f = values[base], values[base + 1]
    g, h = values[base + stride_y], values[base + stride_y + 1]
    gx, gy, gz = 1.0 - fx, 1.0 - fy, 1.0 - fz
    ab, cd, ef, gh = a * gz + b * fz, c * gz + d * fz, e * gz + f * fz, g * gz + h * fz
    low, high = ab * gy + cd * fy, ef * gy + gh * fy
    dz = gx * (gy * (b - a) + fy * (d - c)) + fx * (gy * (f - e) + fy * (h - g))
    return low * gx + high * fx, high - low, gx * (cd - ab) + fx * (gh - ef), dz


@inline
def _trilinear_leaf(k, u, bodies):
    """Return leaf, value [m] and slopes [m a voxel] of lattice k at u, voxels from the table's first.

    The interpolant has two slopes across a plane of voxels, and nodes of the grid often lie on one. There the mean of the two is
    taken: that of one side would turn the normals of all such nodes one way, and those of a mirrored body not the mirrored way.
    """
    leaf, phi, g0, g1, g2, f0, f1, f2 = _trilinear_at(k, u[0], u[1], u[2], bodies)
    if leaf >= 0 and min(min(f0, f1, f2), 1.0 - max(f0, f1, f2)) < ON_PLANE:
        if abs(phi) >= (1.0 - 1e-6) * bodies.lattice_real[k, BAND]:  # the end of the band, where one side is level
            return leaf, phi, 0.0, 0.0, 0.0
        g0 = _mean_slope(k, u, (1.0, 0.0, 0.0), f0, (phi, g0), bodies)
        g1 = _mean_slope(k, u, (0.0, 1.0, 0.0), f1, (phi, g1), bodies)
        g2 = _mean_slope(k, u, (0.0, 0.0, 1.0), f2, (phi, g2), bodies)
    return leaf, phi, g0, g1, g2


@part
def _mean_slope(k, u, along, f, met, bodies):
    """Return the mean of the slopes on the two sides of u where f, its place in its cell along an axis, is on a plane of voxels.

    `met` is the value at u and the slope in its cell. Where only one side is known it is the slope there, and 0 where none is.
    """
    phi, slope = met
    if ON_PLANE <= f <= 1.0 - ON_PLANE:
        return slope
    way = -1.0 if f < ON_PLANE else 1.0
    beyond = _trilinear_at(k, u[0] + way * along[0], u[1] + way * along[1], u[2] + way * along[2], bodies)[1]
    other, steep = way * (beyond - phi), STEEP * bodies.lattice_real[k, VOXEL]
    if abs(other) >= steep:
        return slope if abs(slope) < steep else 0.0
    return 0.5 * (slope + other) if abs(slope) < steep else other


@part
def _trilinear_at(k, u0, u1, u2, bodies):
    """Return leaf (-1: none), value and slopes in the cell of u, and the place of u in it; without a leaf the slopes are 0."""
    ints, band = bodies.lattice_integer, bodies.lattice_real[k, BAND]
    i0, i1, i2 = int(u0), int(u1), int(u2)
    l0, l1, l2 = i0 // LEAF, i1 // LEAF, i2 // LEAF
    entry = ints[k, TABLE_OFFSET] + (l0 * ints[k, 2] + l1) * ints[k, 3] + l2
    leaf = bodies.table[entry]
    f0, f1, f2 = u0 - i0, u1 - i1, u2 - i2
    if leaf < 0:
        return leaf, band if bodies.coarse[entry] > 0.0 else -band, 0.0, 0.0, 0.0, f0, f1, f2
    base = (ints[k, LEAF_OFFSET] + leaf) * PADDED_VOLUME
    base += ((i0 - LEAF * l0) * PADDED + (i1 - LEAF * l1)) * PADDED + (i2 - LEAF * l2)
    phi, g0, g1, g2 = _trilinear_cell(bodies.values, base, PADDED * PADDED, PADDED, f0, f1, f2)
    return leaf, phi, g0, g1, g2, f0, f1, f2


@inline
def _in_table(k, y0, y1, y2, bodies):
    """Return y in voxels of lattice k, from its table's first."""
    ints, reals = bodies.lattice_integer, bodies.lattice_real
    u0 = reals[k, 0] * y0 + reals[k, 1] * y1 + reals[k, 2] * y2 + reals[k, 3]
    u1 = reals[k, 4] * y0 + reals[k, 5] * y1 + reals[k, 6] * y2 + reals[k, 7]
    u2 = reals[k, 8] * y0 + reals[k, 9] * y1 + reals[k, 10] * y2 + reals[k, 11]
    return u0 - LEAF * ints[k, 4], u1 - LEAF * ints[k, 5], u2 - LEAF * ints[k, 6]


@inline
def _has(k, u0, u1, u2, ints):
    """Return whether the table of lattice k holds u; it does not hold NaN."""
    return u0 >= 0.0 and u1 >= 0.0 and u2 >= 0.0 and u0 < LEAF * ints[k, 1] and u1 < LEAF * ints[k, 2] and u2 < LEAF * ints[k, 3]


@inline
def _outside(k, u0, u1, u2, bodies):
    """Return a lower bound of the distance at u outside the table of lattice k [m]."""
    ints, reals = bodies.lattice_integer, bodies.lattice_real
    d0 = max(-u0, u0 - LEAF * ints[k, 1], 0.0)
    d1 = max(-u1, u1 - LEAF * ints[k, 2], 0.0)
    d2 = max(-u2, u2 - LEAF * ints[k, 3], 0.0)
    return reals[k, BAND] + reals[k, VOXEL] * np.sqrt(d0 * d0 + d1 * d1 + d2 * d2)


@inline
def _beyond_band(k, u0, u1, u2, bodies):
    """Return what the distance at the centre of u's leaf says of that at u: it is 1-Lipschitz, and within 2 voxels [m]."""
    ints, voxel = bodies.lattice_integer, bodies.lattice_real[k, VOXEL]
    l0, l1, l2 = int(u0) // LEAF, int(u1) // LEAF, int(u2) // LEAF
    c0, c1, c2 = u0 - LEAF * l0 - 3.5, u1 - LEAF * l1 - 3.5, u2 - LEAF * l2 - 3.5
    at_centre = bodies.coarse[ints[k, TABLE_OFFSET] + (l0 * ints[k, 2] + l1) * ints[k, 3] + l2]
    return at_centre - voxel * (np.sqrt(c0 * c0 + c1 * c1 + c2 * c2) + 2.0)


@part
def sample_lattice(k, y0, y1, y2, bodies):
    """Return phi [m] and its gradient in the body's frame at y for lattice k; a lower bound far outside."""
    reals = bodies.lattice_real
    u0, u1, u2 = _in_table(k, y0, y1, y2, bodies)
    if not _has(k, u0, u1, u2, bodies.lattice_integer):
        return _outside(k, u0, u1, u2, bodies), 0.0, 0.0, 0.0
    voxel, band = reals[k, VOXEL], reals[k, BAND]
    _, phi, g0, g1, g2 = _trilinear_leaf(k, (u0, u1, u2), bodies)
    if phi >= band - voxel:
        phi = max(phi, _beyond_band(k, u0, u1, u2, bodies))
    elif phi <= voxel - band:
        phi, g0, g1, g2 = _deep(k, (u0, u1, u2), phi, (g0, g1, g2), bodies)
    return (
        phi,
        g0 * reals[k, 0] + g1 * reals[k, 4] + g2 * reals[k, 8],
        g0 * reals[k, 1] + g1 * reals[k, 5] + g2 * reals[k, 9],
        g0 * reals[k, 2] + g1 * reals[k, 6] + g2 * reals[k, 10],
    )


@part
def lattice_distance(k, y0, y1, y2, bodies):
    """Return phi [m] as `sample_lattice` does."""
    u0, u1, u2 = _in_table(k, y0, y1, y2, bodies)
    if not _has(k, u0, u1, u2, bodies.lattice_integer):
        return _outside(k, u0, u1, u2, bodies)
    voxel, band = bodies.lattice_real[k, VOXEL], bodies.lattice_real[k, BAND]
    phi = _trilinear_at(k, u0, u1, u2, bodies)[1]
    if phi >= band - voxel:
        return max(phi, _beyond_band(k, u0, u1, u2, bodies))
    if phi <= voxel - band:
        return _deep(k, (u0, u1, u2), phi, (0.0, 0.0, 0.0), bodies)[0]
    return phi


@inline
def _deep(k, u, phi, g, bodies):
    """Replace a clamped inside value and gradient by the interpolated distance between leaf centres, where that is deeper."""
    (u0, u1, u2), (g0, g1, g2) = u, g
    ints = bodies.lattice_integer
    n0, n1, n2 = ints[k, 1], ints[k, 2], ints[k, 3]
    c0, c1, c2 = (u0 - 3.5) / LEAF, (u1 - 3.5) / LEAF, (u2 - 3.5) / LEAF
    i0 = min(max(int(np.floor(c0)), 0), n0 - 2)
    i1 = min(max(int(np.floor(c1)), 0), n1 - 2)
    i2 = min(max(int(np.floor(c2)), 0), n2 - 2)
    base = ints[k, TABLE_OFFSET] + (i0 * n1 + i1) * n2 + i2
    deep, d0, d1, d2 = _trilinear_cell(bodies.coarse, base, n1 * n2, n2, c0 - i0, c1 - i1, c2 - i2)
    if deep < phi or (g0 == 0.0 and g1 == 0.0 and g2 == 0.0):
        return min(deep, phi), d0 / LEAF, d1 / LEAF, d2 / LEAF
    return phi, g0, g1, g2


@part
def sample_sheet(k, y0, y1, y2, with_half, bodies):
    """Return the distance from the middle of the sheet of lattice k [m], its gradient, and half the sheet's thickness [m].

    Positive in front; in the body's frame; at least `FAR` where no part of the sheet is near. `with_half` asks for the thickness,
    which is 0 else.
    """
    reals = bodies.lattice_real
    u0, u1, u2 = _in_table(k, y0, y1, y2, bodies)
    if not _has(k, u0, u1, u2, bodies.lattice_integer):
        return FAR, 0.0, 0.0, 0.0, 0.0
    leaf, across, g0, g1, g2 = _trilinear_leaf(k, (u0, u1, u2), bodies)
    if leaf < 0:
        return FAR, 0.0, 0.0, 0.0, 0.0
    half = _trilinear_at(k + 1, u0, u1, u2, bodies)[1] if with_half else 0.0
    return (
        across,
        g0 * reals[k, 0] + g1 * reals[k, 4] + g2 * reals[k, 8],
        g0 * reals[k, 1] + g1 * reals[k, 5] + g2 * reals[k, 9],
        g0 * reals[k, 2] + g1 * reals[k, 6] + g2 * reals[k, 10],
        half,
    )


@part
def sample_velocity(k, y0, y1, y2, bodies):
    """Return the velocity of lattice k at y, in the body's frame [m/s]: trilinear in a leaf, else the nearest surface's."""
    ints = bodies.lattice_integer
    n0, n1, n2 = ints[k, 1], ints[k, 2], ints[k, 3]
    u0, u1, u2 = _in_table(k, y0, y1, y2, bodies)
    u0 = min(max(u0, 0.0), LEAF * n0 - 0.5)
    u1 = min(max(u1, 0.0), LEAF * n1 - 0.5)
    u2 = min(max(u2, 0.0), LEAF * n2 - 0.5)
    i0, i1, i2 = int(u0), int(u1), int(u2)
    l0, l1, l2 = i0 // LEAF, i1 // LEAF, i2 // LEAF
    entry = ints[k, TABLE_OFFSET] + (l0 * n1 + l1) * n2 + l2
    leaf = bodies.table[entry]
    if leaf < 0:
        far = bodies.coarse_velocities
        return float(far[3 * entry]), float(far[3 * entry + 1]), float(far[3 * entry + 2])
    base = (ints[k, LEAF_OFFSET] + leaf) * PADDED_VOLUME
    base += ((i0 - LEAF * l0) * PADDED + (i1 - LEAF * l1)) * PADDED + (i2 - LEAF * l2)
    v0 = v1 = v2 = 0.0
    for corner in range(8):
        a, b, c = corner >> 2, (corner >> 1) & 1, corner & 1
        weight = (abs(1 - a - (u0 - i0))) * (abs(1 - b - (u1 - i1))) * (abs(1 - c - (u2 - i2)))
        at = 3 * (base + (a * PADDED + b) * PADDED + c)
        v0 += weight * bodies.velocities[at]
        v1 += weight * bodies.velocities[at + 1]
        v2 += weight * bodies.velocities[at + 2]
    return v0, v1, v2
