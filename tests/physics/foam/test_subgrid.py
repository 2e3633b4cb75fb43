"""Removal of torn matter that is too thin for the grid."""

from __future__ import annotations

import copy

import numba
import numpy as np
import pytest

from mpm_nodes.data import Emitter, Particles
from mpm_nodes.physics.foam.problems.tearing import FOAM, H, cream, deformed, prepared
from mpm_nodes.physics.foam.stages.remove_subgrid import remove_subgrid
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.move_particles import move_particles
from mpm_nodes.verification.scenes import chain


def points(position: np.ndarray, weak, **columns) -> Particles:
    """Return particles at rest at the given places."""
    eye = np.tile(np.eye(3), (len(position), 1, 1))
    return deformed(cream(), eye, eye, position=position, weak=np.broadcast_to(weak, len(position)).astype(np.int32), **columns)


def spline(d: np.ndarray) -> np.ndarray:
    a = np.abs(d)
    return np.where(a < 1.0, a**3 / 2 - a * a + 2.0 / 3.0, np.maximum(2.0 - a, 0.0) ** 3 / 6.0)


def thin(position: np.ndarray, mass: np.ndarray, weak: np.ndarray, anisotropy: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which particles go, by the formulas and every pair, and the distance of each from either limit (ratio)."""
    goes, margin = np.zeros(len(position), bool), np.full(len(position), np.inf)
    for p in np.flatnonzero(weak):
        d = (position - position[p]) / H
        w = spline(d).prod(axis=1) * mass
        centre = (w @ d) / w.sum()
        e = d - centre
        v = np.linalg.eigvalsh(np.einsum("n,ni,nj->ij", w * w, e, e) / (w * w).sum())
        goes[p] = v[0] < anisotropy * v[2] or v[2] < anisotropy
        ratios = np.array([max(v[0], 0.0) / max(v[2], 1e-30), v[2]]) / anisotropy
        margin[p] = np.abs(np.log(np.maximum(ratios, 1e-30))).min()
    return goes, margin


def left(solver: SubstepSolver) -> np.ndarray:
    """Return the ids that are left."""
    return np.sort(solver.particles.unpack("id"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("anisotropy", [1e-5, 0.02, 0.2, 0.5])
def test_the_choice_is_that_of_the_formulas(anisotropy, dtype):
    """On a random cloud with threads and sheets every weak particle is kept or removed as all pairs say, near a limit left out."""
    random = np.random.default_rng(1)
    cloud = random.uniform(0.0, 0.8, (1500, 3)) * [2.0, 1.0, 1.0]
    line, sheet = random.uniform(0.0, 1.0, (40, 3)), random.uniform(0.0, 0.6, (200, 3))
    line[:, 1:], sheet[:, 2] = [1.3, 0.21], 1.4
    position = np.concatenate([cloud, line, sheet])
    mass, weak = random.uniform(0.5, 1.5, len(position)), random.integers(0, 2, len(position))
    goes, margin = thin(position, mass, weak, anisotropy)
    solver = prepared(points(position, weak, mass=mass, volume=mass), dtype)
    remove_subgrid(solver.particles, solver.step_context, anisotropy=anisotropy)
    kept = np.isin(np.arange(len(position)), left(solver))
    clear = margin > 1e-3
    assert clear.sum() > 0.95 * len(position) and goes.sum() > 20
    np.testing.assert_array_equal(kept[clear], ~goes[clear])


def test_particles_that_drifted_out_of_their_blocks_are_found():
    """Neighbours count where they are now, not where the last sort put them: every particle moves by two cells and a half."""
    random = np.random.default_rng(2)
    position = random.uniform(0.0, 1.2, (2000, 3))
    weak, mass = random.integers(0, 2, len(position)), np.ones(len(position))
    solver = prepared(points(position, weak, mass=mass, volume=mass), np.float64)
    store = solver.particles
    velocity = random.uniform(-0.8, 0.8, (store.count, 3)) * H
    solver.step_context.dt = 1.0
    order, position = store.unpack("id"), position.copy()
    for _ in range(2):
        store.pack("velocity", velocity)
        move_particles(store, solver.step_context)
        position[order] += velocity
    assert store.drift > 3.0 and not np.allclose(store.unpack("position"), position)
    goes, margin = thin(position, mass, weak, 0.1)
    remove_subgrid(store, solver.step_context, anisotropy=0.1)
    kept, clear = np.isin(np.arange(len(position)), left(solver)), margin > 1e-3
    assert goes.sum() > 20
    np.testing.assert_array_equal(kept[clear], ~goes[clear])


def test_particles_that_streamed_in_count_as_neighbours():
    """Newcomers have blocks of their own until the next sort, at the same places as the old ones."""
    sheet = np.zeros((400, 3))
    sheet[:, :2] = 0.05 * np.stack(np.divmod(np.arange(400), 20), 1)
    solver = prepared(points(sheet, 1), np.float32)
    store = solver.particles
    store.append({"position": sheet + [0.0, 0.0, 0.05], "id": 400 + np.arange(400), "mass": np.full(400, store.array("mass")[0])})
    assert len(np.unique(store.block_coord, axis=0)) < store.block_count
    remove_subgrid(store, solver.step_context)
    assert store.count == 800


def test_all_are_judged_before_one_is_deleted():
    """In a sheet every particle goes, and of two touching sheets none, although without one the other would go."""
    sheet = np.zeros((400, 3))
    sheet[:, :2] = 0.05 * np.stack(np.divmod(np.arange(400), 20), 1)
    pair = np.concatenate([sheet, sheet + [0.0, 0.0, 0.05]])
    for position, expected in ((sheet, 0), (pair, 800)):
        solver = prepared(points(position, 1), np.float32)
        remove_subgrid(solver.particles, solver.step_context)
        assert solver.particles.count == expected


def test_what_is_not_weak_stays():
    """A whole particle stays however alone it is, and so does everything where nothing is weak."""
    alone = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [6.0, 1.0, 2.0]])
    solver = prepared(points(alone, [0, 1, 0]), np.float32)
    remove_subgrid(solver.particles, solver.step_context)
    np.testing.assert_array_equal(left(solver), [0, 2])
    remove_subgrid(solver.particles, solver.step_context)
    assert solver.particles.count == 2 and solver.step_context.report["removed"]["particles"] == 1


# ---------------------------------------------------------------- the report
def test_the_report_is_the_difference_and_adds_up_over_a_frame():
    """Masses in halves add up exactly: removed mass and momentum are what the particles lack, since the frame began."""
    random = np.random.default_rng(3)
    position = 2.0 * np.stack(np.unravel_index(np.arange(64), (4, 4, 4)), 1)
    mass, velocity = random.integers(1, 9, 64) * 0.5, random.integers(-4, 5, (64, 3)) * 0.25
    solver = prepared(points(position, 0, mass=mass, volume=mass, velocity=velocity), np.float32)
    store, step, gone = solver.particles, solver.step_context, np.zeros(64, bool)
    for substep in range(4):
        step.substep = substep
        weak = np.isin(store.unpack("id") % 5, [substep])
        gone[store.unpack("id")[weak]] = True
        store.pack("weak", weak)
        remove_subgrid(store, step)
        found = step.report["removed"]
        assert weak.sum() > 0
        assert (found["particles"], found["mass"]) == (gone.sum(), mass[gone].sum())
        assert found["momentum"] == tuple(mass[gone] @ velocity[gone])
        assert store.unpack("mass").sum() == mass[~gone].sum()
    step.frame, step.substep = 1, 0
    remove_subgrid(store, step)
    assert step.report["removed"] == {"particles": 0, "mass": 0.0, "momentum": (0.0, 0.0, 0.0)}


# ---------------------------------------------------------------- in a solve
def strewn() -> Particles:
    """Return a cube with single weak particles around it."""
    cube = (np.stack(np.unravel_index(np.arange(512), (8, 8, 8)), 1) + 0.5) * 0.05
    alone = 0.6 + 0.4 * np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), 1)
    weak = np.repeat([0, 1], [512, 27])
    return points(np.concatenate([cube, alone]), weak, velocity=np.tile([0.1, -0.2, 0.3], (539, 1)))


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_a_substep_that_removes_leaves_the_others_in_order(fuse):
    """What is left is advanced as if nothing had been removed, dt is chosen again, and the next substep runs."""
    names = [name for name in FOAM if name != "detect_tears"]
    removing, plain = (
        SubstepSolver(strewn(), chain(*stages), cell_size=H, fuse=fuse)
        for stages in (names, [name for name in names if name != "remove_subgrid"])
    )
    for run in (removing, plain):
        run.step(1e-3, keep=False)
    assert removing.particles.count == 512 and plain.particles.count == 539
    ends = [run.snapshot(("position", "velocity", "total_deformation", "elastic_strain")).attributes for run in (removing, plain)]
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name][:512])
    for _ in range(3):
        assert removing.step(keep=False) > 0.0


def test_a_graph_that_removes_keeps_what_the_next_time_step_needs():
    """Removal after the fused stages, without viscosity: the limits of dt are measured again from a gradient that was kept."""
    plain = [
        name
        for name in FOAM
        if name
        not in (
            "detect_tears",
            "limit_stress",
            "limit_deformation",
            "recover_plasticity",
            "update_total_deformation",
            "remove_subgrid",
        )
    ]
    run = SubstepSolver(strewn(), chain(*plain, "remove_subgrid"), cell_size=H)
    assert any("+" in planned.id for planned in run.plan.stages)
    assert run.step(keep=False) > 0.0 and run.particles.count == 512
    assert run.step(keep=False) > 0.0


def frames_of_two(interval: int, substeps: int, run: SubstepSolver | None = None) -> tuple[list[int], SubstepSolver]:
    """Return how many particles are left after each substep, in frames of two, and the solver; with `run` it goes on."""
    if run is None:
        names = [name for name in FOAM if name not in ("detect_tears", "choose_time_step")]
        run = SubstepSolver(strewn(), chain(*names, remove_subgrid={"interval": interval}), cell_size=H)
    counts = []
    for _ in range(substeps):
        run.step_context.frame, run.step_context.substep = divmod(run.substeps_done, 2)
        run.step(1e-3)
        counts.append(run.particles.count)
        weak = run.particles.unpack("weak")
        weak[run.particles.unpack("id") == 100 + run.substeps_done] = 1  # inside the cube: it stays
        run.particles.pack("weak", weak)
    return counts, run


@pytest.mark.parametrize("interval", [1, 3, 5])
def test_an_interval_counts_over_frames(interval):
    """Every third substep removes, also where a frame has two of them; an interval longer than the shot removes nothing."""
    counts, _ = frames_of_two(interval, 6)
    assert counts == [539] * (interval - 1) + [512] * (7 - interval)


def test_a_resumed_solve_goes_on_counting():
    """What is saved after a frame of two substeps removes with the third, as the solve does that was never interrupted."""
    _, run = frames_of_two(3, 2)
    facts, arrays = copy.deepcopy(SolverState(run).to_arrays())
    _, revived = frames_of_two(3, 0)
    SolverState.from_arrays(facts, arrays).revive(revived)
    for each in (run, revived):
        each.particles.sorted = False  # as every frame begins
    whole, resumed = frames_of_two(3, 3, run)[0], frames_of_two(3, 3, revived)[0]
    assert whole == resumed == [512, 512, 512]
    for name in ("position", "velocity", "elastic_strain"):
        np.testing.assert_array_equal(run.particles.unpack(name), revived.particles.unpack(name))


def test_a_stream_of_weak_particles_is_removed_as_it_comes():
    """An emitter's weak particles go as soon as nobody is near them; the rest of the solve goes on."""
    nozzle = points(np.array([[3.0, 0.0, 0.0]]), 1)
    names = [name for name in FOAM if name != "detect_tears"]
    run = SubstepSolver(strewn(), chain(*names), cell_size=H, emitters=(Emitter(nozzle, (0.0, -20.0, 0.0)),))
    for _ in range(20):
        run.step(2e-3)
    assert run.next_id > 545 and 512 <= run.particles.count <= 514


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
def test_the_number_of_threads_changes_no_removal():
    """One and two threads remove the same particles and report the same numbers, at a limit that many are near."""
    random = np.random.default_rng(4)
    position, ends = random.uniform(0.0, 1.0, (3000, 3)), []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            solver = prepared(points(position, 1), np.float32)
            remove_subgrid(solver.particles, solver.step_context, anisotropy=0.15)
            ends.append((left(solver).tobytes(), dict(solver.step_context.report["removed"])))
    finally:
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert ends[0] == ends[1] and 100 < ends[0][1]["particles"] < 2900
