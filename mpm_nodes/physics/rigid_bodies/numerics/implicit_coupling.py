"""Implicit substeps with rigid bodies: their velocities, and those of the matter that minimise its potential, are found together.

| symbol | meaning | unit |
|---|---|---|
| d | change of the bodies' velocities (v, w) by the matter | m/s, rad/s |
| J(d) | impulses of the contacts on bodies that move that way, and their moments, where the potential is least | N s, N m s |
| W | how velocities follow from impulses | 1/kg |
| A | - dJ/dd: with stiff matter, all of it that a body shakes within dt | kg |

A body is a boundary condition of the minimisation, and what the contacts give it moves it: d = W J(d). To iterate that diverges
where A is heavier than the body. Newton's method takes A from minimisations with bodies that move a little otherwise, one for each
direction, all bodies at once, each beginning at the one before; Broyden's updates carry it on, through the substeps of a frame.
Whatever round is the last, a body takes the impulses that its contacts gave: momentum is kept as well as the minimisation does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import BODY, FELLOW, FELLOW_BODY, LEVEL, NODE, RATIO
from mpm_nodes.physics.rigid_bodies.numerics.bodies import RigidBodies
from mpm_nodes.solver.contact_forces import impulses_on_bodies, places_of_contacts
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.minimisation import Minimisation, MinimisationOutcome
from mpm_nodes.solver.moved_bodies import Solved

__all__ = ["meet_implicitly"]

ROUNDS = 24
"""Most minimisations after the first, but for those that measure A, before the substep is halved."""
AGREED, NEAR = 1e-3, 1e-4
"""Difference between a velocity and the one that follows from its impulses that counts as none: over the speeds, and in cells."""
PUSH = 0.02
"""By how much bodies are moved otherwise to measure A [cells]."""
SHORTEST = 0.1
"""Shortest share of a step that is tried before A is measured again."""


FINE, ROUGH = 1e-7, 1e-4
"""Tolerances of the last minimisations and of those on the way [cells]: friction holds within a ten-thousandth of a cell, and what
bodies get is as exact as the balance of forces."""


class _CoupledState(NamedTuple):
    """Where the search is: d and by how much it is off, both times the bodies' reach, flat [m/s]; impulses; the minimisation."""

    change: np.ndarray
    off: np.ndarray
    impulses: np.ndarray
    solve: Minimisation
    outcome: MinimisationOutcome
    agrees: bool

    @property
    def length(self) -> float:
        return float(np.abs(self.off).max())


