"""SECURITY.md and docs/selftest.md say what is there: readers of files, bounds, exit codes, parts, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.entries import MOST_NODES
from mpm_nodes.graph.document.stage_edits import MOST_EDITS
from mpm_nodes.graph.document.substep_document import MOST_STAGES
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.reports.problems import MOST_KEPT, MOST_LINES
from tests.selftest.parts import PARTS

TOP = Path(__file__).parents[2]
SECURITY, SELFTEST = ((TOP / name).read_text(encoding="utf-8") for name in ("SECURITY.md", "docs/selftest.md"))


def test_every_node_that_reads_a_file_is_named():
    """By its name, or by the ending that the row has."""
    row = next(line for line in SECURITY.splitlines() if line.startswith("| USD and OpenVDB files"))
    endings = tuple(re.findall(r"`(_\w+)`", row))
    readers = [
        name for name, node in registry.nodes().items() if any(knob.name == "path" and knob.kind == "path" for knob in node.knobs)
    ]
    assert endings and [name for name in readers if f"`{name}`" not in row and not name.endswith(endings)] == []
    assert [name for name in re.findall(r"`([a-z]\w+)`", row) if name not in readers] == []


def test_bounds_are_those_of_the_code():
    """Sizes of graph files and of what is told of them; brackets, layers and time codes of USD."""
    from usd_io.dependencies import DEEPEST, MOST_LAYERS
    from usd_io.typed import MOST_FRAMES

    told = f"{strict_json.MOST_VALUES:,} values and {MOST_NODES:,} nodes", f"{MOST_STAGES} stages and {MOST_EDITS} edits"
    assert all(each in SECURITY for each in told) and (MOST_KEPT, MOST_LINES + 1, strict_json.LARGEST_FILE) == (
        10_000,
        100,
        16 << 20,
    )
    page = " ".join(SECURITY.split())
    assert f"deeper than {DEEPEST} brackets" in page and f"more than {MOST_LAYERS:,} layers" in page
    assert MOST_FRAMES == 1_000_000 and "more than a million time codes" in page


def test_tests_that_are_named_exist():
    """Files, and the tests of them that are named beside."""
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", SECURITY + SELFTEST))
    assert len(files) > 20 and [each for each in files if not (TOP / each).is_file()] == []
    sources = "".join((TOP / each).read_text(encoding="utf-8") for each in files)
    assert [name for name in re.findall(r"`(test_\w+)`", SECURITY + SELFTEST) if f"def {name}" not in sources] == []


def test_the_table_has_every_part_with_its_cases():
    """Names, and the cases of the short and the long form."""
    rows = {cells[1].strip(): cells for line in SELFTEST.splitlines() if len(cells := line.split("|")) == 7}
    for part in PARTS:
        cells = rows[part.name]
        for cases, cell in ((part.short, cells[3]), (part.long, cells[4])):
            assert f"{cases:,}" in cell or cell.strip() == "all n", (part.name, cell)


def test_commands_that_end_with_1_are_named():
    """Of the commands whose own code returns 1 each is in the sentence about that."""
    sentence = " ".join(SECURITY.partition("- `verify`, `check`")[2].partition("\n- ")[0].split())
    returning = [path.stem for path in (TOP / "mpm_nodes/commands").glob("*.py") if re.search(r"return 1\b", path.read_text())]
    named = {"verify", "check", *re.findall(r"`(\w+)[^`]*`", sentence)}
    assert {name.partition("_")[0] for name in returning} <= named
