"""Stages that OpenUSD would read for ever, or until its stack is used up: refused before it opens them, or met by a supervisor."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr")

from crates import nested_prims
from pxr import Sdf

from mpm_nodes.data import InputError, LevelSet, OutputError
from mpm_nodes.graph.declare import registry
from mpm_nodes.nodes.caches import export_layer
from mpm_nodes.preview.scene import open_scene
from tests.selftest.shot import has_volumes
from usd_io import arcs, dependencies
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
DOUBLED = 'def "a{0}" {{\ndef "a" (references = </a{1}>) {{\n}}\ndef "b" (references = </a{1}>) {{\n}}\n}}\n'
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
    "chain of references": ("", "", "".join(f'def "a{n}" (references = </a{n + 1}>) {{\n}}\n' for n in range(300))),
    "chain of inherits": ("", "", "".join(f'def "a{n}" (inherits = </a{n + 1}>) {{\n}}\n' for n in range(300))),
    "doubled 40 times": ("", "", "".join(DOUBLED.format(n, n + 1) for n in range(40))),
    "nested prims of a binary layer": ("subLayers = [@./deep.usdc@]", ""),
}


def written(folder, case):
    """Write a case, with a pipe, a folder and a layer that leads to the pipe beside it."""
    layer, prim, *more = CASES[case]
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "pipe.usda")
    nested_prims(folder / "deep.usdc", 5000)
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
from test_stages_without_end import CASES, READERS
from mpm_nodes.data import InputError
from pathlib import Path
for case in CASES:
    for name, read in READERS.items():
        print(case, name, sep=";", end=";", flush=True)
        try:
            read(Path(sys.argv[1], case, "stage.usda"))
            print("read", flush=True)
        except InputError as error:
            print("refused", str(error)[:100], flush=True)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What all readers say of all cases, in one process that a hang or a crash would end, by case and reader."""
    folder = tmp_path_factory.mktemp("cases")
    for case in CASES:
        written(folder / case, case)
    command = [sys.executable, "-c", ALL.format(here=os.path.dirname(__file__)), str(folder)]
    with contextlib.suppress(subprocess.TimeoutExpired), open(folder / "said", "w") as said:
        subprocess.run(command, stdout=said, stderr=subprocess.DEVNULL, timeout=240, check=False)
    lines = [line.split(";") for line in (folder / "said").read_text().splitlines()]
    return {(case, name): rest[0] if rest else "" for case, name, *rest in lines}


@pytest.mark.parametrize("case", CASES)
def test_every_reader_refuses_at_once(told, case):
    """None reads it, hangs or ends its process; what comes after one that does has no answer either."""
    answers = {name: told.get((case, name), "was not asked") for name in READERS}
    assert all(answer.startswith("refused") for answer in answers.values()), answers


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


def test_what_is_refused_is_counted_as_it_is_composed(tmp_path, monkeypatch):
    """Instances of one prototype count once, rings are OpenUSD's to tell, and what is in bounds is opened."""
    body = "".join(DOUBLED.format(n, n + 1) for n in range(8)) + 'def "a8" {\n}\n'
    ring = 'def "r" (references = </s>) {\n}\ndef "s" (references = </r>) {\n}\n'
    path = tmp_path / "stage.usda"
    path.write_text(f"#usda 1.0\n{body}")
    stage = open_stage(path)
    made = sum(1 for _ in stage.Traverse())
    del stage
    monkeypatch.setattr(arcs, "MOST_PRIMS", made + 40)
    path.write_text(path.read_text() + ring)
    dependencies.checked_layers(path)
    monkeypatch.setattr(arcs, "MOST_PRIMS", made - 40)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InputError, match=r"more than [0-9,]+ prims; .*make them instanceable"):
        dependencies.checked_layers(path)
    path.write_text(path.read_text().replace("(references", "(instanceable = true; references"))
    dependencies.checked_layers(path)


def test_a_pipe_among_node_files_is_refused(tmp_path):
    """It would be waited for."""
    os.mkfifo(tmp_path / "node.py")
    with pytest.raises(registry.RegistryError, match=r"MPM_NODES_PATH: .*is not a regular file but a pipe"):
        registry.load(path=str(tmp_path), entry_points=False)


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


@pytest.mark.parametrize("arc", ["references", "inherits", "specializes", "payload"])
def test_a_long_chain_is_not_walked_to_its_end(tmp_path, monkeypatch, arc):
    """A hundred thousand inherits were walked for half a minute to be refused; a hundred of them are enough to know."""
    asked: list[object] = []
    below = arcs._below
    monkeypatch.setattr(arcs, "_below", lambda contents, target: asked.append(target) or below(contents, target))
    path = tmp_path / "chain.usda"
    path.write_text("#usda 1.0\n" + "".join(f'def "a{n}" ({arc} = </a{n + 1}>) {{\n}}\n' for n in range(1500)))
    with pytest.raises(InputError, match="/a0: is the first of more than 100 prims"):
        open_stage(path)
    assert len(asked) <= arcs.LONGEST_CHAIN + 1
