"""What a cache's matter and bodies look like when it is opened: preview materials below its root prim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

__all__ = ["add_looks", "add_material", "check_colour"]

COLOURS = {"matter": ((0.9, 0.62, 0.2), 0.45), "painted": ((0.9, 0.62, 0.2), 0.45), "collider": ((0.32, 0.34, 0.38), 0.7)}
"""Linear colour and roughness of each look; "painted" shows what `displayColor` says instead."""
DISPLAY_COLOUR = "displayColor"


def add_looks(stage: Usd.Stage, name: str) -> None:
    """Add or renew the materials below the root prim, and bind them.

    Args:
        stage: Root stage.
        name: Name of the root prim.
    """
    materials = {look: add_material(stage, f"/{name}/looks/{look}_look", *facts) for look, facts in COLOURS.items()}
    for prim in stage.GetPrimAtPath(f"/{name}").GetChildren():
        if prim.GetTypeName() in ("Points", "Mesh"):
            painted = prim.GetAttribute(f"primvars:{DISPLAY_COLOUR}").IsAuthored()  # the schema has it on every prim
            look = "collider" if prim.GetName().startswith("collider_") else "painted" if painted else "matter"
            UsdShade.MaterialBindingAPI.Apply(prim).Bind(materials[look])


def add_material(stage: Usd.Stage, path: str, colour: Any, roughness: float) -> UsdShade.Material:
    """Define a preview material at `path`, in a scope, and return it; a painted one reads `displayColor`."""
    UsdGeom.Scope.Define(stage, Sdf.Path(path).GetParentPath())
    material = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, f"{path}/{Sdf.Path(path).name}_surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    diffuse = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    if Sdf.Path(path).name == "painted_look":
        diffuse.ConnectToSource(_primvar_reader(stage, f"{path}/painted_look_colour", colour))
    else:
        diffuse.Set(Gf.Vec3f(*colour))
    shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(roughness)
    surface = shader.CreateOutput("surface", Sdf.ValueTypeNames.Token)
    material.CreateSurfaceOutput().ConnectToSource(surface)
    return material


def _primvar_reader(stage: Usd.Stage, path: str, fallback: Any) -> UsdShade.Output:
    """Define a shader node that reads `displayColor`; renderers and hosts know this one by its name."""
    reader = UsdShade.Shader.Define(stage, path)
    reader.CreateIdAttr("UsdPrimvarReader_float3")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(DISPLAY_COLOUR)
    reader.CreateInput("fallback", Sdf.ValueTypeNames.Float3).Set(Gf.Vec3f(*fallback))
    return reader.CreateOutput("result", Sdf.ValueTypeNames.Float3)


def check_colour(prim: Usd.Prim) -> Iterator[str]:
    """Yield the problem of a shape whose colours no picture shows, since its material has a colour of its own."""
    if not prim.GetAttribute(f"primvars:{DISPLAY_COLOUR}").IsAuthored():
        return
    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    shader = material.ComputeSurfaceSource()[0] if material else None
    if shader and shader.GetIdAttr().Get() == "UsdPreviewSurface" and not _reads_colour(shader):
        yield f"{prim.GetPath()}: {DISPLAY_COLOUR} is not read by the material {material.GetPath()}; renderers show one colour"


def _reads_colour(shader: UsdShade.Shader) -> bool:
    """Whether some primvar reader gives a preview surface its colour."""
    diffuse = shader.GetInput("diffuseColor")
    sources = diffuse.GetConnectedSources()[0] if diffuse else ()
    readers = [UsdShade.Shader(source.source) for source in sources]
    return any(reader.GetInput("varname") and reader.GetInput("varname").Get() == DISPLAY_COLOUR for reader in readers)
