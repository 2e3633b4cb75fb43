"""Tearing in whole solves: declarations, single stages against fused ones, threads."""

from __future__ import annotations

import fusion_scenes
import numba
import numpy as np
import pytest
from tearing_scenes import LIQUID, MIXED, SNOW, TORN, blob

from mpm_nodes.physics.foam.problems.tearing import FOAM, TEARING, cream
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import chain


# ---------------------------------------------------------------- in a solve
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
@pytest.mark.parametrize("transfer", ["apic", pytest.param("flip", marks=pytest.mark.slow)])
def test_no_tearing_stage_lies(transfer, fuse):
    """Three substeps of the foam's stages in checked mode: nothing undeclared is read or written, and the bits are the same."""
    both = {"transfer": transfer}
    document, runs = chain(*FOAM, rasterize=both, gather=both), []
    for checked in (True, False):
        runs.append(SubstepSolver(blob(*MIXED), document, cell_size=0.1, checked=checked, fuse=fuse))
        for _ in range(3):
            runs[-1].step(1e-3)
    checked, plain = (run.snapshot().attributes for run in runs)
    assert all(np.array_equal(checked[name], plain[name]) for name in plain)
    assert 10 < plain["weak"].sum() < len(plain["weak"]) - 10
    assert runs[0].step_context.report["removed"] == runs[1].step_context.report["removed"]


@pytest.mark.parametrize("stage", [TEARING[0], *(pytest.param(stage, marks=pytest.mark.slow) for stage in TEARING[1:])])
def test_each_tearing_stage_stands_alone(stage):
    """Every stage of tearing can be wired into a graph without the others, or left out of one that has them."""
    plain = [name for name in FOAM if name not in TEARING]
    with_one = [name for name in FOAM if name == stage or name in plain]
    for names in (with_one, [name for name in FOAM if name != stage]):
        run = SubstepSolver(blob(*MIXED), chain(*names), cell_size=0.1, checked=True)
        for _ in range(2):
            run.step(1e-3)
        assert np.isfinite(run.particles.unpack("velocity")).all()


def test_tearing_stages_change_no_bit_of_what_cannot_tear():
    """Materials without threshold and recovery time move as in a graph without these stages, to the bit."""
    materials = (cream(), SNOW, LIQUID)
    runs = [
        SubstepSolver(blob(*materials), chain(*names), cell_size=0.1, fuse=False)
        for names in (FOAM, [name for name in FOAM if name not in TEARING])
    ]
    for run in runs:
        for _ in range(5):
            run.step(1e-3)
    ends = [run.snapshot().attributes for run in runs]
    kept = [name for name in ends[1] if name != "total_deformation"]
    assert [name for name in kept if ends[0][name].tobytes() != ends[1][name].tobytes()] == []


def test_total_volume_is_that_of_the_law():
    """det F of the total gradient stays 1 + the volume change of the foam, torn and recovering or not."""
    run = SubstepSolver(blob(TORN), chain(*FOAM), cell_size=0.1, dtype=np.float64)
    for _ in range(20):
        run.step(1e-3)
    end = run.snapshot().attributes
    assert end["weak"].any() and np.abs(end["volume_change"]).max() > 1e-4
    np.testing.assert_allclose(np.linalg.det(end["total_deformation"]), 1.0 + end["volume_change"], rtol=1e-10)


def test_torn_matter_comes_apart_more_easily():
    """The same pull separates a torn cube farther than a whole one."""
    widths = []
    for threshold in (1e-6, None):
        run = SubstepSolver(blob(cream(tear_threshold=threshold)), chain(*FOAM), cell_size=0.1, gravity=(0.0, 0.0, 0.0))
        for _ in range(40):
            run.step(1e-3)
        widths.append(np.ptp(run.particles.unpack("position")[:, 0]))
    assert widths[0] > widths[1] + 0.05


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_the_number_of_threads_changes_no_bit(fuse):
    """One and two threads end with the same bits, the same removals and the same steps."""
    ends = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            run = SubstepSolver(blob(*MIXED), chain(*FOAM), cell_size=0.1, fuse=fuse)
            steps = [run.step() for _ in range(10)]
            bits = {name: values.tobytes() for name, values in run.snapshot().attributes.items()}
            ends.append((steps, run.step_context.report["removed"], bits))
    finally:
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert ends[0] == ends[1]


