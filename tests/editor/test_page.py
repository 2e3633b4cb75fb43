"""The page in a real browser: a graph is edited, saved, cooked and looked at, by mouse and keyboard."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from editor_page import GRAPH, WEB, Page, node_needed

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
LONGEST = 600


@pytest.fixture
def found(page: Page, project: Path) -> dict:
    """What `page.mjs` found."""
    node_needed("playwright-core")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    command = ["node", str(Path(__file__).with_name("page.mjs")), page.server.url, str(project), str(WEB)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.stdout.strip(), done.stderr
    kept = os.environ.get("MPM_NODES_KEEP_SCREENSHOTS")
    for picture in project.glob("*.png") if kept else ():
        shutil.copy(picture, kept)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_graph_is_edited_cooked_and_looked_at(found, project):
    """Nothing is asked of other machines, nothing fails in the console, and the file is the one that other hosts read."""
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == [] and found["unnamed"] == []
    assert found["faint"] == [], "\n".join(found["faint"])
    assert (found["cards"], found["wires"]) == (5, 4)
    assert found["tokenIsGone"] and found["firstPicture"] < 30_000
    assert found["undone"] == "0.2" and found["knobIsAll"]
    assert found["limited"] == "0.25"
    assert "Sources takes Particles" in found["refused"] and found["stillWires"] == 4
    assert found["wired"] == 5 and found["saved"]["forces"] == ["wind"] and found["placed"]
    assert found["ledTo"] == "ball" and "has no wire" in found["problem"]
    assert found["wiresAgain"] == 5 and found["folded"] == [False, True]
    assert found["copied"]["format"] == GRAPH["format"] and list(found["copied"]["nodes"]) == ["ground"]
    assert found["stages"] == 14 and found["own"] == {"flip_fraction": 0.9} and found["preset"] == "default"
    assert found["keptOther"] == {"other": 1}
    assert found["points"] > 100 and "m/s" in found["legend"] and " s" in found["seconds"]
    assert found["samples"] > 30 and found["sample"]
    assert (project / "shot_cache" / "r001" / "cook.json").is_file()
