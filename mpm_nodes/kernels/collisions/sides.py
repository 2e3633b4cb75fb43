"""The two sides of thin plates: matter on either side has nodes of its own (after CPIC, Hu 2018).

| symbol | meaning |
|---|---|
| plate | a box, or a sheet of a level set, through which splines reach from side to side; two bits in every word below |
| sides of matter | per plate 0 (far from it), FRONT or BACK |
| sides of a node | per plate 0 (beyond its rim, or far from it), FRONT or BACK |
| copies | nodes at one place, one for each sides of the matter around |
| master | the first of the copies at one place that no plate keeps apart |

Particles of different sides share no block of the grid. Copies whose matter lies on the same side of every plate that has sides at
their place are one node: their momenta are added, and each gets the sum. Beyond the rim of a plate that holds for all copies, so
that a plate is felt where it is and nowhere else. What a plate does to its two nodes at one place, `grid` and `response` say.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.posing import EVEN, across_sheet, beyond_sheet, sheet_of_body
from mpm_nodes.kernels.collisions.rules import sample, signed_distance, striped, striped_places, to_body, world_normal
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import FAR, KIND, LEVEL_SET, PLATE, PLATES, SIZES

__all__ = [
    "MOST_PLATES",
    "PAIRS",
    "find_masters",
    "hand_out",
    "join_copies",
    "mark_sides",
    "nearer_part",
    "side_of_plate",
    "sides_of_particles",
    "sides_seen",
    "slide_off_edge",
    "through_plate",
]

FRONT, BACK = 1, 2
MOST_PLATES = 31
PAIRS = 0x1555555555555555
"""The lower bit of every plate."""

NEAR = 3.0
"""Particles nearer to a plate than this belong to a side [cells]: the widest spline reaches 2, and plates move up to a cell."""
SLOWLY = 0.5
"""They keep it this much farther, so that what trembles there is not sorted again and again [cells]."""
DEEP = 3.5
"""Nodes nearer to a plate than this have copies kept apart by it [cells]: what particles of either side reach beyond it."""
BLUNT = 0.5
"""A thinner plate has an edge that cuts: what meets it slides off to a face [cells]."""
ON_RIM = 1e-6
"""Nodes on the rim have sides, whatever the rounding [cells]."""
HALF_DIAGONAL = 2.6
"""No node of a block is farther from its middle [cells]."""
HERE, OVER = 0, 1
"""Columns of the sides of a node: its own, and the plate over it (-1: none, or no other); then, as matter in front of that plate
and behind it sees them: in and beyond the plate those of the place before it."""
OUT = 0.25
"""How far before the face of the nearest plate that place is [cells]."""
KNOWN = 4.5
"""Level sets know their sheets as far as this [cells]: DEEP, and the diagonal of a voxel."""
OTHER = 0.05
"""What is nearer than the faces of all plates by more is another part of the body [cells]."""


@inline
def thin_axis(b, real):
    """Return the axis along which a box is thinnest."""
    s0, s1, s2 = real[b, SIZES], real[b, SIZES + 1], real[b, SIZES + 2]
    return 0 if s0 <= s1 and s0 <= s2 else (1 if s1 <= s2 else 2)


@inline
def plate_place(plate, end, x0, x1, x2, reach, bodies):
    """Return the distance from the middle of a plate, positive in front, and how far beyond its rim a point is [m].

    `plate` is the body and, of a level set, which of its sheets. There what lies in the middle at the foot of the point decides.
    Beyond `reach` [m] from the middle nobody asks for the rim: the second number is `FAR`.
    """
    y0, y1, y2 = to_body(plate[0], end, x0, x1, x2, bodies.real)
    return _place_in_body(plate, end, y0, y1, y2, reach, bodies)


@part
def _place_in_body(plate, end, y0, y1, y2, reach, bodies):
    """Return what `plate_place` does of a point in the frame of the body."""
    b, sheet = plate
    if bodies.integer[b, KIND] == LEVEL_SET:
        across, g0, g1, g2, _ = across_sheet(b, sheet, end, y0, y1, y2, False, bodies)
        if abs(across) >= reach:
            return across, FAR
        return across, signed_distance(b, 1.0 * end, y0 - across * g0, y1 - across * g1, y2 - across * g2, bodies)
    y, axis = (y0, y1, y2), thin_axis(b, bodies.real)
    u, w = (axis + 1) % 3, (axis + 2) % 3
    return y[axis], max(abs(y[u]) - bodies.real[b, SIZES + u], abs(y[w]) - bodies.real[b, SIZES + w])


@part
def side_of_plate(plate, side, end, y, h, bodies):
    """Return phi [m] and its gradient in the frame of a plate for matter on one side of it (1 or -1), which sees no other face.

    In a plate the rim counts where it is nearer than the face, but for one so thin that its edge cuts.
    """
    b, sheet = plate
    real = bodies.real
    if bodies.integer[b, KIND] == LEVEL_SET:
        across, g0, g1, g2, half = sheet_of_body(b, sheet, end, y[0], y[1], y[2], bodies)
        return side * across - half, side * g0, side * g1, side * g2
    axis = thin_axis(b, real)
    u, w = (axis + 1) % 3, (axis + 2) % 3
    phi, beyond_u, beyond_w = side * y[axis] - real[b, SIZES + axis], abs(y[u]) - real[b, SIZES + u], abs(y[w]) - real[b, SIZES + w]
    across, along_u, along_w = 1.0 * side, 0.0, 0.0
    thickness, rim = 2.0 * real[b, SIZES + axis], max(beyond_u, beyond_w)
    if thickness >= BLUNT * h and phi >= -thickness and rim > phi:
        least = rim - EVEN * (real[b, SIZES + u] + real[b, SIZES + w])  # at a corner the way out is between the two, as in a box
        phi, across = rim, 0.0
        along_u = (1.0 if y[u] >= 0.0 else -1.0) if beyond_u >= least else 0.0
        along_w = (1.0 if y[w] >= 0.0 else -1.0) if beyond_w >= least else 0.0
        length = np.sqrt(along_u * along_u + along_w * along_w)
        along_u, along_w = along_u / length, along_w / length
    return (
        phi,
        across if axis == 0 else (along_u if u == 0 else along_w),
        across if axis == 1 else (along_u if u == 1 else along_w),
        across if axis == 2 else (along_u if u == 2 else along_w),
    )


@part
def nearer_part(b, end, y, met, h, bodies):
    """Return phi [m] and its gradient for matter at y that meets the plates of a body: those of another part of it that is nearer.

    `met` is what the nearest of the plates says. In a plate no other part counts: what the body itself says there has no side.
    """
    if bodies.integer[b, KIND] != LEVEL_SET or met[0] <= 0.0:
        return met
    nearest = sample(b, 1.0 * end, y[0], y[1], y[2], bodies)
    return nearest if nearest[0] < met[0] - OTHER * h else met


@part
def slide_off_edge(b, s, y, met, h, bodies):
    """Return phi [m] and its gradient for a path that meets a body with plates at y at time s of the substep (0..1).

    `met` is what the body itself says; at an edge that cuts it is that of the nearer face.
    """
    real = bodies.real
    if bodies.integer[b, KIND] != LEVEL_SET:
        axis = thin_axis(b, real)
        u, w = (axis + 1) % 3, (axis + 2) % 3
        if 2.0 * real[b, SIZES + axis] >= BLUNT * h or (abs(y[u]) < real[b, SIZES + u] and abs(y[w]) < real[b, SIZES + w]):
            return met
        return side_of_plate((b, np.int64(0)), 1 if y[axis] >= 0.0 else -1, np.int64(1), y, h, bodies)
    end = np.int64(s >= 0.5)
    for sheet in range(bodies.integer[b, PLATES]):
        across, g0, g1, g2, half = sheet_of_body(b, sheet, end, y[0], y[1], y[2], bodies)
        if abs(across) > half + BLUNT * h or 2.0 * half >= BLUNT * h:
            continue
        if signed_distance(b, 1.0 * end, y[0] - across * g0, y[1] - across * g1, y[2] - across * g2, bodies) >= 0.0:
            near = side_of_plate((b, np.int64(sheet)), 1 if across >= 0.0 else -1, end, y, h, bodies)
            return nearer_part(b, end, y, near, h, bodies)
    return met


@inline
def sides_seen(matter, node, node_sides):
    """Return the sides of a node as matter sees them: in and behind a plate those of the place before it, on the matter's side."""
    over = node_sides[node, OVER]
    own = (matter >> (2 * over)) & 3 if over >= 0 else 0
    return node_sides[node, 1 + own if own else HERE]


