"""Meshes as UsdGeomMesh: one frame into a layer; the topology may change from frame to frame."""

from __future__ import annotations

import dataclasses

import numpy as np
from pxr import Sdf, Tf, Vt

from mpm_nodes.data import Mesh, OutputError
from mpm_nodes.materials.looks import looks_of
from usd_io.layers import LOOKS_KEY, set_sample, unique_name
from usd_io.points import add_primvars, extent_of

__all__ = ["add_mesh", "add_mesh_per_material", "face_materials"]


def add_mesh(layer: Sdf.Layer, path: str, mesh: Mesh, frame: int | None) -> Vt.Vec3fArray:
    """Define a Mesh prim at `path` of `layer`, with every value as a time sample at `frame`, or for all times.

    Args:
        layer: The frame's layer.
        path: Prim path.
        mesh: Points [m], faces, and whatever it carries: normals, velocities [m/s], point attributes as primvars.
        frame: Time code of the samples; None for a mesh that stands still.

    Returns:
        Vt.Vec3fArray: Extent of the points.

    Raises:
        OutputError: Counts and indices that do not fit together (readers crash on them), or non-finite values.
    """
    counts, indices = np.asarray(mesh.counts, np.int32), np.asarray(mesh.indices, np.int32)
    points = np.asarray(mesh.points, np.float32).reshape(-1, 3)
    _check(path, points, counts, indices)
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Mesh"
    scheme = Sdf.AttributeSpec(prim, "subdivisionScheme", Sdf.ValueTypeNames.Token, Sdf.VariabilityUniform)
    scheme.default = "none"
    set_sample(prim, "points", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray.FromNumpy(points), frame)
    set_sample(prim, "faceVertexCounts", Sdf.ValueTypeNames.IntArray, Vt.IntArray.FromNumpy(counts), frame)
    set_sample(prim, "faceVertexIndices", Sdf.ValueTypeNames.IntArray, Vt.IntArray.FromNumpy(indices), frame)
    extent = extent_of(points)
    set_sample(prim, "extent", Sdf.ValueTypeNames.Float3Array, extent, frame)
    if mesh.normals is not None:
        a_corner = len(mesh.normals) == len(indices) != len(points)
        normals = _one_each(path, "normals", np.asarray(mesh.normals, np.float32), indices if a_corner else points)
        kind = "faceVarying" if a_corner else "vertex"
        set_sample(prim, "normals", Sdf.ValueTypeNames.Normal3fArray, Vt.Vec3fArray.FromNumpy(normals), frame, kind)
    if mesh.velocities is not None:
        velocities = _one_each(path, "velocities", np.asarray(mesh.velocities, np.float32), points)
        set_sample(prim, "velocities", Sdf.ValueTypeNames.Vector3fArray, Vt.Vec3fArray.FromNumpy(velocities), frame)
    for name, column in mesh.attributes.items():
        column = np.asarray(column)
        column = column.astype(np.float32) if column.dtype.kind == "f" else column
        add_primvars(prim, name, _one_each(path, name, column, points), frame)
    for name, column in mesh.corners.items():
        _add_corners(prim, name, _one_each(path, name, np.asarray(column, np.float32), indices), frame)
    _tell_volume(prim, mesh, frame)
    if mesh.materials:
        prim.customData = {LOOKS_KEY: " ".join(looks_of(mesh.materials))}
    if len(mesh.materials) > 1 and "material" in mesh.attributes:
        _add_parts(prim, mesh, frame)
    return extent


def add_mesh_per_material(layer: Sdf.Layer, path: str, mesh: Mesh, frame: int, taken: set[str]) -> Vt.Vec3fArray:
    """Define an Xform at `path` with a Mesh prim below it for each material, whose borders meet point by point.

    Args:
        layer: The frame's layer.
        path: Of the Xform; names of the meshes begin with its own.
        mesh: As `add_mesh` takes it, with several materials and the attribute `material`.
        frame: Time code of the samples.
        taken: Names of prims that are not free; those of the meshes are added.

    Returns:
        Vt.Vec3fArray: Extent of all points.

    Raises:
        OutputError: As `add_mesh`.
    """
    whole = Sdf.CreatePrimInLayer(layer, path)
    whole.specifier, whole.typeName = Sdf.SpecifierDef, "Xform"
    _tell_volume(whole, mesh, frame)
    owner = face_materials(mesh)
    for index, material in enumerate(mesh.materials):
        name = unique_name(f"{whole.name}_{material.label or material.law}", taken)
        part = dataclasses.replace(_faces_of(mesh, owner == index), materials=(material,), matter_volume=None)
        add_mesh(layer, f"{path}/{name}", part, frame)
    return extent_of(np.asarray(mesh.points, np.float32).reshape(-1, 3))


