"""Figures of the packaged samples: what is printed is what is enforced, and samples/figures says what a cook says."""

from __future__ import annotations

import json
import math
import re

import pytest
from sample_numbers import SAMPLES as FOLDER
from sample_numbers import figures_pages

from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Figure, Target
from tests.reproduction.__main__ import main as reproduce
from tests.reproduction.figures import FIGURES
from tests.reproduction.known_misses import KNOWN_MISSES
from tests.reproduction.write_tables import BALANCES, balanced, page_of, table_of, with_table

NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?)"
UNSTABLE = ("seconds a frame, solve",)
"""Figures of the machine, not of the shot."""


def target_in(text: str) -> Target | None:
    """Return the target that a printed text ends with, None where it claims nothing."""
    for form, names in (
        (f"from {NUMBER} to {NUMBER}", ("least", "most")),
        (f"at least {NUMBER}", ("least",)),
        (f"at most {NUMBER}", ("most",)),
        (f"exactly {NUMBER}", ("least", "most")),
    ):
        match = re.search(f"(?:^|: ){form}$", text)
        if match:
            values = [float(each) for each in match.groups()]
            return Target(**dict(zip(names, values * (len(names) // len(values)), strict=True)))
    return None


def tables() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return the rows (figure, measured, must show, holds) of each sample's table."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    sample, inside = "", False
    for line in figures_pages().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## "):
            sample, inside = line[3:], False
        elif cells == ["figure", "measured", "must show", "holds"]:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and len(cells) == 4 and not set(cells[0]) <= {"-"}:
            found.setdefault(sample, []).append((cells[0], cells[1], cells[2], cells[3]))
    return found


TABLES = tables()


# ---------------------------------------------------------------- targets
@pytest.mark.parametrize(
    "target",
    [
        Target(95.7),
        Target(most=0.89),
        Target(0.85, 1.15),
        Target(0, 0),
        Target(1_101_240, 1_217_160),
        Target(-2.5),
        Target(most=1e-12),
    ],
)
def test_what_is_printed_is_what_is_enforced(target):
    """The number in words is the target to its last digit, so that a value just beyond it does not hold."""
    figure = Figure("length [m]", 1.0, target, "the source's 95.7")
    assert target_in(figure.expected) == target
    for edge, beyond in ((target.least, -math.inf), (target.most, math.inf)):
        if math.isfinite(edge):
            assert target.holds(edge) and not target.holds(math.nextafter(edge, beyond))
    assert not target.holds(math.nan)
    assert Figure("length [m]", 1.0, says="a word").ok is None


@pytest.mark.parametrize(
    "measured", [1183.954, math.nextafter(1184.0, 0.0), 1184.0, 1184.04, 1184.4, 1214.04, 12.0, math.nan, -math.inf]
)
def test_rounding_takes_no_number_across_its_bar(measured):
    """What is printed holds where the number holds; a number far from its target has four digits."""
    figure = Figure("temperature [K]", measured, Target(1184, 1214))
    assert Figure("temperature [K]", float(figure.printed.replace(",", "")), figure.target).verdict == figure.verdict
    assert Figure("temperature [K]", 1100.04, figure.target).printed == Figure("temperature [K]", 1100.04).printed == "1100"


@pytest.mark.parametrize("name", SAMPLES)
def test_verdicts_of_the_tables_follow_from_their_numbers(name):
    """Every row: its word is what number and target make of it; what claims nothing says nothing; each miss is a known one."""
    assert TABLES[name]
    for figure, measured, expected, holds in TABLES[name]:
        found = Figure(figure, float(measured.replace(",", "")), target_in(expected), known=figure in KNOWN_MISSES.get(name, ()))
        assert found.verdict == holds != "MISSED", (figure, measured, expected, holds)


def test_every_sample_has_its_own_figures():
    """A function of its name for each, and for nothing else."""
    assert FIGURES.keys() == SAMPLES.keys()


def test_known_misses_are_those_of_the_tables():
    """No figure is excused that holds or does not exist."""
    told = {name: tuple(row[0] for row in rows if row[3] == "known miss") for name, rows in TABLES.items()}
    assert {name: rows for name, rows in told.items() if rows} == KNOWN_MISSES


def test_every_sample_has_its_section_its_figures_and_its_reasons():
    """Each is on the page of its family, which leads to its table and says why it misses what it is known to miss."""
    for name in SAMPLES:
        (page,) = (page for page in FOLDER.glob("*.md") if f"\n## {name}\n" in page.read_text())
        section = page.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert (
            f"[Figures](figures/{page.name}#{name})" in section and f"\n## {name}\n" in (FOLDER / "figures" / page.name).read_text()
        ), name
        assert ("nown miss" in section) == (name in KNOWN_MISSES), name
        assert f" {name}" in (FOLDER / "README.md").read_text(), name


def test_a_table_is_written_into_its_section():
    """In place of the one that is there, on the page that has the section; a sample without one is told of."""
    page = "# Figures\n\n## one\n\n| a |\n| old |\n\n## two\n\n| b |\n"
    assert with_table(page, "one", "| new |\n") == page.replace("| a |\n| old |\n", "| new |\n")
    assert with_table(page, "two", "| new |\n") == page.replace("| b |", "| new |")
    assert page_of("toothpaste") == FOLDER / "figures" / "viscoelastic.md"
    with pytest.raises(SystemExit, match="no page with a section '## nothing'"):
        page_of("nothing")


def test_tables_leave_out_balances_that_hold():
    """One that is known to miss, and all that is about the shot itself, stands in the table."""
    name, most = "change of the mass", Target(most=1e-6)
    kept = [Figure(name, 1.0, most, known=True), Figure("height [m]", 1.0)]
    lines = table_of({"figures": [each.to_json() for each in (Figure(name, 0.0, most), Figure("substeps a frame", 9.0), *kept)]})
    assert [line.split(" | ")[0] for line in lines.splitlines()[2:]] == [f"| {each.name}" for each in kept]
    assert name in BALANCES and not balanced(kept[0].to_json())


# ---------------------------------------------------------------- cooks
@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_cook_says_what_the_tables_say(name, tmp_path):
    """Every sample in its quick size: figures, targets and verdicts of the table; numbers to a tenth; known misses do not fail.

    What README.md names once for all samples (`BALANCES`) may be left out of a table where it does not miss.
    """
    code = reproduce([name, "--out", str(tmp_path), "--events", "none"])
    (file,) = tmp_path.glob("r*/preview/figures.json")
    found = [each for each in json.loads(file.read_text())["figures"] if each["name"] not in UNSTABLE]
    told = [row for row in TABLES[name] if row[0] not in UNSTABLE]
    rows = {row[0] for row in told}
    found = [each for each in found if each["name"] in rows or not balanced(each)]
    assert [each["name"] for each in found] == [row[0] for row in told]
    wrong = []
    for each, (figure, measured, expected, holds) in zip(found, told, strict=True):
        near = math.isclose(each["measured"], float(measured.replace(",", "")), rel_tol=0.1, abs_tol=0.02)
        bars_agree = str(target_in(each["expected"])) == str(target_in(expected))
        if not near or each["verdict"] != holds or not bars_agree:
            wrong.append(f"{figure}: {each['printed']} ({each['expected']}), the table {measured} ({expected}) {holds}")
    assert not wrong, "; ".join(wrong)
    assert code == 0
