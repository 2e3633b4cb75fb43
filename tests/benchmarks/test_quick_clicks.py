"""The table of presses and seconds in docs/measured.md has the rows that the benchmark measures, and none is over its target."""

from __future__ import annotations

import re

import blender_quick
from benchmark_folder import FOLDER

TARGET = 5.0
"""Seconds of processor from a warm start until first frames are there."""


def test_the_page_has_the_rows_of_the_benchmark():
    """By label and presses, in the benchmark's order; presets are there."""
    page = (FOLDER.parent / "docs" / "measured.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ]+) \| (\d+) \| (\d+\.\d) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert [(label, int(presses)) for label, presses, _ in rows] == [
        (task.label, len(task.clicks)) for task in blender_quick.TASKS.values()
    ]
    assert all(float(seconds) < TARGET for *_, seconds in rows)
    presets = {path.stem for path in (FOLDER.parent / "mpm_nodes/hosts/blender_addon/quick").glob("*.json")}
    assert {task.preset for task in blender_quick.TASKS.values()} <= presets
