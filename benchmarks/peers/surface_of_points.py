"""What the surfacing scripts share: their arguments, the time, and the figures of a mesh. Runs everywhere: NumPy only."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

WARM_UP = 20_000
"""Points of the run before the timed one, which loads and compiles everything."""

Triangles = tuple[np.ndarray, np.ndarray]
"""Points [m], shape (n, 3), and corners of triangles, shape (m, 3)."""


def main(surface: Callable[[np.ndarray, np.ndarray, float, float], Callable[[], Triangles]], version: str) -> None:
    """Run a surfacing script: `surface(positions, velocities, spacing, voxel)` does the work, its result gives the triangles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=Path, required=True, nargs="+", help=".npz files with position and velocity")
    parser.add_argument("--spacing", type=float, required=True)
    parser.add_argument("--voxel", type=float, default=1.0, help="in spacings (default: %(default)s)")
    parser.add_argument("--meshes", action="store_true", help="write the triangles of NAME.npz to NAME.mesh.npz")
    parser.add_argument("--anisotropy", action="store_true", help="ellipsoids in thin places, where the program has them off")
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write: a list, an item for each file of points")
    args = parser.parse_args()
    found, voxel = [], args.voxel * args.spacing
    for number, file in enumerate(args.points):
        held = np.load(file)
        position, velocity = held["position"], held["velocity"]
        if number == 0:
            surface(position[:WARM_UP], velocity[:WARM_UP], args.spacing, voxel)
        begin = time.perf_counter()
        triangles_of = surface(position, velocity, args.spacing, voxel)
        seconds = time.perf_counter() - begin
        points, corners = triangles_of()
        found.append(
            {"version": version, "seconds": seconds, "triangles": len(corners), "volume": enclosed_volume(points, corners)}
        )
        if args.meshes:
            np.savez(file.with_suffix(".mesh.npz"), points=points, corners=corners)
    args.result.write_text(json.dumps(found))


def enclosed_volume(points: np.ndarray, corners: np.ndarray) -> float:
    """Return the volume inside closed triangles, counter-clockwise seen from outside [m^3]."""
    points = np.asarray(points, float)
    a, b, c = (points[corners[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b - a, c - a)) / 6.0)
