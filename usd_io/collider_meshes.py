"""Meshes of a USD stage as moving geometry in SI units: still, moved as a rigid body, or deforming.

A prim, or everything below it, is read as one mesh: references, native instances and point instancers are followed,
skeletons and blend shapes deform meshes, polygons stay polygons, surfaces that say to be Catmull-Clark or Loop are subdivided,
guides, proxies and invisible prims are left out.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from mpm_nodes import reads
from mpm_nodes.data import InputError
from mpm_nodes.regular_files import check_regular
from usd_io import reading_usd, usd_reason
from usd_io.dependencies import checked_layers
from usd_io.formats import refuse_unless_usd
from usd_io.mesh_sources import MeshSource, instance_placement, inverse, own_placement, reversed_faces
from usd_io.skeletons import SkinnedMeshes
from usd_io.typed import of_kind, vectors
from usd_io.units import stage_to_si

P = ParamSpec("P")
R = TypeVar("R")


def _told(method: Callable[Concatenate[StageMeshes, P], R]) -> Callable[Concatenate[StageMeshes, P], R]:
    """Have a method tell of damage in our words."""

    @functools.wraps(method)
    def reading(self: StageMeshes, *arguments: P.args, **named: P.kwargs) -> R:
        with reading_usd(self.name):
            return method(self, *arguments, **named)

    return reading


@dataclass(frozen=True)
class Topology:
    """Polygons of all meshes, joined.

    Attributes:
        counts: Vertices of each face, shape (faces,), int32.
        indices: Point indices, counter-clockwise seen from outside, shape (counts.sum(),), int32.
        digest: Equal for equal topologies.
    """

    counts: np.ndarray
    indices: np.ndarray
    digest: str


class StageMeshes:
    """The meshes at or below one prim of a stage.

    Args:
        path: File that USD can open.
        prim: Prim path, or the name of a prim when only one has it; empty for the whole stage.

    Attributes:
        stage: The open stage.
        name: What messages call it.

    Raises:
        InputError: The file is missing or damaged, the prim is not there, or there is no mesh.
    """

    def __init__(self, path: str | Path, prim: str = "") -> None:
        from pxr import Tf, Usd

        path = Path(path)
        check_regular(path, "give the path of a USD file")
        refuse_unless_usd(path)
        held = checked_layers(path)
        try:
            with reads.reading(path):
                self.stage = Usd.Stage.Open(str(path))
        except Tf.ErrorException as error:
            raise InputError(f"{path}: cannot be opened as USD ({usd_reason(error)}); export it again") from None
        del held  # what the stage needs of them it holds itself
        with reading_usd(path):
            _read_again(self.stage)
            root = self._root(path, prim)
            self.name = f"{path.name}:{root.GetPath()}"
            self.to_si = stage_to_si(self.stage)
            self.sources = tuple(self._sources(root))
        if not self.sources:
            raise InputError(
                f"{self.name}: there is no mesh at or below this prim; give a prim that holds one "
                f"({_some([str(p.GetPath()) for p in self._meshes(self.stage.GetPseudoRoot())])})"
            )

    def _root(self, path: Path, prim: str) -> Any:
        from pxr import Sdf

        if not prim:
            return self.stage.GetPseudoRoot()
        if prim.startswith("/") and Sdf.Path.IsValidPathString(prim):
            found = self.stage.GetPrimAtPath(prim)
            if found:
                return found
        same = [p for p in self.stage.Traverse() if p.GetName() == prim]
        if len(same) != 1:
            what = "is not in this stage" if not same else f"is the name of {len(same)} prims"
            raise InputError(
                f"{path}: prim '{prim}' {what}; meshes there: "
                f"{_some([str(p.GetPath()) for p in self._meshes(self.stage.GetPseudoRoot())])}"
            )
        return same[0]

    def _meshes(self, root: Any) -> list[Any]:
        from pxr import Usd, UsdGeom

        return [p for p in Usd.PrimRange(root, Usd.TraverseInstanceProxies()) if p.IsA(UsdGeom.Mesh)]

    def _sources(self, root: Any) -> list[MeshSource]:
        from pxr import Usd, UsdGeom

        found: list[MeshSource] = []
        skins = SkinnedMeshes()
        walk = iter(Usd.PrimRange(root, Usd.TraverseInstanceProxies()))
        for prim in walk:
            if prim.IsA(UsdGeom.PointInstancer):
                found.extend(self._instances(UsdGeom.PointInstancer(prim), skins))
                walk.PruneChildren()
            elif prim.IsA(UsdGeom.Mesh) and _counts(prim):
                skin = skins.of(prim)
                found.append(MeshSource(self.name, UsdGeom.Mesh(prim), own_placement(skin.space if skin else prim), skin=skin))
        return found

    def _instances(self, instancer: Any, skins: SkinnedMeshes) -> list[MeshSource]:
        from pxr import Usd, UsdGeom

        found = []
        for number, target in enumerate(instancer.GetPrototypesRel().GetTargets()):
            prototype = self.stage.GetPrimAtPath(target)
            for prim in Usd.PrimRange(prototype, Usd.TraverseInstanceProxies()) if prototype else ():
                if prim.IsA(UsdGeom.Mesh):
                    skin = skins.of(prim)
                    placement = instance_placement(instancer, prototype, number, skin.space if skin else prim)
                    found.append(MeshSource(self.name, UsdGeom.Mesh(prim), placement, True, skin))
        return found

    # ---------------------------------------------------------------- at a time
    @_told
    def topology(self, code: float) -> Topology:
        """Return the joined polygons at a time code."""
        counts: list[np.ndarray] = []
        indices: list[np.ndarray] = []
        base = 0
        for source in self.sources:
            points, here, there = source.polygons(code)
            for matrix in source.placement(code):
                turned = (np.linalg.det(matrix[:3, :3]) < 0.0) != source.left_handed(code)
                counts.append(here)
                indices.append((reversed_faces(here, there) if turned else there) + base)
                base += points
        faces, corners = (np.concatenate([*part, np.zeros(0)]).astype(np.int32) for part in (counts, indices))
        digest = hashlib.sha256(faces.tobytes() + corners.tobytes() + str(base).encode()).hexdigest()
        return Topology(faces, corners, digest)

    @_told
    def points(self, code: float) -> np.ndarray:
        """Return all points [m], Y up, at a time code, shape (n, 3), float64."""
        return np.concatenate([part for source in self.sources for part in source.placed(code, self.to_si)] or [np.zeros((0, 3))])

    @_told
    def by_point(self, primvar: str, code: float) -> bool:
        """Return whether a primvar has one value for all or belongs to points, on every mesh, and not to faces or their corners.

        Raises:
            InputError: A mesh has no such primvar.
        """
        found = [_of_primvar(source, primvar, code) for source in self.sources]
        return all(len(given) == 1 or interpolation not in ("faceVarying", "uniform") for given, interpolation in found)

    @_told
    def values(self, primvar: str, code: float) -> np.ndarray:
        """Return the values of a primvar at all points at a time code, shape (n,), float64.

        Raises:
            InputError: A mesh has no such primvar, or neither one value nor one a point.
        """
        parts = []
        for source in self.sources:
            given, _ = _of_primvar(source, primvar, code)
            points = len(vectors(source.mesh.GetPointsAttr(), code))
            if len(given) not in (1, points):
                raise InputError(
                    f"{source.where}: primvar '{primvar}' has {len(given)} values for {points} points; write one a point, or one"
                )
            parts += [source.refined(np.broadcast_to(given, points), code)] * len(source.placement(code))
        return np.concatenate([*parts, np.zeros(0)])

    @_told
    def corner_values(self, primvar: str, code: float, width: int) -> np.ndarray:
        """Return the values of a primvar at the corners of all faces of `topology` at a time code, shape (corners, width), float64.

        All interpolations of USD are known. On subdivision surfaces those by corner stay straight within the faces of the cage.

        Args:
            primvar: Its name.
            code: Time code.
            width: Numbers of each value.

        Raises:
            InputError: A mesh has no such primvar, or as many values as it has neither points, corners nor faces.
        """
        parts = [np.zeros((0, width))]
        for source in self.sources:
            given, interpolation = _of_primvar(source, primvar, code, width)
            values = source.at_corners(given, interpolation, code)
            if values is None:
                raise InputError(
                    f"{source.where}: primvar '{primvar}' is {interpolation}, and its {len(given)} values do not fit the mesh; "
                    "export it again"
                )
            if not np.isfinite(values).all():
                raise InputError(
                    f"{source.where}: primvar '{primvar}' holds NaN or infinity at time code {code:g}; export it again"
                )
            _, counts, _ = source.polygons(code)
            for matrix in source.placement(code):
                turned = (np.linalg.det(matrix[:3, :3]) < 0.0) != source.left_handed(code)
                parts.append(values[reversed_faces(counts, np.arange(len(values)))] if turned else values)
        return np.concatenate(parts)

    # ---------------------------------------------------------------- what was read
    @_told
    def digest(self, codes: Sequence[float], poses: Sequence[float] = (), primvar: str = "") -> str:
        """Return a digest of the meshes at some time codes: while it is equal, so is what a reader of those codes gets.

        That anything moves or changes its shape at any time counts too, since it decides how meshes are taken.

        Args:
            codes: Time codes at which everything counts.
            poses: Time codes at which the transforms count.
            primvar: A primvar that counts as well; "" for none.
        """
        from pxr import UsdGeom

        told = hashlib.sha256(repr((self.to_si.tolist(), self.deforms(), self.stands_still(), primvar)).encode())
        for source in self.sources:
            found = UsdGeom.PrimvarsAPI(source.mesh.GetPrim()).FindPrimvarWithInheritance(primvar) if primvar else None
            values = (found.GetAttr(), found.GetIndicesAttr()) if found else ()
            for attribute in (*source.attributes(), *values):
                for code in codes[: None if attribute.ValueMightBeTimeVarying() else 1]:
                    reads.go_on()
                    held = np.asarray(attribute.Get(code))
                    told.update(f"{held.dtype}{held.shape}".encode())
                    told.update(held.tobytes() if held.dtype != object else repr(held).encode())
            if source.skin:
                for code in codes:
                    told.update(source.points(code).tobytes())
            for code in (*codes, *poses):
                told.update(np.array(source.placement(code)).tobytes())
        return told.hexdigest()

    # ---------------------------------------------------------------- motion
    @_told
    def deforms(self) -> bool:
        """Whether points or topology are animated, or anything is instanced by points (its count may change)."""
        return any(source.instanced or source.varies() for source in self.sources)

    @_told
    def stands_still(self) -> bool:
        """Whether no mesh has a sample that could move or change it at any time."""
        return not self.deforms() and not self.authored_codes(-np.inf, np.inf)

    @_told
    def rigid_motion(self, reference: float, codes: Sequence[float]) -> list[np.ndarray] | None:
        """Return the rigid motions (4, 4) [m] that carry the points at code `reference` to each code, or None.

        None when points are animated, a scale is, or the parts move against each other.
        """
        if self.deforms():
            return None
        back = np.linalg.inv(self.to_si)
        motions = []
        rest = [inverse(source.where, source.placement(reference)[0]) for source in self.sources]
        for code in codes:
            moved = [
                self.to_si @ source.placement(code)[0] @ back_to_rest @ back
                for source, back_to_rest in zip(self.sources, rest, strict=True)
            ]
            first = moved[0]
            size = 1.0 + float(np.abs(first[:3, 3]).max())
            same = all(np.allclose(other, first, rtol=0.0, atol=1e-7 * size) for other in moved)
            if not same or not np.allclose(first[:3, :3] @ first[:3, :3].T, np.eye(3), atol=1e-5):
                return None
            motions.append(first)
        return motions

    @_told
    def way(self, reference: float, code: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the turn (3, 3) and shift [m] that carry the points at code `reference` to another code, None where none does.

        The points decide, whether transforms move them or their samples do: many programs write nothing but points. No point may be
        further off than 1e-4 of the mesh's size, which is more than single precision loses. The rotation that fits best is that of
        Kabsch, "A solution for the best rotation to relate two sets of vectors" (1976).
        """
        if self.stands_still():
            return np.eye(3), np.zeros(3)
        before, after = self.points(reference), self.points(code)
        if not len(before) or len(before) != len(after) or self.topology(reference).digest != self.topology(code).digest:
            return None
        middles = before.mean(axis=0), after.mean(axis=0)
        own, its = before - middles[0], after - middles[1]
        u, _, v = np.linalg.svd(its.T @ own)
        turn = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v
        if np.abs(own @ turn.T - its).max() > 1e-4 * np.ptp(before, axis=0).max():
            return None
        return turn, middles[1] - turn @ middles[0]

    @_told
    def authored_codes(self, first: float, last: float) -> list[float]:
        """Return the codes strictly between two where points, transforms or skeletons of any mesh have samples."""
        codes: set[float] = set()
        for source in self.sources:
            codes |= source.samples()
        return sorted(code for code in codes if first < code < last)


