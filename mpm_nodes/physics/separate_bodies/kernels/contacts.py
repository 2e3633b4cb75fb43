"""Contact between bodies that keep velocities of their own: how far apart they are at a node, and the impulses between them.

| symbol | meaning | unit |
|---|---|---|
| V, M, G | sums over a body's particles of V_p w, V_p w (x_p - x_i) / h and V_p h dw/dx_p at node i | m^3 |
| n | unit normal from body a to body b | - |
| d_a, d_b | how far behind the surface of a, and of b, the node lies along n; negative before it | cells |
| g | gap between the surfaces: - (d_a + d_b) | cells |
| Delta | velocity of a less that of b | m/s |
| mu | Coulomb friction coefficient | - |
| A | area of the common face that the node stands for, by G_a . n and G_b . n | m^2 |
| c | largest impulse of the adhesion: that, A and the substep | N s |

Bodies meet where both have mass, which reaches up to three cells across empty space: mass and approach alone would stop them
there (Bardenhagen 2000). So the gap is measured. Matter that fills a half space up to the distance d before a node has, under the
spline b, its middle at

    x(d) = int_-R^d s b(s) ds / int_-R^d b(s) ds,

which grows with d; d is found from the particles' own middle M . n / V. What a face ends at sideways does not change it, as the
spline is a product. Where two faces lie on each other, as their steepness |G| = h^3 b(d) and fullness tell, the normal is that of
G_a - G_b (Nairn 2013): -n for the other body, so that momentum stays. At edges and corners, whose own gradients point aside, it is
the widest direction between the hulls of the two bodies' particles, and the gap is theirs.

Two bodies are in contact where they would overlap at the end of the substep, Delta . n dt > g h: the impulse takes the rest of the
approach, and friction at most mu times as much along the surface.

With adhesion they are in contact while g is 0.1 cells or less. The impulse p then closes the gap, and holds the bodies on each
other: it pulls, too, by c at most, and friction is at most mu (p + c). A face that is stressed by s pulls at the nodes by s A, so
that they hold as much as the whole face does; A sums up to its area, wherever it lies between the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.separate_bodies.kernels.half_spaces import half_space, smeared_spline

__all__ = ["MOMENTS", "MOST_POINTS", "GridNodes", "NearbyParticles", "Pairs", "find_contact", "measure_bodies", "meet_bodies"]

MOMENTS = 7
"""Sums of a body at a node: V, M and G."""
SWEEPS = 4
"""Times that the pairs of three or more bodies at a node are met: what one pair takes another may give back."""
PARALLEL = 0.9
"""Product of the outward normals of two faces, less its sign, above which they lie on each other."""
EVEN = 0.12
"""Share by which steepness and fullness of a body at a node may differ from those of a flat surface; a square edge lacks 0.22 and
0.17 of them."""
TINY = 1e-9
"""Least spline that a steepness is measured by."""
MOST_POINTS = 1024
"""Particles of a body around a node that are looked at: cubic splines reach 512 of a lattice of eight a cell."""
STEPS = 40
"""Steps towards the nearest points of two hulls."""
EQUAL = 1e-9
"""Difference below which two points lie as far along a direction [cells]: a step towards the nearest points ends square to itself,
and the points that it joins lie as far along the next one; lattices have whole rows of such points."""
TORN = 0.1
"""Gap up to which adhesion pulls [cells]: the zone of Dugdale 1960 that adhesion to colliders has."""
HELD = 0.05
"""Gap up to which bodies that stick or slide on each other without leaving hold [cells]: rounding and the particles' places do
not let go of them."""


class NearbyParticles(NamedTuple):
    """The particles around the grid blocks where bodies meet.

    Attributes:
        blocks: Those grid blocks, shape (n,), int64.
        first, near: Particle blocks whose particles reach each, `near[first[k] : first[k + 1]]`.
        offset, stride, unit: Fixed-point offsets of the particles, distance of their rows, cells per unit.
        block_coord, block_start: Particle blocks, and where their particles begin.
        volume: V_p [m^3].
        coord: Grid blocks, shape (m, 3), int32.
        h: Grid spacing [m].
    """

    blocks: np.ndarray
    first: np.ndarray
    near: np.ndarray
    offset: np.ndarray
    stride: int
    unit: float
    block_coord: np.ndarray
    block_start: np.ndarray
    volume: np.ndarray
    coord: np.ndarray
    h: float


class Pairs(NamedTuple):
    """Which bodies meet, and by which rules.

    Attributes:
        groups: First and last + 1 of the places in a cloud's grid blocks that are at one place of space, shape (n, 2).
        bodies: Body of each, as a row of `rules`.
        rules, friction, adhesion: Rule, mu and adhesion [Pa] of each pair of bodies, shape (bodies, bodies).
    """

    groups: np.ndarray
    bodies: np.ndarray
    rules: np.ndarray
    friction: np.ndarray
    adhesion: np.ndarray


class GridNodes(NamedTuple):
    """The nodes of the grid.

    Attributes:
        momentum: (px, py, pz, m), flat.
        velocity: (vx, vy, vz, 0), flat, changed [m/s].
        least_mass: Nodes lighter than this count as empty [kg].
    """

    momentum: np.ndarray
    velocity: np.ndarray
    least_mass: float


@compiled(fastmath=False)
def measure_bodies(cloud, cubic, moments):
    """Write the sums of every body at the nodes of the grid blocks where bodies meet.

    Args:
        cloud: `NearbyParticles` of the particles.
        cubic: Whether the spline is cubic.
        moments: V, M and G, shape (n, 64, MOMENTS), float64, written.
    """
    parallel_for(_measure_block, cloud.blocks.shape[0], (cloud, cubic, moments))


@part
def _measure_block(k, cloud, cubic, moments):
    blocks, first, near, offset, stride, unit, block_coord, block_start, volume, coord, h = cloud
    moments[k] = 0.0
    b = blocks[k]
    for n in range(first[k], first[k + 1]):
        q = near[n]
        c0 = 4.0 * (block_coord[q, 0] - coord[b, 0]) + 3.5
        c1 = 4.0 * (block_coord[q, 1] - coord[b, 1]) + 3.5
        c2 = 4.0 * (block_coord[q, 2] - coord[b, 2]) + 3.5
        for p in range(block_start[q], block_start[q + 1]):
            x = c0 + unit * offset[p]
            y = c1 + unit * offset[stride + p]
            z = c2 + unit * offset[2 * stride + p]
            if min(x, y, z) <= -2.0 or max(x, y, z) >= 5.0:
                continue
            v = np.float64(volume[p])
            wide = (v / h**3) ** (2.0 / 3.0) / 24.0
            x0, wx, mx, sx = smeared_spline(cubic, x, wide)
            y0, wy, my, sy = smeared_spline(cubic, y, wide)
            z0, wz, mz, sz = smeared_spline(cubic, z, wide)
            for i in range(max(0, -int(x0)), min(4, 4 - int(x0))):
                a, m, s = v * wx[i], v * mx[i], v * sx[i]
                for j in range(max(0, -int(y0)), min(4, 4 - int(y0))):
                    whole, mx_wy, wx_my, sx_wy, wx_sy = a * wy[j], m * wy[j], a * my[j], s * wy[j], a * sy[j]
                    row = 16 * (int(x0) + i) + 4 * (int(y0) + j) + int(z0)
                    for e in range(max(0, -int(z0)), min(4, 4 - int(z0))):
                        moments[k, row + e, 0] += whole * wz[e]
                        moments[k, row + e, 1] += mx_wy * wz[e]
                        moments[k, row + e, 2] += wx_my * wz[e]
                        moments[k, row + e, 3] += whole * mz[e]
                        moments[k, row + e, 4] += sx_wy * wz[e]
                        moments[k, row + e, 5] += wx_sy * wz[e]
                        moments[k, row + e, 6] += whole * sz[e]


# ---------------------------------------------------------------- faces
@inline
def _along(sums, n):
    """Return the middle of a body's matter along a direction [cells]."""
    return (sums[1] * n[0] + sums[2] * n[1] + sums[3] * n[2]) / sums[0]


