"""What a USD cache shows at one frame, as plain arrays in metres, Y up: points, meshes, a camera."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from mpm_nodes import reads
from mpm_nodes.data import ATTRIBUTES, InputError
from mpm_nodes.materials.black_body import WHITE, emitted
from mpm_nodes.preview.colour_by import ColourBy

if TYPE_CHECKING:
    from pxr import Usd

P = ParamSpec("P")
R = TypeVar("R")

MATTER = (0.95, 0.62, 0.16)
BODY = (0.36, 0.42, 0.50)
"""Linear colours of particles and of meshes that bring none."""
FIT_MARGIN = 1.08
"""Half of a picture over what the corners of a fitted box take of it."""
LEAST_GLOW = 1e-3
"""Own light, over white, that no picture of eight bits shows."""
SURFACE_NAMES = ("mesh", "surface", "skin")
"""Last path elements of meshes made from the particles, or of what holds one a material; not drawn over the particles."""


@dataclass(frozen=True)
class Cloud:
    """Points of one prim: positions [m] (n, 3), radii [m] (n,), linear colours (n, 3), light of their own (n, 3) or None."""

    path: str
    positions: np.ndarray
    radii: np.ndarray
    colours: np.ndarray
    glow: np.ndarray | None = None


@dataclass(frozen=True)
class DrawnMesh:
    """Triangles of one mesh prim: points [m] (n, 3), triangles (t, 3), normals and linear colours of their corners (t, 3, 3).

    `glow` is the light of their own, of the same shape, or None. `matter` says that the mesh was made from particles; `floor` is
    the look of a level square that shows a plane, which collides everywhere, so that the floor goes on where the square ends.
    """

    path: str
    points: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colours: np.ndarray
    glow: np.ndarray | None = None
    matter: bool = False
    floor: str = ""

    @property
    def height(self) -> float:
        """Height of the least point [m]."""
        return float(self.points[:, 1].min())


@dataclass(frozen=True)
class View:
    """A perspective camera: eye [m], unit axes right, up and forward, focal length in picture widths, width over height."""

    eye: np.ndarray
    right: np.ndarray
    up: np.ndarray
    forward: np.ndarray
    focal: float
    aspect: float = 4.0 / 3.0


@dataclass(frozen=True)
class Shapes:
    """Everything drawn at one frame."""

    clouds: tuple[Cloud, ...] = ()
    surfaces: tuple[DrawnMesh, ...] = ()

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the least and greatest corner [m], or None when there is nothing."""
        return _around([_extent(shape) for shape in (*self.clouds, *self.surfaces)])

    def framed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the corners of what a fitted camera shall show [m]: bodies, and the bulk of the matter without far drops."""
        from usd_io.bounds import bulk

        boxes = [bulk(_extent(cloud), cloud.positions) for cloud in self.clouds if len(cloud.positions)]
        for surface in self.surfaces:
            boxes.append(bulk(_extent(surface), surface.points) if surface.matter and len(surface.points) else _extent(surface))
        return _around(boxes)

    def without_floor(self, ground: float = np.inf) -> Shapes:
        """Return the same without the squares that show the floor, at the height `ground` [m] or lower."""
        return replace(
            self, surfaces=tuple(surface for surface in self.surfaces if not (surface.floor and surface.height <= ground))
        )


def _told(method: Callable[Concatenate[Scene, P], R]) -> Callable[Concatenate[Scene, P], R]:
    """Have a method of a scene tell of damage in our words."""

    @functools.wraps(method)
    def reading(self: Scene, *arguments: P.args, **named: P.kwargs) -> R:
        from usd_io import reading_usd

        with reading_usd(self.path):
            return method(self, *arguments, **named)

    return reading


@dataclass
class Scene:
    """An opened cache.

    Attributes:
        path: The root stage.
        first: First frame.
        last: Last frame.
        colours: Linear colour of each gprim without one of its own, by prim path.
        colour_by: Attribute that colours points and surface, or None for their own colours.
        fps: Frames (time codes) a second.
        white: Luminance that is shown as white [cd/m^2]: what carries a temperature glows as a black body; 0: nothing does.
    """

    path: Path
    first: int
    last: int
    stage: Usd.Stage = field(repr=False)
    to_metres: np.ndarray = field(repr=False)
    colours: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    colour_by: ColourBy | None = None
    fps: float = 24.0
    white: float = WHITE

    @_told
    def shapes(self, frame: int, show: str = "points", later: float = 0.0) -> Shapes:
        """Return what is seen at a frame, carried on for `later` seconds by its velocities where it has them.

        `show` is "points" or "surface" where the cache holds both.
        """
        from pxr import Usd, UsdGeom

        self.choose(show)
        places = UsdGeom.XformCache(Usd.TimeCode(frame))
        clouds, surfaces, wraps = [], [], []
        for prim in self._drawn(frame):
            matrix = self.to_metres @ np.array(places.GetLocalToWorldTransform(prim)).T
            if is_cloud(prim):
                clouds.append(self._cloud(prim, frame, matrix, later))
            else:
                surface = self._surface(prim, frame, matrix, later)
                (wraps if is_surface(prim) else surfaces).append(surface)
        clouds = [cloud for cloud in clouds if len(cloud.positions)]
        wraps = [wrap for wrap in wraps if len(wrap.triangles)]
        if wraps and (show == "surface" or not clouds):
            return Shapes((), (*surfaces, *wraps))
        return Shapes(tuple(clouds), tuple(surfaces))

    @_told
    def matter(self, frame: int) -> np.ndarray:
        """Return the points of the matter at a frame [m], shape (n, 3): of its particles, else of its surface."""
        shapes = self.shapes(frame)
        found = [cloud.positions for cloud in shapes.clouds] or [surface.points for surface in shapes.surfaces if surface.matter]
        return np.concatenate(found) if found else np.zeros((0, 3))

    def choose(self, show: str) -> None:
        """Select what our caches show of their matter: "points" or "surface"; other stages have no such choice."""
        from usd_io.showing import SHOW

        wanted = {"points": "particles"}.get(show, show)
        variants = self.stage.GetDefaultPrim().GetVariantSet(SHOW) if self.has_forms() else None
        if variants and wanted in variants.GetVariantNames() and variants.GetVariantSelection() != wanted:
            variants.SetVariantSelection(wanted)

    @_told
    def floor(self) -> tuple[str, float] | None:
        """Return name and height [m] of the stage's own floor, or None."""
        prim = next((prim for prim in self.stage.Traverse() if is_floor(prim)), None)
        points = prim.GetAttribute("points").Get(self.first) if prim else None
        return None if not points else (prim.GetName(), float(_placed(points, self.to_metres)[:, 1].min()))

    def has_forms(self) -> bool:
        """Whether the stage is a cache of ours, which hides all but one form of its matter."""
        from usd_io.showing import SHOW

        top = self.stage.GetDefaultPrim()
        return bool(top) and top.GetVariantSets().HasVariantSet(SHOW)

    @_told
    def view(self, frame: int) -> View | None:
        """Return the first camera of the stage at a frame, or None."""
        from pxr import UsdGeom

        for prim in self.stage.Traverse():
            if prim.IsA(UsdGeom.Camera):
                camera = UsdGeom.Camera(prim).GetCamera(frame)
                matrix = self.to_metres @ np.array(camera.transform).T
                axes = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
                focal = camera.focalLength / camera.horizontalAperture
                return View(matrix[:3, 3], axes[:, 0], axes[:, 1], -axes[:, 2], focal, camera.aspectRatio)
        return None

    @_told
    def sun(self, camera: str | View = "auto") -> np.ndarray | None:
        """Return the direction in which the stage's first distant light shines on what a camera sees, shape (3,), or None."""
        from pxr import UsdGeom, UsdLux

        for prim in self.stage.Traverse():
            if prim.IsA(UsdLux.DistantLight):
                matrix = self.to_metres @ np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(self.first)).T
                turn = self.sun_turn(camera)
                x, y, z = -unit(matrix[:3, 2])
                return np.array([np.cos(turn) * x + np.sin(turn) * z, y, np.cos(turn) * z - np.sin(turn) * x])
        return None

    def sun_turn(self, camera: str | View) -> float:
        """Return the turn of the sun of our own set about the upward axis [radians]: it stays to the left of a given camera."""
        from usd_io.set_layer import CAMERA_TURN

        if not isinstance(camera, View) or self.floor() is None:
            return 0.0
        return float(np.arctan2(-camera.forward[0], -camera.forward[2]) - np.radians(CAMERA_TURN))

    def _drawn(self, frame: int) -> Iterable[Any]:
        from pxr import UsdGeom

        for prim in self.stage.Traverse():
            if not (is_cloud(prim) or prim.IsA(UsdGeom.Mesh)) or is_floor(prim):
                continue
            imageable = UsdGeom.Imageable(prim)
            hidden = imageable.ComputeVisibility(frame) == UsdGeom.Tokens.invisible
            if not hidden and imageable.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render):
                yield prim

    def _cloud(self, prim: Any, frame: int, matrix: np.ndarray, later: float) -> Cloud:
        positions = _placed(_carried(prim, frame, later), matrix)
        widths = np.array(prim.GetAttribute("widths").Get(frame) or [0.01], np.float32)
        scale = float(np.cbrt(abs(np.linalg.det(matrix[:3, :3]))))
        radii = np.broadcast_to(0.5 * scale * (widths if len(widths) == len(positions) else widths.mean()), len(positions)).astype(
            np.float32
        )
        colours = self._colours(prim, frame)
        if colours is None or len(colours) not in (1, len(positions)):
            colours = np.array([self.colours.get(str(prim.GetPath()), MATTER)], np.float32)
        return Cloud(
            str(prim.GetPath()),
            positions,
            radii,
            np.ascontiguousarray(np.broadcast_to(colours, (len(positions), 3)), np.float32),
            self._glow(prim, frame, len(positions)),
        )

    def _surface(self, prim: Any, frame: int, matrix: np.ndarray, later: float) -> DrawnMesh:
        from pxr import UsdGeom

        mesh = UsdGeom.Mesh(prim)
        points = _placed(_carried(prim, frame, later), matrix)
        counts = np.array(mesh.GetFaceVertexCountsAttr().Get(frame) or [], np.int32)
        indices = np.array(mesh.GetFaceVertexIndicesAttr().Get(frame) or [], np.int32)
        triangles = fan_triangles(counts, indices)
        triangles = triangles[(triangles < len(points)).all(axis=1)] if len(triangles) else triangles
        colours = self._colours(prim, frame)
        fallback = MATTER if is_surface(prim) else BODY
        if colours is not None and len(colours) == len(points):
            shown = colours[triangles]
        else:
            colour = self.colours.get(str(prim.GetPath()), fallback) if colours is None else colours.mean(axis=0)
            shown = np.broadcast_to(np.asarray(colour, np.float32), (len(triangles), 3, 3))
        glow = self._glow(prim, frame, len(points))
        return DrawnMesh(
            str(prim.GetPath()),
            points,
            triangles,
            corner_normals(points, triangles),
            np.ascontiguousarray(shown, np.float32),
            None if glow is None else np.ascontiguousarray(glow[triangles]),
            is_surface(prim),
            _floor_look(prim) if len(counts) == 1 and _faces_up(points, triangles) else "",
        )

    def _glow(self, prim: Any, frame: int, count: int) -> np.ndarray | None:
        """Return the light of points' own, shape (count, 3), None where they carry no temperature or are too cold to be seen."""
        if self.colour_by is not None or self.white <= 0.0:
            return None
        values = _numbers(prim, "temperature", frame)
        if values is None or len(values) not in (1, count):
            return None
        found = emitted(np.broadcast_to(values, count), self.white)
        return found if found.max(initial=0.0) > LEAST_GLOW else None

    @_told
    def values(self, name: str, frame: int) -> list[np.ndarray]:
        """Return the values of an attribute (n,) of all points and surfaces that carry it; vectors give their length."""
        matter = [p for p in self.stage.Traverse() if is_cloud(p) or (p.GetTypeName() == "Mesh" and is_surface(p))]
        return [found for prim in matter if (found := _numbers(prim, name, frame)) is not None]

    @_told
    def numbers(self, path: str, name: str, frame: int) -> np.ndarray | None:
        """Return the values of an attribute (n,) of one prim, None where it has none; vectors give their length."""
        return _numbers(self.stage.GetPrimAtPath(path), name, frame)

    @_told
    def vectors(self, path: str, name: str, frame: int) -> np.ndarray | None:
        """Return the vectors of an attribute of one prim, turned to our axes and in SI units, shape (n, 3); None without them."""
        found = _columns(self.stage.GetPrimAtPath(path), name, frame)
        return None if found is None or found.shape[1] != 3 else found @ self.to_metres[:3, :3].T

    @_told
    def attribute_names(self, frame: int) -> list[str]:
        """Return the names of the attributes that points or surfaces of matter carry, sorted."""
        from pxr import UsdGeom

        known = {attribute.usd: name for name, attribute in ATTRIBUTES.items()}
        found = set()
        for prim in self.stage.Traverse():
            if is_cloud(prim) or (prim.GetTypeName() == "Mesh" and is_surface(prim)):
                primvars = [each.GetName() for each in UsdGeom.PrimvarsAPI(prim).GetPrimvarsWithAuthoredValues()]
                names = [*primvars, *(usd for usd in known if prim.HasAttribute(usd) and ":" not in usd)]
                found |= {known.get(usd, usd.removeprefix("primvars:")) for usd in names}
        return sorted(name for name in found - {"displayColor", "position"} if self.values(name, frame))

    @_told
    def surface_carries(self, name: str, frame: int) -> bool:
        """Whether a mesh made from the particles carries an attribute at a frame."""
        surfaces = [prim for prim in self.stage.Traverse() if prim.GetTypeName() == "Mesh" and is_surface(prim)]
        return any(_numbers(prim, name, frame) is not None for prim in surfaces)

    def _colours(self, prim: Any, frame: int) -> np.ndarray | None:
        values = None if self.colour_by is None else _numbers(prim, self.colour_by.name, frame)
        return self._display_colour(prim, frame) if values is None else self.colour_by.colours(values)

    def _display_colour(self, prim: Any, frame: int) -> np.ndarray | None:
        from pxr import UsdGeom

        primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayColor")
        values = primvar.ComputeFlattened(frame) if primvar else None
        return np.array(values, np.float32).reshape(-1, 3) if values is not None and len(values) else None


