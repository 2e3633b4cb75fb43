"""Cameras, motion blur, resume, two caches side by side, movies and the flipbook."""

import base64
import io
import itertools
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from preview_samples import write_cache

from mpm_nodes import cli
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.preview import movie, picture_file, pictures, splat
from mpm_nodes.preview.beside import render_beside
from mpm_nodes.preview.exposures import TURN_PICTURES, Backdrop, chosen_frames, exposures, surroundings
from mpm_nodes.preview.pictures import Picture, frames_of, render_cache
from mpm_nodes.preview.scene import open_scene

SIZE = (80, 60)
SMALL = Picture(SIZE)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Five frames of a falling block."""
    write_cache(tmp_path / "out")
    return tmp_path / "out"


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        return np.asarray(opened.convert("RGB")).astype(int)


def test_frames_are_chosen_one_by_one_or_by_what_happens(cache: Path):
    """Those that are named, or up to four; what the cache lacks is named with what it holds."""
    scene = open_scene(cache / "r002" / "shot.usda")
    assert list(frames_of(cache)) == [1, 2, 3, 4, 5]
    assert chosen_frames(scene, [2, 5]) == [2, 5] and len(chosen_frames(scene, None)) == 4
    scene.last = 100
    with pytest.raises(InputError, match="no frame 101; it holds frames 1 to 100"):
        chosen_frames(scene, [101])


class Told:
    """A scene that tells where its matter is, and nothing else."""

    first, last, path = 1, 41, Path("told.usda")

    def __init__(self, places):
        self.places = places

    def matter(self, frame: int) -> np.ndarray:
        """A cube of points, moved."""
        cube = np.array(list(itertools.product(np.linspace(0.0, 0.2, 6), repeat=3)))
        return cube[: self.places(frame)[1]] + [self.places(frame)[0], 0.0, 0.0]


def test_frames_of_a_sheet_part_what_happens():
    """Matter that moves from frame 21 on: half of the pictures or more lie there; a stream begins where there is some of it."""
    late = chosen_frames(Told(lambda frame: (0.05 * max(frame - 21, 0), 216)), None)
    assert late[0] == 1 and late[-1] == 41 and 21 < late[1] < late[2] < 41
    even = chosen_frames(Told(lambda frame: (0.05 * frame, 216)), None)
    assert even == pytest.approx([1, 14, 28, 41], abs=2)
    still = chosen_frames(Told(lambda frame: (0.0, 216)), None)
    assert still == pytest.approx([1, 14, 28, 41], abs=1)
    stream = chosen_frames(Told(lambda frame: (0.0, 5 * frame)), None)
    assert stream[0] > 5 and stream[-1] == 41 and len(set(stream)) == 4


@pytest.mark.parametrize("asked, drawn", [("4-90", ["0004", "0005"]), ("0-1", ["0001"]), ("2-2", ["0002"]), ("6-999999999", None)])
def test_of_frames_beyond_the_cache_those_that_are_there_are_drawn(cache: Path, tmp_path: Path, capsys, asked, drawn):
    """With what the cache holds in a line; none of them there is an error, however many were asked for."""
    command = ["render", str(cache), "--engine", "splat", "--size", "80x60", "--out", str(tmp_path / "pictures")]
    assert cli.main([*command, "--frames", asked]) == (0 if drawn else 5)
    said = capsys.readouterr().err
    assert sorted(path.name[6:10] for path in tmp_path.glob("pictures/frame.*")) == (drawn or [])
    assert ("holds frames 1 to 5" in said) == (asked != "2-2")


def test_every_nth_frame_plays_at_the_speed_of_the_shot(cache: Path, tmp_path: Path, capsys):
    """`--every` leaves frames out; the pictures that remain are shown longer."""
    command = ["render", str(cache), "--engine", "splat", "--size", "80x60", "--out", str(tmp_path)]
    assert cli.main([*command, "--every", "2"]) == 0
    assert [path.name[6:10] for path in sorted(tmp_path.glob("frame.*"))] == ["0001", "0003", "0005"]
    assert cli.main([*command, "--every", "0"]) == 2
    assert "--every: '0' is not a whole number from 1 to" in capsys.readouterr().err
    assert render_cache(cache, [1, 3, 5], tmp_path, "splat", SMALL).fps == 12.0


def test_a_turntable_makes_one_turn_around_the_middle(cache: Path):
    """The eye goes round at one distance and height, always looks at the middle, and never comes back to where it began."""
    scene = open_scene(cache / "r002" / "shot.usda")
    around = surroundings([scene], [1, 5], "points")
    middle = 0.5 * (around.low + around.high)
    for frames, count in (([3], TURN_PICTURES), ([1, 2, 3, 4], 4)):
        made = exposures(scene, frames, around, 4 / 3, "turntable")
        views = [exposure.view for exposure in made]
        eyes = np.array([view.eye - middle for view in views])
        assert len(views) == count and len({exposure.name for exposure in made}) == count
        assert np.allclose(np.linalg.norm(eyes, axis=1), np.linalg.norm(eyes[0])) and np.allclose(eyes[:, 1], eyes[0, 1])
        assert all(np.allclose(np.cross(view.forward, middle - view.eye), 0.0, atol=1e-9) for view in views)
        assert np.allclose(eyes[:, [0, 2]].sum(axis=0), 0.0, atol=1e-9)  # evenly spread over the circle
    with pytest.raises(InputError, match="has no camera; take the camera fit"):
        exposures(scene, [1], around, 4 / 3, "stage")
    with pytest.raises(MpmNodesError, match="choose one of auto, stage, fit, turntable"):
        exposures(scene, [1], around, 4 / 3, "orbit")


def test_blur_is_as_long_as_the_way_in_the_open_shutter(tmp_path: Path):
    """A point that crosses the picture at v is drawn over v times the shutter's seconds, and its light is spread, not added."""
    from pxr import Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "dot.usda"))
    stage.SetTimeCodesPerSecond(20.0)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(1)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    dot = UsdGeom.Points.Define(stage, "/dot")
    dot.GetPointsAttr().Set(Vt.Vec3fArray([(0, 0, 0)]), 1)
    dot.GetWidthsAttr().Set(Vt.FloatArray([0.2]), 1)
    dot.GetVelocitiesAttr().Set(Vt.Vec3fArray([(16, 0, 0)]), 1)  # 0.8 m in a frame
    stage.Save()
    scene = open_scene(tmp_path / "dot.usda")
    around = surroundings([scene], [1], "points")._replace(low=-np.ones(3), high=np.ones(3))
    view = exposures(scene, [1], around, 4 / 3, "fit")[0].view
    widths = {}
    for shutter in (0.0, 0.5, 1.0):
        made = render_cache(
            tmp_path / "dot.usda", [1], tmp_path / f"{shutter}", "splat", Picture((320, 240), shutter=shutter, camera=view)
        )
        picture = pixels(made.images[0])
        warmth = picture[..., 0] - picture[..., 2]
        seen = warmth > np.median(warmth, axis=1, keepdims=True) + 2  # sky and floor are bluish
        widths[shutter] = np.ptp(np.nonzero(seen.any(axis=0))[0]) + 1
    metre = view.focal * 320 / np.linalg.norm(view.eye) * view.right[0]
    assert widths[0.5] - widths[0.0] == pytest.approx(0.4 * metre * 8 / 9, abs=5.0)  # nine pictures span eight ninths
    assert widths[1.0] - widths[0.0] == pytest.approx(0.8 * metre * 8 / 9, abs=5.0)
    with pytest.raises(MpmNodesError, match="shutter of 3 frames is out of range"):
        render_cache(tmp_path / "dot.usda", [1], tmp_path, "splat", Picture(SIZE, shutter=3.0))


