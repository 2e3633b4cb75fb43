"""The built-in renderer and the search for a cache's stage: what is seen is there, moves, hides and casts shadows."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preview_samples import FACES, OCTAHEDRON, add_floor, write_cache

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.preview import colour_by, cycles
from mpm_nodes.preview import pictures as preview
from mpm_nodes.preview import scene as preview_scene
from mpm_nodes.preview import splat as preview_splat
from mpm_nodes.preview.exposures import Backdrop, surroundings
from mpm_nodes.preview.scene import Cloud, DrawnMesh, Shapes, corner_normals, framing, look
from mpm_nodes.preview.sheet import contact_sheet
from mpm_nodes.preview.splat import render_shapes

SIZE = (160, 120)
RED = np.array([0.8, 0.05, 0.05], np.float32)


def floor_at(height: float, extent: float) -> Backdrop:
    """A floor of the usual look under a scene of some radius."""
    return Backdrop(np.zeros(3), np.zeros(3), height, extent)


def ball(centre, radius: float = 0.3) -> Cloud:
    """A single large particle."""
    return Cloud("/ball", np.array([centre], float), np.array([radius], np.float32), RED[None])


def painted(triangles: np.ndarray, colour) -> np.ndarray:
    """The colour at every corner."""
    return np.tile(np.asarray(colour, np.float32), (len(triangles), 3, 1))


def red(picture: np.ndarray) -> np.ndarray:
    """Pixels that show the red ball."""
    picture = picture.astype(int)
    return picture[..., 0] > picture[..., 1] + 40


def test_a_ball_is_seen_where_the_camera_projects_it():
    """A ball of radius R at distance d covers a disc of f R / d pixels about its projection."""
    view = look(np.array([0.0, 0.0, 5.0]), np.zeros(3), 1.5)
    picture = render_shapes(Shapes((ball((0.5, 0.25, 0.0)),)), view, SIZE, floor_at(-10.0, 1.0))
    rows, columns = np.nonzero(red(picture))
    focal = 1.5 * SIZE[0]
    assert columns.mean() + 0.5 == pytest.approx(80 + focal * 0.5 / 5, abs=1.0)
    assert rows.mean() + 0.5 == pytest.approx(60 - focal * 0.25 / 5, abs=1.0)
    assert red(picture).sum() == pytest.approx(np.pi * (focal * 0.3 / 5) ** 2, rel=0.1)


def test_the_nearer_thing_hides_the_farther_one():
    """A mesh in front of the ball covers it; behind the ball it does not."""
    view = look(np.array([0.0, 0.0, 5.0]), np.zeros(3), 1.5)
    for z, hidden in ((1.0, True), (-1.0, False)):
        points = np.array([[-2, -2, z], [2, -2, z], [2, 2, z], [-2, 2, z]], float)
        triangles = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
        wall = DrawnMesh("/wall", points, triangles, corner_normals(points, triangles), painted(triangles, (0.2, 0.3, 0.8)))
        picture = render_shapes(Shapes((ball((0.0, 0.0, 0.0)),), (wall,)), view, SIZE, floor_at(-10.0, 2.0))
        assert (red(picture).sum() == 0) == hidden


def test_a_checked_floor_is_checked():
    """Seen from above its squares take turns, a quarter of the radius wide; other looks give the floor one colour."""
    view = look(np.array([0.0, 4.0, 0.01]), np.zeros(3), 1.0)
    plain, tiles = (render_shapes(Shapes(), view, SIZE, floor_at(0.0, 2.0)._replace(look=name)) for name in ("floor", "checker"))
    middle = tiles[SIZE[1] // 2 - 8, :, 0].astype(int)
    edges = np.flatnonzero(np.abs(np.diff(middle)) > 20)
    width = 0.5 / 4.0 * SIZE[0]
    assert np.diff(edges[np.diff(edges, prepend=-9) > 3]) == pytest.approx(width, abs=1.5)
    assert np.abs(np.diff(plain[SIZE[1] // 2, :, 0].astype(int))).max() < 6


def test_a_wall_through_the_eye_is_cut_and_drawn():
    """A triangle that passes behind the camera still covers the lower half of the picture."""
    points = np.array([[-50, -0.5, 50], [50, -0.5, 50], [0, -0.5, -100]], float)
    triangles = np.array([[0, 1, 2]], np.int32)
    floor = DrawnMesh("/floor", points, triangles, corner_normals(points, triangles), painted(triangles, RED))
    view = look(np.array([0.0, 0.0, 5.0]), np.zeros(3), 1.5)
    picture = render_shapes(Shapes((), (floor,)), view, SIZE, floor_at(-10.0, 2.0))
    assert red(picture)[100:, 40:120].all() and not red(picture)[:50].any()


def test_a_ball_casts_a_shadow_on_the_ground():
    """The ground is darker somewhere with the ball than without, and nowhere brighter."""
    view = look(np.array([0.0, 3.0, 4.0]), np.array([0.0, 0.5, 0.0]), 1.2)
    corner = ball((0.9, 0.05, 0.9), 0.02)
    high = np.array([-0.45, -1.0, -0.35])  # a sun that throws the shadow where the ball does not hide it
    scenes = Shapes((ball((0.0, 1.0, 0.0)), corner)), Shapes((corner,))
    drawn = (preview_splat._srgb(preview_splat._linear(each, view, SIZE, floor_at(0.0, 1.0), high)) for each in scenes)
    with_ball, without = (picture.astype(int) for picture in drawn)
    covered = red(with_ball) | red(without)
    for axis in (0, 1):  # pixels on the ball's edge mix both
        covered = covered | np.roll(covered, 2, axis) | np.roll(covered, -2, axis) | np.roll(covered, 1, axis)
    ground = ~covered
    darker = (without - with_ball)[..., 1]
    assert (darker[ground] > 40).sum() > 30
    assert (darker[ground] < -3).sum() == 0


def test_normals_are_flat_at_creases_and_smooth_elsewhere():
    """An octahedron's edges (70 deg) are sharp; with a crease of 120 deg its corners point along the axes."""
    points = OCTAHEDRON.astype(float)
    sharp, smooth = (corner_normals(points, FACES, crease) for crease in (40.0, 120.0))
    assert np.allclose(np.abs(sharp), 1 / np.sqrt(3), atol=1e-6)
    assert np.allclose(smooth, points[FACES], atol=1e-6)


