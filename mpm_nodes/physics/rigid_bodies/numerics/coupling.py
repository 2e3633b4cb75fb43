"""Contacts of the grid with rigid bodies, which the matter moves: both get the velocities at which the impulses between them agree.

| symbol | meaning | unit |
|---|---|---|
| d | change of a body's velocity (v, w) by the matter | m/s, rad/s |
| J(d) | impulses of the contacts on the bodies that move that way, and their moments about the centres of mass | N s, N m s |
| W | inverse masses: how velocities follow from impulses | 1/kg |
| A | - dJ/dd: what matter the contacts hold, in the directions in which they hold it | kg |

A body that would move on as if there were no matter, and get the impulses afterwards, swings where it is lighter than the matter
that it touches, and bursts where it is half as heavy. Here d = W J(d) is solved by Newton's method: the contacts of a node are
linear where it keeps sticking, sliding or being free, so that two or three rounds do. Whatever round is the last, a body takes the
very impulses that the nodes were given: momentum is kept to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import (
    BODY,
    FELLOW_BODY,
    FELLOW_PLACE,
    FRICTION_OF,
    LEVEL_PLACE,
    NODE_PLACE,
    NORMAL,
    PULL,
    RULE_OF,
    SURFACE_PLACE,
    ContactList,
)
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP
from mpm_nodes.physics.rigid_bodies.numerics.bodies import RigidBodies
from mpm_nodes.solver.contact_forces import impulses_on_bodies, places_of_contacts
from mpm_nodes.solver.contact_lists import listed_rows
from mpm_nodes.solver.device.residency import ArrayParts
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.lost_on_paths import LostOnPaths, momentum_lost
from mpm_nodes.solver.state import ParticleStore

__all__ = ["kick", "meet"]

ROUNDS = 8
"""Most times that contacts are met in a substep."""
AGREED = 1e-4
"""Difference between a velocity and the one that follows from its impulses, over the speeds, that counts as none: it takes
half a round less than 1e-6 would, and velocities differ by about 1e-5."""


@dataclass(frozen=True)
class RigidContacts:
    """The contacts of nodes with rigid bodies.

    Attributes:
        listed: Their rows in the list, shape (n,).
        body: Number of the rigid body of each, shape (n,).
        arm: From its centre of mass to where the contact acts, shape (n, 3) [m].
        node_arm, image_arm: The same to the node, and to its image, shape (n, 3) [m].
        held: Mass that it holds where it acts, shape (n,) [kg].
    """

    listed: np.ndarray
    body: np.ndarray
    arm: np.ndarray
    node_arm: np.ndarray
    image_arm: np.ndarray
    held: np.ndarray


def meet(bodies: RigidBodies, grid: GridStore, found: ContactList, respond: Callable[[], None], given: np.ndarray) -> None:
    """Meet all contacts of a substep: see `MovedBodies.meet`."""
    every = listed_rows(found)
    places = found.places[every]
    contacts = _contacts(bodies, grid, found, every, places[:, LEVEL_PLACE])
    if not len(contacts.listed):
        respond()
        return
    nodes = _nodes_of(places, 64 * grid.count)
    velocity = grid.kept("velocity").reshape(-1, 4)
    surface = found.places[contacts.listed, SURFACE_PLACE]
    rows = found.rows[surface].copy()
    before, pulls = velocity[nodes].copy(), found.rows[:, PULL].copy()
    alone, inverse = bodies.world.twists(), bodies.world.inverse_masses()
    reach = np.stack([np.ones_like(bodies.world.reach), bodies.world.reach], axis=1).repeat(3, axis=1)
    change = np.zeros_like(alone)
    for _ in range(ROUNDS):
        moves, turns = change[contacts.body, :3], change[contacts.body, 3:]
        found.rows[surface, BODY : BODY + 3] = rows[:, BODY : BODY + 3] + moves + np.cross(turns, contacts.node_arm)
        found.rows[surface, FELLOW_BODY : FELLOW_BODY + 3] = (
            rows[:, FELLOW_BODY : FELLOW_BODY + 3] + moves + np.cross(turns, contacts.image_arm)
        )
        velocity[nodes], found.rows[:, PULL], given[:] = before, pulls, 0.0
        respond()
        impulses = given.reshape(-1, 3)[contacts.listed]
        bodies.move(impulses_on_bodies(contacts.body, contacts.arm, impulses, len(alone)))
        twists = bodies.world.twists()
        off = twists - alone - change
        speeds = max(np.abs(alone * reach).max(), np.abs(twists * reach).max())
        if np.abs(off * reach).max() <= AGREED * speeds:
            break
        held = _held(contacts, rows, impulses, len(alone))
        change = change + np.linalg.solve(np.eye(off.size) + inverse @ held, off.ravel()).reshape(off.shape)


def kick(
    bodies: RigidBodies, particles: ParticleStore, parts: ArrayParts | None, before: np.ndarray, lost: LostOnPaths
) -> LostOnPaths:
    """Give the bodies what particles lost on their paths: see `MovedBodies.kick`.

    Paths are met as if bodies were infinitely heavy. A body that is lighter than what meets it in a substep would be thrown: with
    e_p = sum m |dv|^2 of its particles and e_b = P . W P of their impulse P, it is given the share min(1, e_p / e_b), and they keep
    the rest. Kinetic energy then never grows: it changes by - s e_p + s^2 (e_p + e_b) / 2 at most.
    """
    places = bodies.world.places
    mine = np.flatnonzero(np.isin(lost.nearest, places))
    if not len(mine):
        return lost
    body = np.searchsorted(places, lost.nearest[mine])
    arm = lost.place[mine] - bodies.world.centres()[body]
    impulses = impulses_on_bodies(body, arm, lost.momentum[mine], len(places))
    inverse = bodies.world.inverse_masses().reshape(len(places), 6, len(places), 6)
    of_bodies = np.einsum("bi,bibj,bj->b", impulses, inverse, impulses)
    mass = particles.rows("mass")[0, lost.met[mine]].astype(np.float64)
    of_particles = np.bincount(body, (lost.momentum[mine] ** 2).sum(axis=1) / mass, len(places))
    share = np.minimum(of_particles / np.maximum(of_bodies, np.finfo(float).tiny), 1.0)[body]
    if (share < 1.0).any():
        velocity, moved = particles.rows("velocity", parts), lost.met[mine]
        velocity[:, moved] = np.where(
            share < 1.0, before[:, moved] + share * (velocity[:, moved] - before[:, moved]), velocity[:, moved]
        )
        lost.momentum[mine] = momentum_lost(particles, velocity, before, moved)
        impulses = impulses_on_bodies(body, arm, lost.momentum[mine], len(places))
    bodies.world.kick(impulses)
    return lost


def _nodes_of(places: np.ndarray, count: int) -> np.ndarray:
    """Return the nodes and images of contacts, each once; a grid has `count` nodes, and the image -1 is none."""
    met = np.zeros(count + 1, bool)
    met[places[:, NODE_PLACE]] = met[places[:, FELLOW_PLACE]] = True
    return np.flatnonzero(met[:-1])


def _contacts(bodies: RigidBodies, grid: GridStore, found: ContactList, every: np.ndarray, levels: np.ndarray) -> RigidContacts:
    """Return the contacts with rigid bodies, among `every` row listed, with the bodies and walls that they are with."""
    places = bodies.world.places
    is_rigid = np.zeros(int(levels.max(initial=-1)) + 2, bool)  # contacts with nothing have the level -1
    is_rigid[places[places < len(is_rigid) - 1]] = True
    listed = every[is_rigid[levels]]
    node, image = (found.places[listed, at].astype(np.int64) for at in (NODE_PLACE, FELLOW_PLACE))
    body = np.searchsorted(places, found.places[listed, LEVEL_PLACE])
    ratio, outside = found.ratios[listed], np.where(image >= 0, image, node)
    centre = bodies.world.starts[body] - grid.origin
    node_arm, image_arm = grid.places_of(node) - centre, grid.places_of(outside) - centre
    mass = grid.kept("momentum").reshape(-1, 4)[:, 3]
    inner = mass[node].astype(np.float64)
    outer = np.where(image >= 0, mass[outside].astype(np.float64), np.inf)
    arm = places_of_contacts(grid, node, image, ratio) - centre
    held = inner * (1.0 - ratio) ** 2 / (1.0 + ratio**2 * inner / outer)
    return RigidContacts(listed, body, arm, node_arm, image_arm, np.where(image >= 0, held, inner))


def _held(contacts: RigidContacts, rows: np.ndarray, impulses: np.ndarray, count: int) -> np.ndarray:
    """Return A, shape (6 count, 6 count): what is free of a body in this round, or slides along it, is not held that way."""
    normal = rows[:, NORMAL : NORMAL + 3]
    push = np.einsum("ni,ni->n", impulses, -normal)
    along = np.linalg.norm(impulses + push[:, None] * normal, axis=1)
    rule = rows[:, RULE_OF]
    slides = (rule == SLIP) | ((rule == SEPARATE) & (along >= rows[:, FRICTION_OF] * (push + rows[:, PULL]) * (1.0 - 1e-6)))
    hold = np.where(slides[:, None, None], normal[:, :, None] * normal[:, None, :], np.eye(3))
    hold *= (contacts.held * (np.abs(impulses).max(axis=1) > 0.0))[:, None, None]
    x, y, z = contacts.arm.T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    turned = cross @ hold
    blocks = np.concatenate(
        [np.concatenate([hold, -(hold @ cross)], axis=2), np.concatenate([turned, -(turned @ cross)], axis=2)], axis=1
    )
    held = np.zeros((count, 6, count, 6))
    for k in range(count):
        held[k, :, k, :] = blocks[contacts.body == k].sum(axis=0)
    return held.reshape(6 * count, 6 * count)
