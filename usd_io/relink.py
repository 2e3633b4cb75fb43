"""Files that a stage names and that are not there: which they are, and how a renamed folder is found again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pxr import Sdf, Tf, Usd

from mpm_nodes import reads
from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.files.folder import replace_named
from usd_io.clips import CLIPS, LAYERS, MANIFEST, clip_sets, clipped_prims, layers_of, named_assets
from usd_io.layers import PROVENANCE

__all__ = ["CURE", "missing_files", "refuse_missing", "relink"]

CURE = "if their folder was renamed, find it again with: mpm-nodes check {} --repair"


def missing_files(path: str | Path) -> list[str]:
    """Return the layers that a stage's root names and that do not exist, as they are named there, in order.

    Raises:
        InputError: The root cannot be read.
    """
    return _missing(_read(Path(path)), Path(path).parent)


def refuse_missing(stage: Usd.Stage) -> None:
    """Say which files of a stage, or of a cache that it refers to, are missing, for readers that found nothing in it.

    Raises:
        InputError: Some are.
    """
    for layer in layers_of(stage):
        gone = _missing(layer, Path(layer.realPath).parent) if "[" not in layer.realPath else []
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise InputError(f"{layer.realPath}: {gone[0]}{more} of its files are missing; {CURE.format(layer.realPath)}")


def _missing(layer: Sdf.Layer, folder: Path) -> list[str]:
    return [asset for asset in dict.fromkeys(_assets(layer)) if not (folder / asset).is_file()]


def relink(path: str | Path) -> list[str]:
    """Let a stage name its missing layers where they lie now, and write it; return one line a folder that was found again.

    A folder was renamed when exactly one folder beside the stage holds every file that is missing from it.

    Raises:
        InputError: The root cannot be read or is not a cache of ours, or no folder, or more than one, holds what is missing.
        OutputError: The root cannot be written, or is a link.
    """
    path = Path(path)
    found: dict[str, str] = {}
    for folder, names in _by_folder(missing_files(path)).items():
        fits = sorted(
            entry for entry in path.parent.iterdir() if entry.is_dir() and all((entry / name).is_file() for name in names)
        )
        if len(fits) != 1:
            held = f"{len(fits)} folders hold them: {', '.join(each.name for each in fits)}; move all but one away"
            raise InputError(
                f"{path}: {len(names)} files of {folder} are missing, {sorted(names)[0]} first, and "
                + (held if fits else "no folder beside the stage holds them; bring the folder back, or cook again")
            )
        found[folder] = f"./{fits[0].name}"
    if found:
        root = _read(path)
        if PROVENANCE not in root.customLayerData:
            raise InputError(f"{path}: is not a cache that mpm-nodes wrote; give the stage of the cache itself")
        _rename(root, found)
        try:
            with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
                written = Path(scratch) / path.name
                root.Export(str(written))
                replace_named(path, written.read_bytes(), lambda old: True)
        except (Tf.ErrorException, OSError) as error:
            raise OutputError(f"{path}: cannot be written; check its permissions and free space") from error
    return [f"{path.name}: {old} is {new} now" for old, new in found.items()]


def _read(path: Path) -> Sdf.Layer:
    from usd_io import usd_reason

    try:
        with reads.reading(path):
            layer = Sdf.Layer.OpenAsAnonymous(str(path)) if path.is_file() else None
    except Tf.ErrorException as error:
        raise InputError(f"{path}: cannot be opened as USD ({usd_reason(error)}); export it again") from error
    if layer is None:
        raise InputError(f"{path}: no such file; give a .usd, .usda or .usdc file")
    return layer


def _assets(root: Sdf.Layer) -> Iterator[str]:
    """Yield the relative names of all layers that a root names: sublayers, clips of any prim and their manifests."""
    yield from root.subLayerPaths
    for prim in clipped_prims(root):
        for facts in clip_sets(prim).values():
            yield from named_assets(facts)


def _by_folder(assets: list[str]) -> dict[str, set[str]]:
    folders: dict[str, set[str]] = {}
    for asset in assets:
        folder, _, name = asset.rpartition("/")
        folders.setdefault(folder, set()).add(name)
    return folders


def _rename(root: Sdf.Layer, folders: dict[str, str]) -> None:
    def renamed(asset: str) -> str:
        folder, _, name = asset.rpartition("/")
        return f"{folders[folder]}/{name}" if folder in folders else asset

    root.subLayerPaths = [renamed(asset) for asset in root.subLayerPaths]
    for prim in clipped_prims(root):
        clips = clip_sets(prim)
        for facts in clips.values():
            if LAYERS in facts:
                facts[LAYERS] = Sdf.AssetPathArray([Sdf.AssetPath(renamed(asset.path)) for asset in facts[LAYERS]])
            if MANIFEST in facts:
                facts[MANIFEST] = Sdf.AssetPath(renamed(facts[MANIFEST].path))
        prim.SetInfo(CLIPS, {**prim.GetInfo(CLIPS), **clips})
