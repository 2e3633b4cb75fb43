"""Incompressible and nearly incompressible matter: velocities on faces, and their projection (S14)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpm_nodes.data import (
    LAW_STATE,
    A,
    Fact,
    Facts,
    Limit,
    MpmNodesError,
    Pascals,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.data import Kernel as Spline
from mpm_nodes.graph.declare import costs, moves_rigid_bodies, reads_of_materials, stage
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.algebra.krylov import Solution
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.materials.values import Symmetric
from mpm_nodes.physics.projection.kernels import face_vectors
from mpm_nodes.physics.projection.numerics.face_step import FaceStep
from mpm_nodes.physics.projection.numerics.impulses_on_bodies import MET, FacesAndBodies, Impulses, meet, move_bodies
from mpm_nodes.physics.projection.numerics.isochoric import DILATION, volume_changes
from mpm_nodes.physics.projection.numerics.isochoric import STRESS as ISOCHORIC_STRESS
from mpm_nodes.physics.projection.numerics.projection import Projected, ProjectionSettings, project_faces
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.physics.projection.numerics.slipping import JoinedFaces
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import CONTACT_FORCES
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take
from mpm_nodes.solver.transfers import gather as take
from mpm_nodes.solver.transfers import scatter as give

__all__ = [
    "add_face_forces",
    "advance_faces",
    "deviatoric_stress",
    "gather_faces",
    "keep_deviator",
    "measure_dilation",
    "project_velocity",
    "rasterize_faces",
    "semi_implicit_faces",
]

_QUADRATIC = Spline.QUADRATIC
_STRESS_ROWS = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
"""Rows of a symmetric matrix that push faces along x, y and z."""


def _faces(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{axis}" for name in names for axis in AXES)


PROJECTED = Facts(
    "projection",
    "What the projection of a frame took.",
    (
        Fact("iterations", "", Reduction.MAX, "Most iterations of a pressure solve.", 1.2),
        Fact(
            "divergence",
            "1/s",
            Reduction.MAX,
            "Largest divergence of an interior cell after a projection, what densities ask for included.",
        ),
        Fact("pressure", "Pa", Reduction.MAX, "Largest pressure."),
        Fact("pockets", "", Reduction.MAX, "Parts of the matter without a free surface."),
        Fact("solves", "", Reduction.MAX, "Most solves in which the contacts of a substep were found."),
        Fact("unsettled", "", Reduction.SUM, "Substeps whose contacts were not found in contact_solves."),
        Fact("coupled", "", Reduction.MAX, "Most iterations of a solve of shape and pressure together.", 5.0),
        Fact("unsolved", "", Reduction.SUM, "Solves that ended before their tolerance."),
    ),
    warning="{unsolved} solves of the pressure, or of shape and pressure together, did not reach their tolerance; raise "
    "project_velocity.iterations and coupled_iterations, or shorten the steps",
    warn_if="unsolved",
)


SPLIT = 1.0
"""Longest step of shape and pressure one after the other, over the time that a shear wave takes through a cell. Up to it longer
steps damp more; beyond it rubber that lands gains energy, blocks of two cells from 1.25 on and blocks of six from 1.5 on."""
ITERATIONS = 20.0
"""Iterations of a solve of both together that are enough for a way of one cell: blocks that land need 5 for each cell in steps of
12, and 10 or more in steps of 20, where small ones were not solved in 200, and burst."""
GIVEN_BACK = 0.05
"""Longest such step, times how much faster waves are than at rest [cells]. A long step is linear about its start, and what is
strained gives back speeds that nothing tells before: with 0.2 rubber that came at a sixth of its waves' speed lost seven eighths of
its volume in places."""


SHEARED = Facts(
    "shear",
    "What the semi-implicit steps of a frame took.",
    (
        Fact("iterations", "", Reduction.MAX, "Most iterations of a linear solve.", 3.5),
        Fact("unsolved", "", Reduction.SUM, "Solves that ended before their tolerance."),
    ),
    warning="{unsolved} solves of shear and viscosity did not reach their tolerance; raise semi_implicit_faces.iterations or "
    "shorten the steps",
    warn_if="unsolved",
)


def _viscous_step(particles: A[ParticleStore, Reads("position")], step: StepContext) -> float:
    """Return the longest step that explicit viscosity allows [s]."""
    rates = [law.viscosity / law.density for law, _ in particles.runs()]
    return step.cell_size**2 / (12.0 * max(rates)) if rates and max(rates) > 0.0 else math.inf


def _shear_step(particles: A[ParticleStore, Reads("position")], step: StepContext) -> float:
    """Return half the time that a shear wave at rest takes through a cell [s]."""
    squares = [law.moduli.shear / law.density for law, _ in particles.runs()]
    return 0.5 * step.cell_size / math.sqrt(max(squares)) if squares and max(squares) > 0.0 else math.inf


def _shear_wave_step(
    particles: A[ParticleStore, Reads("velocity", "stiffness_scale", LAW_STATE), Reads("velocity_gradient", on_request=True)],
    step: StepContext,
    *,
    coupled: bool,
    coupled_iterations: int,
) -> float:
    """Return the longest step for the shear waves of now [s]."""
    longest = math.inf
    for law, _, _, wave in particles.law_limits():
        shear, bulk = law.moduli.shear, law.moduli.bulk
        if shear > 0.0 and wave > 0.0:
            faster = wave / math.sqrt((bulk + 4.0 / 3.0 * shear) / law.density)
            cells = min(coupled_iterations / ITERATIONS, GIVEN_BACK / max(faster - 1.0, 1e-9)) if coupled else SPLIT
            longest = min(longest, max(cells, SPLIT) * step.cell_size / (faster * math.sqrt(shear / law.density)))
    return longest


SHEAR_WAVE = Limit(
    "shear wave", _shear_wave_step, cure="take a softer material, set project_velocity.coupled where matter hardly moves"
)


def _compressibility(law: BoundLaw, particles: ParticleStore, step: StepContext, **knobs: Any) -> dict[str, float]:
    """Return 1 / lam of a material [1/Pa]: its own, else that of the stage, else that of its law."""
    modulus = law.material.bulk_modulus
    if modulus is None:
        modulus = law.moduli.bulk if knobs.get("of_laws", False) else knobs.get("bulk_modulus", 0.0)
    return {"compressibility_of_material": 1.0 / modulus if modulus > 0.0 else 0.0}


@stage(label="Measure Dilation", fragments=(Lanes(volume_changes, DILATION, arguments=_compressibility),))
def measure_dilation(
    particles: A[ParticleStore, Reads(LAW_STATE), Writes(*DILATION)],
    step: StepContext,
    *,
    bulk_modulus: A[float, Pascals, Range(min=0.0, soft_max=1e10)] = 0.0,
    of_laws: bool = False,
) -> Stage["particles"]:
    """Find the relative change of volume J - 1 of particles of any law, its elastic part J_E - 1, and what resists it.

    Args:
        particles: Particles of any law.
        bulk_modulus: Resistance to compression, lam of the split model, of materials that have none of their own
            (material_bulk_modulus); 0 stands for infinity: incompressible.
        of_laws: Take the bulk modulus of each material's law instead: lam + 2 mu / 3 where that has Lame parameters.
    """
    alone(measure_dilation, particles, step, bulk_modulus=bulk_modulus, of_laws=of_laws)


@inline
def deviator_of(stress: Symmetric) -> Symmetric:
    """Return the stress without its trace."""
    return mat3.pack(mat3.deviator(mat3.unpack(stress)))


@reads_of_materials("viscosity")
@stage(label="Deviatoric Stress", fragments=ISOCHORIC_STRESS)
def deviatoric_stress(
    particles: A[ParticleStore, Reads("stiffness_scale", LAW_STATE), Writes("stress")], step: StepContext
) -> Stage["particles"]:
    """Evaluate each material's law for its shape alone: the Kirchhoff stress of the strain without its dilation (S14 eq. 8).

    Any law is split so, and the stress has no trace; its pressure comes from the projection. Viscosity is left to
    semi_implicit_faces.

    Args:
        particles: Particles whose law state is read.
    """
    alone(deviatoric_stress, particles, step)


@stage(label="Keep Deviator", fragments=(Lanes(deviator_of, ("stress",)),))
def keep_deviator(particles: A[ParticleStore, Reads("stress"), Writes("stress")], step: StepContext) -> Stage["particles"]:
    """Take the pressure out of a stress with viscosity, for advance_faces: it comes from the projection (S14 section 4.1).

    Args:
        particles: Particles with their stress.
    """
    alone(keep_deviator, particles, step)


@costs(2.5)
@stage(label="Rasterize Faces")
def rasterize_faces(
    particles: A[ParticleStore, Reads("position", "velocity", "affine", "mass", *DILATION)],
    staggered: A[StaggeredStore, Writes(*_faces("momentum", "mass", "force", "rest_volume"), "mass", *DILATION)],
) -> Stage["particles", "staggered"]:
    """Transfer mass and momentum to the faces of the staggered grid by APIC, mass, change of volume and
    compressibility to its cells: 1 / lam is averaged, not lam (S14 section 5.3).

    Args:
        particles: Particles to transfer.
        staggered: Grid to fill; its forces and rest volumes are cleared.
    """
    staggered.clear("cell", *_faces("face", "force"))
    faces = [
        Deposit(f"face_{axis}", "mass", (("velocity", n), None, None), (("affine", 3 * n), None, None))
        for n, axis in enumerate(AXES)
    ]
    give(particles, staggered, _QUADRATIC, Deposit("cell", "mass", DILATION), *faces)


@costs(2.0)
@stage(label="Add Face Forces")
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


@stage(
    label="Advance Faces",
    limits=(
        Limit("explicit viscosity", _viscous_step, cure="wire the stage semi_implicit_faces, lower the viscosity of the material"),
        Limit("explicit shear", _shear_step, cure="wire the stage semi_implicit_faces, take a softer material"),
    ),
)
def advance_faces(
    particles: A[ParticleStore, Reads("position")],
    staggered: A[StaggeredStore, Reads(*_faces("momentum", "mass", "force")), Writes(*_faces("velocity"))],
    step: StepContext,
) -> Stage["particles", "staggered"]:
    """Advance face velocities by forces and gravity: v* = v + dt (f / m + g). Shear waves and viscosity limit the step.

    Args:
        particles: Particles whose stress made the forces.
        staggered: Grid with masses, momenta and forces.
    """
    _advance(staggered, step)


@costs(6.0)
@moves_rigid_bodies()
@stage(label="Semi-Implicit Faces", facts=(SHEARED, MET, CONTACT_FORCES))
def semi_implicit_faces(
    particles: A[ParticleStore, Reads("position", "volume", "stiffness_scale", LAW_STATE)],
    staggered: A[StaggeredStore, Reads(*_faces("momentum", "mass", "force")), Writes(*_faces("velocity"))],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    beta: A[float, Unitless, Range(min=0.5, max=1.0)] = 0.5,
    tolerance: A[float, Unitless, Range(min=1e-14, max=0.1, log=True)] = 1e-6,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
) -> Stage["particles", "staggered"]:
    """Advance face velocities by forces and gravity, and shear and viscosity with them in one linear solve (S14 section 5.5.2).

    m v* + dt K(beta dt) v* = m v + dt f + dt m g, K the second derivative of the energy of shape. Neither shear waves nor
    viscosity limit the step. Matter without either costs nothing more than in advance_faces.

    Args:
        particles: Particles whose stress made the forces.
        staggered: Grid with masses, momenta and forces.
        colliders: Bodies and walls: what sticks to them keeps their velocity.
        beta: Share of the new velocities in the elastic force: 1/2 damps least, 1 is linearised backward Euler.
        tolerance: Residual of the linear solve over that of no velocity, by mass; at least 4 units of rounding of the float type.
        iterations: Iterations of the linear solve at most.
    """
    move_bodies(colliders, step)
    if not staggered.count:
        return
    _advance(staggered, step)
    if not any(law.moduli.shear > 0.0 or law.viscosity > 0.0 for law, _ in particles.runs()):
        return
    colliders.pose(step.time, step.time + step.dt)

    def solve() -> Solution:
        return FaceStep(particles, staggered, colliders, step.dt, beta).solve(tolerance, iterations, step.check_cancel)

    def given(faces: FacesAndBodies, _: Solution) -> Impulses:
        return faces.given_by_shape(ShapeResponse(particles, staggered, step.dt, beta))

    found = meet(colliders, staggered, step, "shape", solve, given)
    step.tell(SHEARED, iterations=found.iterations, unsolved=int(not found.converged))


def _advance(staggered: StaggeredStore, step: StepContext) -> None:
    """Write v* = v + dt (f / m + g) to the faces."""
    for axis, gravity in zip(AXES, step.gravity, strict=True):
        arrays = (staggered.array(f"{name}_{axis}") for name in ("face", "force", "velocity"))
        face_vectors.advance_faces(staggered.count, *arrays, step.dt, gravity, staggered.grid.least_mass)


def _wire_particles(knobs: dict[str, Any], inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take particles from where the grid came from; version 1 solved for the pressure alone, and goes on to do so."""
    return {"coupled": False, **knobs}, {"particles": inputs["staggered"], **inputs} if "staggered" in inputs else inputs


