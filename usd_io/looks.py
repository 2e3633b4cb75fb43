"""What a cache's matter and bodies look like when it is opened: materials below its root prim, bound to what they shade.

Each material has two networks: UsdPreviewSurface, which every program knows, and MaterialX (`usd_io.material_x`) for renderers that
shade light inside of matter, clear matter and black bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

from mpm_nodes.materials.looks import OTHERS, Look, find_look
from usd_io.layers import COLOUR, GLOW, LOOKS_KEY
from usd_io.material_x import add_standard_surface
from usd_io.packing import holds_points

__all__ = ["BODIES", "add_looks", "add_material", "check_colour", "reader_fallback"]

BODIES = "collider"
"""Look of bodies."""
PAINTED = "painted"
"""End of the names of materials that show `displayColor`."""


def add_looks(stage: Usd.Stage, name: str) -> None:
    """Add or renew the materials below the root prim that are needed, and bind them.

    Parts of a mesh that are one material each (GeomSubset) have that material's look. Points of several looks have a plain one
    that shows their colours.

    Args:
        stage: Root stage.
        name: Name of the root prim.
    """
    forms = stage.GetPrimAtPath(f"/{name}").GetChildren()
    for prim in [each for form in forms for each in (form, *form.GetChildren())]:
        if prim.GetTypeName() != "Mesh" and not holds_points(prim):
            continue
        painted = prim.GetAttribute(f"primvars:{COLOUR}").IsAuthored()  # the schema has it on every prim
        if prim.GetName().startswith("collider_"):
            _bind(stage, name, prim, str(prim.GetCustomDataByKey(LOOKS_KEY) or BODIES), False)
            continue
        looks = str(prim.GetCustomDataByKey(LOOKS_KEY) or OTHERS).split()
        parts = [child for child in prim.GetChildren() if child.IsA(UsdGeom.Subset)]
        for part, look in zip(parts, looks, strict=False):
            _bind(stage, name, part, look, painted)
        _bind(stage, name, prim, looks[0] if parts or len(set(looks)) == 1 else OTHERS, painted)
        if parts:
            UsdShade.MaterialBindingAPI(prim).SetMaterialBindSubsetsFamilyType(UsdGeom.Tokens.nonOverlapping)


def _bind(stage: Usd.Stage, name: str, prim: Usd.Prim, look: str, painted: bool) -> None:
    leaf = f"{look}_{PAINTED}" if painted else f"{look}_look"
    material = UsdShade.Material.Get(stage, f"/{name}/looks/{leaf}")
    if not material:
        material = add_material(stage, f"/{name}/looks/{leaf}", find_look(look), painted)
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material)


def add_material(stage: Usd.Stage, path: str, look: Look, painted: bool = False) -> UsdShade.Material:
    """Define a material at `path`, in a scope, and return it.

    Args:
        stage: Where.
        path: Of the material; names of its nodes begin with its own.
        look: What it shows.
        painted: Whether it shows `displayColor` in place of its own colour.
    """
    UsdGeom.Scope.Define(stage, Sdf.Path(path).GetParentPath())
    material = UsdShade.Material.Define(stage, path)
    leaf = Sdf.Path(path).name
    shader = UsdShade.Shader.Define(stage, f"{path}/{leaf}_surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    diffuse = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    if painted:
        diffuse.ConnectToSource(_reader(stage, f"{path}/{leaf}_colour", COLOUR, look.colour))
    else:
        diffuse.Set(Gf.Vec3f(*look.colour))
    numbers = {
        "roughness": look.roughness,
        "metallic": look.metallic,
        "opacity": look.opacity,
        "ior": look.refraction,
        "clearcoat": look.coat,
    }
    plain = {"metallic": 0.0, "opacity": 1.0, "ior": 1.5, "clearcoat": 0.0}
    for knob, value in numbers.items():
        if value != plain.get(knob):
            shader.CreateInput(knob, Sdf.ValueTypeNames.Float).Set(value)
    if look.glows:
        emission = shader.CreateInput("emissiveColor", Sdf.ValueTypeNames.Color3f)
        emission.ConnectToSource(_reader(stage, f"{path}/{leaf}_glow", GLOW, (0.0, 0.0, 0.0)))
    material.CreateSurfaceOutput().ConnectToSource(shader.CreateOutput("surface", Sdf.ValueTypeNames.Token))
    add_standard_surface(material, look, COLOUR if painted else "")
    return material


def _reader(stage: Usd.Stage, path: str, primvar: str, fallback: Sequence[float]) -> UsdShade.Output:
    """Define a shader node that reads a primvar; renderers and hosts know this one by its name."""
    reader = UsdShade.Shader.Define(stage, path)
    reader.CreateIdAttr("UsdPrimvarReader_float3")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(primvar)
    reader.CreateInput("fallback", Sdf.ValueTypeNames.Float3).Set(Gf.Vec3f(*fallback))
    return reader.CreateOutput("result", Sdf.ValueTypeNames.Float3)


def reader_fallback(knob: UsdShade.Input) -> Any:
    """Return the value of a shader's input, or what its primvar reader falls back to; None where neither says one."""
    sources = knob.GetConnectedSources()[0] if knob else ()
    if not sources:
        return knob.Get() if knob else None
    fallback = UsdShade.Shader(sources[0].source).GetInput("fallback")
    return fallback.Get() if fallback else None


def check_colour(prim: Usd.Prim) -> Iterator[str]:
    """Yield the problem of a shape whose colours no picture shows, since its material has a colour of its own."""
    if not prim.GetAttribute(f"primvars:{COLOUR}").IsAuthored():
        return
    shown = [child for child in prim.GetChildren() if child.IsA(UsdGeom.Subset)]
    for part in (prim, *shown):
        material = UsdShade.MaterialBindingAPI(part).ComputeBoundMaterial()[0]
        shader = material.ComputeSurfaceSource()[0] if material else None
        if shader and shader.GetIdAttr().Get() == "UsdPreviewSurface" and not _reads_colour(shader):
            yield f"{part.GetPath()}: {COLOUR} is not read by the material {material.GetPath()}; renderers show one colour"


def _reads_colour(shader: UsdShade.Shader) -> bool:
    """Whether some primvar reader gives a preview surface its colour."""
    diffuse = shader.GetInput("diffuseColor")
    sources = diffuse.GetConnectedSources()[0] if diffuse else ()
    readers = [UsdShade.Shader(source.source) for source in sources]
    return any(reader.GetInput("varname") and reader.GetInput("varname").Get() == COLOUR for reader in readers)