@inline
def kept_apart(matter, node):
    """Return the sides on which matter has its node: copies of a node with equal values are one; see the module's table."""
    own = ((matter | (matter >> 1)) & PAIRS) * 3
    there = ((node | (node >> 1)) & PAIRS) * 3
    return (matter & there) | (node & there & ~own)


@inline
def through_plate(pair, matter, node):
    """Return 1 or -1, the side of a plate on which matter meets it at a node, or 0 where the plate is not."""
    lies = (node >> (2 * pair)) & 3
    own = (matter >> (2 * pair)) & 3
    side = own if own else lies
    return 0 if lies == 0 else (1 if side == FRONT else -1)


# ---------------------------------------------------------------- particles
@compiled(fastmath=False)
def sides_of_particles(particles, block_sides, drift, plates, sides, mixed, bodies):
    """Find the sides of particles, and the blocks that have to be divided because of them.

    Args:
        particles: `ParticleBlocks`.
        block_sides: Sides that the particles of each block have had, shape (n,), int64.
        drift: Largest |offset| in cells.
        plates: Body of each plate, in the order of their bits, int64.
        sides: Sides of each particle, int64; written where a block is mixed.
        mixed: Whether a block's particles have other sides than it, uint8, written.
        bodies: `Bodies`.
    """
    given = (particles, block_sides, 3.0**0.5 * drift, plates, sides, mixed, lend_plain(bodies))
    parallel_for(_sides_of_block, particles.block_coord.shape[0], given)


