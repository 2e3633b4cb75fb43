"""A cache as a USD stage: one layer a frame, and the root stage that plays them as value clips.

    NAME.usda                    root: units, axes, range, declarations, looks, what is shown, provenance
    NAME/NAME.manifest.usda      which attributes the clips may animate
    NAME/NAME.set.usda           camera, lights and floor, below a root prim of their own
    NAME/NAME.still.usdc         colliders that never move, where there are any
    NAME/NAME.0001.usdc          frame 1: every value as a time sample at its own time
    NAME/NAME.0001.vdb           frame 1: all its grids

Value clips, and not sublayers: USD never merges time samples across layers. Every function here works on layers in
memory, so that the caller decides where and when a file appears.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from pxr import Sdf, Tf, Usd

from mpm_nodes.data import Collider, InputError, LevelSet, Mesh, OutputError, Particles
from usd_io.bounds import FLOOR_LOOK, active_box, bulk, floor_of, read_bounds, store_bounds, widen_bounds
from usd_io.clips import author_clips, forget_clips
from usd_io.forces import add_forces
from usd_io.layers import LOOKS_KEY, PROVENANCE, STILL, outlive, set_sample, set_units, unique_name
from usd_io.looks import BODIES, add_looks
from usd_io.meshes import add_mesh, add_mesh_per_material
from usd_io.points import add_points, extent_of
from usd_io.set_layer import set_layer
from usd_io.showing import add_variants, describe_asset, extents_hint

__all__ = [
    "CacheNames",
    "forget_still",
    "frame_layer",
    "read_layer",
    "root_layers",
    "root_so_far",
    "still_layer",
    "still_prims",
]


NAMES = frozenset({"particles", "mesh", "volume", "looks", "camera", "sun", "sky", "floor"})
"""Leaf names that are taken: Blender names objects by them."""


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

    @property
    def set(self) -> str:
        """Camera, lights and floor."""
        return f"{self.name}/{self.name}.set.usda"

    @property
    def still(self) -> str:
        """Colliders that never move."""
        return f"{self.name}/{self.name}.still.usdc"

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
        precision: Most that packed positions of particles may be off [m]; 0 stores them exactly.
        mesh_per_material: `mesh` is an Xform with a Mesh for each of several materials in place of subsets.
        forces: By the name of a collider force [N] and torque [N m] on it, shape (2, 3), see `add_forces`.
    """

    particles: Particles | None = None
    mesh: Mesh | None = None
    volumes: Sequence[LevelSet] = ()
    colliders: Iterable[Collider] = ()
    attributes: Iterable[str] = ()
    width_scale: float = 1.0
    precision: float = 0.0
    mesh_per_material: bool = False
    forces: Mapping[str, np.ndarray] = MappingProxyType({})


def frame_layer(
    names: CacheNames,
    number: int,
    fps: float,
    content: FrameContent,
    held: Collection[str] = (),
) -> Sdf.Layer:
    """Return the layer of one frame in memory; export it under `names.layer(number)`.

    Args:
        names: Names of the cache.
        number: Number of the frame, and time code of its samples.
        fps: Frames per second.
        content: What the frame shows.
        held: Prims of still colliders that have a layer of their own (`still_layer`).
    """
    particles, mesh, volumes, colliders, attributes, width_scale, precision, apart, forces = content
    layer = Sdf.Layer.CreateAnonymous("frame.usdc")
    layer.defaultPrim = names.name
    set_units(layer, fps, number, number)
    root = f"/{names.name}"
    prim = Sdf.CreatePrimInLayer(layer, root)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Xform"
    framed, matter, bodies = [], [], []
    taken = set(NAMES)
    if particles is not None:
        matter.append(add_points(layer, f"{root}/particles", particles, number, attributes, width_scale, precision))
        framed.append(bulk(matter[-1], particles["position"]))
    if mesh is not None:
        if apart and len(mesh.materials) > 1 and "material" in mesh.attributes:
            matter.append(add_mesh_per_material(layer, f"{root}/mesh", mesh, number, taken))
        else:
            matter.append(add_mesh(layer, f"{root}/mesh", mesh, number))
        framed.append(bulk(matter[-1], mesh.points))
    solid = list(matter)  # the band of a level set reaches beyond what it shows
    if volumes:
        matter.append(_add_volume(layer, f"{root}/volume", volumes, number, Path(names.volumes(number)).name, taken))
        framed = framed or matter[-1:]
    for path, shown, collider in _shown(names, colliders, taken):
        bodies.append((extent_of(np.asarray(shown.points, np.float32)), collider.look or FLOOR_LOOK))
        if path not in held:
            add_mesh(layer, path, shown, number)
            layer.GetPrimAtPath(path).customData = {LOOKS_KEY: _body_look(shown, collider)}
        if collider.name in forces:
            add_forces(layer, path, forces[collider.name], number)
    extents = [extent for extent, _ in bodies]
    set_sample(prim, "extentsHint", Sdf.ValueTypeNames.Float3Array, extents_hint(matter, extents), number)
    _end_blur(layer, number)
    store_bounds(layer, framed, solid or matter, bodies)
    outlive(layer)
    return layer


