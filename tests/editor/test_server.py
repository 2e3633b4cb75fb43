"""The server gives nothing to strangers: not to other hosts, origins, methods, tokens, and no file outside its folder."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpm_nodes.editor.calls import CALLS
from mpm_nodes.editor.server import HEADERS

FUZZ = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


def outside(project: Path) -> str:
    return (project.parent / "secret.json").read_text()


def test_the_page_and_nothing_else_is_given_by_get(page):
    """Three files with a strict policy; calls have no answer to GET, and no header lets other sites read."""
    for path in ("/", "/editor.js", "/editor.css"):
        status, body = page.send("GET", path, {"X-Token": None, "Origin": None})
        assert status == 200 and body
        assert "default-src 'none'" in page.answer.headers["Content-Security-Policy"]
        assert "unsafe" not in HEADERS["Content-Security-Policy"]
        assert not [name for name in page.answer.headers if name.lower().startswith("access-control")]
    others = ("/index.html", "/../server.py", "/editor.js?x", "/%2e%2e/cli.py", "/bundle/editor.js")
    for path in (*(f"/api/{name}" for name in CALLS), *others):
        assert page.send("GET", path)[0] == 404
    assert page.send("GET", "/", {"Host": "evil.example"})[0] == 403
    assert page.send("GET", "/", {"Content-Length": "2"})[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW"])
def test_other_methods_do_nothing(page, method):
    """Neither preflights of other sites nor methods that nobody knows."""
    assert page.send(method, "/api/hello")[0] in (400, 501)


REFUSED = {
    "no token": ({"X-Token": None}, 401),
    "a wrong token": ({"X-Token": "x" * 32}, 401),
    "an empty token": ({"X-Token": ""}, 401),
    "another origin": ({"Origin": "http://evil.example"}, 403),
    "no origin": ({"Origin": None}, 403),
    "a file's origin": ({"Origin": "null"}, 403),
    "another port's origin": ({"Origin": "http://127.0.0.1:1"}, 403),
    "https": ({"Origin": "https://127.0.0.1"}, 403),
    "a name that is bound to this machine": ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    "no host": ({"Host": None}, 403),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "plain text, which needs no preflight": ({"Content-Type": "text/plain"}, 415),
    "no length": ({"Content-Length": None}, 411),
    "a negative length": ({"Content-Length": "-1"}, 411),
    "chunks": ({"Transfer-Encoding": "chunked"}, 411),
    "a length without end": ({"Content-Length": "9" * 30}, 413),
    "too long": ({"Content-Length": str(10**9)}, 413),
}


@pytest.mark.parametrize("why", REFUSED)
def test_calls_of_strangers_are_refused(page, project, why):
    """Each call that changes something, with one thing wrong about it."""
    heads, wanted = REFUSED[why]
    before = (project / "shot.json").read_bytes()
    for name in ("save", "cook", "open"):
        status, body = page.send("POST", f"/api/{name}", heads, {"path": "shot.json", "text": "{}", "digest": ""})
        assert status == wanted and set(json.loads(body)) == {"error"}
    assert (project / "shot.json").read_bytes() == before


def test_the_right_host_is_exact(page):
    """`localhost` with the port is the page's own; with a dot, another case or a user before it it is not."""
    port = page.server.server_port
    own = f"localhost:{port}"
    assert page.send("POST", "/api/hello", {"Host": own, "Origin": f"http://{own}"})[0] == 200
    names = ("localhost.", "LOCALHOST", "127.0.0.1.", "a@localhost", "127.1", "[::1]", "0.0.0.0")
    for host in ("localhost", *(f"{name}:{port}" for name in names)):
        assert page.send("POST", "/api/hello", {"Host": host, "Origin": f"http://{host}"})[0] == 403


def test_the_server_is_on_this_machine_alone(page):
    """It is bound to 127.0.0.1."""
    assert page.server.server_address[0] == "127.0.0.1"


