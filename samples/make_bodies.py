"""Make the bodies of the foam samples: bodies.vdb (what is emitted, and a cracker), head.usdc and pins.usdc (colliders).

python samples/make_bodies.py            (needs everything: pip install "mpm-nodes[all]")

Volumes are those that the source's particle counts imply (particles / 8 h^3); shapes are free there, and chosen here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt

from mpm_nodes.data import LevelSet
from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate
from usd_io.volumes import write_volumes

HERE = Path(__file__).parent
BAND = 3.0
"""Half width of the narrow bands, in voxels."""

Distance = Callable[[np.ndarray], np.ndarray]
"""Signed distance [m] of points (n, 3) [m], negative inside."""


# ---------------------------------------------------------------- shapes
def ellipsoid(centre: tuple, radii: tuple, tilt: float = 0.0) -> Distance:
    """Return an ellipsoid, tilted about z by so many degrees; its distance is exact at the surface, to first order."""
    c, s = np.cos(np.radians(tilt)), np.sin(np.radians(tilt))
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])

    def distance(points: np.ndarray) -> np.ndarray:
        local = (points - np.asarray(centre)) @ turn.T
        near = np.linalg.norm(local / np.asarray(radii), axis=1)
        slope = np.linalg.norm(local / np.square(radii), axis=1)
        return near * (near - 1.0) / np.maximum(slope, 1e-9)

    return distance


def puck(radius: float, half_height: float, fillet: float, height: float = 0.0) -> Distance:
    """Return a cylinder about y with round edges, its middle at `height`."""

    def distance(points: np.ndarray) -> np.ndarray:
        across = np.hypot(points[:, 0], points[:, 2]) - radius + fillet
        along = np.abs(points[:, 1] - height) - half_height + fillet
        out = np.hypot(np.maximum(across, 0.0), np.maximum(along, 0.0))
        return out + np.minimum(np.maximum(across, along), 0.0) - fillet

    return distance


def joined(parts: list[Distance], blend: float) -> Distance:
    """Return the union with seams rounded over `blend` metres."""

    def distance(points: np.ndarray) -> np.ndarray:
        found = parts[0](points)
        for part in parts[1:]:
            other = part(points)
            near = np.maximum(blend - np.abs(found - other), 0.0) / blend
            found = np.minimum(found, other) - 0.25 * blend * near**2
        return found

    return distance


def dollop() -> Distance:
    """Hangs below y = 0: a broad patch that sticks, a waist, a bulb with a crooked tip below."""
    patch, waist = ellipsoid((0.0, -0.001, 0.0), (0.047, 0.017, 0.045)), ellipsoid((0.002, -0.018, 0.0), (0.023, 0.020, 0.022))
    bulb = ellipsoid((0.003, -0.036, 0.001), (0.030, 0.024, 0.029))
    tip = ellipsoid((-0.003, -0.058, -0.003), (0.014, 0.016, 0.013), 10.0)
    shape = joined([patch, waist, bulb, tip], 0.012)
    return lambda points: np.maximum(shape(points), points[:, 1])


def penguin() -> Distance:
    """Stands on y = 0 and looks along z: body, head, beak, two wings, two feet."""
    sides = [part for side in (-1.0, 1.0) for part in (
        ellipsoid((side * 0.0142, 0.0215, 0.0), (0.0034, 0.0115, 0.0062), side * 24.0),
        ellipsoid((side * 0.0062, 0.0015, 0.005), (0.0052, 0.0032, 0.0085)))]  # fmt: skip
    trunk, head = ellipsoid((0.0, 0.0185, 0.0), (0.0122, 0.0185, 0.0117)), ellipsoid((0.0, 0.042, 0.0008), (0.0092, 0.0088, 0.0092))
    return joined([trunk, head, ellipsoid((0.0, 0.0408, 0.0105), (0.0026, 0.0022, 0.0058)), *sides], 0.003)


def pie() -> Distance:
    """A cake of cream in y, flat below, with a dome and a ring of dabs above."""
    turns = np.linspace(0.0, 2.0 * np.pi, 9, endpoint=False)
    dabs = [ellipsoid((0.050 * np.cos(t), 0.016, 0.050 * np.sin(t)), (0.0135, 0.0140, 0.0135)) for t in turns]
    return joined([puck(0.065, 0.0105, 0.006), ellipsoid((0.0, 0.009, 0.0), (0.042, 0.024, 0.042)), *dabs], 0.005)


def cracker() -> Distance:
    """A square cracker about the origin, 9 cm wide and 8 mm thick, with nine holes through it."""

    def distance(points: np.ndarray) -> np.ndarray:
        out = np.abs(points) - (np.array([0.045, 0.004, 0.045]) - 0.0015)
        box = np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0) - 0.0015
        pitch = 0.027
        middle = pitch * np.clip(np.rint(points[:, [0, 2]] / pitch), -1, 1)
        hole = np.linalg.norm(points[:, [0, 2]] - middle, axis=1) - 0.0085
        return np.maximum(box, -hole)

    return distance


# ---------------------------------------------------------------- from distances to voxels
def lattice(reach: np.ndarray, voxel: float) -> np.ndarray:
    """Return the voxel centres of whole leaves of 8^3 that cover a box of these half edges [m], shape (x, y, z, 3)."""
    half = 8 * np.ceil((reach / voxel + 4) / 8).astype(int)
    axes = [voxel * np.arange(-n, n) for n in half]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def level_set(name: str, shape: Distance, reach: tuple[float, float, float], voxel: float, volume: float = 0.0) -> LevelSet:
    """Return the narrow band of a shape, scaled about the origin to the volume [m^3] when one is given; `voxel` in metres."""
    places, band = lattice(np.asarray(reach), voxel), BAND * voxel
    flat = places.reshape(-1, 3)
    scale = 1.0
    for _ in range(6 if volume else 0):
        filled = np.clip(0.5 - scale * shape(flat / scale) / voxel, 0.0, 1.0).sum() * voxel**3
        scale *= np.cbrt(volume / filled)
    values = np.clip(scale * shape(flat / scale), -band, band).astype(np.float32).reshape(places.shape[:3])
    sides = (values[[0, -1]], values[:, [0, -1]], values[:, :, [0, -1]])
    if min(side.min() for side in sides) < 0.999 * band:
        raise SystemExit(f"{name}: reaches out of its box; give it more reach")
    counts = np.array(values.shape) // 8
    leaves = values.reshape(counts[0], 8, counts[1], 8, counts[2], 8).transpose(0, 2, 4, 1, 3, 5).reshape(-1, 8, 8, 8)
    first = np.rint(places[0, 0, 0] / voxel).astype(np.int32)
    origins = first + 8 * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3).astype(np.int32)
    near = (np.abs(leaves) < 0.999 * band).any(axis=(1, 2, 3))
    print(f"{name}: {near.sum()} leaves, scaled by {scale:.4f}")
    return LevelSet(origins[near], np.ascontiguousarray(leaves[near]), voxel, background=band, name=name)


def toasted(inset: float) -> Distance:
    """A marshmallow of 1.23e-4 m^3 without its outer `inset` metres."""
    scale = 0.9925
    outer = puck(scale * 0.0285, scale * 0.0250, scale * 0.005)
    return lambda points: outer(points) + inset


def write_bodies(target: Path) -> None:
    """Write the level sets."""
    core, outer = toasted(0.0035), toasted(0.0)
    parts = [
        level_set("dollop", dollop(), (0.062, 0.088, 0.060), 2e-3, 1.85e-4),
        level_set("marshmallow", puck(0.026, 0.0245, 0.005), (0.032, 0.030, 0.032), 2e-3, 1.04e-4),
        level_set("toasted_core", core, (0.034, 0.030, 0.034), 2e-3),
        level_set("toasted_shell", lambda points: np.maximum(outer(points), -core(points)), (0.034, 0.030, 0.034), 2e-3),
        level_set("pie", pie(), (0.080, 0.045, 0.080), 2e-3, 3.7e-4),
        level_set("penguin", penguin(), (0.026, 0.056, 0.026), 1e-3, 1.8e-5),
        level_set("cracker", cracker(), (0.050, 0.010, 0.050), 2e-3),
    ]
    write_volumes(target, parts, half=True)


# ---------------------------------------------------------------- meshes
def write_head(source: Path, target: Path, width: float = 0.27, turn: float = 55.0) -> None:
    """Write Blender's monkey head, as wide as that [m], about the origin, turned from z to x [deg], its eyes closed by faces."""
    stage = Usd.Stage.Open(str(source))
    mesh = next(UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh))
    local = np.array(mesh.GetPointsAttr().Get(), float)
    points = np.stack([local[:, 0], local[:, 2], -local[:, 1]], axis=1)
    points = (points - 0.5 * (points.min(axis=0) + points.max(axis=0))) * (width / np.ptp(points[:, 0]))
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    points = points @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    faces = (mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr())
    counts, indices = (np.array(values.Get(), np.int32) for values in faces)
    solid = solid_mesh(points, triangulate(counts, indices)[0])
    write_mesh(target, "head", solid.extended(points), solid.triangles)