@part
def _sides_of_block(q, particles, block_sides, radius, plates, sides, mixed, bodies):
    offset, stride, block_coord, block_start, unit, h, shift = particles
    mixed[q] = 0
    b0 = shift[0] + h * (4.0 * block_coord[q, 0] + 3.5)
    b1 = shift[1] + h * (4.0 * block_coord[q, 1] + 3.5)
    b2 = shift[2] + h * (4.0 * block_coord[q, 2] + 3.5)
    near = np.int64(0)
    for k in range(plates.shape[0]):
        if _near_to_block(k, (b0, b1, b2), radius, plates, h, bodies):
            near |= np.int64(1) << k
    had, cell = block_sides[q], h / unit
    for p in range(block_start[q], block_start[q + 1] if near or had != 0 else block_start[q]):
        x0, x1, x2 = b0 + cell * offset[p], b1 + cell * offset[stride + p], b2 + cell * offset[2 * stride + p]
        found = np.int64(0)
        for k in range(plates.shape[0]):
            if not (near >> k) & 1:
                continue
            b, reach = plates[k], (NEAR + (SLOWLY if (had >> (2 * k)) & 3 else 0.0)) * h
            across, beyond = plate_place((b, k - bodies.integer[b, PLATE]), 0, x0, x1, x2, reach, bodies)
            if max(abs(across), beyond) < reach:
                found |= np.int64(FRONT if across >= 0.0 else BACK) << (2 * k)
        sides[p] = found
        if found != had:
            mixed[q] = 1


@inline
def _near_to_block(k, x, radius, plates, h, bodies):
    """Return whether particles no farther than `radius` cells from x may be so near to plate k that they have a side of it."""
    b = plates[k]
    y0, y1, y2 = to_body(b, 0, x[0], x[1], x[2], bodies.real)
    plate = (b, k - bodies.integer[b, PLATE])
    if bodies.integer[b, KIND] == LEVEL_SET:
        far = signed_distance(b, 0.0, y0, y1, y2, bodies) > (KNOWN + radius) * h
        return not far and not beyond_sheet(b, plate[1], np.int64(0), y0, y1, y2, radius * h, bodies)
    across, beyond = _place_in_body(plate, np.int64(0), y0, y1, y2, FAR, bodies)
    return max(abs(across), beyond) < (NEAR + SLOWLY + radius) * h


# ---------------------------------------------------------------- nodes
@compiled(fastmath=False)
def mark_sides(coord, h, shift, plates, node_sides, bodies):
    """Write the sides of every node: on which side of each plate, as it is posed last, it lies, as far as the plate reaches.

    Args:
        coord: Grid blocks, shape (n, 3), int32.
        h: Grid spacing [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        plates: Body of each plate, in the order of their bits, int64.
        node_sides: Sides of each node, shape (64 n, 4), int64, written: see HERE.
        bodies: `Bodies`.
    """
    parallel_for(_mark_block, striped_places(coord.shape[0]), (coord, h, shift, plates, node_sides, lend_plain(bodies)))


