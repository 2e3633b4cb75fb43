"""The state of domains beside particles, grid and colliders, for the stages of a solve that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpm_nodes.data import all_domains
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.solver.stores import Store, make_store

__all__ = ["further_stores"]


def further_stores(plans: Sequence[SubstepPlan], stores: Mapping[str, Store]) -> dict[str, Store]:
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
