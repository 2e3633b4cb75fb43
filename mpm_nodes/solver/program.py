"""A planned substep graph as the substep loop runs it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpm_nodes.data import ATTRIBUTES, Kernel, domain_named
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.substep_document import Substeps
from mpm_nodes.graph.plan.fusion import FusedStage, by_fragments, fused
from mpm_nodes.graph.plan.hazards import Array
from mpm_nodes.graph.plan.substeps import SubstepPlan, is_implicit, plan_substeps, resolve
from mpm_nodes.kernels.transfers.weights import DRIFT_LIMIT, reach
from mpm_nodes.solver.shared_loops import SharedLoop, shared_loop
from mpm_nodes.solver.state import LIMITING

__all__ = ["Program", "programs_of"]


@dataclass(frozen=True)
class Program:
    """A plan and what the loop has to know of it.

    Attributes:
        recipe: What it was planned from: preset name, settings or document.
        unfused: The plan of single stages.
        plan: The plan that runs.
        transient: Fields that every substep writes before it reads them: a checkpoint need not hold them.
        drift_limit: Drift at which particles are sorted again [cells].
        lasting: Whether fields that fused stages may leave unstored are to be stored in every substep: some stage reads them, or
            changes what the limits of dt hang on after they were found.
        grid_is_empty: For each stage, whether none before it, nor it itself, has filled the grid.
        implicit: Whether dt is chosen beyond what explicit steps bear.
    """

    recipe: Any
    unfused: SubstepPlan
    plan: SubstepPlan
    transient: frozenset[Array]
    drift_limit: float
    lasting: bool
    grid_is_empty: tuple[bool, ...]
    implicit: bool

    @cached_property
    def on_device(self) -> SubstepPlan:
        """The plan that runs on a device, which has kernels for fragments: single stages run by theirs, too."""
        return by_fragments(self.plan, lambda run: SharedLoop(run.members))


def programs_of(
    recipe: Any, state_names: tuple[str, ...], fuse: bool, registry: Registry | None = None, law_inputs: tuple[str, ...] = ()
) -> tuple[Program, ...]:
    """Plan a substep graph, or each of the candidates that it leaves to the solve to choose from; see `program_of`.

    Raises:
        GraphError: With everything that is wrong.
    """
    if isinstance(recipe, SubstepPlan):
        return (program_of(recipe, state_names, fuse, law_inputs),)
    substeps = resolve(recipe, registry)
    return tuple(program_of(each, state_names, fuse, law_inputs) for each in (substeps, *substeps.others))


def program_of(recipe: Any, state_names: tuple[str, ...], fuse: bool, law_inputs: tuple[str, ...] = ()) -> Program:
    """Plan a resolved substep graph.

    Args:
        recipe: A plan, or what `plan_substeps` takes.
        state_names: State attributes of the laws in the solve.
        fuse: Let neighbouring stages run as one kernel.
        law_inputs: Attributes that the laws' coefficients follow.
    """
    unfused = recipe if isinstance(recipe, SubstepPlan) else plan_substeps(recipe, state_names, law_inputs=law_inputs)
    plan = fused(unfused, shared_loop) if fuse else unfused
    fills_grid = [any(_on_blocks(domain) for domain, _ in planned.writes) for planned in plan.stages]
    return Program(
        recipe.recipe if isinstance(recipe, Substeps) else recipe,
        unfused,
        plan,
        _transient(plan),
        min(map(_drift_limit, unfused.stages), default=DRIFT_LIMIT["quadratic"]),
        _lasting(plan, (*state_names, *law_inputs)),
        tuple(not any(fills_grid[: place + 1]) for place in range(len(fills_grid))),
        is_implicit((planned.declaration, planned.knobs) for planned in unfused.stages),
    )


def _on_blocks(domain: str) -> bool:
    """Return whether the elements of a domain are points of the grid's blocks."""
    return any(field.packed is not None for field in domain_named(domain).fields.values())


def _drift_limit(planned: Any) -> float:
    """Return how far particles may drift before the stencils of a stage leave their tiles [cells]."""
    kernel = "cubic" if Kernel.CUBIC in planned.knobs.values() else "quadratic"
    # a stage with fields between the nodes of "grid" waits for a sort itself: all others would be sorted more often for it
    shifts = [
        field.shift if domain != "grid" else (0, 0, 0)
        for domain in planned.domains
        for field in domain_named(domain).fields.values()
        if field.packed is not None
    ]
    return min((reach(kernel, shift) for shift in shifts), default=DRIFT_LIMIT[kernel])


def limiting(state_names: tuple[str, ...]) -> frozenset[Array]:
    """Return what the limits of dt hang on."""
    return frozenset(("particles", name) for name in (*LIMITING, *state_names))


def _lasting(plan: SubstepPlan, state_names: tuple[str, ...]) -> bool:
    passing = {("particles", name) for name, field in ATTRIBUTES.items() if field.passing}
    fused_places = [place for place, planned in enumerate(plan.stages) if isinstance(planned, FusedStage)]
    dropped = frozenset().union(*(plan.stages[place].writes for place in fused_places)) & passing
    finders = [place for place in fused_places if ("particles", "velocity_gradient") in plan.stages[place].writes]
    setter = next((place for place, planned in enumerate(plan.stages) if planned.sets), 0)
    for place, planned in enumerate(plan.stages):
        if isinstance(planned, FusedStage):
            continue
        if (planned.reads - planned.on_request) & dropped:
            return True
        # particles that go, or that move far, take the limits with them; what asks for itself does so in the substep before
        asks = planned.declaration.memory is not None and bool(planned.on_request)
        loses = planned.writes & {*limiting(state_names), ("particles", "position")} or "particles" in planned.declaration.removes
        if finders and (place > finders[-1] or place < setter) and loses and not asks:
            return True
    return False


def _transient(plan: SubstepPlan) -> frozenset[Array]:
    found: dict[Array, bool] = {}
    for planned in plan.stages:
        for array in sorted(planned.reads | planned.writes):
            found.setdefault(array, array not in planned.reads)
    return frozenset(array for array, written_first in found.items() if written_first)
