"""How good surfaces are: our node next to pip-installed pysplashsurf on shapes that are known, in one run.

    python benchmarks/surfaces.py                     # voxels of one particle spacing
    python benchmarks/surfaces.py --voxel 0.6 --json figures.json

ball     a jittered lattice of 40 spacings across
sheet    one layer of particles, as seeded, and drawn out to 1.6 and 2.2 times its length and width; it lies askew
thread   one row of particles, as seeded, and drawn out twice and three times; it lies askew

Of each: the seconds; how far the volume inside is from that of the particles; the Hausdorff distance to the surface that the ball,
or the sheet or thread of that volume, should have (rims and ends left out) [voxels]; pieces and holes; the share of particles
outside.
Flicker is how far a point of the ball's surface moves from frame to frame [voxels, root mean square]: `at rest` with particles that
tremble by a hundredth of a spacing, `in motion` with a ball that moves askew by 0.37 spacings a frame, seen from the ball.

Both have the same grid, three smoothing passes, normals, and a carried velocity.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clouds
import numpy as np
from caches import PYSPLASHSURF
from environments import environment, run_script

from mpm_nodes.data import MpmNodesError

SPACING = clouds.SPACING
ACROSS = 40
"""Diameter of the ball, and side of the undeformed sheet, in spacings; the thread is twice as long."""
FRAMES = 4
"""Frames of each flicker."""
TREMBLE, MOTION = 0.01, 0.37 * np.array([0.8, 0.5, 0.33])
"""How far particles tremble, and how far the ball moves in a frame, in spacings."""
LOOKED_AT = 400
"""Points of a surface, and particles, that are looked at."""
SCRIPTS = {"mpm_nodes": "mpm_nodes_surface.py", "pysplashsurf": "pysplashsurf_surface.py"}
LESS_IS_BETTER = ("seconds", "volume error", "hausdorff", "pieces too many", "holes", "outside", "at rest", "in motion")


@dataclass(frozen=True)
class Shape:
    """Particles of a known shape.

    Attributes:
        position: [m], shape (n, 3).
        surface: Points on the surface that it should have [m], shape (m, 3).
        normals: Outward, shape (m, 3).
        kind: ball, sheet or thread.
        axes: Directions along the shape, then across, rows, shape (3, 3).
        half: Radius of the ball or thread, half thickness of the sheet [m].
        length: Half length of the sheet or thread within which it is compared [m].
    """

    position: np.ndarray
    surface: np.ndarray
    normals: np.ndarray
    kind: str
    axes: np.ndarray
    half: float
    length: float = math.inf


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 2 when something cannot run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--voxel", type=float, default=1.0, help="in particle spacings (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args(arguments)
    shapes = all_shapes()
    try:
        found = {program: measured(program, shapes, args) for program in SCRIPTS}
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in table(found):
        print(line)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


# ---------------------------------------------------------------- shapes
def all_shapes() -> dict[str, Shape]:
    """Return the shapes by their names; frames of flicker are `rest N` and `motion N`."""
    rng = np.random.default_rng(5)
    still = ball()
    shapes = {"ball": still}
    for frame in range(FRAMES):
        shapes[f"rest {frame}"] = moved(still, SPACING * TREMBLE * rng.standard_normal(still.position.shape))
        shapes[f"motion {frame}"] = moved(still, SPACING * frame * MOTION, along=True)
    shapes |= {f"sheet x {s:g}": sheet(s) for s in (1.0, 1.6, 2.2)}
    return shapes | {f"thread x {s:g}": thread(s) for s in (1.0, 2.0, 3.0)}


def ball() -> Shape:
    """Return a ball."""
    count = round(math.pi / 6.0 * ACROSS**3)
    radius = SPACING * (3.0 * count / (4.0 * math.pi)) ** (1.0 / 3.0)
    directions = np.random.default_rng(6).standard_normal((LOOKED_AT, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return Shape(clouds.ball(count), radius * directions, directions, "ball", np.eye(3), radius)


def moved(shape: Shape, by: np.ndarray, along: bool = False) -> Shape:
    """Return the shape with its particles moved; `along`: what is expected moves with them."""
    surface = shape.surface + by if along else shape.surface
    return Shape(shape.position + by, surface, shape.normals, shape.kind, shape.axes, shape.half)


def askew() -> np.ndarray:
    """Return axes that lie along no axis and no diagonal of the grid."""
    return np.linalg.qr(np.array([[0.9, 0.3, 0.25], [-0.35, 0.8, 0.4], [0.1, -0.5, 0.85]]))[0].T


def sheet(stretch: float) -> Shape:
    """Return one layer of particles, `stretch` times as long and wide as it was seeded."""
    rng, axes = np.random.default_rng(7), askew()
    line = (np.arange(ACROSS) - 0.5 * (ACROSS - 1)) * stretch
    flat = np.stack(np.meshgrid(line, line, [0.0], indexing="ij"), -1).reshape(-1, 3)
    flat += rng.uniform(-0.2, 0.2, flat.shape) * [stretch, stretch, 0.2]
    half, length = 0.5 * SPACING / stretch**2, SPACING * (0.5 * ACROSS - 2.0) * stretch
    places = rng.uniform(-length, length, (LOOKED_AT, 3))
    side = np.where(np.arange(LOOKED_AT) % 2, 1.0, -1.0)
    places[:, 2] = half * side
    return Shape(SPACING * flat @ axes, places @ axes, side[:, None] * axes[2], "sheet", axes, half, length)


def thread(stretch: float) -> Shape:
    """Return one row of particles, `stretch` times as long as it was seeded."""
    rng, axes = np.random.default_rng(8), askew()
    count = 2 * ACROSS
    row = np.zeros((count, 3))
    row[:, 0] = (np.arange(count) - 0.5 * (count - 1)) * stretch
    row += rng.uniform(-0.15, 0.15, row.shape)
    half, length = SPACING / math.sqrt(math.pi * stretch), SPACING * (0.5 * count - 2.0) * stretch
    angle, along = rng.uniform(0.0, 2.0 * math.pi, LOOKED_AT), rng.uniform(-length, length, LOOKED_AT)
    outward = np.stack([np.zeros(LOOKED_AT), np.cos(angle), np.sin(angle)], -1)
    places = half * outward + along[:, None] * [1.0, 0.0, 0.0]
    return Shape(SPACING * row @ axes, places @ axes, outward @ axes, "thread", axes, half, length)


# ---------------------------------------------------------------- figures
def measured(program: str, shapes: dict[str, Shape], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the figures of a program by shape."""
    ours = program == "mpm_nodes"
    python = sys.executable if ours else environment(PYSPLASHSURF)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.npz" for number in range(len(shapes))]
        for file, shape in zip(files, shapes.values(), strict=True):
            np.savez(file, position=shape.position, velocity=np.zeros(shape.position.shape, np.float32))
        result = Path(folder) / "result.json"
        options = ["--points", *files, "--spacing", SPACING, "--voxel", args.voxel, "--anisotropy", "--meshes", "--result", result]
        run_script(python, SCRIPTS[program], options, args.threads, ours=ours)
        facts = json.loads(result.read_text())
        meshes = {}
        for name, file in zip(shapes, files, strict=True):
            held = np.load(file.with_suffix(".mesh.npz"))
            meshes[name] = np.asarray(held["points"], float), np.asarray(held["corners"], np.int64)
    voxel = args.voxel * SPACING
    found = {
        name: figures_of(shape, *meshes[name], fact, voxel)
        for (name, shape), fact in zip(shapes.items(), facts, strict=True)
        if shape.kind != "ball" or name == "ball"
    }
    for kind in ("rest", "motion"):
        heights = [heights_over(shapes[f"{kind} {frame}"], *meshes[f"{kind} {frame}"]) for frame in range(FRAMES)]
        name = "at rest" if kind == "rest" else "in motion"
        found["ball"][name] = float(np.sqrt(np.mean(np.diff(heights, axis=0) ** 2))) / voxel
    return found