def open_scene(path: Path) -> Scene:
    """Open a cache's root stage.

    Raises:
        InputError: pxr is missing, or the file cannot be opened.
    """
    try:
        from pxr import Tf, Usd, UsdGeom

        from usd_io import reading_usd, usd_reason
        from usd_io.dependencies import checked_layers
        from usd_io.time_codes import per_second
        from usd_io.typed import code_range
        from usd_io.units import stage_to_si
    except ImportError as error:
        raise InputError("render: reading a cache needs usd-core; install it with: pip install 'mpm-nodes[usd]'") from error
    try:
        held = checked_layers(path)
        with reads.reading(path):
            stage = Usd.Stage.Open(str(path))
        del held
    except Tf.ErrorException as error:
        raise InputError(f"{path}: cannot be opened as a USD stage; cook it again ({usd_reason(error)})") from error
    with reading_usd(path):
        first, last = map(round, code_range(stage))
        stage.SetEditTarget(stage.GetSessionLayer())  # what is shown is chosen there, and never written
        scene = Scene(path, first, last, stage, stage_to_si(stage), fps=per_second(stage))
        for prim in stage.Traverse():
            if prim.IsA(UsdGeom.Gprim):
                colour = _material_colour(prim)
                if colour is not None:
                    scene.colours[str(prim.GetPath())] = colour
        return scene


