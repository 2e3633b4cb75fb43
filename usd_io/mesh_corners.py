"""What a stage says of the corners of its meshes: texture coordinates and normals."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from usd_io import reading_usd
from usd_io.collider_meshes import StageMeshes
from usd_io.mesh_sources import MeshSource, reversed_faces
from usd_io.typed import of_kind, vectors, whole_numbers

__all__ = ["corner_values"]


def corner_values(meshes: StageMeshes, code: float) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Return the texture coordinates by name, shape (c, 2), and the normals, shape (c, 3), at the corners of all faces.

    Corners stand in the order of `StageMeshes.topology`. Texture coordinates that not every mesh has are left out, and so are the
    normals, which are None then; of subdivision surfaces those at points are kept, for the others say nothing of the finer faces.

    Args:
        meshes: Open meshes.
        code: Time code.

    Raises:
        InputError: Values are not as many as their interpolation says.
    """
    from pxr import Sdf, UsdGeom

    parts: list[dict[str, np.ndarray]] = []
    with reading_usd(meshes.name):
        for source in meshes.sources:
            told = UsdGeom.PrimvarsAPI(source.mesh.GetPrim())
            kinds = (Sdf.ValueTypeNames.TexCoord2fArray, Sdf.ValueTypeNames.TexCoord2dArray, Sdf.ValueTypeNames.TexCoord2hArray)
            maps = [each for each in told.GetPrimvarsWithValues() if each.GetTypeName() in kinds or each.GetPrimvarName() == "st"]
            found = {each.GetPrimvarName(): _of_primvar(source, each, code, 2) for each in maps}
            found["normals"] = _normals(source, told.GetPrimvar("normals"), code)
            for matrix in source.placement(code):
                parts.append({name: _placed(source, values, matrix, code) for name, values in found.items() if values is not None})
                if "normals" in parts[-1]:
                    parts[-1]["normals"] = _turned(parts[-1]["normals"], (meshes.to_si @ matrix)[:3, :3])
    names = [name for name in (parts[0] if parts else ()) if all(name in part for part in parts)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
    normals = joined.pop("normals", None)
    return joined, normals


def _of_primvar(source: MeshSource, primvar: Any, code: float, width: int) -> np.ndarray | None:
    """Return the values of a primvar at the corners of its mesh as the file has them, before placement."""
    held = primvar.ComputeFlattened(code)
    if held is None:
        return None
    values = of_kind(primvar.GetAttr(), np.asarray(held), code, width)
    return _at_corners(source, values, str(primvar.GetInterpolation()), primvar.GetPrimvarName(), code)


def _normals(source: MeshSource, primvar: Any, code: float) -> np.ndarray | None:
    if primvar and primvar.HasAuthoredValue():
        return _of_primvar(source, primvar, code, 3)
    values = vectors(source.mesh.GetNormalsAttr(), code)
    return _at_corners(source, values, str(source.mesh.GetNormalsInterpolation()), "normals", code) if len(values) else None


def _at_corners(source: MeshSource, values: np.ndarray, interpolation: str, name: str, code: float) -> np.ndarray | None:
    """Return values at the corners that `MeshSource.polygons` has."""
    values = values.astype(np.float64)
    points = len(source.file_points(code))
    if interpolation in ("vertex", "varying"):
        _refuse_unless(source, name, interpolation, len(values), points)
        _, _, indices = source.polygons(code)
        return np.asarray(source.refined(values, code)[indices])
    if interpolation == "constant":
        return np.repeat(values[:1], len(source.polygons(code)[2]), axis=0) if len(values) else None
    if source.scheme:
        return None
    counts, indices = source.file_faces(code)
    if interpolation == "uniform":
        _refuse_unless(source, name, interpolation, len(values), len(counts))
        values = np.repeat(values, counts, axis=0)
    _refuse_unless(source, name, interpolation, len(values), len(indices))
    holes = whole_numbers(source.mesh.GetHoleIndicesAttr(), code)
    return values[np.repeat(~np.isin(np.arange(len(counts)), holes), counts)]


def _refuse_unless(source: MeshSource, name: str, interpolation: str, given: int, wanted: int) -> None:
    if given != wanted:
        raise InputError(f"{source.where}: '{name}' is {interpolation} and has {given} values for {wanted}; export it again")


def _placed(source: MeshSource, values: np.ndarray, matrix: np.ndarray, code: float) -> np.ndarray:
    """Return values in the order of corners in which `StageMeshes.topology` walks the faces of one placement."""
    turned = (np.linalg.det(matrix[:3, :3]) < 0.0) != source.left_handed(code)
    _, counts, indices = source.polygons(code)
    return values[reversed_faces(counts, np.arange(len(indices)))] if turned else values


def _turned(normals: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return normals that go with points by a matrix (3, 3), of length 1."""
    moved = normals @ np.linalg.inv(matrix)
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300))
