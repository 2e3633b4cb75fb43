"""Implicit steps: derivatives of the potential, momenta, the limit of small steps, vibration and its damping."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Kernel, Particles, Walls
from mpm_nodes.kernels.transfers.node_blocks import BLOCK
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.parameters import lame
from mpm_nodes.solver.minimisation import Minimisation, MinimisationSettings
from mpm_nodes.solver.numerical_damping import share_of
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.rasterize import rasterize
from mpm_nodes.solver.terms.law_energy import LawEnergy
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import angular_momentum, column, momentum, momentum_scale
from mpm_nodes.verification.scenes import SLIP, STICKY, ball, block, changed, cloud, material, walled

GRAVITY = (0.3, -9.81, 0.1)


def deformed_cloud(law_id: str, count: int = 80) -> Particles:
    """Return particles of uneven mass with random velocities and a state of their law that is off rest."""
    params = {"viscosity": 20.0} if law(law_id).viscosity is not None else {}
    start, random = cloud(material(law_id, **params), count, 0.25, 0.1), np.random.default_rng(17)
    state = law(law_id).rest_state(count)
    for values in state.values():
        values += random.uniform(-0.1, 0.1, values.shape)
    return changed(start, stiffness_scale=random.uniform(0.5, 2.0, count), **state)


def prepared(
    particles: Particles,
    dt: float,
    kernel: Kernel = Kernel.QUADRATIC,
    walls: Walls | None = None,
    settings: MinimisationSettings | None = None,
    **options: object,
) -> Minimisation:
    """Return the minimisation that an implicit substep of `dt` [s] would do, in float64, before its first iteration."""
    solver = SubstepSolver(particles, "implicit_apic", cell_size=0.1, walls=walls, gravity=GRAVITY, dtype=np.float64, **options)
    solver.particles.sort()
    grid = solver.grid
    grid.follow()
    rasterize(solver.particles, grid, kernel=kernel)
    solver.energy.begin_substep()
    settings = settings or MinimisationSettings()
    share = share_of(settings.numerical_damping)
    solver.energy.add("law_energy", LawEnergy(solver.particles, grid, STENCIL[kernel.value], share=share))
    solver.colliders.pose(0.0, dt)
    return Minimisation(solver.energy, solver.colliders.grid_contacts(grid), dt, GRAVITY, settings)


def heavy(problem: Minimisation) -> np.ndarray:
    """Return the indices of nodes that count: those with mass."""
    mass = problem.momentum[: 256 * problem.count].reshape(-1, 4)[:, 3]
    return np.flatnonzero(mass > problem.grid.least_mass)


def random_nodes(problem: Minimisation, size: float, seed: int) -> np.ndarray:
    """Return a grid vector of normal components of `size` on the nodes that count."""
    result = np.zeros_like(problem.velocity)
    nodes = result[: 256 * problem.count].reshape(-1, 4)
    chosen = heavy(problem)
    nodes[chosen, :3] = size * np.random.default_rng(seed).normal(size=(len(chosen), 3))
    return result


class PotentialDerivatives(VerificationProblem):
    """Gradient, Hessian and node blocks of the incremental potential are its derivatives, for a solid and a fluid law.

    Scene: 80 particles of uneven mass, 10 % off their rest state, in a cloud of 2.5 cells; random node velocities that strain
        them by some 10 % in a substep; gravity; quadratic weights, float64.
    Exact: the slope of E(v) = sum m/2 |v - v~|^2 + sum V0 psi(dt grad v) and of its gradient along a random direction, by central
        differences; the 3 x 3 blocks of a node are the Hessian applied to its three unit vectors.
    Tolerance: 1e-6 of the slope for the gradient, 1e-5 of |H d| for the Hessian, as for the laws themselves: differences err by
        1e-8 (step^2) and 1e-10 (rounding over step); 1e-12 of the largest block for the blocks, both being sums of products.
    """

    name = "potential_derivatives"
    source = "R15 section 4 and appendix; Gast 2015"
    kernel = Kernel.QUADRATIC
    laws: tuple[str, ...] = ("neo_hookean", "oldroyd_b")

    def findings(self) -> Iterator[Finding]:
        """Sweep the laws."""
        for law_id in self.laws or law_ids():
            problem = prepared(deformed_cloud(law_id), 0.01, self.kernel)
            slope, curvature = derivative_errors(problem, random_nodes(problem, 0.5, 1), random_nodes(problem, 0.5, 2))
            yield Finding(0.0, slope, 1e-6, f"gradient {law_id} {self.kernel.value}")
            yield Finding(0.0, curvature, 1e-5, f"Hessian {law_id} {self.kernel.value}")
            yield Finding(0.0, block_error(problem), 1e-12, f"blocks {law_id} {self.kernel.value}")


class PotentialDerivativesOfEveryLaw(PotentialDerivatives):
    """Gradient, Hessian and node blocks of the incremental potential are its derivatives, for every law.

    Scene: as `potential_derivatives`.
    Exact: as there.
    Tolerance: as there.
    """

    name = "potential_derivatives_of_every_law"
    slow = True  # it compiles the loops of every law
    laws = ()


class CubicPotentialDerivatives(PotentialDerivativesOfEveryLaw):
    """Gradient, Hessian and node blocks of the incremental potential are its derivatives with cubic weights too.

    Scene: as `potential_derivatives`, with cubic weights.
    Exact: as there.
    Tolerance: as there.
    """

    name = "cubic_potential_derivatives"
    kernel = Kernel.CUBIC


def derivative_errors(problem: Minimisation, v: np.ndarray, d: np.ndarray, step: float = 1e-4) -> tuple[float, float]:
    """Return the relative errors of gradient and Hessian action along `d` against central differences; leaves E at `v`."""
    energy, gradient = [], []
    for sign in (-1.0, 1.0):
        value, broken = problem.value(v + sign * step * d)
        assert not broken
        energy.append(value)
        gradient.append(problem.gradient.copy())
    problem.value(v)
    problem.energy.linearise(problem.term_dt)
    slope, product = float(problem.gradient @ d), np.zeros_like(d)
    problem.product(d, product)
    change = (gradient[1] - gradient[0]) / (2 * step)
    return (
        abs((energy[1] - energy[0]) / (2 * step) - slope) / abs(slope),
        float(np.linalg.norm(change - product) / np.linalg.norm(product)),
    )


def block_error(problem: Minimisation) -> float:
    """Return the largest difference of node blocks from the Hessian's own, over the largest block entry."""
    blocks = problem.energy.blocks()
    blocks[: 64 * BLOCK * problem.count] = 0.0
    for term in problem.energy.terms.values():
        term.add_blocks(problem.term_dt, blocks)
    mass, worst, largest = problem.momentum.reshape(-1)[3::4], 0.0, 0.0
    unit, result = np.zeros_like(problem.velocity), np.zeros_like(problem.velocity)
    for node in heavy(problem):
        own = np.empty((3, 3))
        for axis in range(3):
            unit[4 * node + axis] = 1.0
            problem.product(unit, result)
            unit[4 * node + axis] = 0.0
            own[:, axis] = result[4 * node : 4 * node + 3]
        xx, xy, xz, yy, yz, zz = blocks[BLOCK * node : BLOCK * node + BLOCK]
        block = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + mass[node] * np.eye(3)
        worst, largest = max(worst, np.abs(own - block).max()), max(largest, np.abs(block).max())
    return worst / largest


