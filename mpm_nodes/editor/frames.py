"""Frames of caches as compact binary: positions in 16 bits of the frame's box, read in a child that may be ended at any moment.

A frame is the length of its header in 4 bytes (little endian), the header as JSON, then its arrays one after the other, each
padded to 4 bytes: for every cloud its points (n, 4) uint16, and where its colours differ their bytes (n, 4) uint8; for every mesh
its points (n, 4) uint16 and its triangles (t, 3) uint32. The first three numbers of a point are shares of the frame's `box`, the
fourth is the value of the chosen attribute as a share of the span `values`.
"""

from __future__ import annotations

import json
import queue
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import InputError, MpmNodesError

__all__ = ["FrameReader", "serve"]

STEPS = 65535
_LENGTH = struct.Struct("<I")
LONGEST_READ = 60.0
"""Seconds after which a child that reads a frame is given up."""


# ---------------------------------------------------------------- in the server
class FrameReader:
    """The child that reads, one frame after the other: it is started when it is needed, and again when it dies."""

    def __init__(self) -> None:
        self._asked: queue.Queue[tuple[dict[str, Any], queue.Queue[bytes | None]]] = queue.Queue()
        self._child: subprocess.Popen | None = None
        threading.Thread(target=self._run, name="frames", daemon=True).start()  # the child ends with the thread that starts it

    def frame(self, wanted: dict[str, Any]) -> bytes:
        """Return a frame (`wanted`: folder, frame, show, attribute, most).

        Raises:
            InputError: It cannot be read.
        """
        box: queue.Queue[bytes | None] = queue.Queue(1)
        self._asked.put((wanted, box))
        data = box.get()
        if data is None:
            raise InputError("the frame cannot be read: its reader ended; cook it again")
        error = _head(data).get("error")
        if error:
            raise InputError(error)
        return data

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()

    def _run(self) -> None:
        while True:
            wanted, box = self._asked.get()
            try:
                box.put(self._answer(wanted))
            except (OSError, struct.error, ValueError):
                box.put(None)

    def _answer(self, wanted: dict[str, Any]) -> bytes:
        if self._child is None or self._child.poll() is not None:
            streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._child = children.start("mpm_nodes.editor.frames:serve", [], **streams)
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        clock = threading.Timer(LONGEST_READ, child.kill)
        clock.start()
        try:
            child.stdin.write(json.dumps(wanted).encode() + b"\n")
            child.stdin.flush()
            (length,) = _LENGTH.unpack(child.stdout.read(_LENGTH.size))
            data = child.stdout.read(length)
        finally:
            clock.cancel()
        if len(data) != length:
            raise ValueError("the child ended")
        return data


def _head(data: bytes) -> dict[str, Any]:
    (length,) = _LENGTH.unpack_from(data)
    return json.loads(data[_LENGTH.size : _LENGTH.size + length])


# ---------------------------------------------------------------- in the child
def serve() -> None:
    """Answer requests, a line of JSON each, until standard input is closed."""
    out, opened = sys.stdout.buffer, Opened()
    sys.stdout = sys.stderr  # what libraries print does not belong to a frame
    for line in sys.stdin.buffer:
        wanted = json.loads(line)
        try:
            data = opened.frame(**wanted)
        except MpmNodesError as error:
            data = packed({"error": str(error)}, [])
        _write(out, data)


def _write(out: BinaryIO, data: bytes) -> None:
    out.write(_LENGTH.pack(len(data)) + data)
    out.flush()


class Opened:
    """The cache that was asked for last; a cook adds frames to it, so that its stage is opened again when it has changed."""

    def __init__(self) -> None:
        self.key: tuple[Any, ...] = ()
        self.scene: Any = None

    def frame(self, folder: str, frame: int | None, show: str, attribute: str, most: int) -> bytes:
        """Return a frame, the last one where it is None; at most `most` points of each cloud, spread evenly, or the surface."""
        scene = self._scene(Path(folder))
        frame = scene.last if frame is None else min(max(frame, scene.first), scene.last)
        shapes = scene.shapes(frame, show)
        bounds = shapes.bounds()
        low, high = bounds if bounds is not None else (np.zeros(3), np.ones(3))
        paths = [shape.path for shape in (*shapes.clouds, *shapes.surfaces)] if attribute else []
        values = {path: scene.numbers(path, attribute, frame) for path in paths}
        box = FrameBox(low, high, [each for each in values.values() if each is not None])
        arrays: list[np.ndarray] = []
        clouds = [_cloud(cloud, box, values.get(cloud.path), most, arrays) for cloud in shapes.clouds]
        meshes = [_mesh(mesh, box, values.get(mesh.path), arrays) for mesh in shapes.surfaces]
        head = {
            "frame": frame, "first": scene.first, "last": scene.last, "fps": scene.fps,
            "box": [low.tolist(), high.tolist()], "values": [box.least, box.most], "attribute": attribute,
            "unit": unit_of(attribute), "attributes": scene.attribute_names(frame), "clouds": clouds, "meshes": meshes,
        }  # fmt: skip
        return packed(head, arrays)

    def _scene(self, folder: Path) -> Any:
        from mpm_nodes.preview.pictures import find_root
        from mpm_nodes.preview.scene import open_scene

        root = find_root(folder)
        key = (str(root), root.stat().st_mtime_ns, root.stat().st_size)
        if key != self.key:
            self.scene, self.key = None, ()  # OpenUSD keeps layers that are held
            self.scene = open_scene(root)
            self.key = key
        return self.scene