def _end_blur(layer: Sdf.Layer, number: int) -> None:
    """Let velocities end with their frame: after the last one of a cache positions are held, and nothing may blur them."""
    forms = layer.GetPrimAtPath(f"/{layer.defaultPrim}").nameChildren
    for prim in [each for form in forms for each in (form, *form.nameChildren)]:
        velocities = prim.attributes.get("velocities")
        if velocities is not None:
            layer.SetTimeSample(velocities.path, float(number + 1), Sdf.ValueBlock())


def _shown(names: CacheNames, colliders: Iterable[Collider], taken: set[str]) -> Iterator[tuple[str, Mesh, Collider]]:
    """Yield path and mesh of the colliders that have one, and the collider."""
    for collider in colliders:
        if collider.mesh is not None:
            yield f"/{names.name}/{unique_name('collider_' + collider.name, taken)}", collider.mesh, collider


def _body_look(mesh: Mesh, collider: Collider) -> str:
    """Return the look of a collider: its own; else a level square is part of the floor, of which no edge shall be seen."""
    heights = np.asarray(mesh.points)[:, 1]
    level = len(mesh.counts) == 1 and float(np.ptp(heights)) == 0.0
    return collider.look or (FLOOR_LOOK if level else BODIES)


def still_layer(names: CacheNames, colliders: Iterable[Collider]) -> Sdf.Layer | None:
    """Return the layer of the colliders that never move, in memory, None where all may; export it under `names.still`."""
    still = [each for each in _shown(names, colliders, set(NAMES)) if each[2].still]
    if not still:
        return None
    layer = Sdf.Layer.CreateAnonymous("still.usdc")
    layer.defaultPrim = names.name
    for path, mesh, collider in still:
        add_mesh(layer, path, mesh, None)
        layer.GetPrimAtPath(path).customData = {STILL: True, LOOKS_KEY: _body_look(mesh, collider)}
    outlive(layer)
    return layer


def still_prims(layer: Sdf.Layer | None) -> dict[str, str]:
    """Return paths and looks of the colliders that never move: in the layer of them, or those that a root stage knows."""
    prims = [prim for top in (layer.rootPrims if layer else ()) for prim in top.nameChildren]
    return {str(prim.path): prim.customData.get(LOOKS_KEY, BODIES) for prim in prims if prim.customData.get(STILL)}


def forget_still(root: Sdf.Layer, kept: Collection[str]) -> None:
    """Let colliders that a root stage takes for still ones count as such no longer, all but those in `kept`."""
    for path in still_prims(root).keys() - set(kept):
        prim = root.GetPrimAtPath(path)
        prim.customData = {name: value for name, value in prim.customData.items() if name != STILL}


