"""Long implicit steps: a stiff sponge far beyond the explicit limit, and violent impacts with guards on and off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import MpmNodesError, Walls
from mpm_nodes.materials.parameters import lame
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.implicit import implicit
from mpm_nodes.verification.quantities import column, kinetic_energy, stored_energy
from mpm_nodes.verification.scenes import OPEN, SEPARATE, block, changed, material

GRAVITY = 9.81


def total_energy(solver: SubstepSolver) -> float:
    """Return kinetic and stored energy and that of height [J]."""
    return (
        kinetic_energy(solver) + stored_energy(solver) + GRAVITY * float(column(solver, "mass") @ column(solver, "position")[:, 1])
    )


class StiffSponge(VerificationProblem):
    """A stiff sponge in steps of fifty times the explicit limit stays stable, and its energy never grows.

    Scene: a neo-Hookean cube of 4 cells, E = 1e6 Pa, on a floor with friction 0.3, gravity, random particle velocities of 1 m/s,
        so that all modes of the grid swing; 30 steps of 50 times the elastic limit h / (2 c), float64 and float32.
    Exact: backward Euler and friction only take energy.
    Tolerance: a step may raise the total energy by 1e-4 of the initial one: solves end at 1e-3 cells, and a moved particle's strain
        is carried by other nodes than those that it was minimised on.
    """

    name = "stiff_sponge"
    source = "Gast 2015: the line search lets the energy only fall"

    def findings(self) -> Iterator[Finding]:
        """Shake the sponge in either precision."""
        for dtype in (np.float64, np.float32):
            energies, halved = self._energies(dtype)
            rise = max(np.diff(energies).max(), 0.0) / energies[0]
            yield Finding(0.0, rise, 1e-4, f"largest rise of the energy {dtype.__name__}")
            yield Finding(0.0, float(halved), 0.0, f"substeps halved {dtype.__name__}")

    @staticmethod
    def _energies(dtype: type) -> tuple[np.ndarray, int]:
        solver, limit = shaken_sponge(dtype, 1.0, "implicit_apic")
        energies = [total_energy(solver)]
        for _ in range(30):
            solver.step(50 * limit)
            energies.append(total_energy(solver))
        return np.array(energies), solver.step_context.report["implicit"]["halved"]


def shaken_sponge(dtype: type, speed: float, substeps: object) -> tuple[SubstepSolver, float]:
    """Return a stiff cube on a floor with random velocities [m/s], and the explicit limit of its substeps [s]."""
    h, young, poisson = 0.05, 1e6, 0.3
    mu, lam = lame(young, poisson)
    start = block(material("neo_hookean", youngs_modulus=young, poisson_ratio=poisson), (0, 0, 0), (4 * h, 4 * h, 4 * h), h)
    velocity = np.random.default_rng(1).normal(0.0, speed, (len(start), 3)) - [0.0, 1.0, 0.0]
    walls = Walls((-1.0, 0.0, -1.0), (2.0, 2.0, 2.0), (OPEN, OPEN, SEPARATE, OPEN, OPEN, OPEN), 0.3)
    solver = SubstepSolver(changed(start, velocity=velocity), substeps, cell_size=h, walls=walls, dtype=dtype)
    return solver, 0.5 * h / float(np.sqrt((lam + 2 * mu) / 1000.0))


class Popping(VerificationProblem):
    """Guards keep matter from popping in violent motion; without them it pops.

    Scene: the sponge of stiff_sponge with random particle velocities of 30 m/s, in steps of ten times the elastic limit, in which
        they would turn it inside out; 20 steps, float64. At 10 m/s contacts, which follow the surface, bear it without guards too.
    Exact: with the line search and the guard of det(I + A) energy only falls. Without them a step may end where matter is inside
        out: it keeps a trace of its volume, and what it stores then multiplies the energy or ends the solve.
    Tolerance: 1e-4 of the initial energy with guards; at least its double without.
    """

    name = "popping"
    source = "Gast 2015: line search; S14 section 5.3: R(M)"

    def findings(self) -> Iterator[Finding]:
        """Shake it both ways."""
        yield Finding(0.0, max(self._growth(True) - 1.0, 0.0), 1e-4, "growth of the energy with guards")
        yield Finding(1.0, float(self._growth(False) > 2.0), 0.0, "it pops without")

    @staticmethod
    def _growth(guards: bool) -> float:
        """Return the largest energy over the initial one; infinite where the solve gives up."""
        solver, limit = shaken_sponge(np.float64, 30.0, implicit(**{"minimise_energy.guards": guards}))
        first = highest = total_energy(solver)
        for _ in range(20):
            try:
                solver.step(10 * limit)
            except MpmNodesError:
                return np.inf
            highest = max(highest, total_energy(solver))
        return highest / first
