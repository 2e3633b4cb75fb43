"""Which tests take long: `long_tests.txt` names functions and whole files, with the seconds that they took.

`python tests/long_tests.py whole.xml short.xml` writes the list from two reports of an idle machine (`--junitxml`): of all tests
(`-m "not slow"`), and of those that were short so far, from an empty kernel cache. In the latter the first test of a file compiles
what tests that are left out would have compiled for it, so that files count there, and not functions.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")
LEAST = 2.5
"""Seconds of all cases of a function from which on it is long."""
LONG_FILE = 10.0
"""Seconds of the functions of a file that are not long from which on the whole file is."""

KEPT = {"physics/heat/test_temperature_fields.py", "physics/surface_tension/test_auto_tension.py"}
"""Files that stay short whatever they take: without them no short test might solve with heat, or with surface tension."""


def known() -> dict[str, float]:
    """Return the seconds of what takes long, by `folder/file.py::function` or `folder/file.py`."""
    return {name: float(seconds) for name, seconds in (line.split() for line in LIST.read_text().splitlines())}


def measured(report: Path) -> Counter[str]:
    """Return the seconds of each test function that a report tells of."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        seconds[f"{file}.py::{case.get('name', '').partition('[')[0]}"] += float(case.get("time", 0.0))
    return seconds


def long_ones(whole: Counter[str], short: Counter[str]) -> dict[str, float]:
    """Return what takes long by the reports of all tests and of those that were short."""
    files: Counter[str] = Counter()
    for name, seconds in short.items():
        files[name.partition("::")[0]] += seconds
    found = {name: seconds for name, seconds in files.items() if seconds >= LONG_FILE}
    both = {name: seconds for name, seconds in (whole | short).items() if name.partition("::")[0] not in found}
    found |= {name: seconds for name, seconds in both.items() if seconds >= LEAST}
    return {name: seconds for name, seconds in found.items() if name.partition("::")[0] not in KEPT}


if __name__ == "__main__":
    found = long_ones(*(measured(Path(name)) for name in sys.argv[1:]))
    LIST.write_text("".join(f"{name} {seconds:.1f}\n" for name, seconds in sorted(found.items())))
