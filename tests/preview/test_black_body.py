"""Hot matter glows as a black body: its luminance, its colour, and both in pictures."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preview_samples import FACES, OCTAHEDRON

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.materials.black_body import WHITE, emitted, luminance_fit, xyz
from mpm_nodes.preview.cycles import EngineMissing
from mpm_nodes.preview.pictures import Picture, render_cache
from mpm_nodes.preview.scene import open_scene

LUMA = np.array([0.2126729, 0.7151522, 0.0721750])


def hot_cache(folder: Path, hot: float, cold: float = 300.0) -> Path:
    """Write two octahedra as `mesh`, the left one at `cold` [K], the right one at `hot`."""
    from pxr import Usd, UsdGeom, Vt

    path = folder / "hot.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(1)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/sim").GetPrim())
    mesh = UsdGeom.Mesh.Define(stage, "/sim/mesh")
    mesh.GetSubdivisionSchemeAttr().Set("none")
    left, right = (0.5 * OCTAHEDRON + np.array([x, 0.5, 0.0], np.float32) for x in (-0.8, 0.8))
    mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.concatenate([left, right])))
    faces = np.concatenate([FACES.reshape(-1), 6 + FACES.reshape(-1)])
    mesh.GetFaceVertexCountsAttr().Set(Vt.IntArray([3] * (2 * len(FACES))))
    mesh.GetFaceVertexIndicesAttr().Set(Vt.IntArray.FromNumpy(faces))
    mesh.GetDisplayColorAttr().Set([(0.1, 0.1, 0.1)])
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("temperature", _float_array(), UsdGeom.Tokens.vertex)
    primvar.Set(Vt.FloatArray([cold] * 6 + [hot] * 6))
    stage.Save()
    return path


def _float_array():
    from pxr import Sdf

    return Sdf.ValueTypeNames.FloatArray


def sides(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean sRGB of a patch of the left and of the right octahedron."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"), float)
    height, width = pixels.shape[:2]
    rows = slice(int(0.45 * height), int(0.55 * height))
    return tuple(pixels[rows, int(x * width) - 6 : int(x * width) + 6].mean(axis=(0, 1)) for x in (0.29, 0.71))


def test_the_luminance_is_that_which_the_candela_was_once_defined_by():
    """A square metre of a black body at the freezing point of platinum, 2041.4 K, had 600,000 cd from 1948 to 1979."""
    assert xyz(np.array([2041.4]))[0, 1] == pytest.approx(6e5, rel=0.02)


@pytest.mark.parametrize(("temperature", "x", "y"), [(2855.5, 0.44758, 0.40745), (6504.0, 0.3135, 0.3236)])
def test_the_colour_is_that_of_the_planckian_locus(temperature, x, y):
    """Illuminant A of the CIE, and the locus at 6504 K."""
    found = xyz(np.array([temperature]))[0]
    assert found[0] / found.sum() == pytest.approx(x, abs=3e-3)
    assert found[1] / found.sum() == pytest.approx(y, abs=3e-3)


def test_what_is_emitted_keeps_the_luminance_and_has_no_negative_parts():
    """Orange glow lies outside of sRGB: it is clipped, as bright as it was."""
    T = np.array([800.0, 1000.0, 1321.0, 1500.0, 2500.0])
    found = emitted(T)
    assert (found >= 0.0).all() and (np.diff(found[:, 0]) > 0.0).all()
    assert np.allclose(found @ LUMA * WHITE, xyz(T)[:, 1], rtol=2e-3)
    assert not emitted(np.array([0.0, 300.0, 699.0, np.nan])).any() and not emitted(T, 0.0).any()
    assert np.allclose(emitted(T, 200.0), 10.0 * found, rtol=1e-5)


def test_the_fit_of_shaders_follows_the_luminance():
    """Within 5 % from 800 to 3000 K."""
    T = np.linspace(800.0, 3000.0, 100)
    assert np.abs(luminance_fit(T) / xyz(T)[:, 1] - 1.0).max() < 0.05


def test_a_scene_glows_where_it_is_hot(tmp_path):
    """Corners take the light of their own temperature; a colour by attribute shows that alone."""
    scene = open_scene(hot_cache(tmp_path, 1300.0))
    (surface,) = scene.shapes(1).surfaces
    hot = surface.triangles.min(axis=1) >= 6
    assert np.allclose(surface.glow[hot], emitted(np.array([1300.0]))[0]) and not surface.glow[~hot].any()
    scene.white = 0.0
    assert scene.shapes(1).surfaces[0].glow is None
    (tmp_path / "cold").mkdir()
    assert open_scene(hot_cache(tmp_path / "cold", 400.0)).shapes(1).surfaces[0].glow is None


@pytest.mark.parametrize("engine", ["splat", "cycles"])
def test_pictures_show_the_glow(tmp_path, engine):
    """The hot body is redder than the cold one beside it, and as dark without the glow."""
    path = hot_cache(tmp_path, 1320.0)
    found = {}
    for white in (2000.0, 0.0):
        try:
            result = render_cache(path, [1], tmp_path / f"{white:g}", engine, Picture((200, 120), 8, white=white))
        except EngineMissing as error:
            pytest.skip(str(error))
        cold, hot = sides(result.images[0])
        found[white] = hot[0] - cold[0]
    assert found[2000.0] > found[0.0] + 20.0, found


@pytest.mark.phenomena("heat")
def test_a_body_with_the_look_of_lava_does_not_glow_beside_coloured_matter(tmp_path):
    """It has no temperature of its own: cold lava, dark, whatever is drawn over the matter."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=1)
    ball = graph.add("emit_sphere", "ball", material=graph.add("material_liquid", "matter"), radius=0.2, centre=(0.0, 0.2, 0.0))
    hot = graph.add("set_temperature", "hot", particles=ball, temperature=1400.0)
    lava = graph.add("set_looks", "lava", particles=hot, looks=["lava"])
    rock = graph.add(
        "collider_look",
        "rock",
        collider=graph.add("collide_plane", "ground", shown_size=4.0, rotation=(0.0, 0.0, -10.0)),
        look="lava",
    )
    skin = graph.add("surface_particles", "surface", particles=lava)
    graph.add("write_cache", "cache", particles=lava, mesh=skin["mesh"], colliders=[rock])
    folder = execute(graph, out=tmp_path / "out").revision_folder
    try:
        picture = Picture((160, 120), 4, colour_by="temperature")
        result = render_cache(folder, [1], tmp_path / "seen", "cycles", picture)
    except EngineMissing as error:
        pytest.skip(str(error))
    with Image.open(result.images[0]) as image:
        ground = np.asarray(image.convert("RGB"), float)[-30:, -30:].mean()
    assert ground < 120.0


def test_a_white_out_of_range_is_refused(tmp_path):
    """Negative luminances have no meaning."""
    with pytest.raises(MpmNodesError, match="white of -1"):
        render_cache(hot_cache(tmp_path, 1300.0), [1], tmp_path / "out", "splat", Picture(white=-1.0))
