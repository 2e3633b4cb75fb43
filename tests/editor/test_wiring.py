"""Nodes on wires, strokes that cut, dots, frames, notes and the keys of two programs, in a real browser."""

from __future__ import annotations

import pytest
from editor_page import driven


@pytest.fixture
def found(page, project) -> dict:
    """What `wiring.mjs` found."""
    return driven("wiring.mjs", page.server.url, project)


def test_a_graph_is_wired_and_dressed_by_hand(found):
    """The file's wires stay wires between nodes; what people see alone stands under `editor`."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert found["into"] == "Into the wire from ball to fall" and found["offered"] > 5 and found["through"] == [1, True]
    assert found["room"][0] >= 240 and found["room"][1] >= 480
    assert found["overlapping"] == 0
    assert found["dropped"] == [["set_attribute"], ["ball"]] and found["afterUndo"] == [4, 0]
    ((dot,),) = (places.values() for places in found["dots"].values())
    assert len(dot) == 1 and found["wire"] == ["ball"]
    (frame,) = found["frame"]
    assert frame["text"] == "Matter"
    jelly, ball, fall, box = found["moved"]
    assert jelly == ball == box != [0, 0] and fall == [0, 0]
    assert found["note"] == "Do not touch <b>this</b>" and found["colour"] == "#3c6e3a"
    assert found["cut"] == {"colliders": ["ground"]}
    assert found["aligned"] == 1 and found["covered"] == []
    assert found["apart"] == [True, True]
    assert found["thin"] > 1.5
