"""What stands around a cache when it is opened: a camera framed on the shot, a sun and a sky, and a floor.

They lie in a layer and below a root prim of their own, so that a reference to the cache brings none of them.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade

from mpm_nodes.materials.looks import find_look
from usd_io.layers import outlive, set_units
from usd_io.looks import add_material

__all__ = ["FLOOR", "set_layer"]

FLOOR = "mpm:floor"
"""Attribute that marks the floor: pictures that have a ground of their own leave it out."""
FLOOR_REACH = 60.0
"""Half the floor's edge over the radius of the shot."""
FOCAL_LENGTH, APERTURE, ASPECT = 50.0, 36.0, 16.0 / 9.0  # a full-frame camera [mm], as USD and hosts expect
SHUTTER = 0.25
"""Frames for which the shutter is open before and after a frame: 180 degrees."""
VIEW = (0.55, 0.4, 1.0)
"""Direction from the middle of the shot to the camera."""
CAMERA_TURN = math.degrees(math.atan2(VIEW[0], VIEW[2]))
"""Turn of the camera about the upward axis, from the direction of z [degrees]."""
MARGIN = 1.15
SUN_ASIDE, SUN_HEIGHT = 52.0, 36.0
"""Where the sun stands: to the camera's left, seen from the shot, and above the horizon [degrees]."""
SUN, SKY = 0.70, 0.21
"""Intensities of the lights: foam, which reflects 0.87, stays below white where both shine on it."""


def set_layer(name: str, fps: float, frames: tuple[int, int], bounds: np.ndarray | None, floor: float, look: str) -> Sdf.Layer:
    """Return the layer of the set in memory: `/NAME_set` with camera, lights and floor.

    Args:
        name: Name of the cache.
        fps: Frames per second.
        frames: First and last frame.
        bounds: Least and greatest corner of the whole shot [m], shape (2, 3); None when it is empty.
        floor: Height of the floor [m].
        look: Of the floor.
    """
    layer = Sdf.Layer.CreateAnonymous("set.usda")
    layer.defaultPrim = f"{name}_set"
    set_units(layer, fps, *frames)
    stage = Usd.Stage.Open(layer)
    top = UsdGeom.Xform.Define(stage, f"/{name}_set").GetPath()
    low, high = bounds if bounds is not None else (np.zeros(3), np.ones(3))
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    _add_camera(stage, f"{top}/camera", low, high)
    _add_lights(stage, str(top))
    _add_floor(stage, str(top), low, high, floor, look)
    outlive(layer)
    return layer


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
    camera.CreateShutterOpenAttr(-SHUTTER)
    camera.CreateShutterCloseAttr(SHUTTER)
    camera.CreateClippingRangeAttr(Gf.Vec2f(max(distance - 4.0 * radius, distance * 1e-2), distance + 100.0 * radius))
    view = Gf.Matrix4d().SetLookAt(Gf.Vec3d(*eye.tolist()), Gf.Vec3d(*middle.tolist()), Gf.Vec3d(0, 1, 0))
    camera.MakeMatrixXform().Set(view.GetInverse())


def _add_lights(stage: Usd.Stage, top: str) -> None:
    sun = UsdLux.DistantLight.Define(stage, f"{top}/sun")
    sun.CreateIntensityAttr(SUN)
    sun.CreateColorAttr(Gf.Vec3f(1.0, 0.95, 0.87))
    sun.CreateAngleAttr(2.0)
    sun.CreateNormalizeAttr(True)  # else Blender takes the intensity for a radiance, and the sun lights nothing
    turn = Gf.Rotation(Gf.Vec3d(1, 0, 0), -SUN_HEIGHT) * Gf.Rotation(Gf.Vec3d(0, 1, 0), CAMERA_TURN - SUN_ASIDE)
    sun.MakeMatrixXform().Set(Gf.Matrix4d(turn, Gf.Vec3d(0)))
    sky = UsdLux.DomeLight.Define(stage, f"{top}/sky")
    sky.CreateIntensityAttr(SKY)
    sky.CreateColorAttr(Gf.Vec3f(0.8, 0.88, 1.0))


def _add_floor(stage: Usd.Stage, top: str, low: np.ndarray, high: np.ndarray, height: float, look: str) -> None:
    """Lay a square that reaches beyond what the camera sees at a height [m]."""
    radius = max(0.5 * float(np.linalg.norm(high - low)), 1e-3)
    reach, middle = FLOOR_REACH * radius, 0.5 * (low + high)
    corners = [(-reach, -reach), (-reach, reach), (reach, reach), (reach, -reach)]
    points = [Gf.Vec3f(float(middle[0] + x), height, float(middle[2] + z)) for x, z in corners]
    floor = UsdGeom.Mesh.Define(stage, f"{top}/floor")
    floor.CreatePointsAttr(points)
    floor.CreateFaceVertexCountsAttr([4])
    floor.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    floor.CreateNormalsAttr([Gf.Vec3f(0, 1, 0)] * 4)
    floor.CreateExtentAttr([points[0], points[2]])
    floor.CreateSubdivisionSchemeAttr("none")
    floor.GetPrim().CreateAttribute(FLOOR, Sdf.ValueTypeNames.Bool, custom=True).Set(True)
    material = add_material(stage, f"{top}/set_looks/floor_look", find_look(look))
    UsdShade.MaterialBindingAPI.Apply(floor.GetPrim()).Bind(material)
