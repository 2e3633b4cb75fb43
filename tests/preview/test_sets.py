"""Sets around a picture: how they are chosen, how the camera stands in them, and what Cycles draws of them."""

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preview_samples import add_floor, write_cache

from mpm_nodes import Graph, cli
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.materials.looks import LOOKS, Look
from mpm_nodes.preview import pictures as preview
from mpm_nodes.preview.pictures import Picture, prepared
from mpm_nodes.preview.scene import open_scene
from mpm_nodes.preview.sets import (
    COMPANION,
    LEAST,
    MARGIN,
    MIDDLE,
    RIM,
    SETS,
    SHARE,
    TALLEST,
    WELL,
    WIDEST,
    Dressing,
    composed,
    edge_behind,
    placed,
    turned,
)

SIZE = (160, 90)
ASPECT = 16.0 / 9.0
WITHOUT_BLENDER = importlib.util.find_spec("bpy") is None


def ready(path: Path, name: str, **how):
    """Return a cache prepared for a picture in a set."""
    return prepared([open_scene(path)], [3], how.pop("engine", "auto"), Picture(SIZE, 2, set_name=name, **how))[0]


def box(*size: float) -> np.ndarray:
    """Return points that fill a box on the ground."""
    axes = [np.linspace(-0.5, 0.5, 9) * side for side in size]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) + [0.0, 0.5 * size[1], 0.0]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("scale", [0.05, 2.0])
@pytest.mark.parametrize("size", [(1.4, 0.6, 0.8), (1.0, 0.1, 1.0), (0.3, 1.0, 0.3)], ids=["body", "puddle", "tower"])
def test_the_subject_takes_two_fifths_of_the_picture(name: str, scale: float, size: tuple[float, float, float]):
    """Or the most of its width or height that is allowed, whatever its size; it stands in the middle, a little low."""
    points = scale * box(*size)
    low, high = placed(points, composed(points, SETS[name], ASPECT), ASPECT)
    wide, tall = high - low
    limits = (wide * tall / SHARE, wide / WIDEST, tall / TALLEST)
    assert max(limits) == pytest.approx(1.0, abs=0.01)
    assert 0.5 * (low + high) == pytest.approx([0.5, MIDDLE], abs=0.005)
    assert size != (1.4, 0.6, 0.8) or wide * tall == pytest.approx(SHARE, abs=0.004)


def test_a_camera_is_scaled_with_its_subject():
    """Of a subject forty times as large, the eye is forty times as far away and sees the same picture."""
    small, large = (composed(scale * box(1.0, 0.7, 0.9), SETS["kitchen"], ASPECT) for scale in (0.05, 2.0))
    assert np.allclose(large.eye, 40.0 * small.eye, rtol=1e-4) and np.allclose(large.forward, small.forward, atol=1e-4)


@pytest.mark.parametrize("aspect", [ASPECT, 4.0 / 3.0, 1.0])
def test_the_horizon_of_a_field_stands_where_its_set_has_it(aspect: float):
    """At two thirds of the picture's height, whatever its shape, with the subject where other sets have it."""
    kind, points = SETS["snow"], box(1.4, 0.6, 0.8)
    view = composed(points, kind, aspect)
    level = view.forward * (1.0, 0.0, 1.0)
    far = view.eye + 1e6 * level / np.linalg.norm(level)
    assert placed(far[None], view, aspect)[0][1] == pytest.approx(kind.edge, abs=1e-6) and kind.edge == pytest.approx(2.0 / 3.0)
    low, high = placed(points, view, aspect)
    assert 0.5 * (low + high) == pytest.approx([0.5, MIDDLE], abs=0.005)


def laid(folder: Path, **how) -> Dressing:
    """Return the kitchen around a block; see `block_on_plane`."""
    return ready(block_on_plane(folder, **how), "kitchen").around.dressing


def block_on_plane(folder: Path, size: float = 0.06, above: float = 0.0, look: str = "", beside: float = 0.0) -> Path:
    """Return a cache of a block that lies on a plane, or hangs above it, perhaps beside a post."""
    graph = Graph(cell_size=size / 12.0, fps=24, start=3, end=3)
    matter = graph.add("material_library", "matter", name="jelly")
    block = graph.add("emit_box", "block", material=matter, size=(size, size, size), centre=(0.0, size * (0.5 + above), 0.0))
    bodies = [graph.add("collide_plane", "floor")]
    if look:
        bodies = [graph.add("collider_look", "floor_look", collider=bodies[0], look=look)]
    if beside:
        bodies.append(
            graph.add("collide_box", "post", size=(0.2 * size, 3.0 * size, 0.2 * size), centre=(beside * size, 1.5 * size, 0.0))
        )
    graph.add("write_cache", "cache", particles=block, colliders=bodies)
    return execute(graph, out=folder / "out").revision_folder / "cache.usda"


