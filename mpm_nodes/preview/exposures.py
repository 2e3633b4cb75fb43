"""Which pictures are made of a cache: the frame of each, and the camera that looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.preview.scene import Scene, View, framing
from mpm_nodes.preview.sets import Dressing, all_round, composed, turned

__all__ = [
    "CAMERAS",
    "CHECKER_SHARE",
    "FADE",
    "SKY",
    "SKY_SHARES",
    "Backdrop",
    "Exposure",
    "chosen_frames",
    "exposures",
    "surroundings",
]

CAMERAS = ("auto", "stage", "fit", "turntable")
SHEET_FRAMES = 4
LOOKED_AT = 33
"""Most frames that are looked at to choose those of a sheet."""
LEAST_MATTER = 0.05
"""Share of the matter from which on the first frame is worth a picture: streams begin with next to nothing."""
BINS = 16
"""Along the longest side of what is seen, for the change between two frames."""
TURN_PICTURES = 48
"""Pictures of a turntable around a single frame."""
SKY = (0.80, 0.86, 0.94)
"""Linear colour of what lies behind everything."""
SKY_SHARES = (0.5, 0.75)
"""Its share at the lower and at the upper edge of a picture."""
CHECKER_SHARE = 0.25
"""Edge of a square of a checked floor over the radius of the whole."""
FADE = (3.0, 15.0)
"""Distances from the camera between which the ground fades into the sky, so that it has no end, over the radius of the whole."""


class Exposure(NamedTuple):
    """One picture.

    Attributes:
        frame: Frame of the cache.
        name: What its file is called, without the engine and the ending.
        label: What stands on it on a contact sheet.
        view: Camera; None for the stage's own.
    """

    frame: int
    name: str
    label: str
    view: View | None = None


class Backdrop(NamedTuple):
    """What stands still around everything that is rendered together.

    Attributes:
        low: Least corner of all that is seen [m], shape (3,).
        high: Greatest corner [m].
        ground: Height of the floor [m].
        extent: Radius of the whole [m].
        look: Of the floor.
        dressing: What stands there in place of ground and sky, if anything.
    """

    low: np.ndarray
    high: np.ndarray
    ground: float
    extent: float
    look: str = "floor"
    dressing: Dressing | None = None


def chosen_frames(scene: Scene, frames: Sequence[int] | None) -> list[int]:
    """Return the frames to draw.

    Args:
        scene: The cache.
        frames: Wanted frames; None for up to four: the first, the last, and those that part what happens into equal shares.

    Raises:
        InputError: The cache lacks a frame, or none is left.
    """
    held = f"it holds frames {scene.first} to {scene.last}"
    if frames is None:
        return _eventful(scene)
    wanted = [int(frame) for frame in frames]
    for frame in wanted:
        if not scene.first <= frame <= scene.last:
            raise InputError(f"{scene.path}: has no frame {frame}; {held}")
    if not wanted:
        raise InputError(f"{scene.path}: no frames were asked for; {held}")
    return wanted


def _eventful(scene: Scene) -> list[int]:
    """Return the first frame, the last one, and those that part what happens in between into equal shares.

    What happens between two frames is the share of the matter that is in another bin of a grid then.
    """
    count = scene.last - scene.first + 1
    if count <= SHEET_FRAMES:
        return list(range(scene.first, scene.last + 1))
    looked_at = np.unique(np.linspace(scene.first, scene.last, min(LOOKED_AT, count)).round().astype(int))
    points = [scene.matter(frame) for frame in looked_at.tolist()]
    held = np.concatenate(points)
    if not len(held):
        return [round(frame) for frame in np.linspace(scene.first, scene.last, SHEET_FRAMES).tolist()]
    low, side = held.min(axis=0), max(float(np.ptp(held, axis=0).max()), 1e-9)
    bins = [np.floor((each - low) / side * (BINS - 1)).astype(int) for each in points]
    most = max(len(each) for each in points)
    shares = np.array([np.bincount(each @ (BINS**2, BINS, 1), minlength=BINS**3) / most for each in bins])
    happened = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(shares, axis=0)).sum(axis=1) + 1e-6)])
    begun = len(points[0]) > LEAST_MATTER * most
    wanted = happened[-1] * np.linspace(0.0 if begun else 1.0 / SHEET_FRAMES, 1.0, SHEET_FRAMES)
    marks = np.interp(wanted, happened, looked_at).round().astype(int).tolist()
    return [max(mark, scene.first + n) for n, mark in enumerate(marks)]


def surroundings(scenes: Sequence[Scene], frames: Sequence[int], show: str) -> Backdrop:
    """Return the box around the first, the middle and the last frame of all scenes, its floor and its radius.

    Squares that show a plane are part of the floor, which lies at their height: it has no edge, and hides what sinks into it.

    Raises:
        InputError: There is nothing to see.
    """
    from usd_io.bounds import APART, level_of

    sampled = sorted({frames[0], frames[len(frames) // 2], frames[-1]})
    seen = [scene.shapes(frame, show) for scene in scenes for frame in sampled]
    boxes = [box for shapes in seen if (box := shapes.without_floor().framed() or shapes.bounds()) is not None]
    if not boxes:
        from usd_io.relink import refuse_missing

        refuse_missing(scenes[0].stage)
        raise InputError(f"{scenes[0].path}: holds neither points nor meshes at frames {sampled}; nothing to render")
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    radius = 0.5 * float(np.linalg.norm(high - low)) + 1e-6
    lowest = min(float(box[0][1]) for shapes in seen if (box := shapes.without_floor().bounds() or shapes.bounds()) is not None)
    floors = [floor[1] for scene in scenes if (floor := scene.floor()) is not None]
    planes = {surface.height: surface.floor for shapes in seen for surface in shapes.surfaces if surface.floor}
    plane = level_of(planes, lowest, radius)
    if plane is None:
        return Backdrop(low, high, min([lowest - APART * radius, *floors]), radius)
    return Backdrop(low, high, plane, radius, planes[plane])


def exposures(scene: Scene, frames: Sequence[int], around: Backdrop, aspect: float, camera: str | View) -> list[Exposure]:
    """Return the pictures to make.

    Args:
        scene: The cache whose camera "stage" means.
        frames: Frames, in order.
        around: What a fitted camera shows.
        aspect: Width over height of the pictures.
        camera: A camera, or one of `CAMERAS`. "auto" is the stage's camera, or a fitted one where it has none or a set is there; a
            turntable makes one turn over all frames, or around the single one.

    Raises:
        InputError: The stage has no camera.
        MpmNodesError: An unknown camera.
    """
    if not isinstance(camera, View) and camera not in CAMERAS:
        raise MpmNodesError(f"render: camera '{camera}' is unknown; choose one of {', '.join(CAMERAS)}")
    own = scene.view(frames[0]) is not None
    if camera == "stage" and not own:
        raise InputError(f"{scene.path}: has no camera; take the camera fit")
    if camera == "turntable":
        return _turntable(frames, around, aspect)
    dressed = around.dressing is not None and around.dressing.kind is not None
    kept = own and (camera == "stage" or (camera == "auto" and not dressed))
    view = camera if isinstance(camera, View) else None if kept else _fitted(around, aspect)
    return [Exposure(frame, f"frame.{frame:04d}", f"frame {frame}", view) for frame in frames]


def _fitted(around: Backdrop, aspect: float) -> View:
    if around.dressing is None or around.dressing.kind is None:
        return framing((around.low, around.high), aspect)
    return composed(around.dressing.points, around.dressing.kind, aspect, held=around.dressing.rim)


def _turntable(frames: Sequence[int], around: Backdrop, aspect: float) -> list[Exposure]:
    middle, half = 0.5 * (around.low + around.high), 0.5 * (around.high - around.low)
    half[[0, 2]] = np.hypot(half[0], half[2])  # a box that holds it however it is turned
    if around.dressing is not None and around.dressing.kind is not None:
        middle, around = around.dressing.middle, around._replace(dressing=all_round(around.dressing))
    fitted = _fitted(around._replace(low=middle - half, high=middle + half), aspect)
    count = len(frames) if len(frames) > 1 else TURN_PICTURES
    found = []
    for n in range(count):
        view = turned(fitted, middle, 2.0 * np.pi * n / count)
        if len(frames) > 1:
            found.append(Exposure(frames[n], f"turn.{frames[n]:04d}", f"frame {frames[n]}", view))
        else:
            degrees = round(360.0 * n / count)
            found.append(Exposure(frames[0], f"turn.{frames[0]:04d}.{degrees:03d}", f"frame {frames[0]}, {degrees} degrees", view))
    return found
