"""Each picture of the pages knows its graph, its renderer and its command, and is redrawn when one of them changes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")])


@pytest.fixture(scope="module")
def redraw():
    """The module that redraws them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("redraw")


def test_no_picture_is_stale(redraw):
    """Graph and renderer of each are those that it was drawn with."""
    assert not redraw.stale(), f"python docs/redraw.py draws them: {redraw.stale()}"
    held = redraw.manifest()
    assert set(held) == set(redraw.pictures())
    assert all((ROOT / "docs" / path).is_file() for path in held)


def test_pages_show_pictures_that_are_redrawn_and_all_of_them_are_shown(redraw):
    """Pictures of the reference stand on pages that are generated (test_site); every other one is on a page."""
    shown = set()
    for page in PAGES:
        for link in re.findall(r"!\[[^\]]*\]\(([^)\s]+\.(?:jpg|png|webp))\)", page.read_text()):
            shown.add((page.parent / link).resolve().relative_to(ROOT / "docs").as_posix())
    of_reference = {path for path in redraw.pictures() if path.startswith("pictures/")}
    assert shown - of_reference - set(redraw.WITHOUT_A_GRAPH) == set(redraw.pictures()) - of_reference


def test_a_changed_graph_is_noticed_and_a_moved_node_is_not(redraw):
    """Places and comments of nodes are not drawn; knobs are, and so are scripts and pages."""
    document = json.loads((ROOT / "samples/caramel.json").read_text())
    before = redraw.digest(json.dumps(document))
    document["nodes"]["cache"].update(position=[9, 9], comment="moved")
    assert redraw.digest(json.dumps(document, indent=2)) == before
    document["nodes"]["cold_look"]["knobs"]["look"] = "wood"
    assert redraw.digest(json.dumps(document)) != before
    assert redraw.digest("one") != redraw.digest("another")


def test_a_picture_is_stale_when_its_graph_or_its_renderer_has_changed(redraw, tmp_path, monkeypatch):
    """With the reason, in a folder where it is known; a renderer has changed when its card has."""
    drawn = redraw.pictures()["demo.jpg"]
    monkeypatch.setattr(redraw, "MANIFEST", tmp_path / "pictures.json")
    monkeypatch.setattr(redraw, "CARD", tmp_path)
    monkeypatch.setattr(redraw, "pictures", lambda: {drawn.path: drawn})
    (tmp_path / "renderer.cycles.png").write_bytes(b"as it was")
    redraw.note(drawn)
    assert redraw.stale() == {}
    (tmp_path / "renderer.cycles.png").write_bytes(b"as it is")
    assert redraw.stale() == {"demo.jpg": "the renderer cycles draws in another way"}
    redraw.note(drawn)
    monkeypatch.setattr(redraw, "pictures", lambda: {drawn.path: redraw.dataclasses.replace(drawn, text="{}")})
    assert redraw.stale() == {"demo.jpg": "samples/demo.json has changed"}


@pytest.mark.parametrize("engine", ["splat", "cycles"])
def test_renderers_draw_as_they_did(redraw, tmp_path, engine):
    """The scene of all looks is the card that is kept; where it is not, all pictures of the renderer are to be redrawn."""
    if engine == "cycles" and importlib.util.find_spec("bpy") is None:
        pytest.skip("Blender (bpy) is not installed")
    assert redraw.difference(engine, tmp_path) <= redraw.TOLERANCE[engine], "python docs/redraw.py"