@costs(8.0)
@moves_rigid_bodies("slip", "coupled")
@stage(
    label="Project Velocity",
    version=2,
    facts=(PROJECTED, MET, CONTACT_FORCES),
    limits=(
        Limit(
            "shear wave", _shear_wave_step, cure="take a softer material, set project_velocity.coupled where matter hardly moves"
        ),
    ),
    upgrades={1: _wire_particles},
)
def project_velocity(
    particles: A[ParticleStore, Reads("position", "volume", "stiffness_scale", LAW_STATE), Reads("firm", when=("slip", True))],
    staggered: A[
        StaggeredStore,
        Reads(*_faces("momentum", "mass", "force", "rest_volume", "velocity"), "mass", *DILATION),
        Reads("filling", when=("sparse_liquids", True)),
        Writes(*_faces("velocity"), "pressure"),
    ],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    volume_correction: A[float, Unitless, Range(min=0.0, max=1.0)] = 1.0,
    control_volumes: bool = True,
    contact_solves: A[int, Unitless, Range(min=1, soft_max=20)] = 8,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-8,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 2000,
    coupled: bool = False,
    coupled_tolerance: A[float, Unitless, Range(min=1e-10, max=0.5, log=True)] = 1e-3,
    coupled_iterations: A[int, Unitless, Range(min=1, max=10000)] = 200,
    beta: A[float, Unitless, Range(min=0.5, max=1.0)] = 0.5,
    sparse_liquids: bool = False,
    slip: bool = False,
) -> Stage["particles", "staggered"]:
    """Make face velocities free of divergence, or give compressible matter its pressure: generalised Chorin projection (S14 5.7).

    The pressure is 0 at free surfaces. Sticky bodies and walls hold all faces inside them; along others matter slides. It may leave
    those that separate, which push and do not pull (policy iteration as Lai 2020), and rubs on them by Coulomb's law.

    Shape and viscosity were solved for without the pressure: in long steps stiff matter gives way as if it were soft, and gains
    energy where it lands. So a step is no longer than a shear wave takes through a cell. With `coupled` both are then solved for
    together, by conjugate residuals among the velocities that the pressure allows, and steps are up to ten times as long.

    Args:
        particles: Particles with the law state of the substep's start.
        staggered: Grid with masses, velocities, changes of volume and compressibility.
        colliders: Bodies and walls.
        volume_correction: Share of the volume error that incompressible matter takes back in a substep.
        control_volumes: Give faces the volume of the matter around them; off, faces at walls are light and rise (S14 Figure 7).
        contact_solves: Pressure solves in which contacts that separate and their friction are found; 1 holds all of them, smooth.
        tolerance: Residual at which the pressure solve stops, over that of the right side.
        iterations: Iterations of the pressure solve at most.
        coupled: Solve for shape and pressure together. It suits stiff matter that hardly moves: a step costs several times as much,
            bounces are damped away, and friction at impacts is too strong.
        coupled_tolerance: What may be left of the difference between one after the other and together, over what both change; at
            least what rounding leaves of the speeds.
        coupled_iterations: Iterations of that solve at most, each with a pressure solve. In a step a shear wave goes through a
            cell for every twenty of them at most.
        beta: As in semi_implicit_faces, before it.
        sparse_liquids: Take cells of which correct_density, before, says that liquids fill less than half for empty, so that spray
            falls; those that it finds to be thin push and do not pull.
        slip: Give liquids and what keeps its shape velocities of their own: a liquid then slips on it, and is not dragged along.
    """
    move_bodies(colliders, step)
    if not staggered.count:
        return
    colliders.pose(step.time, step.time + step.dt)
    firm = any(law.moduli.shear > 0.0 or law.viscosity > 0.0 for law, _ in particles.runs())
    if slip and (coupled or "temperature" in staggered.fields):
        what = "coupled" if coupled else "stages that move heat"
        raise MpmNodesError(f"project_velocity: slip and {what} do not go together yet; turn slip off")
    joined = JoinedFaces(staggered) if slip and len(np.unique(staggered.grid.body)) > 1 else None
    settings = ProjectionSettings(
        volume_correction,
        control_volumes,
        tolerance,
        iterations,
        step.gravity,
        contact_solves,
        coupled_tolerance,
        coupled_iterations,
        sparse_liquids,
    )

    def project() -> Projected:
        response = ShapeResponse(particles, staggered, step.dt, beta) if coupled and firm else None
        grid = staggered if joined is None else joined
        return project_faces(grid, colliders, step.dt, settings, step.check_cancel, response)

    def given(faces: FacesAndBodies, found: Projected) -> Impulses:
        return faces.given_by_pressure(found.fields, found.pressure, found.rank)

    done = meet(colliders, staggered, step, "pressure", project, given)
    staggered.pack("pressure", done.pressure if joined is None else joined.spread(done.pressure))
    step.tell(
        PROJECTED,
        iterations=done.solution.iterations,
        divergence=done.divergence,
        pressure=float(abs(done.pressure).max(initial=0.0)),
        pockets=done.pockets,
        solves=done.solves,
        unsettled=int(not done.settled),
        coupled=done.coupled.iterations if done.coupled is not None else 0,
        unsolved=int(not done.solution.converged) + int(done.coupled is not None and not done.coupled.converged),
    )


@costs(2.5)
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
