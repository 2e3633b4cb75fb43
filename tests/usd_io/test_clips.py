"""Value clips lie where the data is: a shot may refer to a cache, to any prim of it, or lie above it; older caches still open."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cache_samples import ALL, MATERIAL, fog_and_velocity, manifest, particles, sphere, tetrahedron, write_frame, write_frames
from pxr import Sdf, Usd, UsdGeom

from mpm_nodes import cli
from mpm_nodes.data import Collider, CollisionRule, FrameContext, GraphSettings, InputError, Material
from mpm_nodes.graph.cook.repair import find_faults
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.nodes.caches import write_cache
from usd_io import stage as stages
from usd_io.bounds import floor_of, read_bounds, store_bounds, widen_bounds
from usd_io.check import check_cache
from usd_io.clips import author_clips, clip_sets, clipped_prims
from usd_io.relink import missing_files, relink
from usd_io.stage_reader import frames_of, open_stage, read_points

FRAMES = (1, 2, 3)
OTHER = Material("liquid", {}, 1000.0, "water")


def write_all(folder: Path, apart: bool, packed: bool) -> Path:
    """Cook a cache with every kind of prim that a frame may hold: points, skins of two materials, volumes, bodies that move."""
    revision = Revision.create(folder, manifest())
    for frame in FRAMES:
        skin, surface = tetrahedron(1.0 + frame), sphere((0.0, 0.0, 0.0), 0.15 + 0.02 * frame, 0.02)
        columns = {**skin.attributes, "material": np.array([0, 0, 0, 1])}
        skin = dataclasses.replace(skin, attributes=columns, materials=(MATERIAL, OTHER), matter_volume=0.1 * frame)
        bodies = [
            Collider(name, CollisionRule.STICKY, 0.0, None, tetrahedron(frame), still=name == "bowl") for name in ("bowl", "lid")
        ]
        context = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
        knobs: dict[str, Any] = {"mesh_per_material": apart, "position_precision": 0.001 * packed, "attributes": ALL}
        write_cache(
            context, particles(40 + frame, frame), skin, (surface, *fog_and_velocity(surface)), bodies, name="shot", **knobs
        )
        context.files.commit()
    revision.close()
    return revision.folder / "shot.usda"


@pytest.fixture(scope="module", params=["subsets", "mesh_per_material", "packed"])
def cache(request, tmp_path_factory) -> Path:
    return write_all(tmp_path_factory.mktemp("cook"), request.param == "mesh_per_material", request.param == "packed")


def written(cache: Path) -> dict[str, dict[int, Any]]:
    """Return the samples of each attribute of each prim at each frame, from the layers of the frames."""
    found: dict[str, dict[int, Any]] = {}
    for frame in FRAMES:
        layer = Sdf.Layer.FindOrOpen(str(cache.parent / f"shot/shot.{frame:04d}.usdc"))
        paths: list[Sdf.Path] = []
        layer.Traverse("/", paths.append)
        for path in paths:
            if path.IsPropertyPath() and layer.QueryTimeSample(path, frame) is not None:
                found.setdefault(str(path), {})[frame] = layer.QueryTimeSample(path, frame)
    return found


def same(stage: Usd.Stage, path: str, frame: int, value: Any) -> bool:
    found = stage.GetAttributeAtPath(path).Get(frame)
    if isinstance(value, Sdf.AssetPath):  # relative to the layer of the frame
        return Path(found.resolvedPath).name == Path(value.path).name and Path(found.resolvedPath).is_file()
    return found is not None and np.array_equal(np.array(found), np.array(value))


def shots(cache: Path, folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield shots that bring a cache in, with the path of a prim of the cache and its path in the shot."""
    ways: list[tuple[str, str, str]] = [("sublayer", "/shot", "/shot"), ("reference", "/shot", "/top/shot")]
    ways += [
        ("reference", prim, f"/top/part_{number}")
        for number, prim in enumerate(sorted({Sdf.Path(p).GetPrimPath().pathString for p in written(cache)}))
    ]
    for number, (way, prim, place) in enumerate(ways):
        path = folder / f"of_{number}.usda"
        shot = Usd.Stage.CreateNew(str(path))
        UsdGeom.SetStageMetersPerUnit(shot, 1.0)
        UsdGeom.SetStageUpAxis(shot, "Y")
        shot.SetStartTimeCode(FRAMES[0])
        shot.SetEndTimeCode(FRAMES[-1])
        shot.SetTimeCodesPerSecond(24.0)
        if way == "sublayer":
            shot.GetRootLayer().subLayerPaths = [str(cache)]
        else:
            shot.DefinePrim("/top", "Xform")
            shot.DefinePrim(place).GetReferences().AddReference(str(cache), prim)
        shot.GetRootLayer().defaultPrim = place.split("/")[1]
        shot.Save()
        yield path, prim, place


