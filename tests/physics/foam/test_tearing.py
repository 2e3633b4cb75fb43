"""Tearing, recovery and the total deformation as stages, with every law that has an elastic strain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tearing_scenes import LIQUID

from mpm_nodes.data import Material, Particles
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.physics.foam.kernels import tearing as shared
from mpm_nodes.physics.foam.problems.tearing import (
    by_id,
    cream,
    deformed,
    isochoric,
    prepared,
    unimodular_strain,
)
from mpm_nodes.physics.foam.stages.recovery import recover_plasticity
from mpm_nodes.physics.foam.stages.tearing import detect_tears, limit_deformation, limit_stress
from mpm_nodes.solver.stages.total_deformation import update_total_deformation
from mpm_nodes.verification.quantities import full, packed
from tests.kernels.cuda.traced import needs_compiler, traced

COUNT = 100
"""Six groups of sixteen lanes and a rest, in several blocks."""

STRAINED = tuple(name for name in law_ids() if law(name).function("left_strain"))
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_law = pytest.mark.parametrize("name", STRAINED)


def matter_of(name: str, **facts) -> Material:
    """Return a material of a law with a tear threshold and a recovery time."""
    return replace(cream(), **facts) if name == "herschel_bulkley" else Material(name, {}, 1000.0, name, **facts)


def random_matter(name: str, *, seed: int = 5, columns=(), **facts) -> tuple[Particles, np.ndarray, np.ndarray]:
    """Return particles with random deformations, and these."""
    random = np.random.default_rng(seed)
    elastic, plastic = isochoric(random, COUNT, 0.1) * random.uniform(0.9, 1.1, (COUNT, 1, 1)), isochoric(random, COUNT, 0.5)
    return deformed(matter_of(name, **facts), elastic, plastic, **dict(columns)), elastic, plastic


def distortion(plastic: np.ndarray) -> np.ndarray:
    """Return |dev F_P^T F_P|."""
    strain = plastic.transpose(0, 2, 1) @ plastic
    return np.linalg.norm(strain - np.trace(strain, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3), axis=(1, 2))


# ---------------------------------------------------------------- detection
def test_laws_with_an_elastic_strain_are_all_but_the_liquid():
    """The sweeps of this file miss no law."""
    assert set(STRAINED) == set(law_ids()) - {"liquid"} and "herschel_bulkley" in STRAINED


@each_law
@DTYPES
def test_what_is_distorted_beyond_the_threshold_is_weak(name, dtype):
    """weak is 1 where |dev C_P| exceeds the threshold times its scale, 0 elsewhere, whatever it was before."""
    particles, _, plastic = random_matter(name, tear_threshold=1.0, columns={"weak": np.arange(COUNT) % 2}.items())
    size = distortion(plastic)
    solver = prepared(particles, dtype)
    for scale in (1.0, 3.0, 1e-3, 1e3):
        detect_tears(solver.particles, threshold_scale=scale)
        near = np.abs(size / scale - 1.0) < 100 * np.finfo(dtype).eps
        assert not near.any()
        np.testing.assert_array_equal(by_id(solver, "weak"), size > scale)


def test_a_particle_at_rest_is_whole_at_any_threshold():
    """C_P = I to the bit at rest: a tiny threshold does not tear what never flowed."""
    eye = np.tile(np.eye(3), (COUNT, 1, 1))
    solver = prepared(deformed(cream(tear_threshold=1e-30), eye, eye), np.float32)
    detect_tears(solver.particles)
    assert not by_id(solver, "weak").any()


def test_materials_that_never_tear_keep_their_mark():
    """Without a threshold, or without an elastic strain, `weak` stays what was painted; the others are judged again."""
    random = np.random.default_rng(6)
    elastic, plastic = isochoric(random, 3 * COUNT, 0.1), isochoric(random, 3 * COUNT, 0.5)
    marks = random.integers(0, 2, 3 * COUNT).astype(np.int32)
    kind = np.repeat(np.arange(3, dtype=np.int32), COUNT)
    particles = deformed(cream(), elastic, plastic, weak=marks, material=kind)
    particles = replace(particles, materials=(cream(), replace(LIQUID, tear_threshold=1.0), cream(tear_threshold=1.0)))
    solver = prepared(particles, np.float32)
    detect_tears(solver.particles)
    weak = by_id(solver, "weak")
    np.testing.assert_array_equal(weak[kind < 2], marks[kind < 2])
    np.testing.assert_array_equal(weak[kind == 2], distortion(plastic)[kind == 2] > 1.0)


# ---------------------------------------------------------------- limits
@DTYPES
def test_weak_particles_lose_their_tension_only(dtype):
    """Positive eigenvalues of the stress become 0; others, and whole particles, stay; a pure compression keeps its bits."""
    random = np.random.default_rng(7)
    stress = random.normal(size=(COUNT, 6)).astype(dtype)
    pressed = -np.einsum("nij,nkj->nik", *(2 * [random.normal(size=(COUNT // 4, 3, 3))]))
    stress[: COUNT // 4] = packed(pressed)
    stress[-8:] = 0.0
    weak = (np.arange(COUNT) % 3 > 0).astype(np.int32)
    particles, *_ = random_matter("neo_hookean", columns={"stress": stress, "weak": weak}.items())
    solver = prepared(particles, dtype)
    limit_stress(solver.particles)
    after, was = by_id(solver, "stress"), np.linalg.eigvalsh(full(stress.astype(float)))
    eps, size = np.finfo(dtype).eps, np.abs(was).max(axis=1, keepdims=True)
    torn = weak == 1
    assert (np.abs(np.linalg.eigvalsh(full(after)) - np.minimum(was, 0.0)) <= 50 * eps * size)[torn].all()
    keeps = ~torn | (np.arange(COUNT) < COUNT // 4)
    np.testing.assert_array_equal(after[keeps], stress[keeps])
    assert (torn & ~keeps & (was[:, 2] > 0)).sum() > 20


@each_law
@pytest.mark.parametrize("literal", [False, True])
def test_weak_particles_store_no_strain(name, literal):
    """Neither the largest strain nor a volume beyond rest grows; the rest goes on; whole particles keep their bits."""
    random, dt = np.random.default_rng(8), 1e-3
    gradient = random.normal(0.0, 100.0, (COUNT, 3, 3))
    gradient[1::5] -= gradient[1::5].transpose(0, 2, 1).copy()  # spins
    gradient[2::5] *= 20.0  # some of these invert: R(dt L) stands for f
    weak = (np.arange(COUNT) % 3 > 0).astype(np.int32)
    particles, elastic, _ = random_matter(name, columns={"velocity_gradient": gradient, "weak": weak}.items())
    solver = prepared(particles)
    solver.step_context.dt = dt
    limit_deformation(solver.particles, solver.step_context, alg11_expansion=literal)
    after, torn = by_id(solver, "velocity_gradient"), weak == 1
    np.testing.assert_array_equal(after[~torn], gradient[~torn])
    b, f, given = unimodular_strain(elastic), np.eye(3) + dt * after, np.linalg.det(np.eye(3) + dt * gradient)
    kept = np.linalg.det(f)
    trial = f @ b @ f.transpose(0, 2, 1) / np.cbrt(kept)[:, None, None] ** 2
    assert (np.linalg.eigvalsh(trial)[torn, -1] <= np.linalg.eigvalsh(b)[torn, -1] + 1e-12).all()
    volume = np.linalg.det(elastic) * (given if literal else 1.0)
    swells, turns = torn & (volume > 1.0) & (given > 1.0), torn & (given > 0.0)
    np.testing.assert_allclose(kept[swells], 1.0, atol=1e-12)
    np.testing.assert_allclose(kept[turns & ~swells], given[turns & ~swells], rtol=1e-11)
    assert swells.sum() > 10 and (turns & ~swells).sum() > 10 and (torn & (given < 0.0)).sum() > 2
    assert (kept[torn & (after != gradient).any(axis=(1, 2))] > 0.0).all()


def test_the_expansion_test_of_the_text_lets_a_compressed_particle_reach_rest():
    """J < 1 < J det f: the text's rule expands fully, the pseudocode's not at all."""
    gradient = np.tile(np.eye(3) * 100.0, (COUNT, 1, 1))
    elastic = np.tile(0.95 * np.eye(3), (COUNT, 1, 1))
    for literal, volume in ((False, 1.1**3), (True, 1.0)):
        particles = deformed(cream(), elastic, elastic / 0.95, velocity_gradient=gradient, weak=np.ones(COUNT, np.int32))
        solver = prepared(particles)
        solver.step_context.dt = 1e-3
        limit_deformation(solver.particles, solver.step_context, alg11_expansion=literal)
        np.testing.assert_allclose(np.linalg.det(np.eye(3) + 1e-3 * by_id(solver, "velocity_gradient")), volume, rtol=1e-12)


def test_small_steps_are_not_lost_in_single_precision():
    """In steps of 1 us a weak particle that is pulled does not expand, and one that is pressed shrinks at its own rate."""
    columns = tuple(np.tile(np.eye(3, dtype=np.float32), (2, 1, 1)).reshape(2, 9).T.copy())
    pull, turn = np.diag([1.0, 1.0, -1.7]), np.array([[0.0, -3.0, 1.0], [3.0, 0.0, 2.0], [-1.0, -2.0, 0.0]])
    L = tuple(np.array([pull + turn, turn - 0.5 * np.eye(3)], np.float32).reshape(2, 9).T.copy())
    J, dt = np.array([1.001, 1.001], np.float32), np.float32(1e-6)
    limited = np.stack(shared.limited_gradient(L, J, columns, dt, False), -1).reshape(2, 3, 3).astype(float)
    np.testing.assert_allclose(np.trace(limited, axis1=1, axis2=2), [0.0, -1.5], atol=1e-4)


# ---------------------------------------------------------------- total deformation and recovery
@DTYPES
def test_total_deformation_follows_the_velocity_gradient(dtype):
    """F <- (I + dt L) F for every material, R(dt L) F where that would invert, and F where both pack it below a tenth."""
    random, dt = np.random.default_rng(9), 1e-3
    gradient = random.normal(0.0, 100.0, (COUNT, 3, 3))
    gradient[0], gradient[1] = np.diag([-1200.0, 0.0, 0.0]), np.diag([-1500.0, 0.0, 0.0])
    particles, elastic, plastic = random_matter("neo_hookean", columns={"velocity_gradient": gradient}.items())
    solver = prepared(particles, dtype)
    solver.step_context.dt = dt
    update_total_deformation(solver.particles, solver.step_context)
    step = np.eye(3) + dt * gradient
    step[0], step[1] = np.diag([0.4**2, 1.0, 1.0]), np.eye(3)
    np.testing.assert_allclose(by_id(solver, "total_deformation"), step @ elastic @ plastic, atol=50 * np.finfo(dtype).eps)


@each_law
@DTYPES
def test_recovery_follows_the_closed_form(name, dtype):
    """Eigenvalues of C_P become S^exp(-t / t_p) in one step and in twenty, volume and elastic strain stay."""
    time, eps = 0.1, np.finfo(dtype).eps
    for count in (1, 20):
        particles, elastic, plastic = random_matter(name, recovery_time=0.2)
        solver = prepared(particles, dtype)
        solver.step_context.dt = time / count
        before = {each: by_id(solver, each) for each in law(name).state}
        for _ in range(count):
            recover_plasticity(solver.particles, solver.step_context)
        f, b = by_id(solver, "total_deformation"), unimodular_strain(elastic)
        strain = f.transpose(0, 2, 1) @ np.linalg.inv(b) @ f / np.cbrt(np.linalg.det(f))[:, None, None] ** 2
        exact = np.linalg.eigvalsh(plastic.transpose(0, 2, 1) @ plastic) ** np.exp(-0.5)
        error = np.abs(np.linalg.eigvalsh(strain) / exact - 1.0).max()
        assert error <= (1e-10 if dtype is np.float64 else 400 * eps), (count, error)
        np.testing.assert_allclose(np.linalg.det(f), np.linalg.det(elastic), rtol=100 * eps)
        assert all(np.array_equal(by_id(solver, each), before[each]) for each in before)


@DTYPES
def test_what_is_at_rest_keeps_its_bits_in_recovery(dtype):
    """Where C_P is the unit to rounding nothing is written, next to particles that recover."""
    random = np.random.default_rng(10)
    elastic, plastic = isochoric(random, COUNT, 0.1), np.tile(np.eye(3), (COUNT, 1, 1))
    plastic[::7] = isochoric(random, len(plastic[::7]), 0.5)
    solver = prepared(deformed(cream(recovery_time=0.2), elastic, plastic), dtype)
    before, solver.step_context.dt = by_id(solver, "total_deformation"), 1e-2
    recover_plasticity(solver.particles, solver.step_context)
    changed = (by_id(solver, "total_deformation") != before).any(axis=(1, 2))
    np.testing.assert_array_equal(changed, np.arange(COUNT) % 7 == 0)


def test_an_interval_recovers_as_much_at_once():
    """With interval 4 a frame of ten equal substeps recovers in its substeps 3, 7 and 9: as much as ten single recoveries."""
    ends, written = [], []
    for interval in (1, 4):
        particles, *_ = random_matter("herschel_bulkley", recovery_time=0.2)
        solver = prepared(particles)
        step, step.dt = solver.step_context, 1e-2
        for step.substep in range(10):
            before, step.time_left = by_id(solver, "total_deformation"), (10 - step.substep) * step.dt
            recover_plasticity(solver.particles, step, interval=interval)
            written.append((by_id(solver, "total_deformation") != before).any())
        ends.append(by_id(solver, "total_deformation"))
    assert np.flatnonzero(written[10:]).tolist() == [3, 7, 9] and all(written[:10])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-11, atol=1e-11)


def test_materials_without_a_recovery_time_do_not_recover():
    """None means never, and a liquid has nothing to recover."""
    for matter in (cream(), replace(LIQUID, recovery_time=0.1)):
        particles, *_ = random_matter("neo_hookean")
        solver = prepared(replace(particles, materials=(matter,)))
        before, solver.step_context.dt = by_id(solver, "total_deformation"), 1.0
        recover_plasticity(solver.particles, solver.step_context)
        np.testing.assert_array_equal(by_id(solver, "total_deformation"), before)


# ---------------------------------------------------------------- on a GPU
@needs_compiler
def test_tearing_traces_for_gpus(tmp_path):
    """Detection, limits and recovery in C++ for a GPU, compiled for the CPU, agree with NumPy columns."""
    random, dt = np.random.default_rng(0), np.float32(1e-3)
    elastic, plastic = isochoric(random, COUNT, 0.1), isochoric(random, COUNT, 0.5)
    L = random.normal(0, 100, (COUNT, 3, 3))
    F, b, L, T = (each.reshape(COUNT, 9).astype(np.float32) for each in (elastic @ plastic, unimodular_strain(elastic), L, L))
    T += T.reshape(COUNT, 3, 3).transpose(0, 2, 1).reshape(COUNT, 9)
    J = random.uniform(0.9, 1.1, COUNT).astype(np.float32)

    def point(F, b, L, T, J, threshold, exponent, rest, dt):
        moves, healed = shared.recovered(F, b, exponent, rest)
        limited = shared.limited_gradient(L, J, b, dt, False)
        return shared.is_torn(F, b, threshold), moves, healed, limited, shared.without_tension(T)

    numbers = [np.float32(x) for x in (1.0, -0.01, 1e-6, dt)]
    found = traced(tmp_path, point, F, b, L, T, J, *numbers)
    torn, moves, *expected = point(*(tuple(each.T) for each in (F, b, L, T)), J, *numbers)
    np.testing.assert_array_equal(found[:2], [torn, moves])
    assert 0 < torn.sum() < COUNT
    for got, exact in zip(found[2:].reshape(3, 9, COUNT), expected, strict=True):
        np.testing.assert_allclose(got, np.stack(exact), rtol=1e-4, atol=1e-5 * np.abs(np.stack(exact)).max())
