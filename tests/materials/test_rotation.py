"""Objectivity: no law sees a rotation, neither of the step nor of the scene; what is linear by design says so."""

from __future__ import annotations

import numpy as np
import pytest
from law_samples import COMBINED, combined_laws, random_matrices, random_rotations, random_states

from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.material_point import call_law

__all__ = ["combined_laws"]
pytestmark = pytest.mark.usefixtures("combined_laws")

LAWS = [*law_ids(), *COMBINED]
COUNT, DT = 100, 1e-3


def turned(values, Q):
    """Turn a state entry or a step: F <- Q F, b <- Q b Q^T, scalars as they are."""
    if values.ndim == 1:
        return values
    if values.shape[1:] == (6,):
        full = values[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
        return (Q @ full @ Q.transpose(0, 2, 1)).reshape(-1, 9)[:, [0, 1, 2, 4, 5, 8]]
    return Q @ values


@pytest.mark.parametrize("law_id", LAWS)
def test_a_rotation_after_the_step_adds_no_energy(law_id):
    """psi(Q (I + A) - I) = psi(A), to rounding of the stiffness."""
    state, A = random_states(law_id, COUNT, 0.1), random_matrices(COUNT, 0.05)
    Q = random_rotations(np.random.default_rng(8), COUNT)
    size = law(law_id).params.density * call_law(law_id, "wave_speed")[0] ** 2
    here = call_law(law_id, "energy", state, A, dt=DT)
    there = call_law(law_id, "energy", state, Q @ (np.eye(3) + A) - np.eye(3), dt=DT)
    assert np.abs(there - here).max() < 1e-11 * size


@pytest.mark.parametrize("law_id", LAWS)
def test_a_turned_scene_gives_the_turned_stress(law_id):
    """State, step and stress turned together are the same, through advance, flow and stress (1e-10 of the stiffness)."""
    Q = random_rotations(np.random.default_rng(9), COUNT)
    here = random_states(law_id, COUNT, 0.1)
    there = {name: turned(values, Q) for name, values in here.items()}
    for seed in range(3):
        A = random_matrices(COUNT, 0.05, seed=20 + seed)
        here, there = (
            call_law(law_id, "advance", state, step, dt=DT) for state, step in ((here, A), (there, Q @ A @ Q.transpose(0, 2, 1)))
        )
        if law(law_id).function("project"):
            here, there = (call_law(law_id, "project", state, dt=DT) for state in (here, there))
    size = law(law_id).params.density * call_law(law_id, "wave_speed")[0] ** 2
    T, turned_T = (call_law(law_id, "stress", state, dt=DT) for state in (here, there))
    assert np.abs(turned_T - Q @ T @ Q.transpose(0, 2, 1)).max() < 1e-10 * max(size, float(np.abs(T).max()))


def test_the_linear_convection_of_the_paper_is_not_objective():
    """What the default left: a turn by 0.1 of a strain changes its energy by the square of the angle."""
    state, params = random_states("oldroyd_b", COUNT, 0.1), {"exact_convection": False, "relaxation_time": 1e30}
    c, s = np.cos(0.1), np.sin(0.1)
    Q = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    rest = call_law("oldroyd_b", "energy", state, params=params)
    spun = call_law("oldroyd_b", "energy", state, np.tile(Q - np.eye(3), (COUNT, 1, 1)), params=params)
    assert np.abs(spun - rest).max() > 1e-3 * 50.0