# ---------------------------------------------------------------- fused
SCATTERED = "rasterize+detect_tears+compute_stress+limit_stress+add_stress_forces"
UPDATED = SCATTERED + "+update_grid_velocity"
GATHERED = "gather+limit_deformation+update_deformation+update_total_deformation+apply_plasticity+recover_plasticity"


def fusion_runs(names=FOAM, options=(), **knobs) -> list[SubstepSolver]:
    """Return the same solve fused and one stage at a time."""
    document = chain(*names, **knobs)
    return [SubstepSolver(blob(*MIXED), document, cell_size=0.1, fuse=fuse, **dict(options)) for fuse in (True, False)]


def compare(runs: list[SubstepSolver]) -> None:
    """Compare every attribute of two runs after 1 and 10 substeps: within rounding, marks and ids equal."""
    for count in range(1, 11):
        for run in runs:
            run.step(dt=fusion_scenes.DT)
        if count in (1, 10):
            assert fusion_scenes.far(*runs, count) == {}, count
    assert runs[0].particles.unpack("weak").any()


@pytest.mark.parametrize("scene", ["free", "bodies"])
@pytest.mark.parametrize(
    ("transfer", "kernel", "dtype"),
    [
        ("apic", "quadratic", np.float32),
        ("flip", "cubic", np.float32),
        pytest.param("apic", "cubic", np.float64, marks=pytest.mark.slow),
        pytest.param("flip", "quadratic", np.float64, marks=pytest.mark.slow),
    ],
)
def test_fused_and_single_stages_agree(transfer, kernel, dtype, scene):
    """Foam, snow and liquid, some torn: each attribute within rounding after 1 and 10 substeps, removals equal."""
    both = {"transfer": transfer, "kernel": kernel}
    options = {**fusion_scenes.SCENES[scene], "dtype": dtype}
    runs = fusion_runs(options=options, rasterize=both, gather=both, add_stress_forces={"kernel": kernel})
    expected = [UPDATED if transfer == "apic" else SCATTERED, GATHERED + "+remove_subgrid+collide_particles+move_particles"]
    assert [planned.id for planned in runs[0].plan.stages if "+" in planned.id] == expected
    compare(runs)
    assert runs[0].step_context.report["removed"]["particles"] == runs[1].step_context.report["removed"]["particles"]


@pytest.mark.parametrize("missing", ["remove_subgrid", "collide_particles", "detect_tears", "recover_plasticity"])
def test_what_is_left_out_leaves_the_rest_fused(missing):
    """Without one of its stages the others still share two loops, and the plan agrees with its single stages."""
    runs = fusion_runs([name for name in FOAM if name != missing])
    loops = [UPDATED, GATHERED + "+remove_subgrid+collide_particles+move_particles"]
    expected = ["+".join(stage for stage in loop.split("+") if stage != missing) for loop in loops]
    assert [planned.id for planned in runs[0].plan.stages if "+" in planned.id] == expected
    for count in range(1, 4):
        for run in runs:
            run.step(dt=fusion_scenes.DT)
        assert fusion_scenes.far(*runs, count) == {}, count


def test_fused_knobs_reach_the_kernels():
    """Threshold scale, the literal expansion rule and the intervals act in the fused solve as in the single stages."""
    marks = []
    for scale in (0.2, 5.0):
        runs = fusion_runs(
            detect_tears={"threshold_scale": scale},
            limit_deformation={"alg11_expansion": True},
            recover_plasticity={"interval": 3},
            remove_subgrid={"anisotropy": 1e-3, "interval": 2},
        )
        compare(runs)
        marks.append(runs[0].particles.unpack("weak").sum())
    assert marks[0] > 1.2 * marks[1]


def test_the_limits_kept_by_the_fused_stage_are_those_that_would_be_measured():
    """Without a removal the fused substep leaves the largest speed, gradient and wave; both ways choose the same dt."""
    runs, kept = fusion_runs(), 0
    for _ in range(8):
        ours, theirs = (run.step() for run in runs)
        assert ours == pytest.approx(theirs, rel=1e-4)
        limits, runs[0].particles.limits = runs[0].particles.limits, None
        if limits is not None:
            measured = [tuple(rest) for _, *rest in runs[0].particles.law_limits()]
            np.testing.assert_allclose(limits, measured, rtol=4 * np.finfo(np.float32).eps)
            kept += 1
    assert kept > 0
