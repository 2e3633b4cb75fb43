"""Fused stages give the numbers of single ones to rounding."""

from __future__ import annotations

import copy

import numba
import numpy as np
import pytest
from fusion_scenes import (
    DT,
    MIXED,
    MIXTURES,
    MOVED,
    PRESET,
    SCATTER,
    UPDATED,
    WITHIN,
    attributes,
    differing,
    far,
    matter,
    names,
    preset,
    rounding,
    solver,
    surroundings,
)

from mpm_nodes.data import Emitter, MpmNodesError, Particles
from mpm_nodes.graph.plan.fusion import FusedStage
from mpm_nodes.solver.run import SubstepSolver


def compare(laws, substeps, options, **like: str) -> None:
    """Run both ways side by side and compare every attribute after 1 and after 10 substeps."""
    fused, single = (solver(laws, substeps, fuse=fuse, **options) for fuse in (True, False))
    assert not any(isinstance(planned, FusedStage) for planned in single.plan.stages)
    assert any(isinstance(planned, FusedStage) for planned in fused.plan.stages)
    assert attributes(fused).keys() >= {"stress", "velocity_gradient", "affine", "velocity", "position", "temperature"}
    for count in range(1, 11):
        for run in (fused, single):
            run.step(dt=DT)
        if count in (1, 10):
            assert far(fused, single, count, **like) == {}, count


# ---------------------------------------------------------------- the same numbers
@pytest.mark.parametrize("scene", ["free", "surrounded"])
@pytest.mark.parametrize("transfer", ["apic", "flip"])
@pytest.mark.parametrize("kernel", ["quadratic", "cubic"])
@pytest.mark.parametrize("laws", MIXTURES.values(), ids=MIXTURES)
def test_fused_and_single_stages_agree(laws, kernel, transfer, scene):
    """Every law and mixture, float32: each attribute within rounding after 1 and 10 substeps, ids and columns equal."""
    compare(laws, preset(kernel=kernel, transfer=transfer), surroundings(laws) if scene == "surrounded" else {})


DOUBLE = [(laws, kernel, transfer) for laws in MIXTURES for kernel in ("quadratic", "cubic") for transfer in ("apic", "flip")]
DEFAULT = {("snow and liquid", "quadratic", transfer) for transfer in ("apic", "flip")}


@pytest.mark.parametrize(
    ("laws", "kernel", "transfer"),
    [pytest.param(*case, marks=() if case in DEFAULT else pytest.mark.slow) for case in DOUBLE],
)
def test_fused_and_single_stages_agree_in_double_precision(laws, kernel, transfer):
    """The same in float64, where the allowance is 5e8 times smaller: among bodies, walls and a stream."""
    laws = MIXTURES[laws]
    compare(laws, preset(kernel=kernel, transfer=transfer), {**surroundings(laws), "dtype": np.float64})


def test_the_scene_makes_every_part_of_the_kernels_work():
    """Matter is deleted and streams in, yields, meets bodies, and many blocks hold particles of two materials."""
    run, alone = (solver(MIXED, **(surroundings(MIXED) if busy else {})) for busy in (True, False))
    assert run.particles.block_count >= 8
    assert len(np.intersect1d(run.particles.segments[0][:, 2], run.particles.segments[1][:, 2])) >= 8
    before = attributes(run)
    for _ in range(10):
        run.step(dt=DT)
        alone.step(dt=DT)
    after = attributes(run)
    assert run.next_id > 1000 and run.particles.count < run.next_id
    both = np.intersect1d(attributes(alone)["id"], after["id"])  # without what streamed in
    assert len(both) > 900 and np.array_equal(after["id"][: len(both)], both)
    assert not np.array_equal(after["plastic_volume_ratio"][: len(both)], before["plastic_volume_ratio"][both])
    assert np.abs(after["velocity"][: len(both)] - attributes(alone)["velocity"][both]).max() > 0.1


