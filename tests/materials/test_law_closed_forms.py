"""Closed forms and invariants of the single laws."""

from __future__ import annotations

import numpy as np
import pytest
from law_samples import random_matrices, random_states

from mpm_nodes.materials.contract import law
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.parameters import Snow, lame

MU, LAM = lame(1e5, 0.3)
STRETCHES = np.linspace(0.4, 2.5, 22)
UNIAXIAL = np.stack([np.diag([a, 1.0, 1.0]) for a in STRETCHES])


def test_lame_parameters():
    """E and nu come back from mu and lam."""
    assert MU * (3 * LAM + 2 * MU) / (LAM + MU) == pytest.approx(1e5, rel=1e-14)
    assert LAM / (2 * (LAM + MU)) == pytest.approx(0.3, rel=1e-14)


def test_neo_hookean_uniaxial_strain():
    """sigma_11 = (mu/a)(a^2 - 1) + lam (a - 1) for F = diag(a, 1, 1)."""
    tau = call_law("neo_hookean", "stress", {"deformation": UNIAXIAL})
    np.testing.assert_allclose(
        tau[:, 0, 0] / STRETCHES, MU / STRETCHES * (STRETCHES**2 - 1) + LAM * (STRETCHES - 1), rtol=1e-12, atol=1e-9
    )


@pytest.mark.parametrize("law_id", ["fixed_corotated", "snow"])
def test_fixed_corotated_uniaxial_strain(law_id):
    """P_11 = (2 mu + lam)(a - 1) for F = diag(a, 1, 1); snow at J_P = 1 is the same solid."""
    params = {"youngs_modulus": 1e5, "poisson_ratio": 0.3}
    tau = call_law(law_id, "stress", {"deformation": UNIAXIAL}, params=params)
    np.testing.assert_allclose(tau[:, 0, 0] / STRETCHES, (2 * MU + LAM) * (STRETCHES - 1), rtol=1e-12, atol=1e-9)


def test_fixed_corotated_pushes_inverted_matter_back():
    """The signed singular value makes F = diag(1, 1, -0.5) feel the pull towards diag(1, 1, 1): P_33 < 0."""
    F = np.diag([1.0, 1.0, -0.5])[None]
    P = call_law("fixed_corotated", "stress", {"deformation": F}) @ np.linalg.inv(F).transpose(0, 2, 1)
    assert P[0, 2, 2] == pytest.approx(2 * MU * -1.5 + LAM * -1.5, rel=1e-12)


# ---------------------------------------------------------------- snow
def test_snow_clamps_singular_values_and_moves_the_rest_into_the_plastic_part():
    """Singular values within [1 - th_c, 1 + th_s], axes kept, det F_E * J_P unchanged."""
    state = random_states("snow", 2000, strain=0.05)
    new = call_law("snow", "project", state)
    u, s, vt = np.linalg.svd(state["deformation"])
    clamped = np.clip(s, 1 - Snow.critical_compression, 1 + Snow.critical_stretch)
    np.testing.assert_allclose(new["deformation"], u * clamped[:, None, :] @ vt, atol=1e-13)
    np.testing.assert_allclose(
        np.linalg.det(new["deformation"]) * new["plastic_volume_ratio"],
        np.linalg.det(state["deformation"]) * state["plastic_volume_ratio"],
        rtol=1e-12,
    )


def test_snow_within_the_clamp_is_untouched():
    """Elastic particles keep every bit, also beside yielding ones."""
    state = random_states("snow", 500, strain=0.004)
    new = call_law("snow", "project", state)
    s = np.linalg.svd(state["deformation"], compute_uv=False)
    elastic = ((s > 1 - Snow.critical_compression) & (s < 1 + Snow.critical_stretch)).all(1)
    assert 0.1 < elastic.mean() < 0.99
    for name in state:
        np.testing.assert_array_equal(new[name][elastic], state[name][elastic])
    assert (new["deformation"][~elastic] != state["deformation"][~elastic]).any((1, 2)).all()


