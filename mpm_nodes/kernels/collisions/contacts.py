"""Contacts of grid nodes as constraints of an implicit step.

| symbol | meaning | unit | source |
|---|---|---|---|
| n, w | outward normal and velocity of the body at the node | -, m/s | `collision` |
| P | projector on the directions in which a node is free | - | Gast 2015 |
| r, v_j | share that the node takes of the relative velocity of its image outside | -, m/s | `grid` |
| B | writes held components: those of v_i become r times their image's; B^T hands their gradient to the image | - | |
| lam, c | normal impulse that the body gives, at least -c where it can let go; c is what adhesion holds | kg m/s | |

A contact asks (v_i - w_i) = r (v_j - w_j): a sticky one of the whole velocity, a slipping one of its normal part, a separating
one of the same while the matter would otherwise enter the body: an inequality, held by an active set. With adhesion it holds while
lam >= -c, and pulls by c where it has let go (`friction`). Matter that is held before it
touches comes nearer as fast as it does when that set is chosen, up to what closes the gap. The constraints are eliminated: the
minimisation runs over what is free, H becomes B^T H B; what friction adds to it, `friction` says. Of several bodies at a node the
last one comes first, the others act on what it leaves free: it decides, as in explicit steps.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import BODY, COMES, FELLOW, FELLOW_BODY, LAG, NODE, NORMAL, PULL, RATIO
from mpm_nodes.kernels.collisions.contact_rows import RULE_OF as RULE
from mpm_nodes.kernels.collisions.rules import SEPARATE, STICKY
from mpm_nodes.kernels.compile.jit import compiled, part

__all__ = ["approach_of", "clamp", "constrain", "follow", "hand_over", "let_go", "normal_speed_of", "number_nodes", "take_held"]

DEPTH = 2
"""A image may follow a image of its own, where two bodies meet: that many contacts in a row are followed."""


@compiled(fastmath=False)
def number_nodes(rows, slot, of_row):
    """Give every node in contact a number, in the order of the contacts; returns how many there are.

    Args:
        rows: Contacts, shape (k, contact_rows.COLUMNS).
        slot: -1 for every node, int32; written.
        of_row: Number of each contact's node, shape (k,), int64; written.
    """
    found = 0
    for c in range(rows.shape[0]):
        node = np.int64(rows[c, NODE])
        if slot[node] < 0:
            slot[node] = found
            found += 1
        of_row[c] = slot[node]
    return found


@part
def _normal_in(free, at, n, direction):
    """Write P n, normalised; returns whether the node is still free that way."""
    direction[0] = free[at] * n[0] + free[at + 1] * n[1] + free[at + 2] * n[2]
    direction[1] = free[at + 1] * n[0] + free[at + 3] * n[1] + free[at + 4] * n[2]
    direction[2] = free[at + 2] * n[0] + free[at + 4] * n[1] + free[at + 5] * n[2]
    length = np.sqrt(direction[0] ** 2 + direction[1] ** 2 + direction[2] ** 2)
    if length < 1e-3:
        return False
    for axis in range(3):
        direction[axis] /= length
    return True


@part
def _take(free, at, d):
    """P <- P - d d^T."""
    free[at] -= d[0] * d[0]
    free[at + 1] -= d[0] * d[1]
    free[at + 2] -= d[0] * d[2]
    free[at + 3] -= d[1] * d[1]
    free[at + 4] -= d[1] * d[2]
    free[at + 5] -= d[2] * d[2]


@part
def normal_speed_of(row, velocity, at):
    """Return (v_i - w_i).n, and what the node comes nearer by."""
    return (
        row[COMES]
        + (velocity[at] - row[BODY]) * row[NORMAL]
        + (velocity[at + 1] - row[BODY + 1]) * row[NORMAL + 1]
        + (velocity[at + 2] - row[BODY + 2]) * row[NORMAL + 2]
    )


@part
def approach_of(row, velocity, at):
    """Return (v_i - w_i - r (v_j - w_j)).n: less than zero where the surface of the matter enters the body."""
    speed = normal_speed_of(row, velocity, at)
    if row[RATIO] != 0.0:
        of = 4 * np.int64(row[FELLOW])
        for axis in range(3):
            speed -= row[RATIO] * (velocity[of + axis] - row[FELLOW_BODY + axis]) * row[NORMAL + axis]
    return speed


@part
def _goal(row, velocity, axis):
    """Return a component of w_i + r (v_j - w_j), less what the node comes nearer by."""
    goal = row[BODY + axis] - row[COMES] * row[NORMAL + axis]
    if row[RATIO] != 0.0:
        goal += row[RATIO] * (velocity[4 * np.int64(row[FELLOW]) + axis] - row[FELLOW_BODY + axis])
    return goal


@compiled(fastmath=False)
def constrain(rows, of_row, active, velocity, free, held, choose):
    """Give constrained components the velocity that the body and the image ask for, and write what is held and what is free.

    Args:
        rows: Contacts, shape (k, contact_rows.COLUMNS); with `choose`, COMES is written.
        of_row: Number of each contact's node.
        active: Whether each contact holds, uint8; with `choose`, written: separating ones hold where the node approaches.
        velocity: Velocities of the nodes, changed [m/s].
        free: P of every node in contact, six values each, written.
        held: Of each contact, six values, written: of sticky ones what was free before, of others the direction taken (three).
        choose: Whether to choose what is active again.
    """
    direction = np.empty(3)
    for k in range(0, free.shape[0], 6):
        free[k], free[k + 3], free[k + 5] = 1.0, 1.0, 1.0
        free[k + 1] = free[k + 2] = free[k + 4] = 0.0
    held[:] = 0.0
    for c in range(rows.shape[0] - 1, -1, -1):
        row, k, at = rows[c], 6 * of_row[c], 4 * np.int64(rows[c, NODE])
        if choose:
            row[COMES] = 0.0
            if row[LAG] > 0.0:
                row[COMES] = min(max(-approach_of(row, velocity, at), 0.0), row[LAG])
            active[c] = row[RULE] != SEPARATE or row[PULL] > 0.0 or approach_of(row, velocity, at) < 0.0
        if not active[c]:
            continue
        if row[RULE] == STICKY:
            held[6 * c : 6 * c + 6] = free[k : k + 6]
            free[k : k + 6] = 0.0
        elif _normal_in(free, k, row[NORMAL:BODY], direction):
            held[6 * c : 6 * c + 3] = direction
            _take(free, k, direction)
    for _ in range(DEPTH):
        for c in range(rows.shape[0] - 1, -1, -1):
            if active[c]:
                _hold(rows[c], held, 6 * c, velocity)


@part
def _hold(row, held, k, velocity):
    """Change the components of a node that a contact holds to what it asks for."""
    at = 4 * np.int64(row[NODE])
    if row[RULE] == STICKY:
        d0, d1, d2 = (
            _goal(row, velocity, np.int64(0)) - velocity[at],
            _goal(row, velocity, np.int64(1)) - velocity[at + 1],
            _goal(row, velocity, np.int64(2)) - velocity[at + 2],
        )
        velocity[at] += held[k] * d0 + held[k + 1] * d1 + held[k + 2] * d2
        velocity[at + 1] += held[k + 1] * d0 + held[k + 3] * d1 + held[k + 4] * d2
        velocity[at + 2] += held[k + 2] * d0 + held[k + 4] * d1 + held[k + 5] * d2
    elif held[k] != 0.0 or held[k + 1] != 0.0 or held[k + 2] != 0.0:
        _stop(row, velocity, at, held[k : k + 3])


@part
def _stop(row, velocity, at, direction):
    """Change the velocity along `direction` until the matter's surface no longer enters the body."""
    along = direction[0] * row[NORMAL] + direction[1] * row[NORMAL + 1] + direction[2] * row[NORMAL + 2]
    change = -approach_of(row, velocity, at) / along
    for axis in range(3):
        velocity[at + axis] += change * direction[axis]


