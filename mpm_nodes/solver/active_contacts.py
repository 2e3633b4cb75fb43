"""The active set of contacts of one implicit substep: which of them hold, what they leave free, and their friction."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.algebra import potential
from mpm_nodes.kernels.collisions import contact_rows, contacts, friction
from mpm_nodes.kernels.collisions.friction import Rubbing

__all__ = ["ActiveContacts"]

MOST_RELEASES = 3
"""A contact that let go so often in one substep stays: the active set must settle."""


class ActiveContacts:
    """Contacts of grid nodes with bodies and walls, and which of them hold. A solve without any compiles no loop over them.

    Args:
        rows: The contacts, as `ColliderSet.grid_contacts` gives them.
        slot: Room for a number of every node; it takes the place of the node's constraint, or -1.
        count: Grid blocks.
        slip: Speed below which a contact sticks [m/s].
        own: Grid blocks whose friction counts, bool, where several ranks share the grid; None: all.

    Attributes:
        slot: As given.
        active: 1 where a contact holds, uint8.
        free: Projectors on the directions that contacts leave free, six values for each node that has contacts.
        moving: Those that a product with the Hessian takes: all directions where held components are handed over afterwards.
        drag_slope: First derivative of the friction's potential, three values for each of these nodes.
        drag: Its second derivative, six values each.
        linked: Whether nodes outside of a surface follow held components of others.
        rubs: Whether there is friction or adhesion.
        clamped: How many contacts the last `clamp` stopped.
    """

    def __init__(self, rows: np.ndarray, slot: np.ndarray, count: int, slip: float, own: np.ndarray | None = None) -> None:
        self.rows, self.slot, self._count, self._slip = rows, slot, count, slip
        slot[: 64 * count] = -1
        self._of_row = np.empty(len(rows), np.int64)
        nodes = contacts.number_nodes(rows, slot, self._of_row) if len(rows) else 0
        self._of_image = np.full(len(rows), -1, np.int64)
        if len(rows) and (rows[:, contact_rows.PULL] > 0.0).any():
            nodes = self._number_images(nodes)
        self.free, self.drag_slope, self.drag = np.empty(6 * nodes), np.zeros(3 * nodes), np.zeros(6 * nodes)
        self._held = np.zeros(6 * len(rows))
        self.linked = bool(len(rows)) and bool((rows[:, contact_rows.RATIO] != 0.0).any())
        self.moving = np.tile((1.0, 0.0, 0.0, 1.0, 0.0, 1.0), nodes) if self.linked else self.free
        self.active, self._releases = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint8)
        self._impulse = np.zeros(len(rows))
        self.rubs = bool(len(rows)) and bool((rows[:, [contact_rows.FRICTION_OF, contact_rows.PULL]] > 0).any())
        self.clamped = 0
        self._counts = None if own is None else own[rows[:, contact_rows.NODE].astype(np.int64) >> 6]

    def _number_images(self, nodes: int) -> int:
        """Give images of contacts with adhesion numbers beyond those of nodes in contact; return how many there are then."""
        rows = self.rows
        pulled = np.flatnonzero((rows[:, contact_rows.PULL] > 0.0) & (rows[:, contact_rows.FELLOW] >= 0.0))
        image = rows[pulled, contact_rows.FELLOW].astype(np.int64)
        new = np.unique(image[self.slot[image] < 0])
        self.slot[new] = nodes + np.arange(len(new))
        self._of_image[pulled] = self.slot[image]
        return nodes + len(new)

    # ---------------------------------------------------------------- which hold
    def choose(self, velocity: np.ndarray) -> None:
        """Choose which contacts hold at these velocities, and constrain them."""
        if len(self.rows):
            self._constrain(velocity, True)

    def let_go(self, velocity: np.ndarray, gradient: np.ndarray) -> None:
        """Lag the normal impulses, and free the contacts that would pull."""
        freed = contacts.let_go(self.rows, self.active, gradient, self._impulse, self._releases, MOST_RELEASES)
        if freed or self.rubs:
            self._constrain(velocity, False)

    def clamp(self, velocity: np.ndarray, held: np.ndarray) -> None:
        """Stop trial velocities that would enter, and constrain them: the energy is that of the velocities which are taken.

        `held` is `active` as the search began: a longer step may have met more.
        """
        self.active[:] = held
        if self.clamped:
            self._constrain(velocity, False)
        self.clamped = contacts.clamp(self.rows, self._of_row, self.active, self.free, velocity) if len(self.rows) else 0
        if self.clamped:
            self._constrain(velocity, False)

    def hold_clamped(self, velocity: np.ndarray) -> None:
        """Hold for good the contacts that stopped a search, and constrain these velocities."""
        self._releases[self.active == 1] = MOST_RELEASES
        self._constrain(velocity, False)

    def _constrain(self, velocity: np.ndarray, choose: bool) -> None:
        contacts.constrain(self.rows, self._of_row, self.active, velocity, self.free, self._held, choose)

    # ---------------------------------------------------------------- vectors
    def reduce(self, gradient: np.ndarray) -> None:
        """Hand what held components would take to the nodes that they follow, and remove it (B^T, then P)."""
        if self.linked:
            contacts.hand_over(self.rows, self.active, self._held, gradient)
        potential.remove_constrained(self.free, self.slot, gradient, self._count)

    def follow(self, direction: np.ndarray) -> None:
        """Let nodes outside of a surface follow a direction that is free of held components (B)."""
        if self.linked:
            contacts.follow(self.rows, self.active, self._held, direction)

    # ---------------------------------------------------------------- friction
    def friction(self, velocity: np.ndarray) -> float:
        """Return the potential of friction [J], and leave its derivative in `drag_slope`."""
        if not self.rubs:
            return 0.0
        found = friction.drag_of(self._rubbing(), velocity, self.drag_slope)
        if self._counts is None:
            return found
        rows = self.rows.copy()
        rows[~self._counts, contact_rows.PULL] = 0.0
        rubbing = self._rubbing()._replace(rows=rows, active=self.active * self._counts)
        return friction.drag_of(rubbing, velocity, np.empty_like(self.drag_slope))

    def bend(self, momentum: np.ndarray, velocity: np.ndarray, gradient: np.ndarray) -> None:
        """Leave the second derivative of friction at these velocities in `drag`."""
        friction.drag_curvature(self._rubbing(), momentum, velocity, gradient, self.drag)

    def given_to_bodies(self, velocity: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return node, image, r, place among bodies and walls of each contact, and the impulse that it gives to its body.

        Args:
            velocity: Velocities of the nodes [m/s].
            gradient: dE/dv there; changed.
        """
        rows, given = self.rows, np.zeros((len(self.rows), 3))
        if len(rows):
            friction.give_to_bodies(self._rubbing(), self._held, gradient, velocity, given)
        node, image, level = rows[:, [contact_rows.NODE, contact_rows.FELLOW, contact_rows.LEVEL]].astype(np.int64).T
        return node, image, rows[:, contact_rows.RATIO], level, given

    def _rubbing(self) -> Rubbing:
        return Rubbing(self.rows, self._of_row, self._of_image, self.active, self._impulse, self._slip)

    def rub(self, momentum: np.ndarray, velocity: np.ndarray) -> None:
        """Leave the friction of a semi-implicit step in `drag_slope`."""
        if len(self.rows):
            friction.rub(self.rows, self._of_row, self.active, momentum, velocity, self.drag_slope)

    def add_drag(self, factor: float, blocks: np.ndarray) -> None:
        """Add `factor` times the second derivative of friction to node-diagonal blocks."""
        if self.rubs:
            friction.add_drag(self.rows, self._of_row, self.drag, factor, blocks)
