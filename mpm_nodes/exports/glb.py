"""A cache as one animated glTF file (.glb, Khronos glTF 2.0): a mesh a frame, each shown in its time.

glTF has no meshes that change their faces over time. A node for each frame, whose scale is 1 in its frame and 0 in all others,
with steps between, is what viewers, three.js and Blender play as a sequence.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.preview.scene import Cloud, DrawnMesh, Scene

__all__ = ["is_glb", "scene_as_glb"]

MADE_BY = "mpm_nodes"
_ARRAY, _INDICES = 34962, 34963
_FLOAT, _BYTE, _SHORT, _INT = 5126, 5121, 5123, 5125
_POINTS, _TRIANGLES = 0, 4
_MATERIAL = {"name": "matter", "doubleSided": True, "pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.5}}
_LONGEST = 2**32 - 1
"""Bytes that the header of a GLB file can state."""


@dataclass
class _Document:
    """A glTF document under construction."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    meshes: list[dict[str, Any]] = field(default_factory=list)
    accessors: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    length: int = 0

    def accessor(self, values: np.ndarray, kind: str, target: int | None = None, limits: bool = False) -> int:
        """Add an array; return its number."""
        component = {"f": _FLOAT, "u": {1: _BYTE, 2: _SHORT, 4: _INT}.get(values.itemsize)}[values.dtype.kind]
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        view = {"buffer": 0, "byteOffset": self.length, "byteLength": len(data)}
        self.views.append(view if target is None else view | {"target": target})
        data += bytes(-len(data) % 4)
        self.chunks.append(data)
        self.length += len(data)
        record = {"bufferView": len(self.views) - 1, "componentType": component, "count": len(values), "type": kind}
        if values.dtype == np.uint8:
            record["normalized"] = True
        if limits:
            record |= {"min": np.atleast_1d(values.min(axis=0)).tolist(), "max": np.atleast_1d(values.max(axis=0)).tolist()}
        self.accessors.append(record)
        return len(self.accessors) - 1

    def mesh(self, name: str, primitive: dict[str, Any]) -> int:
        """Add a mesh of one part, with the one material; return its number."""
        self.meshes.append({"name": name, "primitives": [primitive | {"material": 0}]})
        return len(self.meshes) - 1

    def packed(self, root: int, animation: dict[str, Any] | None) -> bytes:
        """Return the file."""
        record = {
            "asset": {"version": "2.0", "generator": MADE_BY},
            "scene": 0,
            "scenes": [{"nodes": [root]}],
            "nodes": self.nodes,
            "meshes": self.meshes,
            "materials": [_MATERIAL],
            "accessors": self.accessors,
            "bufferViews": self.views,
            "buffers": [{"byteLength": self.length}],
        } | ({} if animation is None else {"animations": [animation]})
        text = json.dumps(record, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        total = 12 + 8 + len(text) + 8 + self.length
        head = struct.pack("<4sIII4s", b"glTF", 2, total, len(text), b"JSON")
        return b"".join([head, text, struct.pack("<I4s", self.length, b"BIN\0"), *self.chunks])


@dataclass
class _Shown:
    """A shape that is drawn in some frames, and the node that shows it."""

    node: int
    shape: Cloud | DrawnMesh | None
    first: int
    last: int


def is_glb(old: bytes) -> bool:
    """Whether a file is a GLB that we wrote."""
    return old[:4] == b"glTF" and f'"generator":"{MADE_BY}"'.encode() in old[:400]


def scene_as_glb(scene: Scene, frames: Sequence[int], show: str, progress: Callable[[int, int], None]) -> bytes:
    """Return frames of a cache as a GLB file: metres, Y up, colours linear; played at the rate of the cache.

    Args:
        scene: The cache.
        frames: Frames to take, in order; each is shown until the next one.
        show: "surface" or "points"; a cache that holds one of them shows that one.
        progress: Called with how many frames are done, and of how many.

    Raises:
        InputError: It would be longer than 4 GB, which GLB files cannot be, or shows nothing, which they cannot either.
    """
    document = _Document()
    document.nodes.append({"name": "cache", "children": []})
    runs: list[_Shown] = []
    current: dict[str, _Shown] = {}
    for done, frame in enumerate(frames):
        for shape in _shapes(scene, frame, show):
            known = current.get(shape.path)
            if known is not None and known.shape is not None and known.last == done - 1 and _same(known.shape, shape):
                known.last = done
                continue
            if known is not None:
                known.shape = None  # else the whole cache would be held twice
            name = f"{shape.path.strip('/').replace('/', '_')}_{frame:04d}"
            mesh = document.mesh(name, _points(document, shape) if isinstance(shape, Cloud) else _triangles(document, shape))
            document.nodes.append({"name": name, "mesh": mesh})
            document.nodes[0]["children"].append(len(document.nodes) - 1)
            current[shape.path] = _Shown(len(document.nodes) - 1, shape, done, done)
            runs.append(current[shape.path])
            if document.length > _LONGEST - 2**24:
                raise InputError(f"{scene.path}: would be longer than the 4 GB of .glb files; take fewer frames")
        progress(done + 1, len(frames))
    if not runs:
        raise InputError(f"{scene.path}: shows nothing in frames {frames[0]} to {frames[-1]}; take others")
    return document.packed(0, _animation(document, runs, frames, scene.fps))


def _shapes(scene: Scene, frame: int, show: str) -> Iterable[Cloud | DrawnMesh]:
    """Return what is drawn at a frame, without what is empty: glTF has no empty arrays."""
    shapes = scene.shapes(frame, show)
    yield from (cloud for cloud in map(_finite_cloud, shapes.clouds) if len(cloud.positions))
    yield from (surface for surface in map(_finite_mesh, shapes.surfaces) if len(surface.triangles))


def _finite_cloud(cloud: Cloud) -> Cloud:
    """Return a cloud without points that are nowhere: glTF knows finite numbers only."""
    sound = _finite(cloud.positions)
    if sound.all():
        return cloud
    return replace(cloud, positions=cloud.positions[sound], radii=cloud.radii[sound], colours=cloud.colours[sound])


def _finite_mesh(mesh: DrawnMesh) -> DrawnMesh:
    """Return a mesh without triangles that have corners nowhere."""
    sound = _finite(mesh.points)
    if sound.all():
        return mesh
    kept = sound[mesh.triangles].all(axis=1)
    return replace(mesh, triangles=mesh.triangles[kept], normals=mesh.normals[kept], colours=mesh.colours[kept])


def _finite(points: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(np.isfinite(points.astype(np.float32)).all(axis=1))


def _same(one: Cloud | DrawnMesh, other: Cloud | DrawnMesh) -> bool:
    """Return whether two shapes look alike: places, faces and colours."""
    cloud = isinstance(one, Cloud)
    if cloud is not isinstance(other, Cloud):
        return False
    names = ("positions", "colours") if cloud else ("points", "triangles", "colours")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _points(document: _Document, cloud: Cloud) -> dict[str, Any]:
    attributes = {
        "POSITION": document.accessor(np.asarray(cloud.positions, np.float32), "VEC3", _ARRAY, limits=True),
        "COLOR_0": document.accessor(_colours(cloud.colours), "VEC4", _ARRAY),
    }
    return {"mode": _POINTS, "attributes": attributes}


def _triangles(document: _Document, mesh: DrawnMesh) -> dict[str, Any]:
    """Add a mesh whose corners are shared where place, normal and colour are: a cube keeps its edges, a drop has none."""
    corners = mesh.triangles.reshape(-1)
    normals = np.nan_to_num(np.asarray(mesh.normals, np.float32).reshape(-1, 3))  # of faces beside points that were nowhere
    colours = _colours(mesh.colours.reshape(-1, 3))
    keys = np.column_stack([corners, np.round(normals * 1000.0).astype(np.int64), colours[:, :3].astype(np.int64)])
    _, first, indices = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    places = np.asarray(mesh.points, np.float32)[corners[first]]
    length = np.linalg.norm(normals[first], axis=1, keepdims=True)
    straight = np.where(length > 0.5, normals[first] / np.maximum(length, 1e-30), np.array([0.0, 1.0, 0.0], np.float32))
    small = np.uint16 if len(places) < 2**16 else np.uint32
    attributes = {
        "POSITION": document.accessor(places, "VEC3", _ARRAY, limits=True),
        "NORMAL": document.accessor(straight.astype(np.float32), "VEC3", _ARRAY),
        "COLOR_0": document.accessor(colours[first], "VEC4", _ARRAY),
    }
    faces = document.accessor(indices.reshape(-1).astype(small), "SCALAR", _INDICES)
    return {"mode": _TRIANGLES, "attributes": attributes, "indices": faces}


def _colours(linear: np.ndarray) -> np.ndarray:
    """Return linear colours (n, 3) as bytes with an opaque fourth, as COLOR_0 has them."""
    shown = np.round(np.clip(linear, 0.0, 1.0) * 255.0).astype(np.uint8)
    return np.column_stack([shown, np.full(len(shown), 255, np.uint8)])


def _animation(document: _Document, runs: Sequence[_Shown], frames: Sequence[int], fps: float) -> dict[str, Any] | None:
    """Return steps of scale that show each node in its time, None where all are shown all the time."""
    times = (np.array([*frames, frames[-1] + 1]) - frames[0]) / fps
    channels, samplers = [], []
    for run in runs:
        if run.first == 0 and run.last == len(frames) - 1:
            continue
        steps = [(0.0, 0.0)] if run.first else []
        steps.append((times[run.first], 1.0))
        # the last frame has its time as well: players end where the last key is
        steps.append((times[run.last + 1], 0.0 if run.last < len(frames) - 1 else 1.0))
        keys = np.array([time for time, _ in steps], np.float32)
        scales = np.array([[scale] * 3 for _, scale in steps], np.float32)
        document.nodes[run.node]["scale"] = scales[0].tolist()
        steps_of = {"input": document.accessor(keys, "SCALAR", limits=True), "output": document.accessor(scales, "VEC3")}
        samplers.append(steps_of | {"interpolation": "STEP"})
        channels.append({"sampler": len(samplers) - 1, "target": {"node": run.node, "path": "scale"}})
    return {"name": "frames", "channels": channels, "samplers": samplers} if channels else None
