"""Blender as renderer: what its failures are called, the fallback, and one real frame."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preview_samples import write_cache

from mpm_nodes import Graph
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.preview import cycles
from mpm_nodes.preview import pictures as preview
from mpm_nodes.preview.scene import look

LOADER = "ImportError: libXrender.so.1: cannot open shared object file: No such file or directory"


def test_missing_system_libraries_are_named_with_their_packages():
    """The dynamic loader's line becomes the Debian packages of the whole family."""
    told = cycles.blender_problem(["Traceback", LOADER], 1)
    assert "libXrender" in told and "libxrender1" in told and "libx11-6" in told and "libxkbcommon0" in told
    assert "\n" not in told
    assert "pip install 'mpm-nodes[vdb]'" in cycles.blender_problem(["ModuleNotFoundError: No module named 'bpy'"], 1)
    assert "exit status -11): Saved" in cycles.blender_problem(["Saved", ""], -11)


def test_auto_falls_back_to_the_splat_with_the_reason(tmp_path: Path, monkeypatch):
    """A Blender that cannot start: pictures all the same, and the message says why."""
    folder = tmp_path / "out"
    write_cache(folder)

    def fail(*args: object) -> None:
        raise preview.EngineMissing(cycles.blender_problem([LOADER], 1))

    monkeypatch.setattr(cycles, "_run_blender", fail)
    made = preview.render_cache(folder, frames=[2], picture=preview.Picture((80, 60)))
    assert made.engine == "splat" and len(made.images) == 1
    assert "libXrender" in made.message and "built-in splat renderer" in made.message
    with pytest.raises(preview.EngineMissing, match="libxrender1"):
        preview.render_cache(folder, frames=[2], picture=preview.Picture((80, 60)), engine="cycles")


