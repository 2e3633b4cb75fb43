"""Newtonian viscosity as a term of its own: its energy, its loop for every law, its node, and what refuses it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from law_samples import PARAMS, flat, random_matrices, random_states, unflat

from mpm_nodes.data import Material, MpmNodesError, Particles
from mpm_nodes.materials import contract
from mpm_nodes.materials import newtonian_viscosity as term
from mpm_nodes.materials.contract import law_ids, law_of
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.nodes.materials import material_viscosity
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver

COUNT, STRIDE, DT, VISCOSITY = 60, 80, 1e-3, 3.0
SEGMENTS = np.array([(0, 16, 0), (16, 23, 1), (31, 58, 2)], np.int64)


def columns(matrices):
    return tuple(matrices.reshape(len(matrices), 9).T)


def test_stress_and_its_differential_are_derivatives():
    """Central differences of psi and T; dT is self-adjoint; T is 2 mu J eps in short steps."""
    A, Q, R = (random_matrices(COUNT, size, seed) for size, seed in ((0.1, 1), (1.0, 2), (1.0, 3)))
    J, h = np.random.default_rng(4).uniform(0.5, 1.5, COUNT), 1e-4

    def energy(X):
        return term.energy(J, columns(X), VISCOSITY, DT)

    def stress(X):
        return np.array(term.stress(J, columns(X), VISCOSITY, DT)).T.reshape(-1, 3, 3)

    T, short = stress(A), 1e-6 * A
    strain_rate = (short + short.transpose(0, 2, 1)) / (2 * DT)
    np.testing.assert_allclose(
        stress(short), 2 * VISCOSITY * J[:, None, None] * strain_rate, rtol=0, atol=1e-5 * np.abs(stress(short)).max()
    )
    np.testing.assert_allclose((energy(A + h * Q) - energy(A - h * Q)) / (2 * h), (T * Q).sum((1, 2)), rtol=1e-6, atol=1e-2)
    dQ, dR = (np.array(term.stress_differential(J, columns(A), columns(X), VISCOSITY, DT)).T.reshape(-1, 3, 3) for X in (Q, R))
    np.testing.assert_allclose((stress(A + h * Q) - stress(A - h * Q)) / (2 * h), dQ, rtol=1e-6, atol=1e-2)
    np.testing.assert_allclose((dQ * R).sum((1, 2)), (dR * Q).sum((1, 2)), rtol=1e-11, atol=1e-8)


def test_turning_costs_nothing():
    """Every rotation has no energy and no stress; what is strained in a turned step has the energy of the straight one."""
    axis = np.random.default_rng(5).normal(size=(COUNT, 3))
    turns = np.stack([rotation_matrix(tuple(100.0 * each)) for each in axis])
    strain, ones = random_matrices(COUNT, 0.3, 6), np.ones(COUNT)
    still = term.energy(ones, columns(turns - np.eye(3)), VISCOSITY, DT)
    straight = term.energy(ones, columns(strain), VISCOSITY, DT)
    assert np.abs(still).max() < 1e-25 * VISCOSITY / DT and straight.min() > 0.0
    assert np.abs(term.stress(ones, columns(turns - np.eye(3)), VISCOSITY, DT)).max() < 1e-12 * VISCOSITY / DT
    turned = term.energy(ones, columns(turns @ (np.eye(3) + strain) - np.eye(3)), VISCOSITY, DT)
    np.testing.assert_allclose(turned, straight, rtol=1e-12)


@pytest.mark.parametrize("law_id", law_ids())
def test_the_stress_of_every_law_takes_the_viscosity_of_its_material(law_id):
    """tau grows by 2 mu J sym(L) inside the segments, J the law's own volume; without viscosity by nothing, to the bit."""
    loops = law_loops(law_id, np.float32)
    state = {name: values.astype(np.float32) for name, values in random_states(law_id, COUNT, strain=0.05).items()}
    L = random_matrices(COUNT, 20.0).astype(np.float32)
    arrays = [flat(state[name], STRIDE, np.float32) for name in loops.law.state]
    results = []
    for tail in ([], [0.0], [VISCOSITY]):
        coeffs, tau = np.append(loops.law.coefficients(PARAMS.get(law_id)), tail), np.zeros(6 * STRIDE, np.float32)
        loops.stress(*arrays, flat(L, STRIDE, np.float32), np.zeros(0, np.float32), tau, STRIDE, SEGMENTS, coeffs, DT)
        results.append(unflat(tau, STRIDE, COUNT, (6,)))
    np.testing.assert_array_equal(results[0], results[1])
    J = call_law(law_id, "volume_ratio" if loops.law.function("volume_ratio") else "left_strain", state)
    J = J[0] if isinstance(J, tuple) else J
    if law_id == "snow":
        np.testing.assert_allclose(J, np.linalg.det(state["deformation"]) * state["plastic_volume_ratio"], rtol=1e-5)
    added = VISCOSITY * J[:, None, None] * (L + L.transpose(0, 2, 1))
    expected = added[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    inside = np.zeros(COUNT, bool)
    for start, end, _block in SEGMENTS:
        inside[start:end] = True
    size = np.abs(results[0]).max() + np.abs(expected).max()
    np.testing.assert_allclose((results[2] - results[0])[inside], expected[inside], atol=1e-6 * size)
    assert not results[2][~inside].any()


def test_the_node_adds_to_any_material():
    """Only the viscosity changes, whatever was set before; nodes travel through caches with it."""
    rubber = Material("neo_hookean", {}, 1000.0, "rubber", 2.0)
    thick = material_viscosity(rubber, viscosity=VISCOSITY)
    assert thick == dataclasses.replace(rubber, viscosity=VISCOSITY)
    particles = Particles({"position": np.zeros((1, 3))}, (thick,))
    facts, arrays = particles.to_arrays()
    assert Particles.from_arrays(facts, arrays).materials == (thick,)
    for entry in facts["materials"]:
        del entry["viscosity"]  # as written before there was viscosity
    assert Particles.from_arrays(facts, arrays).materials == (rubber,)


def test_what_cannot_be_viscous_is_refused(monkeypatch):
    """A negative or endless viscosity, and one for a law that knows no volume."""
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(MpmNodesError, match=r"material jelly: viscosity = .* Pa s is out of range; give a value >= 0"):
            law_of(Material("snow", {}, 400.0, "jelly", viscosity=bad))
    liquid = contract.law("liquid")
    monkeypatch.setattr(type(liquid), "function", lambda self, name: None)
    with pytest.raises(MpmNodesError, match=r"law liquid knows no volume and takes no viscosity; write def volume_ratio\(state\)"):
        law_of(Material("liquid", {}, 1e3, viscosity=1.0))


def block(own, **params):
    """A shearing cube of a liquid with a viscosity of its own."""
    grid = (np.arange(4) + 0.5) * 0.05
    position = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    return Particles(
        {"position": position, "velocity": position[:, [1, 2, 0]]},
        (Material("liquid", params, 1000.0, "goo", viscosity=own),),
        0.05,
    )


def test_a_liquid_does_not_care_whose_viscosity_it_is():
    """Law 5 kPa s, material 5 kPa s, or some of both: the same time steps, named alike, and the same motion up to rounding."""
    moved = []
    for law, own in ((5e3, 0.0), (0.0, 5e3), (2e3, 3e3)):
        solver = SubstepSolver(block(own, viscosity=law, bulk_modulus=100.0), cell_size=0.1, dtype=np.float64)
        steps = [solver.step() for _ in range(5)]
        assert solver.step_context.report["substep"]["limit"] == "viscosity"
        moved.append((steps, solver.snapshot(["velocity"])["velocity"]))
    for steps, velocity in moved[1:]:
        np.testing.assert_allclose(steps, moved[0][0], rtol=1e-12)
        np.testing.assert_allclose(velocity, moved[0][1], rtol=1e-10, atol=1e-12)


def test_checkpoints_know_the_viscosity():
    """A checkpoint fits materials of its own viscosity and no others."""

    def solver(viscosity):
        return SubstepSolver(block(viscosity), cell_size=0.1)

    facts, arrays = SolverState(solver(0.0)).to_arrays()
    SolverState.from_arrays(facts, arrays).revive(solver(0.0))
    with pytest.raises(MpmNodesError, match="checkpoint: its materials are"):
        SolverState.from_arrays(facts, arrays).revive(solver(1.0))
    facts, arrays = SolverState(solver(1.0)).to_arrays()
    SolverState.from_arrays(facts, arrays).revive(solver(1.0))
