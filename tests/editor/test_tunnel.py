"""The page through a plain TCP tunnel, as `ssh -L` makes one: by the same port at both ends, or refused with the cure."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest


class _Ends(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with socket.create_connection(self.server.far) as far:  # type: ignore[attr-defined]
            back = threading.Thread(target=pumped, args=[far, self.request], daemon=True)
            back.start()
            pumped(self.request, far)
            back.join(30.0)


def pumped(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on in small pieces, until one end closes."""
    with contextlib.suppress(OSError):
        while data := source.recv(1000):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class _Forwarder(socketserver.ThreadingTCPServer):
    daemon_threads = True
    far: tuple[str, int]


@contextlib.contextmanager
def tunnel(near: tuple[str, int], far: tuple[str, int]) -> Iterator[int]:
    """Forward connections from one address to another; gives the port of the near end."""
    with _Forwarder(near, _Ends) as server:
        server.far = far
        thread = threading.Thread(target=server.serve_forever, args=[0.05], daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(5.0)


def test_a_tunnel_of_the_same_port_gives_the_page_and_its_calls(page: Any):
    """127.0.0.2 stands for the other machine, whose browser calls its own end 127.0.0.1."""
    direct = {"spec": page.call("spec"), "picture": page.call("picture", name="snow", of="quick")}
    port = page.server.server_port
    try:
        with tunnel(("127.0.0.2", port), ("127.0.0.1", port)):
            page.address = ("127.0.0.2", port)
            for path in ("/", "/editor.js", "/editor.css"):
                assert page.send("GET", path, {"X-Token": None, "Origin": None})[0] == 200
            assert page.call("spec") == direct["spec"] and page.call("picture", name="snow", of="quick") == direct["picture"]
            shot = page.call("open", path="shot.json")
            text = shot["text"].replace('"radius": 0.2', '"radius": 0.25')
            digest = page.call("save", path="shot.json", text=text, digest=shot["digest"])["digest"]
            assert digest != shot["digest"] and page.call("digest", path="shot.json")["digest"] == digest
            assert page.send("POST", "/api/hello", {"X-Token": "x" * 32})[0] == 401
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        pytest.skip("127.0.0.2 is not an address of this machine")


def test_a_tunnel_of_another_port_is_told_what_to_do(page: Any):
    """A page may be called by one name alone: what a browser says of another port is what a strange site would say."""
    with tunnel(("127.0.0.1", 0), ("127.0.0.1", page.server.server_port)) as port:
        page.address = ("127.0.0.1", port)
        heads = {"Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}"}
        for method, path in (("GET", "/"), ("POST", "/api/hello")):
            status, body = page.send(method, path, heads)
            assert status == 403 and f"port {page.server.server_port} at both ends" in json.loads(body)["error"]