def _material_colour(prim: Any) -> tuple[float, float, float] | None:
    from pxr import UsdShade

    from usd_io.looks import reader_fallback

    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    shader = material.ComputeSurfaceSource()[0] if material else None
    value = reader_fallback(shader.GetInput("diffuseColor")) if shader else None
    return None if value is None else tuple(float(c) for c in value)


def _extent(shape: Cloud | DrawnMesh) -> np.ndarray:
    """Return the least and greatest corner [m], shape (2, 3); the greatest is below the least where there are no points."""
    points = shape.positions if isinstance(shape, Cloud) else shape.points
    return np.array([points.min(axis=0), points.max(axis=0)]) if len(points) else np.array([[np.inf] * 3, [-np.inf] * 3])


def _around(boxes: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    found = [box for box in boxes if (box[0] <= box[1]).all()]
    return (np.min([box[0] for box in found], axis=0), np.max([box[1] for box in found], axis=0)) if found else None


def _faces_up(points: np.ndarray, triangles: np.ndarray) -> bool:
    """Whether a mesh is level, and seen from above."""
    if not len(triangles) or np.ptp(points[:, 1]) > 1e-6 * np.ptp(points, axis=0).max():
        return False
    a, b, c = (points[triangles[0, n]] for n in range(3))
    return bool(np.cross(b - a, c - a)[1] > 0.0)


def _floor_look(prim: Any) -> str:
    """Return the look of a body in a cache of ours, which shows a floor where it is a level square; empty for what is not."""
    from usd_io.layers import LOOKS_KEY

    return str(prim.GetCustomDataByKey(LOOKS_KEY) or "") if prim.GetName().startswith("collider_") else ""


def is_floor(prim: Any) -> bool:
    from usd_io.set_layer import FLOOR

    return bool(prim.HasAttribute(FLOOR) and prim.GetAttribute(FLOOR).Get())


def _numbers(prim: Any, name: str, frame: int) -> np.ndarray | None:
    """Return one number a point of a primvar or attribute, or None."""
    column = _columns(prim, name, frame)
    if column is None:
        return None
    return column[:, 0] if column.shape[1] == 1 else np.linalg.norm(column, axis=1)


def _columns(prim: Any, name: str, frame: int) -> np.ndarray | None:
    """Return the values of a primvar or attribute, shape (n, components), or None."""
    from pxr import UsdGeom

    from usd_io.intact import refuse_damaged

    refuse_damaged(prim, frame)
    known = ATTRIBUTES.get(name)
    usd = known.usd if known is not None else f"primvars:{name}"
    if usd.startswith("primvars:"):
        primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar(usd.removeprefix("primvars:"))
        values = primvar.ComputeFlattened(frame) if primvar else None
    else:
        values = prim.GetAttribute(usd).Get(frame) if prim.GetAttribute(usd) else None
    if values is None or not len(values):
        return None
    return np.array(values, np.float64).reshape(len(values), -1)


def is_cloud(prim: Any) -> bool:
    from usd_io.packing import holds_points

    return holds_points(prim)


def is_surface(prim: Any) -> bool:
    return any(each.GetName().lower() in SURFACE_NAMES for each in (prim, prim.GetParent()))


def _carried(prim: Any, frame: int, later: float) -> Any:
    """Return the points of a prim at a frame, moved for `later` seconds where it has a velocity for each."""
    from usd_io.packing import unpacked

    points, velocities = unpacked(prim, "points", frame), unpacked(prim, "velocities", frame) if later else None
    if points is None or velocities is None or len(velocities) != len(points):
        return points
    return np.array(points, np.float64) + later * np.array(velocities, np.float64)


def _placed(points: Any, matrix: np.ndarray) -> np.ndarray:
    array = np.array(points if points is not None else [], np.float64).reshape(-1, 3)
    return array @ matrix[:3, :3].T + matrix[:3, 3]


def fan_triangles(counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return polygons cut into triangles from their first corner, shape (t, 3), int32."""
    counts = np.asarray(counts, np.int64)
    starts = np.cumsum(counts) - counts
    parts = []
    for size in np.unique(counts):
        base = starts[counts == size]
        parts += [np.stack([base, base + n, base + n + 1], axis=1) for n in range(1, int(size) - 1)]
    if not parts:
        return np.zeros((0, 3), np.int32)
    return np.ascontiguousarray(np.asarray(indices)[np.concatenate(parts)], np.int32)


def corner_normals(points: np.ndarray, triangles: np.ndarray, crease: float = 40.0) -> np.ndarray:
    """Return normals at triangle corners, shape (t, 3, 3), float32: smooth over faces that meet at less than `crease` deg."""
    from mpm_nodes.kernels.pictures.raster import creased_normals

    normals = np.zeros((len(triangles), 3, 3), np.float32)
    if len(triangles):
        a, b, c = (points[triangles[:, n]] for n in range(3))
        owners = triangles.ravel()
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(points)))])
        corners = np.argsort(owners, kind="stable")
        creased_normals(starts, corners, np.cross(b - a, c - a), np.cos(np.radians(crease)), normals)
    return normals


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (..., 3) at length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)


def framing(bounds: tuple[np.ndarray, np.ndarray], aspect: float) -> View:
    """Return a camera that looks at the middle of the box `bounds` [m] from the front, right and above.

    It stands as near as keeps the corners in the picture, whose width over height is `aspect`.
    """
    low, high = bounds
    centre, focal = 0.5 * (low + high), 1.4
    back = unit(np.array([0.55, 0.42, 1.0]))
    view = look(centre + back, centre, focal)
    corners = (np.array(list(itertools.product((-0.5, 0.5), repeat=3)))) * np.maximum(high - low, 1e-6)
    needed = np.maximum(np.abs(corners @ view.right), aspect * np.abs(corners @ view.up)) * (2.0 * FIT_MARGIN * focal)
    return look(centre + back * float((needed + corners @ back).max()), centre, focal)


def look(eye: np.ndarray, target: np.ndarray, focal: float) -> View:
    """Return the camera at `eye` that looks at `target`, Y up."""
    forward = unit(np.asarray(target, np.float64) - eye)
    right = unit(np.cross(forward, [0.0, 1.0, 0.0]))
    return View(np.asarray(eye, np.float64), right, np.cross(right, forward), forward, focal)