def test_a_thin_slab_has_a_flat_top():
    """Its faces meet at right angles, and none leans towards a larger one."""
    corners = np.array(list(itertools.product((-1.0, 1.0), (-0.1, 0.1), (-1.0, 1.0))))
    top = np.array([[2, 3, 7], [2, 7, 6]], np.int32)
    front = np.array([[1, 5, 7], [1, 7, 3]], np.int32)
    side = np.array([[4, 6, 7], [4, 7, 5]], np.int32)
    normals = corner_normals(corners, np.concatenate([top, front, side]))
    assert np.allclose(normals, np.repeat(np.eye(3)[[1, 2, 0]], 2, axis=0)[:, None, :])


def test_only_corners_hide_the_sky():
    """Level ground sees all of it, seen at any slant; ground and wall hide it from each other where they meet."""
    from mpm_nodes.kernels.pictures.raster import occlusion

    view = look(np.array([0.0, 1.0, 4.0]), np.zeros(3), 1.0)
    points = np.array([[-2, 0, -1], [2, 0, -1], [2, 3, -1], [-2, 3, -1]], float)
    open_share = []
    for triangles in (FACES[:0], np.array([[0, 1, 2], [0, 2, 3]], np.int32)):
        wall = DrawnMesh("/wall", points, triangles, corner_normals(points, triangles), painted(triangles, RED))
        images = preview_splat._buffers(2 * SIZE[0], 2 * SIZE[1])
        focal = view.focal * 2 * SIZE[0]
        preview_splat._draw(Shapes((), (wall,)), view, focal, images)
        places = preview_splat._positions(images, view, focal, floor_at(0.0, 1.0))
        open_share.append(occlusion(images.depth, images.normal, focal, 0.5, 16))
    assert (open_share[0] == 1.0).all()
    ground = (images.layer == preview_splat.GROUND) & (np.abs(places[..., 0]) < 1.0)
    from_wall = places[..., 2] + 1.0
    assert open_share[1][ground & (from_wall < 0.15)].mean() < 0.8
    assert (open_share[1][ground & (from_wall > 1.0)] == 1.0).all()


