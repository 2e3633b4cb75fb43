"""Where contacts are listed: room for every block, kept from substep to substep, and what shares a node with another body."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.kernels.collisions import response
from mpm_nodes.kernels.collisions.contact_rows import COLUMNS, FELLOW_PLACE, LEVEL_PLACE, NODE_PLACE, PLACES, ContactList
from mpm_nodes.solver.contact_lists import ContactLists


class Listing:
    """Lists contacts as the kernel does: no block writes more rows than it has, all are counted."""

    def __init__(self, counts):
        self.counts, self.calls = np.array(counts), []

    def __call__(self, found: ContactList, blocks: np.ndarray) -> None:
        self.calls.append(blocks.tolist())
        for block in blocks:
            found.counts[block] = self.counts[block]
            rows = slice(found.start[block], min(found.start[block] + self.counts[block], found.stop[block]))
            found.rows[rows] = block
            found.places[rows, LEVEL_PLACE] = np.arange(rows.stop - rows.start)


def check(found: ContactList, counts) -> None:
    """Every block has its own contacts, all of them, in their order."""
    assert found.counts.tolist() == list(counts)
    for block, (start, stop, count) in enumerate(zip(found.start, found.stop, found.counts, strict=True)):
        assert start + count <= stop and (found.rows[start : start + count] == block).all()
        assert found.places[start : start + count, LEVEL_PLACE].tolist() == list(range(count))


def test_blocks_whose_rows_do_not_suffice_are_listed_once_more():
    """Only they: a splash that meets a wall somewhere does not cost the contacts of all walls again."""
    lists, packed = ContactLists(), np.arange(4)
    first = Listing([0, 20, 3, 0])
    check(lists.filled(packed, first), first.counts)
    assert first.calls == [[0, 1, 2, 3], [1, 2]]
    later = Listing([0, 24, 3, 40])
    check(lists.filled(packed, later), later.counts)
    assert later.calls == [[0, 1, 2, 3], [3]]


def test_room_follows_the_blocks_that_stay():
    """Blocks appear and go with every sort; those that stay keep their room wherever they stand in the list."""
    lists = ContactLists()
    lists.filled(np.array([10, 20, 30]), Listing([30, 0, 5]))
    moved = Listing([30, 2, 5])
    check(lists.filled(np.array([10, 15, 30]), moved), moved.counts)
    assert moved.calls == [[0, 1, 2]]


def chained(contacts):
    """Return chains of contacts, given as (node, image, level) in one block."""
    count = len(contacts)
    places = np.zeros((count, PLACES), np.int32)
    places[:, [NODE_PLACE, FELLOW_PLACE, LEVEL_PLACE]] = contacts
    one = np.zeros(1, np.int64)
    found = ContactList(one, one + count, one + count, np.zeros((count, COLUMNS)), places, np.zeros(count))
    levels = max(level for _, _, level in contacts) + 1
    head, tail, again = (np.full(count, -1) for _ in range(3))
    starts = [np.zeros(levels + 1, np.int64) for _ in range(2)]
    chains = response.Chains(head, tail, np.zeros(count, np.int32), starts[0], again, starts[1])
    slot = np.full(64, -1, np.int32)
    count = response.group_contacts(found, np.flatnonzero(found.counts), slot, chains)
    assert (slot == -1).all()
    return [(int(head[k]), k in again[: starts[1][-1]]) for k in range(count)]


@pytest.mark.parametrize(
    ("contacts", "expected"),
    [
        ([(1, 5, 0), (2, 5, 0), (3, 6, 0)], [(0, False), (2, False)]),  # one body: nothing is met again
        ([(1, 5, 0), (2, 6, 1)], [(0, False), (1, False)]),  # two that share nothing
        ([(1, 5, 0), (3, 7, 0), (2, 5, 1)], [(0, True), (1, False), (2, True)]),  # a image of both
        ([(1, 5, 0), (3, 7, 0), (1, 6, 1)], [(0, True), (1, False), (2, True)]),  # a node of both
        ([(1, 5, 0), (5, 7, 1), (3, -1, 1)], [(0, True), (1, True), (2, False)]),  # a node of one, the image of the other
    ],
)
def test_chains_that_share_a_node_with_another_body_are_met_again(contacts, expected):
    """The others have their nodes for themselves: once met, they hold."""
    assert chained(contacts) == expected
