"""What a solve looks like from outside: frozen particles in the order of their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Particles, SingleRank, Walls
from mpm_nodes.solver.coefficients import sampled
from mpm_nodes.solver.matter import SourceMatter
from mpm_nodes.solver.passive import PassiveMatter
from mpm_nodes.solver.periodic import within
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Seen", "count_of", "snapshot_of"]


class Seen(Protocol):
    """What is looked at of a solve.

    Attributes:
        frame: Fractional frame of the last substep.
        time: Simulated seconds.
        walls: Its walls.
        matter: What it is made of.
    """

    frame: float
    time: float
    walls: Walls | None
    matter: SourceMatter

    @property
    def share(self) -> SingleRank:
        """This rank's part of the solve."""
        ...

    @property
    def particles(self) -> ParticleStore:
        """Its particles, but for those that are passive."""
        ...

    @property
    def passive(self) -> PassiveMatter:
        """Those that are passive."""
        ...


def snapshot_of(solver: Seen, names: Sequence[str] | None = None, frame: float | None = None) -> Particles:
    """Return frozen particles in the order of their ids, per simulated second.

    On several ranks rank 0 gets those of all, the others get their own.

    Args:
        solver: The solve.
        names: Attributes to return besides position, id and material; None for all.
        frame: Frame whose materials they are of; None takes the last substep's.
    """
    store = solver.particles
    chosen = ("position", *(name for name in store.names if names is None or name in names or name in ("id", "material")))
    known = solver.passive.seen if not store.count and solver.passive.store.count else {}  # what all sleeps, stays as it is
    if not known.keys() >= set(chosen):
        order = np.argsort(_of_all(solver, "id"), kind="stable")
        known |= {name: _of_all(solver, name)[order] for name in chosen if name not in known}
    columns = {name: known[name] for name in chosen}
    columns["position"] = within(columns["position"], solver.walls, store.period)
    materials = tuple(sampled(material, solver.frame if frame is None else frame) for material in solver.matter.materials)
    own = {name: store.table[name] for name in columns if name not in ATTRIBUTES}
    return Particles(columns, materials, solver.matter.spacing, solver.time, own)


def _of_all(solver: Seen, name: str) -> np.ndarray:
    """Return an attribute in memory order: on rank 0 of all ranks, if it gathers them, else of this one."""
    active = solver.share.joined(solver.particles.unpack(name))
    return np.concatenate([active, solver.passive.store.unpack(name)]) if solver.passive.store.count else active


def count_of(solver: Seen) -> int:
    """Return the number of particles; on several ranks of all of them, as they were sorted last."""
    return solver.share.count(solver.particles) + solver.passive.store.count
