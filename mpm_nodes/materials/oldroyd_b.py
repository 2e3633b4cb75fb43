"""Volume-preserving Oldroyd-B: viscoelastic fluids, foams and sponges (R15 sections 3.3 and 4, appendix) as an incremental energy.

| symbol | meaning | unit |
|---|---|---|
| e | J - 1, J the determinant of the whole deformation: relaxation keeps volume (state) | - |
| E | B - I, B the Oldroyd strain, of which only the shape counts: b = J^(2/3) det(B)^(-1/3) B (state) | - |
| A, G, Y | dt grad v, I + A, G^-T | - |
| mu, lam | shear modulus, first Lame parameter | Pa |
| t_r, theta | relaxation time, 1 - exp(-dt / t_r) | s, - |
| S, K | B after the step, S^-1 | - |
| H | dS = dA H^T + H dA^T | - |
| x | 1 with `exact_convection`, else 0 | - |

    S   = (1 - theta) B + theta I + A B + B A^T,  H = B                       (x = 0, R15 eq. 14: linear in A)
    S   = (1 - theta) G B G^T + theta I,          H = (1 - theta) G B         (x = 1: positive definite for any A)
    psi = mu/2 (m tr S - 3) - mu ln J + lam/2 (J - 1)^2,   m = J^(2/3) det(S)^(-1/3)
    T   = mu (m H - Y) - mu m (tr S / 3) (K H - Y) + lam (J - 1) J Y

The linear form turns a strain on a chord and knows nothing of what the chord adds: a body that spins flattens, by 7 % in 2000 steps
of 10 mrad. So the exact one is the default.

R15 writes Wi for t_r, and dt / t_r for theta, which overshoots where dt > t_r. Everything is computed from differences to the unit
(X = S - I, N = H - I, W = I - Y = Y A^T): strains of small steps keep their digits in single precision. Explicit steps take the
Kirchhoff stress of the state itself, T at A = 0 and dt = 0, so that what relaxes in a step relaxes once, in `advance`.

Fast stretching at W > 1/2 pulls B out without bound. Its determinant comes from the pivots of L D L^T, whose error is that of the
smallest eigenvalue alone, and `advance` keeps that above 1e-5 of the trace: single precision knows no smaller one.
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import any_lane, both, const, maximum, negate, select, sqrt
from mpm_nodes.kernels.transfers.differences import cube_root_of_one_plus, exp_less_one, log_of_one_plus
from mpm_nodes.materials.parameters import OldroydB as Params

STATE = ("volume_change", "elastic_strain")
COEFFICIENTS = ("mu", "lam", "density", "t_r", "x")
STIFFNESS = ("mu", "lam")
VISCOSITY = None


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (mu [Pa], lam [Pa], density [kg/m^3], t_r [s], 1 where the convection is exact)."""
    return params.shear_modulus, params.lame_parameter, density, params.relaxation_time, float(params.exact_convection)


# ---------------------------------------------------------------- the strain after the step
@inline
def _relaxed(coeffs, dt):
    """Return theta."""
    o = const(dt, 0.0)
    return o - exp_less_one(o - dt / coeffs[3])


@inline
def _strain_after(E, A, theta, x):
    """Return X and N."""
    U = mat3.add(A, mat3.matmul(A, E))
    one = const(theta, 1.0)
    kept = one - x * theta
    # U + U^T, and U A^T for the exact convection
    M = mat3.add_scaled(U, const(theta, 0.5) * x, mat3.matmul_nt(U, A))
    X = mat3.add_scaled(mat3.add_scaled(E, kept, mat3.add(M, mat3.transpose(M))), const(theta, 0.0) - theta, E)
    N = mat3.add_scaled(
        E, x, mat3.add_diagonal(mat3.add_scaled(mat3.scale(U, kept), const(theta, 0.0) - theta, E), const(theta, 0.0) - theta)
    )
    return X, N


@inline
def _volume_after(e, A):
    """Return J - 1 after the step."""
    d = mat3.det_excess(A)
    return e + d + e * d


@inline
def _pivots(X, floor):
    """Return the pivots of L D L^T = (1 - floor) I + X: all are positive where that is positive definite."""
    one, tiny = const(floor, 1.0) - floor, const(floor, 1e-12)
    a = one + X[0]
    p = const(floor, 1.0) / maximum(tiny, a)
    b = one + X[4] - X[1] * X[1] * p
    q = X[5] - X[1] * X[2] * p
    return a, b, one + X[8] - X[2] * X[2] * p - q * q / maximum(tiny, b)