def _add_corners(prim: Sdf.PrimSpec, name: str, values: np.ndarray, frame: int | None) -> None:
    """Store an attribute of corners: pairs of numbers are texture coordinates."""
    name = f"primvars:{Tf.MakeValidIdentifier(name)}"
    if values.ndim == 2:
        set_sample(prim, name, Sdf.ValueTypeNames.TexCoord2fArray, Vt.Vec2fArray.FromNumpy(values), frame, "faceVarying")
    else:
        set_sample(prim, name, Sdf.ValueTypeNames.FloatArray, Vt.FloatArray.FromNumpy(values), frame, "faceVarying")


def _faces_of(mesh: Mesh, chosen: np.ndarray) -> Mesh:
    """Return the mesh with the chosen faces alone, shape (faces,), and the points that they have."""
    corners = np.repeat(chosen, mesh.counts)
    points, indices = np.unique(np.asarray(mesh.indices)[corners], return_inverse=True)
    normals = mesh.normals
    if normals is not None:
        normals = normals[points] if len(normals) == len(mesh.points) else normals[corners]
    return dataclasses.replace(
        mesh,
        points=np.asarray(mesh.points)[points],
        counts=np.asarray(mesh.counts)[chosen],
        indices=indices.astype(np.int32).ravel(),
        normals=normals,
        velocities=None if mesh.velocities is None else mesh.velocities[points],
        attributes={name: column[points] for name, column in mesh.attributes.items()},
        corners={name: column[corners] for name, column in mesh.corners.items()},
    )


def _tell_volume(prim: Sdf.PrimSpec, mesh: Mesh, frame: int | None) -> None:
    """Say what volume the particles have that a surface wraps, where it tells so."""
    if mesh.matter_volume is not None:
        set_sample(prim, "mpm:matter_volume", Sdf.ValueTypeNames.Double, float(mesh.matter_volume), frame, custom=True)


def _add_parts(prim: Sdf.PrimSpec, mesh: Mesh, frame: int | None) -> None:
    """Define the faces of each material as a subset, in the order of the materials: what most corners of a face are of."""
    owner = face_materials(mesh)
    taken: set[str] = set()
    for index, material in enumerate(mesh.materials):
        name = unique_name(f"{prim.name}_{material.label or material.law}", taken)
        part = Sdf.CreatePrimInLayer(prim.layer, prim.path.AppendChild(name))
        part.specifier, part.typeName = Sdf.SpecifierDef, "GeomSubset"
        for fact, value in {"elementType": "face", "familyName": "materialBind"}.items():
            Sdf.AttributeSpec(part, fact, Sdf.ValueTypeNames.Token, Sdf.VariabilityUniform).default = value
        faces = np.flatnonzero(owner == index).astype(np.int32)
        set_sample(part, "indices", Sdf.ValueTypeNames.IntArray, Vt.IntArray.FromNumpy(faces), frame)


def face_materials(mesh: Mesh) -> np.ndarray:
    """Return the material of each face, shape (faces,): that of most of its corners, of equally many the first."""
    counts = np.asarray(mesh.counts, np.int64)
    corners = np.asarray(mesh.attributes["material"])[mesh.indices]
    face = np.repeat(np.arange(len(counts)), counts)
    votes = np.zeros((len(counts), len(mesh.materials)), np.int32)
    np.add.at(votes, (face, corners), 1)
    return votes.argmax(axis=1)


def _check(path: str, points: np.ndarray, counts: np.ndarray, indices: np.ndarray) -> None:
    if counts.sum() != len(indices) or (counts < 3).any():
        raise OutputError(
            f"{path}: face counts add up to {counts.sum()} for {len(indices)} indices, least count "
            f"{counts.min(initial=3)}; every face needs three or more points: find the node that made it"
        )
    if len(indices) and not (indices.min() >= 0 and indices.max() < len(points)):
        raise OutputError(
            f"{path}: point indices from {indices.min()} to {indices.max()} for {len(points)} points; "
            "find the node that made the mesh"
        )
    if not np.isfinite(points).all():
        raise OutputError(f"{path}: points hold NaN or infinite values; find the node that made the mesh")


def _one_each(path: str, name: str, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    if len(values) != len(points) or (values.dtype.kind == "f" and not np.isfinite(values).all()):
        raise OutputError(
            f"{path}: {name} has {len(values)} values for {len(points)} points, or some that are not "
            "finite; find the node that made the mesh"
        )
    return np.ascontiguousarray(values)
