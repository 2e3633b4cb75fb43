"""A cook that is looked at in a real browser: live curves and facts, a branch from a frame, stop and resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from editor_page import GRAPH, Page, driven


@pytest.fixture
def found(page: Page, project: Path) -> dict:
    """What `cook_live.mjs` found, with a shot that would cook for minutes."""
    long = json.loads(json.dumps(GRAPH))
    long["settings"]["end"] = 2000
    (project / "shot.json").write_text(json.dumps(long, indent=1))
    return driven("cook_live.mjs", page.server.url, project)


def test_a_cook_is_followed_branched_and_resumed(found):
    """Curves of the frames so far, what limits the time step, and revisions that take the frames before the one that is shown."""
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == []
    assert "first frame" in found["empty"]
    curves = {"Particles", "Mass", "Energy", "Momentum", "Shortest time step", "Substeps", "Seconds a frame", "Seconds by stage"}
    assert curves <= set(found["panels"])
    for fact in ("Frame", "of 2000", "Time step", "Limited by", "wave", "Particles", "Time left"):
        assert fact in found["facts"], fact
    assert found["clicked"] > 1 and found["particles"] > 10 and "kinetic" in found["energy"] and "of gravity" in found["energy"]
    assert found["offered"] == 0
    assert "Cooks with [0, 0.3, 0]" in found["atKnob"] and "Branch from frame" in found["atKnob"] and found["elsewhere"] == 1
    assert found["taken"]["from"] == "r001" and found["taken"]["last"] == found["branchedAt"] - 1
    assert found["centre"] == 0.05
    assert set(found["stopping"].split(",")) == {"true"}
    assert found["menu"] == [True, True, True]
    assert found["factsGone"] == 0 and found["resumed"] == ["r002", True]
    assert found["endThen"] == found["end"] > 7
    assert found["again"]["from"] == "r001" and found["again"]["last"] == 4