@pytest.mark.parametrize("law", ["snow", "fixed_corotated"])
def test_one_law_with_flip_gives_the_same_bits(law):
    """Where force and momentum stay apart and one law fills the grid, the sums are those of single stages: no bit differs."""
    fused, single = (solver((law,), preset(transfer="flip"), fuse=fuse) for fuse in (True, False))
    for _ in range(5):
        assert fused.step() == single.step()
    assert differing(fused, single) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [UPDATED, MOVED]),
        ({"transfer": "flip"}, [SCATTER, MOVED]),
        ({"gather.transfer": "flip"}, [SCATTER, MOVED]),
        ({"rasterize.transfer": "flip"}, [UPDATED, MOVED]),
        ({"gather.kernel": "cubic"}, [UPDATED, MOVED]),
        ({"rasterize.kernel": "cubic"}, [UPDATED, MOVED]),
        ({"transfer": "flip", "flip_fraction": {"keys": [[0, 1.0, "linear"], [10, 0.5, "linear"]]}}, [SCATTER, MOVED]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_mixed_knobs_are_fused_only_where_the_kernels_fit(settings, expected):
    """Transfers and B-splines may differ from stage to stage, and knobs may be keyed: the numbers are those of single stages."""
    runs = [solver(MIXED, preset(**settings), fuse=fuse) for fuse in (True, False)]
    assert [name for name in names(runs[0]) if "+" in name] == expected
    for count in range(1, 11):
        for run in runs:
            run.step(dt=DT, frame=float(count))
        if count in (1, 10):
            assert far(*runs, count) == {}, count


@pytest.mark.parametrize(
    "missing", ["collide_particles", "collide_grid", "apply_plasticity", "update_deformation", "compute_stress"]
)
def test_bypassed_stages_leave_the_numbers(missing):
    """Without one of its stages a plan is fused where a kernel is left, and agrees with its single stages."""
    document = copy.deepcopy(PRESET)
    document["nodes"][missing]["bypass"] = True
    runs = [solver(MIXED, document, fuse=fuse, **surroundings(MIXED)) for fuse in (True, False)]
    assert missing not in "+".join(names(runs[0]))
    for count in range(1, 11):
        for run in runs:
            run.step(dt=DT)
        if count in (1, 10):
            assert far(*runs, count) == {}, count


def test_a_solve_that_begins_empty_is_fused():
    """Nothing but a stream: the kernels run on no particles, then on the first ones."""
    nozzle = matter(MIXED, cells=1)
    options = {"cell_size": 0.1, "emitters": (Emitter(nozzle, (0.0, -6.0, 0.0), 1.5 * DT),)}
    empty = Particles({"position": np.zeros((0, 3))}, (), nozzle.spacing)
    fused, single = (SubstepSolver(empty, "explicit_apic", fuse=fuse, **options) for fuse in (True, False))
    for count in range(1, 21):
        for run in (fused, single):
            run.step(dt=DT)
        if count == 1:
            assert fused.particles.count == 0
    assert fused.particles.count > 0 and far(fused, single, 20) == {}


# ---------------------------------------------------------------- the time step
@pytest.mark.parametrize("scene", ["free", "surrounded"])
@pytest.mark.parametrize("laws", MIXTURES.values(), ids=MIXTURES)
def test_both_ways_choose_the_same_time_step(laws, scene):
    """Ten steps of their own choice: the same limit, and dt equal to the rounding of what limits it."""
    fused, single = (solver(laws, fuse=fuse, **(surroundings(laws) if scene == "surrounded" else {})) for fuse in (True, False))
    for count in range(1, 11):
        ours, theirs = fused.step(), single.step()
        state, allowed = attributes(single), rounding(single, count, theirs)
        limiting = ("velocity", "velocity_gradient", "deformation", "volume_change", "plastic_volume_ratio")
        relative = sum(allowed[name] / np.abs(state[name]).max() for name in limiting if name in state)
        told, alone = (dict(run.step_context.report) for run in (fused, single))
        # a figure of the particles' places, where all others are those of what limits the step
        assert dict(told.pop("density", {})) == pytest.approx(dict(alone.pop("density", {})), rel=1e-5)
        assert told == alone
        assert abs(ours - theirs) <= WITHIN * relative * theirs
    assert relative < 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scene", ["free", "surrounded"])
def test_the_limits_kept_are_those_that_would_be_measured(scene, dtype):
    """A fused substep leaves the largest speed, velocity gradient and wave of each material: what a measurement finds."""
    run, kept = solver(MIXED, dtype=dtype, **(surroundings(MIXED) if scene == "surrounded" else {})), 0
    for _ in range(10):
        run.step()
        limits, run.particles.limits = run.particles.limits, None
        measured = [tuple(rest) for _, *rest in run.particles.law_limits()]
        if limits is not None:  # a particle was deleted, or came
            np.testing.assert_allclose(limits, measured, rtol=4 * np.finfo(dtype).eps, atol=0)
            kept += 1
    assert kept == 10 if scene == "free" else kept > 0


def test_limits_are_measured_anew_after_a_change_from_outside():
    """Packing a velocity between two substeps counts for the next time step."""
    runs = [solver(MIXED, fuse=fuse) for fuse in (True, False)]
    before = [run.step() for run in runs]
    for run in runs:
        run.particles.pack("velocity", 20.0 * run.particles.unpack("velocity"))
    dts = [run.step() for run in runs]
    assert dts[0] == pytest.approx(dts[1], rel=1e-5) and dts[0] < 0.3 * before[0]


# ---------------------------------------------------------------- the same bits
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_the_number_of_threads_changes_no_bit(transfer, fuse):
    """Fused and unfused, one and two threads end with the same bits and the same steps."""
    ends = []
    try:
        for threads in (1, 2, 2):
            numba.set_num_threads(threads)
            run = solver(MIXED, preset(transfer=transfer), fuse=fuse, **surroundings(MIXED))
            dts = [run.step(keep=False) for _ in range(12)]
            ends.append((dts, {name: column.tobytes() for name, column in attributes(run).items()}))
    finally:
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert ends[0][0] == ends[1][0] == ends[2][0]
    assert [name for name in ends[0][1] if not ends[0][1][name] == ends[1][1][name] == ends[2][1][name]] == []


def test_a_fused_stage_that_diverges_names_the_material():
    """A velocity that is not finite is refused by the fused kernel as by the single stage: exit code and words of divergence."""
    messages = []
    for fuse in (True, False):
        run = solver(("snow",), fuse=fuse)
        run.step()
        run.particles.pack("velocity", np.full((run.particles.count, 3), 1e9))
        with pytest.raises(MpmNodesError) as caught:
            run.step(dt=DT)
        messages.append((type(caught.value), caught.value.exit_code, "snow" in str(caught.value)))
    assert messages[0] == messages[1]
