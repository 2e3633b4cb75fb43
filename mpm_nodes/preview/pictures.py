"""Look at a cache: PNGs of its frames and a contact sheet, by Blender Cycles or by the built-in splat renderer."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.graph.folder import Folder
from mpm_nodes.preview.colour_by import draw_legend, spanned
from mpm_nodes.preview.scene import Scene, View, framing, open_scene

ENGINES = ("auto", "cycles", "splat")
SHEET_FRAMES = 9
WIDTH = 640
_BLENDER_SCRIPT = Path(__file__).with_name("blender_script.py")
_START_SECONDS, _SECONDS_PER_FRAME = 120.0, 600.0
_DEBIAN = {
    "libX11": "libx11-6",
    "libXrender": "libxrender1",
    "libXfixes": "libxfixes3",
    "libXi": "libxi6",
    "libXxf86vm": "libxxf86vm1",
    "libxkbcommon": "libxkbcommon0",
    "libSM": "libsm6",
    "libICE": "libice6",
    "libGL": "libgl1",
    "libEGL": "libegl1",
    "libXext": "libxext6",
    "libgomp": "libgomp1",
}

Progress = Callable[[int, int], None]


class EngineMissing(MpmNodesError):
    """The wanted renderer cannot run on this machine."""


@dataclass(frozen=True)
class RenderResult:
    """What was rendered.

    Attributes:
        images: One PNG a frame, in order.
        contact_sheet: PNG with all frames, labelled.
        engine: "cycles" or "splat".
        message: Why another engine than the best one was taken, or "".
    """

    images: tuple[Path, ...]
    contact_sheet: Path
    engine: str
    message: str = ""


class Picture(NamedTuple):
    """How large and how clean pictures are.

    Attributes:
        size: Width and height in pixels; 640 wide in the shape of the stage's camera (4:3 without one) when None.
        samples: Cycles samples a pixel.
        colour_by: Attribute that colours the points, with a legend in its unit; drawn by the built-in renderer.
    """

    size: tuple[int, int] | None = None
    samples: int = 16
    colour_by: str = ""


def render_cache(
    cache_folder: str | Path,
    frames: Sequence[int] | None = None,
    out: str | Path | None = None,
    engine: str = "auto",
    picture: Picture | None = None,
    progress: Progress | None = None,
    show: str | None = None,
    view: View | None = None,
) -> RenderResult:
    """Render frames of a cache to PNGs and put them on a contact sheet.

    Args:
        cache_folder: Folder of a cook (its newest revision is taken), a revision, or a USD stage.
        frames: Frame numbers; up to nine, spread evenly, when None.
        out: Folder for the pictures; `preview` beside the stage when None.
        engine: "cycles" (Blender, in its own process), "splat" (built in, seconds) or "auto": Cycles where it runs.
        picture: Size and samples of the pictures.
        progress: Called with (frames done, frames wanted).
        show: "points" or "surface" where the cache holds both; the surface when None.
        view: The camera; the stage's own when None, or one that shows everything.

    Raises:
        InputError: no cache there, or no such frame.
        EngineMissing: `engine` is "cycles" and it cannot run; the message names what is missing.
        OutputError: the pictures cannot be written.
    """
    if engine not in ENGINES:
        raise MpmNodesError(f"render: engine '{engine}' is unknown; choose one of {', '.join(ENGINES)}")
    size, samples, colour_by = picture or Picture()
    if size is not None and (min(size) < 16 or max(size) > 16384):
        raise MpmNodesError(f"render: size {size[0]} x {size[1]} is out of range; give 16 to 16384 pixels a side")
    scene = open_scene(find_root(Path(cache_folder)))
    chosen = _frames(scene, frames)
    camera = view or scene.view(chosen[0])
    size = size or (WIDTH, max(16, round(WIDTH / (camera.aspect if camera else 4.0 / 3.0))))
    folder = _pictures_folder(scene, out)
    message, used, images = "", "splat", []
    if colour_by:
        if engine == "cycles":
            raise MpmNodesError("render: the engine cycles does not colour by attributes; take the engine splat")
        scene.colour_by = spanned(colour_by, (values for frame in chosen for values in scene.values(colour_by, frame)))
        engine, show = "splat", "points"
    if engine != "splat":
        try:
            images, used = _cycles(scene, chosen, folder, size, samples, show or "surface", progress, view), "cycles"
        except EngineMissing as error:
            if engine == "cycles":
                raise
            message = f"{error}; used the built-in splat renderer instead"
    if used == "splat":
        images = _splat(scene, chosen, folder, size, show or "surface", progress, view)
    sheet = contact_sheet(images, [f"frame {frame}" for frame in chosen], folder / "contact_sheet.png")
    return RenderResult(tuple(images), sheet, used, message)


def _pictures_folder(scene: Scene, out: str | Path | None) -> Path:
    """Make the folder for the pictures; in a cache, which may be a stranger's, it is refused where it is a link."""
    folder = Path(out) if out is not None else scene.path.parent / "preview"
    try:
        if out is None:
            Folder(folder.parent).make("preview")
        else:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created ({error.strerror}); choose another folder for the pictures") from error
    return folder


