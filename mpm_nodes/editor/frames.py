"""Frames of caches as compact binary: positions in 16 bits of the frame's box, read in a child that may be ended at any moment.

A frame is the length of its header in 4 bytes (little endian), the header as JSON, then its arrays one after the other, each
padded to 4 bytes: for every cloud its points (n, 4) uint16, and where its colours differ their bytes (n, 4) uint8; for every mesh
its points (n, 4) uint16, its triangles (t, 3) uint32, and its colours as those of clouds; for every fog its voxels (z, y, x) uint8.
The first three numbers of a point are shares of the shape's `box`, the fourth is the value of the chosen attribute as a share of
the shape's `values`.
"""

from __future__ import annotations

import json
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.editor import histories
from mpm_nodes.editor.layers import Drawn, OpenedCache, unit_of

__all__ = ["FrameReader", "packed", "serve", "serve_requests"]

_LENGTH = struct.Struct("<I")
MOST_OPENED = 2
"""Caches that are held open: two are compared."""
LONGEST_READ = 60.0
"""Seconds after which a child that reads a frame is given up."""


# ---------------------------------------------------------------- in the server
class FrameReader:
    """The child that reads, one frame after the other: it is started when it is needed, and again when it dies.

    Attributes:
        entry: What the child runs: it answers lines of JSON with packed heads and arrays.
    """

    def __init__(self, entry: str = "mpm_nodes.editor.frames:serve") -> None:
        self.entry = entry
        self._asked: queue.Queue[tuple[dict[str, Any], queue.Queue[bytes | None]]] = queue.Queue()
        self._child: subprocess.Popen | None = None
        threading.Thread(target=self._run, name="frames", daemon=True).start()  # the child ends with the thread that starts it

    def json(self, **wanted: Any) -> dict[str, Any]:
        """Return an answer that is JSON alone; as `ask`."""
        return _head(self.ask(**wanted))

    def ask(self, **wanted: Any) -> bytes:
        """Return the answer of a method of `Opened`: `what`, and its arguments.

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
            self._child = children.start(self.entry, [], **streams)
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
    """Answer requests for frames."""
    serve_requests(Opened().answer)


def serve_requests(answer: Callable[..., bytes]) -> None:
    """Answer requests, a line of JSON each, until standard input is closed; each answer stands behind its length."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # what libraries print does not belong to an answer
    for line in sys.stdin.buffer:
        wanted = json.loads(line)
        try:
            data = answer(**wanted)
        except MpmNodesError as error:
            data = packed({"error": str(error)}, [])
        out.write(_LENGTH.pack(len(data)) + data)
        out.flush()


class Opened:
    """The caches that were asked for last; a cook adds frames to one, so that its stages are opened again when it has changed."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[Any, OpenedCache]] = {}

    def answer(self, what: str, **wanted: Any) -> bytes:
        """Answer a request by the name of a method."""
        asked: dict[str, Callable[..., bytes]] = {
            "frame": self.frame,
            "particle": self.particle,
            "history": self.history,
            "warm": self.warm,
        }
        return asked[what](**wanted)

    def warm(self) -> bytes:
        """Load what the first frame needs."""
        from mpm_nodes.preview.scene import open_scene  # noqa: F401
        from usd_io import require_usd

        require_usd()
        return packed({}, [])

    def frame(self, folder: str, frame: int | None, layers: list[str] | None, attribute: str, most: int) -> bytes:
        """Return a frame, the last one where it is None; at most `most` points of each cloud, spread evenly."""
        head, drawn = self.drawn(folder, frame, layers, attribute, most)
        return packed({**head, **drawn.records}, drawn.arrays)

    def drawn(
        self, folder: str, frame: int | None, layers: list[str] | None, attribute: str, most: int
    ) -> tuple[dict[str, Any], Drawn]:
        """Return what is said of a frame beside its shapes, and these."""
        cache = self.cache(folder)
        frame = cache.last if frame is None else min(max(frame, cache.first), cache.last)
        chosen = cache.chosen(layers)
        drawn = cache.drawn(chosen, frame, attribute, most)
        head = {
            "frame": frame, "first": cache.first, "last": cache.last, "fps": cache.scenes[0].fps,
            "attribute": attribute, "unit": unit_of(attribute), "attributes": cache.attribute_names(),
            "values": [min((s.least for s in drawn.spans), default=0.0), max((s.most for s in drawn.spans), default=0.0)],
            "layers": [{"name": layer.name, "label": layer.label, "kind": layer.kind} for layer in cache.layers],
            "shown": [layer.name for layer in chosen],
        }  # fmt: skip
        return head, drawn

    def particle(self, folder: str, frame: int, layer: str, path: str, index: int) -> bytes:
        """Return all values of one point as JSON."""
        return packed(histories.particle(self.cache(folder), layer, path, frame, index), [])

    def history(self, folder: str, layer: str, path: str, ident: int, attribute: str, begin: int) -> bytes:
        """Return place and value of one particle in some frames as JSON, and where to go on."""
        return packed(histories.history(self.cache(folder), layer, path, ident, attribute, begin), [])

    def cache(self, folder: str) -> OpenedCache:
        """Return the stages of a folder, opened."""
        from mpm_nodes.editor.stage_shapes import StageShapes
        from mpm_nodes.preview.pictures import find_roots

        roots = find_roots(Path(folder))
        key = [(str(root), root.stat().st_mtime_ns, root.stat().st_size) for root in roots]
        known = self.held.pop(folder, (None, None))
        if known[0] != key or known[1] is None:
            known = (None, None)  # OpenUSD keeps layers that are held
            known = (key, OpenedCache([StageShapes(root) for root in roots]))
        self.held[folder] = known
        for old in list(self.held)[:-MOST_OPENED]:
            del self.held[old]
        return known[1]


def packed(head: dict[str, Any], arrays: list[np.ndarray]) -> bytes:
    """Return a frame as bytes."""
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    parts = [_LENGTH.pack(len(text)), text]
    for array in arrays:
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        parts += [data, b"\0" * (-len(data) % 4)]
    return b"".join(parts)
