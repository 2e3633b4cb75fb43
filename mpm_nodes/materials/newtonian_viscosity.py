"""Newtonian viscosity as an energy term of its own, that a material of any law may have (R15 eq. 10-11).

| symbol | meaning | unit |
|---|---|---|
| J | volume ratio at the start of the step | - |
| A, L | dt grad v, grad v | -, 1/s |
| mu_v | viscosity, Cauchy stress 2 mu_v sym(L) | Pa s |
| E | Green strain of the step, sym(A) + A^T A / 2: dt eps for short steps, 0 for every rotation I + A | - |

    psi = mu_v J E : E / dt,   T = 2 mu_v J (I + A) E / dt,   dT = 2 mu_v J (dA E + (I + A) dE) / dt

R15 has eps = sym(L) in the place of E / dt. To first order in dt that is the same, but a turn by w dt, I + A = R, has the strain
rate (cos(w dt) - 1) / dt across its axis there: viscous matter could not turn as its elasticity wants, and lost its spin. R15 also
writes mu^N eps : eps, a power density, without the dt that makes its derivative by A a stress.
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.materials.values import Matrix, Value


@inline
def strain(A: Matrix) -> Matrix:
    """Return E = sym(A) + A^T A / 2, the Green strain of a step."""
    return mat3.add_scaled(mat3.symmetric(A), const(A[0], 0.5), mat3.gram(mat3.transpose(A)))


@inline
def energy(J: Value, A: Matrix, viscosity: Value, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    E = strain(A)
    return viscosity * J * mat3.double_dot(E, E) / dt


@inline
def stress(J: Value, A: Matrix, viscosity: Value, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    E = strain(A)
    return mat3.scale(mat3.add(E, mat3.matmul(A, E)), (viscosity + viscosity) * J / dt)


@inline
def stress_differential(J: Value, A: Matrix, dA: Matrix, viscosity: Value, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]."""
    E, dE = strain(A), mat3.symmetric(mat3.add(dA, mat3.matmul_tn(A, dA)))
    dT = mat3.add(mat3.matmul(dA, E), mat3.add(dE, mat3.matmul(A, dE)))
    return mat3.scale(dT, (viscosity + viscosity) * J / dt)


@inline
def stress_of_flow(J: Value, L: Matrix, viscosity: Value) -> Matrix:
    """Return the Kirchhoff stress [Pa] of the velocity gradient L [1/s]: for explicit steps, where A = 0."""
    return mat3.scale(mat3.symmetric(L), (viscosity + viscosity) * J)
