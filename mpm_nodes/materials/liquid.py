"""Weakly compressible Newtonian liquid (C21 section 3.2.1, eq. 14-16) as an incremental energy.

| symbol | meaning | unit |
|---|---|---|
| e | J - 1 (state: J itself would lose all digits of a stiff liquid in single precision) | - |
| A | dt grad v | - |
| bulk | bulk modulus | Pa |
| mu_v | viscosity, stress 2 mu_v sym(A) / dt in short steps | Pa s |
| E | Green strain of the step, sym(A) + A^T A / 2 (`newtonian_viscosity`) | - |

    e(A) = e + (1 + e) (det(I + A) - 1)
    psi  = bulk/2 e(A)^2 + mu_v (1 + e) E : E / dt
    T    = bulk e(A) (1 + e) cof(I + A) + 2 mu_v (1 + e) (I + A) E / dt

C21 takes e(A) = e + (1 + e) tr A, which keeps the force affine in the velocity. Explicit steps, which need T at A = 0 alone, and
projected ones, which make tr A what it has to be, advance e so. Minimised ones must not: the pressure would push where the matter
was at the beginning of the step, while the surface pulls where the matter comes to lie, and drops that spin would be slowed down.
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import any_lane, const, maximum, select, sqrt
from mpm_nodes.materials import newtonian_viscosity
from mpm_nodes.materials.parameters import Liquid as Params
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, State, Value

STATE = ("volume_change",)
COEFFICIENTS = ("bulk", "density", "viscosity")
STIFFNESS = ("bulk",)
VISCOSITY = "viscosity"


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (bulk [Pa], density [kg/m^3], mu_v [Pa s])."""
    return params.bulk_modulus, density, params.viscosity


@inline
def _moved(e: Value, A: Matrix) -> Value:
    """Return e(A) = J det(I + A) - 1."""
    return e + (const(e, 1.0) + e) * mat3.det_excess(A)


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    J_n = const(A[0], 1.0) + state[0]
    x = _moved(state[0], A)
    return const(x, 0.5) * coeffs[0] * x * x + newtonian_viscosity.energy(J_n, A, coeffs[2], dt)


@inline
def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]; the viscous part takes its strain rate from A / dt."""
    one = const(A[0], 1.0)
    J_n = one + state[0]
    pressed = mat3.scale(mat3.cofactor(mat3.add_diagonal(A, one)), coeffs[0] * J_n * _moved(state[0], A))
    return mat3.add(newtonian_viscosity.stress(J_n, A, coeffs[2], dt), pressed)


@inline
def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa]: the pressure part alone."""
    e = state[0]
    p = coeffs[0] * e * (const(e, 1.0) + e)
    return mat3.diagonal(p, p, p)


@inline
def viscous_stress(state: State, L: Matrix, coeffs: Coefficients) -> Matrix:
    """Return the viscous Kirchhoff stress [Pa] of the velocity gradient L [1/s]: for explicit steps, where A = 0."""
    e = state[0]
    return newtonian_viscosity.stress_of_flow(const(e, 1.0) + e, L, coeffs[2])


@inline
def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]."""
    one = const(A[0], 1.0)
    J_n = one + state[0]
    step = mat3.add_diagonal(A, one)
    normal = mat3.cofactor(step)
    stiff = mat3.scale(normal, coeffs[0] * J_n * J_n * mat3.double_dot(normal, dA))
    turned = mat3.scale(mat3.cofactor_differential(step, dA), coeffs[0] * J_n * _moved(state[0], A))
    return mat3.add(newtonian_viscosity.stress_differential(J_n, A, dA, coeffs[2], dt), mat3.add(stiff, turned))


@inline
def _smallest_growth(e: Value) -> Value:
    """Below this volume ratio of a step it is left for the guarded one."""
    return const(e, 0.1)


@inline
def _guarded(e: Value, e_new: Value, growth: Value, A: Matrix) -> Value:
    """Return e_new, or J det R(A) - 1 where the volume would grow by less than a tenth."""
    steep = growth <= _smallest_growth(e)
    if any_lane(steep):
        # a violent step may still lose the sign: such a particle keeps J = 1e-3, and one that is NaN stays NaN
        one = const(e, 1.0)
        J = (one + e) * mat3.det(mat3.safe_step(A))
        e_new = select(steep, select(J <= const(e, 0.0), const(e, 1e-3), J) - one, e_new)
    return e_new


@inline
def advance(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
    """Return the state after the step: e + (1 + e) tr A, or J det R(A) - 1 where 1 + tr A <= 0.1."""
    e = state[0]
    one = const(e, 1.0)
    growth = one + mat3.trace(A)
    return (_guarded(e, e + (one + e) * mat3.trace(A), growth, A),)


@inline
def advance_minimised(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
    """Return the state after a step whose energy was minimised: J det(I + A) - 1, or J det R(A) - 1 where det(I + A) <= 0.1."""
    return (_guarded(state[0], _moved(state[0], A), const(A[0], 1.0) + mat3.det_excess(A), A),)


@inline
def feasible(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Mask:
    """Return where the volume update is taken: det(I + A) > 0.1."""
    return const(A[0], 1.0) + mat3.det_excess(A) > _smallest_growth(A[0])


@inline
def wave_speed(state: State, coeffs: Coefficients) -> Value:
    """Return the speed of sound [m/s] in current space: sqrt(bulk / rho_0) at rest, J times that when expanded."""
    e = state[0]
    one = const(e, 1.0)
    return maximum(one, one + e) * sqrt(coeffs[0] / coeffs[1])


@inline
def volume_ratio(state: State) -> Value:
    """Return J."""
    return const(state[0], 1.0) + state[0]
