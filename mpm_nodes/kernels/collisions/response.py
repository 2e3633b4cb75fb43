"""What contacts do to the velocities of an explicit step: impulses between a node, its image outside, and the body.

| symbol | meaning | unit |
|---|---|---|
| u_i, u_j | velocity relative to the body, of a node in contact and of its image | m/s |
| r | share of u_j that the surface, where the relative velocity vanishes, leaves to u_i (`grid`) | - |
| lam_i | impulse on node i; its image takes - r lam_i | kg m/s |
| mu_f | Coulomb friction coefficient | - |
| c_i | largest impulse of adhesion on node i: adhesion, area and substep (`touching`) | N s |

Contacts that share a image are met together: its new velocity u_j' is the one that, with all that follow it, is nearest to what
was before, (m_j + sum r^2 m_i) u_j' = m_j u_j + sum r m_i u_i. The constraint is an orthogonal projection in the mass norm: the
kinetic energy relative to the body never grows, and a light node behind the surface does not hold heavy matter before it. The rule
(Stomakhin 2013, section 8) acts on the impulse: sticky takes all of it, slip its normal part, separating the same where it pushes,
and friction at most mu_f times as much along the surface. With adhesion separating pulls, too, by c_i at most, and friction is at
most mu_f (lam_n + c_i): Coulomb's law with cohesion. Bodies act in order: the last one decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import (
    BODY,
    FELLOW_BODY,
    FELLOW_PLACE,
    FRICTION_OF,
    LAG,
    LEVEL_PLACE,
    NODE_PLACE,
    NORMAL,
    PULL,
    RULE_OF,
    SURFACE_PLACE,
)
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.memory import prefetch

__all__ = ["Chains", "group_contacts", "leave_pinched_images", "respond_to_contacts"]

OPPOSITE = -0.5
"""Normals whose product is less than this point against each other."""

SEVERAL = -2
"""Mark of a node that several bodies or walls meet."""

CHUNK, AHEAD = 64, 8
"""How many chains are met in one call, and how many chains ahead their nodes are fetched."""

SWEEPS = 2
"""Times that several bodies are met: two that share a image, as the walls of a narrow gap do, undo a part of each other's work."""

MET = 1e-12
"""Approach, over the speeds, up to which a contact has been met: what the first sweep stopped is left with none but rounding, which
must not decide whether the second meets it with all its mass. Adhesion of which no greater share is left has been used up."""


class Chains(NamedTuple):
    """Contacts that share a body and a image, chained.

    Attributes:
        head: First row of each chain, int64.
        tail: Last row of each chain, int64.
        following: Next row in the chain of each row, or -1, int32.
        level_start: First chain of each body or wall, shape (bodies and walls + 1,), int64.
        again: Chains that share a node with those of another body or wall, in the same order, int64.
        again_start: The first of each body or wall in `again`, shape (bodies and walls + 1,), int64.
    """

    head: np.ndarray
    tail: np.ndarray
    following: np.ndarray
    level_start: np.ndarray
    again: np.ndarray
    again_start: np.ndarray


# ---------------------------------------------------------------- pinched matter
@compiled(fastmath=False)
def leave_pinched_images(contacts, touched, slot, following):
    """Take the image from contacts whose image is held itself, from the opposite side or by the same body: r = 0.

    Two bodies a cell apart leave no node between them to follow, and would set each other's boundary values. Where a surface is
    bent, a image may be nearer to it than its plane says; it would be met in two chains at once.

    Args:
        contacts: `ContactList`, changed.
        touched: Places of the blocks that have contacts, int64.
        slot: -1 for every node of the grid, int32; used and left as it was.
        following: Room for an int32 a row.
    """
    given = (touched, lend(contacts), slot, following)
    parallel_for(_chain_nodes, touched.shape[0], given)
    parallel_for(_leave_pinched, touched.shape[0], given)
    parallel_for(_forget_nodes, touched.shape[0], given)


@part
def _chain_nodes(k, touched, contacts, slot, following):
    """Chain the contacts of each node; a node's contacts are all of its block."""
    first, places = contacts.start[touched[k]], contacts.places
    for c in range(first, first + contacts.counts[touched[k]]):
        node = places[c, NODE_PLACE]
        following[c] = slot[node]
        slot[node] = c


