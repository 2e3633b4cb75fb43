"""The rows that contacts of grid nodes are listed in, kept from substep to substep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpm_nodes.kernels.collisions.contact_rows import COLUMNS, PLACES, WALL_ROWS, ContactList

__all__ = ["ContactLists", "listed_rows", "told_of"]

SPARE = 8
"""Rows that a block has beyond the contacts that it had in the substep before."""
FRESH = 16
"""Rows of a block that was not there, in a grid of which others were."""


class ContactLists:
    """Rows of every block: a few more than it had contacts in the substep before."""

    def __init__(self) -> None:
        self._packed, self._room = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._rows, self._places, self._ratios = np.empty((0, COLUMNS)), np.empty((0, PLACES), np.int32), np.empty(0)
        self._following, self._chains = np.empty(0, np.int32), np.empty((3, 0), np.int64)

    def filled(
        self, packed: np.ndarray, list_blocks: Callable[[ContactList, np.ndarray], None], blocks: np.ndarray | None = None
    ) -> ContactList:
        """Return the contacts of all blocks. Blocks whose rows do not suffice are listed once more, with enough.

        Args:
            packed: Packed coordinates of the blocks, ascending.
            list_blocks: Lists the contacts of blocks, given by their places.
            blocks: Those that may have any; None: all.
        """
        room = self._room_of(packed)
        start = WALL_ROWS + np.cumsum(room) - room
        found = self._list(start, start + room, np.zeros(len(packed), np.int64))
        list_blocks(found, np.arange(len(packed)) if blocks is None else blocks)
        if (found.counts > room).any():
            crowded = np.flatnonzero(found.counts > room)
            needed = found.counts[crowded]
            start[crowded] = WALL_ROWS + int(room.sum()) + np.cumsum(needed) - needed
            found = self._list(start, start + np.maximum(found.counts, room), found.counts)
            list_blocks(found, crowded)
        self._packed, self._room = packed, np.where(found.counts > 0, found.counts + SPARE, 0)
        return found

    def following(self) -> np.ndarray:
        """Return room for an int32 a row."""
        if len(self._following) < len(self._rows):
            self._following = np.empty(len(self._rows), np.int32)
        return self._following

    def chains(self, count: int) -> np.ndarray:
        """Return room for three int64 a contact, shape (3, at least `count`)."""
        if self._chains.shape[1] < count:
            self._chains = np.empty((3, count * 5 // 4), np.int64)
        return self._chains

    def _room_of(self, packed: np.ndarray) -> np.ndarray:
        if len(packed) == len(self._packed) and np.array_equal(packed, self._packed):
            return self._room
        if not len(self._packed):
            return np.zeros(len(packed), np.int64)
        before = np.minimum(np.searchsorted(self._packed, packed), len(self._packed) - 1)
        return np.where(self._packed[before] == packed, self._room[before], FRESH)

    def _list(self, start: np.ndarray, stop: np.ndarray, counts: np.ndarray) -> ContactList:
        needed = int(stop.max(initial=WALL_ROWS))
        if len(self._rows) < needed:
            held, room = len(self._rows), needed * 5 // 4
            rows, places, ratios = self._rows, self._places, self._ratios
            self._rows, self._places, self._ratios = np.empty((room, COLUMNS)), np.empty((room, PLACES), np.int32), np.empty(room)
            self._rows[:held], self._places[:held], self._ratios[:held] = rows, places, ratios
        return ContactList(start, stop, counts, self._rows, self._places, self._ratios)


def listed_rows(found: ContactList) -> np.ndarray:
    """Return the rows of all contacts, block by block."""
    before = np.cumsum(found.counts) - found.counts
    return np.arange(int(found.counts.sum())) + np.repeat(found.start - before, found.counts)


def told_of(found: ContactList, given: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return node, image, r, place among bodies and walls of each contact, and the impulse that it gave to its body, shape (n, 3).

    Args:
        found: The contacts.
        given: Three impulses a row of `found`, flat [N s]; empty where nobody asked: then no contact is told.
    """
    listed = listed_rows(found) if len(given) else np.zeros(0, np.int64)
    node, image, level, _ = found.places[listed].astype(np.int64).T
    return node, image, found.ratios[listed], level, given.reshape(-1, 3)[listed]
