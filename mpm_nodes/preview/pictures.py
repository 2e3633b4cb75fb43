"""Look at a cache: PNGs of its frames and a contact sheet, by Blender's Cycles or by the built-in splat renderer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpm_nodes
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.materials.black_body import WHITE
from mpm_nodes.preview import cycles, picture_file, splat
from mpm_nodes.preview.colour_by import draw_legend, spanned
from mpm_nodes.preview.cycles import EngineMissing
from mpm_nodes.preview.exposures import Backdrop, Exposure, chosen_frames, exposures, surroundings
from mpm_nodes.preview.scene import Scene, View, open_scene
from mpm_nodes.preview.sets import dressing_of
from mpm_nodes.preview.sheet import contact_sheet

__all__ = ["ENGINES", "EngineMissing", "Picture", "RenderResult", "find_root", "frames_of", "prepared", "render_cache"]

ENGINES = ("auto", "cycles", "splat")
WIDTH = 640

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RenderResult:
    """What was rendered.

    Attributes:
        images: One PNG a picture, in order.
        labels: What each shows: "frame 12".
        frames: The frame of each.
        contact_sheet: PNG with all pictures, labelled.
        footer: What they are: the cache, the engine and the size.
        engine: "cycles" or "splat".
        fps: Pictures a second at which they play in the time of the shot.
        message: Why another engine than the best one was taken, or "".
        kept: How many pictures were there already and were not rendered again.
    """

    images: tuple[Path, ...]
    labels: tuple[str, ...]
    frames: tuple[int, ...]
    contact_sheet: Path
    footer: str
    engine: str
    fps: float
    message: str = ""
    kept: int = 0


class Picture(NamedTuple):
    """How pictures are made.

    Attributes:
        size: Width and height in pixels; 640 wide in the shape of the stage's camera (4:3 without one) when None.
        samples: Cycles samples a pixel.
        colour_by: Attribute that colours the surface, or the points where the surface lacks it, with a legend in its unit.
        shutter: Time for which the shutter is open, in frames, centred on the frame; 0 is without motion blur.
        camera: One of `exposures.CAMERAS`, or a camera of one's own.
        show: "points" or "surface" where the cache holds both; the surface when None.
        around: First and last frame that floor and fitted camera stand for; those rendered when None.
        white: Luminance that is shown as white [cd/m^2]: what carries a temperature glows as a black body; 0: nothing does.
        set_name: One of `sets.SETS`, or a USD file, that stands around it in place of ground and sky; empty: none.
    """

    size: tuple[int, int] | None = None
    samples: int = 16
    colour_by: str = ""
    shutter: float = 0.0
    camera: str | View = "auto"
    show: str | None = None
    around: tuple[int, int] | None = None
    white: float = WHITE
    set_name: str = ""


class Prepared(NamedTuple):
    """A cache with everything that its pictures are made from.

    Attributes:
        scene: The cache.
        wanted: The pictures.
        around: What stands around them.
        how: `Picture`, with its size known, and what is shown.
        engine: One of `ENGINES`.
    """

    scene: Scene
    wanted: tuple[Exposure, ...]
    around: Backdrop
    how: Picture
    engine: str


def render_cache(
    cache_folder: str | Path,
    frames: Sequence[int] | None = None,
    out: str | Path | None = None,
    engine: str = "auto",
    picture: Picture | None = None,
    progress: Progress | None = None,
    resume: bool = False,
) -> RenderResult:
    """Render frames of a cache to PNGs and put them on a contact sheet.

    Args:
        cache_folder: Folder of a cook (its newest revision is taken), a revision, or a USD stage.
        frames: Frame numbers (`frames_of` knows all); up to nine, spread evenly, when None.
        out: Folder for the pictures; `preview` beside the stage when None.
        engine: "cycles" (Blender, in its own process), "splat" (built in, seconds) or "auto": Cycles where it runs.
        picture: How the pictures are made.
        progress: Called with (pictures done, pictures wanted).
        resume: Keep the pictures of an earlier run that were made from the same things.

    Raises:
        InputError: No cache there, or no such frame, camera or attribute.
        EngineMissing: `engine` is "cycles" and it cannot run; the message names what is missing.
        OutputError: The pictures cannot be written.
    """
    scene = open_scene(find_root(Path(cache_folder)))
    ready = prepared((scene,), chosen_frames(scene, frames), engine, picture or Picture())[0]
    return rendered(ready, pictures_folder(scene, out), progress, resume)


def frames_of(cache_folder: str | Path) -> range:
    """Return the numbers of all frames of a cache.

    Raises:
        InputError: No cache there.
    """
    scene = open_scene(find_root(Path(cache_folder)))
    return range(scene.first, scene.last + 1)


def prepared(scenes: Sequence[Scene], frames: Sequence[int], engine: str, picture: Picture) -> list[Prepared]:
    """Return what to render of caches that are to be compared: same frames, cameras, colours and floor.

    Raises:
        InputError: Nothing to see, no such camera, or no points with the attribute.
        MpmNodesError: An unknown engine or camera, or a size or shutter out of range.
    """
    if engine not in ENGINES:
        raise MpmNodesError(f"render: engine '{engine}' is unknown; choose one of {', '.join(ENGINES)}")
    if picture.size is not None and (min(picture.size) < 16 or max(picture.size) > 16384):
        raise MpmNodesError(f"render: size {picture.size[0]} x {picture.size[1]} is out of range; give 16 to 16384 pixels a side")
    if not 0.0 <= picture.shutter <= 2.0:
        raise MpmNodesError(f"render: a shutter of {picture.shutter:g} frames is out of range; give 0 (no blur) to 2, often 0.5")
    if picture.samples < 1:
        raise MpmNodesError(f"render: {picture.samples} samples a pixel are out of range; give 1 or more")
    if not (np.isfinite(picture.white) and picture.white >= 0.0):
        raise MpmNodesError(
            f"render: a white of {picture.white:g} cd/m^2 is out of range; give what is shown as white, often {WHITE:g}, or 0"
        )
    if picture.set_name and engine == "splat":
        raise MpmNodesError("render: the built-in splat renderer draws no set; leave out the set, or take the engine cycles")
    first = scenes[0]
    for scene in scenes:
        scene.white = picture.white
    if picture.colour_by:
        values = (column for scene in scenes for frame in frames for column in scene.values(picture.colour_by, frame))
        colours = spanned(picture.colour_by, values)
        for scene in scenes:
            scene.colour_by = colours
    shown = picture.show or "surface"
    if picture.colour_by and not all(scene.surface_carries(picture.colour_by, frames[-1]) for scene in scenes):
        shown = "points"  # the surface has no such attribute
    standing = frames if picture.around is None else range(picture.around[0], picture.around[1] + 1)
    around = surroundings(scenes, standing, shown)
    if picture.set_name:  # no other renderer draws it
        dressing = dressing_of(picture.set_name, first, standing, shown, (around.ground, around.look))
        engine, around = "cycles", around._replace(dressing=dressing, ground=dressing.ground)
    own = first.view(frames[0]) if picture.camera in ("auto", "stage") else None
    fixed = picture.camera if isinstance(picture.camera, View) else None
    known = fixed or own
    size = picture.size or (WIDTH, max(16, round(WIDTH / (known.aspect if known else 4.0 / 3.0))))
    wanted = exposures(first, frames, around, size[0] / size[1], picture.camera)
    if len(scenes) > 1:  # the stage's camera is the first one's for all of them
        wanted = [exposure._replace(view=exposure.view or first.view(exposure.frame)) for exposure in wanted]
    how = picture._replace(size=size, show=shown)
    return [Prepared(scene, tuple(wanted), around, how, engine) for scene in scenes]


def rendered(ready: Prepared, folder: Path, progress: Progress | None, resume: bool) -> RenderResult:
    """Render what was prepared; with Cycles where the engine is "auto" and it runs."""
    if ready.engine != "splat":
        try:
            return _rendered_by("cycles", ready, folder, progress, resume)
        except EngineMissing as error:
            if ready.engine == "cycles":
                raise
            message = f"{error}; used the built-in splat renderer instead"
        return _rendered_by("splat", ready, folder, progress, resume, message)
    return _rendered_by("splat", ready, folder, progress, resume)


def _rendered_by(
    engine: str, ready: Prepared, folder: Path, progress: Progress | None, resume: bool, message: str = ""
) -> RenderResult:
    scene, wanted, around, how, _ = ready
    images = [folder / f"{exposure.name}.{engine}.png" for exposure in wanted]
    marks = [picture_file.stamp(_made_from(engine, ready, exposure)) for exposure in wanted]
    places = {exposure.name: place for exposure, place in zip(wanted, zip(images, marks, strict=True), strict=True)}

    def held(exposure: Exposure) -> bool:
        path, mark = places[exposure.name]
        return picture_file.stamped(path) == mark

    missing = [exposure for exposure in wanted if not (resume and held(exposure))]
    kept = len(wanted) - len(missing)
    count = kept
    if progress is not None and kept:
        progress(kept, len(wanted))

    def done(exposure: Exposure, image: Any) -> None:
        nonlocal count
        if scene.colour_by is not None:
            draw_legend(image, scene.colour_by)
        path, mark = places[exposure.name]
        picture_file.save(image, path, mark)
        count += 1
        if progress is not None:
            progress(count, len(wanted))

    if missing:
        (cycles if engine == "cycles" else splat).render(scene, missing, around, how, done)
    labels = tuple(exposure.label for exposure in wanted)
    width, height = how.size
    footer = f"{cache_name(scene)}, {engine}, {width} x {height}"
    sheet = picture_file.save(contact_sheet(images, labels, footer), folder / f"contact_sheet.{engine}.png")
    steps = np.diff([exposure.frame for exposure in wanted])
    every = max(int(np.median(steps)), 1) if len(steps) else 1
    turning = len(steps) > 0 and not steps.any()
    return RenderResult(
        tuple(images),
        labels,
        tuple(exposure.frame for exposure in wanted),
        sheet,
        footer,
        engine,
        24.0 if turning else scene.fps / every,
        message,
        kept,
    )


def _made_from(engine: str, ready: Prepared, exposure: Exposure) -> dict[str, Any]:
    """Return what a picture depends on, as JSON: for a frame of a cache, its layer's size and time stand for what it holds."""
    scene, how = ready.scene, ready.how
    view = exposure.view or scene.view(exposure.frame)
    file = scene.path.parent / scene.path.stem / f"{scene.path.stem}.{exposure.frame:04d}.usdc"
    known = (file if file.is_file() else scene.path).stat()
    return {
        "version": mpm_nodes.__version__,
        "engine": engine,
        "frame": exposure.frame,
        "layer": [known.st_size, known.st_mtime_ns],
        "show": how.show,
        "size": how.size,
        "shutter": how.shutter,
        "samples": how.samples if engine == "cycles" else 0,
        "colour_by": repr(scene.colour_by),
        "white": scene.white,
        "colours": {path: list(colour) for path, colour in scene.colours.items()},
        "floor": [ready.around.ground, ready.around.extent, ready.around.look],
        "set": _stamp_of_set(ready.around),
        "view": None if view is None else [view.eye.tolist(), view.right.tolist(), view.up.tolist(), view.focal],
    }