@part
def _leave_pinched(k, touched, contacts, slot, following):
    first, places, rows, ratios = contacts.start[touched[k]], contacts.places, contacts.rows, contacts.ratios
    for c in range(first, first + contacts.counts[touched[k]]):
        image = places[c, FELLOW_PLACE]
        other = np.int64(slot[image]) if image >= 0 else np.int64(-1)
        while other >= 0:
            a, b = places[c, SURFACE_PLACE], places[other, SURFACE_PLACE]
            along = (
                rows[a, NORMAL] * rows[b, NORMAL]
                + rows[a, NORMAL + 1] * rows[b, NORMAL + 1]
                + rows[a, NORMAL + 2] * rows[b, NORMAL + 2]
            )
            if along < OPPOSITE or places[c, LEVEL_PLACE] == places[other, LEVEL_PLACE]:
                places[c, FELLOW_PLACE], ratios[c] = -1, 0.0
                break
            other = np.int64(following[other])


@part
def _forget_nodes(k, touched, contacts, slot, following):
    first, places = contacts.start[touched[k]], contacts.places
    for c in range(first, first + contacts.counts[touched[k]]):
        slot[places[c, NODE_PLACE]] = -1


# ---------------------------------------------------------------- chains
@compiled(fastmath=False)
def group_contacts(contacts, touched, slot, chains):
    """Chain the contacts that share a body and a image; return how many chains there are.

    Args:
        contacts: `ContactList`.
        touched: Places of the blocks that have contacts, int64.
        slot: -1 for every node of the grid, int32; used and left as it was.
        chains: `Chains`, written.
    """
    head, level_start = chains.head, chains.level_start
    at = np.empty(touched.shape[0], np.int64)
    for k in range(touched.shape[0]):
        at[k] = contacts.start[touched[k]]
    count, met = np.int64(0), 0
    for level in range(level_start.shape[0] - 1):
        level_start[level] = count
        count = _chain_level(level, count, touched, at, contacts, slot, chains)
        met += count > level_start[level]
        for chain in range(level_start[level], count):
            image = contacts.places[head[chain], FELLOW_PLACE]
            if image >= 0:
                slot[image] = -1
    level_start[-1] = count
    chains.again_start[:] = 0
    if met > 1:
        _list_again(touched, contacts, slot, chains)
    return count


@part
def _chain_level(level, count, touched, at, contacts, slot, chains):
    """Chain the contacts of one level, which are the next of every block, behind `count` chains; return how many there are then."""
    places, head, tail, following = contacts.places, chains.head, chains.tail, chains.following
    for k in range(touched.shape[0]):
        c, stop = at[k], contacts.start[touched[k]] + contacts.counts[touched[k]]
        while c < stop and places[c, LEVEL_PLACE] == level:
            following[c] = -1
            image = places[c, FELLOW_PLACE]
            if image >= 0 and slot[image] >= 0:
                chain = slot[image]
                following[tail[chain]] = c
                tail[chain] = c
            else:
                head[count] = tail[count] = c
                if image >= 0:
                    slot[image] = count
                count += 1
            c += 1
        at[k] = c
    return count


@part
def _list_again(touched, contacts, slot, chains):
    """List the chains that have a node in common with those of another level."""
    places, following = contacts.places, chains.following
    for block in touched:
        for c in range(contacts.start[block], contacts.start[block] + contacts.counts[block]):
            _mark(places[c, NODE_PLACE], places[c, LEVEL_PLACE], slot)
            _mark(places[c, FELLOW_PLACE], places[c, LEVEL_PLACE], slot)
    listed = 0
    for level in range(chains.level_start.shape[0] - 1):
        for chain in range(chains.level_start[level], chains.level_start[level + 1]):
            c = chains.head[chain]
            shared = places[c, FELLOW_PLACE] >= 0 and slot[places[c, FELLOW_PLACE]] == SEVERAL
            while c >= 0 and not shared:
                shared = slot[places[c, NODE_PLACE]] == SEVERAL
                c = np.int64(following[c])
            if shared:
                chains.again[listed] = chain
                listed += 1
        chains.again_start[level + 1] = listed
    for block in touched:
        for c in range(contacts.start[block], contacts.start[block] + contacts.counts[block]):
            slot[places[c, NODE_PLACE]] = -1
            if places[c, FELLOW_PLACE] >= 0:
                slot[places[c, FELLOW_PLACE]] = -1


