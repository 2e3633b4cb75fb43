"""What a cache holds, as layers that can be switched on and off: points, surfaces, level sets, fogs, bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes import reads
from mpm_nodes.editor.quantised import ShapeBox, Span, even_order, quantised_volume, srgb

__all__ = ["KINDS", "Drawn", "Layer", "OpenedCache", "unit_of"]

KINDS = ("points", "surface", "level_set", "fog", "bodies")
"""What there may be of one matter, the first that a cache holds being shown where nothing is chosen; bodies beside it."""
PLAIN = {"opacity": 1.0, "roughness": 0.5, "metallic": 0.0}
"""What a preview surface has where it says nothing."""


@dataclass(frozen=True)
class Layer:
    """Something that is switched on and off as one.

    Attributes:
        name: What it is asked for by.
        label: What the page calls it.
        kind: One of `KINDS`.
        paths: Its prims.
        scene: The stage that holds them.
    """

    name: str
    label: str
    kind: str
    paths: tuple[str, ...]
    scene: Any


@dataclass
class Drawn:
    """A frame as it is sent: a record of each shape with its arrays, and the spans of their values."""

    clouds: list[tuple[dict[str, Any], list[np.ndarray]]] = field(default_factory=list)
    meshes: list[tuple[dict[str, Any], list[np.ndarray]]] = field(default_factory=list)
    fogs: list[tuple[dict[str, Any], list[np.ndarray]]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @property
    def records(self) -> dict[str, list[dict[str, Any]]]:
        """What is said of the shapes."""
        told = {"clouds": self.clouds, "meshes": self.meshes, "fogs": self.fogs}
        return {kind: [record for record, _ in shapes] for kind, shapes in told.items()}

    @property
    def arrays(self) -> list[np.ndarray]:
        """What follows, in the order of the records."""
        return [array for shapes in (self.clouds, self.meshes, self.fogs) for _, arrays in shapes for array in arrays]


class OpenedCache:
    """The stages of one revision folder, opened.

    Attributes:
        scenes: One a stage.
        layers: What they hold.
        first: First frame of any.
        last: Last frame of any.
    """

    def __init__(self, scenes: Sequence[Any]) -> None:
        self.scenes = scenes
        self.first = min(scene.first for scene in scenes)
        self.last = max(scene.last for scene in scenes)
        self.layers = [layer for scene in scenes for layer in _layers(scene, len(scenes) > 1)]
        self._looks: dict[str, dict[str, Any]] = {}
        self._names: list[str] | None = None

    def attribute_names(self) -> list[str]:
        """Return the names of the attributes that matter carries, sorted."""
        if self._names is None:
            names = {name for scene in self.scenes for name in scene.attribute_names(scene.last)}
            self._names = sorted(names)
        return self._names

    def chosen(self, wanted: Sequence[str] | None) -> list[Layer]:
        """Return the layers of those names; the first form that each stage holds, and the bodies, where it is None."""
        if wanted is not None:
            return [layer for layer in self.layers if layer.name in wanted]
        found = []
        for scene in self.scenes:
            matter = [layer for layer in self.layers if layer.scene is scene and layer.kind != "bodies"]
            first = min((KINDS.index(layer.kind) for layer in matter), default=-1)
            found += [layer for layer in matter if KINDS.index(layer.kind) == first]
            found += [layer for layer in self.layers if layer.scene is scene and layer.kind == "bodies"]
        return found

    def drawn(self, layers: Sequence[Layer], frame: int, attribute: str, most: int) -> Drawn:
        """Return the shapes of layers at a frame; at most `most` points of each cloud, spread evenly."""
        from usd_io import reading_usd

        out = Drawn()
        for layer in layers:
            code = min(max(frame, layer.scene.first), layer.scene.last)
            for path in layer.paths:
                with reading_usd(layer.scene.path):
                    self._add(out, layer, layer.scene.stage.GetPrimAtPath(path), code, attribute, most)
        return out

    def _add(self, out: Drawn, layer: Layer, prim: Any, code: int, attribute: str, most: int) -> None:
        if layer.kind == "points":
            self._cloud(out, layer, prim, code, attribute, most)
        elif layer.kind in ("surface", "bodies"):
            self._mesh(out, layer, prim, code, attribute if layer.kind == "surface" else "")
        elif layer.kind == "level_set":
            self._level_set(out, layer, prim, code)
        else:
            self._fog(out, layer, prim, code)

    # ---------------------------------------------------------------- shapes
    def _cloud(self, out: Drawn, layer: Layer, prim: Any, code: int, attribute: str, most: int) -> None:
        points = layer.scene.points(str(prim.GetPath()), code)
        if not len(points):
            return
        values = layer.scene.numbers(str(prim.GetPath()), attribute, code) if attribute else None
        span, box = Span.of(values), ShapeBox.around(points)
        order, block = even_order(len(points), most)
        values = values[order] if values is not None and len(values) == len(points) else values
        rows = box.rows(points[order], values, span or Span())
        arrays = [rows]
        look = self._look(layer.scene, prim, "points")
        colours = layer.scene.display_colours(prim, code)
        mixed = colours is not None and len(colours) == len(points) and bool((colours != colours[0]).any())
        if mixed:
            shown = colours[order]
            arrays.append(np.concatenate([srgb(shown), np.full((len(shown), 1), 255, np.uint8)], axis=1))
        if colours is not None:
            look = {**look, "colour": srgb(colours.mean(axis=0)).tolist()}
        record = {
            "layer": layer.name, "path": str(prim.GetPath()), "count": len(points), "shown": len(rows), "block": block,
            "radius": layer.scene.radius(prim, code), "box": _corners(box), "colours": mixed, "look": look,
            "has_values": span is not None, "values": span or Span(),
        }  # fmt: skip
        out.clouds.append((record, arrays))
        out.spans += [span] if span else []

    def _mesh(self, out: Drawn, layer: Layer, prim: Any, code: int, attribute: str) -> None:
        path = str(prim.GetPath())
        points, triangles, groups = layer.scene.mesh(path, code)
        if not len(triangles):
            return
        values = layer.scene.numbers(path, attribute, code) if attribute else None
        values = values if values is not None and len(values) in (1, len(points)) else None
        colours = layer.scene.display_colours(prim, code)
        looks = [{"count": 3 * size, **self._look(layer.scene, part, layer.kind)} for part, size in groups]
        self._add_mesh(out, layer, (points, triangles), looks, values, colours)

    def _level_set(self, out: Drawn, layer: Layer, prim: Any, code: int) -> None:
        grid, matrix = _grid(layer.scene, prim, code)
        points, triangles, quads = grid.convertToPolygons(0.0, 0.0)
        if not len(points):
            return
        faces = np.concatenate([triangles, quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])[:, ::-1]  # wound inward by the library
        placed = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        look = self._matter_look(layer.scene)
        self._add_mesh(out, layer, (placed, faces), [{"count": 3 * len(faces), **look}], None, None)

    def _add_mesh(self, out: Drawn, layer: Layer, shape: tuple[Any, Any], looks: list[Any], values: Any, colours: Any) -> None:
        points, triangles = shape
        span, box = Span.of(values), ShapeBox.around(points)
        arrays = [box.rows(points, values, span or Span()), triangles.astype(np.uint32)]
        mixed = colours is not None and len(colours) == len(points) and bool((colours != colours[0]).any())
        if mixed:
            arrays.append(np.concatenate([srgb(colours), np.full((len(points), 1), 255, np.uint8)], axis=1))
        elif colours is not None and len(colours):
            looks = [{**look, "colour": srgb(colours.mean(axis=0)).tolist()} for look in looks]
        record = {
            "layer": layer.name, "points": len(points), "triangles": len(triangles), "matter": layer.kind != "bodies",
            "box": _corners(box), "colours": mixed, "looks": looks, "has_values": span is not None, "values": span or Span(),
        }  # fmt: skip
        out.meshes.append((record, arrays))
        out.spans += [span] if span else []

    def _fog(self, out: Drawn, layer: Layer, prim: Any, code: int) -> None:
        from usd_io.vdb_grids import index_to_world, level_set_from_grid

        grid, matrix = _grid(layer.scene, prim, code)
        volume = level_set_from_grid(grid)
        if not len(volume.origins):
            return
        block, low, factor, most = quantised_volume(np.asarray(volume.origins, np.int64), volume.values)
        matrix = matrix @ index_to_world(grid)
        unit = np.eye(4)  # from the unit cube to voxels, whose centres have whole numbers
        unit[:3, :3] = np.diag(np.array(block.shape[::-1]) * factor)
        unit[:3, 3] = low - 0.5
        record = {
            "layer": layer.name, "size": block.shape[::-1], "matrix": (matrix @ unit).T.ravel().tolist(), "most": most,
            "coarser": factor, "look": self._matter_look(layer.scene),
        }  # fmt: skip
        out.fogs.append((record, [block]))

    def _matter_look(self, scene: Any) -> dict[str, Any]:
        """Return the look of a stage's particles or surface, for volumes, which bind no material of their own."""
        matter = [layer for layer in self.layers if layer.scene is scene and layer.kind in ("surface", "points")]
        prim = scene.stage.GetPrimAtPath(matter[0].paths[0]) if matter else scene.stage.GetPseudoRoot()
        return self._look(scene, prim, "points")

    def _look(self, scene: Any, prim: Any, kind: str) -> dict[str, Any]:
        key = f"{id(scene)}{prim.GetPath()}"
        if key not in self._looks:
            from mpm_nodes.preview.scene import BODY, MATTER

            found = scene.look(prim)
            colour = found.pop("colour", BODY if kind == "bodies" else MATTER)
            self._looks[key] = {**PLAIN, **found, "colour": srgb(np.array(colour)).tolist()}
        return self._looks[key]


