"""One mesh of a stage as its file holds it: points, polygons, what moves it and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from usd_io.instancing import instances, inverse_above
from usd_io.intact import refuse_damaged
from usd_io.skeletons import SkinnedMesh
from usd_io.subdivision import Cage, Refinement, refine, refined_corners
from usd_io.typed import numbers, vectors, whole_numbers

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
    _refined: dict[str, tuple[tuple[bytes, ...], Refinement]] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"{self.stage}: mesh {self.mesh.GetPath()}"

    def points(self, code: float) -> np.ndarray:
        """Return the points before `placement` at a time code, shape (n, 3), float64."""
        held = self.file_points(code)
        if self.skin and len(held):
            held = np.array(self.skin.points(self.where, held, code), np.float64).reshape(-1, 3)
        return self.refined(held, code)

    def file_points(self, code: float) -> np.ndarray:
        """Return the points as the file has them at a time code; a damaged frame of a cache of ours is refused before."""
        refuse_damaged(self.mesh.GetPrim(), code)
        return vectors(self.mesh.GetPointsAttr(), code)

    def placed(self, code: float, to_si: np.ndarray) -> list[np.ndarray]:
        """Return the points [m] of every copy at a time code, each of shape (n, 3).

        Raises:
            InputError: A point is not finite, or the faces have no area.
        """
        local, parts = self.points(code), []
        if not np.isfinite(local).all():
            bad = int(np.flatnonzero(~np.isfinite(local).all(axis=1))[0])
            raise InputError(f"{self.where}: points hold NaN or infinity at time code {code:g} (point {bad}); export it again")
        for matrix in self.placement(code):
            full = to_si @ matrix
            parts.append(local @ full[:3, :3].T + full[:3, 3])
            if not np.isfinite(parts[-1]).all():
                raise InputError(f"{self.where}: its transform holds NaN or infinity at time code {code:g}; export it again")
        if len(local) and parts:
            # an instancer hides a copy by a scale of 0
            self._refuse_flat(local if self.instanced else parts[0], code)
        return parts

    def _refuse_flat(self, points: np.ndarray, code: float) -> None:
        """Raise `InputError` where no face has an area: nothing would be left of the mesh, among others without a word."""
        from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

        _, counts, indices = self.polygons(code)
        points = points / max(float(np.abs(points).max()), 1e-300)  # so that no square of it overflows
        least = 1e-14 * float(np.ptp(points, axis=0).max()) ** 2
        for faces in (64, len(counts)):  # the first ones settle it as a rule
            a, b, c = points[triangulate(counts[:faces], indices[: counts[:faces].sum()])[0]].transpose(1, 0, 2)
            if (np.linalg.norm(np.cross(b - a, c - a), axis=1) > least).any():
                return
        what = f"its {len(counts)} faces have no area" if len(counts) else f"has {len(points)} points and no faces"
        why = " (all on a line or in a point, or a scale of 0)" if len(counts) else ""
        raise InputError(
            f"{self.where}: {what} at time code {code:g}{why}; give it a surface, make it invisible, or name a prim without it"
        )

    def polygons(self, code: float) -> tuple[int, np.ndarray, np.ndarray]:
        """Return number of points, face counts and indices at a time code, without its hole faces."""
        points = len(self.file_points(code))
        counts, indices = self.file_faces(code)
        parents = np.arange(len(counts))
        if self.scheme and len(counts):
            finer = self._refinement(points, counts, indices, code)
            points, counts, indices, parents = finer.points, finer.counts, finer.indices, finer.parents
        holes = whole_numbers(self.mesh.GetHoleIndicesAttr(), code)
        if len(holes):
            keep = ~np.isin(parents, holes)
            indices, counts = indices[np.repeat(keep, counts)], counts[keep]
        return points, counts, indices

    def file_faces(self, code: float) -> tuple[np.ndarray, np.ndarray]:
        """Return face counts and indices as the file has them at a time code."""
        points = len(self.file_points(code))
        counts, indices = (
            whole_numbers(each, code) for each in (self.mesh.GetFaceVertexCountsAttr(), self.mesh.GetFaceVertexIndicesAttr())
        )
        if (counts < 0).any() or counts.sum() != len(indices):
            raise InputError(f"{self.where}: {len(indices)} indices for faces of {counts.sum()} corners; export it again")
        if len(indices) and (indices.min() < 0 or indices.max() >= points):
            raise InputError(f"{self.where}: a face index lies outside its {points} points; export it again")
        return counts, indices

    @property
    def scheme(self) -> str:
        """Subdivision scheme that smooths the mesh, or "": it counts where the file says it, not as the fallback of the format."""
        held = self.mesh.GetSubdivisionSchemeAttr()
        name = str(held.Get()) if held.HasAuthoredValue() else ""
        return name if name in ("catmullClark", "loop") else ""

    def refined(self, values: np.ndarray, code: float) -> np.ndarray:
        """Return values at the points that `points` has from values at those of the file, shape (n, ...)."""
        if not self.scheme:
            return values
        counts, indices = self.file_faces(code)
        return self._refinement(len(values), counts, indices, code)(values) if len(counts) else values

    def at_corners(self, values: np.ndarray, interpolation: str, code: float) -> np.ndarray | None:
        """Return values of a primvar at the corners that `polygons` lists, None where they do not fit the mesh.

        Args:
            values: As the file has them, shape (n, ...).
            interpolation: What they belong to, as USD calls it.
            code: Time code.
        """
        counts, indices = self.file_faces(code)
        points = len(self.file_points(code))
        wanted = {"uniform": len(counts), "faceVarying": len(indices), "constant": 1}.get(interpolation, points)
        if len(values) != wanted:
            return None
        if interpolation == "vertex":
            return self.refined(values, code)[self.polygons(code)[2]]
        given = {"constant": np.zeros(len(indices), int), "uniform": np.repeat(np.arange(len(counts)), counts), "varying": indices}
        corners = values[given[interpolation]] if interpolation in given else values
        parents = np.arange(len(counts))
        if self.scheme and len(counts):
            finer = self._refinement(points, counts, indices, code)
            corners = refined_corners(counts, corners, len(finer.steps), self.scheme == "loop")
            counts, parents = finer.counts, finer.parents
        holes = whole_numbers(self.mesh.GetHoleIndicesAttr(), code)
        return corners[np.repeat(~np.isin(parents, holes), counts)]

    def _refinement(self, points: int, counts: np.ndarray, indices: np.ndarray, code: float) -> Refinement:
        """Return the refinement of a subdivision surface; the last one is kept.

        Raises:
            InputError: The faces do not fit the scheme, or the creases the points.
        """
        mesh = self.mesh
        if self.scheme == "loop" and (counts != 3).any():
            raise InputError(
                f"{self.where}: subdivisionScheme is loop, which takes triangles, and faces have up to {counts.max()} corners; "
                "export triangles, or take catmullClark or none"
            )
        rule = str(mesh.GetInterpolateBoundaryAttr().Get(code))
        chains, lengths, corners = (
            whole_numbers(each, code)
            for each in (mesh.GetCreaseIndicesAttr(), mesh.GetCreaseLengthsAttr(), mesh.GetCornerIndicesAttr())
        )
        crease, corner = (_reals(each, code) for each in (mesh.GetCreaseSharpnessesAttr(), mesh.GetCornerSharpnessesAttr()))
        key = (str(points).encode(), rule.encode(), *(each.tobytes() for each in (counts, indices, chains, lengths, crease)))
        key = (*key, corners.tobytes(), corner.tobytes())
        if "last" not in self._refined or self._refined["last"][0] != key:
            named = np.concatenate([chains, corners])
            fits = (lengths >= 2).all() and lengths.sum() == len(chains) and len(crease) in (len(lengths), (lengths - 1).sum())
            if not fits or len(corner) != len(corners) or ((named < 0) | (named >= points)).any():
                raise InputError(f"{self.where}: its creases or corners do not fit its {points} points; export it again")
            starts = np.delete(np.arange(len(chains)), np.cumsum(lengths) - 1)
            each = np.repeat(crease, lengths - 1) if len(crease) == len(lengths) else crease
            sharpness = np.zeros(points)
            sharpness[corners] = corner
            cage = Cage(points, counts, indices, np.stack([chains[starts], chains[starts + 1]], axis=1), each, sharpness)
            self._refined["last"] = key, refine(cage, self.scheme == "loop", rule != "edgeOnly")
        return self._refined["last"][1]

    def left_handed(self, code: float) -> bool:
        """Whether faces are listed clockwise seen from outside."""
        from pxr import UsdGeom

        return bool(self.mesh.GetOrientationAttr().Get(code) == UsdGeom.Tokens.leftHanded)

    def attributes(self) -> tuple[Any, ...]:
        """Return the attributes of the mesh that its shape comes from; what its skin reads is not among them."""
        mesh = self.mesh
        faces = (mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr(), mesh.GetHoleIndicesAttr())
        smooth = (
            mesh.GetSubdivisionSchemeAttr(),
            mesh.GetInterpolateBoundaryAttr(),
            mesh.GetCreaseIndicesAttr(),
            mesh.GetCreaseLengthsAttr(),
            mesh.GetCreaseSharpnessesAttr(),
            mesh.GetCornerIndicesAttr(),
            mesh.GetCornerSharpnessesAttr(),
        )
        return (mesh.GetPointsAttr(), *faces, mesh.GetOrientationAttr(), *(smooth if self.scheme else ()))

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


def inverse(where: str, matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a transform (4, 4).

    Raises:
        InputError: It has none.
    """
    if not (np.isfinite(matrix).all() and np.linalg.det(matrix)):
        raise InputError(f"{where}: its transform has a scale of 0 or is not finite; give every axis a scale, or make it invisible")
    return np.linalg.inv(matrix)