def test_every_way_into_a_shot_brings_every_sample(cache, tmp_path):
    """Reference of the cache, of each prim of it that has samples, and sublayer: what was written comes, frame by frame; `check`
    finds nothing, and the points have the frames of the cache."""
    samples, seen = written(cache), set()
    assert {"/shot/mesh", "/shot/volume", "/shot/volume/vel", "/shot/collider_lid"} <= {path.split(".")[0] for path in samples}
    for shot, prim, place in shots(cache, tmp_path):
        stage = open_stage(shot)
        inside = {path: values for path, values in samples.items() if path.startswith((f"{prim}.", f"{prim}/"))}
        assert inside, prim
        for path, values in inside.items():
            for frame in FRAMES:
                told = (shot.name, prim, path, frame)
                if frame in values:
                    assert same(stage, path.replace(prim, place, 1), frame, values[frame]), told
        seen |= set(inside)
        assert [line for line in check_cache(shot) if "the surface holds" not in line] == [], prim
        if prim in ("/shot", "/shot/particles"):
            found = frames_of(shot, "particles" if prim == "/shot" else "")
            assert (found.first, found.last) == (FRAMES[0], FRAMES[-1])
            assert [len(read_points(shot, frame)) for frame in FRAMES] == [40 + frame for frame in FRAMES]
    assert seen == samples.keys()


def test_clips_are_on_each_prim_that_they_animate(cache):
    """The prims with clips are those of the manifest, each by its own path."""
    root = Sdf.Layer.FindOrOpen(str(cache))
    told = {str(prim.path): clip_sets(prim)["default"]["primPath"] for prim in clipped_prims(root)}
    assert all(prim == path for prim, path in told.items())
    assert {Sdf.Path(path).GetPrimPath().pathString for path in written(cache)} <= told.keys()
    assert "/shot/collider_bowl" not in told and "/shot/looks" not in told


# ---------------------------------------------------------------- the root prim alone, as older versions had it
def on_the_root_alone(root: Sdf.Layer, animated: Sdf.Layer, *rest: Any) -> None:
    author_clips(root, animated, *rest)
    for prim in list(clipped_prims(root)):
        if not prim.path.IsRootPrimPath():
            prim.ClearInfo("clips")


@pytest.fixture(params=["old", "new"])
def either(request, tmp_path, monkeypatch) -> Path:
    """Two frames of a cook by this version, or by one that knew clips of root prims only."""
    with monkeypatch.context() as patched:
        if request.param == "old":
            patched.setattr(stages, "author_clips", on_the_root_alone)
        folder, _ = write_frames(tmp_path / "out", 2)
    clipped = list(clipped_prims(Sdf.Layer.OpenAsAnonymous(str(folder / "shot.usda"))))
    assert (len(clipped) == 1) == (request.param == "old")
    return folder


def test_both_layouts_open_are_checked_and_found_again(either, capsys):
    """Readers, checker, and `check --repair` of a renamed folder; only names of folders change in what is written."""
    stage = either / "shot.usda"
    assert check_cache(stage) == []
    assert [len(read_points(stage, frame)) for frame in (1, 2)] == [100, 150]
    before = stage.read_text()
    (either / "shot").rename(either / "moved")
    gone = missing_files(stage)
    assert len(gone) == 5 and len(gone) == len(set(gone))
    assert len([line for line in check_cache(stage) if " is missing" in line]) == len(gone)
    assert relink(stage) == ["shot.usda: ./shot is ./moved now"]
    assert before.replace("@./shot/", "@./moved/").splitlines()[1:] == stage.read_text().splitlines()[1:]
    assert check_cache(stage) == [] and missing_files(stage) == []
    capsys.readouterr()


