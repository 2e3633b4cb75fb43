"""Our own checker and USD's validators: silent on a sound cache, and ours speaks of each thing that readers trip on."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from cache_samples import write_frames
from pxr import Gf, Sdf, UsdUtils, UsdValidation

from mpm_nodes import cli
from mpm_nodes.data import InputError
from mpm_nodes.preview.pictures import render_cache
from usd_io.check import check_cache
from usd_io.relink import missing_files, relink
from usd_io.stage_reader import open_stage, read_points


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    folder, _ = write_frames(tmp_path_factory.mktemp("cook"))
    return folder


def test_validators_find_nothing(cache):
    """USD's validators, the older checker where this version of USD has it, and ours find nothing in three frames."""
    path = str(cache / "shot.usda")
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 10
    errors = UsdValidation.ValidationContext(validators).Validate(open_stage(path))
    # without the plugin usdMtlx USD knows no node of MaterialX; test_looks.py holds them to MaterialX's own definitions
    texts = [error.GetErrorAsString() for error in errors]
    assert [text for text in texts if "MissingShaderIdInRegistry) shaderId 'ND_" not in text] == []
    if hasattr(UsdUtils, "ComplianceChecker"):
        checker = UsdUtils.ComplianceChecker()
        checker.CheckCompliance(path)
        assert checker.GetErrors() + checker.GetWarnings() + checker.GetFailedChecks() == []
    assert check_cache(path) == []


def test_nothing_outside_the_folder_is_needed(cache):
    """Tools that collect the files of a stage find every layer and volume, all below its folder."""
    layers, assets, unresolved = UsdUtils.ComputeAllDependencies(str(cache / "shot.usda"))
    names = {Path(layer.realPath).name for layer in layers} | {Path(asset).name for asset in assets}
    assert not unresolved
    assert {f"shot.000{k}.{kind}" for k in (1, 2, 3) for kind in ("usdc", "vdb")} <= names


def change(folder: Path, prim: str, attribute: str, values) -> None:
    """Give frame 2 another value."""
    layer = Sdf.Layer.FindOrOpen(str(folder / "shot/shot.0002.usdc"))
    layer.SetTimeSample(f"/shot/{prim}.{attribute}", 2.0, values)
    layer.Save()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / "shot/shot.0002.usdc").unlink(), "clip ./shot/shot.0002.usdc is missing"),
        (lambda at: (at / "shot/shot.0002.usdc").write_bytes(b"PXR-USDC" + b"\0" * 90), "is damaged|cannot be"),
        (lambda at: (at / "shot/shot.0003.vdb").unlink(), "/shot/volume/vel frame 3: volume file .* is missing"),
        (lambda at: (at / "shot/shot.0002.vdb").write_bytes(b"text"), "not a whole OpenVDB file"),
        (lambda at: change(at, "volume/vel", "filePath", Sdf.AssetPath("./shot.0001.vdb")), "does not end with the"),
        (lambda at: change(at, "mesh", "faceVertexIndices", [10**6] * 3), "names point 1000000"),
        (lambda at: change(at, "particles", "widths", [1.0]), "widths has 1 values for 150 points"),
        (lambda at: change(at, "particles", "velocities", [Gf.Vec3f(np.nan)] * 150), "velocities holds NaN"),
        (lambda at: change(at, "particles", "extent", [Gf.Vec3f(0), Gf.Vec3f(0.1)]), "the extent from"),
    ],
)
def test_each_damage_is_told(cache, tmp_path, damage, says):
    """Every damage that validators overlook is one line that names prim or file and frame; no record says what the files held."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder, ignore=shutil.ignore_patterns("frames"))
    damage(folder)
    problems = check_cache(folder / "shot.usda")
    assert any(re.search(says, problem) for problem in problems), problems


def test_field_that_is_not_in_its_file(cache, tmp_path):
    """A field named otherwise than its grid is told with what the file holds."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    root = folder / "shot.usda"
    root.write_text(root.read_text().replace('fieldName = "density"', 'fieldName = "smoke"'))
    assert any("field 'smoke' is not in shot.0001.vdb" in problem for problem in check_cache(root))


def test_missing_frame_and_metadata(cache, tmp_path):
    """A frame that the clips leave out, and units that are not written, are told."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    root = folder / "shot.usda"
    text = root.read_text().replace("endTimeCode = 3", "endTimeCode = 4").replace("    metersPerUnit = 1\n", "")
    root.write_text(text)
    problems = check_cache(root)
    assert any("no sample at frame 4" in problem for problem in problems), problems
    assert any("metersPerUnit is not written" in problem for problem in problems)


def test_renamed_folder_is_told_and_found_again(cache, tmp_path, capsys):
    """Checker, reader and renderer say that the data folder is gone; `check --repair` finds it under its new name."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    stage = folder / "shot.usda"
    whole = read_points(stage, 2)
    (folder / "shot").rename(folder / "shot_v002")
    assert len(missing_files(stage)) == 6
    for reads in (lambda: read_points(stage, 2), lambda: render_cache(folder, engine="splat", out=tmp_path / "pictures")):
        with pytest.raises(InputError, match=r"\./shot/.* and 5 more of its files are missing; .*check .*shot.usda --repair"):
            reads()
    assert cli.main(["check", str(stage)]) == 1
    assert "mpm-nodes check" in capsys.readouterr().out
    assert cli.main(["check", str(stage), "--repair"]) == 0
    assert "./shot is ./shot_v002 now" in capsys.readouterr().out
    found = read_points(stage, 2)
    assert all(np.array_equal(found[name], whole[name]) for name in whole.attributes)
    assert relink(stage) == []


def test_ambiguous_and_lost_folders_are_not_guessed(cache, tmp_path):
    """Two folders that fit, or none, leave the stage as it is."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    before = (folder / "shot.usda").read_bytes()
    (folder / "shot").rename(folder / "a")
    shutil.copytree(folder / "a", folder / "b")
    with pytest.raises(InputError, match="2 folders hold them: a, b"):
        relink(folder / "shot.usda")
    shutil.rmtree(folder / "a")
    (folder / "b/shot.0002.usdc").unlink()
    with pytest.raises(InputError, match="no folder beside the stage holds them"):
        relink(folder / "shot.usda")
    assert (folder / "shot.usda").read_bytes() == before


def test_colours_that_no_picture_shows_are_told(cache, tmp_path):
    """Painted points whose look reads another primvar."""
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    stage = folder / "shot.usda"
    text = stage.read_text()
    reads = 'string inputs:varname = "displayColor"'
    assert reads in text
    stage.write_text(text.replace(reads, 'string inputs:varname = "another"'))
    assert [problem for problem in check_cache(stage) if "displayColor is not read by the material" in problem]


def test_check_of_a_stage_prints_what_the_checker_finds(cache, tmp_path, capsys):
    """Exit code 0 and a line for a sound stage; a list in JSON for a damaged one, and no cook where a stage is given a graph."""
    assert cli.main(["check", str(cache / "shot.usda")]) == 0
    assert "nothing that readers trip on" in capsys.readouterr().out
    folder = tmp_path / "copy"
    shutil.copytree(cache, folder)
    (folder / "shot/shot.0003.vdb").unlink()
    assert cli.main(["check", str(folder / "shot.usda"), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 3
    assert cli.main(["check", str(folder / "shot.usda"), "--repair", "graph.json"]) != 0
    assert "without a graph" in capsys.readouterr().err
