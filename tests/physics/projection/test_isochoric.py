"""The part of a law that knows no volume: its stress and its response are derivatives of the energy of the unimodular strain."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.moduli import moduli_of
from mpm_nodes.physics.projection.numerics import isochoric

COUNT, DT = 20, 1e-3
SOLIDS = ("neo_hookean", "fixed_corotated", "snow", "herschel_bulkley")


def columns(matrices: np.ndarray) -> tuple:
    """Return matrices as nine columns."""
    return tuple(matrices.reshape(len(matrices), 9).T)


def matrices(values: tuple) -> np.ndarray:
    """Return nine columns as matrices."""
    return np.stack([np.broadcast_to(each, (COUNT,)) for each in values], axis=1).reshape(-1, 3, 3)


class Sample:
    """States of a law away from rest, in volume too, and random directions."""

    def __init__(self, name: str) -> None:
        random = np.random.default_rng(7)
        self.law = law(name)
        numbers = self.law.coefficients()
        self.shear = moduli_of(self.law, numbers).shear or 1.0
        self.coeffs = tuple(np.full(COUNT, number) for number in numbers)
        rest = self.law.rest_state(COUNT)
        state = tuple(tuple(v.reshape(COUNT, -1).T) if v.ndim > 1 else v for v in (rest[n] for n in self.law.state))
        self.dt = np.full(COUNT, DT)
        A = 0.1 * random.standard_normal((COUNT, 3, 3)) + 0.1 * np.eye(3)
        self.state = self.law.module.advance(state, columns(A), self.coeffs, self.dt)
        self.Q, self.R = random.standard_normal((2, COUNT, 3, 3))

    def energy(self, A: np.ndarray) -> np.ndarray:
        """Return psi of the unimodular part of the step, from the unimodular state."""
        G = np.eye(3) + A
        g = G * np.linalg.det(G)[:, None, None] ** (-1 / 3) - np.eye(3)
        even = isochoric.isochoric_of(self.law.module, self.state)[1]
        return self.law.module.energy(even, columns(g), self.coeffs, self.dt)

    def stress(self) -> np.ndarray:
        """Return T^ at rest."""
        found = isochoric.stress_of_step(self.law.module, self.state, self.coeffs, self.dt)
        return matrices(tuple(found[n] for n in (0, 1, 2, 1, 3, 4, 2, 4, 5)))

    def change(self, Q: np.ndarray) -> np.ndarray:
        """Return dT^ along Q."""
        return matrices(isochoric.response(self.law.module, self.state, self.coeffs, columns(Q / DT), self.dt, 0.0))


@pytest.mark.parametrize("name", SOLIDS)
def test_stress_and_response_are_derivatives_of_the_energy_of_shape(name):
    """First and second differences of psi along random directions; dilation of state or step changes nothing."""
    sample, h = Sample(name), 1e-3
    slope = (8 * (sample.energy(h * sample.Q) - sample.energy(-h * sample.Q))) / (12 * h)
    slope -= (sample.energy(2 * h * sample.Q) - sample.energy(-2 * h * sample.Q)) / (12 * h)
    T = sample.stress()
    assert np.abs(slope - (T * sample.Q).sum((1, 2))).max() < 1e-6 * sample.shear
    bend = sum(weight * sample.energy(step * h * sample.Q) for weight, step in ((-1, -2), (16, -1), (-30, 0), (16, 1), (-1, 2))) / (
        12 * h * h
    )
    assert np.abs(bend - (sample.change(sample.Q) * sample.Q).sum((1, 2))).max() < 1e-4 * sample.shear
    assert np.abs(np.trace(T, axis1=1, axis2=2)).max() < 1e-10 * sample.shear


@pytest.mark.parametrize("name", [name for name in law_ids() if name in (*SOLIDS, "liquid", "oldroyd_b")])
def test_the_response_is_self_adjoint_and_blind_to_dilation(name):
    """Q : dT(R) = R : dT(Q), and pure dilation of a state at rest gives no stress and meets no resistance."""
    sample = Sample(name)
    one, two = sample.change(sample.Q), sample.change(sample.R)
    lopsided = (one * sample.R).sum((1, 2)) - (two * sample.Q).sum((1, 2))
    assert np.abs(lopsided).max() < 1e-11 * max(np.abs(one).max(), 1.0)
    work = (sample.change(np.broadcast_to(np.eye(3), (COUNT, 3, 3))) * np.eye(3)).sum((1, 2))
    assert np.abs(work).max() < 1e-11 * max(np.abs(one).max(), 1.0)


def test_moduli_are_those_of_small_strains():
    """lam + 2 mu / 3 and mu of Lame parameters, the bulk modulus of a liquid."""
    found, E, nu = law("fixed_corotated"), 1e5, 0.3
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    measured = moduli_of(found, found.coefficients({"youngs_modulus": E, "poisson_ratio": nu}))
    assert measured.bulk == pytest.approx(lam + 2 * mu / 3, rel=1e-6)
    assert measured.shear == pytest.approx(mu, rel=1e-3)
    water = law("liquid")
    measured = moduli_of(water, water.coefficients({"bulk_modulus": 2e4, "viscosity": 5.0}))
    assert measured.bulk == pytest.approx(2e4, rel=1e-6) and measured.shear == 0.0


@pytest.mark.parametrize("name", law_ids())
def test_the_shear_stress_of_every_law_reaches_the_projection(name):
    """Sheared at constant volume, a law's split stress is the deviator of its own, and not nothing where it resists shear."""
    sample = Sample(name)
    rest = sample.law.rest_state(COUNT)
    state = tuple(tuple(v.reshape(COUNT, -1).T) if v.ndim > 1 else v for v in (rest[n] for n in sample.law.state))
    shear = np.zeros((COUNT, 3, 3))
    shear[:, 0, 1] = 0.05
    sample.state = sample.law.module.advance(state, columns(shear), sample.coeffs, sample.dt)
    own = matrices(sample.law.module.stress(sample.state, columns(np.zeros((COUNT, 3, 3))), sample.coeffs, sample.dt))
    deviator = own - np.trace(own, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
    assert np.abs(sample.stress() - deviator).max() < 1e-9 * sample.shear
    resists = moduli_of(sample.law, sample.law.coefficients()).shear > 0.0
    assert (np.abs(sample.stress()[:, 0, 1]).min() > 0.01 * sample.shear) == resists
