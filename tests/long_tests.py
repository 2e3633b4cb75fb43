"""Which tests take long: `long_tests.txt` names them, with the seconds that all cases of each took together.

After a run of all tests on an idle machine from an empty kernel cache, `python -m pytest -m "not slow" --junitxml=report.xml`, this
writes the list: `python tests/long_tests.py report.xml`.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")
LEAST = 2.5
"""Seconds from which on a test is long."""


def known() -> dict[str, float]:
    """Return the seconds of each long test, by `folder/file.py::function`."""
    return {name: float(seconds) for name, seconds in (line.split() for line in LIST.read_text().splitlines())}


def measured(report: Path) -> Counter[str]:
    """Return the seconds of each test that a report tells of."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        seconds[f"{file}.py::{case.get('name', '').partition('[')[0]}"] += float(case.get("time", 0.0))
    return seconds


if __name__ == "__main__":
    lines = [f"{name} {seconds:.1f}\n" for name, seconds in sorted(measured(Path(sys.argv[1])).items()) if seconds >= LEAST]
    LIST.write_text("".join(lines))