def _corners(box: ShapeBox) -> list[list[float]]:
    return [box.low.tolist(), (box.low + box.size).tolist()]


def _layers(scene: Any, several: bool) -> Iterator[Layer]:
    """Yield what a stage holds: all forms of a cache of ours, what is not hidden of others."""
    from pxr import UsdVol

    stem = scene.path.stem
    bodies: list[str] = []
    surfaces: list[str] = []
    for prim in scene.held():
        path = str(prim.GetPath())
        if scene.is_points(prim):
            label = prim.GetName() if not several else f"{prim.GetName()} of {stem}"
            yield Layer(f"{stem}:{path}", label, "points", (path,), scene)
        elif prim.IsA(UsdVol.OpenVDBAsset):
            kind = {"levelSet": "level_set", "fogVolume": "fog"}.get(str(prim.GetAttribute("fieldClass").Get() or ""))
            if kind:
                label = f"{'level set' if kind == 'level_set' else 'fog'} {prim.GetName()}"
                yield Layer(f"{stem}:{path}", label if not several else f"{label} of {stem}", kind, (path,), scene)
        else:
            (surfaces if scene.is_surface(prim) else bodies).append(path)
    if surfaces:
        yield Layer(f"{stem}:surface", "surface" if not several else f"surface of {stem}", "surface", tuple(surfaces), scene)
    if bodies:
        yield Layer(f"{stem}:bodies", "bodies" if not several else f"bodies of {stem}", "bodies", tuple(bodies), scene)