def test_a_hanging_blender_is_ended(tmp_path: Path, monkeypatch):
    """The child's time limit ends it and is reported as such."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(cycles, "_BLENDER_SCRIPT", slow)
    monkeypatch.setattr(cycles, "_START_SECONDS", 0.2)
    monkeypatch.setattr(cycles, "_SECONDS_PER_FRAME", 0.1)
    with pytest.raises(preview.EngineMissing, match="no result within"):
        cycles._run_blender(tmp_path / "job.json", 1, print)


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
        made = preview.render_cache(folder, frames=[3], engine="cycles", picture=preview.Picture((96, 72), 2, camera=away))
    except preview.EngineMissing as error:
        pytest.skip(str(error))
    picture = np.asarray(Image.open(made.images[0]).convert("RGB")).astype(int)
    assert (picture[..., 0] > picture[..., 2] + 50).sum() == 0


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
def test_cycles_blurs_and_colours_by_a_vector(tmp_path: Path):
    """Points whose speed grows from left to right go from the legend's first colour to its last; an open shutter smears them."""
    from pxr import Usd, UsdGeom, Vt

    path = write_cache(tmp_path / "out")
    stage = Usd.Stage.Open(str(path))
    points = UsdGeom.Points(stage.GetPrimAtPath("/sim/points"))
    place = np.array(points.GetPointsAttr().Get(3), np.float32)
    speed = np.zeros_like(place)
    speed[:, 0] = 10.0 * (place[:, 0] - place[:, 0].min())
    points.GetVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(speed), 3)
    stage.Save()
    view = look(np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 0.0]), 1.5)
    shown = {}
    for shutter in (0.0, 1.0):
        try:
            made = preview.render_cache(
                path, [3], tmp_path / f"{shutter}", "cycles", preview.Picture((96, 72), 8, "velocity", shutter, view)
            )
        except preview.EngineMissing as error:
            pytest.skip(str(error))
        shown[shutter] = np.asarray(Image.open(made.images[0]).convert("RGB")).astype(int)
    sharp = shown[0.0][18:28]  # above the legend
    left, right = sharp[:, 32:40].mean(axis=(0, 1)), sharp[:, 56:63].mean(axis=(0, 1))
    assert right[0] > left[0] + 60  # bright yellow is fast, dark blue is slow
    assert np.abs(shown[1.0] - shown[0.0])[18:28, 56:].max() > 40


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
def test_both_renderers_show_the_same_colours(tmp_path: Path):
    """Lit floor, a body's lit top and foam: mean colours of Cycles and splat differ by less than 20 of 255. So does the edge, where
    the ground fades into the sky: to Cycles it ended at a horizon."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=1)
    foam = graph.add(
        "emit_box",
        "foam",
        material=graph.add("material_library", "cream", name="shaving_cream"),
        size=(0.4, 0.4, 0.4),
        centre=(-0.4, 0.2, 0.0),
    )
    block = graph.add("collide_box", "block", size=(0.6, 0.3, 0.4), centre=(0.4, 0.15, 0.0))
    skin = graph.add("surface_particles", "surface", particles=foam)
    graph.add("write_cache", "cache", particles=foam, mesh=skin["mesh"], colliders=[graph.add("collide_plane", "floor"), block])
    folder = execute(graph, out=tmp_path / "out").revision_folder
    view, pictures = look(np.array([0.9, 1.2, 2.6]), np.array([0.0, 0.15, 0.0]), 1.4), {}
    for engine in ("splat", "cycles"):
        made = preview.render_cache(folder, engine=engine, picture=preview.Picture((192, 108), 16, camera=view))
        pictures[engine] = np.asarray(Image.open(made.images[0])).astype(float)
    for place in ((-0.4, 0.4, 0.0), (0.4, 0.3, 0.0), (0.0, 0.0, 0.9)):
        away = np.array(place) - view.eye
        depth = away @ view.forward
        column = int(96 + view.focal * 192 * (away @ view.right) / depth)
        row = int(54 - view.focal * 192 * (away @ view.up) / depth)
        seen = {
            engine: picture[row - 2 : row + 3, column - 2 : column + 3].mean(axis=(0, 1)) for engine, picture in pictures.items()
        }
        assert np.abs(seen["splat"] - seen["cycles"]).max() < 20.0, (place, seen)
    edge = {engine: picture[:, :4].mean(axis=1) for engine, picture in pictures.items()}
    assert np.abs(edge["splat"] - edge["cycles"]).max() < 20.0
    assert edge["splat"][0].mean() > edge["splat"][60].mean() + 10.0  # the sky is brighter


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
@pytest.mark.parametrize("apart", [False, True], ids=["subsets", "meshes"])
def test_cycles_shades_each_material_by_its_look_in_every_frame(tmp_path: Path, apart: bool):
    """Water beside matte matter is clear in the third frame as in the first, which is the one that Blender imports."""
    view = look(np.array([0.0, 0.7, 1.6]), np.array([0.0, 0.1, 0.0]), 1.4)
    shown = {}
    for looks, frames in ((("matte", "water"), [1, 3]), (("matte", "matte"), [3])):
        graph = Graph(cell_size=0.08, fps=24, start=1, end=3)
        sides = [
            graph.add(
                "emit_box",
                f"{name}_box",
                material=graph.add("material_library", name, name=name),
                size=(0.4, 0.4, 0.4),
                centre=(x, 0.2, 0.0),
            )
            for name, x in (("rubber", -0.3), ("honey", 0.3))
        ]
        both = graph.add("set_looks", "looks", particles=graph.add("merge_particles", "both", sources=sides), looks=looks)
        painted = graph.add("colour_particles", "colour", particles=both, colours=("#cc2211", "#cc2211"))
        finer = {"keys": [[1, 0.03, "linear"], [3, 0.025, "linear"]]}  # other faces in every frame
        skin = graph.add("surface_particles", "surface", particles=painted, voxel_size=finer)
        graph.add("write_cache", "cache", particles=painted, mesh=skin["mesh"], mesh_per_material=apart)
        folder = execute(graph, out=tmp_path / looks[1]).revision_folder
        try:
            made = preview.render_cache(folder, frames, engine="cycles", picture=preview.Picture((96, 72), 16, camera=view))
        except preview.EngineMissing as error:
            pytest.skip(str(error))
        for frame, image in zip(frames, made.images, strict=True):
            picture = np.asarray(Image.open(image).convert("RGB")).astype(float)
            shown[looks[1], frame] = picture[30:50, 60:75].mean(axis=(0, 1))
    assert np.abs(shown["water", 3] - shown["water", 1]).max() < 6.0
    assert np.abs(shown["water", 3] - shown["matte", 3]).max() > 25.0