@inline
def _gap(sums_a, sums_b, table, n):
    """Return the gap between two bodies along a direction from a to b [cells]."""
    return -half_space(_along(sums_a, n), table, 0) - half_space(-_along(sums_b, n), table, 0)


@inline
def _unit(g0, g1, g2):
    size = np.sqrt(g0 * g0 + g1 * g1 + g2 * g2)
    return (g0 / size, g1 / size, g2 / size) if size > 0.0 else (0.0, 0.0, 0.0)


@inline
def _is_face(sums, n, table, cell):
    """Return whether a body's matter at a node ends in a face across its own outward normal n, and not in an edge."""
    middle = _along(sums, n)
    size = np.sqrt(sums[4] * sums[4] + sums[5] * sums[5] + sums[6] * sums[6])
    steepness = size / (cell * max(half_space(middle, table, 1), TINY))
    fullness = sums[0] / (cell * max(half_space(middle, table, 2), TINY))
    return abs(steepness - 1.0) < EVEN and abs(fullness - 1.0) < EVEN


@inline
def face_contact(sums_a, sums_b, table, cell):
    """Return whether two faces lie on each other at a node, the normal from body a to body b, and the gap along it [cells].

    Args:
        sums_a, sums_b: Their V, M and G.
        table: `half_spaces.distances`.
        cell: Volume of a cell [m^3].
    """
    n = _unit(sums_a[4] - sums_b[4], sums_a[5] - sums_b[5], sums_a[6] - sums_b[6])
    own_a, own_b = _unit(sums_a[4], sums_a[5], sums_a[6]), _unit(sums_b[4], sums_b[5], sums_b[6])
    opposite = own_a[0] * own_b[0] + own_a[1] * own_b[1] + own_a[2] * own_b[2] < -PARALLEL
    faces = opposite and _is_face(sums_a, own_a, table, cell) and _is_face(sums_b, own_b, table, cell)
    return faces, n, _gap(sums_a, sums_b, table, n)


