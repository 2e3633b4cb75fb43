"""Requests without sense and callers without manners: nothing is changed, nothing is given away, nobody else has to wait."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from editor_page import GRAPH, Page
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpm_nodes import cli
from mpm_nodes.commands.edit import chosen_token
from mpm_nodes.data import InputError
from mpm_nodes.editor import calls, program
from mpm_nodes.editor.calls import CALLS
from mpm_nodes.editor.server import EditorServer, serve_in_background

TOKEN = "a-token_of.24~characters"
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Child:
    """Stands for a cook: a fuzz test starts none."""

    over, number, path = True, 1, "shot.json"

    def __init__(self, path: str, words: list[str], spec: Any, ending: Any) -> None:
        assert path == "shot.json" and all(isinstance(word, str) for word in words)

    def since(self, number: int, wait: float) -> list[dict[str, Any]]:
        """Nothing was told."""
        return []

    def memory(self) -> None:
        """It holds none."""


@pytest.fixture
def alone(page: Page, monkeypatch) -> Page:
    """A page whose calls start no child."""

    def answer(words: list[str], entry: str = "", given: str = "") -> str:
        raise InputError("no child is started")

    def ask(**wanted: Any) -> bytes:
        raise InputError("no child is started")

    monkeypatch.setattr(program, "answer", answer)
    monkeypatch.setattr(program, "Cook", Child)
    monkeypatch.setattr(page.server.calls.reader, "ask", ask)
    monkeypatch.setattr(page.server.calls.curve_reader, "ask", ask)
    return page


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def raw(page: Page, data: bytes, seconds: float = 10.0) -> bytes:
    """Send bytes and return all that is answered until the server hangs up."""
    with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=seconds) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "get", "PRI", "\u00e9"])
NAMES = st.sampled_from(sorted(CALLS)) | st.sampled_from(["answer", "close", "__init__", "known", "project", "_cook", ""])
PATHS = (
    NAMES.map(lambda name: f"/api/{name}")
    | st.sampled_from(["/", "/editor.js", "/editor.css", "/../secret.json", "/%2e%2e/secret.json", "//x", "http://x/", "*", "/api"])
    | st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=30)
)
ODD = {
    "Host": ["evil.example", "127.0.0.1", "localhost:1", "", "HOST"],
    "Origin": ["null", "http://evil.example", "", "ORIGIN/", "https://127.0.0.1"],
    "X-Token": ["", "x" * 32, "TOKEN "[:3], "\xe9"],
    "Content-Type": ["text/plain", "application/json; charset=utf-8", "multipart/form-data"],
    "Content-Length": ["-1", "1e3", "99999999999999999999", "7", ""],
    "Transfer-Encoding": ["chunked", "identity"],
    "Connection": ["keep-alive", "close", "upgrade"],
    "Expect": ["100-continue"],
    "Range": ["bytes=0-1"],
    "Access-Control-Request-Method": ["POST"],
}
HEADERS = st.dictionaries(st.sampled_from(sorted(ODD)), st.integers(0, 5), max_size=3)
PLACES = ("shot.json", "../secret.json", "x.json", "r001", "again", "demo", json.dumps(GRAPH), "", None, 1, True, [], {})
FIELDS = ("path", "text", "digest", "name", "revision", "frame", "mode", "first", "of", "replace", "cook", "since")
BODIES = st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(PLACES)) | st.binary(max_size=60)


@FUZZ
@given(METHODS, PATHS, HEADERS, BODIES, st.booleans())
def test_no_request_is_a_defect_and_none_of_a_stranger_changes_anything(alone, method, path, odd, body, known):
    """Methods, paths, headers and bodies at random, with and without the token: an answer, and the files as they were."""
    page, folder = alone, alone.server.calls.project.root.parent
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    heads = dict(page.heads) | {"Content-Length": str(len(data))}
    strange = not known
    if not known:
        heads.pop("X-Token")
    for name, n in odd.items():
        heads[name] = ODD[name][n % len(ODD[name])]
        strange = strange or name in ("Host", "Origin", "X-Token", "Content-Type", "Transfer-Encoding")
    if method in ("GET", "get"):
        heads.pop("Content-Length", None)
    lines = [f"{method} {path or '/'} HTTP/1.1", *(f"{name}: {value}" for name, value in heads.items()), "", ""]
    before = tree(folder)
    said = raw(page, "\r\n".join(lines).encode("latin-1", "replace") + data)
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", said)
    code = int(status[1]) if status else 0
    assert code < 500 or code in (501, 505), said[:300]
    assert b"unknown_outside" not in said and b"access-control" not in said.lower()
    assert tree(folder).get("secret.json") == before["secret.json"]
    if strange or method != "POST":
        assert tree(folder) == before, (method, path, odd)
        assert code != 200 or (method == "GET" and path in ("", "/", "/editor.js", "/editor.css"))


def test_the_check_before_can_fail(alone, project):
    """With all that the page sends, the same request does change the file."""
    digest = alone.call("digest", path="shot.json")["digest"]
    alone.call("save", path="shot.json", text=json.dumps(GRAPH), digest=digest)
    assert (project / "shot.json").read_text() == json.dumps(GRAPH)
    assert alone.call("cook", path="shot.json") == {"cooking": "shot.json"}


def test_a_request_that_drips_is_hung_up_on(page):
    """Byte by byte, in its head or in its body, as in silence; a call that waits for an answer is not."""
    page.server.slowest = 0.6
    head = "".join(f"{name}: {value}\r\n" for name, value in page.heads.items())
    for begin in (b"GET / HT", f"POST /api/hello HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\n{{".encode(), b""):
        with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=10) as slow:
            slow.sendall(begin)
            ended, end = False, time.monotonic() + 10.0
            while not ended and time.monotonic() < end:
                try:
                    slow.sendall(b"x" if begin else b"")
                    slow.settimeout(0.1)
                    ended = slow.recv(1000) == b""
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
            assert ended
    page.server.calls.hello = lambda given: time.sleep(1.5) or {}
    assert page.call("hello") == {}


def test_too_many_connections_are_refused_and_make_room_again(page):
    """The sixth of five gets nothing; once one has gone, the next is answered."""
    page.server.most = 5
    held = [socket.create_connection(("127.0.0.1", page.server.server_port), timeout=5) for _ in range(5)]
    end = time.monotonic() + 10.0
    while len(page.server._open) < 5 and time.monotonic() < end:
        time.sleep(0.01)
    with pytest.raises(OSError):
        page.send("GET", "/")
    for each in held:
        each.close()
    while page.server._open and time.monotonic() < end:
        time.sleep(0.01)
    assert page.send("GET", "/")[0] == 200


def test_bodies_are_bounded_before_they_are_read(page):
    """Of a stranger little is read, of the page no more than a graph of the largest size."""
    head = "".join(f"{name}: {value}\r\n" for name, value in page.heads.items() if name != "X-Token")
    for token, wanted in (("", b" 401 "), (f"X-Token: {page.server.token}\r\n", b" 413 ")):
        said = raw(page, f"POST /api/save HTTP/1.1\r\n{head}{token}Content-Length: 50000000\r\n\r\n".encode())
        assert wanted in said.split(b"\r\n")[0] + b" "


def test_an_address_of_the_network_needs_a_token(tmp_path, monkeypatch, capsys):
    """From the command line, a file or the environment; short ones and odd ones are refused, and so is every address at once."""
    monkeypatch.delenv("MPM_NODES_TOKEN", raising=False)
    assert chosen_token("", "127.0.0.1") == ""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert chosen_token(f"@{tmp_path}/token", "workstation") == chosen_token(TOKEN, "workstation") == TOKEN
    for given_, address in (("", "workstation"), ("short", "workstation"), ("x" * 15 + "/", "127.0.0.1"), (TOKEN, "0.0.0.0")):
        with pytest.raises(InputError):
            chosen_token(given_, address)
    assert cli.main(["edit", "--listen", "192.0.2.1", "--root", str(tmp_path)]) == 5
    assert "--token" in capsys.readouterr().err
    monkeypatch.setenv("MPM_NODES_TOKEN", TOKEN)
    assert chosen_token("", "workstation") == TOKEN
    assert cli.main(["edit", "--listen", "192.0.2.1", "--root", str(tmp_path), "--no-browser"]) == 5
    assert "cannot be opened" in capsys.readouterr().err


def test_another_address_is_as_exact_as_this_one(project):
    """Its own name with its port is the only host and origin, and the token is the one that was chosen."""
    server = EditorServer(project, "shot.json", address="127.0.0.2", token=TOKEN)
    thread = serve_in_background(server)
    page = Page(server)
    try:
        port = server.server_port
        assert server.server_address[0] == "127.0.0.2" and server.url == f"http://127.0.0.2:{port}/#{TOKEN}"

        def asked(host: str, token: str = TOKEN) -> bytes:
            lines = [f"Host: {host}", f"Origin: http://{host}", f"X-Token: {token}", "Content-Type: application/json"]
            request = "\r\n".join(["POST /api/digest HTTP/1.1", *lines, "Content-Length: 20", "", '{"path":"shot.json"}'])
            with socket.create_connection(("127.0.0.2", port), timeout=10) as connection:
                connection.sendall(request.encode())
                return connection.recv(1000).split(b" ")[1]

        assert asked(f"127.0.0.2:{port}") == b"200"
        assert {asked(f"{name}:{port}") for name in ("127.0.0.1", "localhost", "evil.example")} == {b"403"}
        assert asked(f"127.0.0.2:{port}", TOKEN + "x") == b"401"
        with pytest.raises(OSError):
            page.send("GET", "/")  # which asks 127.0.0.1
    finally:
        server.shutdown()
        server.close()
        thread.join(5.0)


def test_every_call_is_fuzzed():
    """A new call is among those that are made at random."""
    assert all(hasattr(calls.Calls, name) for name in CALLS)