TRAVERSALS = [
    "../secret.json", "a/../../secret.json", "..\\secret.json", "/etc/passwd", "C:\\x.json", "//host/x.json", "", ".", "..",
    "./../secret.json", "shot.json/../../secret.json", "link.json", "away/secret.json", "shot.json\0.json", "\ud800.json",
    "con.json", "x" * 2000 + ".json",
    "shot_cache/../../secret.json", ".tmp-shot.json", "pipe.json", "folder.json",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
@pytest.mark.parametrize("name", ["open", "save", "digest", "check", "cook", "revisions", "frame", "particle", "history"])
def test_no_name_leads_out_of_the_folder(page, project, name, path):
    """Neither climbing nor links nor names of other systems; what lies outside is neither read nor written."""
    (project / "link.json").symlink_to("../secret.json")
    (project / "away").symlink_to("..")
    (project / "folder.json").mkdir()
    os.mkfifo(project / "pipe.json")
    held = outside(project)
    text = json.dumps({"format": "mpm_nodes.graph", "version": 1, "nodes": {}})
    text = "{}" if name == "check" else text  # which starts no child
    body = {"path": path, "text": text, "digest": "", "revision": "r001", "mode": "new"}
    body |= {"frame": 1, "layer": "a", "prim": "/a", "index": 0, "id": 0, "begin": 0, "attribute": ""}
    status, answer = page.send("POST", f"/api/{name}", body=body)
    harmless = {"revisions", "digest"}  # of a name below the root, where nothing is
    assert status in (400, 404, 409, 422) or (name in harmless and status == 200)
    assert b"unknown_outside" not in answer
    assert outside(project) == held and (project / "link.json").is_symlink()
    assert sorted(item.name for item in project.parent.iterdir()) == ["project", "secret.json"]


def test_a_cache_that_is_a_link_is_not_followed(page, project):
    """Frames are read below the folder only."""
    (project / "shot_cache").symlink_to(project.parent)
    for name, more in (("revisions", {}), ("frame", {"revision": "r001"}), ("cook", {})):
        status, _ = page.send("POST", f"/api/{name}", body={"path": "shot.json", **more})
        assert status == 422
    for revision in ("..", "r001/../..", "r1", "", "r001\0"):
        assert page.send("POST", "/api/frame", body={"path": "shot.json", "revision": revision})[0] == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SENSIBLE = st.sampled_from(["shot.json", "new", "again", "r001", "demo"])
FIELDS = (
    "path",
    "text",
    "digest",
    "name",
    "revision",
    "frame",
    "attribute",
    "most",
    "since",
    "cook",
    "wait",
    "mode",
    "layers",
    "layer",
    "prim",
    "index",
    "id",
    "begin",
)


@FUZZ
@given(
    st.sampled_from(sorted(CALLS - {"spec", "hello"})) | st.text(max_size=12),
    st.dictionaries(st.sampled_from(FIELDS), JSON | SENSIBLE, max_size=6) | JSON,
)
def test_any_call_has_an_answer(page, name, given_):
    """Whatever a call is made of: JSON with a status that says whose fault it is, never a defect, never a silence."""
    if name == "check" and isinstance(given_, dict):
        given_ = {key: value for key, value in given_.items() if key != "text"}  # sound ones start a child
    if name in ("cook", "sample") and isinstance(given_, dict):
        given_.pop("path", None), given_.pop("name", None)
    status, body = page.send("POST", "/api/" + quote(name), body=json.dumps(given_).encode())
    assert status in (200, 400, 404, 409, 422), body
    if status != 200:
        assert json.loads(body)["error"]


@FUZZ
@given(st.binary(max_size=300))
def test_what_is_no_request_ends_the_connection(page, data):
    """Bytes without sense are answered or dropped, and the server goes on."""
    with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=5) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(4096):
            pass
    assert page.send("GET", "/")[0] == 200


def test_what_is_deep_or_no_object_is_told(page):
    """A call is one object; brackets without end are refused as they are anywhere."""
    for body in (b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000):
        assert page.send("POST", "/api/open", body=body)[0] == 400
    deep = "[" * 5_000 + "]" * 5_000
    assert page.send("POST", "/api/save", body={"path": "x.json", "text": deep, "digest": ""})[0] == 422


def test_a_node_to_cook_to_is_a_name(page):
    """Nothing of it reaches the command line as another argument."""
    for name in ("--out", "a b", "", "../x"):
        status, body = page.send("POST", "/api/cook", body={"path": "shot.json", "to": name})
        assert status == 400 and b"name of a node" in body