def test_both_layouts_go_on_are_cleaned_and_whole(either, tmp_path, capsys):
    """A resumed cook of either ends with the files of an uninterrupted one of today; nothing of it is damaged or superfluous."""
    whole, _ = write_frames(tmp_path / "whole", 3)
    revision = Revision.resume(either.parent, manifest())
    revision.roll_back(2)
    write_frame(revision, 3)
    assert find_faults(revision, 1, 3, digests=range(1, 4)) == []
    revision.close()
    assert cli.main(["clean", str(either.parent), "--yes"]) == 0
    capsys.readouterr()
    files = [path for path in whole.rglob("*") if path.is_file() and path.suffix in (".usda", ".usdc", ".vdb")]
    assert len(files) == 3 * 2 + 4
    for path in files:
        assert (either / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name


def test_a_prim_of_an_older_cache_says_why_it_is_empty(either, tmp_path):
    """Where the clips were left behind, checker and reader name the cache and what to refer to."""
    old = len(list(clipped_prims(Sdf.Layer.OpenAsAnonymous(str(either / "shot.usda"))))) == 1
    shot = Usd.Stage.CreateNew(str(tmp_path / "of_points.usda"))
    shot.SetStartTimeCode(1)
    shot.SetEndTimeCode(2)
    for name in ("particles", "collider_bowl"):
        shot.DefinePrim(f"/{name}").GetReferences().AddReference(str(either / "shot.usda"), f"/shot/{name}")
    shot.Save()
    says = [line for line in check_cache(tmp_path / "of_points.usda") if "older version" in line]
    if not old:
        assert says == [] and len(read_points(tmp_path / "of_points.usda", 2)) == 150
        return
    assert len(says) == 1 and says[0].startswith("/particles: has no frames: ") and "refer to /shot, or cook" in says[0]
    with pytest.raises(InputError, match=r"/particles: has no frames: .*shot\.usda is of an older version"):
        read_points(tmp_path / "of_points.usda", 2)


# ---------------------------------------------------------------- what is missing, seen from a shot
def test_clips_are_looked_for_beside_the_cache(either, tmp_path):
    """A shot in another folder finds them; where they are gone it names the cache, and how to find them again."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shot = Usd.Stage.CreateNew(str(folder / "shot_of_it.usda"))
    shot.SetStartTimeCode(1)
    shot.SetEndTimeCode(2)
    shot.DefinePrim("/shot").GetReferences().AddReference(str(either / "shot.usda"))
    shot.Save()
    assert not [line for line in check_cache(folder / "shot_of_it.usda") if "missing" in line]
    (either / "shot/shot.0002.usdc").unlink()
    found = [line for line in check_cache(folder / "shot_of_it.usda") if "missing" in line or "check" in line]
    assert found[0] == f"{either / 'shot.usda'}: /shot: clip ./shot/shot.0002.usdc is missing"
    assert f"mpm-nodes check {either / 'shot.usda'} --repair" in found[1] and len(found) == 2
    shutil.rmtree(either / "shot")
    with pytest.raises(InputError, match=r"out/r001/shot\.usda: \./shot/shot\..* and 4 more of its files are missing; "):
        read_points(folder / "shot_of_it.usda", 2, "/shot/particles")


@pytest.mark.parametrize(
    "clips",
    [
        'string default = "x"',
        "dictionary default = {}",
        'dictionary default = {\nstring assetPaths = "x"\nint manifestAssetPath = 1\n}',
    ],
)
def test_clips_of_another_type_are_none(tmp_path, clips):
    """Below a root prim or in a variant: checker and `check --repair` pass over them."""
    prim = f"(\nclips = {{\n{clips}\n}}\n)"
    variants = f'variantSet "v" = {{\n"a" {prim} {{\n}}\n}}'
    path = tmp_path / "odd.usda"
    path.write_text(f'#usda 1.0\ndef Xform "a" (\nprepend variantSets = "v"\n) {{\ndef Xform "b" {prim} {{\n}}\n{variants}\n}}\n')
    assert missing_files(path) == [] and relink(path) == []
    assert [line for line in check_cache(path) if "clip" in line] == []


def test_clips_go_on_for_a_frame_after_the_last():
    """There the last layer ends the velocities and all else is held: without it the last frame would have no shutter to close."""
    root, animated = Sdf.Layer.CreateAnonymous(), Sdf.Layer.CreateAnonymous()
    for layer in (root, animated):
        Sdf.CreatePrimInLayer(layer, "/shot")
    author_clips(root, animated, "manifest.usda", ["a.usdc", "b.usdc", "c.usdc"], 5)
    (facts,) = clip_sets(root.GetPrimAtPath("/shot")).values()
    assert [tuple(pair) for pair in facts["times"]] == [(n, n) for n in (5, 6, 7, 8)]
    assert [tuple(pair) for pair in facts["active"]] == [(5, 0), (6, 1), (7, 2)]


def test_the_floor_of_a_shot_lies_below_the_lowest_of_its_frames():
    """Whichever frame comes last."""
    boxes = [np.array([[0.0, low, 0.0], [1.0, low + 1.0, 1.0]]) for low in (2.0, -3.0, 0.5)]
    root = Sdf.Layer.CreateAnonymous()
    for box in boxes:
        layer = Sdf.Layer.CreateAnonymous()
        store_bounds(layer, [box], [box], [])
        widen_bounds(root, layer)
    np.testing.assert_array_equal(read_bounds(root), [[0.0, -3.0, 0.0], [1.0, 3.0, 1.0]])
    assert -3.1 < floor_of(root)[0] < -3.0
