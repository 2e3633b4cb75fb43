"""Blender as renderer: what its failures are called, the fallback, and one real frame."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preview_samples import write_cache

from mpm_nodes.preview import pictures as preview
from mpm_nodes.preview.scene import look

LOADER = "ImportError: libXrender.so.1: cannot open shared object file: No such file or directory"


def test_missing_system_libraries_are_named_with_their_packages():
    """The dynamic loader's line becomes the Debian packages of the whole family."""
    told = preview.blender_problem(["Traceback", LOADER], 1)
    assert "libXrender" in told and "libxrender1" in told and "libx11-6" in told and "libxkbcommon0" in told
    assert "\n" not in told
    assert "pip install 'mpm-nodes[vdb]'" in preview.blender_problem(["ModuleNotFoundError: No module named 'bpy'"], 1)
    assert "exit status -11): Saved" in preview.blender_problem(["Saved", ""], -11)


def test_auto_falls_back_to_the_splat_with_the_reason(tmp_path: Path, monkeypatch):
    """A Blender that cannot start: pictures all the same, and the message says why."""
    folder = tmp_path / "out"
    write_cache(folder)

    def fail(*args: object) -> None:
        raise preview.EngineMissing(preview.blender_problem([LOADER], 1))

    monkeypatch.setattr(preview, "_run_blender", fail)
    made = preview.render_cache(folder, frames=[2], picture=preview.Picture((80, 60)))
    assert made.engine == "splat" and len(made.images) == 1
    assert "libXrender" in made.message and "built-in splat renderer" in made.message
    with pytest.raises(preview.EngineMissing, match="libxrender1"):
        preview.render_cache(folder, frames=[2], picture=preview.Picture((80, 60)), engine="cycles")


def test_a_hanging_blender_is_ended(tmp_path: Path, monkeypatch):
    """The child's time limit ends it and is reported as such."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(preview, "_BLENDER_SCRIPT", slow)
    monkeypatch.setattr(preview, "_START_SECONDS", 0.2)
    monkeypatch.setattr(preview, "_SECONDS_PER_FRAME", 0.1)
    with pytest.raises(preview.EngineMissing, match="no result within"):
        preview._run_blender(tmp_path / "job.json", 1, None)


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
def test_cycles_renders_the_points_in_their_colour(tmp_path: Path):
    """One frame in Blender: the particles' yellow is in the picture, which is neither black nor flat."""
    folder = tmp_path / "out"
    write_cache(folder)
    try:
        made = preview.render_cache(folder, frames=[3], engine="cycles", picture=preview.Picture((96, 72), 2))
    except preview.EngineMissing as error:
        pytest.skip(str(error))
    picture = np.asarray(Image.open(made.images[0]).convert("RGB")).astype(int)
    assert picture.shape == (72, 96, 3) and picture.std() > 8
    assert ((picture[..., 0] > picture[..., 2] + 50).sum()) > 100


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
def test_cycles_looks_from_where_it_is_told(tmp_path: Path):
    """A view of one's own comes before the stage's camera: one that looks away from the matter sees none of its yellow."""
    folder = tmp_path / "out"
    write_cache(folder)
    away = look(np.array([0.0, 50.0, 0.0]), np.array([100.0, 100.0, 0.0]), 1.5)
    try:
        made = preview.render_cache(folder, frames=[3], engine="cycles", picture=preview.Picture((96, 72), 2), view=away)
    except preview.EngineMissing as error:
        pytest.skip(str(error))
    picture = np.asarray(Image.open(made.images[0]).convert("RGB")).astype(int)
    assert (picture[..., 0] > picture[..., 2] + 50).sum() == 0