class FrameBox:
    """What 16 bits stand for: a box [m], and the values of an attribute in its unit."""

    def __init__(self, low: np.ndarray, high: np.ndarray, values: list[np.ndarray]) -> None:
        self.low, self.size = low, np.maximum(high - low, 1e-12)
        finite = [part for each in values if len(part := each[np.isfinite(each)])]
        self.least = float(min((part.min() for part in finite), default=0.0))
        self.most = float(max((part.max() for part in finite), default=0.0))

    def rows(self, positions: np.ndarray, values: np.ndarray | None) -> np.ndarray:
        """Return positions [m] (n, 3) and their values (n,) as (n, 4), uint16."""
        rows = np.zeros((len(positions), 4), np.uint16)
        rows[:, :3] = np.rint(np.clip((positions - self.low) / self.size, 0.0, 1.0) * STEPS)
        if values is not None and len(values) in (1, len(positions)) and self.most > self.least:
            share = np.clip((values - self.least) / (self.most - self.least), 0.0, 1.0)
            rows[:, 3] = np.rint(np.nan_to_num(share) * STEPS)
        return rows


def _cloud(cloud: Any, box: FrameBox, values: np.ndarray | None, most: int, arrays: list[np.ndarray]) -> dict[str, Any]:
    count = len(cloud.positions)
    step = max(1, -(-count // max(1, most)))
    shown = slice(None, None, step)
    arrays.append(box.rows(cloud.positions, values)[shown])
    colours = cloud.colours[shown]
    mixed = bool(len(colours)) and bool((colours != colours[0]).any())
    if mixed:
        arrays.append(np.concatenate([_srgb(colours), np.full((len(colours), 1), 255, np.uint8)], axis=1))
    return {
        "path": cloud.path, "count": count, "shown": len(colours), "radius": float(cloud.radii.mean()) * step ** (1.0 / 3.0),
        "colour": _srgb(colours.mean(axis=0)).tolist(), "colours": mixed, "has_values": values is not None,
    }  # fmt: skip


def _mesh(mesh: Any, box: FrameBox, values: np.ndarray | None, arrays: list[np.ndarray]) -> dict[str, Any]:
    per_point = values if values is not None and len(values) in (1, len(mesh.points)) else None
    arrays += [box.rows(mesh.points, per_point), mesh.triangles.astype(np.uint32)]
    colour = mesh.colours.reshape(-1, 3).mean(axis=0) if len(mesh.colours) else np.full(3, 0.5)
    return {
        "path": mesh.path, "points": len(mesh.points), "triangles": len(mesh.triangles), "matter": mesh.matter,
        "colour": _srgb(colour).tolist(), "has_values": per_point is not None,
    }  # fmt: skip


def _srgb(linear: np.ndarray) -> np.ndarray:
    """Return linear colours as sRGB bytes."""
    light = np.clip(linear, 0.0, 1.0)
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-9) ** (1.0 / 2.4) - 0.055)
    return np.rint(255.0 * curve).astype(np.uint8)


def unit_of(attribute: str) -> str:
    """Return the unit of an attribute, "" where it has none or is not known."""
    from mpm_nodes.preview.colour_by import ColourBy

    return ColourBy(attribute, 0.0, 1.0).unit


def packed(head: dict[str, Any], arrays: list[np.ndarray]) -> bytes:
    """Return a frame as bytes."""
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    parts = [_LENGTH.pack(len(text)), text]
    for array in arrays:
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        parts += [data, b"\0" * (-len(data) % 4)]
    return b"".join(parts)