# ---------------------------------------------------------------- edges and corners
@part
def _collect(k, node, cloud, reach, points):
    """Write the places of a body's particles around a node, from the node [cells]; return how many and half their mean width."""
    blocks, first, near, offset, stride, unit, block_coord, block_start, volume, coord, h = cloud
    b, count, width = blocks[k], 0, 0.0
    for n in range(first[k], first[k + 1]):
        q = near[n]
        c0 = 4.0 * (block_coord[q, 0] - coord[b, 0]) + 3.5 - (node >> 4)
        c1 = 4.0 * (block_coord[q, 1] - coord[b, 1]) + 3.5 - ((node >> 2) & 3)
        c2 = 4.0 * (block_coord[q, 2] - coord[b, 2]) + 3.5 - (node & 3)
        for p in range(block_start[q], block_start[q + 1]):
            x, y, z = c0 + unit * offset[p], c1 + unit * offset[stride + p], c2 + unit * offset[2 * stride + p]
            if max(abs(x), abs(y), abs(z)) < reach and count < points.shape[0]:
                points[count, 0], points[count, 1], points[count, 2] = x, y, z
                width += np.cbrt(np.float64(volume[p])) / h
                count += 1
    return count, 0.5 * width / max(count, 1)


@inline
def _farthest(points, count, n, sign):
    """Return the point that lies farthest along sign * n; of several as far the first, so that rounding does not choose."""
    best, place = -np.inf, 0
    for p in range(count):
        along = sign * (points[p, 0] * n[0] + points[p, 1] * n[1] + points[p, 2] * n[2])
        if along > best + EQUAL:
            best, place = along, p
    return points[place, 0], points[place, 1], points[place, 2]


