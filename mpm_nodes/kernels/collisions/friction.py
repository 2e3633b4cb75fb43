"""Coulomb friction of grid nodes in contact: a dissipation with slope and curvature in implicit steps, an impulse in others.

| symbol | meaning | unit |
|---|---|---|
| s, t | slip speed, direction of v - w without its normal part | m/s, - |
| lam, c | normal impulse that the body gives, largest pull of its adhesion | kg m/s |
| r | share that a node takes of the relative velocity of its image outside (`contacts`) | - |
| mu_f, eps | friction coefficient, slip speed below which friction holds | -, m/s |

The dissipation mu_f (1 - r) lam |v_t| is smoothed below eps to a parabola, with lam lagged: its gradient reaches the friction and
it is convex, so it joins the minimisation (as in Li 2020, "Incremental Potential Contact", section 5); node and image together
take (1 - r) lam from the body. With adhesion lam + c stands in the place of lam, and a contact that has let go pulls on by c: the
term c (v_i - r v_j).n, for as long as matter is near enough to be in contact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import BODY, NODE, NORMAL, PULL, RATIO
from mpm_nodes.kernels.collisions.contact_rows import FRICTION_OF as FRICTION
from mpm_nodes.kernels.collisions.contact_rows import RULE_OF as RULE
from mpm_nodes.kernels.collisions.contacts import DEPTH, approach_of, normal_speed_of, take_held
from mpm_nodes.kernels.collisions.rules import SEPARATE
from mpm_nodes.kernels.compile.jit import compiled, part

__all__ = ["Rubbing", "add_drag", "drag_curvature", "drag_of", "give_to_bodies", "rub"]


@compiled(fastmath=False)
def rub(rows, of_row, active, momentum, velocity, slope):
    """Write the friction of explicit steps: impulses of mu_f times the normal one, at most what stops the node (Stomakhin 2013).

    Args:
        rows, of_row, active: Contacts, their nodes' numbers, and which hold.
        momentum: Nodes' (px, py, pz, m), flat.
        velocity: Velocities before the contact [m/s].
        slope: Impulse against the slip, three values of each node in contact [kg m/s]; written.
    """
    slope[:] = 0.0
    t = np.empty(3)
    for c in range(rows.shape[0]):
        row, at, k = rows[c], 4 * np.int64(rows[c, NODE]), of_row[c]
        approach = approach_of(row, velocity, at)
        if not active[c] or row[RULE] != SEPARATE or row[FRICTION] <= 0.0 or approach >= 0.0:
            continue
        speed = _slip(row, velocity, at, t)
        share = min(-_grip(row) * approach, speed)
        for axis in range(3):
            slope[3 * k + axis] += momentum[at + 3] * share * t[axis]


@part
def _grip(row):
    """Return the friction coefficient of a node: it stands for its image too, which takes - r of every impulse."""
    return row[FRICTION] * (1.0 - row[RATIO])


@part
def _slip(row, velocity, at, t):
    """Write the slip direction, or zero, to `t`; return the slip speed [m/s]."""
    normal_speed = normal_speed_of(row, velocity, at)
    for axis in range(3):
        t[axis] = velocity[at + axis] - row[BODY + axis] - normal_speed * row[NORMAL + axis]
    speed = np.sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2])
    for axis in range(3):
        t[axis] = t[axis] / speed if speed > 0.0 else 0.0
    return speed


class Rubbing(NamedTuple):
    """Contacts with friction.

    Attributes:
        rows: Contacts.
        of_row: Number of each contact's node.
        of_image: Number of the image of each contact with adhesion, -1 where there is none.
        active: Which of them hold.
        impulse: Their lagged normal impulses, and what adhesion adds [kg m/s].
        eps: Slip speed below which friction holds [m/s].
    """

    rows: np.ndarray
    of_row: np.ndarray
    of_image: np.ndarray
    active: np.ndarray
    impulse: np.ndarray
    eps: float


@compiled(fastmath=False)
def drag_of(rubbing, velocity, slope):
    """Return the dissipation of Coulomb friction [J], and write its gradient by the nodes' velocities.

    Args:
        rubbing: `Rubbing`.
        velocity: Velocities of the nodes [m/s].
        slope: Gradient, three values of each node in contact [kg m/s]; written.
    """
    rows, of_row, of_image, active, impulse, eps = rubbing
    slope[:] = 0.0
    total = 0.0
    t = np.empty(3)
    for c in range(rows.shape[0]):
        total += _drag(rows[c], active[c], impulse[c], eps, velocity, t)
        for axis in range(3):
            slope[3 * of_row[c] + axis] += t[axis]
        if of_image[c] >= 0 and not active[c]:
            for axis in range(3):
                slope[3 * of_image[c] + axis] -= rows[c, RATIO] * t[axis]
    return total


@part
def _drag(row, active, impulse, eps, velocity, t):
    """Write what friction, or the adhesion of a contact that has let go, takes from its node to `t`; return the potential."""
    at = 4 * np.int64(row[NODE])
    strength = _grip(row) * impulse
    if not active and row[PULL] > 0.0:
        for axis in range(3):
            t[axis] = row[PULL] * row[NORMAL + axis]
        return row[PULL] * approach_of(row, velocity, at)
    if not active or row[RULE] != SEPARATE or strength <= 0.0:
        t[:] = 0.0
        return 0.0
    speed = _slip(row, velocity, at, t)
    for axis in range(3):
        t[axis] = strength * min(speed / eps, 1.0) * t[axis]
    return strength * (speed if speed > eps else 0.5 * (speed * speed / eps + eps))


@compiled(fastmath=False)
def give_to_bodies(rubbing, held, gradient, velocity, given):
    """Write the impulses that the contacts of an implicit step give to their bodies [N s].

    Args:
        rubbing: `Rubbing`.
        held: What contacts hold, as `contacts.constrain` writes it.
        gradient: dE/dv at these velocities with friction, before it is handed over; changed as `contacts.hand_over` does.
        velocity: Velocities of the nodes [m/s].
        given: Shape (contacts, 3), written.
    """
    rows, _, of_image, active, impulse, eps = rubbing
    t, d = np.empty(3), np.empty(3)
    for c in range(rows.shape[0]):
        _drag(rows[c], active[c], impulse[c], eps, velocity, t)
        both = 1.0 - rows[c, RATIO] if of_image[c] >= 0 and not active[c] else 1.0
        for axis in range(3):
            given[c, axis] = both * t[axis]
    for _ in range(DEPTH):
        for c in range(rows.shape[0]):
            if active[c] and take_held(rows[c], held, 6 * c, gradient, d):
                for axis in range(3):
                    given[c, axis] -= (1.0 - rows[c, RATIO]) * d[axis]


@compiled(fastmath=False)
def drag_curvature(rubbing, momentum, velocity, gradient, curvature):
    """Write a second derivative of the friction for Newton's method, six values of each node in contact [kg].

    Across the slip it is the exact one, strength / speed. Along the slip the exact one is zero: a step that stops a node would
    overshoot, and the parabola that touches from above, strength / speed again, converges slowly. In between lies the curvature
    with which the node, left alone, would come to rest: zero where it goes on slipping.

    Args:
        rubbing, velocity: As for `drag_of`.
        momentum: Nodes' (px, py, pz, m), flat.
        gradient: dE/dv with friction [kg m/s].
        curvature: Written.
    """
    rows, of_row, _, active, impulse, eps = rubbing
    curvature[:] = 0.0
    t = np.empty(3)
    for c in range(rows.shape[0]):
        strength = _grip(rows[c]) * impulse[c]
        if not active[c] or rows[c, RULE] != SEPARATE or strength <= 0.0:
            continue
        row, at, place = rows[c], 4 * np.int64(rows[c, NODE]), 6 * of_row[c]
        speed = _slip(row, velocity, at, t)
        across = strength / max(speed, eps)
        along = across
        if speed > eps:
            push = gradient[at] * t[0] + gradient[at + 1] * t[1] + gradient[at + 2] * t[2]
            along = min(max(push / speed - momentum[at + 3], 0.0), across)
        for a in range(3):
            for b in range(a, 3):
                curvature[place] += (
                    across * ((1.0 if a == b else 0.0) - row[NORMAL + a] * row[NORMAL + b]) + (along - across) * t[a] * t[b]
                )
                place += 1


@compiled(fastmath=False)
def add_drag(rows, of_row, curvature, factor, blocks):
    """Add `factor` times the friction's second derivative to the blocks of nodes in contact, six values each."""
    found = 0
    for c in range(rows.shape[0]):
        if of_row[c] == found:  # the first contact of its node: numbers rise with the contacts
            at = 6 * np.int64(rows[c, NODE])
            for row in range(6):
                blocks[at + row] += factor * curvature[6 * found + row]
            found += 1
