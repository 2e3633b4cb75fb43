"""What cooks took is kept beside what they cooked, and is told of any of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpm_nodes.editor.times import keep_times, kept_times, times_of
from mpm_nodes.graph.files.folder import Folder

EVENTS = [
    {"event": "plan", "out": "r001"},
    {"event": "node", "node": "ball", "frame": 1, "seconds": 0.5},
    {"event": "stages", "node": "fall", "frame": 1, "seconds": 2.0, "stages": {"sort": 0.25, "scatter+gather": 1.5}},
    {"event": "stages", "node": "fall", "frame": 2, "seconds": 2.0, "stages": {"scatter+gather": 1.0}},
    {"event": "node", "node": "fall", "frame": 2, "seconds": 4.0},
    {"event": "node", "node": "ball", "frame": 2, "seconds": 0.25},
]
SPENT = {"nodes": {"ball": 0.75, "fall": 4.0}, "stages": {"fall": {"sort": 0.25, "scatter+gather": 2.5}}}


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    """An output root with a revision of ours, and one that has not begun."""
    for name in ("r001", "r002"):
        (tmp_path / name).mkdir()
    (tmp_path / "r001" / "cook.json").write_text("{}")
    return Folder(tmp_path)


def test_times_are_kept_and_a_resumed_cook_adds_to_them(files, tmp_path):
    """Sums by node, and by solve and stage."""
    assert times_of(EVENTS) == SPENT
    assert kept_times(files, "r001") == {"nodes": {}, "stages": {}}
    keep_times(files, "r001", SPENT)
    assert kept_times(files, "r001") == SPENT
    keep_times(files, "r001", {"nodes": {"fall": 1.0}, "stages": {"fall": {"sort": 1.0}}})
    stages = {"fall": {"sort": 1.25, "scatter+gather": 2.5}}
    assert kept_times(files, "r001") == {"nodes": {"ball": 0.75, "fall": 5.0}, "stages": stages}


def test_nothing_is_written_where_no_cook_has_begun(files, tmp_path):
    """A cook that is resumed there would refuse a folder with a file that is not its own."""
    keep_times(files, "r002", SPENT)
    assert list((tmp_path / "r002").iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "other"}', '{"format": "mpm_nodes.times", "nodes": {"a": NaN}, "stages": {}}']
)
def test_a_damaged_file_tells_nothing(files, tmp_path, text):
    """Not as a fault: the times are a convenience."""
    (tmp_path / "r001" / "times.json").write_text(text)
    assert kept_times(files, "r001")["nodes"] == {}


def test_the_page_is_told_of_any_revision(page, project):
    """Of one that a command line has cooked nothing is known."""
    for name in ("r001", "r002"):
        (project / "shot_cache" / name).mkdir(parents=True)
    (project / "shot_cache" / "r001" / "times.json").write_text(json.dumps({"format": "mpm_nodes.times", **SPENT}))
    assert page.call("times", path="shot.json", revision="r001") == SPENT
    assert page.call("times", path="shot.json", revision="r002")["nodes"] == {}
