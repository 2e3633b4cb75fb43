"""The page's server: the built page by GET, everything else by POST with JSON, a token and exact names of host and origin.

It listens on this machine alone where no other address is asked for. Whoever has the token may read and write graph files below
the project's folder and start cooks of them, which is what the person who started it may do.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import socketserver
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import mpm_nodes
from mpm_nodes.data import MpmNodesError
from mpm_nodes.editor.calls import Calls, Refused
from mpm_nodes.editor.project import Conflict

__all__ = ["EditorServer"]

ADDRESS = "127.0.0.1"
LARGEST_BODY = 40 * 2**20
"""Bytes of a call: a graph file of the largest size, escaped."""
SLOWEST = 60.0
"""Seconds until a connection has sent a whole request, or has taken a whole answer."""
MOST_CONNECTIONS = 64
"""Connections at once: six of each browser."""
PAGES = {"/": "index.html", "/editor.js": "editor.js", "/editor.css": "editor.css"}
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class EditorServer(ThreadingHTTPServer):
    """The server of one project.

    Attributes:
        token: What every call has to carry; in the page's address behind `#`, which no browser sends anywhere.
        calls: What the page may ask for.
        hosts: What browsers may call this machine: other names may be bound to its address by anybody.
    """

    daemon_threads = True
    slowest, most = SLOWEST, MOST_CONNECTIONS

    def __init__(self, root: Path, graph: str = "", port: int = 0, address: str = ADDRESS, token: str = "") -> None:
        self._waited_for: dict[socket.socket, float] = {}
        self._open: set[socket.socket] = set()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)
        self.token = token or secrets.token_urlsafe(24)
        self.calls = Calls(root, graph)
        self.name = f"[{address}]" if ":" in address else address
        self.hosts = {f"{name}:{self.server_port}" for name in (self.name, *(["localhost"] if address == ADDRESS else []))}

    def server_bind(self) -> None:
        """Bind without a look for the name of this machine, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    @property
    def url(self) -> str:
        """Address of the page, with the token."""
        return f"http://{self.name}:{self.server_port}/#{self.token}"

    @property
    def elsewhere(self) -> str:
        """What callers by another name or port are told."""
        port = self.server_port
        return f"this is not the address of the page, {self.name}:{port}; a tunnel has port {port} at both ends"

    # ---------------------------------------------------------------- connections
    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own; where there are too many, hang up."""
        if len(self._open) >= self.most:
            self.shutdown_request(request)
            return
        self._open.add(request)
        self.wait_for(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.discard(request)
        self._waited_for.pop(request, None)
        super().shutdown_request(request)

    def wait_for(self, connection: socket.socket) -> None:
        """Hang up in `slowest` seconds, unless a whole request has come by then."""
        self._waited_for[connection] = time.monotonic() + self.slowest

    def has_come(self, connection: socket.socket) -> None:
        """Give a request that was read all the time that its answer takes."""
        self._waited_for.pop(connection, None)

    def service_actions(self) -> None:
        """Hang up on those that send their request byte by byte; called ten times a second."""
        now = time.monotonic()
        for connection, end in list(self._waited_for.items()):
            if now > end:
                self._waited_for.pop(connection, None)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it

    def close(self) -> None:
        """End what was started, and stop listening."""
        self.calls.close()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break; tell of defects."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    server: EditorServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = f"mpm-nodes/{mpm_nodes.__version__}", ""
    timeout = SLOWEST

    def handle_one_request(self) -> None:
        """Take the next request of the connection."""
        self.server.wait_for(self.connection)
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal to what the user should see."""

    def do_GET(self) -> None:
        """Give a file of the built page; it holds nothing of the user's."""
        self.server.has_come(self.connection)
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.send_error(400, "GET has no body")
        elif self.headers.get("Host") not in self.server.hosts:
            self._say(403, self.server.elsewhere)
        elif self.path not in PAGES:
            self._say(404, "there is no such page")
        else:
            name = PAGES[self.path]
            data = (files("mpm_nodes.editor") / "bundle" / name).read_bytes()
            self._send(200, data, TYPES[Path(name).suffix])

    def do_POST(self) -> None:
        """Answer a call: `/api/NAME` with a JSON object."""
        fault = self._fault()
        length = self.headers.get("Content-Length", "")
        if fault:
            self.close_connection = True
            if length.isascii() and length.isdigit() and len(length) < 6:
                self.rfile.read(int(length))  # so that the answer is not lost with it
            self._say(*fault)
            return
        body = self.rfile.read(int(length))
        self.server.has_come(self.connection)
        if len(body) < int(length):
            self.close_connection = True  # it was hung up on, or hung up
            return
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            self._say(400, "a call is one JSON object")
            return
        try:
            found = self.server.calls.answer(self.path.removeprefix("/api/"), given)
        except Refused as error:
            self._say(error.status, str(error))
        except Conflict as error:
            self._say(409, str(error), digest=error.digest)
        except MpmNodesError as error:
            self._say(422, str(error))
        except OSError as error:
            self._say(422, f"{error.filename or 'a file'}: {error.strerror or error}")
        except Exception:  # a defect: the page is told, and the terminal says where
            traceback.print_exc()
            self._say(500, "a defect of mpm-nodes; the terminal says more, report it")
        else:
            binary = isinstance(found, bytes)
            data = found if binary else json.dumps(found, ensure_ascii=False).encode("utf-8", "backslashreplace")
            self._send(200, data, "application/octet-stream" if binary else "application/json")

    def _fault(self) -> tuple[int, str] | None:
        """Return why a call is refused before it is read, None where it is not."""
        heads = self.headers
        host, length = heads.get("Host", ""), heads.get("Content-Length", "")
        if host not in self.server.hosts or any(len(heads.get_all(name) or ()) > 1 for name in ("Host", "Origin", "X-Token")):
            return 403, self.server.elsewhere
        if heads.get("Origin") != f"http://{host}":
            return 403, "only the page itself may call"
        if not hmac.compare_digest(heads.get("X-Token", "").encode("utf-8", "replace"), self.server.token.encode()):
            return 401, "the token is wrong; open the address that mpm-nodes printed"
        if heads.get("Content-Type") != "application/json":
            return 415, "calls are JSON"
        told = len(heads.get_all("Content-Length") or ()) == 1 and length.isascii() and length.isdigit()
        if "Transfer-Encoding" in heads or not told:
            return 411, "a call says how long it is"
        if int(length[:12]) > LARGEST_BODY or len(length) > 12:
            return 413, "the call is too long"
        if not self.path.startswith("/api/"):
            return 404, "there is no such call"
        return None

    def _say(self, status: int, message: str, **more: Any) -> None:
        self._send(status, json.dumps({"error": message, **more}).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is not GET or POST, or no HTTP, in our form, and hang up."""
        self.close_connection = True
        self._say(code, message or "the request is not understood")


def serve_in_background(server: EditorServer) -> threading.Thread:
    """Start a thread that serves until `server.shutdown()`."""
    thread = threading.Thread(target=server.serve_forever, args=[0.1], name="editor", daemon=True)
    thread.start()
    return thread
