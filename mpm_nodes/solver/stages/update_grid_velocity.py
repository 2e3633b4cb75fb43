"""Explicit grid update."""

from __future__ import annotations

from mpm_nodes.data import A, Grid, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import motion


@stage(label="Update Grid Velocity")
def update_grid_velocity(
    grid: A[Grid, Reads("mass", "momentum", "force"), Writes("velocity")],
    step: StepContext,
) -> Stage["grid"]:
    """Advance grid velocities by forces and gravity: v* = v + dt (f / m + g) where there is mass.

    Args:
        grid: Grid with mass, momentum and force.
    """
    motion.update_grid_velocity(grid.array("momentum"), grid.array("force"), grid.array("velocity"), grid.count,
                                grid.real(step.dt), *(grid.real(g) for g in step.gravity), grid.real(grid.least_mass))
