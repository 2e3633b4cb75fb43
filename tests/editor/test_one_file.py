"""One file that plays a cache: it keeps its size, holds what was asked for, and needs neither server nor network."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest
from editor_page import driven
from small_cache import cook_walking

from mpm_nodes.cli import main

pytest.importorskip("pxr")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cook of every form, with 67,000 particles."""
    return cook_walking(tmp_path_factory.mktemp("one_file"), cell_size=0.02)


def heads_of(page: str) -> list[dict]:
    """Return what is said of each frame of a file."""
    found = []
    for text in re.findall(r'class="frame">([^<]+)<', page):
        data = zlib.decompress(base64.b64decode(text))
        found.append(json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")]))
    return found


def test_points_are_left_out_until_the_file_is_as_small_as_asked_for(cache, tmp_path, capsys):
    """All of them where there is room; else as many as fit, in every frame; the command says how many, and how large it is."""
    shown = []
    for size in ("3", "1"):
        path = tmp_path / f"{size}.html"
        assert main(["view", str(cache), "--html", str(path), "--size", size, "--colour-by", "mass"]) == 0
        assert path.stat().st_size <= float(size) * 1e6
        heads = heads_of(path.read_text())
        assert [head["frame"] for head in heads] == [1, 2, 3]
        shown.append([sum(cloud["shown"] for cloud in head["clouds"]) for head in heads])
        told = capsys.readouterr()
        assert told.out.strip() == str(path) and f"{path.stat().st_size / 1e6:.1f} MB" in told.err
    counts = [sum(cloud["count"] for cloud in head["clouds"]) for head in heads]
    assert shown[0] == counts and all(1000 < few < count for few, count in zip(shown[1], counts, strict=True))
    assert f"{max(shown[1]):,} of {max(counts):,} points a frame" in told.err


def test_what_does_not_fit_or_is_not_there_is_told(cache, tmp_path, capsys):
    """A surface too large for the file, an attribute that nothing carries, frames that there are none of, a stranger's file."""
    page = ["view", str(cache), "--html", str(tmp_path / "a.html")]
    assert main([*page, "--show", "surface", "level_set", "--size", "1"]) == 5
    assert "do not fit into 1 MB" in capsys.readouterr().err
    assert main([*page, "--colour-by", "warmth"]) == 5
    assert "carries no 'warmth'; it has id, mass" in capsys.readouterr().err
    assert main([*page, "--frames", "7-9"]) == 5
    assert "holds frames 1 to 3" in capsys.readouterr().err
    assert main([*page[:-1], str(tmp_path / "a.txt")]) == 5
    assert "end it with .html" in capsys.readouterr().err
    (tmp_path / "a.html").write_text("mine")
    assert main([*page, "--every", "3"]) == 5
    assert "packed" not in capsys.readouterr().err  # it is refused before minutes of work
    assert (tmp_path / "a.html").read_text() == "mine"


def test_a_name_cannot_break_out_of_the_page(tmp_path):
    """A folder's name becomes the heading: as text, wherever it stands."""
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    revision = cook_walking(folder)
    moved = revision.parent.rename(folder / "<!--<script>x")
    assert main(["view", str(moved), "--html", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text()
    assert page.count("<script") == 2 + 3 and "alert(1)" not in page and "<!--<script>x" not in page


def test_the_file_plays_in_a_browser_without_a_network(cache, tmp_path):
    """From file://: frames differ where the matter moves, it plays, is coloured with a legend, and asks for nothing."""
    path = tmp_path / "walking.html"
    assert main(["view", str(cache), "--html", str(path), "--colour-by", "mass"]) == 0
    found = driven("player.mjs", path.as_uri(), tmp_path)
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == [] and found["unnamed"] == [] and found["faint"] == []
    assert found["moved"] > 0.05 and found["coloured"] > 0.05 and found["played"] == 2
    assert "mass [kg]" in found["legend"] and "points" in found["facts"]