@pytest.mark.parametrize("look", ["", "ceramic"])
def test_a_meal_lies_on_a_plate(tmp_path: Path, look: str):
    """On a plane that is of ceramic, or of nothing chosen; all of it over the level part, and the picture cuts off no rim."""
    found = laid(tmp_path, look=look)
    assert found.plate == pytest.approx(WELL * 0.03 * math.sqrt(2.0), rel=0.1) and found.kind.ground == LOOKS["wood"]
    assert found.reach(found.points) < found.plate and found.points[:, 1].min() > found.ground > found.top
    view = composed(found.points, found.kind, ASPECT, held=found.rim)
    low, high = placed(found.rim, view, ASPECT)
    assert min(low.min(), 1.0 - high.max()) >= MARGIN - 1e-3
    assert edge_behind(found, view, ASPECT) > RIM[0] * found.plate


def test_a_plate_is_as_wide_as_what_lies_on_it_in_other_frames(tmp_path: Path):
    """Matter that is held high above it in the first frame widens no plate; matter that lies beside the block at last does."""
    from pxr import Usd, UsdGeom, Vt

    path = write_cache(tmp_path / "out")
    add_floor(path, 1.0, 0.0)
    stage = Usd.Stage.Open(str(path))
    stage.RemovePrim("/sim/collider_bowl")
    points = UsdGeom.Points(stage.GetPrimAtPath("/sim/points")).GetPointsAttr()
    block = box(0.06, 0.06, 0.06)

    def plate(first, last) -> float:
        for frame, held in ((1, first), (2, block), (3, block), (4, block), (5, last)):
            points.Set(Vt.Vec3fArray.FromNumpy(held.astype(np.float32)), frame)
        stage.Save()
        return ready(path, "kitchen").around.dressing.plate

    wide = block * (3.0, 1.0, 3.0)
    alone = plate(block, block)
    assert plate(wide + [0.0, 0.1, 0.0], block) == pytest.approx(alone) and alone > 0.04
    assert plate(block, wide) == pytest.approx(3.0 * alone, rel=1e-3)


def test_a_plate_far_below_its_subject_may_be_cut_off():
    """A subject high above its plate stays at three quarters of its size, or larger."""
    points, kind = box(0.5, 1.0, 0.5) + [0.0, 3.0, 0.0], SETS["kitchen"]
    rim = 3.0 * box(1.0, 0.0, 1.0)
    alone, both = (placed(points, composed(points, kind, ASPECT, held=held), ASPECT) for held in (None, rim))
    assert both[1] - both[0] == pytest.approx(LEAST * (alone[1] - alone[0]), rel=0.03)


def test_what_is_no_meal_lies_on_no_plate(tmp_path: Path):
    """A table of wood, a block of a metre, one that hangs, and one beside a post that the rim would cut have none."""
    assert laid(tmp_path / "wood", look="wood").plate == 0.0
    assert laid(tmp_path / "marble", look="marble").kind.ground == LOOKS["marble"]
    assert laid(tmp_path / "large", size=1.0).plate == 0.0
    assert laid(tmp_path / "hangs", above=1.0).plate == 0.0 < laid(tmp_path / "awaited", above=1.0, look="ceramic").plate
    assert laid(tmp_path / "post", beside=1.2).plate == 0.0
    assert len(laid(tmp_path / "none", look="wood").rim) == 0


def test_a_table_ends_at_the_height_of_its_set(tmp_path: Path):
    """Behind the subject, seen by the camera of the set; one that looks down steeply sees the table alone."""
    dressing = ready(write_cache(tmp_path / "out"), "kitchen").around.dressing
    view, ground = composed(dressing.points, dressing.kind, ASPECT), float(dressing.points[:, 1].min())
    level = view.forward * (1.0, 0.0, 1.0) / np.linalg.norm(view.forward[[0, 2]])
    edge = dressing.middle * (1.0, 0.0, 1.0) + [0.0, ground, 0.0] + edge_behind(dressing, view, ASPECT) * level
    assert placed(edge[None], view, ASPECT)[0][1] == pytest.approx(dressing.kind.edge, abs=1e-6)
    again = turned(turned(view, dressing.middle, 1.0), dressing.middle, -1.0)
    assert np.allclose(again.eye, view.eye) and np.allclose(again.forward, view.forward)


