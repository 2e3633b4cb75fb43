"""Edits that are not saved: kept beside the file, found again, thrown away, never in the place of the file."""

from __future__ import annotations

import json

import pytest
from editor_page import GRAPH

TEXT, NEWER = (json.dumps(GRAPH | {"settings": {"end": end}}) for end in (7, 8))


def test_a_draft_is_kept_beside_its_file_and_found_again(page, project):
    """The file keeps its bytes; the draft says from which file it was made, and is the user's alone."""
    before, digest = (project / "shot.json").read_bytes(), page.call("digest", path="shot.json")["digest"]
    assert page.call("draft", path="shot.json") == {"drafts": []}
    page.call("draft", path="shot.json", drafts=[{"text": TEXT, "digest": digest}])
    (found,) = page.call("draft", path="shot.json")["drafts"]
    assert (found["text"], found["digest"]) == (TEXT, digest) and found["time"] > 1e9
    assert (project / "shot.json").read_bytes() == before
    assert (project / ".shot.json.unsaved").stat().st_mode & 0o777 == 0o600
    assert page.call("hello")["graphs"] == ["shot.json"] and page.call("hello")["drafts"] == []
    for _ in range(2):
        page.call("draft", path="shot.json", drafts=[])
        assert page.call("draft", path="shot.json") == {"drafts": []}
        assert sorted(path.name for path in project.iterdir()) == ["shot.json"]


def test_older_drafts_are_kept_with_their_time(page, project):
    """What was edited before an older draft was restored or thrown away does not take its place; one of 0.2.0 is read as well."""
    old = {"format": "mpm_nodes.draft", "digest": "d", "text": TEXT}
    (project / ".shot.json.unsaved").write_text(json.dumps(old))
    (older,) = page.call("draft", path="shot.json")["drafts"]
    assert older["text"] == TEXT and older["digest"] == "d" and older["time"] > 1e9
    older["time"] -= 3600.0
    page.call("draft", path="shot.json", drafts=[{"text": NEWER, "digest": ""}, older])
    newer, kept = page.call("draft", path="shot.json")["drafts"]
    assert newer["text"] == NEWER and newer["time"] > older["time"] + 3000.0 and kept == older


@pytest.mark.parametrize("bad", [None, {"time": -1}, {"time": "now"}, {"time": 1e300}, {"text": ""}, {"digest": 1}])
def test_a_malformed_draft_is_refused(page, project, bad):
    """And what was kept stays."""
    page.call("draft", path="shot.json", drafts=[{"text": TEXT, "digest": ""}])
    drafts = [bad and {"text": NEWER, "digest": "", **bad}]
    assert page.send("POST", "/api/draft", body={"path": "shot.json", "drafts": drafts})[0] == 400
    assert page.call("draft", path="shot.json")["drafts"][0]["text"] == TEXT


def test_a_graph_that_was_never_saved_is_offered(page, project):
    """Those of the folder itself; what has a file is opened by it."""
    for path in ("fresh.json", "deep/fresh.json"):
        page.call("draft", path=path, drafts=[{"text": TEXT, "digest": ""}])
    assert page.call("hello")["drafts"] == ["fresh.json"]
    assert (project / "deep" / ".fresh.json.unsaved").is_file()


@pytest.mark.parametrize("held", ["{", "[]", "{}", json.dumps({"format": "mpm_nodes.draft", "digest": "", "text": "{}"})])
def test_a_damaged_draft_is_none(page, project, held):
    """It hinders nothing."""
    (project / ".shot.json.unsaved").write_text(held)
    assert page.call("draft", path="shot.json") == {"drafts": []}


def test_only_graphs_are_kept_and_only_under_their_names(page, project):
    """By the rules of saving."""
    for given in ({"path": "shot.json", "text": "{}"}, {"path": "../shot.json", "text": TEXT}, {"path": "x.txt", "text": TEXT}):
        body = {"path": given["path"], "drafts": [{"text": given["text"], "digest": ""}]}
        assert page.send("POST", "/api/draft", body=body)[0] == 422
    (project / ".shot.json.unsaved").symlink_to(project.parent / "secret.json")
    before = (project.parent / "secret.json").read_bytes()
    page.call("draft", path="shot.json", drafts=[{"text": TEXT, "digest": ""}])
    assert (project.parent / "secret.json").read_bytes() == before
    assert page.call("draft", path="shot.json")["drafts"][0]["text"] == TEXT
