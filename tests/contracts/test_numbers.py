"""Every number that a user can give has a range: options of the command line, and knobs of nodes and stages."""

from __future__ import annotations

import argparse
import math

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.declare import registry

TEXTS = (
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1e999",
    "",
    " ",
    "x",
    "1" * 5000,
    "-" + "9" * 30,
    "0x10",
    "1,5",
    "٣",
    "²",
    "1e400",
    "1__0",
    "\udce9",
)
KNOWN = registry.load(path="", entry_points=False)
ANY_SIGN = {"frame_offset", "start_frame"}
"""Whole numbers that may be negative."""


def options():
    commands = next(each for each in cli.parser()._actions if isinstance(each, argparse._SubParsersAction)).choices
    return {
        f"{name} {(action.option_strings or [action.dest])[-1]}": action
        for name, parser in commands.items()
        for action in parser._actions
    }


OPTIONS = {name: action for name, action in options().items() if action.type is not None}


def test_no_option_takes_any_number():
    """The types of Python itself take NaN and infinity, and numbers without end."""
    assert not [name for name, action in OPTIONS.items() if action.type in (int, float, complex)]
    assert {"cook --memory", "farm --memory", "sample --minutes", "render --white", "clean --keep-every"} <= OPTIONS.keys()


@pytest.mark.parametrize("name", [name for name, action in OPTIONS.items() if not isinstance(action.type, type)])
def test_every_option_takes_finite_numbers_alone(name):
    """What it returns is finite and of moderate size; all else is refused by the parser, exit code 2."""
    for text in TEXTS:
        try:
            value = OPTIONS[name].type(text)
        except argparse.ArgumentTypeError as error:
            assert len(str(error)) < 300 or len(text) > 300
            continue
        for number in value if isinstance(value, tuple) else (value,):
            assert not isinstance(number, float) or math.isfinite(number), text
            assert not isinstance(number, int) or abs(number) <= 10**9, text


def test_memory_that_is_no_number_is_refused(capsys):
    """The parser says which option it is."""
    for text in ("nan", "inf", "-1"):
        assert cli.main(["cook", "shot.json", f"--memory={text}"]) == 2
        assert "--memory" in capsys.readouterr().err


@pytest.mark.parametrize("name", [each.id for each in KNOWN])
def test_every_whole_number_of_a_node_has_a_least_value(name):
    """-1 is refused before any cook, except where frames are counted."""
    for knob in KNOWN.get(name).knobs:
        if knob.kind == "int" and knob.name not in ANY_SIGN:
            assert knob.fault(-1) is not None, f"{name}.{knob.name} takes -1"
        if knob.kind == "vector" and knob.element is int:
            assert knob.fault([-1] * knob.size) is not None, f"{name}.{knob.name} takes -1"
