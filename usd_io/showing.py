"""What a cache shows of one matter: its surface, its particles or its volume, chosen by a variant; never two at once."""

from __future__ import annotations

from pxr import Gf, Kind, Sdf, Usd, UsdGeom, Vt

__all__ = ["SHOW", "add_variants", "describe_asset", "extents_hint"]

SHOW = "show"
"""Name of the variant set."""
FORMS = {"surface": "mesh", "particles": "particles", "volume": "volume"}
"""Variants, the first that the cache holds being its own, and the prim that each shows."""
PROXY = "proxy"
"""The variant that stands in for the matter where speed counts: its box, and points for readers that draw no boxes."""
INVISIBLE = "invisible"


def describe_asset(stage: Usd.Stage, name: str, file: str) -> None:
    """Say that the root prim is a component, what it is called, and where it lies."""
    prim = stage.GetPrimAtPath(f"/{name}")
    UsdGeom.ModelAPI.Apply(prim)
    model = Usd.ModelAPI(prim)
    model.SetKind(Kind.Tokens.component)
    model.SetAssetName(name)
    model.SetAssetIdentifier(Sdf.AssetPath(f"./{file}"))


def add_variants(stage: Usd.Stage, name: str) -> None:
    """Add or renew the variants of the root prim.

    The form that a variant shows has purpose `render`, particles beside it `proxy`, so that they are drawn where a viewport asks
    for stand-ins; the others are invisible. Where nothing but the particles is shown they have the default purpose. Colliders are
    shown in every variant.
    """
    top = stage.GetPrimAtPath(f"/{name}")
    held = {form: prim for form, leaf in FORMS.items() if (prim := stage.GetPrimAtPath(f"/{name}/{leaf}"))}
    if not held:
        return
    variants = top.GetVariantSets().AddVariantSet(SHOW)
    for shown in [*held, PROXY]:
        variants.AddVariant(shown)
        variants.SetVariantSelection(shown)
        with variants.GetVariantEditContext():
            for form, prim in held.items():
                _show(UsdGeom.Imageable(prim), form, shown, len(held) == 1)
            if shown == PROXY:
                model = UsdGeom.ModelAPI(top)
                model.CreateModelDrawModeAttr(UsdGeom.Tokens.bounds)
                model.CreateModelApplyDrawModeAttr(True)
    variants.SetVariantSelection(next(iter(held)))


def _show(prim: UsdGeom.Imageable, form: str, shown: str, alone: bool) -> None:
    """Give one form of the matter its purpose in one variant, or make it invisible there."""
    if form == shown:
        prim.CreatePurposeAttr(UsdGeom.Tokens.default_ if form == "particles" else UsdGeom.Tokens.render)
    elif form == "particles" or (shown == PROXY and alone):
        prim.CreatePurposeAttr(UsdGeom.Tokens.default_ if shown == PROXY else UsdGeom.Tokens.proxy)
    else:
        prim.CreateVisibilityAttr(INVISIBLE)


def extents_hint(matter: list[Vt.Vec3fArray], bodies: list[Vt.Vec3fArray]) -> Vt.Vec3fArray:
    """Return the hint of a frame's extents: all for the purpose `default`, the matter alone for `render` and `proxy`."""
    return Vt.Vec3fArray([corner for boxes in (matter + bodies, matter, matter) for corner in _union(boxes)])


def _union(boxes: list[Vt.Vec3fArray]) -> tuple[Gf.Vec3f, Gf.Vec3f]:
    whole = Gf.Range3f()
    for low, high in boxes:
        whole.UnionWith(Gf.Range3f(low, high))
    return whole.GetMin(), whole.GetMax()
