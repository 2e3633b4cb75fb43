"""Oldroyd-B: the formulas of the paper as printed, and what each of its two convections promises."""

from __future__ import annotations

import numpy as np
import pytest
from law_samples import random_matrices, random_states

from mpm_nodes.materials.material_point import call_law

LAW, COUNT = "oldroyd_b", 300
MU, LAM, T_R = 50.0, 500.0, 0.02
PARAMS = {"shear_modulus": MU, "lame_parameter": LAM, "relaxation_time": T_R}
STEPS = pytest.mark.parametrize("dt", [1e-3, 0.02, 1.0])
CONVECTIONS = pytest.mark.parametrize("exact", [False, True])


def call(function, state, A=None, dt=1e-3, exact=False, **given):
    return call_law(LAW, function, state, A, params={**PARAMS, "exact_convection": exact}, dt=dt, **given)


def full(values):
    """The symmetric matrices of six values each."""
    return values[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)


def samples(size=0.1, dt=1e-3, exact=False):
    """Random states and feasible steps, with B, J and the unit matrix."""
    state, A = random_states(LAW, COUNT), random_matrices(COUNT, size)
    good = call("feasible", state, A, dt, exact)
    state, A = {name: values[good] for name, values in state.items()}, A[good]
    return state, A, full(state["elastic_strain"]) + np.eye(3), 1.0 + state["volume_change"]


def derivative(function, h=1e-4):
    """Fourth-order central difference at zero."""
    return (8 * (function(h) - function(-h)) - function(2 * h) + function(-2 * h)) / (12 * h)


@STEPS
def test_energy_and_stress_as_printed(dt):
    """phi_p, its gradient and b^E as in the appendix of R15, with theta = 1 - exp(-dt/t_r) and without F."""
    state, A, B, J_n = samples(dt=dt)
    eye, theta = np.eye(3), 1 - np.exp(-dt / T_R)
    S = (1 - theta) * B + theta * eye + A @ B + (A @ B).transpose(0, 2, 1)
    J = (J_n * np.linalg.det(eye + A))[:, None, None]
    g, K, Y = np.trace(S, axis1=1, axis2=2)[:, None, None], np.linalg.inv(S), np.linalg.inv(eye + A).transpose(0, 2, 1)
    mk = np.cbrt(J**2 / np.linalg.det(S)[:, None, None])
    phi = MU / 2 * (mk * g - 3) - MU * np.log(J) + LAM / 2 * (J - 1) ** 2
    np.testing.assert_allclose(call("energy", state, A, dt), phi.ravel(), rtol=1e-11, atol=1e-10)
    T = MU * mk * (B - g / 3 * K @ B + g / 3 * Y) + (LAM * (J - 1) * J - MU) * Y
    np.testing.assert_allclose(call("stress", state, A, dt), T, rtol=1e-9, atol=1e-9)


@STEPS
@CONVECTIONS
def test_derivatives_of_both_convections(dt, exact):
    """T and dT are central differences of psi and T, also beyond the relaxation time; dT is self-adjoint."""
    state, A, _, _ = samples(dt=dt, exact=exact)
    Q, R = random_matrices(len(A), seed=5), random_matrices(len(A), seed=6)
    T = call("stress", state, A, dt, exact)
    slope = derivative(lambda h: call("energy", state, A + h * Q, dt, exact))
    scale = np.linalg.norm(T, axis=(1, 2)) + MU + LAM
    assert (np.abs(slope - (T * Q).sum((1, 2))) < 1e-6 * scale).all()
    dQ, dR = (call("stress_differential", state, A, dt, exact, dA=each) for each in (Q, R))
    size = np.linalg.norm(dQ, axis=(1, 2))
    differences = derivative(lambda h: call("stress", state, A + h * Q, dt, exact))
    assert (np.linalg.norm(differences - dQ, axis=(1, 2)) < 1e-5 * size).all()
    assert (np.abs((R * dQ).sum((1, 2)) - (Q * dR).sum((1, 2))) < 1e-11 * size * np.linalg.norm(R, axis=(1, 2))).all()


