"""The bench times the machinery itself: the figures are consistent, whatever the machine."""

from __future__ import annotations

import dataclasses
import json

import pytest

from mpm_nodes import cli
from mpm_nodes.bench import overhead
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
    """`bench --overhead --json FILE` prints its lines and writes the same figures."""
    assert cli.main(["bench", "--overhead", "--particles", "1000", "--json", str(tmp_path / "figures.json")]) in (0, 1)
    figures, printed = json.loads((tmp_path / "figures.json").read_text()), capsys.readouterr().out
    assert set(figures) == {"stages", "planning_us", "dispatch_us", "particles", "substep_us", "share"}
    assert f"{figures['dispatch_us']:.2f} us" in printed and f"{figures['particles']:,} particles" in printed
    assert figures["share"] == pytest.approx(figures["dispatch_us"] / figures["substep_us"])


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--overhead", "--law", "snow"], "takes no --law"),
        (["--overhead", "--particles", "10", "20"], "2 values given; give one"),
        (["--domain", "--scene", "cube"], "takes no --scene"),
        (["--particles", "0"], "'0' is not a whole number from 1 to 1,000,000,000"),
        (["--law", "jello"], "choose from 'neo_hookean'"),
        (["--threads", "100000"], "give at most"),
    ],
)
def test_wrong_arguments_are_refused_with_the_cure(arguments, said, capsys):
    """What cannot be measured is refused before anything is measured, with exit code 2."""
    assert cli.main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err
