"""Totals of a solver's particles in float64: mass, momentum, angular momentum, energy.

| symbol | meaning | unit |
|---|---|---|
| D | APIC inertia h^2/4 (quadratic) or h^2/3 (cubic) per unit mass (Jiang 2015) | m^2 |
| l_p | a particle's own angular momentum, m D eps : C | kg m^2/s |
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.transfers.weights import INERTIA
from mpm_nodes.materials.contract import law
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.solver.run import SubstepSolver


def column(solver: SubstepSolver, name: str) -> np.ndarray:
    """Return an attribute as float64, in memory order."""
    return solver.particles.unpack(name).astype(float)


def momentum(solver: SubstepSolver) -> np.ndarray:
    """Return sum m v [kg m/s], shape (3,)."""
    return column(solver, "mass") @ column(solver, "velocity")


def momentum_scale(solver: SubstepSolver) -> float:
    """Return sum m |v| [kg m/s]: what rounding of the momentum is measured against."""
    return float(column(solver, "mass") @ np.linalg.norm(column(solver, "velocity"), axis=1))


def angular_momentum(solver: SubstepSolver, kernel: str = "quadratic") -> np.ndarray:
    """Return sum x x m v + l_p about the solve's origin [kg m^2/s], shape (3,)."""
    m, x, v = column(solver, "mass"), column(solver, "position") - solver.particles.origin, column(solver, "velocity")
    c = column(solver, "affine")
    spin = np.stack([c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]], 1)
    return m @ (np.cross(x, v) + INERTIA[kernel] * solver.cell_size**2 * spin)


def centre_of_mass(solver: SubstepSolver) -> np.ndarray:
    """Return sum m x / sum m [m], shape (3,)."""
    m = column(solver, "mass")
    return m @ column(solver, "position") / m.sum()


def kinetic_energy(solver: SubstepSolver, kernel: str = "quadratic") -> float:
    """Return sum m v^2 / 2 + m D C:C / 2 [J]: the energy of the velocities that APIC carries."""
    m, v, c = column(solver, "mass"), column(solver, "velocity"), column(solver, "affine")
    return float(0.5 * m @ ((v**2).sum(1) + INERTIA[kernel] * solver.cell_size**2 * (c**2).sum((1, 2))))


def stored_energy(solver: SubstepSolver) -> float:
    """Return sum V0 psi [J] over all materials."""
    kind, volume = solver.particles.unpack("material"), column(solver, "volume")
    total = 0.0
    for index, each in enumerate(solver.matter.materials):
        mine = kind == index
        if mine.any():
            state = {name: column(solver, name)[mine] for name in law(each.law).state}
            psi = call_law(each.law, "energy", state, params=dict(each.params), density=each.density)
            total += float(volume[mine] @ psi)
    return total


def packed(matrices: np.ndarray) -> np.ndarray:
    """Return the six values xx xy xz yy yz zz of symmetric matrices, shape (n, 6)."""
    return matrices[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def full(values: np.ndarray) -> np.ndarray:
    """Return the symmetric matrices of six values each, shape (n, 3, 3)."""
    return values[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
