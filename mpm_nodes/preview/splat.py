"""The built-in renderer: spheres and triangles, one sun with shadows, a ground; needs numpy and numba only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpm_nodes.materials.looks import find_look
from mpm_nodes.preview.exposures import CHECKER_SHARE, FADE, SKY, SKY_SHARES, Backdrop, Exposure
from mpm_nodes.preview.scene import Scene, Shapes, View, unit

GROUND, POINTS, MESH, EMPTY = 1, 2, 3, 0
SUN = np.array([0.32, -0.59, -0.74])
"""Direction that sunlight travels where the stage has no sun: that of our own stages, from the left of the camera."""
SUN_SPREAD = np.tan(np.radians(1.0))
"""Tangent of half the angle under which the sun is seen, as in our own stages."""
LIGHT = 0.75
"""Share of sun and sky: foam, which reflects 0.87, stays below white where both shine on it."""
_NEAR, _ON_GROUND = 1e-3, 1e-4
SHUTTER_PICTURES = 9
"""Pictures, spread evenly over the time in which the shutter is open, whose mean shows the motion blur."""


@dataclass
class _Buffers:
    """Images that are drawn into."""

    depth: np.ndarray
    normal: np.ndarray
    colour: np.ndarray
    layer: np.ndarray


def render(
    scene: Scene,
    wanted: Sequence[Exposure],
    around: Backdrop,
    how: Any,
    done: Callable[[Exposure, Any], None],
) -> None:
    """Render pictures one after the other; arguments as those of `cycles.render`."""
    from PIL import Image

    count = SHUTTER_PICTURES if how.shutter else 1
    moments = ((np.arange(count) + 0.5) / count - 0.5) * how.shutter / scene.fps
    sun = scene.sun(how.camera)
    for exposure in wanted:
        view = exposure.view or scene.view(exposure.frame)
        light = np.zeros((how.size[1], how.size[0], 3))
        for later in moments.tolist():
            shapes = scene.shapes(exposure.frame, how.show, later).without_floor(around.ground)
            light += _linear(shapes, view, how.size, around, sun)
        done(exposure, Image.fromarray(_srgb(light / count)))


def render_shapes(shapes: Shapes, view: View, size: tuple[int, int], around: Backdrop) -> np.ndarray:
    """Return a picture, shape (height, width, 3), uint8, sRGB; arguments as those of `_linear`."""
    return _srgb(_linear(shapes, view, size, around))


def _linear(shapes: Shapes, view: View, size: tuple[int, int], around: Backdrop, sun: np.ndarray | None = None) -> np.ndarray:
    """Return a picture in linear light, shape (height, width, 3).

    Args:
        shapes: What to draw.
        view: Camera.
        size: Width and height in pixels.
        around: What stands around them; its radius sets the reach of shadows and of occlusion, and where the ground fades.
        sun: Direction that sunlight travels; `SUN` when None.
    """
    from mpm_nodes.kernels.pictures.raster import occlusion

    width, height = 2 * size[0], 2 * size[1]  # twice as fine, averaged at the end
    focal = view.focal * width
    images = _buffers(width, height)
    _draw(shapes, view, focal, images)
    _melt(images, focal, _spacing(shapes))
    positions = _positions(images, view, focal, around)
    sunward = -unit(SUN if sun is None else sun)
    lit = _light(shapes, positions, images, around.extent, sunward)
    open_share = occlusion(images.depth, images.normal, focal, 0.08 * around.extent, 16)
    linear = _shade(images, positions, view, lit, open_share, around.extent, sunward) + _glow(shapes, view, focal, (width, height))
    return linear.reshape(size[1], 2, size[0], 2, 3).mean(axis=(1, 3))


def _buffers(width: int, height: int) -> _Buffers:
    return _Buffers(
        np.full((height, width), np.inf),
        np.zeros((height, width, 3), np.float32),
        np.zeros((height, width, 3), np.float32),
        np.zeros((height, width), np.int32),
    )


def _draw(shapes: Shapes, view: View, focal: float, images: _Buffers) -> None:
    """Draw everything in perspective."""
    from mpm_nodes.kernels.pictures.raster import draw_spheres, draw_triangles

    height, width = images.depth.shape
    axes = np.stack([view.right, view.up, view.forward])
    for surface in shapes.surfaces:
        seen = (surface.points - view.eye) @ axes.T
        seen, triangles, normals, colours = _clip(seen, surface.triangles, surface.normals, surface.colours)
        z = np.maximum(seen[:, 2], _NEAR * 0.5)
        turned = np.ascontiguousarray(normals @ axes.T * np.array([1.0, 1.0, -1.0]), np.float32)
        draw_triangles(
            (
                0.5 * width + focal * seen[:, 0] / z,
                0.5 * height - focal * seen[:, 1] / z,
                z,
            ),
            triangles,
            turned,
            colours,
            True,
            (images.depth, images.normal, images.colour, images.layer),
            MESH,
        )
    for cloud in shapes.clouds:
        seen = (cloud.positions - view.eye) @ axes.T
        z = np.where(seen[:, 2] > _NEAR, seen[:, 2], -1.0)
        near = np.maximum(z, _NEAR)
        radii = cloud.radii.astype(np.float64)
        draw_spheres(
            (
                0.5 * width + focal * seen[:, 0] / near,
                0.5 * height - focal * seen[:, 1] / near,
                z,
            ),
            np.maximum(focal * radii / near, 0.6),
            radii,
            cloud.colours,
            (images.depth, images.normal, images.colour, images.layer),
            POINTS,
        )


def _glow(shapes: Shapes, view: View, focal: float, size: tuple[int, int]) -> np.ndarray | float:
    """Return the light of its own of what is seen, shape (height, width, 3); 0 where nothing glows."""
    if all(shape.glow is None for shape in (*shapes.clouds, *shapes.surfaces)):
        return 0.0
    clouds = [replace(cloud, colours=_dark(cloud.colours) if cloud.glow is None else cloud.glow) for cloud in shapes.clouds]
    surfaces = [
        replace(surface, colours=_dark(surface.colours) if surface.glow is None else surface.glow) for surface in shapes.surfaces
    ]
    images = _buffers(*size)
    _draw(Shapes(tuple(clouds), tuple(surfaces)), view, focal, images)
    return images.colour


def _dark(colours: np.ndarray) -> np.ndarray:
    return np.zeros_like(colours)


def _clip(
    seen: np.ndarray, triangles: np.ndarray, normals: np.ndarray, colours: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut triangles that pass through the near plane; return points, triangles, corner normals and corner colours."""
    behind = seen[:, 2] < _NEAR
    count = behind[triangles].sum(axis=1)
    keep = count == 0
    points, corners, kept, painted = [seen], [triangles[keep]], [normals[keep]], [colours[keep]]
    base = len(seen)
    for t in np.flatnonzero((count == 1) | (count == 2)):
        polygon = []
        for n in range(3):
            p, q = seen[triangles[t, n]], seen[triangles[t, (n + 1) % 3]]
            if p[2] >= _NEAR:
                polygon.append(p)
            if (p[2] >= _NEAR) != (q[2] >= _NEAR):
                polygon.append(p + (q - p) * ((_NEAR - p[2]) / (q[2] - p[2])) + [0.0, 0.0, 1e-9])
        points.append(np.array(polygon))
        fan = [[base, base + n, base + n + 1] for n in range(1, len(polygon) - 1)]
        corners.append(np.array(fan, np.int32))
        kept.append(np.repeat(normals[t : t + 1, :1], 3, axis=1).repeat(len(fan), axis=0))
        painted.append(np.repeat(colours[t : t + 1, :1], 3, axis=1).repeat(len(fan), axis=0))
        base += len(polygon)
    return np.concatenate(points), np.concatenate(corners).astype(np.int32), np.concatenate(kept), np.concatenate(painted)


