"""Explicit grid update."""

from __future__ import annotations

from mpm_nodes.data import A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Nodes
from mpm_nodes.kernels.transfers import motion
from mpm_nodes.solver.device import loops
from mpm_nodes.solver.grid import GridStore


def _divide_by_mass(grid: GridStore, step: StepContext) -> None:
    """Do the same where dt f was added to the momentum."""
    motion.divide_by_mass(grid.array("momentum"), grid.array("velocity"), grid.count, step.dt, step.gravity, grid.least_mass)


@shared_among_ranks
@stage(label="Update Grid Velocity", fragments=(Nodes("force", "momentum", "dt", _divide_by_mass, loops.divide_by_mass),))
def update_grid_velocity(
    grid: A[GridStore, Reads("mass", "momentum", "force"), Writes("velocity")],
    step: StepContext,
) -> Stage["grid"]:
    """Advance grid velocities by forces and gravity: v* = v + dt (f / m + g) where there is mass.

    Args:
        grid: Grid with mass, momentum and force.
    """
    if grid.residency is not None:
        loops.update_grid_velocity(grid.residency, grid, step)
        return
    motion.update_grid_velocity(
        grid.array("momentum"),
        grid.array("force"),
        grid.array("velocity"),
        grid.count,
        grid.real(step.dt),
        tuple(grid.real(g) for g in step.gravity),
        grid.real(grid.least_mass),
    )
