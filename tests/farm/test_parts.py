"""A shot cooked in two parts and in chunks, and joined again, is the shot cooked in one piece."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from walking_shot import content, cooked

from mpm_nodes import cli
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.farm import join
from mpm_nodes.farm.join import join_parts
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.reports.problems import GraphError


def chunks(graph, root, spans):
    for first, last in spans:
        execute(graph, (first, last), root / f"{first}-{last}", part="frames", solved=root.parent / "solve")
    return root


def test_chunks_in_any_order_are_the_frames_of_one_cook(graph, tmp_path):
    """Every frame is solved once, and written from what the solve kept; the joined folder holds the bytes of a plain cook."""
    execute(graph, out=tmp_path / "whole")
    (tmp_path / "walk.log").unlink()
    execute(graph, out=tmp_path / "solve", part="solve")
    assert cooked(tmp_path, "write") == []
    parts = chunks(graph, tmp_path / "frames", [(4, 6), (1, 2), (3, 3)])
    assert cooked(tmp_path, "walk") == [1, 2, 3, 4, 5, 6] and sorted(cooked(tmp_path, "write")) == [1, 2, 3, 4, 5, 6]
    told = []
    joined = join_parts([parts], (1, 6), tmp_path / "cache", lambda *count: told.append(count))
    assert told == [(n, 6) for n in range(1, 7)]
    assert content(joined) == content(tmp_path / "whole" / "r001")
    assert join_parts([parts], (1, 6), tmp_path / "cache") == joined  # once more: nothing to do, and no new revision
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["r001"]
    assert cli.main(["check", str(tmp_path / "cache")]) == 0
    with pytest.raises(MpmNodesError, match="holds part joined of a cook, not all"):
        execute(graph, out=tmp_path / "cache", resume=True)
    assert content(joined) == content(tmp_path / "whole" / "r001")


def clips_on_the_root_prim(root, manifest, *rest):
    """Author clips as older versions did."""
    from usd_io.clips import author_clips, clipped_prims

    author_clips(root, manifest, *rest)
    for prim in [each for each in clipped_prims(root) if not each.path.IsRootPrimPath()]:
        prim.ClearInfo("clips")


def test_a_real_cache_in_chunks_has_the_bytes_of_one_cook(tmp_path, monkeypatch):
    """Particles, surface, collider and the stage over all frames, one chunk by an older version; hard links where there are any."""
    pytest.importorskip("pxr.Usd")
    graph = Graph(cell_size=0.1, start=-1, end=2, base=tmp_path)
    jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=1e5)
    cube = graph.add("emit_box", "cube", material=jelly, size=(0.3, 0.3, 0.3), centre=(0.0, 0.3, 0.0))
    ground = graph.add("collide_plane", "ground")
    fall = graph.add("solve", "fall", sources=[cube], colliders=[ground], start_frame=-1)
    skin = graph.add("density_volume", "fog", particles=fall["particles"])
    graph.add("write_cache", "cache", particles=fall["particles"], volumes=[skin], colliders=[ground])
    execute(graph, out=tmp_path / "whole")
    execute(graph, (-1, 1), tmp_path / "solve", part="solve")
    execute(graph, (-1, 2), tmp_path / "solve", part="solve", resume=True)  # a solve goes on as any cook
    chunks(graph, tmp_path / "frames", [(1, 2)])
    with monkeypatch.context() as patched:
        patched.setattr("usd_io.stage.author_clips", clips_on_the_root_prim)
        parts = chunks(graph, tmp_path / "frames", [(-1, 0)])
    joined = join_parts([parts], (-1, 2), tmp_path / "cache")
    whole = content(tmp_path / "whole" / "r001")
    assert {Path(name).suffix for name in whole} == {".usda", ".usdc", ".vdb"}
    assert content(joined) == whole
    layer = next(joined.rglob("*.0001.usdc"))
    assert layer.stat().st_nlink == 2


def test_joining_copies_where_it_cannot_link(graph, tmp_path, monkeypatch):
    """The same files on a disk without hard links."""
    execute(graph, out=tmp_path / "solve", part="solve")
    parts = chunks(graph, tmp_path / "frames", [(1, 6)])

    def refuse(*args, **options):
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "link", refuse)
    joined = join_parts([parts], (1, 6), tmp_path / "cache")
    assert content(joined) == content(tmp_path / "frames" / "1-6" / "r001")


def test_a_join_that_was_cut_short_goes_on(graph, tmp_path, monkeypatch):
    """Frames that are joined stay; a frame that was cooked again since is taken again, with those after it."""
    execute(graph, out=tmp_path / "solve", part="solve")
    parts = chunks(graph, tmp_path / "frames", [(1, 3), (4, 6)])

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        join_parts([parts], (1, 6), tmp_path / "cache", stop)
    before = (tmp_path / "cache/r001/frames/0003.commit.json").stat().st_mtime_ns
    joined = join_parts([parts], (1, 6), tmp_path / "cache")
    assert (joined / "frames/0003.commit.json").stat().st_mtime_ns == before
    assert len(content(joined)) == 6


def test_what_is_missing_or_was_made_of_something_else_is_refused(graph, tmp_path):
    """Frames that are not solved, a solve of other knobs, damaged values, parts of two graphs, frames that no part holds."""
    solve, frames = tmp_path / "solve", tmp_path / "frames"
    execute(graph, (1, 3), solve, part="solve")
    with pytest.raises(MpmNodesError, match=r"frame 4 is not solved yet; go on with its part solve"):
        execute(graph, (3, 4), frames / "3-4", part="frames", solved=solve)
    assert (frames / "3-4/r001/walk/walk.0003.txt").is_file()  # frame 3 is whole
    graph.set("writer.scale", 2.0)  # behind the solve: the values hold
    execute(graph, (1, 2), frames / "1-2", part="frames", solved=solve)
    with pytest.raises(InputError, match="another graph"):
        join_parts([frames], (1, 3), tmp_path / "cache")
    with pytest.raises(InputError, match="no part holds frame 3"):
        join_parts([frames / "1-2"], (1, 3), tmp_path / "cache")
    graph.set("walk.step", 3.0)
    with pytest.raises(MpmNodesError, match="frame 1 of walk was solved from another graph"):
        execute(graph, (1, 2), tmp_path / "other", part="frames", solved=solve)
    graph.set("walk.step", 1.0)
    value = next((solve / "r001/solved").glob("0002.*"))
    value.write_bytes(value.read_bytes()[:-40] + b"x" * 40)
    with pytest.raises(MpmNodesError, match="damaged"):
        execute(graph, (2, 2), tmp_path / "third", part="frames", solved=solve)


def test_a_damaged_part_is_not_joined(graph, tmp_path):
    """What a cook wrote is compared with its record on the way."""
    execute(graph, out=tmp_path / "solve", part="solve")
    parts = chunks(graph, tmp_path / "frames", [(1, 6)])
    file = parts / "1-6/r001/walk/walk.0004.txt"
    file.write_text(file.read_text().replace("1", "2"))
    with pytest.raises(InputError, match=r"walk\.0004\.txt: is not what its cook wrote"):
        join_parts([parts], (1, 6), tmp_path / "cache")
    file.unlink()
    with pytest.raises(InputError, match=r"walk\.0004\.txt: is missing"):
        join_parts([parts], (1, 6), tmp_path / "cache")


def test_parts_say_what_they_lack(graph, tmp_path):
    """A part without nodes, without the solve's folder, without an output, of another kind than what is resumed."""
    with pytest.raises(GraphError, match=r"solved: is not given"):
        execute(graph, out=tmp_path / "a", part="frames")
    with pytest.raises(GraphError, match=r"kept nowhere"):
        execute(graph, part="solve")
    with pytest.raises(GraphError, match='"half" is unknown'):
        execute(graph, part="half")
    execute(graph, (1, 2), tmp_path / "plain")
    with pytest.raises(MpmNodesError, match="holds part all of a cook, not solve"):
        execute(graph, out=tmp_path / "plain", part="solve", resume=True)
    with pytest.raises(InputError, match="is not a cook of the solves alone"):
        execute(graph, out=tmp_path / "b", part="frames", solved=tmp_path / "plain")
    alone = Graph(registry=graph.registry)
    alone.add("walk", "walk")
    with pytest.raises(GraphError, match="makes nothing of its solves"):
        execute(alone, out=tmp_path / "c", part="frames")


def test_a_file_of_all_frames_cannot_be_joined(graph, tmp_path, monkeypatch):
    """A node that writes one file over and over has no part of it in each chunk: that is said, and nothing is written."""
    execute(graph, out=tmp_path / "solve", part="solve")
    parts = chunks(graph, tmp_path / "frames", [(1, 3), (4, 6)])
    read = join._Part.record

    def record(self, frame):
        found = read(self, frame)
        return found and {**found, "files": {**found["files"], "all.csv": {"bytes": 1, "sha256": "0" * 64}}}

    monkeypatch.setattr(join._Part, "record", record)
    with pytest.raises(OutputError, match=r"all\.csv is written by every frame"):
        join_parts([parts], (1, 6), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
