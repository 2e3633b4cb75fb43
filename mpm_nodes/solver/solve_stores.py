"""The state of all domains of a solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mpm_nodes.data import Particles, Walls, all_domains
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.candidates import Candidates
from mpm_nodes.solver.columns import allocated
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.initial import own_fields
from mpm_nodes.solver.matter import SourceMatter
from mpm_nodes.solver.periodic import period_of
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Store, make_store
from mpm_nodes.solver.terms.energy_store import EnergyStore

__all__ = ["stores_of"]


def stores_of(
    matter: SourceMatter,
    candidates: Candidates,
    laws: Sequence[BoundLaw],
    sources: Sequence[Particles],
    walls: Walls | None,
    place: tuple[float, np.ndarray],
) -> dict[str, Store]:
    """Return a store of each domain that the solve has, by name, with room for the fields that something needs; none holds matter.

    Args:
        matter: The sources in one numbering.
        candidates: The substep graphs.
        laws: Laws of the materials at the start.
        sources: Particles at the start, and templates of the streams.
        walls: Walls of the domain.
        place: Cell size [m] and world position of a grid node [m], shape (3,).

    Raises:
        MpmNodesError: Fields of one name are described differently, or matter has what no stage reads.
    """
    cell_size, origin = place
    plans, needed = candidates.plans, candidates.fields_of("particles")
    own = own_fields(laws, plans, sources)
    particles = ParticleStore(
        allocated(needed, candidates.law_state, matter.columns, own),
        cell_size=cell_size,
        dtype=matter.dtype,
        materials=len(matter.materials),
        origin=origin,
        own_fields=own.values(),
        apart=next((name for each in all_physics() for name in each.apart if name in needed), ""),
        period=period_of(walls, cell_size, plans),
    )
    grid = GridStore(particles, set(candidates.fields_of("grid")))
    grid.spline = candidates.spline
    stores: dict[str, Store] = {"particles": particles, "grid": grid, "energy": EnergyStore(grid), "colliders": Store()}
    return stores | _further_stores(plans, stores)


def _further_stores(plans: Sequence[SubstepPlan], stores: Mapping[str, Store]) -> dict[str, Store]:
    """Return a store of every domain that some stage takes and nobody has made one of yet.

    Args:
        plans: Plans of the solve, not fused.
        stores: Stores that there are; further ones may stand on them.
    """
    taken = {name for plan in plans for planned in plan.stages for name in planned.domains}
    made: dict[str, Store] = {}
    for domain in all_domains():
        if domain.name in taken and domain.name not in stores:
            known = {**domain.fields, **{n: f for plan in plans for n, f in plan.own_fields[domain.name].items()}}
            needed = dict.fromkeys(name for plan in plans for name in plan.fields_needed[domain.name])
            kept = [domain.identity] if domain.identity else []
            fields = {name: known[name] for name in dict.fromkeys([*kept, *needed])}
            made[domain.name] = make_store(domain, fields, {**stores, **made})
    return made