def test_our_stages_are_lit_as_pictures_without_a_sun_are(tmp_path: Path):
    """The sun of a cache's set shines from the left of its camera, from before it, and as `SUN` does."""
    from usd_io.set_layer import set_layer

    made = set_layer("shot", 24.0, (1, 2), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), 0.0, "floor")
    made.Export(str(tmp_path / "set.usda"))
    scene = preview_scene.open_scene(tmp_path / "set.usda")
    view, sun = scene.view(1), scene.sun()
    assert sun @ preview_splat.SUN / np.linalg.norm(preview_splat.SUN) > 0.999
    assert sun @ view.right > 0.5 and sun @ view.forward > 0.3 and sun[1] < -0.5
    behind = look(view.eye * [-1.0, 1.0, -1.0], np.zeros(3), 1.0)  # a camera of one's own has it to its left, too
    turned = scene.sun(behind)
    assert turned @ behind.right > 0.5 and turned @ behind.forward > 0.3 and turned[1] == pytest.approx(sun[1])


def test_the_surface_takes_the_colours_of_its_attribute(tmp_path: Path):
    """A surface that carries the attribute is drawn, in its colours; where it does not, the points are."""
    from pxr import Sdf, Usd, UsdGeom, Vt

    path = write_cache(tmp_path / "out", with_surface=True)
    stage = Usd.Stage.Open(str(path))
    held = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/sim/points")).CreatePrimvar("age", Sdf.ValueTypeNames.FloatArray, "vertex")
    held.Set(Vt.FloatArray([0.0] * 12**3))
    stage.Save()
    for carries, drawn in ((False, "points"), (True, "surface")):
        if carries:
            api = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/sim/mesh"))
            api.CreatePrimvar("age", Sdf.ValueTypeNames.FloatArray, "vertex").Set(Vt.FloatArray([0.0] * 5 + [2.0]))
            stage.Save()
        scene = preview_scene.open_scene(path)
        ready = preview.prepared((scene,), [1], "splat", preview.Picture(SIZE, colour_by="age"))[0]
        assert ready.how.show == drawn
    assert scene.colour_by.unit == "s"
    assert [colour_by.ColourBy(name, 0.0, 1.0).unit for name in ("speed", "velocity", "J")] == ["m/s", "m/s", ""]
    shapes = scene.shapes(1, "surface")
    surface = next(surface for surface in shapes.surfaces if surface.path == "/sim/mesh")
    assert np.allclose(surface.colours[surface.triangles == 5], scene.colour_by.colours(np.array([2.0])))
    assert np.allclose(surface.colours[surface.triangles == 0], scene.colour_by.colours(np.array([0.0])))