def find_root(place: Path) -> Path:
    """Return the root stage of a cache: of a file itself, a revision folder, or the newest revision below a folder.

    Raises:
        InputError: There is none.
    """
    if place.is_file():
        return place
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; give the folder that a cook wrote")
    revisions = [path for path in place.iterdir() if path.is_dir() and re.fullmatch(r"r\d{3,}", path.name)]
    for folder in [*sorted(revisions, key=lambda path: -int(path.name[1:])), place]:
        found = [
            path
            for path in sorted(folder.glob("*.usd[ac]")) + sorted(folder.glob("*.usd"))
            if not re.search(r"\.(topology|manifest)\.|\.\d+\.usd|^\.", path.name)
        ]
        if found:
            return found[0]
    raise InputError(f"{place}: holds no USD stage (*.usda), nor does any rNNN folder in it; cook a graph with a cache node first")


def span_of(place: Path) -> tuple[int, int, float]:
    """Return the first and the last frame of a cache, and its frames a second.

    Raises:
        InputError: There is no cache.
    """
    scene = open_scene(find_root(place))
    return scene.first, scene.last, float(scene.stage.GetTimeCodesPerSecond())


def contact_sheet(images: Sequence[Path], labels: Sequence[str], path: Path, cell: int = 400) -> Path:
    """Put pictures on one sheet, labelled, at most `cell` pixels wide each; write it to `path` and return that."""
    from PIL import Image, ImageDraw, ImageFont

    pictures = []
    for image in images:
        with Image.open(image) as opened:
            picture = opened.convert("RGB")
        height = max(1, round(picture.height * cell / picture.width))
        pictures.append(picture.resize((cell, height), Image.Resampling.LANCZOS) if picture.width > cell else picture)
    columns = int(np.ceil(np.sqrt(len(pictures))))
    rows = -(-len(pictures) // columns)
    width, height, gap = max(p.width for p in pictures), max(p.height for p in pictures), 6
    sheet = Image.new("RGB", (columns * (width + gap) + gap, rows * (height + gap) + gap), (28, 29, 31))
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=max(11, height // 16))
    for n, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        corner = (gap + (n % columns) * (width + gap), gap + (n // columns) * (height + gap))
        sheet.paste(picture, corner)
        place = (corner[0] + 8, corner[1] + 5)
        pen.text((place[0] + 1, place[1] + 1), label, fill=(255, 255, 255), font=font)
        pen.text(place, label, fill=(20, 20, 22), font=font)
    return _save(sheet, path)


def _save(image, path: Path) -> Path:
    data = io.BytesIO()
    image.save(data, "PNG")
    return _put(data.getvalue(), path)


def _put(data: bytes, path: Path) -> Path:
    """Write a picture; a link that has its name is replaced, not followed."""
    try:
        Folder(path.parent.resolve()).replace(path.name, data)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error}); free some space or choose another folder") from error
    return path


def _frames(scene: Scene, frames: Sequence[int] | None) -> list[int]:
    if frames is None:
        count = min(SHEET_FRAMES, scene.last - scene.first + 1)
        return [round(frame) for frame in np.linspace(scene.first, scene.last, count).tolist()]
    for frame in frames:
        if not scene.first <= frame <= scene.last:
            raise InputError(f"{scene.path}: has no frame {frame}; it holds frames {scene.first} to {scene.last}")
    if not len(frames):
        raise InputError(f"{scene.path}: no frames were asked for; it holds frames {scene.first} to {scene.last}")
    return [int(frame) for frame in frames]


def _surroundings(scene: Scene, frames: Sequence[int], size: tuple[int, int], show: str) -> tuple[View, float, float]:
    """Return a camera that frames the whole motion, the ground height [m] and the scene's radius [m]."""
    sampled = sorted({frames[0], frames[len(frames) // 2], frames[-1]})
    boxes = [box for box in (scene.shapes(frame, show).bounds() for frame in sampled) if box is not None]
    if not boxes:
        raise InputError(f"{scene.path}: holds neither points nor meshes at frames {sampled}; nothing to render")
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    radius = 0.5 * float(np.linalg.norm(high - low)) + 1e-6
    return framing((low, high), size[0] / size[1]), float(low[1]) - 1e-3 * radius, radius


# ---------------------------------------------------------------- the built-in renderer
def _splat(
    scene: Scene,
    frames: Sequence[int],
    folder: Path,
    size: tuple[int, int],
    show: str,
    progress: Progress | None,
    given: View | None,
) -> list[Path]:
    from PIL import Image

    from mpm_nodes.preview.splat import render_shapes

    framed, ground, extent = _surroundings(scene, frames, size, show)
    images = []
    for done, frame in enumerate(frames):
        picture = render_shapes(scene.shapes(frame, show), given or scene.view(frame) or framed, size, ground, extent)
        image = Image.fromarray(picture)
        if scene.colour_by is not None:
            draw_legend(image, scene.colour_by)
        images.append(_save(image, folder / f"frame.{frame:04d}.png"))
        if progress is not None:
            progress(done + 1, len(frames))
    return images


# ---------------------------------------------------------------- Blender
def _cycles(
    scene: Scene,
    frames: Sequence[int],
    folder: Path,
    size: tuple[int, int],
    samples: int,
    show: str,
    progress: Progress | None,
    given: View | None,
) -> list[Path]:
    """Render with Blender in a child process (it can crash or hang, and its USD library must not meet ours)."""
    framed, ground, extent = _surroundings(scene, frames, size, show)
    view = given or framed
    names = {frame: f"frame.{frame:04d}.png" for frame in frames}
    job = {
        "stage": str(scene.path.absolute()),
        "frames": list(frames),
        "size": list(size),
        "samples": int(samples),
        "show": show,
        "ground": ground,
        "extent": extent,
        "camera": None
        if given is None and scene.view(frames[0]) is not None
        else {name: getattr(view, name).tolist() for name in ("eye", "right", "up", "forward")} | {"focal": view.focal},
        "colours": _colours(scene, frames[0]),
    }
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        job["images"] = [str(Path(scratch) / names[frame]) for frame in frames]
        path = Path(scratch) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        _run_blender(path, len(frames), progress)
        missing = [frame for frame in frames if not (Path(scratch) / names[frame]).is_file()]
        if missing:
            raise EngineMissing(f"Blender ended without the picture of frame {missing[0]}; try the engine 'splat'")
        return [_put((Path(scratch) / names[frame]).read_bytes(), (folder / names[frame]).absolute()) for frame in frames]


def _colours(scene: Scene, frame: int) -> dict[str, list[float]]:
    """Return the linear colour of each prim's name: Blender loses the materials of points on import."""
    found: dict[str, list[float]] = {}
    for show in ("points", "surface"):
        shapes = scene.shapes(frame, show)
        for cloud in shapes.clouds:
            found[cloud.path.rsplit("/", 1)[1]] = [float(c) for c in cloud.colours.mean(axis=0)]
        for skin in shapes.skins:
            found[skin.path.rsplit("/", 1)[1]] = [float(c) for c in skin.colour]
    return found


def _run_blender(job: Path, count: int, progress: Progress | None) -> None:
    child = children.start(
        _BLENDER_SCRIPT,
        [str(job)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=job.parent,
    )
    lines: list[str] = []
    watch = _Deadline(child, _START_SECONDS + _SECONDS_PER_FRAME * count)
    with watch:
        for line in child.stdout:
            lines.append(line.rstrip())
            if line.startswith("MPM_FRAME ") and progress is not None:
                progress(int(line.split()[1]), count)
        child.wait()
    if watch.expired:
        raise EngineMissing(f"Blender gave no result within {watch.seconds:.0f} s; try fewer frames, or the engine 'splat'")
    if child.returncode != 0:
        raise EngineMissing(blender_problem(lines, child.returncode))


class _Deadline:
    """Ends a child process when it runs longer than `seconds`, or when the block is left by an error."""

    def __init__(self, child: subprocess.Popen, seconds: float) -> None:
        import threading

        self.child, self.seconds, self.expired = child, seconds, False
        self.timer = threading.Timer(seconds, self._expire)
        self.timer.daemon = True

    def _expire(self) -> None:
        self.expired = True
        self.child.kill()

    def __enter__(self) -> _Deadline:
        self.timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()


def blender_problem(lines: Sequence[str], code: int) -> str:
    """Return one sentence on why Blender failed, from what it printed; missing libraries with their Debian packages."""
    text = "\n".join(lines)
    missing = re.search(r"(lib[A-Za-z0-9+-]+)[.\d-]*\.so[.\d]*: cannot open shared object file", text)
    if missing:
        named = _DEBIAN.get(missing[1])
        # The loader names only the first one; a bare server lacks the whole family.
        family = "libx11-6 libxrender1 libxfixes3 libxi6 libxxf86vm1 libxkbcommon0 libsm6 libice6 libgl1 libegl1"
        return (
            f"Blender needs the system library {missing[1]}, which this machine lacks; install the Debian packages: "
            f"{family if named else missing[1].lower()}"
        )
    if "No module named 'bpy'" in text:
        return "Blender is not installed; install it with: pip install 'mpm-nodes[vdb]'"
    last = next((line for line in reversed(lines) if line.strip()), "no output")
    return f"Blender failed (exit status {code}): {last.strip()[:200]}"
