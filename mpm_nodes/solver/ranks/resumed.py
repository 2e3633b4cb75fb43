"""A solve that goes on from checkpoints of other ranks, as many as they may have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.solver.ranks.parcels import Parcel, refill
from mpm_nodes.solver.ranks.share import Share
from mpm_nodes.solver.ranks.slabs import Slabs
from mpm_nodes.solver.restored import refuse_unsound
from mpm_nodes.solver.stores import Saved

if TYPE_CHECKING:
    from mpm_nodes.solver.run import SubstepSolver

__all__ = ["take_up"]

PLACE = "particles"


def take_up(solver: SubstepSolver, parts: Sequence[tuple[Mapping[str, Any], Mapping[str, np.ndarray]]]) -> None:
    """Restore the particles of a solve from the parts of all ranks; on as many ranks as there were each takes its own.

    Args:
        solver: One of the ranks' solvers, or the only one.
        parts: Facts and arrays of each rank's checkpoint, in their order.
    """
    particles, share = solver.particles, solver.share
    saved = [
        Saved.from_arrays(
            facts["domains"][PLACE],
            {name.removeprefix(f"{PLACE} "): array for name, array in arrays.items() if name.startswith(f"{PLACE} ")},
        )
        for facts, arrays in parts
    ]
    for each in saved:
        refuse_unsound(particles, each)
    particles.origin[:] = saved[0].tables["origin"]
    parcels = [_parcel(each) for each in saved]
    facts = parts[0][0]
    if not isinstance(share, Share):
        refill(particles, parcels)
    else:
        slabs = Slabs(facts.get("axis", 0), tuple(facts.get("cuts", ())))
        if "axis" not in facts:
            slabs = Slabs(_longest(parcels[0].coord), ())
        share.take_up(parcels, share.team.rank if len(parts) == share.team.size else None, slabs)
    particles.stale = set().union(*(each.facts["stale"] for each in saved))
    particles.next_id = saved[0].facts["next_id"]
    particles.drift = max(particles.drift, *(each.facts["drift"] for each in saved))


def _longest(coord: np.ndarray) -> int:
    return int(np.argmax(np.ptp(coord, axis=0))) if len(coord) else 0


def _parcel(saved: Saved) -> Parcel:
    coord = saved.tables["block_coord"]
    body = saved.tables.get("block_body", np.zeros(len(coord), np.int32))
    return Parcel(coord, body, np.diff(saved.tables["block_start"]), saved.fields)
