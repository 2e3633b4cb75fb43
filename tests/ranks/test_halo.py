"""The halo of ranks that are threads of this process: without MPI."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict

import numpy as np
import pytest

from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.ranks.halo import Halo
from mpm_nodes.solver.ranks.slabs import BEYOND, Slabs, column_of


def corners(wide):
    """Return the blocks that the points of a particle block give to: those of its tile, or of all that samples around it lie in."""
    return np.stack(np.meshgrid(*([range(-1, 3) if wide else range(2)] * 3), indexing="ij"), -1).reshape(-1, 3)


class Thread:
    """A team whose ranks are threads: what its halo needs of one."""

    def __init__(self, rank, size, mail):
        self.rank, self.size, self.mail = rank, size, mail

    def swap(self, pairs):
        pairs = list(pairs)
        for other, give, _ in pairs:
            self.mail[self.rank, other].put(give.copy())
        for other, _, take in pairs:
            found = self.mail[other, self.rank].get(timeout=20)
            assert found.shape == take.shape and found.dtype == take.dtype
            take[...] = found

    def swap_lists(self, pairs):
        pairs = list(pairs)
        for other, give in pairs:
            self.mail[self.rank, other].put(give.copy())
        return [self.mail[other, self.rank].get(timeout=20) for other, _ in pairs]


def packed(coord):
    return np.array([pack_coord(*each) for each in coord], np.int64)


def on_threads(size, work):
    mail, found, failed = defaultdict(queue.Queue), [None] * size, []
    for a in range(size):
        for b in range(size):
            mail[a, b]  # made before threads ask for it

    def run(rank):
        try:
            found[rank] = work(Thread(rank, size, mail))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    return found


NARROW = [(3, 5), (2, 4, 6), (4, BEYOND), (0, 2, 9)]
WIDE = [(3, 6), (2, 5, 8), (4, BEYOND), (0, 3, 9)]


@pytest.mark.parametrize(("cuts", "wide"), [*((cuts, False) for cuts in NARROW), *((cuts, True) for cuts in WIDE)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_rank_has_the_sums_of_all(cuts, wide, axis):
    """Blocks that particles of a rank give to, and one column of its neighbours': whole sums, the same bits on both sides."""
    slabs, width = Slabs(axis, cuts), 5
    blocks = np.random.default_rng(1).integers(0, 9, (60, 3))
    holders = slabs.holders(blocks[:, axis])

    def work(team):
        mine = packed((blocks[holders == team.rank][:, None] + corners(wide)[None]).reshape(-1, 3))
        own, halo = np.unique(mine), Halo(team, slabs)
        halo.wide = wide
        held = np.union1d(own, halo.ghosts(own))
        halo.lay_out(held)
        given = np.zeros((len(held), width))
        given[np.isin(held, own)] = np.random.default_rng(team.rank).normal(size=(len(own), width))
        summed, held_before = given.copy().ravel(), given.copy()
        halo.sum(summed, width=width)
        further = summed.copy()
        halo.open(further, width=width)  # what comes on top of sums is not to be counted twice
        further += given.ravel()
        halo.sum(further, width=width)
        owner = np.full(len(held) * width, float(team.rank))
        halo.copy(owner, width=width)
        return held, held_before, summed.reshape(-1, width), further.reshape(-1, width), owner.reshape(-1, width)[:, 0], own

    found = on_threads(len(cuts) + 1, work)
    whole = defaultdict(lambda: np.zeros(width))
    for held, given, *_ in found:
        for block, values in zip(held, given, strict=True):
            whole[block] = whole[block] + values
    seen = {}
    for held, _, summed, further, owner, own in found:
        assert np.isin(own, held).all()
        for block, values, twice in zip(held, summed, further, strict=True):
            assert np.array_equal(values, whole[block]) and np.array_equal(values, seen.setdefault(block, values))
            assert np.allclose(twice, 2.0 * values, rtol=1e-14, atol=1e-14)
        assert np.array_equal(owner, slabs.holders(column_of(held, axis)))
