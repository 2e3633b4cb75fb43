"""What a stage would open, looked at before it does: pipes, endless lists of clips and text nested too deeply never reach OpenUSD.

The library waits for a pipe without end, counts every clip of a template, and recurses into what is nested until its stack is used
up. Nothing in this process could end that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes import reads
from mpm_nodes.data import InputError
from mpm_nodes.regular_files import check_utf8, open_regular
from usd_io.arcs import check_depth, check_size
from usd_io.typed import MOST_FRAMES

__all__ = ["checked_layers", "leads_on"]

DEEPEST = 500
"""Brackets within brackets of a text layer; no exporter nests prims or dictionaries by a tenth of it."""
MOST_LAYERS = 20_000
CHUNK = 1 << 24
_SOUND: dict[str, tuple[int, int]] = {}
"""Size and time of the roots that were found sound."""


def checked_layers(path: str | Path) -> list[Any]:
    """Return the layers that a stage is composed of; while they are held, opening it reads none again.

    What is missing or is not USD is left for the stage to tell.

    Args:
        path: Root layer.

    Raises:
        InputError: A file is a pipe, a device or a folder, or nested too deeply; clips are without number; there are more than
            `MOST_LAYERS` layers, or more prims than `usd_io.arcs` allows; or the root cannot be read.
    """
    from pxr import Sdf, Tf

    found: dict[str, Any] = {}
    check_utf8(path)
    waiting = [str(path)]
    _check_file(Path(path), str(path))
    facts = Path(path).stat()
    stamp = (facts.st_size, facts.st_mtime_ns)
    if _SOUND.get(waiting[0]) == stamp:  # a shot reads its cache once a frame
        return []
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if len(found) >= MOST_LAYERS:
            raise InputError(f"{path}: leads to more than {MOST_LAYERS:,} layers; export a smaller stage")
        with reads.reading(name):
            try:
                layer = found[name] = Sdf.Layer.FindOrOpen(name)
            except (Tf.ErrorException, UnicodeError):
                layer = found[name] = None
            if layer is None:
                continue
            check_depth(layer)
            for asset in layer.GetCompositionAssetDependencies():
                waiting.extend(_file_of(layer, asset))
            for asset in dict.fromkeys(_clips(layer)):
                list(_file_of(layer, asset))  # opened when a value is read: never by what it leads to
    check_size(found)
    _SOUND[str(path)] = stamp
    return list(found.values())


def leads_on(path: str | Path) -> bool:
    """Return whether a file takes layers or clips from other files; one that cannot be read leads nowhere.

    Args:
        path: A USD file.

    Raises:
        InputError: As `checked_layers`, for this one file.
    """
    from pxr import Sdf, Tf

    from usd_io.clips import clipped_prims

    _check_file(Path(path), str(path))
    try:
        layer = Sdf.Layer.FindOrOpen(str(path))
    except (Tf.ErrorException, UnicodeError):
        return False
    if layer is None:
        return False
    check_depth(layer)
    return bool(layer.GetCompositionAssetDependencies()) or any(True for _ in clipped_prims(layer))


def _file_of(layer: Any, asset: str) -> Iterator[str]:
    """Yield the path of the file that an asset of a layer is, where there is one outside of a package."""
    from pxr import Sdf

    place = Sdf.ComputeAssetPathRelativeToLayer(layer, asset.partition(":SDF_FORMAT_ARGS:")[0]) if asset else ""
    file = Path(place)
    if place and "[" not in place and file.is_absolute() and file.exists():
        _check_file(file, f"{layer.identifier}: its layer {asset}")
        yield place


def _check_file(file: Path, where: str) -> None:
    """Refuse what is not a regular file, and text that is nested too deeply."""
    try:
        stream = open_regular(file, "export the stage again")
    except InputError as error:
        raise InputError(str(error) if where == str(file) else f"{where}: {error}") from error
    with stream:
        if stream.read(5) != b"#usda":
            return
        depth = 0
        while chunk := stream.read(CHUNK):
            code = np.frombuffer(chunk, np.uint8)
            at = np.flatnonzero((code == 40) | (code == 91) | (code == 123) | (code == 41) | (code == 93) | (code == 125))
            signs = np.where(np.isin(code[at], (40, 91, 123)), 1, -1)
            depths = depth + np.cumsum(signs)
            if len(depths) and depths.max() > DEEPEST:
                raise InputError(f"{where}: holds brackets in brackets, deeper than {DEEPEST}; export it again")
            depth = int(depths[-1]) if len(depths) else depth


def _clips(layer: Any) -> Iterator[str]:
    """Yield the assets of all value clips of a layer that it names one by one.

    Raises:
        InputError: A template stands for clips without number.
    """
    from usd_io.clips import clip_sets, clipped_prims, named_assets

    for prim in clipped_prims(layer):
        for facts in clip_sets(prim).values():
            if "templateAssetPath" in facts:
                _check_template(layer, prim, facts)
            yield from named_assets(facts)


def _check_template(layer: Any, prim: Any, facts: dict[str, Any]) -> None:
    start, end, stride = (facts.get(name, default) for name, default in _TEMPLATE)
    numbers = all(isinstance(value, (int, float)) and math.isfinite(value) for value in (start, end, stride))
    if not numbers or stride <= 0 or not abs(end - start) / stride < MOST_FRAMES:
        told = f"{layer.identifier}: {prim.path}: has a template of clips from {start} to {end} by {stride}"
        raise InputError(f"{told}; give numbers that make at most {MOST_FRAMES:,}")


_TEMPLATE = (("templateStartTime", 0.0), ("templateEndTime", 0.0), ("templateStride", 1.0))
