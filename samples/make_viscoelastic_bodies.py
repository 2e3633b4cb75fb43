"""Make the bodies of the viscoelastic samples: viscoelastic.vdb (what is emitted) and small_head.usdc (what the pie is thrown at).

python samples/make_viscoelastic_bodies.py            (needs everything: pip install "mpm-nodes[all]")

The source prints no geometry; sizes follow from its particle counts and grids, read in decimetres.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from make_bodies import Distance, level_set, puck, write_head

from mpm_nodes.data import LevelSet
from usd_io.volumes import write_volumes

HERE = Path(__file__).parent
PIE_RADIUS, CRUST, DEPTH = 0.0125, 0.0012, 0.0036
"""Radius of the pie, thickness of its crust and depth of its cream [m]."""
SCORES, SCORE_WIDTH = 8, 0.0006
"""Half lines along which the crust is scored, and the width of a score [m]."""


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


def ribbon() -> Distance:
    """A strand that is flatter along x: it folds in the plane across z. Its area is that of a disc of radius 2 mm."""
    radii = np.array([0.0016, 0.0025])

    def distance(points: np.ndarray) -> np.ndarray:
        local = points[:, [0, 2]]
        near, slope = np.linalg.norm(local / radii, axis=1), np.linalg.norm(local / radii**2, axis=1)
        return np.maximum(near * (near - 1.0) / np.maximum(slope, 1e-9), np.abs(points[:, 1]) - 0.002)

    return distance


def box(half: tuple[float, float, float]) -> Distance:
    """A box of these half edges about the origin."""

    def distance(points: np.ndarray) -> np.ndarray:
        out = np.abs(points) - half
        return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)

    return distance


def flow(body: LevelSet, speed: float) -> LevelSet:
    """Return the velocity of a body that holds what passes through it at that speed downwards [m/s]."""
    values = np.zeros((*body.values.shape, 3), np.float32)
    values[..., 1] = -speed
    return LevelSet(body.origins, values, body.voxel_size, background=0.0, kind="vector", name=f"{body.name}_velocity")


def main(target: Path) -> None:
    """Write the files into a folder."""
    whole, reach = crust(), (1.15 * PIE_RADIUS, 0.006, 1.15 * PIE_RADIUS)
    parts = [
        level_set("strand", puck(0.002, 0.002, 0.0), (0.0029, 0.0029, 0.0029), 2e-4),
        level_set("ribbon", ribbon(), (0.0024, 0.0029, 0.0033), 2e-4),
        level_set("brush", brush(), (0.07, 0.02, 0.02), 6e-4),
        level_set("cream", cream(), reach, 2.5e-4),
        level_set("crust", lambda points: np.maximum(whole(points), 0.5 * SCORE_WIDTH - to_scores(points)), reach, 2.5e-4),
        level_set("scores", lambda points: np.maximum(whole(points), to_scores(points) - 0.5 * SCORE_WIDTH), reach, 2.5e-4),
    ]
    nozzles = [
        level_set("foam_nozzle", puck(0.0033, 0.0032, 0.0), (0.0040, 0.0040, 0.0040), 4e-4),
        level_set("paste_nozzle", puck(0.0085, 0.009, 0.0), (0.011, 0.011, 0.011), 1e-3),
        level_set("slot", box((0.0018, 0.0032, 0.0072)), (0.004, 0.005, 0.009), 4e-4),
    ]
    speeds = (0.06, 0.1, 0.05)
    parts += nozzles + [flow(body, speed) for body, speed in zip(nozzles, speeds, strict=True)]
    write_volumes(target / "viscoelastic.vdb", parts, half=True)
    write_head(HERE / "monkey.usdc", target / "small_head.usdc", width=0.05, turn=70.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "mpm_nodes" / "samples")