def _add_volume(layer: Sdf.Layer, path: str, volumes: Sequence[LevelSet], number: int, file: str, taken: set[str]) -> Any:
    """Define a Volume with one field a grid; return its extent."""
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Volume"
    corners = [np.zeros((0, 3), np.float32)]
    for volume in volumes:
        field = Sdf.CreatePrimInLayer(layer, f"{path}/{unique_name(volume.name, taken)}")
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
        box = active_box(volume)
        if box is not None:
            corners.append((box * volume.voxel_size + np.asarray(volume.origin)).astype(np.float32))
    extent = extent_of(np.concatenate(corners))
    set_sample(prim, "extent", Sdf.ValueTypeNames.Float3Array, extent, number)
    return extent


# ---------------------------------------------------------------- the root
class RootLayers(NamedTuple):
    """What ties the frames together, in memory.

    Attributes:
        root: Root stage, to be exported as `CacheNames.stage`.
        manifest: Clip manifest, `CacheNames.manifest`.
        set: Camera, lights and floor, `CacheNames.set`.
    """

    root: Sdf.Layer
    manifest: Sdf.Layer
    set: Sdf.Layer


def root_layers(
    names: CacheNames,
    frame: Sdf.Layer,
    first: int,
    last: int,
    fps: float,
    provenance: Mapping[str, Any] | None = None,
    previous: Sdf.Layer | None = None,
    still: Mapping[str, str] | None = None,
) -> RootLayers:
    """Return root stage, clip manifest and set of a cache that now ends with `frame`.

    A function of the frame and of the root before it, so that a resumed cook gives the bytes of an uninterrupted one.

    Args:
        names: Names of the cache.
        frame: Layer of the newest frame, from `frame_layer`.
        first: Number of the first frame on disk.
        last: Number of the newest frame.
        fps: Frames per second.
        provenance: Kept in `customLayerData`: strings and numbers.
        previous: The root stage of the frame before (`root_so_far`), None at the first frame.
        still: At the first frame, paths and looks of the colliders that never move (`still_prims` of `still_layer`).
    """
    root = Sdf.Layer.CreateAnonymous("root.usda")
    if previous is not None:
        root.TransferContent(previous)
        root.subLayerPaths = []
    manifest = Sdf.Layer.CreateAnonymous("manifest.usda")
    for prim in frame.rootPrims:
        _declare(prim, root)
    root.defaultPrim = names.name
    set_units(root, fps, first, last)
    root.customLayerData = {**root.customLayerData, PROVENANCE: dict(provenance or {})}
    widen_bounds(root, frame)
    for path, look in sorted((still or {}).items()):
        prim = Sdf.CreatePrimInLayer(root, path)
        prim.specifier, prim.typeName, prim.customData = Sdf.SpecifierDef, "Mesh", {STILL: True, LOOKS_KEY: look}
    forget_clips(root)  # a layer in memory finds neither clips nor sublayers: they are named last, when no stage is open
    stage = Usd.Stage.Open(root)
    add_looks(stage, names.name)
    describe_asset(stage, names.name, names.stage)
    add_variants(stage, names.name)
    del stage
    root.subLayerPaths = [f"./{file}" for file in ((names.set, names.still) if still_prims(root) else (names.set,))]
    for prim in root.rootPrims:
        _declare_animated(prim, manifest)
    author_clips(root, manifest, names.manifest, [names.layer(number) for number in range(first, last + 1)], first)
    around = set_layer(names.name, fps, (first, last), read_bounds(root), *floor_of(root))
    for layer in (frame, root, manifest):
        outlive(layer)
    return RootLayers(root, manifest, around)


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
    still = still_prims(read_layer(folder / names.still) if (folder / names.still).is_file() else None)
    for number in range(first, last + 1):
        frame = read_layer(folder / names.layer(number))
        root = root_layers(names, frame, first, number, fps, provenance, root, still).root
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
        if child.typeName in ("Xform", "Points", "Scope", "Mesh", "GeomSubset", "Volume", "OpenVDBAsset"):
            _declare_animated(child, manifest)
