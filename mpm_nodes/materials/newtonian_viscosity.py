"""Newtonian viscosity as an energy term of its own, that a material of any law may have (R15 eq. 10-11).

| symbol | meaning | unit |
|---|---|---|
| J | volume ratio at the start of the step | - |
| A, L | dt grad v, grad v | -, 1/s |
| mu_v | viscosity, Cauchy stress 2 mu_v eps | Pa s |
| eps | sym(A) / dt | 1/s |

    psi = dt mu_v J eps : eps,   T = 2 mu_v J eps,   dT = 2 mu_v J sym(dA) / dt

R15 writes mu^N eps : eps, a power density, without the dt that makes its derivative by A a stress.
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.materials.values import Matrix, Value


@inline
def energy(J: Value, A: Matrix, viscosity: Value, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    D = mat3.symmetric(A)
    return viscosity * J * mat3.double_dot(D, D) / dt


@inline
def stress(J: Value, A: Matrix, viscosity: Value, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    return mat3.scale(mat3.symmetric(A), (viscosity + viscosity) * J / dt)


@inline
def stress_differential(J: Value, A: Matrix, dA: Matrix, viscosity: Value, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]: the same for every A."""
    return mat3.scale(mat3.symmetric(dA), (viscosity + viscosity) * J / dt)


@inline
def stress_of_flow(J: Value, L: Matrix, viscosity: Value) -> Matrix:
    """Return the Kirchhoff stress [Pa] of the velocity gradient L [1/s]: for explicit steps, where A = 0."""
    return mat3.scale(mat3.symmetric(L), (viscosity + viscosity) * J)
