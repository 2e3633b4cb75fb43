"""The page for those who install: every environment variable that the code reads, and a container with what the pages ask for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pipeline.md").read_text()
ROWS = re.findall(r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \|", PAGE, re.M)
TOLD = {name for row in ROWS for name in re.findall(r"`(\w+)`", row)}
PACKAGES = ("mpm_nodes", "usd_io", "samples")


def sources() -> dict[str, str]:
    """Return the code that is installed, by its path."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "node_modules" not in path.parts)
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


def test_every_variable_of_ours_is_told_and_there_are_no_others():
    """Names that begin with MPM_NODES_ stand in the table, and each of the table is read somewhere."""
    read = {name for text in sources().values() for name in re.findall(r"\bMPM_NODES_[A-Z]\w*", text)}
    assert read == {name for name in TOLD if name.startswith("MPM_NODES_")} and len(read) >= 7


def test_variables_that_are_set_or_read_by_name_are_told():
    """Of others, those that the code gives to its children or sets for itself."""
    names = set()
    for text in sources().values():
        names |= set(re.findall(r"environ\.setdefault\(\"([A-Z]\w+)\"", text)) | set(re.findall(r"\"(NUMBA_[A-Z]\w+)\": ", text))
    assert {"GOMP_SPINCOUNT", "NUMBA_NUM_THREADS"} <= names <= TOLD


def test_the_container_has_the_libraries_that_cycles_asks_for():
    """All packages of the page "Install", and OpenMP's, without which numba takes slower threads."""
    (install,) = re.findall(r"^apt install (.+)$", (ROOT / "docs" / "install.md").read_text(), re.M)
    recipe = PAGE.partition("```text\n")[2].partition("```")[0]
    packages = set(re.search(r"--no-install-recommends \\\n(.+) \\\n", recipe)[1].split())
    assert packages == {*install.split(), "libgomp1"}


def test_the_container_runs_commands_that_there_are():
    """Each command line of ours in the recipe is one that the program understands."""
    from mpm_nodes.cli import parser

    commands = re.findall(r"mpm-nodes ([a-z][^&\n\"]*)", PAGE.partition("```text\n")[2].partition("```")[0])
    assert commands
    for command in commands:
        parser().parse_args(command.replace("$CPU", "znver3").split())
