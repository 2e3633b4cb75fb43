"""Implicit steps that damp less than backward Euler: derivatives, momenta, vibration, a bounce, and stiff matter that falls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Kernel, Material, Particles, Walls
from mpm_nodes.materials.library import named_material
from mpm_nodes.solver.minimisation import MinimisationSettings
from mpm_nodes.solver.numerical_damping import share_of
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contact import sliding_acceleration
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.implicit import (
    ImplicitBar,
    ImplicitMomenta,
    block_error,
    deformed_cloud,
    derivative_errors,
    implicit,
    prepared,
    random_nodes,
)
from mpm_nodes.verification.implicit_stability import total_energy
from mpm_nodes.verification.quantities import column, kinetic_energy, momentum
from mpm_nodes.verification.scenes import OPEN, SEPARATE, ball, block, changed, material

LITTLE = 0.1
"""The damping that docs advise for matter that bounces and comes to rest."""


class LittleDampingDerivatives(VerificationProblem):
    """Gradient, Hessian and node blocks are those of the potential with a mean of the velocities too.

    Scene: that of `potential_derivatives`, with a numerical damping of 0.2: theta = 0.6.
    Exact: as there, for E(v) = sum m/2 |v - v~|^2 + sum V0 psi(theta dt grad u) / theta^2, u = theta v + (1 - theta) v^n.
    Tolerance: as there.
    """

    name = "little_damping_derivatives"
    source = "the potential, written out"

    def findings(self) -> Iterator[Finding]:
        """Differentiate for a solid and a fluid."""
        for law_id in ("neo_hookean", "oldroyd_b"):
            problem = prepared(deformed_cloud(law_id), 0.01, Kernel.QUADRATIC, settings=MinimisationSettings(numerical_damping=0.2))
            slope, curvature = derivative_errors(problem, random_nodes(problem, 0.5, 1), random_nodes(problem, 0.5, 2))
            yield Finding(0.0, slope, 1e-6, f"gradient {law_id}")
            yield Finding(0.0, curvature, 1e-5, f"Hessian {law_id}")
            yield Finding(0.0, block_error(problem), 1e-12, f"blocks {law_id}")


class LittleDampingMomenta(VerificationProblem):
    """With less damping an implicit step keeps momentum, and loses theta of what backward Euler loses of its moment.

    Scene: the neo-Hookean ball of `implicit_momenta`, with a numerical damping of 0.1 and 0.
    Exact: sum m v stays; L grows by theta dt sum m_i v_i^(n+1) x v_i^n in each step.
    Tolerance: as there.
    """

    name = "little_damping_momenta"
    source = "theta method, written out"

    def findings(self) -> Iterator[Finding]:
        """Step the balls."""
        for damping in (LITTLE, 0.0):
            momenta, drift, _ = ImplicitMomenta.steps("neo_hookean", damping)
            yield Finding(0.0, momenta, 1e-10, f"momentum, damping {damping:g}")
            yield Finding(0.0, drift, 1e-8, f"drift of angular momentum, damping {damping:g}")


class LittleDampingBar(VerificationProblem):
    """A bar swings in implicit steps as the numerical damping says: by the implicit midpoint rule hardly less each time.

    Scene: the bar of `implicit_bar`, in steps of omega dt = 0.1 and 0.2, with a numerical damping of 0.1 and 0; linear solves to
        1e-8, since by the midpoint rule rounding hides what a coarser one leaves, and a halved step swings otherwise.
    Exact: the oscillator takes the factor (1 +- i (1 - theta) omega dt) / (1 -+ i theta omega dt) a step.
    Tolerance: as there: 0.5 % of the frequency, and 3 % of the decay by backward Euler.
    """

    name = "little_damping_bar"
    source = "textbook (theta method of a harmonic oscillator)"

    def findings(self) -> Iterator[Finding]:
        """Pluck the bar and read frequency and decay off successive amplitudes."""
        exact, _ = ImplicitBar.factor("explicit_apic", 0.01)
        for damping in (LITTLE, 0.0):
            theta = share_of(damping)
            for phase in (0.1, 0.2):
                sharp = {"tolerance": 1e-9, "minimise_energy.krylov_tolerance": 1e-8}
                frequency, decay = ImplicitBar.factor(implicit(numerical_damping=damping, **sharp), phase)
                turned = exact * phase
                z = (1.0 + 1j * (1.0 - theta) * turned) / (1.0 - 1j * theta * turned)
                label = f"at omega dt = {phase:g}, damping {damping:g}"
                yield Finding.relative(np.angle(z) / phase, frequency, 0.005, f"frequency {label}, of pi c / L")
                yield Finding(-np.log(np.abs(z)), decay, 0.03 * 0.5 * np.log1p(turned**2), f"decay per step {label}")


class LittleDampingBounce(VerificationProblem):
    """A rubber ball bounces in implicit steps of 10 ms, and comes to rest under gravity.

    Scene: a neo-Hookean ball of radius 6 cells, E = 1e5 Pa, hits a floor at 1 m/s, a tenth of its speed of sound, without gravity,
        float64, with a numerical damping of 0.1. A cube of 6 cells falls on the floor from a quarter of a cell under gravity.
    Exact: a ball of rubber that swings little after the bounce keeps almost all of the energy of its middle.
    Tolerance: a fifth of it (backward Euler loses half); after 3 s no more than 0.005 of the energy of the fall is kinetic.
    """

    name = "little_damping_bounce"
    source = "chosen here"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it bounce, and let another rest."""
        yield Finding(1.0, self._kept(LITTLE), 0.2, "energy of the middle after the bounce, over that before")
        yield Finding(0.0, self._unrest(LITTLE), 0.005, "kinetic energy at rest, of that of the fall")

    @staticmethod
    def _kept(damping: float) -> float:
        h, radius = 0.05, 0.3
        start = ball(material("neo_hookean", youngs_modulus=1e5, poisson_ratio=0.3), (0.0, radius + 1.5 * h, 0.0), radius, h)
        start = changed(start, velocity=np.tile([0.0, -1.0, 0.0], (len(start), 1)))
        solver = _on_a_floor(start, h, damping, 0.0, (0.0, 0.0, 0.0))
        mass = float(column(solver, "mass").sum())
        for _ in range(100):
            solver.step(0.01)
            speed = float(momentum(solver)[1]) / mass
            if speed > 0.0 and column(solver, "position")[:, 1].min() > 1.5 * h:
                return speed**2
        return 0.0

    @staticmethod
    def _unrest(damping: float) -> float:
        h = 0.05
        start = block(material("neo_hookean", youngs_modulus=1e5, poisson_ratio=0.3), (0, 0.25 * h, 0), (6 * h, 6.25 * h, 6 * h), h)
        solver = _on_a_floor(start, h, damping, 0.3, (0.0, -9.81, 0.0))
        for _ in range(300):
            solver.step(0.01)
        return kinetic_energy(solver) / (9.81 * 0.25 * h * float(column(solver, "mass").sum()))