@part
def _hull_contact(a, b, node, cloud, reach, points_a, points_b, guesses):
    """Return the widest direction between the hulls of two bodies' particles at a node, and the gap along it [cells].

    The nearest points of the hulls are found as Gilbert 1966 does, by steps towards the farthest points against the direction; they
    come near slowly, so the faces' own normals are tried first. Particles are as wide as their volume. Minus infinity where the
    hulls overlap, half a cell inside each other.
    """
    count_a, wide_a = _collect(a, node, cloud, reach, points_a)
    count_b, wide_b = _collect(b, node, cloud, reach, points_b)
    if min(count_a, count_b) == 0:  # all lie on the rim of the spline's support
        return (0.0, 0.0, 0.0), -np.inf
    widest, normal = 0.0, (0.0, 0.0, 0.0)
    for n in guesses:
        p, q = _farthest(points_a, count_a, n, 1.0), _farthest(points_b, count_b, n, -1.0)
        apart = (q[0] - p[0]) * n[0] + (q[1] - p[1]) * n[1] + (q[2] - p[2]) * n[2]
        if apart > widest + 1e-3:
            widest, normal = apart, n
    v = (points_b[0, 0] - points_a[0, 0], points_b[0, 1] - points_a[0, 1], points_b[0, 2] - points_a[0, 2])
    for _ in range(STEPS):
        size = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
        n = _unit(v[0], v[1], v[2])
        p, q = _farthest(points_a, count_a, n, 1.0), _farthest(points_b, count_b, n, -1.0)
        w = (q[0] - p[0], q[1] - p[1], q[2] - p[2])
        apart = w[0] * n[0] + w[1] * n[1] + w[2] * n[2]
        if apart > widest + 1e-3:
            widest, normal = apart, n
        if size - apart < 1e-3 or size <= 0.0:
            break
        e = (w[0] - v[0], w[1] - v[1], w[2] - v[2])
        share = -(v[0] * e[0] + v[1] * e[1] + v[2] * e[2]) / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
        share = min(max(share, 0.0), 1.0)
        v = (v[0] + share * e[0], v[1] + share * e[1], v[2] + share * e[2])
    return normal, widest - wide_a - wide_b if widest > 0.0 else -np.inf


# ---------------------------------------------------------------- impulses
@inline
def impulse(rule, friction, mass, u, n, leave, pull):
    """Return the impulse on body b (body a takes the opposite) for masses that meet, by the rule of the pair.

    Args:
        rule: SEPARATE, SLIP, or else sticky.
        friction: mu.
        mass: m_a m_b / (m_a + m_b) [kg].
        u: Delta [m/s].
        n: Unit normal from a to b.
        leave: Approach that is left to them [m/s]: the gap over dt, 0 where they touch; negative where they are held together.
        pull: c, for the rule SEPARATE, over `mass` [m/s].
    """
    along = u[0] * n[0] + u[1] * n[1] + u[2] * n[2]
    held = leave < 0.0
    push = along if held else along - leave
    if push <= 0.0 and pull <= 0.0 and not (held and rule != SEPARATE):
        return 0.0, 0.0, 0.0
    t0, t1, t2 = u[0] - along * n[0], u[1] - along * n[1], u[2] - along * n[2]
    share = 0.0
    if rule == SEPARATE:
        push = max(push, -pull)
        drag = np.sqrt(t0 * t0 + t1 * t1 + t2 * t2)
        share = 1.0 if drag <= friction * (push + pull) else friction * (push + pull) / drag
    elif rule != SLIP:
        share = 1.0
    return mass * (push * n[0] + share * t0), mass * (push * n[1] + share * t1), mass * (push * n[2] + share * t2)


@compiled(fastmath=False)
def meet_bodies(pairs, moments, table, nodes, dt, cloud):
    """Change the velocities of nodes where bodies meet by the impulses between them.

    Args:
        pairs: `Pairs` of the bodies that meet.
        moments: As `measure_bodies` writes them.
        table: `half_spaces.distances` of the spline.
        nodes: `GridNodes` of the grid.
        dt: Substep [s].
        cloud: `NearbyParticles` of the particles.
    """
    parallel_for(_meet_group, pairs.groups.shape[0], (pairs, moments, table, nodes, dt, cloud))