HEIGHTS = (0.54, 0.445, 0.36, 0.285, 0.215, 0.15)
PITCHES = (0.150, 0.120, 0.097, 0.081, 0.069, 0.060)
"""Heights of the rows of pins [m], and the distances of their pins [m]: closer and closer downwards."""
PIN_RADIUS, DEPTH, BOARD = 0.008, 0.10, 0.40
"""Radius of a pin, its length along z, and width of the board [m]."""


def write_pins(target: Path, around: int = 16) -> None:
    """Write the pins of the pachinko board: cylinders along z; every second row is shifted by half a distance."""
    turns = 2.0 * np.pi * np.arange(around) / around
    ring = PIN_RADIUS * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    points, triangles = [], []
    for number, (height, pitch) in enumerate(zip(HEIGHTS, PITCHES, strict=True)):
        shift = 0.5 * pitch if number % 2 else 0.0
        for x in np.arange(-20, 21) * pitch + shift:
            if abs(x) > 0.5 * BOARD - 2.0 * PIN_RADIUS:
                continue
            base = sum(map(len, points))
            for z in (-0.5 * DEPTH, 0.5 * DEPTH):
                points.append(np.column_stack([ring + [x, height], np.full(around, z)]))
                points.append([(x, height, z)])
            back, front = base, base + around + 1
            for k in range(around):
                n = (k + 1) % around
                triangles += [(back + k, back + n, front + n), (back + k, front + n, front + k),
                              (back + around, back + n, back + k), (front + around, front + k, front + n)]  # fmt: skip
    write_mesh(target, "pins", np.concatenate(points), np.array(triangles))


def write_mesh(target: Path, name: str, points: np.ndarray, triangles: np.ndarray) -> None:
    """Write triangles as a stage of one mesh, in metres and Y up."""
    target.unlink(missing_ok=True)
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, f"/{name}")
    stage.SetDefaultPrim(mesh.GetPrim())
    mesh.CreatePointsAttr([Gf.Vec3f(*map(float, point)) for point in np.round(points, 6)])
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(triangles)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray(triangles.ravel().tolist()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.Save()


def main(target: Path) -> None:
    """Write the three files into a folder."""
    write_bodies(target / "bodies.vdb")
    write_head(HERE / "monkey.usdc", target / "head.usdc")
    write_pins(target / "pins.usdc")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
