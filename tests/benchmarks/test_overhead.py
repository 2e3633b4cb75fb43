"""The machinery itself is timed: the figures are consistent, whatever the machine."""

from __future__ import annotations

import dataclasses
import json

import overhead
import pytest

from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.plan import plan_substeps


def test_empty_stages_are_planned_and_all_called():
    """The plan holds fifteen stages in the order of the wires, and one substep calls each of them once."""
    called = []
    counting = dataclasses.replace(overhead.nothing.declaration, function=called.append)
    plan = plan_substeps(overhead.empty_graph(), registry=Registry([counting]))
    assert [planned.id for planned in plan.stages] == [f"stage_{number}" for number in range(15)]
    overhead.empty_substep(plan)()
    assert len(called) == 15


def test_shortest_is_the_minimum():
    """Warm calls run and do not count."""
    calls = []
    assert 0.0 <= overhead.shortest(lambda: calls.append(1), 5, warm=2) < 1.0
    assert len(calls) == 7


def test_overhead_writes_the_figures_that_it_prints(tmp_path, capsys):
    """`--json FILE`: the command prints its lines and writes the same figures."""
    assert overhead.main(["--particles", "1000", "--json", str(tmp_path / "figures.json")]) in (0, 1)
    figures, printed = json.loads((tmp_path / "figures.json").read_text()), capsys.readouterr().out
    assert set(figures) == {"stages", "planning_us", "dispatch_us", "particles", "substep_us", "share"}
    assert f"{figures['dispatch_us']:.2f} us" in printed and f"{figures['particles']:,} particles" in printed
    assert figures["share"] == pytest.approx(figures["dispatch_us"] / figures["substep_us"])
