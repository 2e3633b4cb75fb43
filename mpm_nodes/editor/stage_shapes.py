"""Points and meshes of a cache's stage as arrays for a page that draws them: in metres, without what renderers need besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.preview.scene import Scene, fan_triangles, is_cloud, is_floor, is_surface, open_scene

__all__ = ["StageShapes"]


class StageShapes:
    """One opened stage.

    Attributes:
        path: Its file.
        stage: The stage.
        first: First frame.
        last: Last frame.
        fps: Frames a second.
    """

    def __init__(self, path: Path) -> None:
        self.scene: Scene = open_scene(path)
        self.path, self.stage = path, self.scene.stage
        self.first, self.last, self.fps = self.scene.first, self.scene.last, self.scene.fps
        self.numbers, self.attribute_names = self.scene.numbers, self.scene.attribute_names

    @property
    def is_points(self) -> Callable[[Any], bool]:
        """Whether a prim holds points."""
        return is_cloud

    @property
    def is_surface(self) -> Callable[[Any], bool]:
        """Whether a mesh was made from particles."""
        return is_surface

    def held(self) -> Iterator[Any]:
        """Yield the points, meshes and fields of volumes: of a cache of ours all forms, of others what is seen."""
        from pxr import Usd, UsdGeom, UsdVol

        every = self.scene.has_forms()
        for prim in self.stage.Traverse():
            mesh = prim.IsA(UsdGeom.Mesh)
            if not (mesh or is_cloud(prim) or prim.IsA(UsdVol.OpenVDBAsset)) or is_floor(prim):
                continue
            imageable = UsdGeom.Imageable(prim if prim.IsA(UsdGeom.Imageable) else prim.GetParent())
            shown = UsdGeom.Tokens.invisible != imageable.ComputeVisibility(Usd.TimeCode(self.first))
            if every or (shown and imageable.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)):
                yield prim

    def matrix(self, prim: Any, frame: float) -> np.ndarray:
        """Return the matrix from a prim's space to metres, shape (4, 4), for columns."""
        from pxr import Usd, UsdGeom

        inner = UsdGeom.XformCache(Usd.TimeCode(frame)).GetLocalToWorldTransform(prim)
        return self.scene.to_metres @ np.array(inner).T

    def points(self, path: str, frame: float) -> np.ndarray:
        """Return the points of a prim [m], shape (n, 3), in the precision that they are stored in.

        Raises:
            InputError: The frame's file is damaged.
        """
        from usd_io import reading_usd
        from usd_io.intact import refuse_damaged
        from usd_io.packing import unpacked

        prim = self.stage.GetPrimAtPath(path)
        with reading_usd(self.path):
            refuse_damaged(prim, frame)
            given = unpacked(prim, "points", frame)
            points = np.asarray(given if given is not None else [], None if given is not None else np.float32).reshape(-1, 3)
            matrix = self.matrix(prim, frame)
        if not (matrix == np.eye(4)).all():
            points = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        finite = np.isfinite(points.sum(axis=0)).all() or np.isfinite(points).all()
        return points if finite else np.where(np.isfinite(points), points, 0.0)

    def row(self, path: str, name: str, frame: float, index: int) -> float | list[float] | None:
        """Return the value of an attribute at one point, vectors as their parts; None where it has none."""
        from pxr import UsdGeom

        known, prim = ATTRIBUTES.get(name), self.stage.GetPrimAtPath(path)
        usd = known.usd if known is not None else f"primvars:{name}"
        if usd.startswith("primvars:"):
            primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar(usd.removeprefix("primvars:"))
            values = primvar.ComputeFlattened(frame) if primvar else None
        else:
            values = prim.GetAttribute(usd).Get(frame) if prim.GetAttribute(usd) else None
        if values is None or not len(values) or 1 < len(values) <= index:
            return None
        row = np.asarray(values[index if len(values) > 1 else 0], np.float64).ravel()
        return float(row[0]) if len(row) == 1 else row.tolist()

    def radius(self, prim: Any, frame: float) -> float:
        """Return the mean radius of a cloud's points [m]."""
        widths = np.asarray(prim.GetAttribute("widths").Get(frame) or [0.01], np.float32)
        return float(0.5 * widths.mean() * np.cbrt(abs(np.linalg.det(self.matrix(prim, frame)[:3, :3]))))

    def display_colours(self, prim: Any, frame: float) -> np.ndarray | None:
        """Return linear colours (n, 3) or (1, 3) of a prim, None where it has none."""
        from pxr import UsdGeom

        primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayColor")
        values = primvar.ComputeFlattened(frame) if primvar else None
        return np.asarray(values, np.float32).reshape(-1, 3) if values is not None and len(values) else None

    def mesh(self, path: str, frame: float) -> tuple[np.ndarray, np.ndarray, list[tuple[Any, int]]]:
        """Return points [m] (n, 3) and triangles (t, 3) of a mesh, and how many of these, in order, have the look of which prim."""
        from pxr import UsdGeom

        prim, points = self.stage.GetPrimAtPath(path), self.points(path, frame)
        mesh = UsdGeom.Mesh(prim)
        counts = np.asarray(mesh.GetFaceVertexCountsAttr().Get(frame) or [], np.int32)
        indices = np.asarray(mesh.GetFaceVertexIndicesAttr().Get(frame) or [], np.int32)
        parts = [UsdGeom.Subset(child) for child in prim.GetChildren() if child.IsA(UsdGeom.Subset)]
        faces = [(part.GetPrim(), np.asarray(part.GetIndicesAttr().Get(frame) or [], np.int64)) for part in parts]
        starts = np.cumsum(counts) - counts
        found, groups = [], []
        for part, chosen in faces or [(prim, np.arange(len(counts)))]:
            chosen = chosen[(chosen >= 0) & (chosen < len(counts))]
            sizes = counts[chosen]
            corners = np.repeat(starts[chosen] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
            whole = corners.max(initial=-1) < len(indices)  # of a broken mesh nothing is drawn
            triangles = fan_triangles(sizes, indices[corners]) if whole else np.zeros((0, 3), np.int32)
            triangles = triangles[((triangles >= 0) & (triangles < len(points))).all(axis=1)]
            found.append(triangles)
            groups.append((part, len(triangles)))
        return points, np.concatenate(found), groups

    def look(self, prim: Any) -> dict[str, Any]:
        """Return colour (linear), opacity, roughness and metallic of the preview surface of a prim, where it says so."""
        from pxr import UsdShade

        from usd_io.looks import reader_fallback

        material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        shader = material.ComputeSurfaceSource()[0] if material else None
        if not shader:
            return {}
        names = {"colour": "diffuseColor", "opacity": "opacity", "roughness": "roughness", "metallic": "metallic"}
        found = {name: reader_fallback(shader.GetInput(usd)) if shader.GetInput(usd) else None for name, usd in names.items()}
        told = {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}
        return told | ({"colour": tuple(float(part) for part in found["colour"])} if found["colour"] is not None else {})
