"""Surface tension: samples of the surface, their tension, their share of mass and momentum, their force and energy."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    Fact,
    Facts,
    Kernel,
    Limit,
    MpmNodesError,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import costs, needs_whole_nodes, shared_among_ranks, stage
from mpm_nodes.kernels.transfers.weights import INERTIA, STENCIL
from mpm_nodes.physics.surface_tension.fields import FIELDS
from mpm_nodes.physics.surface_tension.kernels.sampling import Spread
from mpm_nodes.physics.surface_tension.materials import pairs_of
from mpm_nodes.physics.surface_tension.numerics import samples as sharing
from mpm_nodes.physics.surface_tension.numerics import wetting
from mpm_nodes.physics.surface_tension.numerics.samples import SamplePlacement, SampleStore
from mpm_nodes.physics.surface_tension.numerics.surface_energy import SurfaceEnergy, SurfacePull
from mpm_nodes.physics.surface_tension.numerics.symmetry import Mirrors, Slab, window
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import adding_up
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.surroundings import ambient_at
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.solver.transfers import Deposit, Take, gather, lines_of, rows_of, scatter

RADIUS = 0.867
"""Just above half the diagonal of a cell: even a lone particle has a surface (C21 section 4.1)."""


SURFACE = Facts(
    "surface",
    "The surface of matter with a tension.",
    (
        Fact("samples", "", Reduction.MAX, "Most samples of a substep."),
        Fact("area", "m^2", Reduction.LAST, "Area of the sampled surface; of interfaces between liquids both sides."),
        Fact("energy", "J", Reduction.LAST, "Energy of the surface, that against colliders and walls included."),
        Fact("open", "", Reduction.MAX, "Length of the sum of area vectors over the area: rounding where the surface is closed."),
    ),
)


def longest_step(tension: float, density: float, cell_size: float) -> float:
    """Return the longest substep [s] that capillary waves of two cells' length allow.

    Args:
        tension: [N/m].
        density: [kg/m^3].
        cell_size: [m].
    """
    return 0.5 * math.sqrt(density * cell_size**3 / (4.0 * math.pi * tension)) if tension > 0.0 else math.inf


def _capillary(particles: A[ParticleStore, Reads("material", "tension_scale")], step: StepContext) -> float:
    pairs = pairs_of([law.material for law in particles.laws])
    painted = particles.rows("tension_scale")[0] if "tension_scale" in particles.names else np.ones(1)
    most = float(painted.max(initial=0.0))
    most = step.share.largest(most)
    factor = most * math.prod(each.most_tension for each in step.ambient)
    found = math.inf
    for law, _ in particles.runs():
        tension = law.material.surface_tension
        against_air = 0.0 if tension is None else tension.largest
        against_others = 0.0 if pairs is None else pairs.most(law.index)
        found = min(found, longest_step(factor * max(against_air, against_others), law.density, step.cell_size))
    return found


CAPILLARY = Limit("capillary wave", _capillary, cure="lower the surface tension of the material")


# ---------------------------------------------------------------- samples and their tension
@costs(30.0)
@shared_among_ranks
@stage(label="Sample Surface")
def sample_surface(
    particles: A[ParticleStore, Reads("position", "material", "volume", "temperature")],
    samples: A[SampleStore, Writes(*FIELDS["samples"])],
    colliders: A[ColliderSet, Reads("level_set")],
    *,
    radius: A[float, Unitless, Range(min=0.5, max=1.0)] = RADIUS,
    shift: bool = True,
    sample_area: A[float, Unitless, Range(min=0.02, max=4.0)] = 0.25,
    placement: SamplePlacement = SamplePlacement.RANDOM,
    slab: Slab = Slab.NONE,
    mirrors: Mirrors = Mirrors.NONE,
    seed: A[int, Range(min=0)] = 0,
    still: A[float, Unitless, Range(min=0.0, max=0.1)] = 0.0,
) -> Stage["particles", "samples", "colliders"]:
    """Put samples on the surface of matter that has a tension (C21 section 4.1).

    The surface is that of the union of spheres around the particles, as marching cubes on the grid find it: closed, so that areas
    times normals sum to zero. It is drawn in from there to where matter fills half of what surrounds it, or to a quarter of a cell
    from the outermost particles. Each sample belongs to the particle nearest to it. Matter that a pair names
    (material_interface_tension) has a surface of its own, also against other matter. Wire it before rasterize.

    Args:
        particles: Particles of materials with a tension (material_surface_tension), and others. Their temperature is read where the
            tension of a pair follows it.
        samples: Found again in every substep.
        colliders: Whose walls bound a slab, or are planes of symmetry.
        radius: Of the spheres, in cells: 0.867 in space, 0.73 in a slab; from 0.866 on single particles have a surface.
        shift: Whether the surface is drawn in. Off, as the source has it, it lies 0.6 cells outside the matter: its forces then
            pull the outermost particles in, and small drops shrink.
        sample_area: Area that one sample stands for, in cells^2.
        placement: How samples lie on triangles: `random` as the source has them, or `even`, with which drops at rest are calmer;
            about twice as many samples.
        slab: Axis along which two walls on planes of nodes cut the surface off, for scenes that stand for two dimensions.
        mirrors: Axes along which walls that slip are planes of symmetry, on planes of nodes: for a half, a quarter or an eighth of
            a scene. The surface is open there and stands upright on the plane.
        seed: Seed of random places.
        still: How far the particles of a block may have moved along an axis since its surface was sampled, in cells, for it to stay
            as it was: 0.01 saves most of the time where matter is at rest. At 0 all is sampled in every substep, as it always is
            in the first one of a frame and on several ranks.

    Raises:
        MpmNodesError: Walls of a slab or planes of symmetry do not lie on planes of nodes, or none of the latter slips.
    """
    within = window(slab, mirrors, colliders, particles.origin, particles.h)
    spread = Spread(4.0 * sample_area, placement is SamplePlacement.EVEN, seed)
    sharing.sample_surface(particles, samples, radius, shift, spread, within, still)


@shared_among_ranks
@stage(label="Set Tension")
def set_tension(
    particles: A[ParticleStore, Reads("material", "temperature", "concentration", "tension_scale")],
    samples: A[
        SampleStore,
        Reads("position", "normal", "owner", "covered", "interface"),
        Writes("tension", "pull", "pinning", "footing"),
    ],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    contact_angle: A[float, Degrees, Range(min=0.0, max=180.0)] = 90.0,
    hysteresis: A[float, Degrees, Range(min=0.0, max=180.0)] = 0.0,
    contact_distance: A[float, Unitless, Range(min=0.0, max=2.0)] = 0.3,
    slab: Slab = Slab.NONE,
    mirrors: Mirrors = Mirrors.NONE,
) -> Stage["particles", "samples", "colliders"]:
    """Give samples the surface energy density of their owner's material, and on bodies what makes the contact angle.

    k = k_LG towards air, k_SL = - k_LG cos(angle) where a body or wall is near (Young's law; C21 section 3.6), and half of the
    pair's tension on either side of an interface between liquids (material_interface_tension); on a body the tension against air
    counts. Where matter may separate, samples come off a body within half a cell beyond contact_distance, against a pull that does
    the work of adhesion, k_LG - k_SL per area. A tension that changes along the surface, with temperature, concentration or paint,
    drives Marangoni flow by itself.

    Args:
        particles: Owners; temperature and concentration are read where the tension varies with them, and a factor on it,
            `tension_scale`, where they bring one. Fields in places (tension_field) come in by the solve's port `ambient`.
        samples: Samples of the surface.
        colliders: Bodies and walls.
        contact_angle: Between a liquid and walls, or bodies without an angle of their own (collider_contact_angle): 0 wets, 90 is
            neutral, 180 repels.
        hysteresis: Advancing less receding angle there, evenly around the contact angle; pin_contact_line holds the edge of the
            liquid in between.
        contact_distance: How near the surface of a body samples that face it count as touching it, in cells. The sampled surface of
            matter on a body lies within a quarter of a cell of the body's own.
        slab: As in sample_surface: its two walls are not bodies.
        mirrors: As in sample_surface: planes of symmetry are not bodies.

    Raises:
        MpmNodesError: A hysteresis takes an angle out of 0 to 180 degrees.
    """
    if not samples.count:
        return
    owner = samples.rows("owner")[0]
    material, temperature, concentration = (particles.rows(name)[0][owner] for name in ("material", "temperature", "concentration"))
    tension = np.zeros(samples.count)
    for law in particles.laws:
        if law.material.surface_tension is not None:
            mine = material == law.index
            tension[mine] = law.material.surface_tension.at(temperature[mine].astype(float), concentration[mine].astype(float))
    factor = np.ones(samples.count)
    if "tension_scale" in particles.names:
        factor *= particles.rows("tension_scale")[0][owner]
    for each in ambient_at(step.ambient, step.middle):
        if each.tension is not None:
            factor *= each.tension.at(samples.unpack("position"))
    tension *= factor
    between = samples.rows("covered")[0].astype(float)
    side = tension + between * (factor * samples.rows("interface")[0] - tension)
    for name in ("pull", "pinning", "footing"):
        samples.rows(name)[:] = 0.0
    if colliders.idle:
        samples.rows("tension")[0] = side
        return
    samples.rows("tension")[0] = tension
    cuts = (*slab.sides, *mirrors.sides(colliders))
    wetting.wet(samples, colliders, step, (contact_angle, hysteresis), contact_distance, cuts, side)


# ---------------------------------------------------------------- mass and momentum
@costs(3.0)
@shared_among_ranks
@stage(label="Split Surface Mass")
def split_surface_mass(
    particles: A[ParticleStore, Reads("position", "mass", "velocity", "affine"), Writes("mass")],
    samples: A[
        SampleStore,
        Reads("position", "normal", "area", "owner", "covered", "interface", "tension", "pull", "pinning", "footing"),
        Writes(*FIELDS["samples"]),
    ],
    *,
    massless: bool = False,
) -> Stage["particles", "samples"]:
    """Share the mass of particles under the surface with their samples and with balance points opposite to them (C21 section 5).

    All points of a group move as their owner does: mass, momentum, angular momentum and centre of mass stay to rounding, and every
    node that a sample pushes has mass. merge_surface_mass gives the mass back.

    Args:
        particles: Owners of the samples.
        samples: Samples; balance points are added, with no area.
        massless: Leave samples without mass (Hyde 2020): momentum of forces on empty nodes is then lost. To compare.
    """
    if massless:
        samples.sort()
        for name in ("owner_mass", "mass", "velocity", "affine"):
            samples.rows(name)[:] = 0.0
    else:
        sharing.split_mass(particles, samples)


@shared_among_ranks
@needs_whole_nodes
@stage(label="Rasterize Samples")
def rasterize_samples(
    samples: A[SampleStore, Reads("position", "mass", "velocity", "affine")],
    grid: A[GridStore, Reads("mass", "momentum"), Writes("mass", "momentum")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["samples", "grid"]:
    """Add the mass and momentum of samples and balance points to the grid, by APIC.

    Args:
        samples: Samples that split_surface_mass gave a mass.
        grid: Grid that the particles were rasterized to.
        kernel: B-spline of the weights; the one of rasterize.
    """
    if samples.count or grid.halo.several:
        scatter(samples.on_grid(), grid, kernel, Deposit("momentum", "mass", rows_of("velocity"), lines_of("affine")))


@costs(2.0)
@shared_among_ranks
@stage(label="Merge Surface Mass")
def merge_surface_mass(
    particles: A[ParticleStore, Reads("position", "mass", "velocity", "affine"), Writes("mass", "velocity", "affine")],
    samples: A[SampleStore, Reads("position", "owner", "owner_mass", "mass"), Writes("velocity", "affine")],
    grid: A[GridStore, Reads("velocity")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "samples", "grid"]:
    """Give particles under the surface their mass back, and the momentum and angular momentum of their group (C21 section 5).

    Args:
        particles: Particles that gather gave their velocities.
        samples: Samples and balance points.
        grid: Grid with the updated velocities.
        kernel: B-spline of the weights; the one of gather.
    """
    if samples.count:
        gather(samples.on_grid(), grid, kernel, Take("velocity", rows_of("velocity"), lines_of("affine")))
        sharing.merge_mass(particles, samples, INERTIA[kernel.value])


# ---------------------------------------------------------------- force and energy
def _tell(samples: SampleStore, step: StepContext) -> None:
    area, tension = (samples.rows(name)[0].astype(float) for name in ("area", "tension"))
    sums = np.array([(area > 0).sum(), area.sum(), area @ tension, *sharing.area_vector(samples)])
    sums = step.share.totals(sums)
    count, whole, energy = sums[:3].tolist()
    gap = float(np.linalg.norm(sums[3:])) / whole if whole > 0.0 else 0.0
    step.tell(SURFACE, samples=int(count), area=whole, energy=energy, open=gap)
    most = sharing.MOST_OPEN[samples.dtype]
    if step.checked and gap > most:
        raise MpmNodesError(
            f"surface samples: the surface is open: its area vectors sum to {gap:.3g} of its area, where rounding makes at most "
            f"{most:.3g}; bypass stages of your own between sample_surface and the force, and report it if that does not help"
        )


@shared_among_ranks
@needs_whole_nodes
@stage(label="Add Surface Forces", facts=(SURFACE,), limits=(CAPILLARY,))
def add_surface_forces(
    samples: A[SampleStore, Reads("position", "normal", "area", "tension", "pull")],
    grid: A[GridStore, Reads("force"), Writes("force")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["samples", "grid"]:
    """Scatter the force of the surface energy to the grid: f_i = - sum k dA (I - n n^T) grad w (C21 eq. 16 at rest).

    Each sample's forces have neither sum nor torque; a body whose wetting varies over its surface pulls besides.
    Explicit: offers the limit of capillary waves, 0.5 sqrt(rho h^3 / (4 pi k)).

    Args:
        samples: Samples with their tension.
        grid: Grid whose forces are added to.
        kernel: B-spline of the weights.
    """
    force = grid.array("force")
    with adding_up(grid.halo, force):
        SurfaceEnergy(samples, grid, STENCIL[kernel.value]).add_force(force)
        pull = wetting.pulls(samples, grid, kernel)
        if pull is not None:
            force[: len(pull)] += pull
    _tell(samples, step)


@needs_whole_nodes
@stage(label="Surface Energy", facts=(SURFACE,))
def surface_energy(
    samples: A[SampleStore, Reads("position", "normal", "area", "tension", "pull")],
    energy: A[EnergyStore, Reads("terms"), Writes("terms")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["samples", "energy"]:
    """Make the energy of the surface a term of the potential that an implicit update minimises.

    Phi = sum k |cof(I + dt grad v) dA| (C21 eq. 7). `minimise_energy` takes all of its second derivative, and the positive part of
    each sample's where that bends down; `semi_implicit_update` takes the positive part. The derivative itself is exact.

    Args:
        samples: Samples with their tension.
        energy: Terms of the potential.
        kernel: B-spline of the weights; the one of rasterize.
    """
    energy.add("surface_energy", SurfaceEnergy(samples, energy.grid, STENCIL[kernel.value]))
    pull = wetting.pulls(samples, energy.grid, kernel)
    if pull is not None:
        energy.add("surface_pull", SurfacePull(pull))
    _tell(samples, step)


# ---------------------------------------------------------------- contact lines
@shared_among_ranks
@needs_whole_nodes
@stage(label="Pin Contact Line")
def pin_contact_line(
    samples: A[SampleStore, Reads("position", "normal", "area", "pinning", "footing")],
    grid: A[GridStore, Reads("mass", "velocity"), Writes("velocity")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["samples", "grid"]:
    """Hold the edge of wetted areas where it is, up to the force that advancing and receding angles stand for (Furmidge 1962).

    The velocity of nodes across the line loses up to dt k_p l / m, with k_p = k (cos theta_r - cos theta_a) / 2 and the length l of
    the line near them. So k (cos theta_r - cos theta_a) for each metre of its width holds back a drop that slides; with less than
    that to pull it, it creeps. Wire it behind the collisions. Without a hysteresis it does nothing.

    Args:
        samples: With the pinning that set_tension gave them.
        grid: Grid with the updated velocities.
        kernel: B-spline of the weights; the one of rasterize.
    """
    wetting.pin_lines(samples, grid, kernel, step.dt)