@part
def _mark_block(place, coord, h, shift, plates, node_sides, bodies):
    g = striped(place, coord.shape[0])
    if g >= coord.shape[0]:
        return
    for n in range(64 * g, 64 * g + 64):
        node_sides[n, HERE], node_sides[n, OVER] = 0, -1
    x0, x1, x2 = shift[0] + h * 4.0 * coord[g, 0], shift[1] + h * 4.0 * coord[g, 1], shift[2] + h * 4.0 * coord[g, 2]
    near = np.int64(0)
    for k in range(plates.shape[0]):
        if not _far_from_block(k, x0 + 1.5 * h, x1 + 1.5 * h, x2 + 1.5 * h, plates, h, bodies):
            near |= np.int64(1) << k
    for n in range(64 * int(near != 0)):
        x = (x0 + h * (n >> 4), x1 + h * ((n >> 2) & 3), x2 + h * (n & 3))
        node_sides[64 * g + n, HERE] = _sides_of_place(near, x[0], x[1], x[2], plates, h, bodies)
        if node_sides[64 * g + n, HERE] and plates.shape[0] > 1:
            _look_over_plates(64 * g + n, x, plates, node_sides, h, bodies)


@inline
def _far_from_block(k, x0, x1, x2, plates, h, bodies):
    """Return whether no node of the block around a place has a side of plate k."""
    b = plates[k]
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    plate = (b, k - bodies.integer[b, PLATE])
    if bodies.integer[b, KIND] == LEVEL_SET:
        far = signed_distance(b, 1.0, y0, y1, y2, bodies) > (KNOWN + HALF_DIAGONAL) * h
        return far or beyond_sheet(b, plate[1], np.int64(1), y0, y1, y2, HALF_DIAGONAL * h, bodies)
    across, beyond = _place_in_body(plate, np.int64(1), y0, y1, y2, FAR, bodies)
    return max(abs(across) - DEEP * h, beyond) > HALF_DIAGONAL * h


@part
def _sides_of_place(asked, x0, x1, x2, plates, h, bodies):
    """Return on which side of each of the plates `asked` (a bit each) a place lies, 0 beyond their rims and far from them."""
    found, body, out, y0, y1, y2 = np.int64(0), np.int64(-1), False, 0.0, 0.0, 0.0
    for k in range(plates.shape[0]):
        if not (asked >> k) & 1:
            continue
        if plates[k] != body:  # the sheets of a body come one after the other
            body = plates[k]
            y0, y1, y2 = to_body(body, 1, x0, x1, x2, bodies.real)
            # what is as far from the body is farther from the middle of its sheets
            out = bodies.integer[body, KIND] == LEVEL_SET and signed_distance(body, 1.0, y0, y1, y2, bodies) >= DEEP * h
        if out:
            continue
        across, beyond = _place_in_body((body, k - bodies.integer[body, PLATE]), np.int64(1), y0, y1, y2, DEEP * h, bodies)
        if abs(across) < DEEP * h and beyond <= ON_RIM * h:
            found |= np.int64(FRONT if across >= 0.0 else BACK) << (2 * k)
    return found