@pytest.mark.parametrize(
    ("size", "count", "across", "wide"),
    [
        ((800, 450), 9, 3, 640),
        ((800, 450), 6, 3, 640),
        ((480, 480), 4, 2, 480),
        ((1200, 375), 6, 2, 960),
        ((200, 150), 4, 2, 200),
        ((600, 900), 4, 4, 480),
    ],
)
def test_wide_pictures_are_large_on_a_sheet(tmp_path, size, count, across, wide):
    """Fewer of them stand side by side, on a sheet as wide as any; tall ones in a row; small ones keep their size."""
    files = []
    for n in range(count):
        files.append(tmp_path / f"{n}.png")
        Image.new("RGB", size, (0, 200 - n, 0)).save(files[-1])
    made = np.asarray(contact_sheet(files, [str(n) for n in range(count)]))
    green = made[size[1] * wide // size[0] // 2, :, 1] > 150
    assert np.diff(green.astype(int), prepend=0, append=0).clip(0).sum() == across
    assert green.sum() == across * wide


def test_a_cache_becomes_pictures_that_move_and_a_sheet(tmp_path: Path):
    """Five frames of the newest revision: none black, the first and last differ, labels on one sheet."""
    write_cache(tmp_path / "out")
    seen: list[tuple[int, int]] = []
    made = preview.render_cache(
        tmp_path / "out",
        range(1, 6),
        tmp_path / "png",
        engine="splat",
        picture=preview.Picture(SIZE),
        progress=lambda *args: seen.append(args),
    )
    assert made.engine == "splat" and made.message == "" and len(made.images) == 5
    assert seen == [(n, 5) for n in range(1, 6)]
    pictures = [np.asarray(Image.open(path)).astype(int) for path in made.images]
    assert all(picture.shape == (120, 160, 3) and 20 < picture.mean() < 250 for picture in pictures)
    yellow = [np.nonzero(p[..., 0] > p[..., 2] + 60) for p in pictures]
    heights = [rows.mean() for rows, _ in yellow]
    assert all(len(rows) > 200 for rows, _ in yellow)
    assert all(low > high + 2 for high, low in itertools.pairwise(heights))  # it falls
    sheet = np.asarray(Image.open(made.contact_sheet))
    assert sheet.shape[0] > 2 * 120 and sheet.shape[1] > 3 * 160


def test_points_and_surface_are_not_drawn_over_each_other(tmp_path: Path):
    """`show` chooses; the collider's mesh is always there."""
    scene = preview_scene.open_scene(write_cache(tmp_path / "out", with_surface=True))
    points, surface = scene.shapes(2, "points"), scene.shapes(2, "surface")
    assert [c.path for c in points.clouds] == ["/sim/points"]
    assert [s.path for s in points.surfaces] == ["/sim/collider_bowl"]
    assert surface.clouds == () and {s.path for s in surface.surfaces} == {"/sim/collider_bowl", "/sim/mesh"}


def test_centimetres_and_z_up_are_brought_to_metres_and_y_up(tmp_path: Path):
    """A point at z = 100 in a Z-up stage of centimetres stands 1 m high."""
    from pxr import Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "z.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    points = UsdGeom.Points.Define(stage, "/p")
    points.GetPointsAttr().Set(Vt.Vec3fArray([(0, 50, 100)]))
    points.GetWidthsAttr().Set(Vt.FloatArray([4.0]))
    stage.Save()
    cloud = preview_scene.open_scene(tmp_path / "z.usda").shapes(0).clouds[0]
    assert np.allclose(cloud.positions, [[0.0, 1.0, -0.5]])
    assert cloud.radii[0] == pytest.approx(0.02)


def test_framing_shows_the_whole_box():
    """All corners of the box project into the picture, and fill it across or along."""
    low, high = np.array([-1.0, 0.0, -2.0]), np.array([3.0, 1.5, 2.0])
    view = framing((low, high), 4 / 3)
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    seen = corners - view.eye
    x, y = (seen @ view.right) / (seen @ view.forward), (seen @ view.up) / (seen @ view.forward)
    assert np.abs(x).max() * view.focal < 0.5 and np.abs(y).max() * view.focal < 0.375
    assert max(np.abs(x).max() / 0.5, np.abs(y).max() / 0.375) * view.focal > 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"cache_folder": "missing"}, "missing: no such folder"),
        ({"cache_folder": "."}, "holds no USD stage"),
        ({"cache_folder": "out", "frames": [9]}, "has no frame 9; it holds frames 1 to 5"),
        ({"cache_folder": "out", "engine": "vray"}, "engine 'vray' is unknown; choose one of auto, cycles, splat"),
        ({"cache_folder": "out", "picture": preview.Picture((4, 4))}, "size 4 x 4 is out of range"),
    ],
)
def test_wrong_requests_say_what_is_allowed(tmp_path: Path, monkeypatch, call, message):
    """Place, value, allowed, in one line."""
    monkeypatch.chdir(tmp_path)
    write_cache(tmp_path / "out")
    with pytest.raises(MpmNodesError, match=message) as caught:
        preview.render_cache(**{"engine": "splat", **call})
    assert "\n" not in str(caught.value)


