"""Every law: stress is the energy's derivative, and so on. The list of laws comes from the register."""

from __future__ import annotations

import numpy as np
import pytest
from law_samples import PARAMS, random_matrices, random_rotations, random_states

from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.elastic import hencky
from mpm_nodes.materials.material_point import call_law

LAWS = law_ids()
COUNT = 300
DT = 1e-3
NO_TIME = 1e-30
"""A step in which nothing relaxes."""


def call(law_id, function, state=None, A=None, dt=DT, **arguments):
    return call_law(law_id, function, state, A, params=PARAMS.get(law_id), dt=dt, **arguments)


def derivative(function, h=1e-4):
    """Fourth-order central difference at zero."""
    return (8 * (function(h) - function(-h)) - function(2 * h) + function(-2 * h)) / (12 * h)


def states_and_steps(law_id):
    """Strong random strains and the feasible ones of some steps of about 10 %."""
    state, A = random_states(law_id, COUNT), random_matrices(COUNT, 0.1)
    good = call(law_id, "feasible", state, A)
    assert good.mean() > 0.9
    return {name: values[good] for name, values in state.items()}, A[good]


@pytest.mark.parametrize("law_id", LAWS)
def test_stress_is_the_derivative_of_the_energy(law_id):
    """T : dA equals the central difference of psi, at large strains and turned states (measured 1e-10)."""
    state, A = states_and_steps(law_id)
    dA = random_matrices(len(A), seed=5)
    differences = derivative(lambda h: call(law_id, "energy", state, A + h * dA))
    exact = (call(law_id, "stress", state, A) * dA).sum((1, 2))
    scale = np.linalg.norm(call(law_id, "stress", state, A), axis=(1, 2)) + call(law_id, "energy", state, A)
    assert np.abs(differences - exact).max() < 1e-6 * scale.max()
    assert (np.abs(differences - exact) < 1e-6 * scale).all()


@pytest.mark.parametrize("law_id", LAWS)
def test_stress_differential_is_the_derivative_of_the_stress(law_id):
    """dT equals the central difference of T along random directions."""
    state, A = states_and_steps(law_id)
    dA = random_matrices(len(A), seed=5)
    differences = derivative(lambda h: call(law_id, "stress", state, A + h * dA))
    exact = call(law_id, "stress_differential", state, A, dA=dA)
    scale = np.linalg.norm(exact, axis=(1, 2))
    assert (np.linalg.norm(differences - exact, axis=(1, 2)) < 1e-5 * scale).all()


@pytest.mark.parametrize("law_id", LAWS)
def test_stress_differential_is_self_adjoint(law_id):
    """Q : dT(R) = R : dT(Q): the second derivative of an energy."""
    state, A = states_and_steps(law_id)
    Q, R = random_matrices(len(A), seed=5), random_matrices(len(A), seed=6)
    dQ, dR = (call(law_id, "stress_differential", state, A, dA=x) for x in (Q, R))
    difference = np.abs((R * dQ).sum((1, 2)) - (Q * dR).sum((1, 2)))
    assert (difference < 1e-11 * np.linalg.norm(dQ, axis=(1, 2)) * np.linalg.norm(R, axis=(1, 2))).all()


@pytest.mark.parametrize("law_id", LAWS)
def test_stress_of_a_resting_step_is_symmetric(law_id):
    """T(0) is symmetric, and in a step of no time the Kirchhoff stress: equal to the law's short form where it has one."""
    state = random_states(law_id, COUNT)
    for dt in (DT, NO_TIME):
        T = call(law_id, "stress", state, dt=dt)
        scale = np.abs(T).max()
        np.testing.assert_allclose(T, T.transpose(0, 2, 1), atol=1e-12 * scale)
    if law(law_id).function("kirchhoff"):
        np.testing.assert_allclose(call(law_id, "kirchhoff", state), T, atol=1e-12 * scale)


@pytest.mark.parametrize("law_id", LAWS)
def test_an_untouched_material_is_free_of_stress(law_id):
    """Zero stress and zero energy at rest, exactly, or to the rounding of singular values; empty steps change nothing."""
    M = law(law_id).coefficients(PARAMS.get(law_id))[:2].sum() if getattr(law(law_id).module, "ELASTIC", None) is hencky else 0.0
    assert np.abs(call(law_id, "stress")).max() <= 1e-14 * M
    assert np.abs(call(law_id, "energy")).max() <= 1e-28 * M
    rest = law(law_id).rest_state(1)
    for function in ("advance", "project"):
        if law(law_id).function(function):
            for name, value in call(law_id, function).items():
                np.testing.assert_allclose(value, rest[name], rtol=0.0, atol=1e-14 * (M > 0.0))


@pytest.mark.parametrize("law_id", LAWS)
def test_turned_matter_is_free_of_stress(law_id):
    """A rotated solid carries no stress (rounding of the rotation times the stiffness)."""
    if "deformation" not in law(law_id).state:
        pytest.skip("the state does not see rotations")
    R = random_rotations(np.random.default_rng(1), 100)
    T = call(law_id, "stress", {"deformation": R})
    assert np.abs(T).max() < 1e-13 * law(law_id).coefficients(PARAMS.get(law_id))[:2].sum() * 10


