"""A small cache written with USD alone: a falling blob of points with its surface, and a ball as collider."""

from pathlib import Path

import numpy as np

OCTAHEDRON = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float32)
FACES = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]], np.int32)


def write_cache(folder: Path, frames: int = 5, with_surface: bool = False) -> Path:
    """Write the newest revision r002 (r001 is older and empty) and return its root stage."""
    from pxr import Usd, UsdGeom, Vt

    (folder / "r001").mkdir(parents=True)
    (folder / "r002").mkdir()
    path = folder / "r002" / "shot.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(frames)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/sim").GetPrim())
    points = UsdGeom.Points.Define(stage, "/sim/points")
    skin = _octahedron(stage, "/sim/mesh", 0.3) if with_surface else None
    _octahedron(stage, "/sim/collider_bowl", 0.4)
    axis = (np.arange(12) + 0.5) / 12 - 0.5
    block = 0.6 * np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.float32)
    for frame in range(1, frames + 1):
        fall = np.array([0.0, 1.4 - 0.12 * frame, 0.0], np.float32)
        points.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(block + fall), frame)
        points.GetWidthsAttr().Set(Vt.FloatArray.FromNumpy(np.full(len(block), 0.06, np.float32)), frame)
        if skin is not None:
            skin.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(0.3 * OCTAHEDRON + fall), frame)
    stage.Save()
    return path


def add_floor(path: Path, half: float, height: float) -> None:
    """Add a level square, marked as caches of ours mark planes."""
    from pxr import Usd, UsdGeom, Vt

    from usd_io.layers import LOOKS_KEY

    stage = Usd.Stage.Open(str(path))
    mesh = UsdGeom.Mesh.Define(stage, "/sim/collider_floor")
    mesh.GetPrim().SetCustomDataByKey(LOOKS_KEY, "floor")
    corners = half * np.array([[-1, 0, -1], [-1, 0, 1], [1, 0, 1], [1, 0, -1]], np.float32) + np.float32([0.0, height, 0.0])
    mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(corners))
    mesh.GetFaceVertexCountsAttr().Set(Vt.IntArray([4]))
    mesh.GetFaceVertexIndicesAttr().Set(Vt.IntArray(range(4)))
    mesh.GetDisplayColorAttr().Set(Vt.Vec3fArray([(0.50, 0.51, 0.52)]))
    stage.Save()


def _octahedron(stage, path: str, size: float):
    from pxr import UsdGeom, Vt

    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.GetSubdivisionSchemeAttr().Set("none")
    mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.float32(size) * OCTAHEDRON))
    mesh.GetFaceVertexCountsAttr().Set(Vt.IntArray([3] * len(FACES)))
    mesh.GetFaceVertexIndicesAttr().Set(Vt.IntArray.FromNumpy(FACES.reshape(-1)))
    return mesh
