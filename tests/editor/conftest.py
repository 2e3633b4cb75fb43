"""A running server, and its page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor_page import GRAPH, Page

from mpm_nodes.editor import program
from mpm_nodes.editor.calls import Calls
from mpm_nodes.editor.server import EditorServer, serve_in_background


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one graph, and a file outside it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "secret.json").write_text(json.dumps(GRAPH | {"editor": {"note": "unknown_outside"}}))
    (tmp_path / "project" / "shot.json").write_text(json.dumps(GRAPH, indent=1))
    return tmp_path / "project"


@pytest.fixture(scope="session")
def told() -> dict[str, Any]:
    """What the command line tells each server once: seconds that a server of every test would take."""
    return {"known": json.loads(program.answer(["host", "spec"])), "told_samples": Calls(Path(), "").told_samples}


@pytest.fixture
def page(project: Path, told: dict[str, Any]) -> Iterator[Page]:
    """A page of a running server on that folder."""
    server = EditorServer(project, "shot.json")
    vars(server.calls).update(told)
    thread = serve_in_background(server)
    yield Page(server)
    server.shutdown()
    server.close()
    thread.join(5.0)