def _stamp_of_set(around: Backdrop) -> str:
    """Return what tells sets apart."""
    if around.dressing is None:
        return ""
    file, name = around.dressing.file, around.dressing.name
    if file is None:
        return f"{name} {around.dressing.kind!r} {around.dressing.middle.tolist()} {around.dressing.radius}"
    known = file.stat()
    return f"{name} {known.st_size} {known.st_mtime_ns}"


def cache_name(scene: Scene) -> str:
    """Return how a cache is called on pictures: its stage, and the revision that it lies in."""
    folder = scene.path.absolute().parent.name
    return f"{scene.path.stem} {folder}" if re.fullmatch(r"r\d{3,}", folder) else scene.path.stem


def pictures_folder(scene: Scene, out: str | Path | None) -> Path:
    """Make the folder for the pictures; in a cache, which may be a stranger's, it is refused where it is a link.

    Of several stages in one folder each but the first has a folder of its own in `preview`.
    """
    beside = scene.path.parent
    own = f"preview/{scene.path.stem}" if scene.path in _stages_in(beside)[1:] else "preview"
    folder = beside / own if out is None else Path(out)
    try:
        if out is None:
            Folder(beside).make(own)
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
    return find_roots(place)[0]


def _stages_in(folder: Path) -> list[Path]:
    """Return the root stages in a folder, sorted."""
    return [
        path
        for path in sorted(folder.glob("*.usd[ac]")) + sorted(folder.glob("*.usd"))
        if not re.search(r"\.(topology|manifest)\.|\.\d+\.usd|^\.", path.name)
    ]


def find_roots(place: Path) -> list[Path]:
    """Return all root stages of a cache, sorted; as `find_root`."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; give the folder that a cook wrote")
    revisions = [path for path in place.iterdir() if path.is_dir() and re.fullmatch(r"r\d{3,}", path.name)]
    for folder in [*sorted(revisions, key=lambda path: -int(path.name[1:])), place]:
        if found := _stages_in(folder):
            return found
    raise InputError(f"{place}: holds no USD stage (*.usda), nor does any rNNN folder in it; cook a graph with a cache node first")
