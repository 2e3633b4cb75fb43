"""A cache as a USD stage: one layer a frame, and the root stage that plays them as value clips.

    NAME.usda                    root: units, axes, range, declarations, looks, camera, lights, provenance
    NAME/NAME.manifest.usda      which attributes the clips may animate
    NAME/NAME.0001.usdc          frame 1: every value as a time sample at its own time
    NAME/NAME.0001.vdb           frame 1: all its grids

Value clips, and not sublayers: USD never merges time samples across layers. Every function here works on layers in
memory, so that the caller decides where and when a file appears.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, Vt

from mpm_nodes.data import Collider, InputError, LevelSet, Mesh, OutputError, Particles
from usd_io.looks import add_looks
from usd_io.meshes import add_mesh
from usd_io.points import add_points, extent_of, set_sample

__all__ = [
    "CacheNames",
    "bounds_of",
    "frame_layer",
    "read_layer",
    "root_layers",
    "root_so_far",
]

PROVENANCE = "mpm_nodes"
BOUNDS_LOW, BOUNDS_HIGH = "mpm_nodes_bounds_low", "mpm_nodes_bounds_high"


@dataclass(frozen=True)
class CacheNames:
    """Names of the files of one cache, relative to the folder that holds them.

    Attributes:
        name: Name of the cache, of its stage and of its root prim.
    """

    name: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            raise OutputError(f"cache name {self.name!r}: it names a USD prim; use letters, digits, _, beginning with a letter")

    @property
    def stage(self) -> str:
        """Root stage."""
        return f"{self.name}.usda"

    @property
    def manifest(self) -> str:
        """Clip manifest."""
        return f"{self.name}/{self.name}.manifest.usda"

    def layer(self, number: int) -> str:
        """Layer of a frame."""
        return f"{self.name}/{self.name}.{number:04d}.usdc"

    def volumes(self, number: int) -> str:
        """Volumes of a frame; Blender counts up the last digits of this name."""
        return f"{self.name}/{self.name}.{number:04d}.vdb"


# ---------------------------------------------------------------- one frame
class FrameContent(NamedTuple):
    """What a frame of a cache shows.

    Attributes:
        particles: Written as Points `particles`.
        mesh: Written as Mesh `mesh`.
        volumes: Fields of Volume `volume`, to be found in `CacheNames.volumes(number)`.
        colliders: Their meshes, as Mesh `collider_NAME`.
        attributes: Columns of the particles to write besides the position.
        width_scale: Drawn diameter over the diameter of a particle's own volume.
    """

    particles: Particles | None = None
    mesh: Mesh | None = None
    volumes: Sequence[LevelSet] = ()
    colliders: Iterable[Collider] = ()
    attributes: Iterable[str] = ()
    width_scale: float = 1.0


def frame_layer(
    names: CacheNames,
    number: int,
    fps: float,
    content: FrameContent,
) -> Sdf.Layer:
    """Return the layer of one frame in memory; export it under `names.layer(number)`.

    Args:
        names: Names of the cache.
        number: Number of the frame, and time code of its samples.
        fps: Frames per second.
        content: What the frame shows.
    """
    particles, mesh, volumes, colliders, attributes, width_scale = content
    layer = Sdf.Layer.CreateAnonymous("frame.usdc")
    _set_units(layer, names.name, fps, number, number)
    root = f"/{names.name}"
    prim = Sdf.CreatePrimInLayer(layer, root)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Xform"
    bounds, taken = [], {"particles", "mesh", "volume", "looks", "camera", "sun", "sky"}
    if particles is not None:
        extent = add_points(layer, f"{root}/particles", particles, number, attributes, width_scale)
        bounds.append(_bulk(extent, particles["position"]))
    if mesh is not None:
        bounds.append(_bulk(add_mesh(layer, f"{root}/mesh", mesh, number), mesh.points))
    if volumes:
        extent = _add_volume(layer, f"{root}/volume", volumes, number, Path(names.volumes(number)).name, taken)
        bounds = bounds or [extent]  # whole leaves: too wide to frame a shot that has anything else
    for collider in colliders:
        if collider.mesh is not None:
            add_mesh(layer, f"{root}/{_unique('collider_' + collider.name, taken)}", collider.mesh, number)
    _store_bounds(layer, bounds)
    _outlive(layer)
    return layer


def _outlive(layer: Sdf.Layer) -> None:
    """Let the handles of a layer's specs live as long as the layer, and die after it.

    OpenUSD (26.11) leaks what a layer notes of each spec whose last handle is gone when the layer dies: a cook of thousands of
    frames would grow. What a Python object refers to goes after what it wraps.
    """
    handles: list[Any] = []
    layer.Traverse(Sdf.Path.absoluteRootPath, lambda path: handles.append(layer.GetObjectAtPath(path)))
    layer.handles = handles


def _add_volume(layer: Sdf.Layer, path: str, volumes: Sequence[LevelSet], number: int, file: str, taken: set[str]) -> Any:
    """Define a Volume with one field a grid; return its extent."""
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Volume"
    corners = [np.zeros((0, 3), np.float32)]
    for volume in volumes:
        field = Sdf.CreatePrimInLayer(layer, f"{path}/{_unique(volume.name, taken)}")
        field.specifier, field.typeName = Sdf.SpecifierDef, "OpenVDBAsset"
        set_sample(field, "filePath", Sdf.ValueTypeNames.Asset, Sdf.AssetPath(f"./{file}"), number)
        facts = {"fieldName": volume.name, "fieldDataType": "float3" if volume.kind == "vector" else "float"}
        if volume.kind == "vector":
            facts["vectorDataRoleHint"] = "Vector"
        else:
            facts["fieldClass"] = "levelSet" if volume.kind == "level_set" else "fogVolume"
        for name, value in facts.items():
            Sdf.AttributeSpec(field, name, Sdf.ValueTypeNames.Token, Sdf.VariabilityVarying).default = value
        link = Sdf.RelationshipSpec(prim, f"field:{field.name}", custom=True)
        link.targetPathList.explicitItems = [field.path]
        if len(volume.origins):
            ends = np.stack([np.min(volume.origins, axis=0), np.max(volume.origins, axis=0) + 7])
            corners.append((ends * volume.voxel_size + np.asarray(volume.origin)).astype(np.float32))
    extent = extent_of(np.concatenate(corners))
    set_sample(prim, "extent", Sdf.ValueTypeNames.Float3Array, extent, number)
    return extent


def _unique(name: str, taken: set[str]) -> str:
    """Return a valid prim name that is not taken yet; leaf names are unique, since Blender names objects by them."""
    stem = name = Tf.MakeValidIdentifier(name)
    number = 2
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    taken.add(name)
    return name


# ---------------------------------------------------------------- the root
def root_layers(
    names: CacheNames,
    frame: Sdf.Layer,
    first: int,
    last: int,
    fps: float,
    provenance: Mapping[str, Any] | None = None,
    previous: Sdf.Layer | None = None,
) -> tuple[Sdf.Layer, Sdf.Layer]:
    """Return root stage and clip manifest of a cache that now ends with `frame`.

    A function of the frame and of the root before it, so that a resumed cook gives the bytes of an uninterrupted one.

    Args:
        names: Names of the cache.
        frame: Layer of the newest frame, from `frame_layer`.
        first: Number of the first frame on disk.
        last: Number of the newest frame.
        fps: Frames per second.
        provenance: Kept in `customLayerData`: strings and numbers.
        previous: The root stage of the frame before (`root_so_far`), None at the first frame.
    """
    root = Sdf.Layer.CreateAnonymous("root.usda")
    if previous is not None:
        root.TransferContent(previous)
    manifest = Sdf.Layer.CreateAnonymous("manifest.usda")
    for prim in frame.rootPrims:
        _declare(prim, root)
    _set_units(root, names.name, fps, first, last)
    root.customLayerData = {**root.customLayerData, PROVENANCE: dict(provenance or {})}
    bounds = [bounds_of(layer) for layer in (root, frame)]
    _store_bounds(root, [box for box in bounds if box is not None])
    top = root.GetPrimAtPath(f"/{names.name}")
    top.ClearInfo("clips")  # a layer in memory cannot find its clips: they are named last, when no stage is open
    add_looks(Usd.Stage.Open(root), names.name, bounds_of(root))
    top.SetInfo("clips", {"default": _clips(names, first, last)})
    for prim in root.rootPrims:
        _declare_animated(prim, manifest)
    for layer in (frame, root, manifest):
        _outlive(layer)
    return root, manifest


def root_so_far(
    names: CacheNames, folder: Path, first: int, last: int, fps: float, provenance: Mapping[str, Any] | None = None
) -> Sdf.Layer | None:
    """Return the root stage as it was written with frame `last`, None when that is before the first frame.

    Usually it is the one on disk. Where that one is missing or damaged, or tells of frames that are gone (after a resume from an
    earlier frame), it is built again from the layers of the frames.
    """
    if last < first:
        return None
    with contextlib.suppress(InputError):
        root = read_layer(folder / names.stage)
        if root.endTimeCode == last:
            return root
    root = None
    for number in range(first, last + 1):
        frame = read_layer(folder / names.layer(number))
        root = root_layers(names, frame, first, number, fps, provenance, root)[0]
    return root


def read_layer(path: Path) -> Sdf.Layer:
    """Return a layer that an earlier cook wrote, in memory; raise `InputError` where it is missing or damaged."""
    try:
        layer = Sdf.Layer.OpenAsAnonymous(str(path)) if path.is_file() else None
    except Tf.ErrorException:
        layer = None
    if layer is None:
        raise InputError(f"{path}: written for an earlier frame, and missing or damaged now; cook without --resume")
    return layer


def _declare(prim: Sdf.PrimSpec, target: Sdf.Layer) -> None:
    """Copy a prim with its attributes into `target`, all but the time samples."""
    copy = Sdf.CreatePrimInLayer(target, prim.path)
    copy.specifier, copy.typeName = prim.specifier, prim.typeName
    copy.customData.update(dict(prim.customData))
    for attribute in prim.attributes:
        mine = copy.attributes.get(attribute.name) or Sdf.AttributeSpec(
            copy, attribute.name, attribute.typeName, attribute.variability, attribute.custom
        )
        if attribute.HasInfo("interpolation"):
            mine.SetInfo("interpolation", attribute.GetInfo("interpolation"))
        if attribute.HasDefaultValue():
            mine.default = attribute.default
    for link in prim.relationships:
        mine = copy.relationships.get(link.name) or Sdf.RelationshipSpec(copy, link.name, link.custom)
        mine.targetPathList.explicitItems = list(link.targetPathList.explicitItems)
    for child in prim.nameChildren:
        _declare(child, target)


def _declare_animated(prim: Sdf.PrimSpec, manifest: Sdf.Layer) -> None:
    """List in the manifest what has no value in the root: these the clips give."""
    for attribute in prim.attributes:
        if not attribute.HasDefaultValue() and not attribute.connectionPathList.explicitItems:
            over = Sdf.CreatePrimInLayer(manifest, prim.path)
            Sdf.AttributeSpec(over, attribute.name, attribute.typeName, attribute.variability, attribute.custom)
    for child in prim.nameChildren:
        if child.typeName in ("Xform", "Points", "Mesh", "Volume", "OpenVDBAsset"):
            _declare_animated(child, manifest)


def _set_units(layer: Sdf.Layer, name: str, fps: float, first: int, last: int) -> None:
    layer.defaultPrim = name
    layer.timeCodesPerSecond = layer.framesPerSecond = fps
    layer.startTimeCode, layer.endTimeCode = first, last
    layer.pseudoRoot.SetInfo("upAxis", "Y")
    layer.pseudoRoot.SetInfo("metersPerUnit", 1.0)


def _clips(names: CacheNames, first: int, last: int) -> dict[str, Any]:
    """Return the value clips of the root prim.

    The layers are named one by one and not by a pattern: tools that collect a stage's files do not follow patterns.
    """
    numbers = range(first, last + 1)
    return {
        "primPath": f"/{names.name}",
        "assetPaths": Sdf.AssetPathArray([Sdf.AssetPath(f"./{names.layer(number)}") for number in numbers]),
        "active": Vt.Vec2dArray([Gf.Vec2d(number, clip) for clip, number in enumerate(numbers)]),
        "times": Vt.Vec2dArray([Gf.Vec2d(number, number) for number in numbers]),
        "manifestAssetPath": Sdf.AssetPath(f"./{names.manifest}"),
    }


def _bulk(extent: Any, points: Any) -> np.ndarray:
    """Return the part of an extent that the camera shall frame: drops that fly far off would make all else small.

    That is where all but the outermost 2 % are along each axis, and half of its longest side around.
    """
    extent, points = np.array(extent, np.float64), np.asarray(points)
    if len(points) == 0:
        return extent
    low, high = np.quantile(points[:: 1 + len(points) // 20_000], (0.02, 0.98), axis=0)
    reach = 0.5 * (high - low).max()
    return np.array([np.maximum(extent[0], low - reach), np.minimum(extent[1], high + reach)])


def _store_bounds(layer: Sdf.Layer, boxes: Sequence[Any]) -> None:
    corners = [np.array(box, np.float64) for box in boxes]
    corners = [box for box in corners if (box[0] <= box[1]).all()]
    if corners:
        low, high = np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)
        layer.customLayerData = {
            **layer.customLayerData,
            BOUNDS_LOW: Gf.Vec3d(*low.tolist()),
            BOUNDS_HIGH: Gf.Vec3d(*high.tolist()),
        }


def bounds_of(layer: Sdf.Layer) -> np.ndarray | None:
    """Return the box [m] that the camera of a cache frames, shape (2, 3): that of all its matter; None where nothing tells."""
    data = layer.customLayerData
    return np.array([data[BOUNDS_LOW], data[BOUNDS_HIGH]]) if BOUNDS_LOW in data else None
