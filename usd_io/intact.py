"""Whether the layers of a cache's frames hold the bytes that their cook wrote, looked at before OpenUSD opens them.

The library tells of some damage, shows other numbers for most, and now and then ends the process. The commit record of a frame, in
the folder of its cook, has the digest of each of its files. A cache that was taken out of that folder has none to compare with.
"""

from __future__ import annotations

import hashlib
import re
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

import numpy as np
from pxr import Sdf, Usd

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.records import read_record
from mpm_nodes.regular_files import open_regular
from usd_io.clips import LAYERS, clips_of
from usd_io.layers import PROVENANCE
from usd_io.relink import refuse_missing

__all__ = ["damage", "refuse_damaged"]

CURE = "cook the frame again: mpm-nodes check {} --repair GRAPH"
_SOUND: dict[str, tuple[int, int, int]] = {}
"""Inode, size and time of the files that were found sound."""


def refuse_damaged(prim: Usd.Prim, code: float) -> None:
    """Refuse the layer that value clips of a cache of ours give a prim at a time code, where it is missing or damaged.

    Raises:
        InputError: It is.
    """
    for layer, offset, facts in clips_of(prim):
        listed, active = facts.get(LAYERS), np.array(facts["active"])
        at = np.flatnonzero(active[:, 0] <= offset.GetInverse() * code)
        clip = int(active[at[-1] if len(at) else 0, 1])
        if not isinstance(listed, Sdf.AssetPathArray) or not 0 <= clip < len(listed):
            continue
        asset = listed[clip].path
        if "[" not in layer.realPath and not Path(layer.ComputeAbsolutePath(asset)).exists():
            refuse_missing(prim.GetStage())
        told = damage(layer, asset)
        if told:
            raise InputError(f"{prim.GetPath()} at frame {code:g}: {told}")


def damage(layer: Sdf.Layer, asset: str) -> str:
    """Return what is wrong with the layer of a frame of a cache of ours, "" where nothing is, or nothing says what it held.

    Args:
        layer: Root layer of the cache.
        asset: The layer of the frame, as the root names it.
    """
    number = re.search(r"\.(\d+)\.usdc$", asset)
    if PROVENANCE not in layer.customLayerData or number is None or "[" in layer.realPath:
        return ""
    folder, name = Path(layer.realPath).parent, asset.removeprefix("./")
    path = folder / name
    try:
        with open_regular(path, CURE.format(folder)) as stream:
            found = path.stat()
            stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
            if _SOUND.get(str(path)) == stamp:
                return ""
            written = _record(layer, folder, int(number[1])).get(name)
            if written is None:
                return ""
            if found.st_size != written["bytes"]:
                return f"{path} has {found.st_size} bytes, {written['bytes']} were written; {CURE.format(folder)}"
            if hashlib.file_digest(cast(BufferedReader, stream), "sha256").hexdigest() != written["sha256"]:
                return f"{path} holds other bytes than were written; {CURE.format(folder)}"
    except (InputError, OSError) as error:
        return str(error)
    _SOUND[str(path)] = stamp
    return ""


def _record(layer: Sdf.Layer, folder: Path, number: int) -> dict[str, Any]:
    """Return sizes and digests of the files of a frame by their names, none where there is no sound record of it."""
    facts = layer.customLayerData[PROVENANCE]
    offset = facts.get("frame_offset", 0) if isinstance(facts, dict) else 0
    record = read_record(Folder(folder), f"frames/{number:04d}.commit.json", number - (offset if isinstance(offset, int) else 0))
    return record["files"] if record else {}