def test_resume_renders_what_is_missing_damaged_or_different(cache: Path, tmp_path: Path, monkeypatch):
    """Kept: what is whole and was made from the same things; nothing else."""
    made: list[int] = []
    drawn = splat.render

    def counted(scene, wanted, *rest):
        made.extend(exposure.frame for exposure in wanted)
        return drawn(scene, wanted, *rest)

    monkeypatch.setattr(pictures.splat, "render", counted)

    def again(resume: bool = True, picture: Picture = SMALL) -> int:
        made.clear()
        return render_cache(cache, [1, 2, 3], tmp_path / "png", "splat", picture, resume=resume).kept

    assert again() == 0 and made == [1, 2, 3]
    assert again() == 3 and made == []
    whole = (tmp_path / "png" / "frame.0002.splat.png").read_bytes()
    (tmp_path / "png" / "frame.0002.splat.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "png" / "frame.0003.splat.png").unlink()
    assert again() == 1 and made == [2, 3]
    assert (tmp_path / "png" / "frame.0002.splat.png").read_bytes() == whole
    assert again(picture=Picture(SIZE, camera="turntable")) == 0 and made == [1, 2, 3]
    assert again(picture=Picture(SIZE, shutter=0.5)) == 0 and again(resume=False) == 0 and made == [1, 2, 3]


def test_caches_stand_side_by_side_from_one_camera(cache: Path, tmp_path: Path):
    """Same cache three times: all parts are equal but for the names; a cache without a common frame is refused."""
    caches = [cache, cache / "r002" / "shot.usda", cache]
    made = render_beside(caches, [2, 4], tmp_path / "png", "splat", SMALL, names=("one", "two", "three"))
    assert [path.name for path in made.images] == ["beside.frame.0002.splat.png", "beside.frame.0004.splat.png"]
    row = pixels(made.images[0])
    assert row.shape == (60, 3 * 80 + 2 * 6, 3)
    assert (row[:30, :80] == row[:30, 86:166]).all() and (row[:30, :80] == row[:30, 172:]).all()
    assert made.footer == "one beside two beside three, splat"
    below = [row[30:, 86 * n : 86 * n + 80] for n in range(3)]
    assert (below[0] != below[1]).any() and (below[1] != below[2]).any()  # each has its own name
    assert np.abs(row[:, :80] - pixels(tmp_path / "png/1/frame.0002.splat.png")).mean() < 8.0
    sheet = pixels(made.contact_sheet)
    assert sheet.shape[1] == row.shape[1] + 12 and sheet.shape[0] > 2 * 60  # a frame below the other
    assert len(render_beside(caches[:2], [2], tmp_path / "pair", "splat", SMALL).images) == 1
    write_cache(tmp_path / "later")
    text = (tmp_path / "later" / "r002" / "shot.usda").read_text()
    late = text.replace("startTimeCode = 1\n", "startTimeCode = 11\n").replace("endTimeCode = 5", "endTimeCode = 15")
    (tmp_path / "later" / "r002" / "shot.usda").write_text(late)
    with pytest.raises(InputError, match="hold no frame in common"):
        render_beside([cache, tmp_path / "later"], None, tmp_path / "png", "splat", SMALL)


def test_each_stage_of_a_cook_can_be_drawn(cache: Path, capsys):
    """A graph with two cache nodes writes two stages: the first is drawn, the other is named, and its pictures lie apart."""
    (cache / "r002" / "cook.json").write_text("{}")
    second = shutil.copy(cache / "r002" / "shot.usda", cache / "r002" / "spray.usda")
    command = ["render", "--engine", "splat", "--size", "80x60", "--frames", "2-2"]
    assert cli.main([*command, str(cache)]) == 0
    told = capsys.readouterr()
    assert "shot.usda is drawn; give one of these to draw it: " in told.err and told.err.count("spray.usda") == 1
    assert f"{cache / 'r002' / 'preview' / 'frame.0002.splat.png'}" in told.out
    assert cli.main([*command, str(second)]) == 0
    told = capsys.readouterr()
    assert "is drawn" not in told.err and f"{cache / 'r002' / 'preview' / 'spray' / 'frame.0002.splat.png'}" in told.out


@pytest.mark.parametrize("ending", [".png", ".webp", ".gif", ".mp4"])
def test_movies_hold_every_picture_at_the_shots_speed(cache: Path, tmp_path: Path, ending: str):
    """All pictures, in order, at the frames per second of the stage; MP4 needs even sides and gets them."""
    made = render_cache(cache, range(1, 6), tmp_path / "png", "splat", Picture((81, 61)))
    path = movie.write_movie(made.images, tmp_path / "films" / f"fall{ending}", 24.0)
    if ending == ".mp4":
        av = pytest.importorskip("av")
        with av.open(str(path)) as film:
            stream = film.streams.video[0]
            frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(stream)]
        assert float(stream.average_rate) == 24.0 and (stream.width, stream.height) == (80, 60)
    else:
        with Image.open(path) as film:
            frames, seconds = [], []
            for n in range(film.n_frames):
                film.seek(n)
                film.load()
                seconds.append(1e-3 * film.info["duration"])
                frames.append(np.asarray(film.convert("RGB")).astype(int))
        assert sum(seconds) == pytest.approx(5 / 24, abs=0.005) and max(seconds) - min(seconds) <= 0.0101
    assert len(frames) == 5
    for frame, image in zip(frames, made.images, strict=True):
        assert np.abs(frame - pixels(image)[: len(frame), : frame.shape[1]]).mean() < {".png": 0.01, ".gif": 12.0}.get(ending, 4.0)