def test_a_damaged_stage_is_an_input_error(tmp_path: Path):
    """Text that is no USD is told in one line."""
    (tmp_path / "bad.usda").write_text("#usda 1.0\n(")
    with pytest.raises(InputError, match=r"bad\.usda: cannot be opened as a USD stage"):
        preview_scene.open_scene(tmp_path / "bad.usda")


def test_a_mesh_shows_the_colour_of_every_point():
    """Left half red, right half blue: as the points are painted."""
    points = np.array([[-1, -1, 0], [0, -1, 0], [0, 1, 0], [-1, 1, 0], [1, -1, 0], [1, 1, 0]], float)
    triangles = np.array([[0, 1, 2], [0, 2, 3], [1, 4, 5], [1, 5, 2]], np.int32)
    colours = np.concatenate([painted(triangles[:2], (0.8, 0.0, 0.0)), painted(triangles[2:], (0.0, 0.0, 0.8))])
    wall = DrawnMesh("/wall", points, triangles, corner_normals(points, triangles), colours)
    view = look(np.array([0.0, 0.0, 5.0]), np.zeros(3), 1.5)
    picture = render_shapes(Shapes((), (wall,)), view, SIZE, floor_at(-10.0, 2.0)).astype(int)
    across = picture[60, 40:120]
    assert (across[:38, 0] > across[:38, 2] + 60).all() and (across[42:, 2] > across[42:, 0] + 60).all()


def test_the_sun_of_the_stage_throws_the_shadow(tmp_path: Path):
    """A distant light that shines to the right puts the shadow to the right of the ball, and one to the left to the left."""
    from pxr import Gf, Usd, UsdGeom, UsdLux, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "sun.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    points = UsdGeom.Points.Define(stage, "/p")
    points.GetPointsAttr().Set(Vt.Vec3fArray([(0, 0, 0), (0, -1.5, 0)]))
    points.GetWidthsAttr().Set(Vt.FloatArray([0.8, 0.01]))
    turn = UsdLux.DistantLight.Define(stage, "/sun").MakeMatrixXform()
    scene = preview_scene.open_scene(tmp_path / "sun.usda")
    view = look(np.array([0.0, 6.0, 4.0]), np.zeros(3), 1.0)
    shadows = {}
    for side in (-1.0, 1.0):
        turn.Set(Gf.Matrix4d(Gf.Rotation(Gf.Vec3d(0, 0, -1), Gf.Vec3d(side, -1.0, 0.0)), Gf.Vec3d(0)))
        sun = scene.sun()
        assert np.allclose(sun, np.array([side, -1.0, 0.0]) / np.sqrt(2.0), atol=1e-6)
        shadows[side] = preview_splat._linear(scene.shapes(0), view, SIZE, floor_at(-1.5, 1.0), sun)[..., 1]
    difference = shadows[1.0] - shadows[-1.0]
    assert difference[:, 95:].min() < -0.1 and difference[:, 95:].max() < 0.02  # darker at the right when it shines there
    assert difference[:, :65].max() > 0.1 and difference[:, :65].min() > -0.02