@part
def _look_over_plates(node, x, plates, node_sides, h, bodies):
    """Write the plate over a node at x, and the node's sides as matter before its two faces sees them.

    It is the nearest. Where a node lies in several, as at the foot of a wall, it is the one that hides most of the others.
    """
    here, best, over, seen = node_sides[node, HERE], np.inf, np.int64(-1), (np.int64(0), np.int64(0))
    nearest = (0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(plates.shape[0]):
        if not (here >> (2 * k)) & 3:
            continue
        met = _across_plate((plates[k], k - bodies.integer[plates[k], PLATE]), x, bodies)
        if abs(met[0]) > met[1]:  # what the node sees over a plate that it lies out of counts for the nearest alone
            if abs(met[0]) / h < best:
                best, over, nearest = abs(met[0]) / h, np.int64(k), met
            continue
        front, back, hidden = _seen_over(k, met, here, x, plates, h, bodies)
        if -1.0 * hidden < best:
            best, over, seen = -1.0 * hidden, np.int64(k), (front, back)
    if over >= 0 and best > 0.0:
        front, back, _ = _seen_over(over, nearest, here, x, plates, h, bodies)
        seen = (front, back)
    node_sides[node, OVER], node_sides[node, 1 + FRONT], node_sides[node, 1 + BACK] = over, seen[0], seen[1]


@part
def _seen_over(k, met, here, x, plates, h, bodies):
    """Return the sides of a node at x as matter in front of plate k and behind it sees them, and how many plates those hide.

    `met` is what `_across_plate` says, and `here` are the node's own sides.
    """
    across, half, n0, n1, n2 = met
    seen, hidden = (here, here), 0
    for own in range(FRONT, BACK + 1):
        sign = 1.0 if own == FRONT else -1.0
        if sign * across >= half + ON_RIM * h:
            continue
        go, mine = sign * (half + OUT * h) - across, np.int64(3) << (2 * k)
        others = ~(np.int64(1) << k)
        found = _sides_of_place(others, x[0] + go * n0, x[1] + go * n1, x[2] + go * n2, plates, h, bodies)
        found |= here & mine
        gone = (here | (here >> 1)) & ~(found | (found >> 1)) & PAIRS
        while gone:
            hidden, gone = hidden + 1, gone & (gone - 1)
        seen = (found, seen[1]) if own == FRONT else (seen[0], found)
    return seen[0], seen[1], hidden


@part
def _across_plate(plate, x, bodies):
    """Return the distance of a place from the middle of a plate, half its thickness [m], and its normal to the front."""
    b, sheet = plate
    y0, y1, y2 = to_body(b, 1, x[0], x[1], x[2], bodies.real)
    if bodies.integer[b, KIND] == LEVEL_SET:
        across, g0, g1, g2, half = sheet_of_body(b, sheet, np.int64(1), y0, y1, y2, bodies)
    else:
        axis = thin_axis(b, bodies.real)
        across, half = y0 if axis == 0 else (y1 if axis == 1 else y2), bodies.real[b, SIZES + axis]
        g0, g1, g2 = 1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    return across, half, n0, n1, n2


@compiled(fastmath=False)
def find_masters(places, block_sides, node_sides, master):
    """Find the copies of nodes that no plate keeps apart.

    Args:
        places: First and last + 1 of the grid blocks at each place that has several, shape (n, 2), int64.
        block_sides: Sides of the matter of each grid block, int64.
        node_sides: Sides of each node, as `mark_sides` writes them.
        master: Master of each node; written at these places, int32.
    """
    parallel_for(_find_masters, places.shape[0], (places, block_sides, node_sides, master))


@part
def _find_masters(place, places, block_sides, node_sides, master):
    begin, end = places[place, 0], places[place, 1]
    for n in range(64):
        for a in range(begin, end):
            mine, first = kept_apart(block_sides[a], sides_seen(block_sides[a], 64 * a + n, node_sides)), a
            for b in range(a - 1, begin - 1, -1):
                if kept_apart(block_sides[b], sides_seen(block_sides[b], 64 * b + n, node_sides)) == mine:
                    first = b
            master[64 * a + n] = 64 * first + n


@compiled(fastmath=False)
def join_copies(places, master, momentum, velocity):
    """Add up the copies of nodes that no plate keeps apart, and give each the sum and the common velocity.

    Args:
        places: First and last + 1 of the grid blocks at each place that has several, shape (n, 2), int64.
        master: Master of each node, as `find_masters` writes it.
        momentum: Nodes' (px, py, pz, m), flat, changed.
        velocity: Nodes' (vx, vy, vz, 0), flat, changed.
    """
    parallel_for(_join_place, places.shape[0], (places, master, momentum, velocity))


@part
def _join_place(place, places, master, momentum, velocity):
    begin, end = places[place, 0], places[place, 1]
    for a in range(begin, end):
        for n in range(64):
            if master[64 * a + n] == 64 * a + n:
                _add_up(a, end, n, momentum, velocity, master)


@part
def _add_up(a, end, n, momentum, velocity, master):
    """Give the copies of a master, from block a on, their sum."""
    mass = p0 = p1 = p2 = v0 = v1 = v2 = 0.0
    copies = 0
    for b in range(a, end):
        if master[64 * b + n] == 64 * a + n:
            i = 4 * (64 * b + n)
            m = np.float64(momentum[i + 3])
            mass, copies = mass + m, copies + 1
            p0, p1, p2 = p0 + momentum[i], p1 + momentum[i + 1], p2 + momentum[i + 2]
            v0, v1, v2 = v0 + m * velocity[i], v1 + m * velocity[i + 1], v2 + m * velocity[i + 2]
    if copies < 2 or mass <= 0.0:
        return
    for b in range(a, end):
        if master[64 * b + n] == 64 * a + n:
            i = 4 * (64 * b + n)
            momentum[i], momentum[i + 1], momentum[i + 2], momentum[i + 3] = p0, p1, p2, mass
            velocity[i], velocity[i + 1], velocity[i + 2] = v0 / mass, v1 / mass, v2 / mass


@compiled(fastmath=False)
def hand_out(places, master, velocity):
    """Give the copies of nodes the velocity of their masters."""
    for place in range(places.shape[0]):
        for node in range(64 * places[place, 0], 64 * places[place, 1]):
            if master[node] != node:
                for axis in range(3):
                    velocity[4 * node + axis] = velocity[4 * master[node] + axis]
