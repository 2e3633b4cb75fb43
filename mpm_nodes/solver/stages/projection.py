"""Incompressible and nearly incompressible matter: velocities on faces, and their projection (S14)."""

from __future__ import annotations

import math

from mpm_nodes.data import LAW_STATE, A, Fact, Facts, Limit, Pascals, Range, Reads, Reduction, Stage, StepContext, Unitless, Writes
from mpm_nodes.data import Kernel as Spline
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.projection.pressure import advance_faces
from mpm_nodes.materials.values import LawModule, State, Symmetric, Value
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.projection import ProjectionSettings, project_faces
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take
from mpm_nodes.solver.transfers import gather as take
from mpm_nodes.solver.transfers import scatter as give

__all__ = ["add_face_forces", "gather_faces", "keep_deviator", "measure_dilation", "project_velocity", "rasterize_faces"]

_QUADRATIC = Spline.QUADRATIC
_STRESS_ROWS = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
"""Rows of a symmetric matrix that push faces along x, y and z."""


def _faces(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{axis}" for name in names for axis in AXES)


PROJECTED = Facts(
    "projection",
    "What the projection of a frame took.",
    (
        Fact("iterations", "", Reduction.MAX, "Most iterations of a pressure solve."),
        Fact("divergence", "1/s", Reduction.MAX, "Largest divergence of an interior cell after a projection."),
        Fact("pressure", "Pa", Reduction.MAX, "Largest pressure."),
        Fact("pockets", "", Reduction.MAX, "Parts of the matter without a free surface."),
        Fact("unsolved", "", Reduction.SUM, "Solves that ended before their tolerance."),
    ),
    warning="{unsolved} pressure solves did not reach their tolerance; raise project_velocity.iterations",
    warn_if="unsolved",
)


def _viscous_step(particles: A[ParticleStore, Reads("position")], step: StepContext) -> float:
    """Return the longest step that explicit viscosity allows [s]."""
    rates = [law.viscosity / law.density for law, _ in particles.runs()]
    return step.cell_size**2 / (12.0 * max(rates)) if rates and max(rates) > 0.0 else math.inf


@inline
def dilation_of_ratio(law: LawModule, state: State) -> Value:
    """Return J - 1."""
    J = law.volume_ratio(state)
    return J - const(J, 1.0)


@inline
def dilation_of_strain(law: LawModule, state: State) -> Value:
    """Return J - 1 of a law that knows its left strain."""
    J, _b = law.left_strain(state)
    return J - const(J, 1.0)


_DILATION = (
    Lanes(dilation_of_ratio, ("dilation",), needs=("volume_ratio",)),
    Lanes(dilation_of_strain, ("dilation",), needs=("left_strain",), lacks=("volume_ratio",)),
)


@stage(label="Measure Dilation", fragments=_DILATION)
def measure_dilation(particles: A[ParticleStore, Reads(LAW_STATE), Writes("dilation")], step: StepContext) -> Stage["particles"]:
    """Find the relative change of volume J - 1 of particles of any law.

    Args:
        particles: Particles whose law knows their volume.
    """
    alone(measure_dilation, particles, step)


@inline
def deviator_of(stress: Symmetric) -> Symmetric:
    """Return the stress without its trace."""
    return mat3.pack(mat3.deviator(mat3.unpack(stress)))


@stage(label="Keep Deviator", fragments=(Lanes(deviator_of, ("stress",)),))
def keep_deviator(particles: A[ParticleStore, Reads("stress"), Writes("stress")], step: StepContext) -> Stage["particles"]:
    """Take the pressure out of the stress: it comes from the projection (S14 section 4.1).

    Args:
        particles: Particles with their stress.
    """
    alone(keep_deviator, particles, step)


@stage(label="Rasterize Faces")
def rasterize_faces(
    particles: A[ParticleStore, Reads("position", "velocity", "affine", "mass", "dilation")],
    staggered: A[StaggeredStore, Writes(*_faces("momentum", "mass", "force", "rest_volume"), "mass", "dilation")],
) -> Stage["particles", "staggered"]:
    """Transfer mass and momentum to the faces of the staggered grid by APIC, mass and change of volume to its cells.

    Args:
        particles: Particles to transfer.
        staggered: Grid to fill; its forces and rest volumes are cleared.
    """
    staggered.clear("cell", *_faces("face", "force"))
    faces = [
        Deposit(f"face_{axis}", "mass", (("velocity", n), None, None), (("affine", 3 * n), None, None))
        for n, axis in enumerate(AXES)
    ]
    give(particles, staggered, _QUADRATIC, Deposit("cell", "mass", ("dilation", None, None)), *faces)


@stage(
    label="Add Face Forces",
    limits=(Limit("explicit viscosity", _viscous_step, cure="lower the viscosity or raise settings.cell_size"),),
)
def add_face_forces(
    particles: A[ParticleStore, Reads("position", "volume", "stress")],
    staggered: A[StaggeredStore, Reads(*_faces("force", "rest_volume")), Writes(*_faces("force", "rest_volume"))],
) -> Stage["particles", "staggered"]:
    """Scatter f_f = - sum V0 (tau grad w)_a, and sum V0 w, to the faces of each axis a (S14 eq. 24).

    Args:
        particles: Particles with the deviatoric part of their stress.
        staggered: Grid whose forces and rest volumes are added to.
    """
    forces = [
        Deposit(f"force_{axis}", "volume", force=Force("stress", (rows, None, None)))
        for axis, rows in zip(AXES, _STRESS_ROWS, strict=True)
    ]
    give(particles, staggered, _QUADRATIC, *forces)


@stage(label="Project Velocity", facts=(PROJECTED,))
def project_velocity(
    staggered: A[
        StaggeredStore,
        Reads(*_faces("momentum", "mass", "force", "rest_volume"), "mass", "dilation"),
        Writes(*_faces("velocity"), "pressure"),
    ],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    bulk_modulus: A[float, Pascals, Range(min=0.0, soft_max=1e10)] = 0.0,
    volume_correction: A[float, Unitless, Range(min=0.0, max=1.0)] = 1.0,
    control_volumes: bool = True,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-8,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 2000,
) -> Stage["staggered"]:
    """Advance face velocities by forces and gravity and make them free of divergence: the generalised Chorin projection (S14 5.7).

    The pressure is 0 at free surfaces. Sticky bodies and walls hold all faces inside them; along others matter slides, without
    friction, and does not leave them on the grid.

    Args:
        staggered: Grid with masses, momenta and forces.
        colliders: Bodies and walls.
        bulk_modulus: Resistance to compression, lam of the split model; 0 stands for infinity: incompressible.
        volume_correction: Share of the volume error that incompressible matter takes back in a substep.
        control_volumes: Give faces the volume of the matter around them; off, faces at walls are light and rise (S14 Figure 7).
        tolerance: Residual at which the pressure solve stops, over that of the right side.
        iterations: Iterations of the pressure solve at most.
    """
    if not staggered.count:
        return
    colliders.pose(step.time, step.time + step.dt)
    least = staggered.grid.least_mass
    for axis, gravity in zip(AXES, step.gravity, strict=True):
        names = (f"face_{axis}", f"force_{axis}", f"velocity_{axis}")
        advance_faces(staggered.count, *map(staggered.array, names), step.dt, gravity, least)
    compressibility = 1.0 / bulk_modulus if bulk_modulus > 0.0 else 0.0
    correction = volume_correction if compressibility == 0.0 else 1.0
    done = project_faces(
        staggered,
        colliders,
        step.dt,
        ProjectionSettings(compressibility, correction, control_volumes, tolerance, iterations),
        step.check_cancel,
    )
    staggered.pack("pressure", done.pressure)
    step.tell(
        PROJECTED,
        iterations=done.solution.iterations,
        divergence=done.divergence,
        pressure=float(abs(done.pressure).max(initial=0.0)),
        pockets=done.pockets,
        unsolved=int(not done.solution.converged),
    )


@stage(label="Gather Faces")
def gather_faces(
    particles: A[ParticleStore, Reads("position"), Writes("velocity", "affine", "velocity_gradient")],
    staggered: A[StaggeredStore, Reads(*_faces("velocity"))],
) -> Stage["particles", "staggered"]:
    """Interpolate face velocities back: v_p, its affine part and its gradient, each component from the faces of its axis.

    Args:
        particles: Particles to update.
        staggered: Grid with the projected velocities.
    """
    takes = [
        Take(
            f"velocity_{axis}",
            (("velocity", n), None, None),
            affine=(("affine", 3 * n), None, None),
            gradient=(("velocity_gradient", 3 * n), None, None),
        )
        for n, axis in enumerate(AXES)
    ]
    take(particles, staggered, _QUADRATIC, *takes)
    particles.stale.discard("velocity_gradient")
