"""Two caches, or two revisions of one, side by side: same frames, same camera, same colours."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mpm_nodes.data import InputError
from mpm_nodes.preview import picture_file
from mpm_nodes.preview.exposures import chosen_frames
from mpm_nodes.preview.pictures import (
    Picture,
    Progress,
    RenderResult,
    cache_name,
    find_root,
    pictures_folder,
    prepared,
    rendered,
)
from mpm_nodes.preview.scene import Scene, open_scene
from mpm_nodes.preview.sheet import contact_sheet, opened, side_by_side

__all__ = ["render_beside"]


def render_beside(
    left: str | Path,
    right: str | Path,
    frames: list[int] | None = None,
    out: str | Path | None = None,
    engine: str = "auto",
    picture: Picture | None = None,
    progress: Progress | None = None,
    resume: bool = False,
) -> RenderResult:
    """Render two caches from the same camera and put their pictures side by side; the camera of the stage is that of `left`.

    Args are those of `render_cache`; without `frames`, those that both caches hold are taken.

    Raises:
        InputError: No frame that both caches hold, or as `render_cache`.
    """
    scenes = [open_scene(find_root(Path(place))) for place in (left, right)]
    shared = Scene(scenes[0].path, max(s.first for s in scenes), min(s.last for s in scenes), scenes[0].stage, scenes[0].to_metres)
    if shared.first > shared.last:
        held = " and ".join(f"{s.first} to {s.last}" for s in scenes)
        raise InputError(f"render: {scenes[0].path} and {scenes[1].path} hold no frame in common ({held}); cook the frames again")
    ready = prepared(scenes, chosen_frames(shared, frames), engine, picture or Picture())
    folder = pictures_folder(scenes[0], out)
    names = _names(scenes)
    sides: list[RenderResult] = []
    for n, one in enumerate(ready):
        place = pictures_folder(one.scene, Path(out) / ("left", "right")[n] if out is not None else None)
        known = None if progress is None else _half(progress, n)
        fixed = one if not sides else one._replace(engine=sides[0].engine)  # both by the same renderer
        sides.append(rendered(fixed, place, known, resume))
    images = []
    for exposure, a, b in zip(ready[0].wanted, sides[0].images, sides[1].images, strict=True):
        both = side_by_side(*opened((a, b)), names)
        images.append(picture_file.save(both, folder / f"beside.{exposure.name}.{sides[0].engine}.png"))
    footer = f"{names[0]} beside {names[1]}, {sides[0].engine}"
    sheet = contact_sheet(images, sides[0].labels, footer, cell=800)
    path = picture_file.save(sheet, folder / f"contact_sheet.beside.{sides[0].engine}.png")
    first, kept = sides[0], sides[0].kept + sides[1].kept
    return dataclasses.replace(first, images=tuple(images), contact_sheet=path, footer=footer, kept=kept)


def _half(progress: Progress, n: int) -> Progress:
    """Return what counts the pictures of both caches as one run."""
    return lambda done, total: progress(done + n * total, 2 * total)


def _names(scenes: list[Scene]) -> tuple[str, str]:
    """Return what tells two caches apart: stage and revision, with the folder above where these are equal."""
    left, right = (cache_name(scene) for scene in scenes)
    if left != right:
        return left, right
    above = [scene.path.absolute().parent.parent.name for scene in scenes]
    return f"{above[0]}/{left}", f"{above[1]}/{right}"