def _reals(attribute: Any, code: float) -> np.ndarray:
    found = numbers(attribute, code)
    return np.zeros(0) if found is None else found.astype(np.float64)


def own_placement(prim: Any) -> InstanceMatrices:
    """Return where a prim stands by itself."""
    return lambda code: [_local_to_world(prim, code)]


def _local_to_world(prim: Any, code: float) -> np.ndarray:
    """Return the matrix (4, 4), for column vectors, from a prim's space to the stage's."""
    from pxr import UsdGeom

    return np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(code)).T


def instance_placement(instancer: Any, prototype: Any, number: int, prim: Any) -> InstanceMatrices:
    """Return where a point instancer puts the copies of a prim below prototype `number`."""

    def placement(code: float) -> list[np.ndarray]:
        which, moves = instances(instancer, code)
        world = np.array(instancer.ComputeLocalToWorldTransform(code)).T
        inner = inverse_above(prototype, code) @ _local_to_world(prim, code)
        return [world @ np.array(move).T @ inner for move, kind in zip(moves, which, strict=True) if kind == number]

    return placement


def reversed_faces(counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return indices with every face walked the other way."""
    ends = np.cumsum(counts)
    starts = ends - counts
    within = np.arange(len(indices)) - np.repeat(starts, counts)
    return indices[np.repeat(ends, counts) - 1 - within]