@compiled(fastmath=False)
def follow(rows, active, held, x):
    """x <- B x: give held components of a change of velocity r times those of their images.

    Args:
        rows, active, held: Contacts, which hold, and what they hold; see `constrain`.
        x: Vector on the grid, four values a node, changed.
    """
    for _ in range(DEPTH):
        for c in range(rows.shape[0] - 1, -1, -1):
            if not active[c]:
                continue
            row, k, at = rows[c], 6 * c, 4 * np.int64(rows[c, NODE])
            d0, d1, d2 = -x[at], -x[at + 1], -x[at + 2]
            if row[RATIO] != 0.0:
                of = 4 * np.int64(row[FELLOW])
                d0, d1, d2 = d0 + row[RATIO] * x[of], d1 + row[RATIO] * x[of + 1], d2 + row[RATIO] * x[of + 2]
            if row[RULE] == STICKY:
                x[at] += held[k] * d0 + held[k + 1] * d1 + held[k + 2] * d2
                x[at + 1] += held[k + 1] * d0 + held[k + 3] * d1 + held[k + 4] * d2
                x[at + 2] += held[k + 2] * d0 + held[k + 4] * d1 + held[k + 5] * d2
                continue
            along = held[k] * row[NORMAL] + held[k + 1] * row[NORMAL + 1] + held[k + 2] * row[NORMAL + 2]
            if along != 0.0:
                s = (d0 * row[NORMAL] + d1 * row[NORMAL + 1] + d2 * row[NORMAL + 2]) / along
                x[at], x[at + 1], x[at + 2] = x[at] + s * held[k], x[at + 1] + s * held[k + 1], x[at + 2] + s * held[k + 2]


