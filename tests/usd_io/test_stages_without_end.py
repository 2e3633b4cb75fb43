"""Stages that OpenUSD would read for ever, or until its stack is used up: refused before it opens them, or met by a supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr")

from pxr import Sdf

from mpm_nodes import supervisor
from mpm_nodes.data import InputError, LevelSet, OutputError
from mpm_nodes.graph import registry
from mpm_nodes.graph.document import Graph
from mpm_nodes.nodes.caches import export_layer
from mpm_nodes.preview.scene import open_scene
from mpm_nodes.selftest.shot import has_volumes
from usd_io import dependencies
from usd_io.check import check_cache
from usd_io.collider_meshes import StageMeshes
from usd_io.stage_reader import frames_of, open_stage, read_points
from usd_io.volumes import read_volumes, write_volumes

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")

POINTS = "point3f[] points = [(0, 0, 0)]"
CLIPS = 'clips = {{\ndictionary default = {{\n{}\nstring primPath = "/p"\ndouble2[] active = [(1, 0)]\n}}\n}}'
RANGE = (
    "double templateStartTime = {}\ndouble templateEndTime = {}\ndouble templateStride = {}\n"
    'string templateAssetPath = "./c.#.usda"'
)
NESTED = "dictionary a = {\n" * 100_000 + "}\n" * 100_000
CASES = {
    "sublayer": ("subLayers = [@./pipe.usda@]", ""),
    "sublayer of a sublayer": ("subLayers = [@./between.usda@]", ""),
    "reference": ("", "references = @./pipe.usda@"),
    "payload": ("", "payload = @./between.usda@"),
    "folder": ("", "references = @./folder.usda@"),
    "clip": ("", CLIPS.format("asset[] assetPaths = [@./pipe.usda@]")),
    "manifest": ("", CLIPS.format("asset manifestAssetPath = @./pipe.usda@")),
    "template": ("", CLIPS.format(RANGE.format(0, "1e12", 1))),
    "template by nothing": ("", CLIPS.format(RANGE.format(0, 10, 0))),
    "template backwards": ("", CLIPS.format(RANGE.format(0, 10, -1))),
    "template to infinity": ("", CLIPS.format(RANGE.format(0, "inf", 1))),
    "nested dictionaries": (f"customLayerData = {{\n{NESTED}\n}}", ""),
    "nested prims": ("", "", 'def Xform "a" {\n' * 5000 + "}\n" * 5000),
}


def written(folder, case):
    """Write a case, with a pipe, a folder and a layer that leads to the pipe beside it."""
    layer, prim, *more = CASES[case]
    os.mkfifo(folder / "pipe.usda")
    (folder / "folder.usda").mkdir()
    (folder / "between.usda").write_text("#usda 1.0\n(\nsubLayers = [@./pipe.usda@]\n)\n")
    path = folder / "stage.usda"
    body = f'def Points "p" (\n{prim}\n)\n{{\n{POINTS}\n}}\n' + "".join(more)
    path.write_text(f"#usda 1.0\n(\nstartTimeCode = 1\nendTimeCode = 3\n{layer}\n)\n{body}")
    return path


READERS = {
    "open": open_stage,
    "meshes": StageMeshes,
    "frames": frames_of,
    "points": lambda path: read_points(path, 1),
    "check": check_cache,
}
ALL = """
import sys
sys.path[:0] = [{here!r}]
from test_stages_without_end import READERS
from mpm_nodes.data import InputError
from pathlib import Path
for name, read in READERS.items():
    try:
        read(Path(sys.argv[1]))
        print(name, "read")
    except InputError as error:
        print(name, "refused", str(error)[:100])
