"""The processes that share one simulation, by mpi4py: sums in the order of ranks, and messages between neighbours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError

__all__ = ["Team", "join_team"]


def join_team() -> Team:
    """Return the team of all processes that were launched together.

    Raises:
        MpmNodesError: mpi4py or the MPI library that it needs is missing.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MpmNodesError(
            f"ranks: mpi4py cannot be used ({error}); install it with an MPI: pip install 'mpm-nodes[mpi]' mpich"
        ) from error
    return Team(MPI.COMM_WORLD)


PAUSE = 5e-4
"""Seconds between two looks at whether all have come."""


class Team:
    """All ranks of a simulation.

    Every method that is not marked as local is called by all ranks, in the same order.

    Args:
        comm: An mpi4py communicator.

    Attributes:
        rank: Number of this process.
        size: Number of processes.
        sent: Bytes of the grid that this rank sent to its neighbours.
        shown: Bytes of particles that it handed over to other ranks, or that these asked to see.
        replicated: Bytes of particles that it sent to others for what every rank does with the particles of all.
        messages: How often it sent something of the grid to a neighbour.
        agreements: How often all ranks exchanged something: a few numbers, or particles.
        gathers: Whether rank 0 takes in the particles of all when a frame is published; else each publishes its own.
        waited: Seconds spent in all of it, with what the others kept this rank waiting.
    """

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, int(comm.Get_rank()), int(comm.Get_size())
        self.sent = self.shown = self.replicated = self.messages = self.agreements = 0
        self.gathers, self.waited = True, 0.0

    # ---------------------------------------------------------------- agreement
    def any(self, flag: bool) -> bool:
        """Return whether the flag is set anywhere."""
        return bool(self.gathered([float(flag)]).any())

    def gathered(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the numbers of every rank, shape (size, n), float64."""
        mine = np.ascontiguousarray(values, np.float64)
        every = np.empty((self.size, len(mine)))
        begin = time.perf_counter()
        self.comm.Allgather(mine, every)
        self.waited += time.perf_counter() - begin
        self.agreements += 1
        return every

    def totals(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the sums of some numbers, added up in the order of ranks: the same bits everywhere and every time."""
        every = self.gathered(values)
        total = every[0].copy()
        for row in every[1:]:
            total += row
        return total

    def largest(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the largest of some numbers; one that is not a number stays."""
        return np.asarray(self.gathered(values).max(axis=0))

    def every(self, value: Any) -> list[Any]:
        """Return the values of every rank, in their order."""
        begin = time.perf_counter()
        found = list(self.comm.allgather(value))
        self.waited += time.perf_counter() - begin
        self.agreements += 1
        return found

    def to_first(self, value: Any) -> list[Any] | None:
        """Return the values of every rank on rank 0, None elsewhere."""
        found = self.comm.gather(value, root=0)
        return None if found is None else list(found)

    def from_first(self, value: Any = None) -> Any:
        """Return the value that rank 0 has."""
        return self.comm.bcast(value, root=0)

    def dealt(self, parcels: list[Any]) -> list[Any]:
        """Hand a parcel to each rank; return what they hand to this one, in their order."""
        begin = time.perf_counter()
        found = list(self.comm.alltoall(parcels))
        self.waited += time.perf_counter() - begin
        self.agreements += 1
        return found

    # ---------------------------------------------------------------- neighbours
    def swap(self, pairs: Iterable[tuple[int, np.ndarray, np.ndarray]]) -> None:
        """Exchange arrays with single ranks, which do the same: (rank, array to send, array to fill)."""
        pairs = list(pairs)
        self.exchange([(other, give) for other, give, _ in pairs], [(other, take) for other, _, take in pairs])

    def exchange(self, gives: Sequence[tuple[int, np.ndarray]], takes: Sequence[tuple[int, np.ndarray]]) -> None:
        """Send arrays to single ranks and fill others by what they send; what one sends to another arrives in that order."""
        begin = time.perf_counter()
        requests = [self.comm.Irecv(take, source=other, tag=1) for other, take in takes]
        requests += [self.comm.Isend(give, dest=other, tag=1) for other, give in gives]
        for request in requests:
            request.Wait()
        self.waited += time.perf_counter() - begin
        self.sent += sum(give.nbytes for _, give in gives)
        self.messages += len(gives)

    def swap_lists(self, pairs: Iterable[tuple[int, np.ndarray]]) -> list[np.ndarray]:
        """Exchange arrays of integers of any length with single ranks; return theirs, in the order given."""
        pairs = list(pairs)
        lengths = [np.zeros(1, np.int64) for _ in pairs]
        self.swap((other, np.array([len(give)], np.int64), length) for (other, give), length in zip(pairs, lengths, strict=True))
        takes = [np.empty(int(length[0]), np.int64) for length in lengths]
        self.swap((other, np.ascontiguousarray(give, np.int64), take) for (other, give), take in zip(pairs, takes, strict=True))
        return takes

    # ---------------------------------------------------------------- the end
    def meet(self) -> None:
        """Wait for all ranks, however long one of them has other work, and leave it the cores: MPI itself would keep them busy."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(PAUSE)

    def abort(self, code: int) -> None:
        """End all ranks at once (local)."""
        self.comm.Abort(max(1, code))
        os._exit(max(1, code))  # some MPIs let this process go on for a moment, and it would tell its error once more
