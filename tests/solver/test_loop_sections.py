"""What a shared loop hands its kernels is put together once, and again when it moves."""

from __future__ import annotations

import numpy as np
import pytest
from fusion_scenes import DT, MIXED, far, names, solver, stiffening_rubber

from mpm_nodes.solver import shared_loops
from mpm_nodes.solver.run import SubstepSolver


@pytest.fixture
def bound(monkeypatch):
    """Kernels that were bound to arrays since the test began."""
    found, bind = [], shared_loops.bind

    def note(composed, *rest):
        found.append(composed)
        return bind(composed, *rest)

    monkeypatch.setattr(shared_loops, "bind", note)
    return found


def test_kernels_are_bound_once(bound):
    """Two loops for each of two materials, and nothing more while particles stay in their order and dt alone changes."""
    run = solver(MIXED)
    assert len([name for name in names(run) if "+" in name]) == 2
    run.step(dt=DT, keep=False)
    assert len(bound) == 4
    for n in range(3):
        run.step(dt=DT * (1.0 + 0.1 * n), keep=False)
    assert len(bound) == 4 and run.particles.sort_age == 4
    run.step(dt=DT, keep=True)  # stress and velocity gradient are stored now
    assert len(bound) == 8


@pytest.mark.parametrize("change", ["sort", "append", "delete", "restore", "reserve"])
def test_kernels_are_bound_anew_when_arrays_move(change, bound):
    """Whatever gives an array or a table another place: the next substep is that of single stages."""
    runs = [solver(MIXED, fuse=fuse) for fuse in (True, False)]
    for run in runs:
        run.step(dt=DT, keep=True)
    bound.clear()
    for run in runs:
        particles = run.particles
        if change == "sort":
            particles.sort()
        elif change == "append":
            particles.append({"position": particles.unpack("position")[:3] + 0.01, "id": particles.new_ids(3), "mass": np.ones(3)})
        elif change == "delete":
            particles.delete(np.arange(particles.count) % 5 == 0)
        elif change == "restore":
            particles.restore(particles.save())
        else:
            particles.reserve(4 * particles.count)
    for count in (2, 3):
        for run in runs:
            run.step(dt=DT, keep=True)
        assert far(*runs, count) == {}
    assert len([each for each in bound if "gather_velocity" in each.run.__module__]) == 2


def test_materials_that_change_need_no_other_kernels(bound):
    """Keyed coefficients are those of the substep, fused and unfused, and what is bound is so for all frames."""
    runs = [SubstepSolver(stiffening_rubber(), fuse=fuse) for fuse in (True, False)]
    for frame in range(4):
        for run in runs:
            run.step(dt=1e-3, frame=float(frame), keep=False)
        kept = kept if frame else [len(bound), *(len(run.particles.bound) for run in runs)]
    assert [len(bound), *(len(run.particles.bound) for run in runs)] == kept and runs[0].particles.sort_age == 4
    a, b = (run.snapshot()["velocity"] for run in runs)
    assert np.abs(a).max() > 0.01 and np.abs(a - b).max() < 1e-5 * np.abs(a).max()