@compiled(fastmath=False)
def hand_over(rows, active, held, g):
    """g <- B^T g: hand r times the held components of a gradient to the images, and clear them; the adjoint of `follow`."""
    d = np.empty(3)
    for _ in range(DEPTH):
        for c in range(rows.shape[0]):
            if not active[c]:
                continue
            take_held(rows[c], held, 6 * c, g, d)


@part
def take_held(row, held, k, g, d):
    """Take what a contact holds of its node's gradient from it, give r times that to the image, and write it to `d`.

    Returns whether the contact holds anything.
    """
    at = 4 * np.int64(row[NODE])
    if row[RULE] == STICKY:
        d[0] = held[k] * g[at] + held[k + 1] * g[at + 1] + held[k + 2] * g[at + 2]
        d[1] = held[k + 1] * g[at] + held[k + 3] * g[at + 1] + held[k + 4] * g[at + 2]
        d[2] = held[k + 2] * g[at] + held[k + 4] * g[at + 1] + held[k + 5] * g[at + 2]
    else:
        along = held[k] * row[NORMAL] + held[k + 1] * row[NORMAL + 1] + held[k + 2] * row[NORMAL + 2]
        if along == 0.0:
            return False
        s = (held[k] * g[at] + held[k + 1] * g[at + 1] + held[k + 2] * g[at + 2]) / along
        d[0], d[1], d[2] = s * row[NORMAL], s * row[NORMAL + 1], s * row[NORMAL + 2]
    g[at], g[at + 1], g[at + 2] = g[at] - d[0], g[at + 1] - d[1], g[at + 2] - d[2]
    if row[RATIO] != 0.0:
        of = 4 * np.int64(row[FELLOW])
        g[of] += row[RATIO] * d[0]
        g[of + 1] += row[RATIO] * d[1]
        g[of + 2] += row[RATIO] * d[2]
    return True


@compiled(fastmath=False)
def clamp(rows, of_row, active, free, velocity):
    """Stop nodes that a step would drive into bodies which they may leave, and make those contacts active; returns how many."""
    direction = np.empty(3)
    found = 0
    for c in range(rows.shape[0] - 1, -1, -1):
        row, k, at = rows[c], 6 * of_row[c], 4 * np.int64(rows[c, NODE])
        if active[c] or approach_of(row, velocity, at) >= 0.0 or not _normal_in(free, k, row[NORMAL:BODY], direction):
            continue
        _stop(row, velocity, at, direction)
        active[c] = 1
        found += 1
    return found


@compiled(fastmath=False)
def let_go(rows, active, gradient, impulse, releases, most):
    """Measure normal impulses, and free separating contacts that would have to pull harder than adhesion does; return how many.

    Args:
        rows: Contacts, shape (k, contact_rows.COLUMNS).
        active: Whether each contact holds, uint8; changed.
        gradient: dE/dv before projection [kg m/s].
        impulse: lam + c of each contact, shape (k,); written.
        releases: How often each was freed in this substep, uint8; changed.
        most: Contacts freed so often stay: the set must settle.
    """
    found = 0
    for c in range(rows.shape[0]):
        at = 4 * np.int64(rows[c, NODE])
        lam = gradient[at] * rows[c, NORMAL] + gradient[at + 1] * rows[c, NORMAL + 1] + gradient[at + 2] * rows[c, NORMAL + 2]
        impulse[c] = max(lam + rows[c, PULL], 0.0) if active[c] else 0.0
        if active[c] and rows[c, RULE] == SEPARATE and lam < -rows[c, PULL] and releases[c] < most:
            active[c] = 0
            releases[c] += 1
            found += 1
    return found