def test_the_subject_is_matter_and_bodies_of_its_size(tmp_path: Path):
    """A ball beside the block belongs to it; one ten times as large is what it happens on."""
    from pxr import Usd, UsdGeom, Vt

    path = write_cache(tmp_path / "out")
    near = ready(path, "studio").around.dressing
    stage = Usd.Stage.Open(str(path))
    ball = UsdGeom.Mesh(stage.GetPrimAtPath("/sim/collider_bowl"))
    points = np.array(ball.GetPointsAttr().Get())
    assert np.ptp(points, axis=0).max() < COMPANION * 0.6 and near.points[:, 1].min() == pytest.approx(points[:, 1].min())
    ball.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy((10.0 * points).astype(np.float32)))
    stage.Save()
    assert ready(path, "studio").around.dressing.radius < 0.53


def test_a_body_above_the_floor_stands_on_the_table(tmp_path: Path):
    """The ground rises to a still body that has no matter below it, and to no other; a table is of what the plane is of."""
    from pxr import Usd, UsdGeom, Vt

    from usd_io.layers import LOOKS_KEY

    path = write_cache(tmp_path / "out")
    add_floor(path, 1.0, -2.0)
    stage = Usd.Stage.Open(str(path))
    stage.GetPrimAtPath("/sim/collider_floor").SetCustomDataByKey(LOOKS_KEY, "marble")
    stage.Save()
    lowest = -0.4
    assert [ready(path, name).around.ground for name in ("kitchen", "dark")] == pytest.approx([lowest] * 2)
    grounds = [ready(path, name).around.dressing.kind.ground for name in ("kitchen", "dark")]
    assert grounds == [LOOKS["marble"], SETS["dark"].ground]
    ball = UsdGeom.Mesh(stage.GetPrimAtPath("/sim/collider_bowl")).GetPointsAttr()
    points = np.array(ball.Get(), np.float32)
    ball.Set(Vt.Vec3fArray.FromNumpy(points + np.float32([0.0, 3.0, 0.0])))  # above the matter
    stage.Save()
    held = ready(path, "kitchen").around.ground
    ball.Set(Vt.Vec3fArray.FromNumpy(points), 1)
    ball.Set(Vt.Vec3fArray.FromNumpy(points - np.float32([0.0, 0.3, 0.0])), 3)  # it falls
    stage.Save()
    assert held < lowest - 0.5 and ready(path, "kitchen").around.ground < lowest - 0.5


def test_sets_are_told_apart_and_refused_where_they_cannot_be_drawn(tmp_path: Path, capsys):
    """Unknown names with those that there are, missing files, and the renderer that draws none."""
    path = write_cache(tmp_path / "out")
    with pytest.raises(MpmNodesError, match=r"set 'garden' is unknown; choose one of kitchen, studio, dark, snow, or give a USD"):
        ready(path, "garden")
    with pytest.raises(InputError, match=r"garden\.usda: no such file"):
        ready(path, str(tmp_path / "garden.usda"))
    with pytest.raises(MpmNodesError, match="splat renderer draws no set"):
        ready(path, "kitchen", engine="splat")
    assert ready(path, "kitchen").engine == "cycles"
    assert cli.main(["render", str(path.parent.parent), "--set", "garden", "--out", str(tmp_path)]) == 2
    assert "kitchen, studio, dark, snow" in capsys.readouterr().err


def test_the_help_names_all_sets(capsys):
    """And nothing else but a file of one's own."""
    assert cli.main(["render", "--help"]) == 0
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert f"by Cycles: {', '.join(SETS)}, or a USD file" in said


def test_a_camera_that_is_given_stays_in_a_set(tmp_path: Path):
    """A view of one's own is kept; without one the set places the camera; a turntable keeps its distance."""
    path = write_cache(tmp_path / "out")
    own = composed(box(1.0, 1.0, 1.0), SETS["dark"], ASPECT)
    assert ready(path, "kitchen", camera=own).wanted[0].view is own
    one = ready(path, "kitchen")
    assert placed(one.around.dressing.points, one.wanted[0].view, ASPECT)[1][1] < 0.85
    middle = one.around.dressing.middle
    eyes = np.array([exposure.view.eye - middle for exposure in ready(path, "kitchen", camera="turntable").wanted])
    assert len(eyes) == 48 and np.allclose(np.linalg.norm(eyes, axis=1), np.linalg.norm(eyes[0]))


