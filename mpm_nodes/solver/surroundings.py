"""What is around the matter of a solver: air, and heat made in places."""

from __future__ import annotations

from collections.abc import Sequence

from mpm_nodes.data import Ambient, MpmNodesError
from mpm_nodes.data.ambient import air_of
from mpm_nodes.graph.substeps import SubstepPlan
from mpm_nodes.solver.run import SubstepSolver

__all__ = ["refuse_unread_ambient", "surround"]


def surround(run: SubstepSolver, ambient: Sequence[Ambient]) -> None:
    """Say what is around the matter of a solver from now on.

    Args:
        run: The solver.
        ambient: Air, at most once, and heat made in places.

    Raises:
        MpmNodesError: The substeps carry no heat, or there is air twice.
    """
    if ambient:
        refuse_unread_ambient([program.unfused for program in run.programs])
    air_of(tuple(ambient))
    run.step_context.ambient = tuple(ambient)


def refuse_unread_ambient(plans: Sequence[SubstepPlan]) -> None:
    """Refuse air and heat in places where the stages of some substeps carry no heat.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Some do not.
    """
    if not all("heat_capacity" in plan.fields_needed["particles"] for plan in plans):
        raise MpmNodesError(
            "solve.ambient: air or a heat field is wired, and these substeps carry no heat; take the preset explicit_heat, melting "
            "or surface_tension_heat, or take the wire out"
        )