@part
def _meet_group(place, pairs, moments, table, nodes, dt, cloud):
    groups, bodies, rules, friction, adhesion = pairs
    momentum, velocity, least_mass = nodes
    begin, end = groups[place, 0], groups[place, 1]
    blocks, h = cloud.blocks, cloud.h
    size = end - begin
    contacts = np.empty((size, size, 5))
    points = np.empty((2, MOST_POINTS, 3))
    for node in range(64):
        for a in range(size):
            for b in range(a + 1, size):
                mass_a = momentum[4 * (64 * blocks[begin + a] + node) + 3]
                mass_b = momentum[4 * (64 * blocks[begin + b] + node) + 3]
                contacts[a, b, 3] = np.inf
                if min(mass_a, mass_b) > least_mass:
                    find_contact(begin + a, begin + b, node, moments, table, cloud, points, contacts[a, b])
                    strength = adhesion[bodies[begin + a], bodies[begin + b]]
                    contacts[a, b, 4] = 0.0
                    if strength > 0.0 and contacts[a, b, 3] <= TORN:
                        contacts[a, b, 4] = (
                            strength * dt * _area(moments[begin + a, node], moments[begin + b, node], contacts[a, b], table, h)
                        )
        for _ in range(SWEEPS if size > 2 else 1):
            for a in range(size):
                for b in range(a + 1, size):
                    if contacts[a, b, 3] < np.inf:
                        row_a, row_b = bodies[begin + a], bodies[begin + b]
                        i, j = 4 * (64 * blocks[begin + a] + node), 4 * (64 * blocks[begin + b] + node)
                        rule, mu = rules[row_a, row_b], friction[row_a, row_b]
                        _meet_pair(i, j, momentum, velocity, contacts[a, b], rule, mu, h / dt)


@inline
def _area(sums_a, sums_b, n, table, h):
    """Return A of two bodies at a node [m^2]; what does not face the other body has none.

    The far face of a thin body takes off its own gradient, so the other's counts, by the share of it that both cover.
    """
    of_a = n[0] * sums_a[4] + n[1] * sums_a[5] + n[2] * sums_a[6]
    of_b = n[0] * sums_b[4] + n[1] * sums_b[5] + n[2] * sums_b[6]
    full_a = sums_a[0] / max(half_space(_along(sums_a, n), table, 2), TINY)
    full_b = sums_b[0] / max(half_space(-_along(sums_b, n), table, 2), TINY)
    steep, share = (of_a, full_b / full_a) if of_a > -of_b else (-of_b, full_a / full_b)
    return max(steep, 0.0) * min(share, 1.0) / h


@part
def find_contact(a, b, node, moments, table, cloud, points, contact):
    """Write the normal from body a to body b at a node and the gap along it [cells]; nothing where one has no matter there."""
    sums_a, sums_b = moments[a, node], moments[b, node]
    if sums_a[0] <= 0.0 or sums_b[0] <= 0.0:
        return
    h = cloud.h
    faces, n, gap = face_contact(sums_a, sums_b, table, h * h * h)
    if not faces:
        own_a, own_b = _unit(sums_a[4], sums_a[5], sums_a[6]), _unit(-sums_b[4], -sums_b[5], -sums_b[6])
        wide, widest = _hull_contact(a, b, node, cloud, -table[0, 0], points[0], points[1], (n, own_a, own_b))
        n, gap = (wide, widest) if widest > -np.inf else (n, min(gap, 0.0))
    contact[0], contact[1], contact[2], contact[3] = n[0], n[1], n[2], gap


@part
def _meet_pair(i, j, momentum, velocity, contact, rule, friction, per_second):
    """Change the velocities of two bodies' nodes, whose values begin at i and j, by the impulse between them."""
    mass_a, mass_b, gap = np.float64(momentum[i + 3]), np.float64(momentum[j + 3]), contact[3]
    leave = -1.0 if rule != SEPARATE and gap <= HELD else max(0.0, gap) * per_second
    u = (
        np.float64(velocity[i] - velocity[j]),
        np.float64(velocity[i + 1] - velocity[j + 1]),
        np.float64(velocity[i + 2] - velocity[j + 2]),
    )
    n = (contact[0], contact[1], contact[2])
    mass = mass_a * mass_b / (mass_a + mass_b)
    given = impulse(rule, friction, mass, u, n, leave, contact[4] / mass if rule == SEPARATE else 0.0)
    if contact[4] > 0.0:  # a second sweep has what is left
        contact[4] = max(contact[4] + min(given[0] * n[0] + given[1] * n[1] + given[2] * n[2], 0.0), 0.0)
    for axis in range(3):
        velocity[i + axis] -= given[axis] / mass_a
        velocity[j + axis] += given[axis] / mass_b
