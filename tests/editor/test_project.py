"""What the page saves, and what else writes its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from editor_page import GRAPH

from mpm_nodes.commands.edit import chosen
from mpm_nodes.data import InputError
from mpm_nodes.editor.project import Project


def changed(text: str) -> str:
    return text.replace("0.2", "0.25")


def test_a_file_is_read_and_written(page, project):
    """The text as it is; a saved file has the bytes that were sent, and its permissions."""
    (project / "shot.json").chmod(0o640)
    opened = page.call("open", path="shot.json")
    assert json.loads(opened["text"]) == GRAPH
    saved = page.call("save", path="shot.json", text=changed(opened["text"]), digest=opened["digest"])
    assert (project / "shot.json").read_text() == changed(opened["text"])
    assert (project / "shot.json").stat().st_mode & 0o777 == 0o640
    assert page.call("digest", path="shot.json") == saved
    assert sorted(item.name for item in project.iterdir()) == ["shot.json"]


def test_what_another_program_has_written_is_not_overwritten(page, project):
    """Saving tells what is on disk now; only a save that names it goes on. So do two pages on one graph."""
    first, second = page.call("open", path="shot.json"), page.call("open", path="shot.json")
    page.call("save", path="shot.json", text=changed(first["text"]), digest=first["digest"])
    status, body = page.send("POST", "/api/save", body={"path": "shot.json", "text": second["text"], "digest": second["digest"]})
    assert status == 409 and (project / "shot.json").read_text() == changed(first["text"])
    page.call("save", path="shot.json", text=second["text"], digest=json.loads(body)["digest"])
    assert (project / "shot.json").read_text() == second["text"]
    (project / "shot.json").unlink()
    assert page.send("POST", "/api/save", body={"path": "shot.json", "text": second["text"], "digest": second["digest"]})[0] == 409


def test_a_new_file_does_not_replace_one(page, project):
    """A new graph has no digest; a name that is taken is a conflict, and folders are made."""
    text = json.dumps(GRAPH)
    assert page.send("POST", "/api/save", body={"path": "shot.json", "text": text, "digest": ""})[0] == 409
    page.call("save", path="new/one.json", text=text, digest="")
    assert (project / "new/one.json").read_text() == text
    assert page.call("hello")["graphs"] == ["shot.json", "new/one.json"]


NO_GRAPHS = ("", "{}", "[]", "{", '{"format": "x"}', '{"a": 1, "a": 2}', '{"format": "mpm_nodes.graph", "x": NaN}')


@pytest.mark.parametrize("text", NO_GRAPHS)
def test_what_is_no_graph_is_neither_written_nor_read(page, project, text):
    """A file of something else stays what it is."""
    assert page.send("POST", "/api/save", body={"path": "bad.json", "text": text, "digest": ""})[0] == 422
    assert not (project / "bad.json").exists()
    (project / "bad.json").write_text(text)
    assert page.send("POST", "/api/open", body={"path": "bad.json"})[0] == 422
    if "mpm_nodes.graph" not in text:
        assert "bad.json" not in page.call("hello")["graphs"]


def test_samples_are_copied_with_what_they_read_and_stay_the_users(page, project):
    """A sample gets a folder of its own with its geometry; a second time nothing in it is touched."""
    opened = page.call("sample", name="demo")
    assert opened["path"] == "demo/demo.json" and (project / "demo/trivet.vdb").is_file()
    saved = page.call("save", path="demo/demo.json", text=opened["text"] + "\n", digest=opened["digest"])
    assert page.call("sample", name="demo")["digest"] == saved["digest"]
    for each in page.call("hello")["samples"]:
        assert each["doc"] and (not each["picture"] or page.call("picture", name=each["name"]).startswith(b"\xff\xd8"))
    for name in ("../demo", "", "demo.json", "no_such"):
        assert page.send("POST", "/api/sample", body={"name": name})[0] == 422
        assert page.send("POST", "/api/picture", body={"name": name})[0] == 404


def test_the_folder_is_where_the_graph_is(tmp_path, monkeypatch):
    """The working folder, else the graph's own; a graph outside a given folder is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here/inner").mkdir(parents=True)
    assert chosen(None, None) == (tmp_path.resolve(), "")
    assert chosen(tmp_path / "here/a.json", None) == (tmp_path.resolve(), "here/a.json")
    monkeypatch.chdir(tmp_path / "here/inner")
    assert chosen(tmp_path / "here/a.json", None) == ((tmp_path / "here").resolve(), "a.json")
    with pytest.raises(InputError, match="does not lie below"):
        chosen(tmp_path / "here/a.json", tmp_path / "here/inner")


def test_a_wedge_that_a_farm_has_cooked_is_looked_at_where_it_lies(page, project):
    """Beside its graph; what the page cooks of it lies apart, and then counts."""
    wedge = project / "study/wedges/000"
    (wedge / "cache/r001").mkdir(parents=True)
    (wedge / "graph.json").write_text(json.dumps(GRAPH))
    name = "study/wedges/000/graph.json"
    assert name in page.call("hello")["graphs"]
    assert page.call("revisions", path=name) == {"revisions": ["r001"]}
    again = page.send("POST", "/api/cook", body={"path": name, "mode": "again", "of": "r001", "frame": 2})
    assert again[0] == 422 and b"a farm has cooked this wedge" in again[1]
    (wedge / "other.json").write_text(json.dumps(GRAPH))
    assert page.call("revisions", path="study/wedges/000/other.json") == {"revisions": []}
    (wedge / "graph_cache/r001").mkdir(parents=True)
    (wedge / "graph_cache/r002").mkdir(parents=True)
    assert page.call("revisions", path=name) == {"revisions": ["r001", "r002"]}


def test_a_wedge_s_folder_that_leads_out_is_not_read(page, project, tmp_path_factory):
    """A link in place of the folder."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "r001").mkdir()
    (project / "w").mkdir()
    (project / "w/graph.json").write_text(json.dumps(GRAPH))
    (project / "w/cache").symlink_to(outside)
    assert page.call("revisions", path="w/graph.json") == {"revisions": []}


def test_a_json_file_that_is_not_a_graph_is_listed_with_a_word_why(project: Path):
    """A graph whose format stands late is one; files of folders below are not looked into."""
    graph = json.loads((project / "shot.json").read_text())
    (project / "late.json").write_text(json.dumps({"editor": {"note": "x" * 300}, **graph}))
    texts = {"list.json": "[1, 2]", "half.json": '{"format": "mpm_n', "camera.json": '{"format": "camera"}'}
    for name, text in texts.items():
        (project / name).write_text(text)
    (project / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (project / "link.json").symlink_to(project.parent / "secret.json")
    (project / "below").mkdir()
    (project / "below" / "camera.json").write_text("{}")
    opened = Project(project)
    assert opened.graphs() == ["late.json", "shot.json"]
    found = {each["name"]: each["why"] for each in opened.others()}
    found.pop("link.json", None)  # or it is passed over
    assert found == {"list.json": "other", "half.json": "damaged", "camera.json": "other", "bytes.json": "damaged"}
