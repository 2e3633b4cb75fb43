"""A graph of 1,000 nodes in a real browser: what is not seen is not drawn, and what has not changed is not drawn again.

How long that takes is measured on a quiet machine, not here: counts explain it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from editor_page import driven


def large(count: int) -> dict[str, Any]:
    """Return a graph of `count` nodes in chains of five, laid out in rows; it need not cook."""
    nodes: dict[str, Any] = {}
    for n in range(count // 5):
        x, y = (n % 8) * 1300, -(n // 8) * 420
        chain = ("material_library", "emit_sphere", "set_attribute", "colour_particles", "solve")
        names = [f"{kind}_{n}" for kind in chain]
        ports = (None, "material", "particles", "particles", "sources")
        for step, (name, kind, port) in enumerate(zip(names, chain, ports, strict=True)):
            nodes[name] = {"type": kind, "position": [x + 250 * step, y + 1]}
            if port:
                nodes[name]["inputs"] = {port: [names[step - 1]] if port == "sources" else names[step - 1]}
    return {"format": "mpm_nodes.graph", "version": 1, "settings": {"cell_size": 0.1}, "nodes": nodes}


@pytest.fixture
def found(page, project, monkeypatch) -> dict:
    """What `large.mjs` found; the check, which takes as long as the command line needs, is left out."""
    (project / "shot.json").write_text(json.dumps(large(1000)))
    monkeypatch.setattr(page.server.calls, "check", lambda given: {"problems": []})
    return driven("large.mjs", page.server.url, project)


def test_a_thousand_nodes_are_moved_without_drawing_them_again(found):
    """Near by a few dozen cards are there; while the graph is moved, and when one knob changes, the others stay as they are."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert found["near"]["cards"] < 60
    assert found["near"]["again"] == 0 and found["whole"]["again"] == 0
    assert found["touched"] <= 5  # the card, and wires that end at it