SHARP = {"tolerance": 1e-11, "minimise_energy.krylov_tolerance": 1e-10}
"""Settings that solve a substep to rounding."""


def implicit(**parameters: object) -> dict[str, object]:
    """Return the implicit preset with some of its parameters set."""
    return {"preset": "implicit_apic", "set": parameters}


class ImplicitMomenta(VerificationProblem):
    """An implicit step keeps momentum, and loses angular momentum by the formula of backward Euler.

    Scene: a spinning ball of radius 3 cells that flies and stretches by a few percent, no gravity, five steps of ten times the
        elastic limit, solved to 1e-13 cells, float64; every law that is invariant to rotations, and a liquid without viscosity.
    Exact: sum m v stays. Stresses act at the end of the step while the grid's momenta are at its beginning: L grows by dt sum m_i
        v_i^(n+1) x v_i^n in each.
    Tolerance: momentum 1e-10 of sum m |v|; 1e-8 of the drift itself.
    """

    name = "implicit_momenta"
    source = "backward Euler, written out; C21 section 4.3 claims that it stays"

    def findings(self) -> Iterator[Finding]:
        """Step the balls."""
        for law_id in ("neo_hookean", "fixed_corotated", "liquid"):
            momenta, drift, size = self.steps(law_id)
            yield Finding(0.0, momenta, 1e-10, f"momentum {law_id}")
            yield Finding(0.0, drift, 1e-8, f"drift of angular momentum {law_id}")
            yield Finding(1.0, float(size > 1e-4), 0.0, f"there is a drift {law_id}")

    @staticmethod
    def steps(law_id: str, damping: float = 1.0) -> tuple[float, float, float]:
        """Return the errors of momentum and of the drift of its moment L (over itself), and drift over L."""
        h, omega = 0.1, np.array([6.0, 9.0, -4.0])
        stiff = {"bulk_modulus": 1e6} if law_id == "liquid" else {"youngs_modulus": 1e6}
        start = ball(
            material(law_id, **stiff), (0.0, 0.0, 0.0), 3 * h, h, velocity=(1.0, -0.5, 0.25), angular_velocity=tuple(omega)
        )
        spin = np.cross(np.eye(3), omega)
        start = changed(start, affine=np.broadcast_to(spin, (len(start), 3, 3)))
        substeps = implicit(**SHARP, numerical_damping=damping)
        solver = SubstepSolver(start, substeps, cell_size=h, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
        dt = 10 * 0.5 * h / next(iter(solver.particles.law_limits()))[3]
        scale, worst, worst_turn, most = momentum_scale(solver), 0.0, 0.0, 0.0
        for _ in range(5):
            p, turn = momentum(solver), angular_momentum(solver)
            solver.step(dt)
            expected = share_of(damping) * dt * grid_drift(solver)
            found, size = angular_momentum(solver) - turn, np.abs(expected).max()
            worst = max(worst, np.abs(momentum(solver) - p).max() / scale)
            worst_turn = max(worst_turn, np.abs(found - expected).max() / size)
            most = max(most, size / np.abs(turn).max())
        return worst, worst_turn, most


def grid_drift(solver: SubstepSolver) -> np.ndarray:
    """Return sum m_i v_i^(n+1) x v_i^n of the last step [kg m^2/s^2]."""
    mass, before, after = (solver.grid.unpack(name) for name in ("mass", "momentum", "velocity"))
    return np.cross(after, before)[mass > solver.grid.least_mass].sum(axis=0)


class ImplicitLimit(VerificationProblem):
    """Implicit and explicit steps tend to the same motion, their difference in proportion to dt.

    Scene: a spinning neo-Hookean ball of radius 2 cells for 0.02 s in explicit and in implicit steps of dt, dt/2 and dt/4, dt a
        quarter of the elastic limit, float64.
    Exact: both are of first order: the difference of their velocities halves with dt.
    Tolerance: 10 % of the ratio 2 from the terms of second order.
    """

    name = "implicit_limit"
    source = "order of the methods"

    def findings(self) -> Iterator[Finding]:
        """Compare at three lengths of the step."""
        differences = [np.abs(self._end("explicit_apic", n) - self._end(implicit(**SHARP), n)).max() for n in (10, 20, 40)]
        for k in range(2):
            yield Finding.relative(2.0, differences[k] / differences[k + 1], 0.1, f"ratio of differences, halving {k + 1}")

    @staticmethod
    def _end(substeps: object, steps: int) -> np.ndarray:
        h, omega = 0.1, np.array([6.0, 9.0, -4.0])
        matter = material("neo_hookean", youngs_modulus=1e5)
        start = ball(matter, (0.0, 0.0, 0.0), 2 * h, h, angular_velocity=tuple(omega))
        start = changed(start, affine=np.broadcast_to(np.cross(np.eye(3), omega), (len(start), 3, 3)))
        solver = SubstepSolver(start, substeps, cell_size=h, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
        for _ in range(steps):
            solver.step(0.02 / steps)
        return solver.snapshot(["velocity"])["velocity"]


class ImplicitBar(VerificationProblem):
    """A bar swings in implicit steps with its own frequency, damped as backward Euler damps an oscillator.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells between sticky walls on node planes, float64, in steps of omega
        dt = 0.05, 0.1 and 0.2 (2 to 6 times the elastic limit), omega the angular frequency that explicit steps show.
    Exact: the oscillator v' = -omega^2 x takes the factor 1 / (1 -+ i omega dt) a step: its phase is atan(omega dt) and its
        amplitude falls by 1 / sqrt(1 + omega^2 dt^2).
    Tolerance: 3 % of pi c / L for the explicit frequency (the lumped nodes are 2.1 % slow), 0.5 % of the closed form with that
        frequency for the implicit one; 3 % of the decay, of which APIC takes up to 2 % where steps are small.
    """

    name = "implicit_bar"
    source = "textbook (backward Euler of a harmonic oscillator)"

    def findings(self) -> Iterator[Finding]:
        """Pluck the bar and read frequency and decay off successive amplitudes."""
        exact, _ = self.factor("explicit_apic", 0.01)
        yield Finding.relative(1.0, exact, 0.03, "explicit: frequency, of pi c / L")
        for phase in (0.05, 0.1, 0.2):
            frequency, decay = self.factor(implicit(tolerance=1e-9), phase)
            turned = exact * phase  # omega dt with the frequency that the lattice has
            yield Finding.relative(np.arctan(turned) / phase, frequency, 0.005, f"frequency at omega dt = {phase:g}, of pi c / L")
            yield Finding.relative(0.5 * np.log1p(turned**2), decay, 0.03, f"decay per step at omega dt = {phase:g}")

    @staticmethod
    def factor(substeps: object, phase: float, cells: int = 32) -> tuple[float, float]:
        """Return angular frequency, in pi c / L, and decay -ln |z| per step of the first mode."""
        length, young, poisson, density = 1.0, 1e5, 0.3, 1000.0
        h, (mu, lam) = length / cells, lame(young, poisson)
        c = np.sqrt((lam + 2 * mu) / density)
        start = block(material("neo_hookean", density, youngs_modulus=young, poisson_ratio=poisson), (0, 0, 0), (length, h, h), h)
        shape = np.sin(np.pi * start["position"][:, 0] / length)
        velocity = np.outer(1e-3 * c * shape, [1.0, 0.0, 0.0])
        walls = walled((0, 0, 0), (length, h, h), STICKY, STICKY, SLIP, SLIP, SLIP, SLIP)
        solver = SubstepSolver(
            changed(start, velocity=velocity), substeps, cell_size=h, walls=walls, gravity=(0, 0, 0), dtype=np.float64
        )
        dt = phase / (np.pi * c / length)
        amplitude = []
        for _ in range(int(2.2 * np.pi / phase)):
            solver.step(dt)
            amplitude.append(shape[solver.particles.unpack("id")] @ column(solver, "velocity")[:, 0])
        a = np.array(amplitude)
        # a_(n+1) = 2 r cos(phi) a_n - r^2 a_(n-1) for a damped oscillation r^n cos(n phi)
        (two_r_cos, minus_r2), *_ = np.linalg.lstsq(np.stack([a[1:-1], a[:-2]], 1), a[2:], rcond=None)
        r = np.sqrt(-minus_r2)
        return float(np.arccos(two_r_cos / (2 * r)) / phase), float(-np.log(r))