@inline
def _mark(node, level, slot):
    """Note that a node is met by a level."""
    if node >= 0 and slot[node] != level:
        slot[node] = level if slot[node] == -1 else SEVERAL


# ---------------------------------------------------------------- impulses
@compiled(fastmath=False)
def respond_to_contacts(velocity, momentum, contacts, chains, given_to_bodies):
    """Change the velocities of nodes in contact and of their images by the impulses of bodies and walls, body by body.

    A chain that has all its nodes for itself is met once: a second time would find nothing to do.

    Args:
        velocity: Nodes' (vx, vy, vz, 0), flat, changed in place [m/s].
        momentum: Nodes' (px, py, pz, m), flat.
        contacts: `ContactList`.
        chains: `Chains`.
        given_to_bodies: Impulse that each contact gives to its body, three values a row, float64 [N s]: zeros, written; empty where
            nobody asks.
    """
    given = ((velocity, momentum, given_to_bodies), lend(contacts), chains.head, chains.following)
    level_start, again_start = chains.level_start, chains.again_start
    for level in range(level_start.shape[0] - 1):
        first = level_start[level]
        if level_start[level + 1] > first:
            last = level_start[level + 1]
            parallel_for(_meet_chains, -(-(last - first) // CHUNK), (first, last, *given))
    for _ in range(1, SWEEPS):
        for level in range(again_start.shape[0] - 1):
            first = again_start[level]
            if again_start[level + 1] > first:
                parallel_for(_meet_again, again_start[level + 1] - first, (first, chains.again, *given))


@part
def _meet_again(k, first, again, nodes, contacts, head, following):
    rows, places, ratios = contacts.rows, contacts.places, contacts.ratios
    _meet(again[first + k], nodes, rows, places, ratios, head, following)


@part
def _meet_chains(k, first, last, nodes, contacts, head, following):
    """Meet a number of chains; nodes of those that come are fetched into the cache: where they lie follows no pattern."""
    rows, places, ratios = contacts.rows, contacts.places, contacts.ratios
    velocity, momentum, _ = nodes
    for chain in range(first + CHUNK * k, min(first + CHUNK * (k + 1), last)):
        if chain + AHEAD < last:
            c = head[chain + AHEAD]
            after = np.int64(following[c])
            _fetch(4 * np.int64(places[c, NODE_PLACE]), velocity, momentum)
            _fetch(4 * np.int64(places[c, FELLOW_PLACE]), velocity, momentum)
            if after >= 0:
                _fetch(4 * np.int64(places[after, NODE_PLACE]), velocity, momentum)
        _meet(chain, nodes, rows, places, ratios, head, following)


@inline
def _fetch(at, velocity, momentum):
    prefetch(velocity, at)
    prefetch(momentum, at)


@inline
def _meet(chain, nodes, rows, places, ratios, head, following):
    """Meet the contacts of one chain: find the image's velocity, then the impulses, then give it what they leave it."""
    velocity, momentum, told = nodes
    c = head[chain]
    image = np.int64(places[c, FELLOW_PLACE])
    u0 = u1 = u2 = mass = 0.0
    if image >= 0:
        at, row = 4 * image, rows[places[c, SURFACE_PLACE]]
        mass = np.float64(momentum[at + 3])
        u0 = velocity[at] - row[FELLOW_BODY]
        u1 = velocity[at + 1] - row[FELLOW_BODY + 1]
        u2 = velocity[at + 2] - row[FELLOW_BODY + 2]
    p0, p1, p2, carried = mass * u0, mass * u1, mass * u2, mass
    while c >= 0:
        row, i, r = rows[places[c, SURFACE_PLACE]], 4 * np.int64(places[c, NODE_PLACE]), ratios[c]
        n0, n1, n2 = row[NORMAL], row[NORMAL + 1], row[NORMAL + 2]
        v0, v1, v2 = _relative(row, r, (velocity[i], velocity[i + 1], velocity[i + 2]), (u0, u1, u2))
        if row[RULE_OF] != SEPARATE or row[PULL] > 0.0 or _approaches((v0, v1, v2), r, (u0, u1, u2), (n0, n1, n2)):
            m = r * momentum[i + 3]
            p0, p1, p2, carried = p0 + m * v0, p1 + m * v1, p2 + m * v2, carried + r * m
        c = np.int64(following[c])
    if carried > 0.0:
        p0, p1, p2 = p0 / carried, p1 / carried, p2 / carried
    change0 = change1 = change2 = 0.0
    c = head[chain]
    while c >= 0:
        i, r = 4 * np.int64(places[c, NODE_PLACE]), ratios[c]
        v = velocity[i], velocity[i + 1], velocity[i + 2]
        row = rows[places[c, SURFACE_PLACE]]
        d0, d1, d2 = _change(row, r, v, (u0, u1, u2), (p0, p1, p2), momentum[i + 3])
        m = r * momentum[i + 3]
        if len(told):
            _tell(told, c, (1.0 - r) * momentum[i + 3], (d0, d1, d2))
        if row[PULL] > 0.0:  # a second sweep has what is left
            pulled = -momentum[i + 3] * (d0 * row[NORMAL] + d1 * row[NORMAL + 1] + d2 * row[NORMAL + 2])
            left = row[PULL] - max(pulled, 0.0)
            row[PULL] = left if left > MET * row[PULL] else 0.0
        velocity[i], velocity[i + 1], velocity[i + 2] = v[0] + d0, v[1] + d1, v[2] + d2
        change0, change1, change2 = change0 - m * d0, change1 - m * d1, change2 - m * d2
        c = np.int64(following[c])
    if image >= 0:
        at = 4 * image
        velocity[at], velocity[at + 1], velocity[at + 2] = (
            velocity[at] + change0 / mass,
            velocity[at + 1] + change1 / mass,
            velocity[at + 2] + change2 / mass,
        )


@inline
def _tell(told, c, mass, d):
    """Add what the matter of a contact loses to what its body is given."""
    told[3 * c] -= mass * d[0]
    told[3 * c + 1] -= mass * d[1]
    told[3 * c + 2] -= mass * d[2]


@inline
def _relative(row, r, v, u):
    """Return a node's velocity relative to the body, less what matter that is held, and does not touch yet, comes nearer by."""
    v0, v1, v2 = v[0] - row[BODY], v[1] - row[BODY + 1], v[2] - row[BODY + 2]
    if row[LAG] == 0.0:
        return v0, v1, v2
    n0, n1, n2 = row[NORMAL], row[NORMAL + 1], row[NORMAL + 2]
    away = (v0 - r * u[0]) * n0 + (v1 - r * u[1]) * n1 + (v2 - r * u[2]) * n2
    comes = min(max(-away, 0.0), row[LAG])
    return v0 + comes * n0, v1 + comes * n1, v2 + comes * n2


@inline
def _approaches(v, r, u, n):
    """Return whether a node with the relative velocity v comes nearer to the body than its image's u leaves it."""
    w0, w1, w2 = v[0] - r * u[0], v[1] - r * u[1], v[2] - r * u[2]
    size = abs(v[0]) + abs(v[1]) + abs(v[2]) + abs(u[0]) + abs(u[1]) + abs(u[2])
    return w0 * n[0] + w1 * n[1] + w2 * n[2] < -MET * size


@inline
def _change(row, r, v, u, p, mass):
    """Return the change of the velocity of a node whose image had the relative velocity u and is to have p, by its body's rule."""
    rule = row[RULE_OF]
    v0, v1, v2 = _relative(row, r, v, u)
    n0, n1, n2 = row[NORMAL], row[NORMAL + 1], row[NORMAL + 2]
    pull = row[PULL] / mass if row[PULL] > 0.0 else 0.0
    if rule == SEPARATE and pull == 0.0 and not _approaches((v0, v1, v2), r, u, (n0, n1, n2)):
        return 0.0, 0.0, 0.0
    d0, d1, d2 = r * p[0] - v0, r * p[1] - v1, r * p[2] - v2
    if rule != SEPARATE and rule != SLIP:
        return d0, d1, d2
    push = d0 * n0 + d1 * n1 + d2 * n2
    if rule == SLIP or push <= -pull:
        push = push if rule == SLIP else 0.0 - pull
        return push * n0, push * n1, push * n2
    t0, t1, t2 = d0 - push * n0, d1 - push * n1, d2 - push * n2
    drag, most = np.sqrt(t0 * t0 + t1 * t1 + t2 * t2), row[FRICTION_OF] * (push + pull)
    share = 1.0 if drag <= most else most / drag
    return push * n0 + share * t0, push * n1 + share * t1, push * n2 + share * t2