def test_without_relaxation_and_with_exact_convection_it_is_neo_hookean():
    """t_r = 1e30 from B = I: the same stress as R15 eq. 8-9 for F = I + A."""
    A = random_matrices(COUNT, 0.2)
    A = A[np.linalg.det(np.eye(3) + A) > 0.05]
    poisson = LAM / (2 * (LAM + MU))
    solid = call_law("neo_hookean", "stress", None, A, params={"youngs_modulus": 2 * MU * (1 + poisson), "poisson_ratio": poisson})
    params = {**PARAMS, "relaxation_time": 1e30, "exact_convection": True}
    np.testing.assert_allclose(call_law(LAW, "stress", None, A, params=params), solid, rtol=1e-9, atol=1e-9)


@CONVECTIONS
def test_a_feasible_step_reaches_its_own_strain(exact):
    """advance writes S and J det(I + A) of the formulas; nothing is guarded there."""
    state, A, B, J = samples(0.2, exact=exact)
    theta, eye = 1 - np.exp(-1e-3 / T_R), np.eye(3)
    G = eye + A
    S = (1 - theta) * G @ B @ G.transpose(0, 2, 1) if exact else (1 - theta) * B + A @ B + (A @ B).transpose(0, 2, 1)
    after = call("advance", state, A, exact=exact)
    np.testing.assert_allclose(full(after["elastic_strain"]) + eye, S + theta * eye, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(after["volume_change"], J * np.linalg.det(G) - 1, rtol=1e-12, atol=1e-13)


@CONVECTIONS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_violent_step_leaves_a_strain_that_is_positive_definite(exact, dtype):
    """Steps of 60 % in random directions: many leave the linear S indefinite or turn matter over, and none the new state."""
    state, A = random_states(LAW, 2000, strain=0.1), random_matrices(2000, 0.6)
    bad = ~call("feasible", state, A, exact=exact)
    assert bad.mean() > (0.1 if exact else 0.4)
    after = call("advance", state, A, exact=exact, dtype=dtype)
    eigenvalues = np.linalg.eigvalsh(full(after["elastic_strain"].astype(float)) + np.eye(3))
    assert eigenvalues.min() > 0 and after["volume_change"].min() > -1


def test_feasible_is_the_definiteness_of_the_strain():
    """The mask says det(I + A) > 0 and smallest eigenvalue of S > 0, for steps of every size; A = diag(-0.75, 0, 0) is none."""
    state, A = random_states(LAW, 2000), random_matrices(2000, 0.4)
    B, theta = full(state["elastic_strain"]) + np.eye(3), 1 - np.exp(-1e-3 / T_R)
    S = (1 - theta) * B + theta * np.eye(3) + A @ B + (A @ B).transpose(0, 2, 1)
    expected = (np.linalg.eigvalsh(S).min(1) > 0) & (np.linalg.det(np.eye(3) + A) > 0)
    np.testing.assert_array_equal(call("feasible", state, A), expected)
    assert 0.2 < expected.mean() < 0.8
    assert not call("feasible", None, np.diag([-0.75, 0.0, 0.0])[None])[0]


def test_small_strains_keep_their_digits_in_single_precision():
    """Strains of 1e-6: stress, energy and the step have errors of rounding of their own size, not of that of 1."""
    eps = np.finfo(np.float32).eps
    state = {"volume_change": np.full(50, 1e-6), "elastic_strain": 1e-6 * random_matrices(50, seed=7)[:, :2].reshape(50, 6)}
    state = {name: values.astype(np.float32) for name, values in state.items()}
    A = (1e-6 * random_matrices(50)).astype(np.float32)
    for function, arguments in (("kirchhoff", (state,)), ("stress", (state, A)), ("energy", (state, A))):
        single, double = (call(function, *arguments, dtype=dtype) for dtype in (np.float32, np.float64))
        size = np.abs(double).reshape(50, -1).max(1) if function != "energy" else np.full(50, (MU + LAM) * 1e-6)
        assert (np.abs(single - double).reshape(50, -1).max(1) < 20 * eps * size).all(), function
    single, double = (call("advance", state, A, dt=1e-7, dtype=dtype) for dtype in (np.float32, np.float64))
    assert np.abs(single["elastic_strain"] - double["elastic_strain"]).max() < 4 * eps * 1e-5
    assert np.abs(single["volume_change"] - double["volume_change"]).max() < 4 * eps * 1e-5


def test_relaxation_does_not_overshoot():
    """A step of thousand relaxation times leaves B = I at fixed shape, and the volume as it was."""
    state = random_states(LAW, COUNT)
    after = call("advance", state, dt=20.0)
    assert np.abs(after["elastic_strain"]).max() < 1e-12
    np.testing.assert_array_equal(after["volume_change"], state["volume_change"])
