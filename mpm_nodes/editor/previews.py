"""Packaged preview cooks: frames of a coarser cook of a sample's graph, which the page shows until there is a cook of one's own.

`samples/previews/NAME.npz` holds the frames in the form that `frames` sends them in. Arrays that frames share are held once, as
differences of their rows, byte by byte, which deflate makes a third of their size; places have 12 bits of the frame's box there.
`docs/make_previews.py` writes them. A preview belongs to a graph by its `graph_key`.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.editor.frames import packed
from mpm_nodes.packaged_samples import samples_folder

__all__ = ["PREFIX", "Preview", "files_of", "graph_key", "preview", "preview_of", "previews"]

PREFIX = "preview of "
"""What the name of a preview begins with, where that of a revision is asked for."""
_UNSEEN = ("position", "comment", "editor")
_KINDS = ("clouds", "meshes", "fogs")


def graph_key(document: Mapping[str, Any]) -> str:
    """Return a digest of what changes the cook of a graph: all but where nodes stand and what is said of them."""
    nodes = {
        name: {key: value for key, value in entry.items() if key not in _UNSEEN} if isinstance(entry, dict) else entry
        for name, entry in document.get("nodes", {}).items()
    }
    seen = {"settings": document.get("settings", {}), "nodes": nodes}
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


class Preview:
    """One packaged preview.

    Attributes:
        facts: `graph` (its key), `files` (digests of what the graph reads), `attribute`, and `frames`, the heads of its frames.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with np.load(path, allow_pickle=False) as held:
            self.facts: dict[str, Any] = json.loads(held["facts"].tobytes())

    def frame(self, number: int | None, layers: Sequence[str] | None, attribute: str) -> bytes:
        """Return the frame that was packed at a number or last before it, the last one for None, as `frames` sends it.

        Args:
            number: The frame.
            layers: Names of the layers that are wanted, None for all.
            attribute: What is to be coloured by; only the packed one is there.
        """
        heads = self.facts["frames"]
        head = next((each for each in reversed(heads) if number is None or each["frame"] <= number), heads[0])
        shapes = {kind: [each for each in head[kind] if layers is None or each["layer"] in layers] for kind in _KINDS}
        with np.load(self._path, allow_pickle=False) as held:
            wanted = [name for kind in _KINDS for shape in shapes[kind] for name in shape["arrays"]]
            arrays = [_summed(held[name], head["arrays"][name]) for name in wanted]
        shown = [name for name in head["shown"] if layers is None or name in layers]
        coloured = attribute if attribute == self.facts["attribute"] else ""
        told = {key: value for key, value in head.items() if key != "arrays"}
        return packed({**told, **shapes, "shown": shown, "attribute": coloured, "unit": head["unit"] if coloured else ""}, arrays)


@functools.cache
def previews() -> dict[str, Preview]:
    """Return the packaged previews by the names of their samples."""
    return {path.stem: Preview(path) for path in sorted(samples_folder().glob("previews/*.npz"))}


def preview(revision: str) -> Preview:
    """Return a preview by what it is called in place of a revision.

    Raises:
        InputError: There is none of that name.
    """
    found = previews().get(revision.removeprefix(PREFIX))
    if found is None:
        raise InputError(f"{revision!r}: there is no such preview")
    return found


def preview_of(document: Mapping[str, Any]) -> list[str]:
    """Return what the previews of a graph are called in place of revisions: one, or none where it is not a sample's graph."""
    key = graph_key(document)
    return [f"{PREFIX}{name}" for name, each in previews().items() if each.facts["graph"] == key][:1]


def files_of(graph: Path) -> dict[str, str]:
    """Return the digests of the files beside a graph that it reads, by name."""
    from mpm_nodes.editor.project import files_named

    names = sorted(files_named(json.loads(graph.read_text(encoding="utf-8")), graph.parent))
    return {name: hashlib.sha256((graph.parent / name).read_bytes()).hexdigest() for name in names}


def _summed(held: np.ndarray, form: Sequence[Any]) -> np.ndarray:
    """Return an array whose differences of rows are held, all first bytes before all second ones; `form` is type and shape."""
    kind, shape = np.dtype(form[0]), form[1:]
    steps = np.ascontiguousarray(np.moveaxis(held, -1, 0)).view(kind)[..., 0]
    return np.cumsum(steps, axis=0, dtype=kind).reshape(shape)