@inline
def _is_definite(X, floor):
    """Return where (1 - floor) I + X is positive definite."""
    a, b, c = _pivots(X, floor)
    o = const(floor, 0.0)
    return both(both(a > o, b > o), c > o)


@inline
def _det_excess(X):
    """Return det(I + X) - 1, by the pivots where that is definite and X is not small."""
    d, o = mat3.det_excess(X), const(X[0], 0.0)
    far = mat3.row_sum_bound(X) > const(d, 0.1)
    if any_lane(far):
        a, b, c = _pivots(X, o)
        definite = both(both(a > o, b > o), c > o)
        d = select(both(far, definite), a * b * c - const(d, 1.0), d)
    return d


@inline
def _scale_excess(e, X):
    """Return m - 1 for J = 1 + e and S = I + X."""
    one, d = const(e, 1.0), _det_excess(X)
    c, s = cube_root_of_one_plus(e), cube_root_of_one_plus(d)
    return (e * (c + one) / (c * c + c + one) - d / (s * s + s + one)) / s


@inline
def _inverse_transposed(X, d):
    """Return (I + X)^-T for det(I + X) = 1 + d, which is kept away from zero where X is infeasible."""
    one = const(d, 1.0)
    return mat3.scale(mat3.cofactor(mat3.add_diagonal(X, one)), one / maximum(const(d, 1e-12), one + d))


@inline
def _shape_excess(E):
    """Return det(B)^(-1/3) B - I."""
    d = _det_excess(E)
    c, one = cube_root_of_one_plus(d), const(d, 1.0)
    return mat3.add_diagonal(mat3.scale(E, one / c), (const(d, 0.0) - d) / (c * (c * c + c + one)))


# ---------------------------------------------------------------- the energy and its derivatives
@inline
def energy(state, A, coeffs, dt):
    """Return psi [J/m^3]."""
    X, _ = _strain_after(mat3.unpack(state[1]), A, _relaxed(coeffs, dt), coeffs[4])
    e = _volume_after(state[0], A)
    m = _scale_excess(e, X)
    half, one, three = const(e, 0.5), const(e, 1.0), const(e, 3.0)
    t = mat3.trace(X)
    return half * coeffs[0] * ((one + m) * t + three * m) - coeffs[0] * log_of_one_plus(e) + half * coeffs[1] * e * e


@inline
def _parts(state, A, coeffs, dt):
    """Return e, m - 1, tr S / 3, H, N, K, Y, W and K H - Y."""
    one = const(A[0], 1.0)
    X, N = _strain_after(mat3.unpack(state[1]), A, _relaxed(coeffs, dt), coeffs[4])
    e = _volume_after(state[0], A)
    K = _inverse_transposed(X, _det_excess(X))
    Y = _inverse_transposed(A, mat3.det_excess(A))
    W = mat3.matmul_nt(Y, A)
    third = one + mat3.trace(X) * const(one, 1.0 / 3.0)
    V = mat3.subtract(W, mat3.matmul(K, mat3.subtract(X, N)))
    return e, _scale_excess(e, X), third, mat3.add_diagonal(N, one), N, K, Y, W, V


@inline
def stress(state, A, coeffs, dt):
    """Return T = dpsi/dA [Pa]."""
    e, m, third, H, N, _, Y, W, V = _parts(state, A, coeffs, dt)
    mu, one = coeffs[0], const(e, 1.0)
    shape = mat3.add_scaled(mat3.add_scaled(mat3.add(N, W), m, H), const(e, 0.0) - (one + m) * third, V)
    return mat3.add_scaled(mat3.scale(shape, mu), coeffs[1] * e * (one + e), Y)


@inline
def kirchhoff(state, coeffs):
    """Return T at A = 0 and dt = 0 [Pa]: mu (b - I) + lam (J - 1) J I."""
    e, E = state[0], mat3.unpack(state[1])
    one = const(e, 1.0)
    c = cube_root_of_one_plus(e)
    q = e * (c + one) / (c * c + c + one)  # J^(2/3) - 1
    mu = coeffs[0]
    return mat3.add_diagonal(mat3.scale(_shape_excess(E), mu * (one + q)), mu * q + coeffs[1] * e * (one + e))


