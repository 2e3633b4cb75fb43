"""What a cook says of nodes: as cooked or changed, seconds and memory, where the time went, and a cook to one node alone."""

from __future__ import annotations

import pytest
from editor_page import driven


@pytest.fixture
def found(page, project) -> dict:
    """What `cooked.mjs` found."""
    return driven("cooked.mjs", page.server.url, project)


def test_a_cook_is_told_on_the_nodes(found):
    """A change is one of all that takes from the node; shares add up; a node is cooked though the graph is not whole."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert " s" in found["time"] and " MB" in found["time"]
    assert found["changed"] == {"jelly": "cooked", "ball": "changed", "ground": "cooked", "fall": "changed", "writer": "changed"}
    assert sum(float(text.split("\n")[-1].split()[0]) for text in found["nodes"]) == pytest.approx(100.0, abs=2.0)
    assert len(found["stages"]) == 14 and "move_particles" in found["fused"]
    assert found["points"] > 100
    assert found["timeLater"].split(" · ")[0] == found["time"].split(" · ")[0]
    assert sorted(found["nodesLater"]) == sorted(found["nodes"])
    assert found["here"] == {"jelly": "cooked", "ball": "cooked", "ground": "", "writer": ""}
    assert found["gone"] == ""
