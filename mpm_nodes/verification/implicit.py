"""Implicit steps: derivatives of the potential, momenta, the limit of small steps, vibration and its damping."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Kernel, Particles, Walls
from mpm_nodes.kernels.node_blocks import BLOCK
from mpm_nodes.kernels.weights import STENCIL
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.solver.minimisation import Minimisation, Settings
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.rasterize import rasterize
from mpm_nodes.solver.terms.law_energy import LawEnergy
from mpm_nodes.verification.contract import Finding, Problem
from mpm_nodes.verification.scenes import changed, cloud, material

GRAVITY = (0.3, -9.81, 0.1)


def deformed_cloud(law_id: str, count: int = 80) -> Particles:
    """Return particles of uneven mass with random velocities and a state of their law that is off rest."""
    params = {"viscosity": 20.0} if law(law_id).viscosity is not None else {}
    start, random = cloud(material(law_id, **params), count, 0.25, 0.1), np.random.default_rng(17)
    state = law(law_id).rest_state(count)
    for values in state.values():
        values += random.uniform(-0.1, 0.1, values.shape)
    return changed(start, stiffness_scale=random.uniform(0.5, 2.0, count), **state)


def prepared(particles: Particles, dt: float, kernel: Kernel = Kernel.QUADRATIC, walls: Walls | None = None,
             settings: Settings | None = None, **options: object) -> Minimisation:
    """Return the minimisation that an implicit substep of `dt` [s] would do, in float64, before its first iteration."""
    solver = SubstepSolver(particles, "implicit_apic", cell_size=0.1, walls=walls, gravity=GRAVITY, dtype=np.float64, **options)
    solver.particles.sort()
    grid = solver.grid
    grid.follow()
    rasterize(solver.particles, grid, kernel=kernel)
    solver.energy.clear()
    solver.energy.terms["law_energy"] = LawEnergy(solver.particles, grid, STENCIL[kernel.value])
    solver.colliders.pose(0.0, dt)
    return Minimisation(solver.energy, solver.colliders.grid_contacts(grid), dt, GRAVITY, settings or Settings())


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


class PotentialDerivatives(Problem):
    """Gradient, Hessian and node blocks of the incremental potential are its derivatives, for every law.

    Scene: 80 particles of uneven mass, 10 % off their rest state, in a cloud of 2.5 cells; random node velocities that strain
        them by some 10 % in a substep; gravity; quadratic and cubic weights, float64.
    Exact: the slope of E(v) = sum m/2 |v - v~|^2 + sum V0 psi(dt grad v) and of its gradient along a random direction, by central
        differences; the 3 x 3 blocks of a node are the Hessian applied to its three unit vectors.
    Tolerance: 1e-6 of the slope for the gradient, 1e-5 of |H d| for the Hessian, as for the laws themselves: differences err by
        1e-8 (step^2) and 1e-10 (rounding over step); 1e-12 of the largest block for the blocks, both being sums of products.
    """

    name = "potential_derivatives"
    source = "R15 section 4 and appendix; Gast 2015"

    def findings(self) -> Iterator[Finding]:
        """Sweep the laws and kernels."""
        for law_id in law_ids():
            for kernel in Kernel:
                problem = prepared(deformed_cloud(law_id), 0.01, kernel)
                label = f"{law_id} {kernel.value}"
                slope, curvature = derivative_errors(problem, random_nodes(problem, 0.5, 1), random_nodes(problem, 0.5, 2))
                yield Finding(0.0, slope, 1e-6, f"gradient {label}")
                yield Finding(0.0, curvature, 1e-5, f"Hessian {label}")
                yield Finding(0.0, block_error(problem), 1e-12, f"blocks {label}")


def derivative_errors(problem: Minimisation, v: np.ndarray, d: np.ndarray, step: float = 1e-4) -> tuple[float, float]:
    """Return the relative errors of gradient and Hessian action along `d` against central differences; leaves E at `v`."""
    energy, gradient = [], []
    for sign in (-1.0, 1.0):
        value, broken = problem.value(v + sign * step * d)
        assert not broken
        energy.append(value)
        gradient.append(problem.gradient.copy())
    problem.value(v)
    slope, product = float(problem.gradient @ d), np.zeros_like(d)
    problem.product(d, product)
    change = (gradient[1] - gradient[0]) / (2 * step)
    return (abs((energy[1] - energy[0]) / (2 * step) - slope) / abs(slope),
            float(np.linalg.norm(change - product) / np.linalg.norm(product)))


def block_error(problem: Minimisation) -> float:
    """Return the largest difference of node blocks from the Hessian's own, over the largest block entry."""
    blocks = problem.energy.blocks()
    blocks[: 64 * BLOCK * problem.count] = 0.0
    for term in problem.energy.terms.values():
        term.add_blocks(problem.dt, blocks)
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
