"""Edits that are not saved: kept beside the file, found again, thrown away, never in the place of the file."""

from __future__ import annotations

import json

import pytest
from editor_page import GRAPH

TEXT = json.dumps(GRAPH | {"settings": {"end": 7}})


def test_a_draft_is_kept_beside_its_file_and_found_again(page, project):
    """The file keeps its bytes; the draft says from which file it was made, and is the user's alone."""
    before, digest = (project / "shot.json").read_bytes(), page.call("digest", path="shot.json")["digest"]
    assert page.call("draft", path="shot.json") == {}
    page.call("draft", path="shot.json", text=TEXT, digest=digest)
    found = page.call("draft", path="shot.json")
    assert (found["text"], found["digest"]) == (TEXT, digest) and found["time"] > 1e9
    assert (project / "shot.json").read_bytes() == before
    assert (project / ".shot.json.unsaved").stat().st_mode & 0o777 == 0o600
    assert page.call("hello")["graphs"] == ["shot.json"] and page.call("hello")["drafts"] == []
    for _ in range(2):
        page.call("draft", path="shot.json", text="", digest="")
        assert page.call("draft", path="shot.json") == {} and sorted(path.name for path in project.iterdir()) == ["shot.json"]


def test_a_graph_that_was_never_saved_is_offered(page, project):
    """Those of the folder itself; what has a file is opened by it."""
    page.call("draft", path="fresh.json", text=TEXT, digest="")
    page.call("draft", path="deep/fresh.json", text=TEXT, digest="")
    assert page.call("hello")["drafts"] == ["fresh.json"]
    assert (project / "deep" / ".fresh.json.unsaved").is_file()


@pytest.mark.parametrize("held", ["{", "[]", "{}", json.dumps({"format": "mpm_nodes.draft", "digest": "", "text": "{}"})])
def test_a_damaged_draft_is_none(page, project, held):
    """It hinders nothing."""
    (project / ".shot.json.unsaved").write_text(held)
    assert page.call("draft", path="shot.json") == {}


def test_only_graphs_are_kept_and_only_under_their_names(page, project):
    """By the rules of saving."""
    for given in ({"path": "shot.json", "text": "{}"}, {"path": "../shot.json", "text": TEXT}, {"path": "x.txt", "text": TEXT}):
        assert page.send("POST", "/api/draft", body={"digest": "", **given})[0] == 422
    (project / ".shot.json.unsaved").symlink_to(project.parent / "secret.json")
    before = (project.parent / "secret.json").read_bytes()
    page.call("draft", path="shot.json", text=TEXT, digest="")
    assert (project.parent / "secret.json").read_bytes() == before
    assert page.call("draft", path="shot.json")["text"] == TEXT
