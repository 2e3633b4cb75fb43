"""One HTML file that plays a cache without a server or a network: its frames, packed, beside the editor's own view."""

from __future__ import annotations

import base64
import html
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.editor.frames import Opened, unit_of
from mpm_nodes.editor.layers import KINDS, OpenedCache
from mpm_nodes.graph.files.folder import refuse_foreign, replace_named

__all__ = ["LARGEST", "OneFile", "write_one_file"]

LARGEST = 25.0
"""Megabytes (10^6 bytes) of the file where nothing else is asked for: what most mail servers take."""
FEWEST, MOST = 500, 1_000_000
"""Points of a cloud in a frame: fewer would not show what is there, more no browser plays."""
TRIES = 8
_GENERATOR = '<meta name="generator" content="mpm-nodes view">'
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class OneFile:
    """What the file shall hold.

    Attributes:
        frames: Their numbers.
        show: Kinds of layers (`KINDS`); bodies are always there. The first form that there is of each stage where it is empty.
        attribute: Colours the matter, with a legend; "" for the colours of the materials.
        megabytes: Largest size of the file [10^6 bytes].
        title: Its heading.
    """

    frames: Sequence[int]
    show: Sequence[str] = ()
    attribute: str = ""
    megabytes: float = LARGEST
    title: str = ""


@dataclass(frozen=True)
class Written:
    """What was written: path, bytes, and of how many points how many are in the frame that has most."""

    path: Path
    size: int
    points: int
    shown: int


def write_one_file(folder: Path, path: Path, wanted: OneFile, progress: Progress | None = None) -> Written:
    """Write the file; points are left out, evenly, until it is as small as asked for.

    Args:
        folder: Output root or revision of a cook, or a stage.
        path: The file, which ends with .html.
        wanted: What it shall hold.
        progress: Called with (frames packed, frames in all), again with each try.

    Raises:
        InputError: The cache cannot be read, has no such layer or attribute, or does not fit with the fewest points.
        OutputError: The file cannot be written, or something that we did not write has that name.
    """
    refuse_foreign(path, _is_ours)
    opened = Opened()
    layers = _layers(opened.cache(str(folder)), wanted.show, folder)
    names = opened.cache(str(folder)).attribute_names()
    if wanted.attribute and wanted.attribute not in names:
        raise InputError(f"{folder}: carries no '{wanted.attribute}'; it has {', '.join(names)}")
    room = int(1e6 * wanted.megabytes) - len(_page(wanted, [], []))
    most = MOST
    for _ in range(TRIES):
        heads, frames, total = _packed(opened, str(folder), wanted, layers, most, room, progress)
        if total <= room:
            data = _page(wanted, heads, frames)
            replace_named(path, data, _is_ours, make=True)
            return Written(path, len(data), _most(heads, "count"), _most(heads, "shown"))
        if most == FEWEST:
            break
        most = max(FEWEST, int(0.95 * min(most, _most(heads, "shown")) * min(room / total, 1.0)))
    raise InputError(
        f"{path}: {len(wanted.frames)} frames do not fit into {wanted.megabytes:g} MB with {FEWEST} points each; take fewer frames "
        "(--frames, --every), other layers (--show), or a larger --size"
    )


def _is_ours(old: bytes) -> bool:
    return _GENERATOR.encode() in old[:2000]


def _layers(cache: OpenedCache, show: Sequence[str], folder: Path) -> list[str] | None:
    """Return the names of the layers of some kinds, and of the bodies."""
    if not show:
        return None
    held = {layer.kind for layer in cache.layers}
    missing = [kind for kind in show if kind not in held]
    if missing:
        raise InputError(f"{folder}: holds no {missing[0].replace('_', ' ')}; it has {', '.join(k for k in KINDS if k in held)}")
    return [layer.name for layer in cache.layers if layer.kind in (*show, "bodies")]


def _packed(
    opened: Opened, folder: str, wanted: OneFile, layers: list[str] | None, most: int, room: int, progress: Progress | None
) -> tuple[list[dict[str, Any]], list[bytes], float]:
    """Return heads and packed frames, and how many bytes all take: an estimate where they are seen not to fit."""
    heads, frames, total = [], [], 0
    for n, number in enumerate(wanted.frames):
        data = opened.frame(folder, number, layers, wanted.attribute, most)
        heads.append(json.loads(data[4 : 4 + struct.unpack_from("<I", data)[0]]))
        frames.append(base64.b64encode(zlib.compress(data, 6)))
        total += len(frames[-1]) + len(_FRAME) + 1
        if total > room:
            return heads, frames, total / (n + 1) * len(wanted.frames) if n + 1 < len(wanted.frames) else total
        if progress is not None:
            progress(n + 1, len(wanted.frames))
    return heads, frames, total


def _most(heads: Sequence[dict[str, Any]], what: str) -> int:
    """Return the largest number of points of a frame: of all ("count"), or of those in the file ("shown")."""
    return max((sum(cloud[what] for cloud in head["clouds"]) for head in heads), default=0)


def _box(heads: Sequence[dict[str, Any]]) -> list[list[float]] | None:
    """Return the corners of what the matter fills in all frames [m], None where there is none."""
    boxes = [each["box"] for head in heads for each in (*head["clouds"], *head["meshes"]) if each.get("matter", True)]
    if not boxes:
        return None
    corners = np.array(boxes)
    return [corners[:, 0].min(axis=0).tolist(), corners[:, 1].max(axis=0).tolist()]


_FRAME = '<script type="text/plain" class="frame"></script>'


def _page(wanted: OneFile, heads: Sequence[dict[str, Any]], frames: Sequence[bytes]) -> bytes:
    bundle = files("mpm_nodes.editor") / "bundle"
    script = (bundle / "player.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    licence = (bundle / "LICENSES.txt").read_text(encoding="utf-8").split("-" * 40)
    three = next(text.strip() for text in licence if text.strip().startswith("three "))
    valued = [head["values"] for head in heads if any(each["has_values"] for each in (*head["clouds"], *head["meshes"]))]
    facts = {
        "title": wanted.title,
        "frames": list(wanted.frames),
        "fps": heads[0]["fps"] if heads else 24.0,
        "attribute": wanted.attribute if valued else "",
        "unit": unit_of(wanted.attribute) if wanted.attribute else "",
        "values": [min((low for low, _ in valued), default=0.0), max((high for _, high in valued), default=1.0)],
        "points": _most(heads, "count"),
        "shown": _most(heads, "shown"),
        "box": _box(heads),
    }
    told = json.dumps(facts).replace("<", "\\u003c")
    begin, end = _FRAME.split("></")
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{_GENERATOR}',
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{html.escape(wanted.title)}</title></head><body>\n<!--\n{three}\n-->\n",
        f'<script type="application/json" id="facts">{told}</script>\n',
    ]
    body = b"".join(f"{begin}>".encode() + frame + f"</{end}\n".encode() for frame in frames)
    return "".join(parts).encode() + body + f"<script>{script}</script></body></html>\n".encode()