def figures_of(shape: Shape, points: np.ndarray, corners: np.ndarray, fact: dict[str, Any], voxel: float) -> dict[str, float]:
    """Return the figures of one mesh: volumes as shares, lengths in voxels."""
    whole = len(shape.position) * SPACING**3
    pieces, holes = topology(corners)
    chosen = np.random.default_rng(9).permutation(len(shape.position))[:LOOKED_AT]
    outside = winding_numbers(shape.position[chosen], points, corners) < 0.5
    return {
        "seconds": fact["seconds"],
        "volume error": abs(fact["volume"] / whole - 1.0),
        "hausdorff": hausdorff(shape, points, corners) / voxel,
        "pieces too many": pieces - 1,
        "holes": holes,
        "outside": float(outside.mean()),
    }


def samples_of(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return corners, middles of edges, and middles of triangles, shape (m, 3)."""
    a, b, c = (points[corners[:, k]] for k in range(3))
    return np.concatenate([a, (a + b) / 2, (b + c) / 2, (c + a) / 2, (a + b + c) / 3])


def nearest(places: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Return the row of the sample nearest to each place."""
    squares, rows = (samples**2).sum(axis=1), []
    for part in np.array_split(places, max(1, len(places) // 50)):
        rows.append((squares - 2.0 * part @ samples.T).argmin(axis=1))
    return np.concatenate(rows)


def heights_over(shape: Shape, points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return how far the mesh lies outside the surface that is expected, at its points [m]."""
    samples = samples_of(points, corners)
    return np.einsum("ij,ij->i", samples[nearest(shape.surface, samples)] - shape.surface, shape.normals)


def hausdorff(shape: Shape, points: np.ndarray, corners: np.ndarray) -> float:
    """Return the greatest distance from the mesh to the surface that it should have, or back [m]; infinite without a mesh."""
    if not len(corners):
        return math.inf
    samples = samples_of(points, corners)
    there = np.linalg.norm(samples[nearest(shape.surface, samples)] - shape.surface, axis=1).max()
    local = samples @ shape.axes.T
    if shape.kind == "ball":
        depth = np.linalg.norm(local, axis=1)
    elif shape.kind == "sheet":
        local = local[(np.abs(local[:, :2]) < shape.length).all(axis=1)]
        depth = np.abs(local[:, 2])
    else:
        local = local[np.abs(local[:, 0]) < shape.length]
        depth = np.linalg.norm(local[:, 1:], axis=1)
    return float(max(there, np.abs(depth - shape.half).max(initial=0.0)))


def topology(corners: np.ndarray) -> tuple[int, int]:
    """Return the pieces of a closed mesh, and its holes (handles): pieces less half of V - E + F."""
    used, corners = np.unique(corners, return_inverse=True)
    corners = corners.reshape(-1, 3)
    label = np.arange(len(used))
    while True:
        least = label[corners].min(axis=1)
        joined = label.copy()
        for k in range(3):
            np.minimum.at(joined, corners[:, k], least)
        joined = joined[joined]
        if np.array_equal(joined, label):
            break
        label = joined
    edges = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), axis=1), axis=0)
    pieces = len(np.unique(label))
    return pieces, pieces - (len(used) - len(edges) + len(corners)) // 2


def winding_numbers(places: np.ndarray, points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return how often a mesh winds around places: 1 inside, 0 outside (van Oosterom & Strackee 1983)."""
    found = np.empty(len(places))
    for n, place in enumerate(places):
        a, b, c = (points[corners[:, k]] - place for k in range(3))
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        over = np.einsum("ij,ij->i", a, np.cross(b, c))
        under = la * lb * lc + (a * b).sum(axis=1) * lc + (b * c).sum(axis=1) * la + (c * a).sum(axis=1) * lb
        found[n] = np.arctan2(over, under).sum() / (2.0 * math.pi)
    return found


# ---------------------------------------------------------------- telling
def table(found: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Return a line for each shape and figure: ours, the peer's, and which is better."""
    ours, peer = (found[program] for program in SCRIPTS)
    lines = [f"{'':14} {'':18} {'mpm_nodes':>12} {'pysplashsurf':>13}"]
    for shape, figures in ours.items():
        for name in LESS_IS_BETTER:
            if name in figures:
                mine, theirs = figures[name], peer[shape][name]
                verdict = "same" if mine == theirs else "better" if mine < theirs else "worse"
                if figures.get("pieces too many") == -1:  # there is no mesh: nothing of it is better
                    verdict = "worse"
                lines.append(f"{shape:14} {name:18} {mine:12.4g} {theirs:13.4g}  {verdict}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
