"""What is not shared among ranks, said before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpm_nodes.data import MpmNodesError, domain_named
from mpm_nodes.graph.plan.substeps import PlannedStage, SubstepPlan, plan_of, resolve
from mpm_nodes.kernels.composition.fragments import Lanes, Run
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.colliders import ColliderSet

__all__ = ["refuse_on_ranks", "refuse_plates", "shared_presets", "warnings_on_ranks"]


def shared_presets() -> tuple[str, ...]:
    """Return the names of the presets whose stages ranks share all, sorted."""
    from mpm_nodes.graph.declare.registry import default

    chosen = (name for name in default().presets if not (resolved := resolve(name)).others and not _alone([plan_of(resolved)]))
    return tuple(sorted(chosen))


def refuse_on_ranks(plans: Sequence[SubstepPlan], period: tuple[int, int, int] = (0, 0, 0)) -> None:
    """Refuse substeps that ranks cannot share.

    Args:
        plans: Plans of single stages, of all candidates.
        period: Blocks between periodic walls.

    Raises:
        MpmNodesError: With what stands in the way, and the cure.
    """
    if len(plans) > 1:
        raise MpmNodesError(
            "ranks: substeps 'auto' and the other presets that begin with auto choose by trials, which ranks do not share; take "
            "one of those that they choose from, such as explicit_apic or surface_tension, or solve on one rank"
        )
    if any(period):
        raise MpmNodesError("ranks: periodic walls are not shared among ranks; take other walls, or solve on one rank")
    alone = _alone(plans)
    if alone:
        raise MpmNodesError(
            f"ranks: {', '.join(alone)} {'is' if len(alone) == 1 else 'are'} not shared among ranks (nor is any stage that looks "
            f"beyond one particle without knowing of ranks); take one of the presets {', '.join(shared_presets())}, or solve "
            "on one rank"
        )


def _alone(plans: Sequence[SubstepPlan]) -> list[str]:
    return list(dict.fromkeys(planned.declaration.id for plan in plans for planned in plan.stages if not _is_shared(planned)))


def _is_shared(planned: PlannedStage) -> bool:
    """Return whether a stage gives the same on several ranks: it is known to, or it takes particle by particle."""
    declaration = planned.declaration
    if declaration.shared:
        return True
    fragments = declaration.fragments_for(planned.knobs)
    local = bool(fragments) and all(isinstance(fragment, (Lanes, Run)) for fragment in fragments)
    return local and not any(domain_named(port.name).lies_on_blocks for port in declaration.domains)


def refuse_plates(colliders: ColliderSet) -> None:
    """Refuse thin plates: the two sides of one have grid nodes of their own, which no halo knows.

    Raises:
        MpmNodesError: With the name of the first.
    """
    if len(colliders.plates):
        name = colliders.colliders[int(colliders.plates[0])].name
        raise MpmNodesError(
            f"ranks: collider '{name}' is a thin plate or holds thin sheets, whose two sides are not kept apart on several ranks; "
            "make it thicker than three cells, or solve on one rank"
        )


def warnings_on_ranks(plans: Sequence[SubstepPlan]) -> Iterator[str]:
    """Yield what is shared, and costs more than it does on one rank."""
    for physics in all_physics():
        yield from physics.warnings_on_ranks(plans)
