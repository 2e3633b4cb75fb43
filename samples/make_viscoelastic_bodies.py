"""Make the bodies of the viscoelastic samples: viscoelastic.vdb, streams.usdc (what streams), small_head.usdc (what the pie hits).

python samples/make_viscoelastic_bodies.py            (needs everything: pip install "mpm-nodes[all]")

The source prints no geometry; sizes follow from its particle counts and grids, read in decimetres.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from make_bodies import Distance, level_set, puck, write_head
from pxr import Usd, UsdGeom, Vt

from mpm_nodes.data import LevelSet
from usd_io.volumes import write_volumes

HERE = Path(__file__).parent
PIE_RADIUS, CRUST, DEPTH = 0.0125, 0.0012, 0.0042
"""Radius of the pie, thickness of its crust and depth of its cream [m]."""
SCORES, SCORE_WIDTH = 8, 0.0012
"""Half lines along which the crust is scored, and the width of a score [m]."""
SIDES = 96
"""Of the prisms that stream."""


def crust() -> Distance:
    """The crust of the pie: a disc that lies on y = 0, its lower face at -CRUST."""
    return puck(PIE_RADIUS, 0.5 * CRUST, 0.0003, -0.5 * CRUST)


def cream() -> Distance:
    """The cream on the crust: a flat cake on y = 0, not as wide as the crust."""
    return puck(PIE_RADIUS - 0.0012, 0.5 * DEPTH, 0.001, 0.5 * DEPTH)


def to_scores(points: np.ndarray) -> np.ndarray:
    """Return the distance to the nearest score [m]: half lines from the middle, and a ring at half the radius."""
    around, across = np.arctan2(points[:, 2], points[:, 0]), np.hypot(points[:, 0], points[:, 2])
    step = 2.0 * np.pi / SCORES
    angle = np.abs(around - step * np.rint(around / step))
    rays = np.where(angle < 0.5 * np.pi, across * np.sin(angle), across)
    return np.minimum(rays, np.abs(across - 0.5 * PIE_RADIUS))


def brush() -> Distance:
    """A toothbrush along x: a handle below y = 0, and tufts of bristles, 15 mm long, on it."""
    radius, pitch, length = 0.0032, np.array([0.0095, 0.0095]), 0.015

    def distance(points: np.ndarray) -> np.ndarray:
        out = np.abs(points - [0.0, -0.004, 0.0]) - (np.array([0.065, 0.004, 0.0165]) - 0.002)
        handle = np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0) - 0.002
        middle = pitch * np.clip(np.rint(points[:, [0, 2]] / pitch), [-6, -1], [6, 1])
        across = np.linalg.norm(points[:, [0, 2]] - middle, axis=1) - radius
        tufts = np.maximum(across, np.maximum(points[:, 1] - length, -0.004 - points[:, 1]))
        return np.minimum(handle, tufts)

    return distance


def ellipse(rx: float, rz: float) -> Distance:
    """An endless elliptic column about y; exact at its surface, to first order."""
    radii = np.array([rx, rz])

    def distance(points: np.ndarray) -> np.ndarray:
        local = points[:, [0, 2]]
        near, slope = np.linalg.norm(local / radii, axis=1), np.linalg.norm(local / radii**2, axis=1)
        return near * (near - 1.0) / np.maximum(slope, 1e-9)

    return distance


def box(x: float, y: float, z: float) -> Distance:
    """A box of these half edges about the origin."""

    def distance(points: np.ndarray) -> np.ndarray:
        out = np.abs(points) - (x, y, z)
        return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)

    return distance


def without(body: Distance, hole: Distance) -> Distance:
    """Return a body with a hole through it."""
    return lambda points: np.maximum(body(points), -hole(points))


def flow(body: LevelSet, speed: float) -> LevelSet:
    """Return the velocity of a body that holds what passes through it at that speed downwards [m per second of the shot]."""
    values = np.zeros((*body.values.shape, 3), np.float32)
    values[..., 1] = -speed
    return LevelSet(body.origins, values, body.voxel_size, background=0.0, kind="vector", name=f"{body.name}_velocity")


def write_prisms(path: Path) -> None:
    """Write what streams as meshes: every section is the same up to the ends, where the copies of a stream meet.

    A level set rounds the edges at the ends, and each seam of the stream is a notch at which it breaks.
    """
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    turns = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
    around, across = np.arange(SIDES), np.roll(np.arange(SIDES), -1)
    sides = np.stack([around, SIDES + around, SIDES + across, across], 1)
    for name, rx, rz, half_height in (("ribbon", 0.0011, 0.0016, 0.002), ("strand", 0.006, 0.006, 0.006)):
        rings = [np.stack([rx * np.cos(turns), np.full(SIDES, y), rz * np.sin(turns)], 1) for y in (-half_height, half_height)]
        mesh = UsdGeom.Mesh.Define(stage, f"/{name}")
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.concatenate(rings).astype(np.float32)))
        mesh.CreateFaceVertexCountsAttr([4] * SIDES + [SIDES] * 2)
        mesh.CreateFaceVertexIndicesAttr([*sides.ravel().tolist(), *range(SIDES), *range(2 * SIDES - 1, SIDES - 1, -1)])
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.GetRootLayer().Save()


def main(target: Path) -> None:
    """Write the files into a folder."""
    whole, reach = crust(), (1.15 * PIE_RADIUS, 0.006, 1.15 * PIE_RADIUS)
    parts = [
        level_set("brush", brush(), (0.07, 0.02, 0.02), 9e-4),
        level_set("cream", cream(), reach, 2.5e-4),
        level_set("crust", lambda points: np.maximum(whole(points), 0.5 * SCORE_WIDTH - to_scores(points)), reach, 2.5e-4),
        level_set("scores", lambda points: np.maximum(whole(points), to_scores(points) - 0.5 * SCORE_WIDTH), reach, 2.5e-4),
    ]
    # what streams touches the wall: walls that are sticky hold nothing across air
    foam = without(puck(0.0028, 0.004, 0.0), ellipse(0.0011, 0.0016))
    paste = without(puck(0.0085, 0.011, 0.0), ellipse(0.006, 0.006))
    slot = without(box(0.0026, 0.004, 0.0078), box(0.0008, 1.0, 0.006))
    nozzles = [
        level_set("foam_nozzle", foam, (0.0040, 0.005, 0.0040), 3e-4),
        level_set("paste_nozzle", paste, (0.011, 0.013, 0.011), 8e-4),
        level_set("slot", slot, (0.004, 0.0055, 0.009), 3e-4),
    ]
    speeds = (0.12, 0.1, 1.2 * 0.05)  # per second of the shot: ice cream is shown at 1.2 times its speed
    parts += nozzles + [flow(body, speed) for body, speed in zip(nozzles, speeds, strict=True)]
    write_volumes(target / "viscoelastic.vdb", parts, half=True)
    write_prisms(target / "streams.usdc")
    write_head(HERE / "monkey.usdc", target / "small_head.usdc", width=0.05, turn=70.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
