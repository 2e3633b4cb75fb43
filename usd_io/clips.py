"""Value clips, which give a stage the frames of its layers: authored on every prim that they animate, and found on any.

A reference to one prim of a cache leaves the prims above it behind, and with them their clips. So each has clips of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from pxr import Gf, Sdf, Usd, Vt

from usd_io.layers import PROVENANCE, STILL

__all__ = [
    "CLIPS",
    "LAYERS",
    "MANIFEST",
    "author_clips",
    "clip_sets",
    "clipped_prims",
    "clips_of",
    "forget_clips",
    "layers_of",
    "left_behind",
    "named_assets",
    "prims_of",
]

CLIPS = "clips"
LAYERS, MANIFEST = "assetPaths", "manifestAssetPath"


def author_clips(root: Sdf.Layer, manifest: Sdf.Layer, told: str, layers: list[str], first: int) -> None:
    """Give every prim of the manifest its clips, one layer a frame.

    The layers are named one by one and not by a pattern: tools that collect a stage's files do not follow patterns. Their times
    go on for a frame after the last one, where its layer ends the velocities and all else is held.

    Args:
        root: Root stage.
        manifest: What the clips animate.
        told: Path of the manifest, relative to the root.
        layers: Paths of the layers of frames, relative to the root.
        first: Number of the first frame.
    """
    end = first + len(layers)
    facts = {
        LAYERS: Sdf.AssetPathArray([Sdf.AssetPath(f"./{layer}") for layer in layers]),
        "active": Vt.Vec2dArray([Gf.Vec2d(first + clip, clip) for clip in range(len(layers))]),
        "times": Vt.Vec2dArray([Gf.Vec2d(number, number) for number in range(first, end + 1)]),
        MANIFEST: Sdf.AssetPath(f"./{told}"),
    }
    for prim in prims_of(manifest):
        root.GetPrimAtPath(prim.path).SetInfo(CLIPS, {"default": {**facts, "primPath": str(prim.path)}})


def forget_clips(root: Sdf.Layer) -> None:
    """Take the clips of all prims away."""
    for prim in clipped_prims(root):
        prim.ClearInfo(CLIPS)


def clipped_prims(layer: Sdf.Layer) -> Iterator[Sdf.PrimSpec]:
    """Yield the prims of a layer, those in variants too, that have clips."""
    yield from (prim for prim in prims_of(layer) if prim.HasInfo(CLIPS))


def clip_sets(prim: Sdf.PrimSpec) -> dict[str, dict[str, Any]]:
    """Return the sets of clips that a prim has in its layer, by name; what is none is left out."""
    return {name: dict(facts) for name, facts in dict(prim.GetInfo(CLIPS) or {}).items() if isinstance(facts, dict)}


def named_assets(facts: dict[str, Any]) -> list[str]:
    """Return the layers that a set of clips names one by one, as they are named there, with its manifest."""
    listed: Any = facts.get(LAYERS)
    layers = tuple(listed) if hasattr(listed, "__iter__") and not isinstance(listed, str) else ()
    return [asset.path for asset in (*layers, facts.get(MANIFEST)) if hasattr(asset, "path")]


def clips_of(prim: Usd.Prim) -> Iterator[tuple[Sdf.Layer, Sdf.LayerOffset, dict[str, Any]]]:
    """Yield the sets of clips, from caches of ours, that animate a prim: those of the prim itself, then of the prims above it.

    With each come the layer that has it and the way from its time codes to those of the stage. It has at least one active clip.
    """
    while prim:
        for spec, offset in prim.GetPrimStackWithLayerOffsets():
            ours = PROVENANCE in spec.layer.customLayerData and spec.HasInfo(CLIPS)
            for facts in clip_sets(spec).values() if ours else ():
                active = facts.get("active")
                if isinstance(active, Vt.Vec2dArray) and len(active):
                    yield spec.layer, offset, facts
        prim = prim.GetParent()


def layers_of(stage: Usd.Stage) -> list[Sdf.Layer]:
    """Return the files that a stage is composed of, its root first; those of clips are not among them."""
    root = stage.GetRootLayer()
    return sorted((layer for layer in stage.GetUsedLayers(False) if layer.realPath), key=lambda each: (each != root, each.realPath))


def left_behind(prim: Usd.Prim) -> str:
    """Return why a prim of a cache has no frames, where it is referred to without the root prim, which alone has clips; else ""."""
    above = [prim.GetStage().GetPrimAtPath(path) for path in prim.GetPath().GetPrefixes()]
    if prim.GetCustomDataByKey(STILL) or any(each.HasMetadata(CLIPS) for each in above):
        return ""
    for spec in prim.GetPrimStack():
        root = spec.layer.GetPrimAtPath(spec.path.GetPrefixes()[0])
        if PROVENANCE in spec.layer.customLayerData and root.HasInfo(CLIPS):
            only = f"{spec.layer.realPath} is of an older version, which has its clips on {root.path} alone"
            return f"{prim.GetPath()}: has no frames: {only}; refer to {root.path}, or cook the cache again"
    return ""


def prims_of(layer: Sdf.Layer) -> Iterator[Sdf.PrimSpec]:
    """Yield all prims of a layer, those in variants too."""
    waiting = deque(layer.rootPrims)
    while waiting:
        prim = waiting.popleft()
        yield prim
        if prim.HasInfo("primChildren"):  # to ask is twenty times as fast as to look
            waiting.extend(prim.nameChildren)
        if prim.HasInfo("variantSetChildren"):
            waiting.extend(variant.primSpec for choices in prim.variantSets.values() for variant in choices.variants.values())
