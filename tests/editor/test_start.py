"""From the empty page to moving matter in one click, and the words by which artists find a node, in a real browser."""

from __future__ import annotations

import pytest
from editor_page import driven

from mpm_nodes.editor.quick import quick_setups


@pytest.fixture
def found(page, project) -> dict:
    """What `start.mjs` found, in a page without a graph."""
    page.server.calls.graph = ""
    return driven("start.mjs", page.server.url, project)


def test_a_material_is_a_click_away_and_nodes_are_found_by_what_artists_call_them(found):
    """The graph is saved and cooks at once; the words stand where the node is declared."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert len(found["quick"]) == len(quick_setups()) and "Melting Wax" in found["quick"]
    assert found["unsaved"] == 0 and found["written"] == "emit_box"
    assert found["points"] == 8000
    assert found["edge"] == 0
    assert "Starting" in found["said"] and not any(each.startswith("Nothing is") for each in found["said"]), found["said"]
    whole, cut = found["seen"]
    assert whole > 5000 and cut == 0
    first = {typed: labels[:2] for typed, labels in found["words"].items()}
    assert "Attach" in first["glue"] and "Stream" in first["pour"] and "Thermal Material" in first["melt"]
    assert first["tornado"] == ["Vortex"] and "Attraction" in first["explosion"]
