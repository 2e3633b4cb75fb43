"""What one rank holds of a simulation, and what it does together with the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import SINGLE_RANK, Cancelled, Limit, Report, SingleRank
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import Halo
from mpm_nodes.solver.ranks.parcels import Parcel, parcel_of, refill
from mpm_nodes.solver.ranks.refusals import refuse_on_ranks
from mpm_nodes.solver.ranks.slabs import BEYOND, NARROWEST, NARROWEST_AROUND, Slabs, cut
from mpm_nodes.solver.ranks.team import Team
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Share", "shared_among"]

CROWDED = 1.2
"""Particles of the fullest rank over the mean beyond which matter is cut again."""

WORTH = 0.95
"""Share of the fullest rank's particles that a new cut must get below."""


class Share(SingleRank):
    """One of several ranks' part of a solve.

    Args:
        team: All ranks.
        particles: The solve's particles; this rank keeps those of its slab.
        grid: Its grid.

    Attributes:
        slabs: Who holds what.
        halo: What the grid shares with the neighbours'.
        handed: Particles that this rank gave to others so far.
        recuts: How often matter was cut again.
        whole_count: Particles of all ranks after the last sort.
    """

    several = True

    def __init__(self, team: Team, particles: ParticleStore, grid: GridStore) -> None:
        self.team, self.particles, self.grid = team, particles, grid
        self.size = team.size
        self.slabs = Slabs(0, (BEYOND,) * (team.size - 1))
        self.halo = grid.halo = Halo(team, self.slabs)
        particles.share = self
        self.handed = self.recuts = self.whole_count = 0
        self._laid_out = False

    def _take(self, slabs: Slabs) -> None:
        self.slabs = self.halo.slabs = slabs

    @property
    def narrowest(self) -> int:
        """Columns of a slab at least."""
        return NARROWEST_AROUND if self.grid.margin else NARROWEST

    # ---------------------------------------------------------------- what comes in
    def _lay_out(self, column: np.ndarray) -> None:
        """Cut matter that all ranks know into slabs, along its longest extent."""
        self._laid_out = True
        axis = int(np.argmax(np.ptp(column, axis=0)))
        mine = column[self.team.rank :: self.team.size, axis]  # each rank counts its share of them
        self._take(cut(self.team, mine, np.ones(len(mine)), axis, self.narrowest)[0])

    def _columns(self, position: np.ndarray) -> np.ndarray:
        """Return the blocks that positions lie in, as `blocks.grouped` finds them."""
        cells = (np.asarray(position, float) - self.particles.origin) / self.particles.h - 1.5
        return np.floor(cells / 4.0).astype(np.int64)

    def mine(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return those of new particles that lie in this rank's slab; the first are cut into slabs."""
        column = self._columns(columns["position"])
        if len(column) and not self._laid_out:
            self._lay_out(column)
        kept = self.slabs.holders(column[:, self.slabs.axis]) == self.team.rank
        return {name: np.asarray(values)[kept] for name, values in columns.items()}

    # ---------------------------------------------------------------- particles between ranks
    def facts(self) -> dict[str, Any]:
        """See `SingleRank`."""
        return {"axis": self.slabs.axis, "cuts": list(self.slabs.cuts)}

    def take_up(self, parcels: Sequence[Parcel], own: int | None, slabs: Slabs) -> None:
        """Go on with particles that ranks left earlier.

        Args:
            parcels: What each of them held, in their order.
            own: Which of them is this rank's; None where the number of ranks has changed: matter is cut again then,
                and where slabs are narrower than these substeps take.
            slabs: Who held what.
        """
        self._laid_out = True
        self._take(slabs)
        if own is not None and slabs.narrowest >= self.narrowest:
            refill(self.particles, [parcels[own]])
            return
        refill(self.particles, parcels)
        self.particles.sort()  # by where particles are now
        particles, ranks = self.particles, self.team.size
        column = particles.block_coord[:, slabs.axis]
        mine = slice(self.team.rank, None, ranks)  # each rank counts its share of the blocks
        self._take(cut(self.team, column[mine], np.diff(particles.block_start)[mine], slabs.axis, self.narrowest)[0])
        held = self.slabs.holders(column) == self.team.rank
        refill(particles, [parcel_of(particles, np.flatnonzero(held))])

    def any(self, flag: bool) -> bool:
        """See `SingleRank`."""
        return self.team.any(flag)

    def largest(self, value: float) -> float:
        """See `SingleRank`."""
        return float(self.team.largest([value])[0])

    def totals(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """See `SingleRank`."""
        return self.team.totals(values)

    def sort(self, particles: ParticleStore) -> None:
        """Sort the particles of all ranks: who left a slab is handed over, and slabs are cut again where one is crowded.

        Who comes from a lower rank stands before those of this one, who comes from a higher one behind: particles of one cell
        have the order that they have on one rank.
        """
        team = self.team
        particles.sort()
        columns = particles.block_coord[:, self.slabs.axis]
        counts = np.diff(particles.block_start)
        held = np.bincount(self.slabs.holders(columns), counts, team.size)
        shares = team.totals(held)
        self.whole_count = int(shares.sum())
        if shares.max() * team.size > CROWDED * shares.sum():
            slabs, fullest = cut(team, columns, counts, self.slabs.axis, self.narrowest)
            if fullest < WORTH * shares.max():
                self._take(slabs)
                self.recuts += 1
        holders = self.slabs.holders(columns)
        limits = self._limits_of_all()
        leaving = [None if r == team.rank else self._parcel(holders == r) for r in range(team.size)]
        coming = team.dealt(leaving)
        if all(parcel is None for parcel in (*leaving, *coming)):
            return
        given = [parcel for parcel in leaving if parcel is not None]
        team.shown += sum(parcel.nbytes for parcel in given)
        self.handed += sum(parcel.count for parcel in given)
        coming[team.rank] = parcel_of(particles, np.flatnonzero(holders == team.rank))
        refill(particles, [parcel for parcel in coming if parcel is not None])
        particles.sort()
        if limits is not None:
            particles.limits = self._of_runs(limits)

    def _parcel(self, which: np.ndarray) -> Parcel | None:
        return parcel_of(self.particles, np.flatnonzero(which)) if which.any() else None

    def _limits_of_all(self) -> np.ndarray | None:
        """Return the limits of dt by material, the largest of all ranks, shape (materials, 3); None where some are missing."""
        particles = self.particles
        mine = np.full((particles.materials, 3), -np.inf)
        if particles.limits is None and particles.count:
            mine[:] = np.nan
        else:
            for (law, _), limits in zip(particles.runs(), particles.limits or [], strict=True):
                mine[law.index] = limits
        found = self.team.largest(mine.ravel()).reshape(-1, 3)
        return None if np.isnan(found).any() else found

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """See `SingleRank`; afterwards this rank holds its own."""
        particles = self.particles
        drift = float(self.team.largest([particles.drift])[0])
        parcels = self.team.every(parcel_of(particles, np.arange(particles.block_count)))
        self.team.replicated += parcels[self.team.rank].nbytes * (self.team.size - 1)
        refill(particles, parcels)
        particles.drift = drift
        yield
        holders = self.slabs.holders(particles.block_coord[:, self.slabs.axis])
        refill(particles, [parcel_of(particles, np.flatnonzero(holders == self.team.rank))])

    def near(self, wanted: bool, names: tuple[str, ...], reach: int | None = None) -> tuple[Parcel, Parcel, float]:
        """Return copies of the neighbours' particles near the borders, lower and upper, and the largest drift of all [cells].

        Args:
            wanted: Whether this rank asks for them; else it may get empty parcels.
            names: Attributes to be copied, "position" among them.
            reach: Columns of blocks beyond the border; None: those of all that may lie within two cells of particles of this rank.
        """
        particles, rank = self.particles, self.team.rank
        columns = particles.block_coord[:, self.slabs.axis]
        told = self.team.gathered([float(wanted), particles.drift])
        asked, drift = told[:, 0], float(told[:, 1].max())
        if reach is None:
            reach = 1 if drift <= 3.0 else 2  # blocks n apart hold particles as near as 4 n - 2 drift cells
        sent: list[Any] = [None] * self.team.size
        for other, border in self.halo.neighbours if asked.any() else ():
            if asked[other]:
                close = columns < border + reach if other < rank else columns >= border - reach
                parcel = parcel_of(particles, np.flatnonzero(close))
                sent[other] = Parcel(parcel.coord, parcel.body, parcel.counts, {n: parcel.rows[n] for n in names})
        found = self.team.dealt(sent) if asked.any() else sent
        self.team.shown += sum(each.nbytes for each in sent if each is not None)
        none = parcel_of(particles, np.zeros(0, np.int64))
        lower = found[rank - 1] if rank else None
        upper = found[rank + 1] if rank + 1 < self.team.size else None
        return lower or none, upper or none, drift

    # ---------------------------------------------------------------- agreement
    def meet(self) -> None:
        """See `SingleRank`."""
        self.team.meet()

    def count(self, particles: ParticleStore) -> int:
        """See `SingleRank`."""
        return self.whole_count

    def joined(self, values: np.ndarray) -> np.ndarray:
        """See `SingleRank`."""
        return np.concatenate(self.team.to_first(values) or [values]) if self.team.gathers else values

    def cancel_check(self, check: Callable[[], None]) -> Callable[[], None]:
        """Raise `Cancelled` on all ranks when the user has stopped one of them; between stages none stops by itself."""
        stopped = False
        try:
            check()
        except Cancelled:
            stopped = True
        if self.any(stopped):
            raise Cancelled("stopped by the user")
        return lambda: None

    def join_report(self, report: Report, frame: int) -> None:
        """See `SingleRank`."""
        report.join(self.team.every([told for told in report.of_frame(frame) if told[0].by_rank]), frame)

    def inside(self, found: Sequence[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
        """See `SingleRank`."""
        counts = self.team.totals([count for _, count, _ in found]).tolist()
        depths = self.team.largest([depth for _, _, depth in found]).tolist()
        return [(name, int(count), depth) for (name, _, _), count, depth in zip(found, counts, depths, strict=True)]

    def largest_limits(self, particles: ParticleStore) -> list[tuple[float, float, float]]:
        """See `SingleRank`."""
        found = self._limits_of_all()
        return super().largest_limits(particles) if found is None else self._of_runs(found)

    def _of_runs(self, limits: np.ndarray) -> list[tuple[float, float, float]]:
        speed, gradient, wave = limits.T.tolist()
        return [(speed[law.index], gradient[law.index], wave[law.index]) for law, _ in self.particles.runs()]

    def mean_mass(self, particles: ParticleStore) -> float:
        """See `SingleRank`."""
        mass, count = self.team.totals([float(particles.rows("mass").sum(dtype=float)), particles.count])
        self.whole_count = int(count)
        return float(mass / count) if count else 0.0

    def shortest(self, limit: Limit, material: str, dt: float, known: Iterable[Limit]) -> tuple[Limit, str, float]:
        """See `SingleRank`."""
        every = self.team.every((limit.name, material, dt))
        name, material, dt = min(every, key=lambda each: each[2] if each[2] == each[2] else -np.inf)
        return next((each for each in known if each.name == name), limit), material, dt


def shared_among(team: Team | None, particles: ParticleStore, grid: GridStore, plans: Sequence[SubstepPlan]) -> SingleRank:
    """Return this rank's part of a solve, all of it where there is no team.

    Raises:
        MpmNodesError: The substeps hold something that ranks cannot share.
    """
    if team is None:
        return SINGLE_RANK
    refuse_on_ranks(plans, particles.period)
    return Share(team, particles, grid)
