"""Fixed corotated solid (C21 section 3.2.1, B18 eq. 9, S14 eq. 5-6) as an incremental energy.

| symbol | meaning | unit |
|---|---|---|
| F | elastic deformation gradient at the start of the step (state) | - |
| A, G | dt grad v, I + A; the trial state is E = G F | - |
| R, S | polar decomposition E = R S | - |
| J | det E = det G det F | - |
| mu, lam | shear modulus, first Lame parameter | Pa |

    psi = mu |E - R|^2 + lam/2 (J - 1)^2
    T   = 2 mu (E - R) F^T + lam (J - 1) det F cof G
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, sqrt
from mpm_nodes.materials.parameters import FixedCorotated as Params
from mpm_nodes.materials.parameters import lame
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, State, Symmetric, Value

STRAIN = "deformation"
STATE = ("deformation",)
COEFFICIENTS = ("mu", "lam", "density")
STIFFNESS = ("mu", "lam")
VISCOSITY = None


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (mu [Pa], lam [Pa], density [kg/m^3])."""
    return (*lame(params.youngs_modulus, params.poisson_ratio), density)


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    mu, lam = coeffs[0], coeffs[1]
    E = mat3.matmul(mat3.add_diagonal(A, const(A[0], 1.0)), state[0])
    D = mat3.subtract(E, rotations.rotation(E))
    w = mat3.det(E) - const(mu, 1.0)
    return mu * mat3.double_dot(D, D) + const(mu, 0.5) * lam * w * w


@inline
def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    mu, lam = coeffs[0], coeffs[1]
    F = state[0]
    G = mat3.add_diagonal(A, const(A[0], 1.0))
    E = mat3.matmul(G, F)
    R = rotations.rotation(E)
    J_n = mat3.det(F)
    k = lam * (mat3.det(G) * J_n - const(J_n, 1.0)) * J_n
    T = mat3.scale(mat3.matmul_nt(mat3.subtract(E, R), F), mu + mu)
    return mat3.add_scaled(T, k, mat3.cofactor(G))


@inline
def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa]."""
    mu, lam = coeffs[0], coeffs[1]
    F = state[0]
    J = mat3.det(F)
    T = mat3.symmetric(mat3.matmul_nt(mat3.subtract(F, rotations.rotation(F)), F))
    return mat3.add_diagonal(mat3.scale(T, mu + mu), lam * (J - const(J, 1.0)) * J)


@inline
def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]."""
    mu, lam = coeffs[0], coeffs[1]
    F = state[0]
    G = mat3.add_diagonal(A, const(A[0], 1.0))
    E, dE = mat3.matmul(G, F), mat3.matmul(dA, F)
    R, S = rotations.polar(E)
    dR = rotations.polar_differential(R, S, dE)
    C, J_n = mat3.cofactor(G), mat3.det(F)
    k = lam * (mat3.det(G) * J_n - const(J_n, 1.0)) * J_n
    dk = lam * J_n * J_n * mat3.double_dot(C, dA)
    dT = mat3.scale(mat3.matmul_nt(mat3.subtract(dE, dR), F), mu + mu)
    return mat3.add_scaled(mat3.add_scaled(dT, dk, C), k, mat3.cofactor_differential(G, dA))


@inline
def left_stretch(state: State) -> Symmetric:
    """Return V of F = V R."""
    F = state[0]
    return mat3.pack(mat3.symmetric(mat3.matmul_nt(F, rotations.rotation(F))))


@inline
def stretched_stress(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa] where F = V: 2 mu (V - I) V + lam (J - 1) J I."""
    mu, lam = coeffs[0], coeffs[1]
    V = state[0]
    J = mat3.det(V)
    one = const(J, 1.0)
    T = mat3.matmul(mat3.add_diagonal(V, const(J, -1.0)), V)
    return mat3.add_diagonal(mat3.scale(T, mu + mu), lam * (J - one) * J)


@inline
def stretched_differential(state: State, dA: Matrix, coeffs: Coefficients) -> Matrix:
    """Return the derivative of T along dA at A = 0 [Pa] where F = V: there R = I turns by w."""
    mu, lam = coeffs[0], coeffs[1]
    V = state[0]
    dV = mat3.matmul(dA, V)
    x, y, z = rotations.spin(V, dV)
    strain = (dV[0], dV[1] + z, dV[2] - y, dV[3] - z, dV[4], dV[5] + x, dV[6] + y, dV[7] - x, dV[8])
    J, trace = mat3.det(V), mat3.trace(dA)
    k = lam * (J - const(J, 1.0)) * J
    dT = mat3.add_scaled(mat3.scale(mat3.matmul(strain, V), mu + mu), const(J, 0.0) - k, mat3.transpose(dA))
    return mat3.add_diagonal(dT, (k + lam * J * J) * trace)


@inline
def advance(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
    """Return the state after the step."""
    return (mat3.advance_deformation(state[0], A),)


@inline
def feasible(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Mask:
    """Return where the step keeps its orientation: det(I + A) > 0, as `advance` takes I + A only there."""
    return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], 0.0)


@inline
def wave_speed(state: State, coeffs: Coefficients) -> Value:
    """Return a bound of the fastest wave [m/s] in current space: sqrt((lam + 2 mu) / rho_0) at rest.

    A stretch s along the wave gives 2 mu s^2 + lam J (2J - 1), from dT at A = 0.
    """
    mu, lam, density = coeffs[0], coeffs[1], coeffs[2]
    J = mat3.det(state[0])
    one = const(J, 1.0)
    # the bound comes second in maximum: NaN passes there, and must
    stretch = maximum(one, mat3.row_sum_bound(mat3.gram(state[0])))
    return sqrt(((mu + mu) * stretch + lam * maximum(one, J * (J + J - one))) / density)


@inline
def left_strain(state: State) -> tuple[Value, Matrix]:
    """Return J = det F and the unimodular b = J^(-2/3) F F^T."""
    return mat3.left_strain(state[0])
