"""Stages that take bodies as boundaries: solved until bodies move as what they are given moves them.

| symbol | meaning | unit |
|---|---|---|
| d | change of the bodies' velocities (v, w) by the matter, in this stage | m/s, rad/s |
| J(d) | impulses of the matter on bodies that move that way, and their moments about the centres of mass | N s, N m s |
| W | how velocities follow from impulses | 1/kg |
| A | - dJ/dd: the matter that bodies carry along, added mass among it | kg |

d = W J(d). To iterate that diverges where A is heavier than the body: a light ball in water swings ever more. Newton's method takes
A from solves with bodies that move a little otherwise, one for each direction, all bodies at once; Broyden's updates carry it on,
through the substeps, since it changes little. The search begins at the change of the substep before, over the time: what rests or
floats is found at once. Whatever round is the last, a body takes the impulses that matter gave: momentum is kept to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import StepContext
from mpm_nodes.physics.rigid_bodies.numerics.bodies import RigidBodies
from mpm_nodes.solver.moved_bodies import Agreement

__all__ = ["agree"]

ROUNDS = 12
"""Most solves after the first, but for those that measure A."""
AGREED, NEAR = 1e-4, 1e-5
"""Difference between a velocity and the one that follows from its impulses that counts as none: over the speeds, and in cells."""
PUSH = 0.02
"""By how much bodies are moved otherwise to measure A [cells]."""
WORSE = 0.9
"""Share of a difference that a step leaves from which on A is measured again."""


@dataclass(frozen=True)
class _Attempt:
    """Where the search is: d, and by how much it is off, both times the bodies' reach, flat [m/s]; J; whether that is nothing."""

    change: np.ndarray
    off: np.ndarray
    impulses: np.ndarray
    agrees: bool

    @property
    def length(self) -> float:
        return float(np.abs(self.off).max())


def agree(bodies: RigidBodies, solved: Callable[[np.ndarray], np.ndarray], step: StepContext, name: str) -> Agreement:
    """Solve a stage until the bodies move as matter lets them: see `MovedBodies.agree`.

    They have moved by `bodies.given` so far, to which J is added; by its name `bodies` remembers how matter answered.
    """
    world = bodies.world
    alone, inverse, given, count = world.twists(), world.inverse_masses(), bodies.given.copy(), len(world.places)
    reach = np.stack([np.ones(count), world.reach], axis=1).repeat(3, axis=1)
    solves, cell_speed = 0, step.cell_size / step.dt

    def at(change: np.ndarray) -> _Attempt:
        nonlocal solves
        solves += 1
        twist = change.reshape(count, 6) / reach
        impulses = solved(alone + twist)
        bodies.move(given + impulses)
        now = world.twists()
        off = (now - alone - twist) * reach
        speed = max(np.abs(alone * reach).max(), np.abs(now * reach).max())
        return _Attempt(change, off.ravel(), impulses, bool(np.abs(off).max() <= max(AGREED * speed, NEAR * cell_speed)))

    def measured(state: _Attempt) -> np.ndarray:
        held, each = np.zeros((count, 6, count, 6)), np.arange(count)
        for k in range(6):
            # a body is moved against what pushes it: contacts then hold on
            push = np.where(state.impulses[:, k] > 0.0, -PUSH, PUSH) * cell_speed
            moved = state.change.reshape(-1, 6).copy()
            moved[:, k] += push
            held[each, :, each, k] = (state.impulses - at(moved.ravel()).impulses) / push[:, None]
        size = 6 * count
        return np.asarray(-np.eye(size) - reach.reshape(-1, 1) * (inverse @ held.reshape(size, size)))

    now = at(step.dt * bodies.pushes[name].ravel() if name in bodies.pushes else np.zeros(6 * count))
    best, fresh = now, False
    for _ in range(ROUNDS):
        if now.agrees:
            break
        if bodies.slopes.get(name, np.zeros((0, 0))).shape != (now.off.size, now.off.size):
            bodies.slopes[name], fresh = measured(now), True
        slope = bodies.slopes[name]
        move = -np.linalg.solve(slope, now.off)
        there = at(now.change + move)
        bodies.slopes[name] = slope + np.outer(there.off - now.off - slope @ move, move) / (move @ move)
        if not fresh and not there.agrees and there.length > WORSE * now.length:
            del bodies.slopes[name]
        now = there
        best = now if now.length < best.length else best
    if best is not now:
        now = at(best.change)
    bodies.given, bodies.pushes[name] = given + now.impulses, now.change.reshape(count, 6) / step.dt
    return Agreement(solves, now.agrees)
