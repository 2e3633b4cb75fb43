"""Heat: what particles store and conduct, its way to the cells of the staggered grid and back, conduction, melting and freezing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpm_nodes.data import (
    LAW_STATE,
    A,
    Fact,
    Facts,
    Kelvins,
    Kernel,
    Limit,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Transfer,
    Unitless,
    WattsPerCubicMetre,
    WattsPerSquareMetre,
    WattsPerSquareMetreKelvin,
    Writes,
)
from mpm_nodes.graph.declare import costs, shared_among_ranks, stage
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.kernels.lanes.arithmetic import const, select
from mpm_nodes.materials.values import LawModule, Value, Vector
from mpm_nodes.physics.heat.kernels import phases as phase_kernels
from mpm_nodes.physics.heat.materials import checked_thermal, densities_of, partners_of
from mpm_nodes.physics.heat.numerics.conduction import Conducted, Surroundings
from mpm_nodes.physics.heat.numerics.conduction import conduct as solve_conduction
from mpm_nodes.physics.heat.numerics.deposits import give_heat
from mpm_nodes.physics.heat.numerics.phases import change_phase, swell
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Take
from mpm_nodes.solver.transfers import gather as take
from mpm_nodes.solver.transfers import scatter as give

TEMPERATURE, SLOPES = ("temperature", None, None), (("temperature_gradient", 0), None, None)
"""Rows of the temperature and of its gradient, as transfers take them."""
ABSOLUTE = Range(min=0.0, soft_min=200.0, soft_max=2000.0)

HEAT = Facts(
    "heat",
    "Where the heat of a frame came from, and what the matter holds.",
    (
        Fact("content", "J", Reduction.LAST, "Heat of the matter above 0 K, without latent heat."),
        Fact("from_bodies", "J", Reduction.SUM, "Heat that came from colliders and walls."),
        Fact("from_air", "J", Reduction.SUM, "Heat that came from the air."),
        Fact(
            "from_sources",
            "J",
            Reduction.SUM,
            "Heat that was made inside the matter, and flux through its free surface.",
        ),
        Fact("surface", "m^2", Reduction.LAST, "Free surface that the air sees; 0 where it is insulated."),
        Fact("iterations", "", Reduction.MAX, "Most iterations of a linear solve.", 1.0),
        Fact("unsolved", "", Reduction.SUM, "Solves that ended before their tolerance."),
    ),
    warning="{unsolved} solves of the heat equation did not reach their tolerance; raise `iterations` of the stage that conducts",
    warn_if="unsolved",
)
PHASES = Facts(
    "phases",
    "What melted and froze in a frame.",
    (
        Fact("melted", "kg", Reduction.SUM, "Mass that became liquid."),
        Fact("frozen", "kg", Reduction.SUM, "Mass that became solid."),
        Fact("latent_heat", "J", Reduction.LAST, "Latent heat that the matter holds."),
    ),
)
UNSOLVED = Limit("heat", cause="the heat equation has no finite solution", cure="the temperatures of sources, bodies and air")


# ---------------------------------------------------------------- what particles store and conduct
@inline
def thermal(
    law: LawModule,
    mass: Value,
    volume: Value,
    phase: Value,
    solid_heat: Value,
    liquid_heat: Value,
    solid_conductivity: Value,
    liquid_conductivity: Value,
) -> Vector:
    """Return heat capacity [J/K], volume over it, and conductivity [W/(m K)]; `law` asks for a loop of each material."""
    is_liquid = phase != const(phase, 0)
    capacity = mass * select(is_liquid, liquid_heat, solid_heat)
    return capacity, volume / capacity, select(is_liquid, liquid_conductivity, solid_conductivity)


def _of_material(law: Any, particles: ParticleStore, step: StepContext) -> dict[str, float]:
    found = checked_thermal(law.material)
    return {
        "solid_heat": found.heat_capacity,
        "liquid_heat": found.liquid_heat_capacity,
        "solid_conductivity": found.conductivity,
        "liquid_conductivity": found.liquid_conductivity,
    }


_WRITTEN = ("heat_capacity", "volume_per_heat", "conductivity")


@stage(label="Thermal Properties", fragments=(Lanes(thermal, _WRITTEN, arguments=_of_material),))
def thermal_properties(
    particles: A[ParticleStore, Reads("mass", "volume", "phase"), Writes("heat_capacity", "volume_per_heat", "conductivity")],
    step: StepContext,
) -> Stage["particles"]:
    """Give particles the heat capacity and conductivity of their material and phase.

    Args:
        particles: Particles of materials with thermal parameters.

    Raises:
        MpmNodesError: A material has no thermal parameters.
    """
    alone(thermal_properties, particles, step)


# ---------------------------------------------------------------- to the grid
@costs(1.5)
@shared_among_ranks
@stage(label="Rasterize Heat")
def rasterize_heat(
    particles: A[
        ParticleStore,
        Reads("position", "temperature", "heat_capacity", "volume_per_heat", "conductivity", "volume", "heat_source"),
        Reads("temperature_gradient", when=("transfer", Transfer.APIC)),
        Writes("heating_rate"),
    ],
    staggered: A[
        StaggeredStore,
        Writes(
            "heat",
            "heat_capacity",
            "volume",
            "heat_source",
            *(f"{name}_{axis}" for name in ("conduction", "volume") for axis in AXES),
        ),
    ],
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "staggered"]:
    """Transfer heat to cells, and volume and conductivity to the faces between them.

    M_c = sum w m c, M_c T_c = sum w m c (T_p + grad T_p . (x_c - x_p)) with APIC (C21 section 4.2), without the gradient with FLIP
    (S14 section 5.2); V_f = sum w V, V_f K_f = sum w V K. Heat that
    particles make (attribute heat_source q) goes with it: sum w V q.

    Args:
        particles: Particles to transfer.
        staggered: Grid to fill.
        transfer: APIC carries the temperature gradient; FLIP does not.
        kernel: B-spline of the weights.
    """
    arrays = ("heat", *(f"conduction_{axis}" for axis in AXES))
    staggered.clear(*arrays)
    heating = heating_of(particles)
    if kernel is Kernel.QUADRATIC:
        give_heat(particles, staggered, transfer is Transfer.APIC, heating is not None)
        return
    slopes = SLOPES if transfer is Transfer.APIC else None
    faces = [Deposit(name, "volume", ("conductivity", None, None)) for name in arrays[1:]]
    give(
        particles, staggered, kernel, Deposit("heat", "heat_capacity", ("temperature", "volume_per_heat", heating), slopes), *faces
    )


def heating_of(particles: ParticleStore) -> str | None:
    """Write what particles make to "heating_rate" and return that name, None where they make nothing."""
    if not len(particles.optional("heat_source")):
        return None
    # the arrays' weight is m c: m c times q V / (m c) is the power
    source, volume_per_heat = (particles.rows(name)[0] for name in ("heat_source", "volume_per_heat"))
    np.multiply(source, volume_per_heat, out=particles.rows("heating_rate")[0])
    return "heating_rate"


# ---------------------------------------------------------------- on the grid
@costs(1.0)
@shared_among_ranks
@stage(label="Conduct Heat", facts=(HEAT,), limits=(UNSOLVED,))
def conduct_heat(
    staggered: A[
        StaggeredStore,
        Reads(
            "heat",
            "heat_capacity",
            "volume",
            "heat_source",
            *(f"{name}_{axis}" for name in ("conduction", "volume") for axis in AXES),
        ),
        Reads("surface_area", "surface_flux", when=("sampled", True)),
        Writes("temperature"),
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
    sampled: bool = False,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-8,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
) -> Stage["staggered"]:
    """Conduct heat through the matter by backward Euler, stable at any step (S14 section 5.8, C21 section 4.3).

    Free surfaces exchange heat with the air by Newton's law; colliders with a temperature (collider_temperature) and walls through
    the conductance of their contact; a flux comes in where one is said (surface_flux, collider_heat_flux); all else is insulated.
    What is wired into the solve's port `ambient` comes in here: air that differs from place to place, and heat made in places.

    Args:
        staggered: Grid with heat and conduction.
        colliders: Bodies, of which some have a temperature.
        air_temperature: Temperature of the air; that of the node air takes its place, with its convection.
        air_convection: Heat that a square metre of free surface exchanges with the air, a kelvin of difference; 0 insulates.
        wall_temperature: Temperature of the domain's walls.
        wall_conductance: Conductance of the contact with the walls; 0 insulates.
        surface_flux: Heat that comes in through a square metre of free surface, whatever its temperature, as the sun's; not where
            `sampled` is set.
        source: Heat made in all matter, besides what particles make (set_attribute).
        sampled: The free surface is that of samples, and a flux comes in through it: heat_surface says both (C21 section 4.3.2).
        tolerance: Residual at which the linear solve stops, over that of the right side.
        iterations: Iterations of the linear solve at most.

    Raises:
        SimulationDiverged: A temperature is not finite.
    """
    if not (staggered.count or staggered.halo.several):
        return
    colliders.pose(step.time, step.time + step.dt)
    around = Surroundings(
        air_temperature,
        air_convection,
        wall_temperature,
        wall_conductance,
        surface_flux,
        source,
        sampled=sampled,
        ambient=step.ambient,
        frame=step.middle,
    )
    done = solve_conduction(staggered, colliders, step.dt, around, tolerance, iterations, step.check_cancel)
    if not math.isfinite(done.content):
        step.limit = UNSOLVED
        raise diverged(staggered.grid.particles, step)
    tell_heat(step, done)


def tell_heat(step: StepContext, done: Conducted) -> None:
    """Tell what a step of conduction did."""
    step.tell(
        HEAT,
        content=done.content,
        from_bodies=done.bodies,
        from_air=done.air,
        from_sources=done.sources,
        surface=done.area,
        iterations=done.solution.iterations,
        unsolved=int(not done.solution.converged),
    )


# ---------------------------------------------------------------- and back
@costs(1.0)
@shared_among_ranks
@stage(label="Gather Heat")
def gather_heat(
    particles: A[ParticleStore, Reads("position", "temperature"), Writes("temperature", "temperature_gradient")],
    staggered: A[StaggeredStore, Reads("temperature", "heat", "heat_capacity")],
    step: StepContext,
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    smoothing: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 1.0,
    flip_fraction: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.95,
) -> Stage["particles", "staggered"]:
    """Bring the cells' change of temperature back: T_p = f (T_p + sum w (T_c - T_c^n)) + (1 - f) sum w T_c, and the gradient.

    FLIP (S14 section 5.9) holds f at flip_fraction: it diffuses about h^2 / 70 in every substep, however short, so that its results
    do not converge as dt goes to zero. APIC, whose cells know the gradient, smooths in fourth order only, and as fast as matter
    conducts: f = exp(-smoothing a dt / h^2) with the largest diffusivity a. Noise between particles of a cell dies at that rate.

    Args:
        particles: Particles to update.
        staggered: Grid with the new temperatures and the heat before.
        transfer: The same as in rasterize_heat.
        kernel: B-spline of the weights; the same as in rasterize_heat.
        smoothing: Rate at which particles take the temperature of the cells [a / h^2]; used with APIC only.
        flip_fraction: Share of FLIP in the blend with PIC; used with FLIP only.
    """
    fraction = flip_share(particles, step, smoothing) if transfer is Transfer.APIC else flip_fraction
    take(particles, staggered, kernel, Take("temperature", TEMPERATURE, affine=SLOPES, before="heat", flip=fraction))


def flip_share(particles: ParticleStore, step: StepContext, smoothing: float) -> float:
    """Return the share of FLIP that smooths as fast as matter conducts over a cell."""
    diffusivity = max((_diffusivity(law.material) for law, _ in particles.runs()), default=0.0)
    diffusivity = step.share.largest(diffusivity)
    return math.exp(-smoothing * diffusivity * step.dt / step.cell_size**2)


def _diffusivity(material: Any) -> float:
    """Return the larger diffusivity of solid and liquid [m^2/s]."""
    found = checked_thermal(material)
    liquid = found.liquid_conductivity / found.liquid_heat_capacity
    return max(found.conductivity / found.heat_capacity, liquid) / float(material.density)


# ---------------------------------------------------------------- melting and freezing
@shared_among_ranks
@stage(label="Update Phase", facts=(PHASES,))
def update_phase(
    particles: A[
        ParticleStore,
        Reads("temperature", "latent_heat_fraction", "phase", "material", "mass", "volume", "freezing_shift", LAW_STATE),
        Writes("temperature", "latent_heat_fraction", "phase", "material", "volume", LAW_STATE),
    ],
    step: StepContext,
) -> Stage["particles"]:
    """Melt and freeze: heat beyond the freezing temperature fills the latent heat, and a phase ends when it is full or empty.

    With hysteresis (S14 section 5.9): what has melted by half and freezes again was solid all the time. What changes phase takes on
    the law of its new one at its volume, free of shear (S14 section 4.2). Where the melt has a density of its own, the undeformed
    volume follows the share that has melted: masses stay, and the matter draws in or swells as heat enters. Wire it last: matter
    that changes is sorted again.

    Args:
        particles: Particles with their new temperature.
    """
    if particles.count or step.share.several:
        melted, frozen, latent = _changed(particles) if particles.count else (0.0, 0.0, 0.0)
        melted, frozen, latent = step.share.totals((melted, frozen, latent)).tolist()
        step.tell(PHASES, melted=melted, frozen=frozen, latent_heat=latent)


def _changed(particles: ParticleStore) -> tuple[float, float, float]:
    """Melt and freeze particles; return the mass that melted and that froze [kg], and the latent heat that all hold [J]."""
    materials = [law.material for law in particles.laws]
    partners = partners_of(materials)
    densities = densities_of(materials, partners)
    before = particles.rows("latent_heat_fraction")[0].astype(float) if np.ptp(densities, axis=1).any() else None
    rows = np.zeros((-(-particles.count // phase_kernels.CHUNK), 3))
    changed = np.zeros(particles.count, np.uint8)
    matter = phase_kernels.PhaseColumns(
        particles.array("temperature"),
        particles.array("latent_heat_fraction"),
        particles.array("phase"),
        particles.array("material"),
        particles.array("mass"),
        particles.optional("freezing_shift"),
    )
    phase_kernels.update_phases(matter, np.array([_numbers(material) for material in materials]), changed, rows)
    if changed.any():
        change_phase(particles, np.flatnonzero(changed), partners)
    if before is not None:
        now = particles.rows("latent_heat_fraction")[0]
        moved = np.flatnonzero((now != before) & (densities[:, 0] != densities[:, 1])[particles.rows("material")[0]])
        if len(moved):
            swell(particles, moved, before[moved], densities)
    melted, frozen, latent = (math.fsum(column) for column in rows.T)
    return melted, frozen, latent


def _numbers(material: Any) -> tuple[float, float, float, float]:
    found = checked_thermal(material)
    freezing = math.inf if found.freezing_temperature is None else found.freezing_temperature
    return found.heat_capacity, found.liquid_heat_capacity, found.latent_heat, freezing