def _spacing(shapes: Shapes) -> float:
    return max((float(cloud.radii.mean()) for cloud in shapes.clouds), default=0.0)


def _melt(images: _Buffers, focal: float, radius: float) -> None:
    """Smooth the depth of the particles, so that they look like one body, and take their normals from it."""
    from mpm_nodes.kernels.pictures.raster import blur_depth, normals_from_depth

    seen = images.layer == POINTS
    if not seen.any():
        return
    pixels = focal * radius / float(np.median(images.depth[seen]))
    reach = int(np.clip(np.ceil(1.5 * pixels), 2, 8))
    depth = images.depth
    for _ in range(3):
        depth = blur_depth(depth, images.layer, POINTS, reach, 6.0 * radius, 0, 1)
        depth = blur_depth(depth, images.layer, POINTS, reach, 6.0 * radius, 1, 0)
    rough = images.normal.copy()
    normals_from_depth(depth, images.layer, POINTS, focal, 6.0 * radius, images.normal)
    mixed = 0.85 * images.normal[seen] + 0.15 * rough[seen]
    images.normal[seen] = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)
    images.depth = depth


def _positions(images: _Buffers, view: View, focal: float, around: Backdrop) -> np.ndarray:
    """Return world positions (H, W, 3) of what is seen; pixels that meet the ground before anything else become ground."""
    height, width = images.depth.shape
    x = (np.arange(width) + 0.5 - 0.5 * width) / focal
    y = (0.5 * height - np.arange(height) - 0.5) / focal
    rays = view.forward + x[None, :, None] * view.right + y[:, None, None] * view.up
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = (around.ground - view.eye[1]) / rays[..., 1]
    before = (1.0 - _ON_GROUND) * images.depth  # what lies in the ground's own plane is seen
    meets = (floor > _NEAR) & (floor < before) & np.isfinite(floor)
    images.depth[meets] = floor[meets]
    images.layer[meets] = GROUND
    positions = view.eye + rays * np.where(np.isfinite(images.depth), images.depth, 0.0)[..., None]
    images.colour[meets] = _floor(positions[meets], around)
    up = np.array([view.right[1], view.up[1], -view.forward[1]], np.float32)
    images.normal[meets] = up
    return positions


