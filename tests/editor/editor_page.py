"""A small graph, and how a page calls its server."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import mpm_nodes
from mpm_nodes.editor.server import EditorServer

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WEB = Path(mpm_nodes.__file__).parent / "editor" / "web"

GRAPH = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"cell_size": 0.1, "fps": 24, "start": 1, "end": 3},
    "nodes": {
        "jelly": {"type": "material_library", "knobs": {"name": "jelly"}},
        "ball": {"type": "emit_sphere", "knobs": {"radius": 0.2, "centre": [0, 0.3, 0]}, "inputs": {"material": "jelly"}},
        "ground": {"type": "collide_plane"},
        "fall": {"type": "solve", "inputs": {"sources": ["ball"], "colliders": ["ground"]}},
        "writer": {"type": "write_cache", "inputs": {"particles": "fall.particles"}},
    },
}


class Page:
    """What the page does, and what a stranger may try.

    Attributes:
        server: The running server.
        heads: What the page sends with each call.
        address: Where it connects to.
    """

    def __init__(self, server: EditorServer) -> None:
        self.server = server
        self.address = ("127.0.0.1", server.server_port)
        host = f"127.0.0.1:{server.server_port}"
        self.heads = {
            "Host": host,
            "Origin": f"http://{host}",
            "X-Token": server.token,
            "Content-Type": "application/json",
        }

    def send(self, method: str, path: str, heads: Mapping[str, str | None] | None = None, body: Any = None) -> tuple[int, bytes]:
        """Send a request with the page's headers, changed by `heads` (None leaves one away); return status and body."""
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        length = {"Content-Length": str(len(data))} if method == "POST" else {}
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (length | self.heads | dict(heads or {})).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data if length else None)
            answer = connection.getresponse()
            self.answer = answer
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, name: str, /, **given: Any) -> Any:
        """Make a call and return its answer; an error is raised with its status and message."""
        status, body = self.send("POST", f"/api/{name}", body=given)
        if status != 200:
            raise AssertionError(status, json.loads(body)["error"])
        return json.loads(body) if self.answer.headers["Content-Type"] == "application/json" else body


def node_needed(*packages: str) -> None:
    """Skip where Node or packages of the page's sources are not installed."""
    if shutil.which("node") is None:
        pytest.skip("needs Node")
    for name in packages:
        if not (WEB / "node_modules" / name).is_dir():
            pytest.skip(f"needs {name}: npm ci --ignore-scripts in {WEB}")


LONGEST = 600


def driven(script: str, address: str, folder: Path) -> dict[str, Any]:
    """Run a driver of the page in Chromium, and return what it found; its screenshots are kept where that is asked for."""
    node_needed("playwright-core")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    command = ["node", str(Path(__file__).with_name(script)), address, str(folder), str(WEB)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.stdout.strip(), done.stderr
    kept = os.environ.get("MPM_NODES_KEEP_SCREENSHOTS")
    for picture in folder.glob("*.png") if kept else ():
        shutil.copy(picture, kept)
    return json.loads(done.stdout.splitlines()[-1])