class _Coupling:
    """What a search asks for: minimisations with bodies that move in some way."""

    def __init__(self, bodies: RigidBodies, grid: GridStore, rows: np.ndarray, solved: Solved) -> None:
        world = bodies.world
        self.bodies, self.rows, self._solved = bodies, rows, solved
        self.mine = np.flatnonzero(np.isin(rows[:, LEVEL], world.places))
        met = rows[self.mine]
        node, image, level = met[:, [NODE, FELLOW, LEVEL]].astype(np.int64).T
        self.body, self.count = np.searchsorted(world.places, level), len(world.places)
        centre = world.starts[self.body] - grid.origin
        self._at_node = grid.places_of(node) - centre
        self._at_image = grid.places_of(np.where(image >= 0, image, node)) - centre
        self._arm = places_of_contacts(grid, node, image, met[:, RATIO]) - centre
        self.alone, self.inverse = world.twists(), world.inverse_masses()
        self.reach = np.stack([np.ones(self.count), world.reach], axis=1).repeat(3, axis=1)

    def at(self, change: np.ndarray, begin: np.ndarray | None, tolerance: float = ROUGH) -> _CoupledState:
        """Minimise with a change of the bodies' velocities, from velocities of the grid; the bodies move by what comes of it."""
        rows, twist = self.rows.copy(), change.reshape(self.count, 6) / self.reach
        moves, turns = twist[self.body, :3], twist[self.body, 3:]
        rows[self.mine, BODY : BODY + 3] += moves + np.cross(turns, self._at_node)
        rows[self.mine, FELLOW_BODY : FELLOW_BODY + 3] += moves + np.cross(turns, self._at_image)
        solve, outcome = self._solved(rows, begin, tolerance)
        given = solve.contact_impulses()[-1][self.mine]
        impulses = impulses_on_bodies(self.body, self._arm, given, self.count)
        self.bodies.move(impulses)
        now = self.bodies.world.twists()
        off = (now - self.alone - twist) * self.reach
        speeds = max(np.abs(self.alone * self.reach).max(), np.abs(now * self.reach).max())
        least = NEAR * solve.grid.h / solve.dt
        agrees = bool(np.abs(off).max() <= max(AGREED * speeds, least))
        return _CoupledState(change, off.ravel(), impulses, solve, outcome, agrees)

    def slope(self, state: _CoupledState) -> np.ndarray | None:
        """Return d off / d change around a state; None where a minimisation does not converge."""
        begin, push = state.solve.velocity.copy(), PUSH * state.solve.grid.h / state.solve.dt
        held = np.zeros((self.count, 6, self.count, 6))
        each = np.arange(self.count)
        for k in range(6):
            # a body is moved against what pushes it: contacts then hold on
            signs = np.where(state.impulses[:, k] > 0.0, -push, push)
            moved = state.change.reshape(-1, 6).copy()
            moved[:, k] += signs
            there = self.at(moved.ravel(), begin)
            if not there.outcome.converged:
                return None
            held[each, :, each, k] = (state.impulses - there.impulses) / signs[:, None]
        size, reach = 6 * self.count, self.reach.ravel()
        return np.asarray(-np.eye(size) - reach[:, None] * (self.inverse @ held.reshape(size, size)))


def meet_implicitly(
    bodies: RigidBodies, grid: GridStore, rows: np.ndarray, solved: Solved
) -> tuple[Minimisation, MinimisationOutcome]:
    """Minimise with bodies that move by what their contacts give them: see `MovedBodies.meet_implicitly`."""
    coupling = _Coupling(bodies, grid, rows, solved)
    if not len(coupling.mine):
        return solved(rows, None, FINE)
    now = coupling.at(np.zeros(6 * coupling.count), None)
    fresh, tolerance = False, ROUGH
    for _ in range(ROUNDS):
        if now.agrees and tolerance > FINE:
            tolerance = FINE
            now = coupling.at(now.change, now.solve.velocity.copy(), FINE)
        if now.agrees or not now.outcome.converged:
            break
        if bodies.slope.shape != (now.off.size, now.off.size):
            found = coupling.slope(now)
            fresh, bodies.slope = True, np.zeros((0, 0)) if found is None else found
            if found is None:
                return _failed(now, "matter that meets a rigid body")
        step, share = -np.linalg.solve(bodies.slope, now.off), 1.0
        begin = now.solve.velocity.copy()
        while True:
            there = coupling.at(now.change + share * step, begin, tolerance)
            if there.outcome.converged and (there.agrees or there.length < now.length):
                moved = share * step
                bodies.slope += np.outer(there.off - now.off - bodies.slope @ moved, moved) / (moved @ moved)
                now = there
                break
            share *= 0.5
            if share < SHORTEST or not fresh:
                if fresh:
                    return _failed(there, "a rigid body and the matter that it meets")
                bodies.slope = np.zeros((0, 0))
                break
    if not now.agrees:
        return _failed(now, "a rigid body and the matter that it meets")
    return now.solve, now.outcome


def _failed(state: _CoupledState, what: str) -> tuple[Minimisation, MinimisationOutcome]:
    """Return a minimisation as one that did not converge."""
    if state.outcome.converged:
        state.outcome.converged, state.outcome.reason = False, f"{what} did not agree on a velocity"
    return state.solve, state.outcome
