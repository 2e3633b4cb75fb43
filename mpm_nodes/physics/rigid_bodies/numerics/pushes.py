"""Forces that are wired into a solve, on its rigid bodies.

A body is pushed as eight particles of its mass, moment of inertia and centre would be (equimomental points): uniform accelerations
and those that grow along a straight line act on it exactly, drags on its turn, too. What reads attributes of particles, ties them
or presses on the surface of matter does not push bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mpm_nodes.data import BodyForce, Moment
from mpm_nodes.graph.time import keys
from mpm_nodes.physics.rigid_bodies.numerics.world import RigidWorld
from mpm_nodes.solver.contact_forces import impulses_on_bodies
from mpm_nodes.solver.field_programs import field_values

__all__ = ["pushed", "pushes_bodies"]


def pushes_bodies(force: BodyForce) -> bool:
    """Return whether a force pushes rigid bodies, too."""
    return force.attachment is None and not force.surface and not force.attributes and force.exchanges is None


def pushed(world: RigidWorld, forces: Sequence[BodyForce], moment: Moment, dt: float) -> np.ndarray:
    """Return the impulses on the bodies and their moments about the centres of mass, shape (n, 6) [N s, N m s].

    Args:
        world: The bodies, as the substep begins.
        forces: One after the other.
        moment: When their fields are taken.
        dt: The substep [s].
    """
    places, mass = world.equimomental_points()
    count, twists = len(mass), world.twists()
    arms = places - world.centres()[:, None]
    before = twists[:, None, :3] + np.cross(twists[:, None, 3:], arms)
    velocity = before.reshape(-1, 3)
    for force in _acting(forces):
        velocity = _kicked(force, places.reshape(-1, 3), velocity, moment, dt)
    change = (velocity - before.reshape(-1, 3)) * np.repeat(mass / 8.0, 8)[:, None]
    return impulses_on_bodies(np.repeat(np.arange(count), 8), arms.reshape(-1, 3), change, count)


def _acting(forces: Sequence[BodyForce]) -> Iterable[BodyForce]:
    return (force for force in forces if pushes_bodies(force))


def _kicked(force: BodyForce, places: np.ndarray, velocity: np.ndarray, moment: Moment, dt: float) -> np.ndarray:
    """Return velocities after a force, shape (n, 3): as `kernels.fields.pushing` has it for particles."""
    value = field_values(force.value, places, moment)
    if force.rate is not None:
        rate, off = np.maximum(field_values(force.rate, places, moment), 0.0), velocity - value
        speed = np.linalg.norm(off, axis=1)
        share = 1.0 / (1.0 + rate * speed * dt) if force.quadratic else np.exp(-rate * dt)
        then = value + share[:, None] * off
    else:
        then = velocity + dt * value
    most = keys.at(force.most_speed, moment.frame) or np.inf
    after, allowed = np.linalg.norm(then, axis=1), np.maximum(np.linalg.norm(velocity, axis=1), most)
    return np.asarray(then * np.where(after > allowed, allowed / np.maximum(after, 1e-300), 1.0)[:, None])
