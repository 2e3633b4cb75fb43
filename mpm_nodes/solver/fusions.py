"""Fused stages: kernels that do the work of neighbouring stages while a block's particles and nodes are in the cache.

The stages' own arithmetic is compiled into one loop over the blocks, so a fused plan differs from the plan of single stages by
rounding only: the force joins the momentum before both reach the grid. Particle attributes are written as the stages write
them; those that no later stage or substep reads (stress, velocity gradient) only where `step.keep` asks for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import Transfer
from mpm_nodes.graph.fusion import Fusion, Knobs
from mpm_nodes.kernels import motion
from mpm_nodes.kernels.weights import STENCIL
from mpm_nodes.solver.stages.collide_particles import collide_particles
from mpm_nodes.solver.stages.deformation import apply_plasticity, update_deformation
from mpm_nodes.solver.stages.gather import gather
from mpm_nodes.solver.stages.move_particles import move_particles, moved
from mpm_nodes.solver.stages.rasterize import rasterize
from mpm_nodes.solver.stages.stress import add_stress_forces, compute_stress
from mpm_nodes.solver.stages.update_grid_velocity import update_grid_velocity

__all__ = ["FUSIONS"]


def _rows(particles: Any, grid: Any, name: str, kept: bool) -> tuple[np.ndarray, int]:
    """Return the rows of an attribute that only lives inside a substep and 0, or a scratch of each thread and its stride."""
    (particles.stale.discard if kept else particles.stale.add)(name)
    return (particles.array(name), 0) if kept else (grid.local, grid.local_stride)


# ---------------------------------------------------------------- particles to grid
def _scattered(particles: Any, law: Any, knobs: Knobs, stress: tuple[Any, int], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the first arguments of a law's scatters: what its stress needs, then the geometry and some attributes."""
    return (*law.state(particles), particles.array("velocity_gradient"), particles.optional("stiffness_scale"),
            *stress, STENCIL[knobs["rasterize"]["kernel"].value], *particles.geometry(),
            *(particles.array(name) for name in names))


def _scatter_with_forces(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Scatter m v + dt f with APIC and divide by the mass."""
    grid.clear("momentum")
    stress = _rows(particles, grid, "stress", step.keep)
    for law, _ in particles.runs():
        law.kernels.scatter_with_forces(
            *_scattered(particles, law, knobs, stress, ("velocity", "affine", "mass", "volume")), grid.h, law.coefficients, step.dt,
            *grid.scatter_tables(law.index), grid.array("momentum"))
    motion.divide_by_mass(grid.array("momentum"), grid.array("velocity"), grid.count, step.dt, *step.gravity, grid.least_mass)


def _scatter_apart(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Scatter momentum and forces to their own arrays."""
    grid.clear("momentum")
    grid.clear("force")
    stress = _rows(particles, grid, "stress", step.keep)
    for law, _ in particles.runs():
        end = (grid.h, law.coefficients, step.dt, *grid.scatter_tables(law.index), grid.array("momentum"), grid.array("force"))
        if knobs["rasterize"]["transfer"] is Transfer.APIC:
            law.kernels.scatter_apart(*_scattered(particles, law, knobs, stress, ("velocity", "affine", "mass", "volume")), *end)
        else:
            law.kernels.scatter_apart_flip(*_scattered(particles, law, knobs, stress, ("velocity", "mass", "volume")), *end)


# ---------------------------------------------------------------- grid to particles
def _gather_and_update(particles: Any, grid: Any, step: Any, knobs: Knobs, largest: list[np.ndarray] | None,
                       limits: bool) -> list[np.ndarray]:
    """Gather and advance the state of every law, and the positions where `largest` is given; return what limits dt.

    `limits` tells whether the caller keeps what is returned for the choice of the next dt.
    """
    strains = []
    flip = knobs["gather"]["transfer"] is Transfer.FLIP
    # the next substep reads it where viscosity is explicit, and where the limits of dt are measured anew
    kept = step.keep or not limits or any(law.viscosity > 0.0 for law, _ in particles.runs())
    gradient = _rows(particles, grid, "velocity_gradient", kept)
    for law, segments in particles.runs():
        strain, moves = np.empty((len(segments), 2)), np.empty((len(segments), 3))
        given = (*law.state(particles), particles.array("velocity"), particles.array("affine"), *gradient,
                 particles.optional("stiffness_scale"), STENCIL[knobs["gather"]["kernel"].value], *particles.geometry(),
                 particles.unit, grid.h, law.coefficients, step.dt, largest is not None, *grid.gather_tables(law.index),
                 grid.array("velocity"), strain, moves)
        if flip:
            law.kernels.gather_and_update_flip(*given, grid.array("momentum"), knobs["gather"]["flip_fraction"])
        else:
            law.kernels.gather_and_update(*given)
        strains.append(strain)
        if largest is not None:
            largest.append(moves)
    return strains


def _gather_to_plasticity(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Gather, then advance and project the state."""
    _gather_and_update(particles, grid, step, knobs, None, limits=False)


def _gather_to_move(particles: Any, grid: Any, colliders: Any, step: Any, *, knobs: Knobs) -> None:
    """Gather, advance and project the state, meet colliders and move; leave what limits the next dt."""
    if not particles.count:
        return
    largest: list[np.ndarray] = []
    count = particles.count
    strains = _gather_and_update(particles, grid, step, knobs, largest if colliders.idle else None, limits=True)
    if not colliders.idle:
        collide_particles(particles, colliders, step)
        for _, segments in particles.runs():
            largest.append(np.empty((len(segments), 3)))
            motion.move_particles(particles.offset, particles.stride, particles.unit, particles.array("velocity"),
                                  step.dt / particles.h, segments, largest[-1])
    moved(particles, step, np.concatenate(largest))
    if particles.count == count:
        particles.limits = [(float(np.sqrt(moves[:, 2].max())), float(np.sqrt(strain[:, 0].max())), float(strain[:, 1].max()))
                            for moves, strain in zip(largest, strains, strict=True)]


def _one_kernel(knobs: Knobs) -> bool:
    """Whether momentum and force take the same B-spline."""
    return knobs["rasterize"]["kernel"] is knobs["add_stress_forces"]["kernel"]


def _one_kernel_apic(knobs: Knobs) -> bool:
    return _one_kernel(knobs) and knobs["rasterize"]["transfer"] is Transfer.APIC


FUSIONS = (
    Fusion((rasterize, compute_stress, add_stress_forces, update_grid_velocity), _scatter_with_forces,
           ("particles", "grid", "step"), spoils=frozenset({("grid", "momentum")}), omits=frozenset({("grid", "force")}),
           fits=_one_kernel_apic),
    Fusion((rasterize, compute_stress, add_stress_forces), _scatter_apart, ("particles", "grid", "step"), fits=_one_kernel),
    Fusion((gather, update_deformation, apply_plasticity, collide_particles, move_particles), _gather_to_move,
           ("particles", "grid", "colliders", "step")),
    Fusion((gather, update_deformation, apply_plasticity), _gather_to_plasticity, ("particles", "grid", "step")),
)
"""The fused kernels of the built-in stages."""
