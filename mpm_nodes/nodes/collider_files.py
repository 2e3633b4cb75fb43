"""What the readers of files share: which version of a file it is, stages that stay open, and the time codes of the shot's frames.

What is costly (reading, distances) is kept within the cook's memory limit: a still collider is built once a shot, and the
solver sees that it is the same object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpm_nodes.data import GraphSettings, InputError
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.values.kept import Kept


def stamp(path: Path) -> tuple[str, int, int]:
    """Return what tells versions of a file apart.

    Raises:
        InputError: There is no such file.
    """
    try:
        facts = path.stat()
    except OSError:
        raise InputError(f"{path}: no such file; give the path of a file that is there") from None
    return str(path), facts.st_size, facts.st_mtime_ns


def open_meshes(kept: Kept, path: Path, prim: str) -> Any:
    """Return the meshes at or below a prim of a file (`usd_io.collider_meshes.StageMeshes`), open from frame to frame."""
    from usd_io.collider_meshes import StageMeshes

    file = stamp(path)
    return kept.get(("stage", *file, prim), lambda: StageMeshes(path, prim), lambda _: file[1])  # as much as its file


def shot_codes(settings: GraphSettings, stage: Any) -> Any:
    """Return the time codes (`usd_io.time_codes.Codes`) of a shot's frames in an open stage: both count seconds from 0."""
    from usd_io.time_codes import Codes, per_second

    return Codes(Clock.of(settings).code(1.0, per_second(stage)))


def point_codes(settings: GraphSettings, stage: Any) -> Any:
    """Return those at which a shot's frames find points: as `shot_codes`, and in a cache of ours those of its frames by number."""
    from usd_io.stage_reader import is_ours
    from usd_io.time_codes import Codes

    return Codes() if is_ours(stage) else shot_codes(settings, stage)


def frame_of_file(settings: GraphSettings, frame: float, frames: Any) -> float:
    """Return the (fractional) frame of a file's own (`usd_io.time_codes.StageFrames`) at a frame of the shot, as `point_codes`."""
    if frames.numbered:
        return float(frame)
    return float(frames.frame(Clock.of(settings).code(frame, frames.fps * frames.step)))