def _of_primvar(source: MeshSource, primvar: str, code: float, width: int = 0) -> tuple[np.ndarray, str]:
    """Return the values of a primvar of a mesh, one after the other, and its interpolation.

    Raises:
        InputError: The mesh has no such primvar, or one of another kind.
    """
    from pxr import UsdGeom

    primvars = UsdGeom.PrimvarsAPI(source.mesh.GetPrim())
    found = primvars.FindPrimvarWithInheritance(primvar)
    held = found.ComputeFlattened(code) if found else None
    if held is None:
        names = [each.GetPrimvarName() for each in primvars.GetPrimvarsWithAuthoredValues()]
        raise InputError(f"{source.where}: has no primvar '{primvar}'; it has {_some(names)}")
    array = np.atleast_1d(np.asarray(held))
    array = array.reshape(-1, width) if array.ndim == 1 and width in (1, array.size) else array
    return of_kind(found.GetAttr(), array, code, width).astype(np.float64), str(found.GetInterpolation())


def _read_again(stage: Any) -> None:
    """Read the files of a stage again where they have changed: others of this process may hold them as they were before."""
    for layer in stage.GetUsedLayers():
        if not (layer.anonymous or layer.dirty):
            layer.Reload()


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "") if paths else "none"


def _counts(prim: Any) -> bool:
    """Whether a mesh is meant to be seen by renders."""
    from pxr import UsdGeom

    imageable = UsdGeom.Imageable(prim)
    hidden = imageable.ComputePurpose() in (UsdGeom.Tokens.proxy, UsdGeom.Tokens.guide)
    return not hidden and imageable.ComputeVisibility() != UsdGeom.Tokens.invisible
