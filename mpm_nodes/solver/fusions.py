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
from mpm_nodes.solver.stages.remove_subgrid import remove, remove_subgrid, thin_particles
from mpm_nodes.solver.stages.stress import add_stress_forces, compute_stress
from mpm_nodes.solver.stages.tearing import detect_tears, limit_deformation, limit_stress
from mpm_nodes.solver.stages.total_deformation import recover_plasticity, recovery, update_total_deformation
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


def _torn(particles: Any, law: Any, knobs: Knobs) -> tuple[str, tuple[Any, ...]]:
    """Return the suffix of a law's scatters and their last arguments: with the detection of tears where that is asked for."""
    if "detect_tears" not in knobs:
        return "", ()
    threshold = knobs["detect_tears"]["threshold_scale"] * law.tear_threshold
    return "_tearing", (particles.array("total_deformation"), particles.array("weak"), threshold)


def _scatter_with_forces(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Scatter m v + dt f with APIC and divide by the mass."""
    grid.clear("momentum")
    stress = _rows(particles, grid, "stress", step.keep)
    for law, _ in particles.runs():
        suffix, torn = _torn(particles, law, knobs)
        getattr(law.kernels, "scatter_with_forces" + suffix)(
            *_scattered(particles, law, knobs, stress, ("velocity", "affine", "mass", "volume")), grid.h, law.coefficients, step.dt,
            *grid.scatter_tables(law.index), grid.array("momentum"), *torn)
    motion.divide_by_mass(grid.array("momentum"), grid.array("velocity"), grid.count, step.dt, *step.gravity, grid.least_mass)


def _scatter_apart(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Scatter momentum and forces to their own arrays."""
    grid.clear("momentum")
    grid.clear("force")
    stress = _rows(particles, grid, "stress", step.keep)
    for law, _ in particles.runs():
        suffix, torn = _torn(particles, law, knobs)
        if knobs["rasterize"]["transfer"] is Transfer.APIC:
            name, carried = "scatter_apart", ("velocity", "affine", "mass", "volume")
        else:
            name, carried = "scatter_apart_flip", ("velocity", "mass", "volume")
        getattr(law.kernels, name + suffix)(
            *_scattered(particles, law, knobs, stress, carried), grid.h, law.coefficients, step.dt,
            *grid.scatter_tables(law.index), grid.array("momentum"), grid.array("force"), *torn)


# ---------------------------------------------------------------- grid to particles
def _recovering(particles: Any, law: Any, step: Any, knobs: Knobs) -> tuple[Any, ...]:
    """Return the last arguments of a law's gathers with the limit of the deformation and the recovery, where that is asked for."""
    if "limit_deformation" not in knobs:
        return ()
    return (particles.array("total_deformation"), particles.array("weak"), knobs["limit_deformation"]["alg11_expansion"],
            *recovery(law, particles, step, knobs["recover_plasticity"]["interval"]))


def _gather_and_update(particles: Any, grid: Any, step: Any, knobs: Knobs, largest: list[np.ndarray] | None,
                       limits: bool) -> list[np.ndarray]:
    """Gather and advance the state of every law, and the positions where `largest` is given; return what limits dt.

    `limits` tells whether the caller keeps what is returned for the choice of the next dt.
    """
    strains = []
    flip = knobs["gather"]["transfer"] is Transfer.FLIP
    name = "gather_and_update" + ("_flip" if flip else "") + ("_tearing" if "limit_deformation" in knobs else "")
    # the next substep reads it where viscosity is explicit, and where the limits of dt are measured anew
    kept = step.keep or not limits or any(law.viscosity > 0.0 for law, _ in particles.runs())
    gradient = _rows(particles, grid, "velocity_gradient", kept)
    for law, segments in particles.runs():
        strain, moves = np.empty((len(segments), 2)), np.empty((len(segments), 3))
        given = (*law.state(particles), particles.array("velocity"), particles.array("affine"), *gradient,
                 particles.optional("stiffness_scale"), STENCIL[knobs["gather"]["kernel"].value], *particles.geometry(),
                 particles.unit, grid.h, law.coefficients, step.dt, largest is not None, *grid.gather_tables(law.index),
                 grid.array("velocity"), strain, moves)
        change = (grid.array("momentum"), knobs["gather"]["flip_fraction"]) if flip else ()
        getattr(law.kernels, name)(*given, *change, *_recovering(particles, law, step, knobs))
        strains.append(strain)
        if largest is not None:
            largest.append(moves)
    return strains


def _gather_to_plasticity(particles: Any, grid: Any, step: Any, *, knobs: Knobs) -> None:
    """Gather, then advance and project the state."""
    _gather_and_update(particles, grid, step, knobs, None, limits=False)


def _gather_to_move(particles: Any, grid: Any, colliders: Any, step: Any, *, knobs: Knobs) -> None:
    """Gather, advance and project the state, remove what is too thin, meet colliders and move; leave what limits the next dt.

    What is too thin is known before the particles move, and has no part in what the others do afterwards.
    """
    if not particles.count:
        return
    largest: list[np.ndarray] = []
    count = particles.count
    removes = "remove_subgrid" in knobs
    dead = thin_particles(particles, step, **knobs["remove_subgrid"]) if removes else None
    strains = _gather_and_update(particles, grid, step, knobs, largest if colliders.idle else None,
                                 limits=dead is None or not dead.any())
    if dead is not None:
        remove(particles, step, dead)
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


_TORN = (gather, limit_deformation, update_deformation, update_total_deformation, apply_plasticity, recover_plasticity)

FUSIONS = (
    Fusion((rasterize, compute_stress, add_stress_forces, update_grid_velocity), _scatter_with_forces,
           ("particles", "grid", "step"), spoils=frozenset({("grid", "momentum")}), omits=frozenset({("grid", "force")}),
           fits=_one_kernel_apic),
    Fusion((rasterize, compute_stress, add_stress_forces), _scatter_apart, ("particles", "grid", "step"), fits=_one_kernel),
    Fusion((rasterize, detect_tears, compute_stress, limit_stress, add_stress_forces, update_grid_velocity), _scatter_with_forces,
           ("particles", "grid", "step"), spoils=frozenset({("grid", "momentum")}), omits=frozenset({("grid", "force")}),
           fits=_one_kernel_apic),
    Fusion((rasterize, detect_tears, compute_stress, limit_stress, add_stress_forces), _scatter_apart,
           ("particles", "grid", "step"), fits=_one_kernel),
    Fusion((gather, update_deformation, apply_plasticity, collide_particles, move_particles), _gather_to_move,
           ("particles", "grid", "colliders", "step")),
    Fusion((gather, update_deformation, apply_plasticity), _gather_to_plasticity, ("particles", "grid", "step")),
    Fusion((*_TORN, remove_subgrid, collide_particles, move_particles), _gather_to_move,
           ("particles", "grid", "colliders", "step")),
    Fusion((*_TORN, collide_particles, move_particles), _gather_to_move, ("particles", "grid", "colliders", "step")),
    Fusion(_TORN, _gather_to_plasticity, ("particles", "grid", "step")),
)
"""The fused kernels of the built-in stages."""
