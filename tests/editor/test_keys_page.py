"""Keys as curves in a real browser: set, added, dragged, stepped, taken away one at a time."""

from __future__ import annotations

import json

import pytest
from editor_page import GRAPH, driven


@pytest.fixture
def found(page, project) -> dict:
    """What `keys.mjs` found, in a shot of 24 frames."""
    (project / "shot.json").write_text(json.dumps(GRAPH | {"settings": GRAPH["settings"] | {"end": 24}}, indent=1))
    return driven("keys.mjs", page.server.url, project)


def test_a_knob_is_keyed_by_hand(found):
    """Frames are whole, values are those of the plot; no key goes that was not asked for."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert found["first"] == {"keys": [[1, 0.4, "linear"]]}
    (_, (frame, value, mode)) = found["two"]["keys"]
    assert (frame, mode) == (12, "linear") and value > 0.4
    assert found["dragged"]["keys"] == [[1, 0.4, "linear"], [20, value, "linear"]]
    (_, (frame, stepped, _)) = found["stepped"]["keys"]
    assert frame == 19 and value < stepped < value + 0.1
    middle = (0.4 + stepped) / 2
    assert found["three"]["keys"][1] == [10, pytest.approx(middle), "smooth"]
    ((begin, at, _), (end, to, _)) = found["centre"]["keys"]
    assert (begin, end, at, to[:2]) == (10, 20, [0, 0, 0], [0, 0]) and to[2] > 0
    assert found["asked"] == 1 and found["one"] == pytest.approx(middle) and found["again"] == 3
