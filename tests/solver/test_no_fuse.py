"""--no-fuse reaches the solve, and cooks of both ways agree and continue each other."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes import cli
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.solver import program

FUSE = program.fused


@pytest.fixture
def planned(monkeypatch) -> list[int]:
    """Count the plans that are fused."""
    calls = []
    monkeypatch.setattr(program, "fused", lambda plan, fusions: calls.append(1) or FUSE(plan, fusions))
    return calls


@pytest.mark.parametrize("command", ["cook", "execute"])
def test_no_fuse_reaches_the_solve(tmp_path, planned, command):
    """With --no-fuse the planner is not asked; what both ways write agrees to rounding."""
    ends = {}
    for fuse in (True, False):
        graph, got = shot(end=2, velocity=(0.0, -1.0, 0.0)), None
        planned.clear()
        if command == "execute":
            got = execute(graph, fuse=fuse).outputs["sim"]["particles"]
        else:
            graph.add("export_points", "points", particles=graph["sim"]["particles"])
            graph.save(tmp_path / "shot.json")
            options = ["--out", str(tmp_path / str(fuse)), *([] if fuse else ["--no-fuse"])]
            assert cli.main(["cook", str(tmp_path / "shot.json"), *options]) == 0
        assert len(planned) == fuse
        ends[fuse] = got
    if command == "execute":
        assert np.array_equal(ends[True]["id"], ends[False]["id"])
        assert np.abs(ends[True]["position"] - ends[False]["position"]).max() < 1e-5


@pytest.mark.parametrize("fuse", [True, False])
def test_a_checked_cook_runs(fuse):
    """--checked with and without --no-fuse: the solve of a graph finds no lie and gives the bits of a plain cook."""
    plain, checked = (execute(shot(end=2), fuse=fuse, checked=mode).outputs["sim"]["particles"] for mode in (False, True))
    assert [name for name in plain.attributes if plain[name].tobytes() != checked[name].tobytes()] == []


def test_a_cook_may_be_continued_the_other_way(tmp_path):
    """A checkpoint of fused stages holds what single stages go on with, and the other way round."""
    ends = []
    for first, then in ((True, True), (True, False), (False, True)):
        out = tmp_path / f"{first}{then}"
        execute(shot(end=4, velocity=(0.0, -1.0, 0.0)), frames=(1, 3), out=out, fuse=first)
        done = execute(shot(end=4, velocity=(0.0, -1.0, 0.0)), frames=(1, 4), out=out, resume=True, fuse=then)
        assert done.cooked == (4,)
        ends.append(done.outputs["sim"]["particles"])
    for end in ends[1:]:
        assert np.array_equal(end["id"], ends[0]["id"]) and np.abs(end["position"] - ends[0]["position"]).max() < 1e-5