def _floor(positions: np.ndarray, around: Backdrop) -> np.ndarray:
    """Return the linear colours of places on the floor, shape (n, 3), or one for all of them, (3,)."""
    look = find_look(around.look)
    if look.pattern != "checker":
        return np.array(look.colour)
    tile = around.extent * CHECKER_SHARE
    odd = np.floor(positions[:, ::2] / tile).sum(axis=1).astype(int) % 2
    return np.array([look.colour, look.second])[odd]


def _light(shapes: Shapes, positions: np.ndarray, images: _Buffers, extent: float, sunward: np.ndarray) -> np.ndarray:
    """Return the sunlit share of every pixel."""
    from mpm_nodes.kernels.pictures.raster import Light, draw_spheres, draw_triangles, shadow

    bounds = shapes.framed()  # a drop that flew far would make the map coarse everywhere else
    if bounds is None:
        return np.ones(images.depth.shape, np.float32)
    low, high = bounds
    centre, radius = 0.5 * (low + high), 0.55 * float(np.linalg.norm(high - low)) + 1e-6
    forward = -sunward
    right = unit(np.cross(forward, [0.0, 1.0, 0.0] if abs(forward[1]) < 0.999 else [1.0, 0.0, 0.0]))
    up = np.cross(right, forward)
    axes, resolution = np.stack([right, up, forward]), 1024
    scale = 0.5 * resolution / radius
    sun = _buffers(resolution, resolution)
    away = 2.0 * radius  # the drawing loops skip what lies at or behind depth 0
    for surface in shapes.surfaces:
        seen = (surface.points - centre) @ axes.T
        draw_triangles(
            (
                0.5 * resolution + seen[:, 0] * scale,
                0.5 * resolution - seen[:, 1] * scale,
                seen[:, 2] + away,
            ),
            surface.triangles,
            np.zeros((len(surface.triangles), 3, 3), np.float32),
            np.zeros((len(surface.triangles), 3, 3), np.float32),
            False,
            (sun.depth, sun.normal, sun.colour, sun.layer),
            MESH,
        )
    for cloud in shapes.clouds:
        seen = (cloud.positions - centre) @ axes.T
        radii = cloud.radii.astype(np.float64)
        draw_spheres(
            (
                0.5 * resolution + seen[:, 0] * scale,
                0.5 * resolution - seen[:, 1] * scale,
                seen[:, 2] + away,
            ),
            np.maximum(radii * scale, 0.6),
            radii,
            cloud.colours,
            (sun.depth, sun.normal, sun.colour, sun.layer),
            POINTS,
        )
    bias = 0.012 * extent + 1.5 * _spacing(shapes)
    light = Light(right, up, forward, centre, scale, SUN_SPREAD)
    return shadow(positions, images.layer != EMPTY, light, sun.depth - away, bias)


def _shade(
    images: _Buffers,
    positions: np.ndarray,
    view: View,
    lit: np.ndarray,
    open_share: np.ndarray,
    extent: float,
    sunward: np.ndarray,
) -> np.ndarray:
    """Return linear colours: sky and sun light on everything, the ground fading into the background."""
    single = np.float32
    axes = np.stack([view.right, view.up, -view.forward]).astype(single)
    normal = images.normal @ axes
    towards = (view.eye - positions).astype(single)
    distance = np.sqrt(np.einsum("ijk,ijk->ij", towards, towards))
    towards /= np.maximum(distance, single(1e-12))[..., None]
    normal *= np.where(np.einsum("ijk,ijk->ij", normal, towards) < 0.0, single(-1.0), single(1.0))[..., None]
    sun = sunward.astype(single)
    facing = np.clip(normal @ sun, 0.0, 1.0) * lit
    half = towards + sun
    glance = np.einsum("ijk,ijk->ij", normal, half) / np.sqrt(np.maximum(np.einsum("ijk,ijk->ij", half, half), single(1e-12)))
    shine = np.array([0.0, 0.0, 0.25, 0.08], single)[images.layer]
    gloss = np.clip(glance, 0.0, 1.0) ** 40 * lit * shine
    sky = (single(0.31) + single(0.21) * normal[..., 1]) * open_share
    light = sky[..., None] * np.array([0.92, 0.97, 1.06], single) + facing[..., None] * np.array([1.0, 0.95, 0.87], single)
    linear = single(LIGHT) * (images.colour * light + gloss[..., None])
    rows = np.linspace(*SKY_SHARES[::-1], len(linear), dtype=single)[:, None, None]
    near, far = FADE
    fade = np.clip((distance / single(extent) - single(near)) / single(far - near), 0.0, 1.0)
    fade = np.where(images.layer == GROUND, fade, single(0.0)) + (images.layer == EMPTY)
    return linear + (np.array(SKY, single) * rows - linear) * fade[..., None].astype(single)


def _srgb(linear: np.ndarray) -> np.ndarray:
    linear = np.clip(linear, 0.0, 1.0)
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    return (255.0 * curve + 0.5).astype(np.uint8)
