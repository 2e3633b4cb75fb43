"""A planned substep graph as the substep loop runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpm_nodes.data import Kernel
from mpm_nodes.graph.fusion import fused
from mpm_nodes.graph.plan import SubstepPlan, plan_substeps
from mpm_nodes.graph.problems import GraphError
from mpm_nodes.graph.substep_document import candidates_of, load_substeps
from mpm_nodes.kernels.weights import DRIFT_LIMIT
from mpm_nodes.solver.fusions import FUSIONS
from mpm_nodes.solver.stages.remove_subgrid import remove_subgrid

__all__ = ["Program", "programs_of"]


@dataclass(frozen=True)
class Program:
    """A plan and what the loop has to know of it.

    Attributes:
        recipe: What it was planned from: preset name, settings or document.
        unfused: The plan of single stages.
        plan: The plan that runs.
        transient: Particle attributes that every substep writes before it reads them: a checkpoint need not hold them.
        drift_limit: Drift at which particles are sorted anew [cells].
        lasting: Whether attributes that no later substep reads are to be stored all the same.
        grid_is_empty: For each stage, whether none before it, nor it itself, has filled the grid.
    """

    recipe: Any
    unfused: SubstepPlan
    plan: SubstepPlan
    transient: frozenset[str]
    drift_limit: float
    lasting: bool
    grid_is_empty: tuple[bool, ...]


def programs_of(recipe: Any, state_names: tuple[str, ...], fuse: bool) -> tuple[Program, ...]:
    """Plan a substep graph, or each of the candidates that it leaves to the solve to choose from; see `program_of`.

    Raises:
        GraphError: With everything that is wrong.
    """
    candidates = candidates_of(recipe)
    if len(candidates) > 1:
        _, problems = load_substeps(recipe)
        if problems:
            raise GraphError(problems)
    return tuple(program_of(candidate, state_names, fuse) for candidate in candidates)


def program_of(recipe: Any, state_names: tuple[str, ...], fuse: bool) -> Program:
    """Plan a substep graph.

    Args:
        recipe: A plan, or what `plan_substeps` takes.
        state_names: State attributes of the laws in the solve.
        fuse: Let neighbouring stages run as one kernel.
    """
    unfused = recipe if isinstance(recipe, SubstepPlan) else plan_substeps(recipe, state_names)
    plan = fused(unfused, FUSIONS) if fuse else unfused
    cubic = any(Kernel.CUBIC in planned.knobs.values() for planned in unfused.stages)
    fills_grid = [any(domain == "grid" for domain, _ in planned.writes) for planned in plan.stages]
    # stages of the user look at whatever they like, and particles that go take the limits of dt with them
    lasting = any(not planned.declaration.is_builtin for planned in unfused.stages) or any(
        planned.function is remove_subgrid for planned in plan.stages)
    return Program(recipe, unfused, plan, _transient(plan), DRIFT_LIMIT["cubic" if cubic else "quadratic"], lasting,
                   tuple(not any(fills_grid[: place + 1]) for place in range(len(fills_grid))))


def _transient(plan: SubstepPlan) -> frozenset[str]:
    found: dict[str, bool] = {}
    for planned in plan.stages:
        for domain, name in sorted(planned.reads | planned.writes):
            if domain == "particles":
                found.setdefault(name, (domain, name) not in planned.reads)
    return frozenset(name for name, written_first in found.items() if written_first)