def rendered(path: Path, name: str, samples: int = 4) -> np.ndarray:
    """Return a small picture in a set, as numbers from 0 to 255."""
    try:
        made = preview.render_cache(path, [3], path.parent / "pictures", picture=Picture(SIZE, samples, set_name=name))
    except preview.EngineMissing as error:
        pytest.skip(str(error))
    with Image.open(made.images[0]) as image:
        return np.asarray(image.convert("RGB")).astype(float)


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_cycles_draws_a_set_around_the_subject(tmp_path: Path):
    """The subject stands in the middle, lit from the left and not burnt; a cove has no edge and no black behind it."""
    picture = rendered(write_cache(tmp_path / "out"), "studio")
    border = np.concatenate([picture[:6].reshape(-1, 3), picture[:, :6].reshape(-1, 3), picture[:, -6:].reshape(-1, 3)])
    assert border.min() > 40.0 and border.max() < 245.0
    assert np.abs(np.diff(picture[:, 4], axis=0)).max() < 12.0  # from below to above
    warm = picture[..., 0] - picture[..., 2] > 50.0
    assert 0.04 < warm.mean() < SHARE and abs(np.nonzero(warm)[1].mean() / SIZE[0] - 0.5) < 0.1
    assert (picture.min(axis=2) > 250.0).mean() < 0.002


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_snow_is_white_under_a_blue_sky(tmp_path: Path):
    """The ground in front of the subject is not grey; above the horizon the picture is blue."""
    picture = rendered(write_cache(tmp_path / "out"), "snow", 8)
    ground, sky = picture[-12:].mean(axis=(0, 1)), picture[: SIZE[1] // 4, :20].mean(axis=(0, 1))
    assert ground.min() > 175.0 and ground.max() - ground.min() < 35.0
    assert sky[2] > sky[0] + 20.0 and sky.mean() < ground.mean() - 20.0


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_cycles_draws_a_plate_under_a_meal(tmp_path: Path):
    """Its rim is white on both sides of the block, and the table beside it is of wood."""
    path = block_on_plane(tmp_path)
    found = ready(path, "kitchen").around.dressing
    view = ready(path, "kitchen").wanted[0].view
    picture = rendered(path, "kitchen", 8)
    low, high = placed(found.rim[:64], view, ASPECT)
    across = np.array([low[0] + 0.015, high[0] - 0.015, low[0] - 0.05, high[0] + 0.05]) * SIZE[0]
    middle = placed((found.middle * (1.0, 0.0, 1.0) + [0.0, found.ground + RIM[1] * found.plate, 0.0])[None], view, ASPECT)[0][1]
    row = int((1.0 - middle) * SIZE[1])
    seen = [picture[row - 1 : row + 2, int(column) - 1 : int(column) + 2].mean(axis=(0, 1)) for column in across]
    warmth = [float(colour[0] - colour[2]) for colour in seen]
    assert max(warmth[:2]) < 35.0 and min(warmth[2:]) > 45.0


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_cycles_draws_a_set_of_ones_own(tmp_path: Path):
    """A green wall of a file, lit by its own lamp, stands behind the subject; the floor of other pictures does not."""
    from pxr import Gf, Usd, UsdGeom, UsdLux, UsdShade

    from usd_io.looks import add_material

    stage = Usd.Stage.CreateNew(str(tmp_path / "wall.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/set").GetPrim())
    wall = UsdGeom.Mesh.Define(stage, "/set/mesh")  # a name that matter has, too
    wall.CreatePointsAttr([(-90, -90, -9), (90, -90, -9), (90, 90, -9), (-90, 90, -9)])
    wall.CreateFaceVertexCountsAttr([4])
    wall.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    UsdShade.MaterialBindingAPI.Apply(wall.GetPrim()).Bind(add_material(stage, "/set/looks/green", Look((0.05, 0.6, 0.05), 0.9)))
    sky = UsdLux.DomeLight.Define(stage, "/set/sky")
    sky.CreateIntensityAttr(1.0)
    sky.CreateColorAttr(Gf.Vec3f(1.0))
    stage.Save()
    picture = rendered(write_cache(tmp_path / "out"), str(tmp_path / "wall.usda"))
    corners = np.array([picture[3, 3], picture[3, -4], picture[-4, 3]])
    assert (corners[:, 1] > corners[:, 0] + 40.0).all() and (corners[:, 1] > corners[:, 2] + 40.0).all()


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_colliders_of_every_look_show_in_a_set(tmp_path: Path):
    """Wood is brown, steel grey and marble light, side by side: each has the material that its look names."""
    graph = Graph(cell_size=0.05, fps=24, start=3, end=3)
    looks, bodies = ("wood", "steel", "marble"), []
    for n, look in enumerate(looks):
        ball = graph.add("collide_box", f"ball_{n}", size=(0.3, 0.3, 0.3), centre=(0.4 * n - 0.4, 0.15, 0.0))
        bodies.append(graph.add("collider_look", f"look_{n}", collider=ball, look=look))
    graph.add("write_cache", "cache", colliders=bodies)
    folder = execute(graph, out=tmp_path / "out").revision_folder
    path = folder / "cache.usda"
    view = ready(path, "studio").wanted[0].view
    picture, seen = rendered(path, "studio", 8), []
    for n in range(3):
        low, _ = placed(np.array([[0.4 * n - 0.4, 0.15, 0.15]]), view, ASPECT)
        column, row = int(low[0] * SIZE[0]), int((1.0 - low[1]) * SIZE[1])
        seen.append(picture[row - 3 : row + 4, column - 3 : column + 4].mean(axis=(0, 1)))
    wood, steel, marble = seen
    assert wood[0] > wood[2] + 25.0 and np.ptp(steel) < 25.0 and np.ptp(marble) < 25.0
    assert marble.mean() > wood.mean() + 30.0


def lit_face(folder: Path, matter: str, carried: tuple[str, ...], flown: float = 0.0) -> np.ndarray:
    """Return the middle of the front of a block in the studio, as numbers from 0 to 255; its mesh carries these attributes.

    It has flown this far to the right [m].
    """
    graph = Graph(cell_size=0.0025, fps=24, start=1 if flown else 3, end=3)
    made = graph.add("material_library", "matter", name=matter)
    block = graph.add(
        "emit_box", "block", material=made, size=(0.026, 0.02, 0.02), centre=(0.0, 0.01, 0.0), velocity=(12.0 * flown, 0.0, 0.0)
    )
    kept = graph.add("rest_positions", "rest", particles=block)
    if flown:
        kept = graph.add("solve", "fly", sources=[kept], gravity=(0.0, 0.0, 0.0))["particles"]
    skin = graph.add("surface_particles", "surface", particles=kept, attributes=carried)
    graph.add("write_cache", "cache", particles=kept, mesh=skin["mesh"])
    path = execute(graph, out=folder / f"out_{len(carried)}_{flown}").revision_folder / "cache.usda"
    view = ready(path, "studio").wanted[0].view
    middle, _ = placed(np.array([[flown, 0.01, 0.01]]), view, ASPECT)
    column, row = int(middle[0] * SIZE[0]), int((1.0 - middle[1]) * SIZE[1])
    return rendered(path, "studio", 16)[row - 8 : row + 9, column - 8 : column + 9]


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_bumps_are_drawn_where_matter_carries_its_places_at_rest(tmp_path: Path):
    """A lit face of dough is uneven with `rest` in the mesh, and smooth without: bumps would slide over it."""
    rough, smooth = (lit_face(tmp_path, "dough", carried).std(axis=(0, 1)).mean() for carried in (("rest",), ()))
    assert rough > 2.0 * smooth


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_crumbs_stick_to_matter(tmp_path: Path):
    """A block that has flown four cells shows the crumbs that it showed at rest; it flew through them before (likeness 0.45)."""
    faces = [lit_face(tmp_path, "sand", ("rest",), flown)[..., 0].ravel() for flown in (0.0, 0.01)]
    assert np.corrcoef(*faces)[0, 1] > 0.8


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_a_sponge_shows_dark_pores(tmp_path: Path):
    """The darkest places of a lit face are less than 0.7 times as bright as the brightest; without `rest` it is of one colour."""
    shares = []
    for carried in (("rest",), ()):
        low, high = np.percentile(lit_face(tmp_path, "sponge_twist", carried)[..., 0], (3.0, 97.0))
        shares.append(low / high)
    assert shares[0] < 0.7 < 0.9 < shares[1], shares


@pytest.mark.skipif(WITHOUT_BLENDER, reason="Blender (bpy) is not installed")
def test_a_kitchen_has_a_tiled_wall(tmp_path: Path):
    """Above the table, out of focus: brighter on the left, with rows of tiles of several shades."""
    wall = rendered(block_on_plane(tmp_path, look="wood"), "kitchen", 16)[:12].mean(axis=2)
    across = wall.mean(axis=0)
    assert across[:40].mean() > 1.2 * across[-40:].mean()
    tiles = wall[:, 8:-8] - np.stack([across[k : k - 16 or None] for k in range(17)]).mean(axis=0)  # less the soft light on it
    assert 1.0 < tiles.std() < 12.0, tiles.std()
