"""A damaged frame of a cache is refused by its digest before OpenUSD opens it, whoever reads: in a sentence, as input."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cache_samples import manifest, particles, tetrahedron
from pxr import Sdf, Usd, UsdGeom

from mpm_nodes import cli
from mpm_nodes.data import FrameContext, GraphSettings, InputError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.nodes.caches import write_cache
from mpm_nodes.preview.pictures import Picture, render_cache
from usd_io.check import check_cache
from usd_io.collider_meshes import StageMeshes
from usd_io.stage_reader import open_stage, read_points, sample_times

BAD = "shot.0002.usdc"


@pytest.fixture(scope="module", params=[0.001, 0.0], ids=["packed", "exact"])
def cache(request, tmp_path_factory) -> Path:
    """Cook three frames of particles and a mesh."""
    revision = Revision.create(tmp_path_factory.mktemp("cook"), manifest())
    for frame in (1, 2, 3):
        context = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
        knobs = {"position_precision": request.param, "attributes": ("velocity", "id", "material", "mass", "volume", "precise")}
        write_cache(context, particles(60, frame), tetrahedron(frame), name="shot", **knobs)
        context.files.commit()
    revision.close()
    return revision.folder


def flipped(at: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[int(at * (len(data) - 1))] ^= 0x10
        path.write_bytes(data)

    return damage


def cut(at: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(at * (path.stat().st_size - 1)))


def noise(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:200] + random.Random(3).randbytes(100) + data[300:])


def linked(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("shot.0003.usdc"))


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    **{f"flip {share}": flipped(share) for share in (0.0, 0.001, 0.01, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.97, 0.99, 1.0)},
    **{f"cut {share}": cut(share) for share in (0.0, 0.01, 0.5, 1.0)},
    "swapped": lambda path: shutil.copy(path.with_name("shot.0003.usdc"), path),
    "grown": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "noise": noise,
    "text": lambda path: path.write_text("#usda 1.0\n"),
    "folder": replaced(Path.mkdir),
    "link to another frame": linked,
    "link to nothing": replaced(lambda path: path.symlink_to("nowhere")),
    "missing": Path.unlink,
}
if hasattr(os, "mkfifo"):
    DAMAGES["pipe"] = replaced(os.mkfifo)

READERS: dict[str, Callable[[Path, Path], object]] = {
    "points": lambda stage, out: render(stage, out, show="points"),
    "surface": lambda stage, out: render(stage, out, show="surface"),
    "colours": lambda stage, out: render(stage, out, colour_by="precise"),
    "blur": lambda stage, out: render(stage, out, shutter=0.5, show="points"),
    "read": lambda stage, out: read_points(stage, 2),
    "collider": lambda stage, out: StageMeshes(stage, "/shot/mesh").points(2.0),
}


def render(stage: Path, out: Path, **how) -> object:
    return render_cache(stage, [1, 2], out, "splat", Picture(size=(32, 24), **how))


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_reader_refuses_every_damage(cache, tmp_path, kind):
    """The message names the file, and what to do; no damage is shown or read as if it were sound, and none is called a defect."""
    shutil.copytree(cache, tmp_path / "r001")
    stage = tmp_path / "r001/shot.usda"
    DAMAGES[kind](tmp_path / "r001/shot" / BAD)
    for name, reads in READERS.items():
        with pytest.raises(InputError) as told:
            reads(stage, tmp_path / "pictures")
        assert told.value.exit_code == 5, name
        text = str(told.value)
        assert BAD in text and ("--repair" in text or "is not a regular file" in text), (name, text)
    try:
        problems = check_cache(stage)
    except InputError as error:
        problems = [str(error)]
    assert any(BAD in problem for problem in problems)


@pytest.mark.parametrize("kind", ["flip 0.99", "cut 0.5", "swapped"])
def test_commands_and_nodes_end_as_with_other_damaged_caches(cache, tmp_path, capsys, kind):
    """`render` exits with 5, `check` with 1; nodes that read points name the frame's file."""
    shutil.copytree(cache, tmp_path / "r001")
    DAMAGES[kind](tmp_path / "r001/shot" / BAD)
    assert cli.main(["render", str(tmp_path), "--engine", "splat", "--frames", "1-2", "--size", "32x24"]) == 5
    told = capsys.readouterr().err
    assert "error: " in told and BAD in told and f"mpm-nodes check {tmp_path / 'r001'} --repair GRAPH" in told
    assert cli.main(["check", str(tmp_path / "r001/shot.usda")]) == 1
    assert BAD in capsys.readouterr().out
    for node in ("read_points", "retime_points", "emit_secondary"):
        graph = Graph(cell_size=0.1, start=1, end=3)
        graph.add(node, "reads", path=str(tmp_path / "r001/shot.usda"))
        with pytest.raises(InputError, match=BAD):
            execute(graph)


def test_sound_frames_beside_a_damaged_one_are_read(cache, tmp_path):
    """Only the layer of the frame that is read is opened: those around it may be anything."""
    shutil.copytree(cache, tmp_path / "r001")
    stage = tmp_path / "r001/shot.usda"
    DAMAGES["cut 0.5"](tmp_path / "r001/shot" / BAD)
    for frame in (1, 3):
        assert np.array_equal(read_points(stage, frame)["position"], read_points(cache / "shot.usda", frame)["position"])
        render_cache(stage, [frame], tmp_path / "pictures", "splat", Picture(size=(32, 24), show="points"))
    opened = {Path(layer.realPath).name for layer in Sdf.Layer.GetLoadedLayers() if layer.realPath.startswith(str(tmp_path))}
    assert BAD not in opened


def test_a_sound_file_elsewhere_is_sound(cache, tmp_path):
    """A link to the same bytes, records that are gone, a shot that refers to the cache: read as ever, and damage is told."""
    shutil.copytree(cache, tmp_path / "r001")
    bad = tmp_path / "r001/shot" / BAD
    bad.rename(tmp_path / "elsewhere.usdc")
    bad.symlink_to(tmp_path / "elsewhere.usdc")
    shot = Usd.Stage.CreateNew(str(tmp_path / "shot.usda"))
    UsdGeom.SetStageMetersPerUnit(shot, 1.0)
    shot.DefinePrim("/drop").GetReferences().AddReference(
        str(tmp_path / "r001/shot.usda"), "/shot/particles", Sdf.LayerOffset(10.0)
    )
    shot.Save()
    wanted = read_points(cache / "shot.usda", 2)["position"]
    assert np.array_equal(read_points(tmp_path / "r001/shot.usda", 2)["position"], wanted)
    assert np.array_equal(read_points(tmp_path / "shot.usda", 12)["position"], wanted)
    stage = open_stage(tmp_path / "shot.usda")
    assert sample_times(stage.GetAttributeAtPath("/drop.extent")) == [11.0, 12.0, 13.0]
    flipped(0.5)(tmp_path / "elsewhere.usdc")
    with pytest.raises(InputError, match=f"/drop at frame 12: .*{BAD} holds other bytes"):
        read_points(tmp_path / "shot.usda", 12)
    shutil.rmtree(tmp_path / "r001/frames")
    (tmp_path / "r001/shot" / BAD).unlink()
    shutil.copy(cache / "shot" / BAD, tmp_path / "r001/shot" / BAD)
    assert np.array_equal(read_points(tmp_path / "r001/shot.usda", 2)["position"], wanted)
