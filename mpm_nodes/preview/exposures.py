"""Which pictures are made of a cache: the frame of each, and the camera that looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.preview.scene import Scene, View, framing, look

__all__ = ["CAMERAS", "FADE", "SKY", "SKY_SHARES", "Backdrop", "Exposure", "chosen_frames", "exposures", "surroundings"]

CAMERAS = ("auto", "stage", "fit", "turntable")
SHEET_FRAMES = 9
TURN_PICTURES = 48
"""Pictures of a turntable around a single frame."""
SKY = (0.80, 0.86, 0.94)
"""Linear colour of what lies behind everything."""
SKY_SHARES = (0.5, 0.75)
"""Its share at the lower and at the upper edge of a picture."""
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
    """

    low: np.ndarray
    high: np.ndarray
    ground: float
    extent: float


def chosen_frames(scene: Scene, frames: Sequence[int] | None) -> list[int]:
    """Return the frames to draw.

    Args:
        scene: The cache.
        frames: Wanted frames; None for up to nine, spread evenly.

    Raises:
        InputError: The cache lacks a frame, or none is left.
    """
    held = f"it holds frames {scene.first} to {scene.last}"
    if frames is None:
        count = min(SHEET_FRAMES, scene.last - scene.first + 1)
        return [round(frame) for frame in np.linspace(scene.first, scene.last, count).tolist()]
    wanted = [int(frame) for frame in frames]
    for frame in wanted:
        if not scene.first <= frame <= scene.last:
            raise InputError(f"{scene.path}: has no frame {frame}; {held}")
    if not wanted:
        raise InputError(f"{scene.path}: no frames were asked for; {held}")
    return wanted


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
    planes = [skin.height for shapes in seen for skin in shapes.skins if skin.floor]
    plane = level_of(planes, lowest, radius)
    return Backdrop(low, high, min([lowest - APART * radius, *floors]) if plane is None else plane, radius)


def exposures(scene: Scene, frames: Sequence[int], around: Backdrop, aspect: float, camera: str | View) -> list[Exposure]:
    """Return the pictures to make.

    Args:
        scene: The cache whose camera "stage" means.
        frames: Frames, in order.
        around: What a fitted camera shows.
        aspect: Width over height of the pictures.
        camera: A camera, or one of `CAMERAS`. "auto" is the stage's camera, or a fitted one where it has none; a turntable makes
            one turn over all frames, or around the single one.

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
    fitted = framing((around.low, around.high), aspect)
    view = camera if isinstance(camera, View) else None if own and camera != "fit" else fitted
    return [Exposure(frame, f"frame.{frame:04d}", f"frame {frame}", view) for frame in frames]


def _turntable(frames: Sequence[int], around: Backdrop, aspect: float) -> list[Exposure]:
    middle, half = 0.5 * (around.low + around.high), 0.5 * (around.high - around.low)
    half[[0, 2]] = np.hypot(half[0], half[2])  # a box that holds it however it is turned
    fitted = framing((middle - half, middle + half), aspect)
    count = len(frames) if len(frames) > 1 else TURN_PICTURES
    found = []
    for n in range(count):
        angle = 2.0 * np.pi * n / count
        turn = np.array([[np.cos(angle), 0.0, np.sin(angle)], [0.0, 1.0, 0.0], [-np.sin(angle), 0.0, np.cos(angle)]])
        view = look(middle + turn @ (fitted.eye - middle), middle, fitted.focal)
        if len(frames) > 1:
            found.append(Exposure(frames[n], f"turn.{frames[n]:04d}", f"frame {frames[n]}", view))
        else:
            degrees = round(360.0 * n / count)
            found.append(Exposure(frames[0], f"turn.{frames[0]:04d}.{degrees:03d}", f"frame {frames[0]}, {degrees} degrees", view))
    return found
