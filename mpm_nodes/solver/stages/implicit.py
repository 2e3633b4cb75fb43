"""Implicit grid update: energy terms, and the stage that minimises their sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpm_nodes.data import (
    LAW_STATE,
    A,
    Fact,
    Facts,
    Kernel,
    Krylov,
    Limit,
    Preconditioner,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import costs, joins_copies, moves_rigid_bodies, reads_of_materials, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import OwnLoops
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.materials.implicit_fragments import loops_of_energy
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import CONTACT_FORCES
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.forces_on_bodies import tell_forces
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.minimisation import Minimisation, MinimisationOutcome, MinimisationSettings
from mpm_nodes.solver.numerical_damping import NumericalDamping, share_of
from mpm_nodes.solver.sides import SharedOut
from mpm_nodes.solver.stages.choose_time_step import CHOSEN
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.solver.terms.law_energy import LawEnergy, ViscousEnergy

SOLVED = Facts(
    "implicit",
    "What the implicit substeps of a frame took.",
    (
        Fact("substeps", "", Reduction.SUM, "Minimisations that converged."),
        Fact("newton", "", Reduction.SUM, "Newton iterations.", 4.0),
        Fact("krylov", "", Reduction.SUM, "Krylov iterations.", 3.0),
        Fact("halved", "", Reduction.SUM, "Minimisations that did not converge: their substep was halved."),
        Fact("shortened", "", Reduction.SUM, "Newton steps that the line search shortened."),
        Fact("residual", "m/s", Reduction.MAX, "Largest residual that a last iteration began with."),
        Fact("decrease", "J", Reduction.SUM, "Fall of the incremental potential."),
        Fact("reason", "", Reduction.LAST, "Why the last one that was halved did not converge."),
    ),
    warning="{halved} implicit substeps did not converge and were halved ({reason}); raise newton_iterations or tolerance if it "
    "costs too much time",
    warn_if="halved",
)
UNSOLVED = Limit(
    "implicit solve",
    cause="the implicit solve did not converge even so: {reason}",
    cure="raise minimise_energy.newton_iterations or its tolerance, or set law_energy.project_hessians",
)
MOST_CUTS = 10
"""A substep is halved so often before the solve counts as diverged."""


def _loops(kernel: Kernel, project_hessians: bool, numerical_damping: float) -> tuple[OwnLoops, ...]:
    return (loops_of_energy(STENCIL[kernel.value], project_hessians, numerical_damping < 1.0),)


@shared_among_ranks
@stage(label="Law Energy", fragments=_loops)
def law_energy(
    particles: A[ParticleStore, Reads("position", "volume", "stiffness_scale", LAW_STATE)],
    grid: A[GridStore, Reads("mass")],
    energy: A[EnergyStore, Writes("terms")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    project_hessians: bool = False,
    numerical_damping: NumericalDamping = 1.0,
) -> Stage["particles", "grid", "energy"]:
    """Make the energy of every material's law a term of the potential that an implicit update minimises.

    Phi = sum V0 psi(dt grad v); its force is f_i = - sum V0 T grad w_i (R15 section 4, C21 eq. 14).

    Args:
        particles: Particles whose law is to be minimised.
        grid: Grid under them.
        energy: Terms of the potential.
        kernel: B-spline of the weights; the one of rasterize.
        project_hessians: Set negative eigenvalues of every particle's own Hessian to zero: more robust far from rest, for 180 bytes
            a particle (twice that in double precision).
        numerical_damping: That of minimise_energy.
    """
    share = share_of(numerical_damping)
    energy.add("law_energy", LawEnergy(particles, grid, STENCIL[kernel.value], project_hessians, share))


@shared_among_ranks
@reads_of_materials("viscosity")
@stage(label="Viscous Energy")
def viscous_energy(
    particles: A[ParticleStore, Reads("position", "volume", LAW_STATE)],
    energy: A[EnergyStore, Reads("terms"), Writes("terms")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "energy"]:
    """Make the materials' own Newtonian viscosity a term of the potential.

    Phi = sum V0 mu_v J E : E / dt with the Green strain E = sym(A) + A^T A / 2 of the step, A = dt grad v: R15 eq. 10-11 with
    the dt that they lack, and such that turning costs nothing.

    Args:
        particles: Particles whose material may have a viscosity (material_viscosity).
        energy: Terms of the potential; law_energy, before or after, evaluates it in its own pass, with its own weights.
        kernel: B-spline of the weights where there is no law_energy; the one of rasterize.
    """
    energy.add("viscous_energy", ViscousEnergy(particles, energy.grid, STENCIL[kernel.value]))


@costs(18.0)
@shared_among_ranks
@joins_copies
@moves_rigid_bodies()
@stage(label="Minimise Energy", facts=(SOLVED, CHOSEN, CONTACT_FORCES), limits=(UNSOLVED,))
def minimise_energy(
    particles: A[ParticleStore, Reads("position", "volume", "stiffness_scale", LAW_STATE), Writes("velocity_gradient")],
    grid: A[GridStore, Reads("mass", "momentum", "position"), Writes("velocity", "force")],
    colliders: A[ColliderSet, Reads("level_set")],
    energy: A[EnergyStore, Reads("terms")],
    step: StepContext,
    *,
    newton_iterations: A[int, Unitless, Range(min=1, max=200)] = 20,
    tolerance: A[float, Unitless, Range(min=1e-14, max=0.1, log=True)] = 1e-3,
    krylov: Krylov = Krylov.CONJUGATE_GRADIENT,
    krylov_iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
    krylov_tolerance: A[float, Unitless, Range(min=1e-14, max=0.9, log=True)] = 0.1,
    preconditioner: Preconditioner = Preconditioner.BLOCK_JACOBI,
    guards: bool = True,
    numerical_damping: NumericalDamping = 1.0,
) -> Stage["particles", "grid", "colliders"]:
    """Implicit velocity update: minimise m/2 |v - v~|^2 + the energy terms, with contacts as constraints (backward Euler).

    Newton's method with matrix-free Krylov solves and a line search that keeps every particle in its law's domain (R15 section 4;
    Gast 2015). Sticky and slipping bodies hold components of the velocity, separating ones the normal part while it would enter;
    friction follows Coulomb's law with the normal impulse of the iteration before, and adhesion adds to it. Rigid bodies move by
    what their contacts give them: minimisations are repeated until both agree. A substep that does not converge is halved and
    tried again.

    Args:
        particles: Particles of the terms.
        grid: Grid with mass and momentum.
        colliders: Bodies and walls.
        energy: Terms of the potential.
        newton_iterations: Newton steps before the substep is halved.
        tolerance: Length of the last Newton step that counts as none [cells]; at least 32 units of rounding of the float type.
        krylov: Conjugate gradients, or conjugate residuals for energies that bend down.
        krylov_iterations: Iterations of one linear solve at most.
        krylov_tolerance: Residual of the first linear solve over that of no change, in sum |r|^2 / m; later ones are sharper.
        preconditioner: Inverse 3 x 3 blocks, inverse diagonal, masses alone, or none.
        guards: Keep every particle in its law's domain and let no step raise the energy. Off, matter can pop.
        numerical_damping: Advanced: 1 is backward Euler; less of it lets elastic matter bounce and swing on, 0 is the implicit
            midpoint rule, which damps nothing. law_energy and gather take the same: set the preset's parameter.

    Raises:
        SimulationDiverged: Halving the substep ten times does not help.
    """
    if not (grid.count or grid.halo.several):
        return
    settings = MinimisationSettings(
        newton_iterations, tolerance, krylov, krylov_iterations, krylov_tolerance, preconditioner, guards, numerical_damping
    )
    _shorten_until_solved(particles, grid, colliders, energy, step, settings, lambda solve: solve.run())


@shared_among_ranks
@joins_copies
@stage(label="Semi-Implicit Update", facts=(SOLVED, CHOSEN), limits=(UNSOLVED,))
def semi_implicit_update(
    particles: A[ParticleStore, Reads("position", "volume", "stiffness_scale", LAW_STATE), Writes("velocity_gradient")],
    grid: A[GridStore, Reads("mass", "momentum", "position"), Writes("velocity", "force")],
    colliders: A[ColliderSet, Reads("level_set")],
    energy: A[EnergyStore, Reads("terms")],
    step: StepContext,
    *,
    beta: A[float, Unitless, Range(min=0.5, max=1.0)] = 0.5,
    krylov: Krylov = Krylov.CONJUGATE_RESIDUAL,
    krylov_iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
    krylov_tolerance: A[float, Unitless, Range(min=1e-14, max=0.9, log=True)] = 1e-6,
    preconditioner: Preconditioner = Preconditioner.MASS,
) -> Stage["particles", "grid", "colliders"]:
    """Semi-implicit velocity update: one linear solve around the start of the substep (Stomakhin 2013; S14 eq. 22-26).

    v = v~ + dt f / m - beta dt^2 Phi'' v / m. Stable at any dt for beta >= 1/2 while the energy is convex. No guards and no line
    search: cheaper than a minimisation where substeps are short.

    Args:
        particles: Particles of the terms.
        grid: Grid with mass and momentum.
        colliders: Bodies and walls.
        energy: Terms of the potential.
        beta: Share of the new velocities in the elastic force: 1/2 damps least, 1 is linearised backward Euler.
        krylov: Conjugate residuals stand Hessians that are not positive.
        krylov_iterations: Iterations of the linear solve at most; more halve the substep.
        krylov_tolerance: Residual of the linear solve over that of no change.
        preconditioner: Masses alone, inverse diagonal, inverse 3 x 3 blocks, or none.

    Raises:
        SimulationDiverged: Halving the substep ten times does not help.
    """
    if grid.count or grid.halo.several:
        settings = MinimisationSettings(
            krylov=krylov, krylov_iterations=krylov_iterations, krylov_tolerance=krylov_tolerance, preconditioner=preconditioner
        )
        _shorten_until_solved(particles, grid, colliders, energy, step, settings, lambda solve: solve.run_once(beta))


def _shorten_until_solved(
    particles: ParticleStore,
    grid: GridStore,
    colliders: ColliderSet,
    energy: EnergyStore,
    step: StepContext,
    settings: MinimisationSettings,
    run: Callable[[Minimisation], MinimisationOutcome],
) -> None:
    """Run an implicit update, over half the substep wherever it does not converge."""
    shared, rigid = SharedOut(grid), colliders.rigid

    def solved(
        rows: np.ndarray, begin: np.ndarray | None = None, tolerance: float | None = None
    ) -> tuple[Minimisation, MinimisationOutcome]:
        asked = settings if tolerance is None else settings.finer(tolerance)
        solve = Minimisation(energy, rows, step.dt, step.gravity, asked, step.check_cancel)
        solve.begin = begin
        return solve, run(solve)

    for _ in range(MOST_CUTS + 1):
        colliders.move_rigid_bodies(step)
        colliders.pose(step.time, step.time + step.dt)
        rows = shared.contacts(colliders.grid_contacts(grid))
        with shared:
            solve, outcome = solved(rows) if rigid is None else rigid.meet_implicitly(grid, rows, solved)
            if step.contact_forces and outcome.converged:
                tell_forces(step, colliders, grid, solve.contact_impulses())
        _tell(step, outcome)
        if outcome.converged or not settings.guards:
            return
        step.dt *= 0.5
        step.limit = UNSOLVED
        step.tell(CHOSEN, limit=UNSOLVED.name, limit_material="")
    raise diverged(particles, step)


def _tell(step: StepContext, outcome: MinimisationOutcome) -> None:
    """Count one minimisation; of one that is halved only the work counts."""
    done = outcome.converged
    before = next((values["reason"] for group, values in step.report.of_frame(step.frame) if group is SOLVED), "")
    step.tell(
        SOLVED,
        substeps=int(done),
        newton=outcome.newton,
        krylov=outcome.krylov,
        halved=int(not done),
        shortened=outcome.halvings,
        residual=outcome.residual if done else 0.0,
        decrease=outcome.decrease if done else 0.0,
        reason=before if done else outcome.reason,
    )