"""


@pytest.mark.parametrize("case", CASES)
def test_every_reader_refuses_at_once(tmp_path, case):
    """All readers of stages, in a process of their own that a hang or a crash would end."""
    script = ALL.format(here=os.path.dirname(__file__))
    command = [sys.executable, "-c", script, str(written(tmp_path, case))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["refused"] * len(READERS), done.stdout


def test_a_stage_that_is_sound_is_looked_at_once(tmp_path, monkeypatch):
    """Brackets within bounds, layers and clips that are files or missing, and a payload: read, and known the next time."""
    (tmp_path / "part.usda").write_text('#usda 1.0\n(\n)\ndef Mesh "m" {\n}\n')
    nested = "dictionary a = {\n" * 50 + "}\n" * 50
    clips = CLIPS.format("asset[] assetPaths = [@./part.usda@, @./missing.usda@]")
    path = tmp_path / "stage.usda"
    prim = f"payload = @./part.usda@</m>\n{clips}"
    path.write_text(f'#usda 1.0\n(\ncustomLayerData = {{\n{nested}\n}}\n)\ndef Points "p" (\n{prim}\n)\n{{\n{POINTS}\n}}\n')
    assert [layer.identifier[-10:] for layer in dependencies.checked_layers(path)] == ["stage.usda", "/part.usda"]
    assert len(read_points(open_stage(path), 1)) == 1
    assert dependencies.checked_layers(path) == []
    path.write_text(path.read_text().replace("./missing.usda", "./part.usda"))
    assert len(dependencies.checked_layers(path)) == 2
    monkeypatch.setattr(dependencies, "MOST_LAYERS", 1)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InputError, match="more than 1 layers"):
        dependencies.checked_layers(path)


def test_commands_that_read_are_supervised(capsys):
    """A library that crashes in `validate` or `check` met a damaged file: exit code 5; elsewhere it may be ours."""
    for command in ("validate", "check"):
        assert command in supervisor.COMMANDS
        assert supervisor._say_killed(command, signal.SIGSEGV) == 5
        assert "crashed (SIGSEGV) on a file" in capsys.readouterr().err
    assert supervisor._say_killed("cook", signal.SIGSEGV) == 1
    assert not supervisor.wanted(Namespace(command="validate", debug=True))


def test_a_pipe_among_node_files_is_refused(tmp_path):
    """It would be waited for."""
    os.mkfifo(tmp_path / "node.py")
    with pytest.raises(registry.RegistryError, match=r"MPM_NODES_PATH: .*is not a regular file but a pipe"):
        registry.load(path=str(tmp_path), entry_points=False)


def test_validate_ends_what_crashes(tmp_path):
    """The command line itself: a stage that is nested too deeply, named by a graph."""
    path = written(tmp_path, "nested dictionaries")
    made = Graph(registry=registry.load(path="", entry_points=False), start=1, end=1, cell_size=0.1)
    made.add("collide_usd", "body", path=str(path))
    graph = made.save(tmp_path / "shot.json")
    command = [sys.executable, "-P", "-m", "mpm_nodes.cli", "validate", str(graph)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5 and "brackets in brackets" in done.stderr


def test_names_that_are_not_utf8(tmp_path):
    """No library takes them: each reader and writer says so, whichever part of the path it is."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "caf") + b"\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    path = folder / "stage.usda"
    path.write_text(f'#usda 1.0\n(\nstartTimeCode = 1\nendTimeCode = 3\n)\ndef Points "p" {{\n{POINTS}\n}}\n')
    for read in (*READERS.values(), open_scene, read_volumes):
        with pytest.raises(InputError, match="is not UTF-8; rename"):
            read(path)
    with pytest.raises(OutputError, match="is not UTF-8; rename"):
        export_layer(Sdf.Layer.CreateAnonymous(), folder / "new.usda")
    if has_volumes():
        volume = LevelSet(np.zeros((1, 3), np.int32), np.ones((1, 8, 8, 8), np.float32), 0.1, background=2.0)
        with pytest.raises(OutputError, match="is not UTF-8; rename"):
            write_volumes(folder / "new.vdb", [volume])
