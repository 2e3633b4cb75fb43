"""Packaged previews: each belongs to its graph as it is now, is small, and is seen before anything is cooked."""

from __future__ import annotations

import json
import runpy
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from editor_page import Page, driven
from small_cache import cook_walking

from mpm_nodes.editor.frames import Opened
from mpm_nodes.editor.previews import PREFIX, Preview, files_of, graph_key, previews
from mpm_nodes.packaged_samples import sample_graph

SCRIPT = Path(__file__).parents[2] / "docs" / "make_previews.py"
LARGEST, LARGEST_OF_ALL = 900_000, 3_000_000
"""Bytes of one, and of all: the wheel holds them."""


def read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the head of a frame, and the bytes after it."""
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def test_the_demo_is_among_them_and_all_are_small():
    """A shot that opens cooked is the first that is offered."""
    sizes = [each._path.stat().st_size for each in previews().values()]
    assert "demo" in previews() and max(sizes) < LARGEST and sum(sizes) < LARGEST_OF_ALL


@pytest.mark.parametrize("name", list(previews()))
def test_a_preview_belongs_to_its_graph(name):
    """A graph, or a file of it, that has changed needs a new one: python docs/make_previews.py NAME."""
    graph, facts = sample_graph(name), previews()[name].facts
    assert facts["graph"] == graph_key(json.loads(graph.read_text())), f"python docs/make_previews.py {name}"
    assert facts["files"] == files_of(graph), f"python docs/make_previews.py {name}"
    heads, told = facts["frames"], facts["frames"][0]["preview"]
    assert len(heads) == told["frames"] > 10 and told["resolution"] <= 1 and told["points"] > 1000
    for head in (heads[0], heads[-1]):
        frame, _ = read(previews()[name].frame(head["frame"], None, facts["attribute"]))
        assert frame["attribute"] == facts["attribute"] and (frame["clouds"] or frame["meshes"])
    assert any(each["has_values"] for each in (*frame["clouds"], *frame["meshes"]))


def test_the_key_is_what_changes_a_cook():
    """Where nodes stand, and what is said of them, makes no other graph; a knob, a wire or a setting does."""
    graph = json.loads(sample_graph("demo").read_text())
    key, nodes = graph_key(graph), graph["nodes"]
    moved = {name: {**entry, "position": [1, 2], "comment": "here"} for name, entry in nodes.items()}
    assert graph_key({**graph, "nodes": moved, "editor": {"page": {}}}) == key
    stiffer = {**nodes["cheese"], "knobs": {**nodes["cheese"]["knobs"], "youngs_modulus": 4.0e4}}
    bare = {**nodes["melt"], "inputs": {}}
    others = ({"nodes": {**nodes, "cheese": stiffer}}, {"nodes": {**nodes, "melt": bare}}, {"settings": {"cell_size": 0.03}})
    assert key not in {graph_key(graph | other) for other in others}


def test_a_preview_holds_what_the_cook_holds(tmp_path: Path):
    """Shapes as they are sent of the cook, places and values within the step that they are rounded to; bodies are held once."""
    pytest.importorskip("pxr")
    folder = cook_walking(tmp_path)
    runpy.run_path(str(SCRIPT))["write_preview"](
        folder, tmp_path / "shot.npz", tmp_path / "shot.json", [1, 3], "mass", {"resolution": 1, "of": 3}
    )
    made, opened = Preview(tmp_path / "shot.npz"), Opened()
    layers = made.facts["frames"][0]["shown"]
    for number in (1, 3):
        head, drawn = opened.drawn(str(folder), number, layers, "mass", 8_000)
        packed, data = read(made.frame(number, None, "mass"))
        assert packed["frame"] == number and packed["step"] == 2 and packed["last"] == 3 and packed["values"] == head["values"]
        assert [each["points"] for each in packed["meshes"]] == [each["points"] for each in drawn.records["meshes"]]
        at = 0
        for array in drawn.arrays:
            found = np.frombuffer(data, array.dtype, array.size, at).reshape(array.shape)
            at += -(-array.nbytes // 4) * 4
            if array.dtype == np.uint16:
                steps = np.abs(found.astype(int) - array)
                assert steps[:, :3].max() <= 8 and steps[:, 3].max() <= 128
            else:
                assert np.array_equal(found, array)
        assert at == len(data)
    names = {name for head in made.facts["frames"] for mesh in head["meshes"] if not mesh["matter"] for name in mesh["arrays"]}
    assert len(names) == 2
    assert read(made.frame(2, [layers[0]], ""))[0]["shown"] == [layers[0]] and read(made.frame(2, None, ""))[0]["frame"] == 1
    assert read(made.frame(3, None, ""))[0]["attribute"] == ""


def test_a_cook_takes_its_place(page: Page, project: Path):
    """A shot has its preview, after its own cooks; another graph has none."""
    path = page.call("sample", name="demo")["path"]
    assert page.call("revisions", path=path)["revisions"] == [f"{PREFIX}demo"]
    assert page.call("cooked", path=path, revision=f"{PREFIX}demo")["graph"] is None
    assert read(page.call("frame", path=path, revision=f"{PREFIX}demo", frame=None))[0]["frame"] == 39
    for call, more in (("curves", {}), ("particle", {"frame": 1, "layer": "a", "prim": "/a", "index": 0})):
        with pytest.raises(AssertionError, match="cook the graph for them"):
            page.call(call, path=path, revision=f"{PREFIX}demo", **more)
    with pytest.raises(AssertionError, match="no such preview"):
        page.call("frame", path=path, revision=f"{PREFIX}../demo", frame=1)
    (project / "demo" / "demo_cache" / "r001").mkdir(parents=True)
    assert page.call("revisions", path=path)["revisions"] == ["r001", f"{PREFIX}demo"]
    assert page.call("revisions", path="shot.json")["revisions"] == []
    (project / "odd.json").write_text('{"format": "mpm_nodes.graph", "version": 1, "nodes": {"a": 3, "b": null}}')
    assert page.call("revisions", path="odd.json")["revisions"] == []


def test_a_shot_opens_cooked(page: Page, project: Path):
    """Frames, a surface, colours with a legend, and what it is said to be, before anything is cooked."""
    page.server.calls.graph = ""
    found = driven("previews.mjs", page.server.url, project)
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == [] and found["unnamed"] == []
    assert found["faint"] == [], "\n".join(found["faint"])
    assert found["offered"][0] == "Demo" and len(found["offered"]) == len(previews())
    assert found["hidden"] == []
    assert found["revision"] == "preview of demo" and not found["cooked"]
    facts = previews()["demo"].facts["frames"][0]["preview"]
    for told in ("Packaged preview", f"{facts['points']:,} points", f"{facts['frames']} of 40 frames", "Your own cook"):
        assert told in found["note"]
    assert found["disabled"] == [True, True, False]
    assert found["scrubbed"] > 0.02 and found["coloured"] > 0.02 and "m/s" in found["legend"]
    assert found["stepped"] == [3, 5, 3]
    assert "cook the graph" in found["plots"]
    assert (
        found["own"] == ["r001", ["r001", "preview"], "preview"] and found["beside"] > 0 and found["sides"] == ["r001", "preview"]
    )
