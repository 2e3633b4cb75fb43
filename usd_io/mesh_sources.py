"""One mesh of a stage as its file holds it: points, polygons, what moves it and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from usd_io.skeletons import SkinnedMesh

InstanceMatrices = Callable[[float], list[np.ndarray]]
"""Matrices (4, 4) from a mesh's points to the stage at a time code: one, or one per instance."""


@dataclass(frozen=True, eq=False)
class MeshSource:
    """One Mesh prim and where it stands.

    Attributes:
        stage: What messages call the stage.
        mesh: The `UsdGeom.Mesh`.
        placement: Where its points go.
        instanced: Whether a point instancer copies it.
        skin: What deforms it, or None.
    """

    stage: str
    mesh: Any
    placement: InstanceMatrices
    instanced: bool = False
    skin: SkinnedMesh | None = None

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"{self.stage}: mesh {self.mesh.GetPath()}"

    def points(self, code: float) -> np.ndarray:
        """Return the points before `placement` at a time code, shape (n, 3), float64."""
        held = self.mesh.GetPointsAttr().Get(code)
        if self.skin and held:
            held = self.skin.points(self.where, held, code)
        return np.array(held or np.zeros((0, 3)), np.float64).reshape(-1, 3)

    def polygons(self, code: float) -> tuple[int, np.ndarray, np.ndarray]:
        """Return number of points, face counts and indices at a time code, without its hole faces."""
        points = len(self.mesh.GetPointsAttr().Get(code) or ())
        counts = np.array(self.mesh.GetFaceVertexCountsAttr().Get(code) or (), np.int64)
        indices = np.array(self.mesh.GetFaceVertexIndicesAttr().Get(code) or (), np.int64)
        if (counts < 0).any() or counts.sum() != len(indices):
            raise InputError(f"{self.where}: {len(indices)} indices for faces of {counts.sum()} corners; export it again")
        if len(indices) and (indices.min() < 0 or indices.max() >= points):
            raise InputError(f"{self.where}: a face index lies outside its {points} points; export it again")
        holes = np.array(self.mesh.GetHoleIndicesAttr().Get(code) or (), np.int64)
        if len(holes):
            keep = np.ones(len(counts), bool)
            keep[holes[(holes >= 0) & (holes < len(counts))]] = False
            indices, counts = indices[np.repeat(keep, counts)], counts[keep]
        return points, counts, indices

    def left_handed(self, code: float) -> bool:
        """Whether faces are listed clockwise seen from outside."""
        from pxr import UsdGeom

        return bool(self.mesh.GetOrientationAttr().Get(code) == UsdGeom.Tokens.leftHanded)

    def attributes(self) -> tuple[Any, ...]:
        """Return the attributes of the mesh that its shape comes from; what its skin reads is not among them."""
        mesh = self.mesh
        faces = (mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr(), mesh.GetHoleIndicesAttr())
        return (mesh.GetPointsAttr(), *faces, mesh.GetOrientationAttr())

    def varies(self) -> bool:
        """Whether points or polygons may change with time."""
        return any(each.ValueMightBeTimeVarying() for each in self.attributes()[:3]) or bool(self.skin and self.skin.varies())

    def samples(self) -> set[float]:
        """Return the time codes at which points, skin or any transform above has samples."""
        from pxr import UsdGeom

        codes = set(self.mesh.GetPointsAttr().GetTimeSamples()) | (self.skin.samples() if self.skin else set())
        prim = self.skin.space if self.skin else self.mesh.GetPrim()
        while prim and not prim.IsPseudoRoot():
            if prim.IsA(UsdGeom.Xformable):
                codes.update(UsdGeom.Xformable(prim).GetTimeSamples())
            prim = prim.GetParent()
        return codes


def own_placement(prim: Any) -> InstanceMatrices:
    """Return where a prim stands by itself."""
    return lambda code: [_local_to_world(prim, code)]


def _local_to_world(prim: Any, code: float) -> np.ndarray:
    """Return the matrix (4, 4), for column vectors, from a prim's space to the stage's."""
    from pxr import UsdGeom

    return np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(code)).T


def instance_placement(instancer: Any, prototype: Any, number: int, prim: Any) -> InstanceMatrices:
    """Return where a point instancer puts the copies of a prim below prototype `number`."""
    from pxr import UsdGeom

    def placement(code: float) -> list[np.ndarray]:
        which = np.array(instancer.GetProtoIndicesAttr().Get(code) or (), np.int64)
        moves = instancer.ComputeInstanceTransformsAtTime(
            code, code, UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
        )
        world = np.array(instancer.ComputeLocalToWorldTransform(code)).T
        top = UsdGeom.Xformable(prototype)
        above = np.array(top.ComputeLocalToWorldTransform(code)).T if top else np.eye(4)
        inner = np.linalg.inv(above) @ _local_to_world(prim, code)
        return [world @ np.array(move).T @ inner for move, kind in zip(moves, which, strict=True) if kind == number]

    return placement


def reversed_faces(counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return indices with every face walked the other way."""
    ends = np.cumsum(counts)
    starts = ends - counts
    within = np.arange(len(indices)) - np.repeat(starts, counts)
    return indices[np.repeat(ends, counts) - 1 - within]
