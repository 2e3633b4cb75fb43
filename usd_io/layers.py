"""What every layer that is written has in common: units, samples, and handles that do not outlive it."""

from __future__ import annotations

from typing import Any

from pxr import Sdf, Tf

__all__ = ["COLOUR", "GLOW", "LOOKS_KEY", "PROVENANCE", "STILL", "outlive", "set_sample", "set_units", "unique_name"]

PROVENANCE = "mpm_nodes"
"""Where the root stage of a cache keeps what made it."""
STILL = "mpm_nodes_still"
"""Marks colliders that never move: they have a layer of their own."""
COLOUR, GLOW = "displayColor", "glow"
"""Primvars that materials read: colour of the matter, and light of its own, 1 being white."""
LOOKS_KEY = "mpm_looks"
"""Custom data of matter: names of the looks of its materials, by their index, with spaces between; of bodies, their look."""


def set_units(layer: Sdf.Layer, fps: float, first: int, last: int) -> None:
    """Say what a layer's numbers mean: metres, Y up, a time code a frame."""
    layer.timeCodesPerSecond = layer.framesPerSecond = fps
    layer.startTimeCode, layer.endTimeCode = first, last
    layer.pseudoRoot.SetInfo("upAxis", "Y")
    layer.pseudoRoot.SetInfo("metersPerUnit", 1.0)


def set_sample(
    prim: Sdf.PrimSpec, name: str, usd_type: Any, value: Any, frame: int | None, interpolation: str = "", custom: bool = False
) -> None:
    """Give the prim an attribute with one time sample, or with a value for all times where the frame is None."""
    attribute = prim.attributes.get(name)
    if attribute is None:
        attribute = Sdf.AttributeSpec(prim, name, usd_type, Sdf.VariabilityVarying, custom)
        if interpolation:
            attribute.SetInfo("interpolation", interpolation)
    if frame is None:
        attribute.default = value
    else:
        prim.layer.SetTimeSample(attribute.path, float(frame), value)


def outlive(layer: Sdf.Layer) -> None:
    """Let the handles of a layer's specs live as long as the layer, and die after it.

    OpenUSD (26.11) leaks what a layer notes of each spec whose last handle is gone when the layer dies: a cook of thousands of
    frames would grow. What a Python object refers to goes after what it wraps.
    """
    handles: list[Any] = []
    layer.Traverse(Sdf.Path.absoluteRootPath, lambda path: handles.append(layer.GetObjectAtPath(path)))
    layer.handles = handles


def unique_name(name: str, taken: set[str]) -> str:
    """Return a valid name of a prim or variant that is not taken yet, and take it."""
    stem = name = Tf.MakeValidIdentifier(name)
    number = 2
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    taken.add(name)
    return name
