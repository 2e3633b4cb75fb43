"""The bench times the machinery itself: the figures are consistent, whatever the machine."""

from __future__ import annotations

import dataclasses

from mpm_nodes import bench
from mpm_nodes.graph.plan import plan_substeps
from mpm_nodes.graph.registry import Registry


def test_empty_stages_are_planned_and_all_called():
    """The plan holds fifteen stages in the order of the wires, and one substep calls each of them once."""
    called = []
    counting = dataclasses.replace(bench.nothing.declaration, function=called.append)
    plan = plan_substeps(bench.empty_graph(), registry=Registry([counting]))
    assert [planned.id for planned in plan.stages] == [f"stage_{number}" for number in range(15)]
    bench.empty_substep(plan)()
    assert len(called) == 15


def test_shortest_is_the_minimum():
    """Warm calls run and do not count."""
    calls = []
    assert 0.0 <= bench.shortest(lambda: calls.append(1), 5, warm=2) < 1.0
    assert len(calls) == 7
