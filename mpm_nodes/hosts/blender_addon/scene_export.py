"""Meshes of the scene written as USD by the environment's Python: what has not changed since is not written again."""

import hashlib
import json
import os
from array import array
from itertools import chain

from . import environment, mesh_attributes

LIMIT = 3600.0
"""Seconds that writing may take."""

LAYOUT = 1
"""Is raised where the same meshes become another file."""


class ArrayFile:
    """Arrays in a file beside the exports, each content once, until the files are written. Use it as a context."""

    def __init__(self, folder):
        self.folder = folder
        self.places = {}
        self._path, self._request = (folder / f".scene_{os.getpid()}.{ending}" for ending in ("bin", "json"))
        self._stream = None

    def __enter__(self):
        """Nothing is made before the first array comes."""
        return self

    def __exit__(self, *_):
        """Take the files away."""
        if self._stream is not None:
            self._stream.close()
        for path in (self._path, self._request):
            path.unlink(missing_ok=True)

    def put(self, values):
        """Keep an array; return the name of its content."""
        name = hashlib.sha256(values).hexdigest()
        if name not in self.places:
            if self._stream is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._stream = self._path.open("wb")
            self.places[name] = [self._stream.tell(), len(values), values.typecode]
            self._stream.write(values)
        return name

    def shapes(self, pieces, painted=()):
        """Keep the pieces of a surface; return what tells them from others, as plain JSON. Pieces without faces are left out.

        What is painted on some of the pieces under a name is 0 on the others.
        """
        return [
            {
                "matrix": list(chain.from_iterable(piece.matrix)),
                "parts": _parts(piece.matrix),
                **{name: self.put(getattr(piece, name)) for name in ("points", "counts", "indices")},
                **self._painted(piece, painted),
            }
            for piece in pieces
            if piece.counts
        ]

    def clouds(self, clouds):
        """Do as `shapes` for point clouds; those without points are left out."""
        return [
            {
                "matrix": list(chain.from_iterable(cloud.matrix)),
                "columns": {name: self.put(numbers) for name, numbers in cloud.columns.items()},
            }
            for cloud in clouds
            if cloud.columns["position"]
        ]

    def _painted(self, piece, names):
        """Keep what is painted on a piece; return its interpolation and content by the name of its primvar."""
        blank = ("vertex", array("f", bytes(4 * (len(piece.points) // 3))), False)
        found = {name: piece.painted.get(name, blank)[:2] for name in names}
        kept = {mesh_attributes.usd_name(name): [where, self.put(numbers)] for name, (where, numbers) in found.items()}
        return {"primvars": kept} if kept else {}

    def write_steps(self, exports):
        """Write those of some exports that are not there yet, in steps.

        Raises:
            OSError: They cannot be written.
            EnvironmentFault: The environment's Python cannot write USD.
        """
        new = [export for export in exports if _written(export["path"]) != export["digest"]]
        if not new:
            return
        if self._stream is not None:
            self._stream.flush()
        for export in new:
            os.makedirs(os.path.dirname(export["path"]), exist_ok=True)
        request = {"arrays": str(self._path), "places": self.places, "meshes": new}
        self._request.write_text(json.dumps(request), encoding="utf-8")
        arguments = ["-m", "usd_io.scene_meshes", str(self._request)]
        code, _, error = yield from environment.run_steps(arguments, LIMIT)
        if code:
            raise environment.EnvironmentFault(f"objects of the scene cannot be written: {error.strip()[-500:]}")


def _parts(matrix):
    """Return shift, turn and scale of a matrix, whose turn is a turn between frames too; None where it is sheared."""
    shift, turn, scale = matrix.decompose()
    built = matrix.LocRotScale(shift, turn, scale)
    pairs = list(zip(chain.from_iterable(built), chain.from_iterable(matrix), strict=True))
    largest = max(abs(each) for row in matrix for each in row[:3])
    return None if any(abs(a - b) > 2e-6 * max(largest, abs(b)) for a, b in pairs) else [list(shift), list(turn), list(scale)]


def export_of(path, kind, shapes, frames, metres, rate):
    """Return what `ArrayFile.write_steps` takes: a file, and the shapes of an object at each frame; none where it stands still.

    Args:
        path: The file.
        kind: "mesh" or "points".
        shapes: What `ArrayFile.shapes`, or `ArrayFile.clouds`, gives, by frame.
        frames: The frames.
        metres: Metres a unit.
        rate: Frames a second.
    """
    still = all(each == shapes[0] for each in shapes)
    content = {"metres": metres, "frames": [] if still else list(frames), "shapes": shapes[:1] if still else shapes}
    content |= {} if still else {"rate": rate}
    content |= {} if kind == "mesh" else {"kind": kind}
    digest = hashlib.sha256(json.dumps([LAYOUT, content]).encode()).hexdigest()
    return {"path": str(path), "digest": digest, **content}


def _written(path):
    """Return the digest of the content of a file that is there, else ""."""
    try:
        with open(f"{path}.digest", encoding="utf-8") as stream:
            return stream.read() if os.path.isfile(path) else ""
    except (OSError, ValueError):
        return ""