class LittleDampingFall(VerificationProblem):
    """Stiff and viscoelastic matter that falls hard gains no energy in long implicit steps, whatever the numerical damping.

    Scene: cubes of 6 cells of rubber of E = 1e7 Pa and of the viscoelastic sponge of the library hit a floor with friction 0.3 at
        3 m/s in steps of 10 ms, fifty times what explicit ones bear; float64, numerical damping 0.1 and 0; 30 steps.
    Exact: elasticity, friction and relaxation only take energy.
    Tolerance: 1e-4 of the energy of the fall above it, as in `stiff_sponge`; no substep is halved. While contacts hold, single
        steps raise the energy: their impulses go by the velocities of the end, and the work by the mean.
    """

    name = "little_damping_fall"
    source = "Coulomb; theta method"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let the cubes fall."""
        stiff = material("neo_hookean", youngs_modulus=1e7, poisson_ratio=0.3)
        for label, matter in (("rubber", stiff), ("sponge", named_material("sponge_shoot"))):
            for damping in (LITTLE, 0.0):
                most, halved = self._fall(matter, damping)
                yield Finding(0.0, max(most - 1.0, 0.0), 1e-4, f"{label}, damping {damping:g}: energy above that of the fall")
                yield Finding(0.0, float(halved), 0.0, f"{label}, damping {damping:g}: substeps halved")

    @staticmethod
    def _fall(matter: Material, damping: float) -> tuple[float, int]:
        """Return the largest energy over the first, and how many substeps were halved."""
        h = 0.05
        start = block(matter, (0, 0, 0), (6 * h, 6 * h, 6 * h), h)
        start = changed(start, velocity=np.tile([0.0, -3.0, 0.0], (len(start), 1)))
        solver = _on_a_floor(start, h, damping, 0.3, (0.0, -9.81, 0.0))
        energies = [total_energy(solver)]
        for _ in range(30):
            solver.step(0.01)
            energies.append(total_energy(solver))
        return max(energies) / energies[0], solver.step_context.report["implicit"]["halved"]


class LittleDampingRamp(VerificationProblem):
    """With little damping a block on a ramp slides against Coulomb friction, or stays where friction holds it.

    Scene: that of `implicit_block_on_ramp` on a plane, with a numerical damping of 0.1 and 0.
    Exact: as there.
    Tolerance: as there.
    """

    name = "little_damping_ramp"
    source = "Coulomb"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let the blocks slide."""
        slope, g = np.radians(30.0), 9.81
        for damping in (LITTLE, 0.0):
            for friction in (0.3, 0.7):
                exact = max(0.0, g * (np.sin(slope) - friction * np.cos(slope)))
                measured = sliding_acceleration("plane", friction, slope, g, substeps=implicit(numerical_damping=damping))
                label = f"damping {damping:g}, friction {friction:g} [m/s^2]"
                yield Finding(exact, measured, 0.03 * (exact or g * np.sin(slope)), label)


def _on_a_floor(start: Particles, h: float, damping: float, friction: float, gravity: tuple[float, float, float]) -> SubstepSolver:
    """Return the solve of matter on a floor that separates."""
    walls = Walls((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), (OPEN, OPEN, SEPARATE, OPEN, OPEN, OPEN), friction)
    return SubstepSolver(start, implicit(numerical_damping=damping), cell_size=h, walls=walls, gravity=gravity, dtype=np.float64)