@inline
def stress_differential(state, A, dA, coeffs, dt):
    """Return the derivative of T along dA [Pa]."""
    e, m, third, H, _, K, Y, _, V = _parts(state, A, coeffs, dt)
    mu, lam, one, o = coeffs[0], coeffs[1], const(e, 1.0), const(e, 0.0)
    M, J = one + m, one + e
    dH = mat3.scale(mat3.add(dA, mat3.matmul(dA, mat3.unpack(state[1]))), coeffs[4] * (one - _relaxed(coeffs, dt)))
    R = mat3.matmul_nt(dA, H)
    dY = mat3.scale(mat3.matmul(Y, mat3.matmul_tn(dA, Y)), const(e, -1.0))
    dM = const(e, -2.0 / 3.0) * M * mat3.double_dot(V, dA)
    d_third = const(e, 2.0 / 3.0) * mat3.double_dot(H, dA)
    # K H - Y changes by K (dH - dS K H) - dY, and K H is V + Y
    turned = mat3.subtract(dH, mat3.matmul(mat3.add(R, mat3.transpose(R)), mat3.add(V, Y)))
    dV = mat3.subtract(mat3.matmul(K, turned), dY)
    shape = mat3.add_scaled(mat3.subtract(mat3.add_scaled(mat3.scale(dH, M), dM, H), dY), o - (dM * third + M * d_third), V)
    shape = mat3.add_scaled(shape, o - M * third, dV)
    slope = lam * (J + e) * J * mat3.double_dot(Y, dA)
    return mat3.add_scaled(mat3.add_scaled(mat3.scale(shape, mu), slope, Y), lam * e * J, dY)


# ---------------------------------------------------------------- the step
@inline
def advance(state, A, coeffs, dt):
    """Return the state after the step: J det G - 1 and S - I where that is feasible.

    A step that would turn matter inside out is the guarded one of `mat3.safe_step`; where the linear S is not positive definite, it
    is that of the exact convection; where an eigenvalue is lost in rounding, 1e-5 tr S is added to all.
    """
    e, E = state[0], mat3.unpack(state[1])
    one, theta = const(e, 1.0), _relaxed(coeffs, dt)
    A = mat3.safe_increment(A)
    e_new = _volume_after(e, A)
    e_new = select(e_new <= const(e, -1.0), const(e, 1e-3) - one, e_new)
    X, _ = _strain_after(E, A, theta, coeffs[4])
    o, share = const(e, 0.0), const(e, 1e-5)
    thin = negate(_is_definite(X, share * (const(e, 3.0) + mat3.trace(X))))
    if any_lane(thin):
        exact, _ = _strain_after(E, A, theta, one)
        Y = mat3.choose(_is_definite(X, o), X, exact)
        floor = share * (const(e, 3.0) + mat3.trace(Y))
        Y = mat3.choose(_is_definite(Y, floor), Y, mat3.add_diagonal(Y, floor))
        X = mat3.choose(thin, Y, X)
    return e_new, mat3.pack(X)


@inline
def feasible(state, A, coeffs, dt):
    """Return where the energy is defined: det G > 0 and S positive definite, so that det S > 0 and tr S > 0."""
    one = const(A[0], 1.0)
    X, _ = _strain_after(mat3.unpack(state[1]), A, _relaxed(coeffs, dt), coeffs[4])
    return both(mat3.det(mat3.add_diagonal(A, one)) > const(one, 0.0), _is_definite(X, const(one, 0.0)))


@inline
def wave_speed(state, coeffs):
    """Return a bound of the fastest wave [m/s] in current space: sqrt((lam + 2 mu) / rho_0) at rest.

    A wave along n changes the Kirchhoff stress of the advanced state, less T L^T, by mu (n b n + 1) + lam J (2J - 1).
    """
    e = state[0]
    one = const(e, 1.0)
    J, c = one + e, cube_root_of_one_plus(e)
    # the bound comes second in maximum: NaN passes there, and must
    stretch = maximum(one, c * c * mat3.row_sum_bound(mat3.add_diagonal(_shape_excess(mat3.unpack(state[1])), one)))
    return sqrt((coeffs[0] * (stretch + one) + coeffs[1] * maximum(one, J * (J + e))) / coeffs[2])


@inline
def left_strain(state):
    """Return J and the unimodular det(B)^(-1/3) B."""
    one = const(state[0], 1.0)
    return one + state[0], mat3.add_diagonal(_shape_excess(mat3.unpack(state[1])), one)