@pytest.mark.parametrize("law_id", [name for name in LAWS if law(name).function("left_strain")])
def test_energy_does_not_see_rotations(law_id):
    """psi(A) = psi(A') for I + A' = R (I + A): objectivity (to first order only for Oldroyd's linear convection)."""
    state, A = states_and_steps(law_id)
    R = random_rotations(np.random.default_rng(2), len(A))
    turned = R @ (np.eye(3) + A) - np.eye(3)
    given = {"params": {"exact_convection": True}} if law_id == "oldroyd_b" else {}
    straight = call_law(law_id, "energy", state, A, dt=DT, **given)
    np.testing.assert_allclose(call_law(law_id, "energy", state, turned, dt=DT, **given), straight, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("law_id", LAWS)
def test_wave_speed_bounds_the_tangent(law_id):
    """rho c^2 is the P-wave modulus at rest, and no stretch e x e of a strained state is stiffer than the bound.

    Stiffness as explicit steps meet it: the change of the stress of the advanced state, less T L^T (current space).
    """
    found = law(law_id)
    density = found.params.density
    state = random_states(law_id, COUNT, strain=0.2)
    directions = np.random.default_rng(8).standard_normal((COUNT, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)

    def stiffness(states, Q):
        def stress(h):
            after = call_law(law_id, "advance", states, h * Q, dt=NO_TIME)
            return call_law(law_id, "stress", after, dt=NO_TIME)  # without viscosity

        T = call_law(law_id, "stress", states, dt=NO_TIME)
        return ((derivative(stress) - T @ Q.transpose(0, 2, 1)) * Q).sum((1, 2))

    rest = stiffness(None, np.diag([1.0, 0.0, 0.0])[None])
    np.testing.assert_allclose(density * call_law(law_id, "wave_speed") ** 2, rest, rtol=1e-9)
    bound = density * call_law(law_id, "wave_speed", state) ** 2
    assert (stiffness(state, np.einsum("ni,nj->nij", directions, directions)) <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("law_id", LAWS)
def test_wave_speed_shows_a_broken_state(law_id):
    """A state that is not a number must not end in a finite speed: divergence is seen there."""
    for index in range(9 if "deformation" in law(law_id).state else 1):
        state = law(law_id).rest_state(1)
        state[law(law_id).state[0]].reshape(-1)[index] = np.nan
        assert not np.isfinite(call(law_id, "wave_speed", state)).any()


@pytest.mark.parametrize("law_id", LAWS)
def test_advance_reaches_the_state_that_the_energy_saw(law_id):
    """Where A is feasible, the energy of (state, A) is the elastic energy of the advanced state, which has relaxed already.

    The state is the one of minimised steps, where a law has another for them.
    """
    state, A = states_and_steps(law_id)
    advance = "advance_minimised" if law(law_id).function("advance_minimised") else "advance"
    given = {} if law_id == "liquid" else {"params": PARAMS.get(law_id)}  # without viscosity
    after = call_law(law_id, advance, state, A, dt=DT, **given)
    np.testing.assert_allclose(
        call_law(law_id, "energy", after, dt=NO_TIME, **given),
        call_law(law_id, "energy", state, A, dt=DT, **given),
        rtol=1e-9,
        atol=1e-8,
    )


@pytest.mark.parametrize("law_id", LAWS)
def test_stiffness_scale_multiplies_the_stress(law_id):
    """Twice the stiffness_scale is twice the elastic stress, and leaves density and viscosity alone."""
    state = random_states(law_id, 20)
    T = call(law_id, "stress", state)
    np.testing.assert_allclose(call(law_id, "stress", state, stiffness_scale=2.0), 2 * T, rtol=1e-12, atol=1e-9)
    c = call(law_id, "wave_speed", state)
    np.testing.assert_allclose(call(law_id, "wave_speed", state, stiffness_scale=4.0), 2 * c, rtol=1e-12)


@pytest.mark.parametrize("law_id", LAWS)
def test_single_precision_follows_double(law_id):
    """float32 stresses differ from float64 ones by rounding of the strain: 100 eps times the stiffness scale."""
    state = {name: values.astype(np.float32) for name, values in random_states(law_id, COUNT, strain=0.1).items()}
    single, double = (call(law_id, "stress", state, dtype=dtype) for dtype in (np.float32, np.float64))
    assert single.dtype == np.float32
    found = law(law_id)
    size = found.params.density * call(law_id, "wave_speed", state) ** 2
    assert (np.abs(single - double).max((1, 2)) < 100 * np.finfo(np.float32).eps * size).all()


@pytest.mark.parametrize("law_id", [name for name in LAWS if law(name).function("left_strain")])
def test_left_strain_is_that_of_the_deformation(law_id):
    """J = det F and b = J^(-2/3) F F^T, for states made from the same F; det b = 1."""
    F = random_states("neo_hookean", COUNT)["deformation"]
    J = np.linalg.det(F)
    values, b = call_law(law_id, "left_strain", random_states(law_id, COUNT))
    np.testing.assert_allclose(values, J, rtol=1e-12)
    np.testing.assert_allclose(b, F @ F.transpose(0, 2, 1) / J[:, None, None] ** (2 / 3), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(b), 1.0, rtol=1e-11)