def _grid(scene: Any, prim: Any, code: int) -> tuple[Any, np.ndarray]:
    """Return the grid of a field at a frame, and the matrix from where its file lies to metres, shape (4, 4).

    Raises:
        InputError: The file is missing or damaged, or the grid is of another type.
    """
    from mpm_nodes.data import InputError
    from usd_io.openvdb_module import find_openvdb
    from usd_io.vdb_file import damaged, grid_table, verify_digest

    asset = prim.GetAttribute("filePath").Get(code)
    path, name = Path(asset.resolvedPath if asset else ""), str(prim.GetAttribute("fieldName").Get() or "")
    if asset is None or not asset.resolvedPath:
        raise InputError(
            f"{prim.GetPath()} at frame {code}: its file {asset.path if asset else ''} is missing; cook the frame again"
        )
    if not path.resolve().is_relative_to(scene.path.parent.resolve()):
        raise InputError(f"{path}: lies outside of the folder of {scene.path}, and is not read; copy it there")
    if name not in {entry.name for entry in grid_table(path)}:
        raise InputError(f"{path}: holds no grid '{name}'; cook the frame again")
    verify_digest(path)
    try:
        with reads.reading(path):
            grid = find_openvdb().read(str(path), name)
    except (RuntimeError, MemoryError) as error:
        raise damaged(path, f"is refused by OpenVDB ({error})") from error
    if not isinstance(grid.background, (int, float)):
        raise InputError(f"{path}: grid '{name}' does not hold one number a voxel; levels and fogs do")
    return grid, scene.matrix(prim, code)


def unit_of(attribute: str) -> str:
    """Return the unit of an attribute, "" where it has none or is not known."""
    from mpm_nodes.preview.colour_by import ColourBy

    return ColourBy(attribute, 0.0, 1.0).unit
