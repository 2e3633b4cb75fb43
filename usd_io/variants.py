"""One stage for several caches: a variant each, so that whoever opens it picks one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pxr import Sdf

from usd_io.layers import set_units, unique_name

__all__ = ["SET", "Variant", "variants_layer"]

SET = "wedge"
"""Name of the set of variants."""


class Variant(NamedTuple):
    """A cache among others.

    Attributes:
        label: What it is called; letters, digits and _ of it name the variant.
        stage: Path of its root stage, relative to the layer that is made.
        values: What it was made with, kept as custom data.
    """

    label: str
    stage: str
    values: Mapping[str, str]


def variants_layer(name: str, variants: Sequence[Variant], fps: float, first: int, last: int) -> Sdf.Layer:
    """Return a layer in memory whose root prim has a set of variants, each of which brings one cache in.

    Args:
        name: Name of the root prim.
        variants: At least one; the first is chosen.
        fps: Frames per second.
        first: First frame.
        last: Last frame.
    """
    layer = Sdf.Layer.CreateAnonymous("variants.usda")
    layer.defaultPrim = name
    set_units(layer, fps, first, last)
    prim = Sdf.CreatePrimInLayer(layer, f"/{name}")
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Xform"
    prim.variantSetNameList.prependedItems = [SET]
    choices = Sdf.VariantSetSpec(prim, SET)
    names: list[str] = []
    for variant in variants:
        names.append(unique_name(variant.label, set(names)))
        spec = Sdf.VariantSpec(choices, names[-1])
        spec.primSpec.referenceList.prependedItems = [Sdf.Reference(f"./{variant.stage}")]
        spec.primSpec.customData = {"label": variant.label, **variant.values}
    prim.variantSelections[SET] = names[0]
    return layer
