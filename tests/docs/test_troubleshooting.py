"""Cures that the page of symptoms names are knobs and values that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpm_nodes.graph.declare import registry as registries

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()
REGISTRY = registries.load(path="", entry_points=False)
DECLARED = {**REGISTRY.nodes(), **REGISTRY.stages()}
NAMED = sorted(set(re.findall(r"`([a-z]\w+)\.(\w+)`", PAGE)))


@pytest.mark.parametrize("cure", [".".join(pair) for pair in NAMED])
def test_a_cure_is_a_knob(cure):
    """Each `node.knob` is a knob of that node or stage, or an input of it."""
    name, part = cure.split(".")
    declaration = DECLARED[name]
    assert part in {each.name for each in (*declaration.knobs, *getattr(declaration, "ports", ()))}


def test_values_of_cures_are_choices():
    """What stands behind a knob, as in `solve.start_inside`: `push_out`, is one of its choices."""
    told = re.findall(r"`(\w+)\.(\w+)`: `(\w+)`(?: or `(\w+)`)?", PAGE)
    assert len(told) >= 4
    for name, part, *values in told:
        (knob,) = (each for each in DECLARED[name].knobs if each.name == part)
        assert {*filter(None, values)} <= set(knob.choices), (name, part)


def test_every_row_has_symptom_cause_and_cure():
    """A row without a symptom is one more cause of the symptom above."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row != ["symptom", "cause", "cure"]]
    assert len(NAMED) > 20 and len(rows) > 35 and all(len(row) == 3 and row[1] and row[2] for row in rows)