def test_movies_that_cannot_be_written_are_refused_before_rendering(cache: Path, tmp_path: Path, monkeypatch, capsys):
    """An unknown ending, MP4 without its library: told at once, with the cure."""
    monkeypatch.setattr(pictures.splat, "render", lambda *args: pytest.fail("rendered"))
    assert cli.main(["render", str(cache), "--movie", str(tmp_path / "a.avi")]) == 2
    assert "'.avi' is unknown; choose one of .mp4, .png, .webp, .gif" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    assert cli.main(["render", str(cache), "--movie", str(tmp_path / "a.mp4")]) == 2
    assert "pip install 'mpm-nodes[movie]', or write an animated .png" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    picture = picture_file.save(Image.new("RGB", (16, 16)), tmp_path / "one.png")
    with pytest.raises(OutputError, match="cannot be written"):
        movie.write_movie([picture], tmp_path / "file" / "a.png", 24.0)


def test_the_flipbook_holds_all_that_it_shows(cache: Path, tmp_path: Path, capsys):
    """One page: every picture in it, nothing loaded from elsewhere, a title that cannot break out."""
    command = ["render", str(cache), "--engine", "splat", "--size", "80x60", "--out", str(tmp_path / "png"), "--every", "2"]
    assert cli.main([*command, "--flipbook", str(tmp_path / "page.html")]) == 0
    assert "page.html" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    assert "http" not in page and "src=" not in page
    held = [base64.b64decode(code) for code in re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)", page)]
    assert len(held) == 3 and '"frame 5"' in page and '"fps": 12.0' in page
    with Image.open(io.BytesIO(held[-1])) as shown:
        assert np.abs(np.asarray(shown.convert("RGB")).astype(int) - pixels(tmp_path / "png/frame.0005.splat.png")).mean() < 4.0
    movie.write_flipbook([tmp_path / "png/frame.0005.splat.png"], ["</script>"], tmp_path / "odd.html", 24.0, "<b>")
    odd = (tmp_path / "odd.html").read_text()
    assert odd.count("</script>") == 1 and "&lt;b&gt;" in odd


def test_wrong_sizes_are_refused(cache: Path, capsys):
    """By the command line, with an example."""
    assert cli.main(["render", str(cache), "--size", "large"]) == 2
    assert "such as 640x480" in capsys.readouterr().err


@pytest.mark.parametrize("size", [(0.5, 1.0, 4.0), (4.0, 1.0, 0.5)])
def test_a_turntable_sees_all_of_a_long_thing_from_every_side(size):
    """Its corners lie within all pictures, however it is turned."""
    half, aspect = 0.5 * np.array(size), SIZE[0] / SIZE[1]
    scene = SimpleNamespace(path="cache", view=lambda frame: None)
    corners = half * np.array(list(itertools.product((-1, 1), repeat=3)))
    made = exposures(scene, [1], Backdrop(-half, half, -1.0, 3.0), aspect, "turntable")
    assert len(made) == TURN_PICTURES
    for exposure in made:
        view = exposure.view
        x, y, depth = ((corners - view.eye) @ axis for axis in (view.right, view.up, view.forward))
        assert depth.min() > 0.0
        assert np.abs(view.focal * x / depth).max() <= 0.5 and np.abs(view.focal * y / depth).max() <= 0.5 / aspect
