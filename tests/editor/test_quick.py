"""Quick setups: each is a whole graph of a box above the ground, written under a name that is free."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mpm_nodes.commands.validate import needs_of
from mpm_nodes.data import Material
from mpm_nodes.editor.quick import FOLDER, quick_graph, quick_setups
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.materials.looks import LOOKS, look_of

NAMES = [each["name"] for each in quick_setups()]


def test_they_are_those_of_the_other_hosts():
    """In their order; what needs a collider to hold it is not among them."""
    assert set(NAMES) == {path.stem for path in FOLDER.glob("*.json")} - {"pinned"} and NAMES[0] == "snow"
    assert all(each["label"] and each["doc"] for each in quick_setups())


def test_each_has_a_picture(page):
    """And no other file is given by that name."""
    assert all(page.call("picture", name=name, of="quick").startswith(b"\xff\xd8") for name in NAMES)
    assert {path.stem for path in FOLDER.glob("*.jpg")} == {*NAMES, "pinned"}  # Blender offers that one, too
    for name in ("pinned", "../bundle/editor", "demo"):
        assert page.send("POST", "/api/picture", body={"name": name, "of": "quick"})[0] == 404


@pytest.mark.parametrize("name", NAMES)
def test_a_setup_is_whole_and_small(name):
    """No slot is left open, and the first frames come soon."""
    document = quick_graph(name)
    assert not any("editor" in entry for entry in document["nodes"].values()) and "editor" not in document
    found = needs_of(lambda: load_graph(document))
    assert found["problems"] == [] and 4_000 < found["needs"]["particles"] < 12_000


@pytest.mark.parametrize("name", NAMES)
def test_a_setup_looks_like_its_picture(name):
    """Its colour in the view is near that of the preset in Blender, not that of water, nor of matter that nobody named."""
    nodes = quick_graph(name)["nodes"]
    labels = [(entry["type"], entry["knobs"]["label"]) for entry in nodes.values() if "label" in entry.get("knobs", {})]
    named = [look_of(Material(kind.removeprefix("material_"), {}, 1000.0, label)) for kind, label in labels]
    looks = nodes["looks"]["knobs"]["looks"] if "looks" in nodes else named
    wanted = json.loads((FOLDER / f"{name}.json").read_text())["editor"]["quick"]["look"]["Base Color"][:3]
    for look in looks:
        assert np.linalg.norm(np.array(LOOKS[look].colour) ** (1 / 2.2) - np.array(wanted) ** (1 / 2.2)) < 0.25, look
    readers = [entry["inputs"]["particles"] for entry in nodes.values() if entry["type"] in ("surface_particles", "write_cache")]
    assert set(readers) == {"looks" if "looks" in nodes else "motion.particles"}


def test_a_name_that_is_taken_is_left_alone(page, project):
    """Also one whose cache is there."""
    (project / "snow_2_cache").mkdir()
    names = [page.call("quick", name="snow")["path"] for _ in range(2)]
    assert names == ["snow.json", "snow_3.json"]
    assert json.loads((project / "snow.json").read_text())["nodes"]["body"]["type"] == "emit_box"
    assert page.send("POST", "/api/quick", body={"name": "../snow"})[0] == 422
