"""The 3D view in a real browser: layers, slice, picked particles, two cooks, handles; and its rules that the server shares."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from editor_page import WEB, driven, node_needed
from small_cache import cook_walking

from mpm_nodes.editor.quantised import even_order
from mpm_nodes.editor.server import EditorServer, serve_in_background


@pytest.fixture
def walking(tmp_path: Path) -> Iterator[EditorServer]:
    """A server of a graph that was cooked twice."""
    pytest.importorskip("pxr")
    for _ in range(2):
        cook_walking(tmp_path)
    (tmp_path / "shot_cache" / "r000").mkdir()  # a cook that has no frame yet
    server = EditorServer(tmp_path, "shot.json")
    thread = serve_in_background(server)
    yield server
    server.shutdown()
    server.close()
    thread.join(5.0)


def test_what_a_cache_holds_is_seen_picked_compared_and_moved(walking, tmp_path):
    """Every form changes the picture, a mark lies where one clicks, and a drag of a handle is one step that keeps keys."""
    found = driven("view.mjs", walking.url, tmp_path)
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == [] and found["unnamed"] == []
    assert found["faint"] == [], "\n".join(found["faint"])
    for name in ("particles of cache", "surface of cache", "level set surface of cache", "fog density of cache", "bodies of cache"):
        assert name in found["offered"]
    for name in ("points", "surface of cache", "level set surface", "fog density"):
        assert found[name] > 0.05, name
    assert 0.01 < found["sliced"] < found["points"]
    assert found["marked"] > 20 and found["markedToo"] > 20
    assert "mass" in found["probe"] and "kg" in found["probe"]
    assert found["followed"] == found["apart"] and "cm to particle" in found["apart"]
    assert found["turned"] > 0.01
    assert found["fixed"] == "fixed" and "to 0.2 kg" in found["legend"]
    assert "r000 has no whole frame yet" in found["nothingBeside"] and found["toasts"] == 0
    assert found["wiped"] == 3
    assert found["before"] == 0.4 and found["after"] > 0.45 and found["keys"] == 2
    assert found["undone"] == 0.4 and found["oneStep"] and found["played"] == 2


DIFFERS = 0.01
"""Share of the pixels of matter that may look otherwise where its inside is not drawn."""


def test_what_is_not_drawn_inside_of_matter_is_not_missed(tmp_path):
    """Solid blocks, a pool that fills its box, random matter, a thin sheet; and no shape that went is held for long."""
    node_needed("esbuild")
    scene = json.dumps(str(WEB / "src" / "view" / "scene.ts"))
    (tmp_path / "view.ts").write_text(f"import {{ View }} from {scene}; Object.assign(globalThis, {{ View }});")
    script = tmp_path / "view.js"
    esbuild = ["npx", "esbuild", str(tmp_path / "view.ts"), "--bundle", "--format=iife", f"--outfile={script}"]
    subprocess.run(esbuild, cwd=WEB, check=True, capture_output=True, timeout=120)
    found = driven("inside.mjs", str(script), WEB)
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert max(found["differ"].values()) <= DIFFERS, found["differ"]
    assert found["drawn"]["block"] < 0.5 and found["drawn"]["sheet"] == 1
    (first, *later), gone = found["held"]
    assert all(each == first for each in later) and gone <= 1


def test_the_page_finds_the_point_that_was_clicked(tmp_path):
    """Points are sent in an order that the page turns round by the same rule."""
    node_needed("esbuild")
    counts = [(10, 100), (100, 100), (101, 100), (1000, 7), (70_000, 30_000)]
    orders = [even_order(*each) for each in counts]
    asked = [[count, block, len(order)] for (count, _), (order, block) in zip(counts, orders, strict=True)]
    source = f"""import {{ fullIndex }} from {json.dumps(str(WEB / "src" / "view" / "frame.ts"))};
    const found = {json.dumps(asked)}.map(([count, block, sent]) =>
      [...Array(sent).keys()].map((n) => fullIndex({{ count, block }}, n)));
    console.log(JSON.stringify(found));"""
    (tmp_path / "order.ts").write_text(source)
    bundled = tmp_path / "order.mjs"
    esbuild = ["npx", "esbuild", str(tmp_path / "order.ts"), "--bundle", "--platform=node", "--format=esm", f"--outfile={bundled}"]
    subprocess.run(esbuild, cwd=WEB, check=True, capture_output=True, timeout=120)
    told = subprocess.run(["node", str(bundled)], check=True, capture_output=True, text=True, timeout=120).stdout
    assert json.loads(told) == [order.tolist() for order, _ in orders]
