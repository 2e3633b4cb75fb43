"""How good the surfaces of cooked samples are, as they are in the cache and made again with other knobs, in one table.

    python benchmarks/sample_surfaces.py out/*        # folders of `mpm-nodes sample`, or stages; half a minute each
    python benchmarks/sample_surfaces.py out/pie --again voxel_size=1 keep_volume=false anisotropy=false

Three frames each, at three places of a shot:

volume    how far the volume inside is from that of the particles, at most [%]
outside   share of the particles that lie outside, at most [%]
flicker   how far the surface jumps over the particles near it: half the second difference of their distances to it over three
          frames, root mean square [particle spacings]; how they move themselves is in it
points    of the mesh for each particle, on average
bytes     of the frame's file for each particle, on average: points and surface, with all that they carry
seconds   to make the surface of a frame with the node's default knobs, not the sample's, or with those of --again

`--again KNOB=VALUE` makes the surfaces again from the cached particles, and tells first those, then what is in the cache;
`voxel_size` is in spacings.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import Mesh, MpmNodesError
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree
from mpm_nodes.nodes.particle_surface import volumes_of
from mpm_nodes.nodes.surface import surface_particles
from usd_io.collider_meshes import StageMeshes
from usd_io.mesh_volumes import enclosed_volume
from usd_io.stage_reader import frames_of, read_points

PLACES = (0.3, 0.6, 0.9)
"""Of the shot."""
LEAST = 100
"""Particles of a frame that is looked at."""
COLUMNS = ("volume", "outside", "flicker", "points", "bytes", "seconds")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 2 when a cache cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("caches", nargs="+", type=Path, metavar="CACHE", help="folders of `mpm-nodes sample`, or stages")
    parser.add_argument("--again", nargs="+", default=[], metavar="KNOB=VALUE", help="also make the surfaces with these knobs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args(arguments)
    knobs = {name: json.loads(value) for name, _, value in (each.partition("=") for each in args.again)}
    found: dict[str, Any] = {}
    print(f"| sample | {' | '.join(COLUMNS)} |\n| --- |{' --- |' * len(COLUMNS)}")
    for path in args.caches:
        try:
            stage, name = stage_of(path), path.stem
            found[name] = measured(stage, knobs)
        except MpmNodesError as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            return 2
        cells = [" -> ".join(f"{made[column]:.3g}" for made in found[name] if column in made) for column in COLUMNS]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def stage_of(path: Path) -> Path:
    """Return the stage of the newest revision in a folder, or the stage itself."""
    if path.is_file():
        return path
    stages = [stage for stage in sorted(path.glob("r*/*.usda")) if stage.with_suffix("").is_dir()]
    if not stages:
        raise MpmNodesError("holds no revision with a cache")
    return stages[-1]


def measured(stage: Path, knobs: dict[str, Any]) -> list[dict[str, float]]:
    """Return the figures of the surfaces: as they are with other knobs, where there are any, then as they are in the cache."""
    frames = frames_of(stage)
    first, last = frames.first, frames.last
    middles = sorted({min(max(round(first + place * (last - first)), first + 1), last - 1) for place in PLACES})
    ways = [knobs, None] if knobs else [None]
    figures: list[list[dict[str, float]]] = [[] for _ in ways]
    for middle in middles:
        frames = [Frame(stage, number) for number in (middle - 1, middle, middle + 1)]
        if min(len(frame.particles) for frame in frames) >= LEAST:
            for way, into in zip(ways, figures, strict=True):
                into.append(of_three(frames, way))
    if not figures[0]:
        raise MpmNodesError(f"no frame has {LEAST} particles")
    return [{name: float(worst(name)([each[name] for each in way])) for name in way[0]} for way in figures]


def worst(name: str) -> Callable[[list[float]], float]:
    """Return how figures of several places become one: the worst, or the mean."""
    return max if name in ("volume", "outside") else statistics.fmean


class Frame:
    """A frame of a cache.

    Attributes:
        particles: As read.
        mesh: The cached surface; it tells the volume that it is to hold.
        size: Of the frame's file [bytes].
    """

    def __init__(self, stage: Path, number: int) -> None:
        self.particles = read_points(stage, number)
        meshes = StageMeshes(stage, "mesh")
        topology = meshes.topology(number)
        told = meshes.sources[0].mesh.GetPrim().GetAttribute("mpm:matter_volume")
        whole = told.Get(number) if told else None
        self.mesh = Mesh(meshes.points(number), topology.counts, topology.indices, matter_volume=whole)
        self.size = (stage.with_suffix("") / f"{stage.stem}.{number:04d}.usdc").stat().st_size


def of_three(frames: list[Frame], knobs: dict[str, Any] | None) -> dict[str, float]:
    """Return the figures of three frames in a row: of their cached surfaces, or of others with these knobs."""
    spacing, many = frames[0].particles.spacing, len(frames[1].particles)
    volumes, outside, depths, seconds = [], [], [], []
    for frame in frames:
        begin = time.perf_counter()
        mesh = surface_particles(frame.particles, **in_metres(knobs or {}, spacing)).mesh
        seconds.append(time.perf_counter() - begin)
        mesh = frame.mesh if knobs is None else mesh
        position = np.asarray(frame.particles["position"], float)
        triangles = triangulate(mesh.counts, mesh.indices)[0]
        wanted = mesh.matter_volume or volumes_of(frame.particles)[1]
        volumes.append(100.0 * abs(enclosed_volume(mesh.points, mesh.counts, mesh.indices) / wanted - 1.0))
        outside.append(100.0 * float((winding_numbers(winding_tree(mesh.points, triangles), position) < 0.5).mean()))
        depths.append((np.asarray(frame.particles["id"]), distances(mesh.points, triangles, position, spacing)))
    found = {
        "volume": max(volumes),
        "outside": max(outside),
        "flicker": flicker(depths) / spacing,
        "points": len(mesh.points) / many,
    }
    return found | {"seconds": min(seconds)} | ({"bytes": frames[1].size / many} if knobs is None else {})


def in_metres(knobs: dict[str, Any], spacing: float) -> dict[str, Any]:
    """Return the knobs with the size of voxels in metres."""
    return knobs | ({"voxel_size": knobs["voxel_size"] * spacing} if "voxel_size" in knobs else {})


def distances(points: np.ndarray, triangles: np.ndarray, places: np.ndarray, spacing: float) -> np.ndarray:
    """Return the signed distances of places to a mesh [m], negative inside, NaN beyond two spacings."""
    field = mesh_level_set(points, triangles, 0.5 * spacing)
    u = places @ field.to_index[:, :3].T + field.to_index[:, 3] - 8.0 * field.low
    cell = np.floor(u).astype(int)
    held = ((cell >= 0) & (cell // 8 < field.table.shape)).all(axis=1)
    cell[~held] = 0
    leaf = np.where(held, field.table[tuple(cell.T // 8)], -1)
    share, inner = u - cell, cell % 8
    found = np.zeros(len(places))
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, share, 1.0 - share), axis=1)
        found += weight * field.values[leaf, *(inner + corner).T]
    return np.where((leaf >= 0) & (np.abs(found) < 0.95 * field.band), found, np.nan)


def flicker(depths: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return half the second difference of distances below the surface, root mean square over particles that stay near it [m].

    Args:
        depths: Ids and distances of three frames.
    """
    ids = functools.reduce(np.intersect1d, [each[0] for each in depths])
    before, now, after = (distance[np.argsort(id_)][np.searchsorted(np.sort(id_), ids)] for id_, distance in depths)
    jump = 0.5 * (before - 2.0 * now + after)
    jump = jump[np.isfinite(jump)]
    return float(np.sqrt(np.mean(jump**2))) if len(jump) else 0.0


if __name__ == "__main__":
    sys.exit(main())