def test_a_plane_is_a_floor_without_an_edge(tmp_path: Path):
    """The square that shows a plane is neither framed nor drawn: the ground lies at its height, also where matter sinks into it."""
    add_floor(write_cache(tmp_path / "out", 3), 1.0, -0.37)  # the ball reaches 0.03 m below
    scene = preview_scene.open_scene(tmp_path / "out" / "r002" / "shot.usda")
    around = surroundings([scene], [1, 3], "points")
    assert around.ground == pytest.approx(-0.37) and np.abs([around.low[0], around.high[0]]).max() < 0.5
    assert [surface.path for surface in scene.shapes(1).surfaces if surface.floor] == ["/sim/collider_floor"]
    assert cycles._floors(scene, 1, "points", around.ground) == ["collider_floor"]
    view = look(np.array([2.0, 2.0, 4.0]), np.array([0.0, -0.37, 0.0]), 1.0)
    made = preview.render_cache(tmp_path / "out", [1], tmp_path, "splat", preview.Picture((320, 240), camera=view))
    picture = np.asarray(Image.open(made.images[0])).astype(int)
    axes = np.stack([view.right, view.up, view.forward])
    along = np.linspace(-0.95, 0.95, 60)
    seen = (np.stack([along, np.full(60, -0.37), np.ones(60)], axis=1) - view.eye) @ axes.T
    columns = np.round(160 + 320 * seen[:, 0] / seen[:, 2]).astype(int)
    rows = np.round(120 - 320 * seen[:, 1] / seen[:, 2]).astype(int)
    across = np.array([picture[row - 4 : row + 5, column] for row, column in zip(rows, columns, strict=True)])
    assert np.ptp(across, axis=1).max() <= 4  # the nearer edge


def test_a_square_high_above_the_rest_is_drawn(tmp_path: Path):
    """It is not what everything lies on: the ground stays below the lowest, and the square is a body like others."""
    add_floor(write_cache(tmp_path / "out", 3), 1.0, 0.4)
    scene = preview_scene.open_scene(tmp_path / "out" / "r002" / "shot.usda")
    around = surroundings([scene], [1, 3], "points")
    assert around.ground < -0.4
    assert any(surface.floor for surface in scene.shapes(1).without_floor(around.ground).surfaces)


def test_far_drops_are_not_framed():
    """A fitted camera shows bodies whole, and the bulk of the matter."""
    block = np.random.default_rng(1).random((1000, 3))
    cloud = ball((0.0, 0.0, 0.0))
    far = replace(cloud, positions=np.concatenate([block, [[50.0, 0.5, 0.5]]]))
    low, high = Shapes((far,)).framed()
    assert low.min() >= 0.0 and high.max() < 2.0 and Shapes((far,)).bounds()[1][0] == 50.0
    body = DrawnMesh("/wall", far.positions, FACES[:1], np.zeros((1, 3, 3)), np.zeros((1, 3, 3)))
    assert Shapes((), (body,)).framed()[1][0] == 50.0


def test_a_drop_that_flew_far_makes_no_shadow_coarse():
    """Shadows are as sharp with it as without it."""
    view = look(np.array([0.0, 3.0, 4.0]), np.array([0.0, 0.5, 0.0]), 1.2)
    block = 0.3 * np.random.default_rng(1).random((400, 3)) + [-0.15, 0.7, -0.15]
    matter = Cloud("/matter", block, np.full(400, 0.03, np.float32), np.tile(RED, (400, 1)))
    far = replace(matter, positions=np.concatenate([block[1:], [[300.0, 0.5, 0.0]]]))
    alone, beside = (render_shapes(Shapes((each,)), view, SIZE, floor_at(0.0, 1.0)).astype(int) for each in (matter, far))
    assert (np.abs(alone - beside).max(axis=-1) > 24).mean() < 0.002
