"""The demo shot, built from an empty page by mouse and keyboard, is the packaged one, and cooks to the command line's bytes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor_page import driven

from mpm_nodes import cli
from mpm_nodes.editor.server import EditorServer, serve_in_background
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import load_graph

SAMPLES = Path(__file__).parents[2] / "samples"
PLACES = {
    "cheese": (20, 30), "slab": (240, 30), "melt": (460, 30), "surface": (680, 30), "cache": (900, 30),
    "trivet": (20, 360), "table": (240, 360), "trivet_look": (460, 360), "table_look": (680, 360),
}  # fmt: skip
SETTINGS = {"cell_size": 0.05, "end": 3}
"""What makes it small."""


def demo() -> dict[str, Any]:
    """Return the demo's document with the settings of this test."""
    document = json.loads((SAMPLES / "demo.json").read_text())
    return document | {"settings": document["settings"] | SETTINGS}


@pytest.fixture
def found(tmp_path: Path, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What `demo.mjs` found, in a folder that holds the trivet alone."""
    document, nodes = demo(), registry.load(path="", entry_points=False).nodes()
    made = {name: entry | {"place": PLACES[name]} for name, entry in document["nodes"].items()}
    made = {name: made[name] for name in sorted(made, key=lambda name: list(PLACES).index(name))}
    outputs = {name: nodes[entry["type"]].outputs[0].name for name, entry in made.items()}
    (tmp_path / "wanted").write_text(json.dumps({"nodes": made, "settings": SETTINGS, "outputs": outputs}))
    shutil.copy(SAMPLES / "trivet.vdb", tmp_path)
    server = EditorServer(tmp_path)
    vars(server.calls).update(told)
    thread = serve_in_background(server)
    yield driven("demo.mjs", server.url, tmp_path) | {"folder": tmp_path}
    server.shutdown()
    server.close()
    thread.join(5.0)


def test_the_demo_is_built_cooked_broken_and_mended(found, tmp_path, monkeypatch):
    """The same graph as the packaged one, a badge that says what lacks, and the same bytes as the command line writes."""
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == []
    (tmp_path / "expected.json").write_text(json.dumps(demo()))
    built, packaged = load_graph(tmp_path / "demo.json"), load_graph(tmp_path / "expected.json")
    assert meaning(built) == meaning(packaged)
    assert len(found["frames"]) == 3 and min(found["frames"]) > 200
    assert "material" in found["badge"].lower() and found["after"]
    monkeypatch.chdir(tmp_path)
    assert cli.main(["cook", "demo.json", "--out", "by_command", "--events", "none"]) == 0
    page, command = (digests(tmp_path / name / "r001") for name in ("demo_cache", "by_command"))
    assert page == command and sum(name.endswith(".usdc") for name in page) >= 3


def meaning(graph: Any) -> dict[str, Any]:
    """Return a graph without the places of its nodes."""
    document = graph.to_json()
    return document | {"nodes": {name: entry | {"position": None} for name, entry in document["nodes"].items()}}


def digests(folder: Path) -> dict[str, str]:
    """Return what a cook wrote of each frame: names and digests, without records of the cook itself."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in (".usdc", ".usda", ".vdb")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
