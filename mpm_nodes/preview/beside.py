"""Caches, or revisions of one, side by side: same frames, same camera, same colours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
    caches: Sequence[str | Path],
    frames: list[int] | None = None,
    out: str | Path | None = None,
    engine: str = "auto",
    picture: Picture | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    names: Sequence[str] = (),
) -> RenderResult:
    """Render caches from the same camera and put their pictures side by side; the camera of the stage is that of the first.

    Other args are those of `render_cache`; without `frames`, those that all caches hold are taken.

    Args:
        caches: Two or more of them, from the left.
        names: What stands below each; what tells them apart when empty.

    Raises:
        InputError: No frame that all caches hold, or as `render_cache`.
    """
    scenes = [open_scene(find_root(Path(place))) for place in caches]
    shared = Scene(scenes[0].path, max(s.first for s in scenes), min(s.last for s in scenes), scenes[0].stage, scenes[0].to_metres)
    if shared.first > shared.last:
        held = ", ".join(f"{s.path} holds {s.first} to {s.last}" for s in scenes)
        raise InputError(f"render: the caches hold no frame in common ({held}); cook the frames again")
    ready = prepared(scenes, chosen_frames(shared, frames), engine, picture or Picture())
    folder = pictures_folder(scenes[0], out)
    names = names or _names(scenes)
    sides: list[RenderResult] = []
    for n, one in enumerate(ready):
        place = pictures_folder(one.scene, Path(out) / str(n + 1) if out is not None else None)
        known = None if progress is None else _part(progress, n, len(ready))
        fixed = one if not sides else one._replace(engine=sides[0].engine)  # all by the same renderer
        sides.append(rendered(fixed, place, known, resume))
    images = []
    for n, exposure in enumerate(ready[0].wanted):
        row = side_by_side(opened([side.images[n] for side in sides]), names)
        images.append(picture_file.save(row, folder / f"beside.{exposure.name}.{sides[0].engine}.png"))
    footer = f"{' beside '.join(names)}, {sides[0].engine}"
    sheet = contact_sheet(images, sides[0].labels, footer, cell=400 * len(scenes), columns=int(len(scenes) > 2))
    path = picture_file.save(sheet, folder / f"contact_sheet.beside.{sides[0].engine}.png")
    kept = sum(side.kept for side in sides)
    return dataclasses.replace(sides[0], images=tuple(images), contact_sheet=path, footer=footer, kept=kept)


def _part(progress: Progress, n: int, count: int) -> Progress:
    """Return what counts the pictures of all caches as one run."""
    return lambda done, total: progress(done + n * total, count * total)


def _names(scenes: list[Scene]) -> list[str]:
    """Return what tells caches apart: stage and revision, with the folder above where two are equal."""
    own = [cache_name(scene) for scene in scenes]
    if len(set(own)) == len(own):
        return own
    return [f"{scene.path.absolute().parent.parent.name}/{name}" for scene, name in zip(scenes, own, strict=True)]
