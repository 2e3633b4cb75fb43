"""Edits that are not saved, a file that others write, and two tabs, in a real browser: nothing is lost."""

from __future__ import annotations

import json

import pytest
from editor_page import GRAPH, driven


@pytest.fixture
def found(page, project) -> dict:
    """What `drafts.mjs` found, with a file of an older version that holds a number beyond 2^53."""
    old = json.loads(json.dumps(GRAPH))
    old["nodes"]["fall"]["version"] = 1
    old["nodes"]["ball"]["knobs"]["seeds"] = [9007199254740993]
    (project / "shot.json").write_text(json.dumps(old, indent=1))
    return driven("drafts.mjs", page.server.url, project)


def test_nothing_is_lost_between_pages_programs_and_tabs(found):
    """An old file is not changed by looking at it; a save that would overwrite is asked about, and undo goes past what was read."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert found["clean"] == 0 and "older versions" in found["said"]
    assert found["untouched"] and "were not saved" in found["asked"] and found["restored"] == "0.27"
    assert found["both_kept"] == [[0.24, 0.27], "0.24", 1, [0.27]]
    assert found["rows"] == ["ball.radius\tRadius\t0.2\t0.27"]
    assert found["digits"] and found["version"] > 1
    assert found["before"] == "0.27" and found["after"] == ["0.31", 0]
    assert found["kept"] == ["0.35", 0.33] and found["mine"] == "0.35"
    assert found["both"] == ["ball.radius\tRadius\t0.33\t0.35"]
    assert found["lost"] == [1, 1]