def test_the_return_map_of_snow_is_idempotent():
    """A projected state is not moved again, beyond rounding."""
    once = call_law("snow", "project", random_states("snow", 500, strain=0.3))
    twice = call_law("snow", "project", once)
    for name in once:
        np.testing.assert_allclose(twice[name], once[name], rtol=1e-12, atol=1e-13)


def test_volume_preserving_snow():
    """det F_P = 1 and det F_E = J after the correction, for yielding and for unpacked particles."""
    state = random_states("snow", 500, strain=0.1)
    state["plastic_volume_ratio"][::3] = 1.0
    new = call_law("snow", "project", state, params={"preserve_volume": True})
    np.testing.assert_array_equal(new["plastic_volume_ratio"], 1.0)
    np.testing.assert_allclose(
        np.linalg.det(new["deformation"]), np.linalg.det(state["deformation"]) * state["plastic_volume_ratio"], rtol=1e-12
    )


def test_packing_hardens_snow():
    """Stress grows by exp(xi (1 - J_P)), softens in the same way, and the exponent stops at 20."""
    F = np.diag([0.99, 1.0, 1.0])
    loose = call_law("snow", "stress", {"deformation": F, "plastic_volume_ratio": np.ones(4)})
    Jp = np.array([0.9, 1.0, 1.1, -5.0])
    packed = call_law("snow", "stress", {"deformation": F, "plastic_volume_ratio": Jp})
    np.testing.assert_allclose(packed[:, 0, 0] / loose[:, 0, 0], np.exp([1.0, 0.0, -1.0, 20.0]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_crushed_and_inverted_snow_recovers(dtype):
    """Singular and inverted F come back into the clamp with a positive, finite J_P."""
    F = np.stack([np.diag([1.0, 1.0, 0.0]), np.zeros((3, 3)), np.diag([1.0, 0.5, -2.0]), 1e-6 * np.eye(3)])
    new = call_law("snow", "project", {"deformation": F}, dtype=dtype)
    s = np.linalg.svd(new["deformation"].astype(float), compute_uv=False)
    eps = 30 * np.finfo(dtype).eps
    assert (s > 1 - Snow.critical_compression - eps).all() and (s < 1 + Snow.critical_stretch + eps).all()
    assert (np.linalg.det(new["deformation"].astype(float)) > 0).all()
    assert np.isfinite(new["plastic_volume_ratio"]).all() and (new["plastic_volume_ratio"] > 0).all()


# ---------------------------------------------------------------- liquid
def test_liquid_pressure():
    """tau = lam (J - 1) J I: tension positive, no shear (C21 section 3.2.1)."""
    e = np.array([-0.1, 0.0, 0.2])
    tau = call_law("liquid", "stress", {"volume_change": e}, params={"bulk_modulus": 2e6})
    np.testing.assert_allclose(tau, (2e6 * e * (1 + e))[:, None, None] * np.eye(3), rtol=1e-14)


def test_liquid_viscosity_is_two_mu_eps():
    """Simple shear rate g gives tau_xy = mu_v g J; the incremental stress at A = dt L is 2 mu_v J (I + A) E / dt."""
    L = np.zeros((1, 3, 3))
    L[0, 0, 1] = 3.0
    params, state = {"viscosity": 0.5, "bulk_modulus": 1e-12}, {"volume_change": np.array([0.25])}
    viscous = call_law("liquid", "viscous_stress", state, L=L, params=params)
    assert viscous[0, 0, 1] == viscous[0, 1, 0] == pytest.approx(0.5 * 3.0 * 1.25, rel=1e-14)
    implicit = call_law("liquid", "stress", state, 1e-3 * L, params=params, dt=1e-3)
    step = 1e-3 * L[0]
    strain = 0.5 * (step + step.T + step.T @ step)
    exact = 2.0 * 0.5 * 1.25 * (np.eye(3) + step) @ strain / 1e-3
    np.testing.assert_allclose((implicit - call_law("liquid", "stress", state, params=params))[0], exact, atol=1e-10)
    assert exact[0, 1] == pytest.approx(viscous[0, 0, 1] * (1.0 + 3e-3**2), rel=1e-12)


@pytest.mark.parametrize(("function", "exact"), [("advance", False), ("advance_minimised", True)])
def test_liquid_volume_update(function, exact):
    """J <- J (1 + tr A), J det(I + A) in minimised steps; J det R(A) where that is <= 0.1 (never a negative volume)."""
    e, A = np.linspace(-0.5, 0.5, 200), random_matrices(200, 0.1)
    new = call_law("liquid", function, {"volume_change": e}, A)["volume_change"]
    growth = np.linalg.det(np.eye(3) + A) if exact else 1 + np.trace(A, axis1=1, axis2=2)
    np.testing.assert_allclose(1 + new, (1 + e) * growth, rtol=1e-13)
    steep = np.stack([-0.5 * np.eye(3), -1.5 * np.eye(3), np.diag([-0.95, 0.0, 0.0])])
    new = call_law("liquid", function, {"volume_change": np.zeros(3)}, steep)["volume_change"]
    np.testing.assert_allclose(1 + new, [0.125, 0.25**6, 0.05], rtol=1e-9)


def test_liquid_keeps_small_compressions_in_single_precision():
    """Steps of tr A = 1e-9 add up in float32, where J itself would not move."""
    state = {"volume_change": np.zeros(1, np.float32)}
    A = np.diag([1e-9, 0.0, 0.0])[None]
    for _ in range(1000):
        state = call_law("liquid", "advance", state, A, dtype=np.float32)
    assert state["volume_change"][0] == pytest.approx(1e-6, rel=1e-4)


def test_liquid_is_infeasible_where_its_volume_would_collapse():
    """The line search stops at det(I + A) = 0.1, where the plain update ends."""
    A = np.stack([np.diag([-0.89, 0, 0]), np.diag([-0.91, 0, 0])])
    np.testing.assert_array_equal(call_law("liquid", "feasible", A=A), [True, False])


@pytest.mark.parametrize("law_id", ["neo_hookean", "fixed_corotated", "snow"])
def test_solids_are_infeasible_where_the_step_inverts(law_id):
    """det(I + A) > 0 is the border."""
    A = np.stack([np.diag([-0.99, 0, 0]), np.diag([-1.01, 0, 0]), np.diag([-2.0, -2.0, 0.0])])
    np.testing.assert_array_equal(call_law(law_id, "feasible", A=A), [True, False, True])


def test_a_step_through_inversion_keeps_solids_whole():
    """advance uses the guarded step: the determinant stays positive at any size of A."""
    state = random_states("neo_hookean", 500)
    new = call_law("neo_hookean", "advance", state, random_matrices(500, 2.0))
    assert (np.linalg.det(new["deformation"]) > 0).all()


def test_coefficient_tables():
    """Coefficients are what the names say."""
    for law_id, expected in (
        ("neo_hookean", {"mu": MU, "lam": LAM, "density": 1000.0}),
        ("snow", {"lowest": 0.975, "highest": 1.0075, "hardening": 10.0, "preserve_volume": 0.0, "density": 400.0}),
        ("liquid", {"bulk": 1e5, "viscosity": 0.0, "density": 1000.0}),
    ):
        found = law(law_id)
        given = dict(zip(found.names, found.coefficients(), strict=True))
        assert {name: given[name] for name in expected} == pytest.approx(expected)


# ---------------------------------------------------------------- Herschel-Bulkley
def foam_point(size):
    """A sheared state with |dev b| near `size`, and the |dev b| that it has."""
    F = np.eye(3)
    F[0, 1] = size / np.sqrt(2)
    b = F @ F.T
    return (b - np.eye(3))[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]][None], np.linalg.norm(b - np.eye(3) * np.trace(b) / 3)


def deviator_size(strain):
    """|dev b| of rows xx xy xz yy yz zz of b - I."""
    full = strain[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    return np.linalg.norm(full - np.eye(3) * np.trace(full, axis1=1, axis2=2)[:, None, None] / 3, axis=(1, 2))


def test_herschel_bulkley_uniaxial_strain():
    """tau_11 = (kap/2)(a^2 - 1) + (2/3) mu (a^(4/3) - a^(-2/3)) for F = diag(a, 1, 1)."""
    strain = np.zeros((len(STRETCHES), 6))
    strain[:, 0], strain[:, 3], strain[:, 5] = STRETCHES ** (4 / 3) - 1, STRETCHES ** (-2 / 3) - 1, STRETCHES ** (-2 / 3) - 1
    params = {"bulk_modulus": 3e4, "shear_modulus": 2e3}
    tau = call_law("herschel_bulkley", "stress", {"volume_change": STRETCHES - 1, "elastic_strain": strain}, params=params)
    exact = 1.5e4 * (STRETCHES**2 - 1) + 2e3 * 2 / 3 * (STRETCHES ** (4 / 3) - STRETCHES ** (-2 / 3))
    np.testing.assert_allclose(tau[:, 0, 0], exact, rtol=1e-12, atol=1e-9)


def test_perfect_plasticity_returns_to_the_yield_surface_at_once():
    """eta = 0: mu |dev b| = s_Y, up to the trial spherical part (s/mu)^2 / 6; within the surface nothing moves."""
    params = {"shear_modulus": 1e5, "yield_stress": 10.0, "consistency": 0.0}
    strain, _ = foam_point(0.01)
    after = call_law("herschel_bulkley", "project", {"elastic_strain": strain}, params=params)["elastic_strain"]
    assert 1e5 * deviator_size(after)[0] == pytest.approx(np.sqrt(2 / 3) * 10.0, rel=0.01**2 / 5)
    params["yield_stress"] = 1e4
    same = call_law("herschel_bulkley", "project", {"elastic_strain": strain}, params=params)["elastic_strain"]
    np.testing.assert_allclose(same, strain, atol=1e-16)


def test_bingham_flow_without_yield_stress_relaxes_exponentially():
    """sigma_Y = 0, n = 1: s = s_0 exp(-2 mu t / eta), to first order in dt."""
    mu, eta, dt, steps = 1e3, 10.0, 1e-6, 5000
    state, size = foam_point(1e-3)
    state = {"elastic_strain": state}
    for _ in range(steps):
        state = call_law(
            "herschel_bulkley",
            "project",
            state,
            dt=dt,
            params={"shear_modulus": mu, "yield_stress": 0.0, "consistency": eta, "flow_index": 1.0},
        )
    decay = deviator_size(state["elastic_strain"])[0] / size
    assert decay == pytest.approx((1 + 2 * mu * dt / eta) ** -steps, rel=1e-6)
    assert decay == pytest.approx(np.exp(-2 * mu * dt * steps / eta), rel=2 * (mu * dt / eta) * 2 * mu * dt * steps / eta)


@pytest.mark.parametrize("flow_index", [0.22, 0.43, 1.0, 2.8])
def test_return_map_is_continuous_and_monotone(flow_index):
    """Less is left after longer steps, more of larger stresses; eta -> 0 and n -> 1 have limits."""

    def left(size, dt=1e-3, eta=5.0, n=flow_index):
        params = {"shear_modulus": 1e4, "yield_stress": 5.0, "consistency": eta, "flow_index": n}
        after = call_law("herschel_bulkley", "project", {"elastic_strain": foam_point(size)[0]}, params=params, dt=dt)
        return 1e4 * deviator_size(after["elastic_strain"])[0]

    by_time = [left(0.01, dt) for dt in 10.0 ** np.arange(-9.0, 1.0)]
    assert (np.diff(by_time) < 0).all()
    by_size = [left(size) for size in np.linspace(1e-3, 0.05, 30)]
    assert (np.diff(by_size) > 0).all()
    assert left(0.01, eta=1e-12) == pytest.approx(left(0.01, eta=0.0), rel=1e-3)
    assert left(0.01, n=1.0 + 1e-9) == pytest.approx(left(0.01, n=1.0 - 1e-9), rel=1e-7)
