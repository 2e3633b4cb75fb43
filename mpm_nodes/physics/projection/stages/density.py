"""Density correction under the projection: cells take back what the grid sees to be too much or too little in them."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import LAW_STATE, A, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.physics.projection.kernels.cell_density import follow_cells
from mpm_nodes.physics.projection.numerics.isochoric import DILATION
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.filling import fill_cells
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.stages.density import FILLED, follow, least_speed, leave, liquids_of, tell
from mpm_nodes.solver.staggered import StaggeredStore
from mpm_nodes.solver.state import ParticleStore

__all__ = ["correct_density"]


@stage(label="Correct Density", facts=(FILLED,))
def correct_density(
    particles: A[ParticleStore, Reads("position", "velocity", "volume", LAW_STATE), Writes("room", LAW_STATE)],
    grid: A[GridStore, Writes("room")],
    staggered: A[StaggeredStore, Reads("mass", *DILATION), Writes("filling", *DILATION)],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    rate: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 5.0,
    tolerance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.006,
) -> Stage["particles", "grid", "staggered"]:
    """Keep the volume of liquids under the projection: cells take back what the grid sees to be too much or too little in them.

    A velocity without divergence keeps cells as full as they are, and J of particles is only what they integrated. J - 1 of a cell
    relaxes to the room in it (`kernels.cell_density`), which the projection takes back; J of particles follows as in
    follow_density. A mean over the particles around a cell would not do: it takes what lies in every other layer for even.

    Args:
        particles: Particles; those whose law keeps their volume and nothing else are liquids.
        grid: The room in its cells is written.
        staggered: Grid with the masses and changes of volume that the particles gave.
        colliders: Bodies and walls: they take a part of the room around cells.
        rate: Rate of the relaxation, over that at which a fall by half a cell crosses a cell; 0 turns it off.
        tolerance: Difference that counts as none.
    """
    liquids = liquids_of(particles)
    if rate == 0.0 or not staggered.count or not liquids:
        leave(particles, grid, step)
        staggered.clear("pressure")
        return
    scaled = rate * step.dt / step.cell_size
    colliders.pose(step.time, step.time + step.dt)
    kept = np.array([law in liquids for law in particles.laws])
    particles.rows("room")[0] = kept[particles.rows("material")[0]]
    tell(step, *fill_cells(particles, grid, colliders, ("room", 0)))
    follow(particles, grid, step, (scaled, tolerance))
    share = -math.expm1(-scaled * least_speed(step))
    arrays = staggered.array("cell"), grid.array("room"), staggered.array("pressure")
    follow_cells(staggered.count, *arrays, (step.cell_size**3, share, tolerance))
