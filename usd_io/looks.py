"""What a cache looks like when it is opened: preview materials, a camera framed on the shot, two lights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade

__all__ = ["add_looks"]

COLOURS = {"matter": ((0.9, 0.62, 0.2), 0.45), "painted": ((0.9, 0.62, 0.2), 0.45), "collider": ((0.32, 0.34, 0.38), 0.7)}
"""Linear colour and roughness of each look; "painted" shows what `displayColor` says instead."""
DISPLAY_COLOUR = "displayColor"
FOCAL_LENGTH, APERTURE, ASPECT = 50.0, 36.0, 16.0 / 9.0  # a full-frame camera [mm], as USD and hosts expect
VIEW = (0.55, 0.4, 1.0)
"""Direction from the middle of the shot to the camera."""
MARGIN = 1.15
SUN, SKY = 0.62, 0.19
"""Intensities of the lights: foam, which reflects 0.87, stays below white where both shine on it."""


def add_looks(stage: Usd.Stage, name: str, bounds: np.ndarray | None) -> None:
    """Add or renew materials, camera and lights below the root prim.

    Args:
        stage: Root stage.
        name: Name of the root prim.
        bounds: Least and greatest corner of the whole shot [m], shape (2, 3); None when it is empty.
    """
    materials = {look: _add_material(stage, f"/{name}/looks/{look}_look", *facts) for look, facts in COLOURS.items()}
    for prim in stage.GetPrimAtPath(f"/{name}").GetChildren():
        if prim.GetTypeName() in ("Points", "Mesh"):
            painted = prim.GetAttribute(f"primvars:{DISPLAY_COLOUR}").IsAuthored()  # the schema has it on every prim
            look = "collider" if prim.GetName().startswith("collider_") else "painted" if painted else "matter"
            UsdShade.MaterialBindingAPI.Apply(prim).Bind(materials[look])
    low, high = bounds if bounds is not None else (np.zeros(3), np.ones(3))
    _add_camera(stage, f"/{name}/camera", np.asarray(low), np.asarray(high))
    _add_lights(stage, name)


def _add_material(stage: Usd.Stage, path: str, colour: Any, roughness: float) -> UsdShade.Material:
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


def _add_camera(stage: Usd.Stage, path: str, low: np.ndarray, high: np.ndarray) -> None:
    """Look at the middle of the box from `VIEW`, as near as keeps its eight corners in the picture."""
    middle = (low + high) / 2.0
    radius = max(float(np.linalg.norm(high - low)) / 2.0, 1e-3)
    back = np.asarray(VIEW) / np.linalg.norm(VIEW)
    right = np.cross((0.0, 1.0, 0.0), back)
    right /= np.linalg.norm(right)
    corners = (np.array(list(itertools.product((0.0, 1.0), repeat=3))) - 0.5) * np.maximum(high - low, 1e-3)
    half_width = APERTURE / 2.0 / FOCAL_LENGTH
    across, along = np.abs(corners @ right), np.abs(corners @ np.cross(back, right))
    needed = np.maximum(across, along * ASPECT) / half_width
    distance = MARGIN * float((needed + corners @ back).max())
    eye = middle + distance * back
    camera = UsdGeom.Camera.Define(stage, path)
    camera.CreateFocalLengthAttr(FOCAL_LENGTH)
    camera.CreateHorizontalApertureAttr(APERTURE)
    camera.CreateVerticalApertureAttr(APERTURE / ASPECT)
    camera.CreateFocusDistanceAttr(distance)
    camera.CreateClippingRangeAttr(Gf.Vec2f(max(distance - 4.0 * radius, distance * 1e-2), distance + 100.0 * radius))
    view = Gf.Matrix4d().SetLookAt(Gf.Vec3d(*eye.tolist()), Gf.Vec3d(*middle.tolist()), Gf.Vec3d(0, 1, 0))
    camera.MakeMatrixXform().Set(view.GetInverse())


def _add_lights(stage: Usd.Stage, name: str) -> None:
    sun = UsdLux.DistantLight.Define(stage, f"/{name}/sun")
    sun.CreateIntensityAttr(SUN)
    sun.CreateAngleAttr(2.0)
    sun.CreateNormalizeAttr(True)  # else Blender takes the intensity for a radiance, and the sun lights nothing
    turn = Gf.Rotation(Gf.Vec3d(1, 0, 0), -50.0) * Gf.Rotation(Gf.Vec3d(0, 1, 0), 40.0)
    sun.MakeMatrixXform().Set(Gf.Matrix4d(turn, Gf.Vec3d(0)))
    sky = UsdLux.DomeLight.Define(stage, f"/{name}/sky")
    sky.CreateIntensityAttr(SKY)
    sky.CreateColorAttr(Gf.Vec3f(0.8, 0.88, 1.0))
