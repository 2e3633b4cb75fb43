"""Heat on the nodes of the grid that the momentum uses: the variational form of conduction, for any substep graph."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import (
    A,
    Kelvins,
    Kernel,
    Range,
    Reads,
    Stage,
    StepContext,
    Transfer,
    Unitless,
    WattsPerCubicMetre,
    WattsPerSquareMetre,
    WattsPerSquareMetreKelvin,
    Writes,
)
from mpm_nodes.graph.declare import needs_whole_nodes, shared_among_ranks, stage
from mpm_nodes.kernels.algebra.krylov import Until
from mpm_nodes.physics.heat.numerics.conduction import Surroundings
from mpm_nodes.physics.heat.numerics.nodal_conduction import conduct_on_nodes
from mpm_nodes.physics.heat.stages.heat import ABSOLUTE, HEAT, SLOPES, TEMPERATURE, UNSOLVED, flip_share, heating_of, tell_heat
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Take
from mpm_nodes.solver.transfers import gather as take
from mpm_nodes.solver.transfers import scatter as give


@shared_among_ranks
@stage(label="Rasterize Nodal Heat")
def rasterize_nodal_heat(
    particles: A[
        ParticleStore,
        Reads("position", "temperature", "heat_capacity", "volume_per_heat", "heat_source"),
        Reads("temperature_gradient", when=("transfer", Transfer.APIC)),
        Writes("heating_rate"),
    ],
    grid: A[GridStore, Writes("heat", "heat_capacity", "volume", "heat_source")],
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Transfer heat to nodes: M_i = sum w m c, M_i T_i = sum w m c (T_p + grad T_p . (x_i - x_p)) with APIC.

    Args:
        particles: Particles to transfer.
        grid: Grid to fill.
        transfer: APIC carries the temperature gradient; FLIP does not.
        kernel: B-spline of the weights.

    Source: C21 section 4.2, with m c of the particles in place of the momentum's mass, so that heat is conserved.
    """
    grid.clear("heat")
    slopes = SLOPES if transfer is Transfer.APIC else None
    give(
        particles, grid, kernel, Deposit("heat", "heat_capacity", ("temperature", "volume_per_heat", heating_of(particles)), slopes)
    )


@shared_among_ranks
@needs_whole_nodes
@stage(label="Conduct Nodal Heat", facts=(HEAT,), limits=(UNSOLVED,))
def conduct_nodal_heat(
    particles: A[ParticleStore, Reads("position", "volume", "conductivity"), Writes("heat_flux", "contact_heat")],
    grid: A[
        GridStore,
        Reads("heat", "heat_capacity", "volume", "heat_source"),
        Writes("temperature", "heat_conducted", "heat_exchanged"),
    ],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    air_temperature: A[float, Kelvins, ABSOLUTE] = 293.15,
    air_convection: A[float, WattsPerSquareMetreKelvin, Range(min=0.0, soft_max=1000.0)] = 0.0,
    wall_temperature: A[float, Kelvins, ABSOLUTE] = 293.15,
    wall_conductance: A[float, WattsPerSquareMetreKelvin, Range(min=0.0, soft_max=1e5)] = 0.0,
    surface_flux: A[float, WattsPerSquareMetre, Range(soft_min=0.0, soft_max=1e5)] = 0.0,
    source: A[float, WattsPerCubicMetre, Range(soft_min=0.0, soft_max=1e7)] = 0.0,
    kernel: Kernel = Kernel.QUADRATIC,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-8,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
) -> Stage["particles", "grid"]:
    """Conduct heat through the matter by backward Euler on the nodes, stable at any step.

    Free surfaces, bodies, walls, sources and what is wired into the solve's port `ambient` are as in conduct_heat. The matrix is
    applied through the particles, a gather and a scatter an iteration, and solved for the change of temperature.

    Args:
        particles: Particles with a conductivity.
        grid: Grid with their heat.
        colliders: Bodies, of which some have a temperature.
        air_temperature: Temperature of the air; that of the node air takes its place, with its convection.
        air_convection: Heat that a square metre of free surface exchanges with the air, a kelvin of difference; 0 insulates.
        wall_temperature: Temperature of the domain's walls.
        wall_conductance: Conductance of the contact with the walls; 0 insulates.
        surface_flux: Heat that comes in through a square metre of free surface, whatever its temperature, as the sun's.
        source: Heat made in all matter, besides what particles make (set_attribute).
        kernel: B-spline of the weights; the same as in rasterize_nodal_heat.
        tolerance: Residual at which the linear solve stops, over that of the right side.
        iterations: Iterations of the linear solve at most.

    Raises:
        SimulationDiverged: A temperature is not finite.

    Source: C21 eq. 6 and 10, section 4.3.2; H N_i V without its factor h, and K as the conductivity.
    """
    if not (grid.count or grid.halo.several):
        return
    colliders.pose(step.time, step.time + step.dt)
    around = Surroundings(
        air_temperature,
        air_convection,
        wall_temperature,
        wall_conductance,
        surface_flux,
        source,
        ambient=step.ambient,
        frame=step.middle,
    )
    until = Until(max(tolerance, 4.0 * float(np.finfo(grid.dtype).eps)), iterations)
    done = conduct_on_nodes(particles, grid, colliders, step.dt, around, kernel, until, step.check_cancel)
    if not math.isfinite(done.content):
        step.limit = UNSOLVED
        raise diverged(particles, step)
    tell_heat(step, done)


@shared_among_ranks
@stage(label="Gather Nodal Heat")
def gather_nodal_heat(
    particles: A[ParticleStore, Reads("position", "temperature"), Writes("temperature", "temperature_gradient")],
    grid: A[GridStore, Reads("temperature", "heat", "heat_capacity")],
    step: StepContext,
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    smoothing: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 1.0,
    flip_fraction: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.95,
) -> Stage["particles", "grid"]:
    """Bring the nodes' change of temperature back: T_p = f (T_p + sum w (T_i - T_i^n)) + (1 - f) sum w T_i, and the gradient.

    gather_heat does the same from cells, and says what the transfers differ by. C21 takes f = 0 in every substep;
    f = exp(-smoothing a dt / h^2) does not depend on their number.

    Args:
        particles: Particles to update.
        grid: Grid with the new temperatures and the heat before.
        transfer: The same as in rasterize_nodal_heat.
        kernel: B-spline of the weights; the same as in rasterize_nodal_heat.
        smoothing: Rate at which particles take the temperature of the nodes [a / h^2]; used with APIC only.
        flip_fraction: Share of FLIP in the blend with PIC; used with FLIP only.
    """
    fraction = flip_share(particles, step, smoothing) if transfer is Transfer.APIC else flip_fraction
    take(particles, grid, kernel, Take("temperature", TEMPERATURE, affine=SLOPES, before="heat", flip=fraction))
