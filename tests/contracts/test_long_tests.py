"""The list of long tests names tests that are there: one that was renamed would be run among the short ones, without a word."""

from __future__ import annotations

import re

import long_tests
import pytest


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_what_the_list_names_is_there():
    """Every file, and every function of it."""
    for name in long_tests.known():
        file, _, function = name.partition("::")
        text = (long_tests.LIST.parent / file).read_text(encoding="utf-8")
        assert not function or re.search(rf"^def {function}\(", text, re.MULTILINE), name


def test_files_that_compile_for_themselves_are_long_as_a_whole():
    """Of the short tests whole files count, of all tests functions."""
    whole, short = (
        {"a.py::one": 3.0, "b.py::two": 1.0, "b.py::three": 9.0},
        {"b.py::two": 9.5, "b.py::four": 1.0, "c.py::five": 2.0},
    )
    counted = (long_tests.Counter(whole), long_tests.Counter(short))
    assert long_tests.long_ones(*counted) == {"a.py::one": 3.0, "b.py": 10.5}


def test_files_that_are_kept_stay_short():
    """They are there, and no report makes them long."""
    for file in long_tests.KEPT:
        assert (long_tests.LIST.parent / file).is_file()
        assert long_tests.long_ones(*2 * (long_tests.Counter({f"{file}::one": 20.0}),)) == {}
