"""What a particle takes in a cache, column by column: as before tables, now, and packed, next to raw arrays.

    python benchmarks/cache_sizes.py                                  # cooks three scenes first, about ten minutes
    python benchmarks/cache_sizes.py --cache out/r001/cache.usda      # of finished caches with exact particles

jelly   a block of neo-Hookean matter falls on a floor, explicit steps, the columns that `write_cache` writes by default
foam    the sample shaving_foam
heat    the sample ice_in_water

All columns of 24 frames are written in five ways: `before` has a colour for each particle, `now` is what `write_cache` writes,
`packed` with `position_precision` 0.001; `npy` are plain arrays in 32 bits (ids in 64), one file each; `archive` is what Alembic
stores, plain arrays of which each that differs from all earlier ones is written once (there is no writer of Alembic on PyPI).
Columns are measured alone, in a file with nothing else. The exit code is 1 when what is read back differs by more than is said.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf

from mpm_nodes import Graph, execute
from mpm_nodes.data import MpmNodesError, Particles
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.packaged_samples import sample_graph
from usd_io.packing import PACKED
from usd_io.points import particle_widths
from usd_io.stage import CacheNames, FrameContent, frame_layer
from usd_io.stage_reader import frames_of, open_stage, read_points
from usd_io.tables import INDICES, flatten_as_before

FRAMES = 24
PRECISION = 0.001
TARGETS = {"now": 30.0, "packed": 20.0}
"""Most bytes a particle and frame of the jelly."""
WAYS = ("before", "now", "packed", "npy", "archive")
NAMES = CacheNames("cache")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when particles do not come back, 2 when something cannot run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=Path, nargs="+", default=[], help="finished caches to measure in place of the three scenes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            caches = {path.parents[1].name: path for path in args.cache} or cooked(Path(folder))
            figures = {name: measured(path) for name, path in caches.items()}
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, found in figures.items():
        print_table(name, found)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(found["agree"] for found in figures.values()) else 1


# ---------------------------------------------------------------- scenes
def cooked(folder: Path) -> dict[str, Path]:
    """Cook the three scenes and return their stages."""
    stages = {}
    for name, graph in (("jelly", jelly()), ("foam", sample("shaving_foam")), ("heat", sample("ice_in_water"))):
        print(f"cooking {name}", flush=True)
        stages[name] = next(execute(graph, out=folder / name).revision_folder.glob("*.usda"))
    return stages


def jelly(frames: int = FRAMES, cell_size: float = 0.025) -> Graph:
    """Return a block of 30,720 particles that falls askew on a floor."""
    graph = Graph(cell_size=cell_size, start=1, end=frames)
    matter = graph.add("material_neo_hookean", "jelly", youngs_modulus=3e3, density=1000.0)
    block = graph.add("emit_box", "block", material=matter, size=(0.4, 0.38, 0.4), centre=(0, 0.35, 0), rotation=(0, 20.0, 15.0))
    floor = graph.add("collide_plane", "floor", friction=0.5)
    fall = graph.add("solve", "fall", sources=[block], colliders=[floor], substeps="explicit_apic")
    graph.add("write_cache", "cache", particles=fall["particles"])
    return graph


def sample(name: str) -> Graph:
    """Return a packaged sample without its surface."""
    graph = load_graph(sample_graph(name))
    del graph.nodes["surface"]
    graph.nodes["cache"].inputs.pop("mesh")
    graph.set("settings.end", FRAMES)
    return graph


# ---------------------------------------------------------------- measuring
def measured(path: Path) -> dict[str, Any]:
    """Return particles, bytes and seconds of each way, and bytes of each column, a particle and frame, of a cache."""
    frames = frames_of(path)
    first, last, fps = frames.first, frames.last, frames.fps
    bytes_of, seconds, columns = defaultdict(float), defaultdict(float), {way: defaultdict(float) for way in WAYS}
    count, agree, known = 0, True, set()
    cell_size = cell_of(path)
    with tempfile.TemporaryDirectory() as folder:
        for frame in range(first, last + 1):
            particles = read_points(path, frame)
            count += len(particles)
            for way in WAYS:
                begin = time.perf_counter()
                if way in ("npy", "archive"):
                    parts = write_arrays(Path(folder), particles, known if way == "archive" else None)
                    layer, whole = None, sum(parts.values())
                else:
                    layer = written(particles, frame, fps, way, cell_size)
                    layer.Export(f"{folder}/frame.usdc")
                    whole = Path(f"{folder}/frame.usdc").stat().st_size
                seconds[way] += time.perf_counter() - begin
                bytes_of[way] += whole
                for column, size in (parts if layer is None else columns_of(layer, frame, Path(folder))).items():
                    columns[way][column] += size
                if way == "packed":
                    layer.Export(f"{folder}/back.usdc")
                    back = read_points(f"{folder}/back.usdc", frame)
                    off = np.abs(back["position"] - particles["position"]).max(initial=0.0)
                    agree &= bool(off <= PRECISION * cell_size) and all(
                        np.array_equal(back[name], particles[name]) for name in particles.attributes if name not in INEXACT
                    )
    return {
        "particles": round(count / (last - first + 1)),
        "bytes": {way: size / count for way, size in bytes_of.items()},
        "seconds": {way: 1e6 * each / count for way, each in seconds.items()},
        "columns": {way: {name: size / count for name, size in each.items()} for way, each in columns.items()},
        "agree": agree,
    }


INEXACT = ("position", "velocity")


def cell_of(path: Path) -> float:
    """Return the cell size that a cache was cooked with [m]."""
    stage = open_stage(path)
    facts = stage.GetRootLayer().customLayerData["mpm_nodes"]
    return float(json.loads(facts["graph"])["settings"]["cell_size"])


def written(particles: Particles, frame: int, fps: float, way: str, cell_size: float) -> Sdf.Layer:
    """Return the layer of a frame, with all columns."""
    precision = PRECISION * cell_size if way == "packed" else 0.0
    layer = frame_layer(NAMES, frame, fps, FrameContent(particles, attributes=list(particles.attributes), precision=precision))
    if way == "before":
        old = Sdf.Layer.CreateAnonymous("old.usda")
        prim = Sdf.CreatePrimInLayer(old, "/cache/particles")
        for name in ("displayColor", "glow"):
            Sdf.AttributeSpec(prim, f"primvars:{name}", Sdf.ValueTypeNames.Color3fArray)
        flatten_as_before(layer, old, frame)
    return layer


def columns_of(layer: Sdf.Layer, frame: int, folder: Path) -> dict[str, float]:
    """Return what each array of the particles takes alone [bytes]; those that belong together as one column."""
    prim = layer.GetPrimAtPath("/cache/particles")
    empty, sizes = _alone(None, None, frame, folder), defaultdict(float)
    for attribute in prim.attributes:
        name = attribute.name.removesuffix(INDICES).removeprefix("primvars:")
        if name.startswith(PACKED):
            name = name.removeprefix(PACKED).rpartition("_")[0]
        if attribute.typeName.isArray and name != "extent":
            value = layer.QueryTimeSample(attribute.path, frame)
            sizes[{"id": "ids"}.get(name, name)] += _alone(attribute, value, frame, folder) - empty
    return sizes


def _alone(attribute: Any, value: Any, frame: int, folder: Path) -> int:
    layer = Sdf.Layer.CreateAnonymous("one.usdc")
    prim = Sdf.CreatePrimInLayer(layer, "/a")
    if attribute is not None:
        copy = Sdf.AttributeSpec(prim, attribute.name, attribute.typeName)
        layer.SetTimeSample(copy.path, frame, value)
    file = folder / "one.usdc"
    layer.Export(str(file))
    return file.stat().st_size


def write_arrays(folder: Path, particles: Particles, known: set[bytes] | None) -> dict[str, float]:
    """Write every column as an array; return the bytes of each. `known` are digests of arrays that need not be written again."""
    sizes = {}
    usual = {"position": "points", "velocity": "velocities", "id": "ids"}
    for name, column in {**particles.attributes, "widths": particle_widths(particles)}.items():
        array = np.asarray(column)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        name = usual.get(name, name)
        file = folder / f"{name}.npy"
        digest = hashlib.blake2b(array.tobytes()).digest() if known is not None else b""
        if known is not None and digest in known:
            sizes[name] = 0
            continue
        np.save(file, array)
        sizes[name] = file.stat().st_size
        if known is not None:
            known.add(digest)
    return sizes


# ---------------------------------------------------------------- telling
def print_table(name: str, found: dict[str, Any]) -> None:
    """Print bytes by column, and the seconds, as a table of Markdown."""
    print(f"\n{name}, {found['particles']:,} particles, bytes a particle and frame\n")
    print("| column | " + " | ".join(WAYS) + " |")
    print("|---|" + "---|" * len(WAYS))
    for column in dict.fromkeys(column for way in WAYS for column in found["columns"][way]):
        row = [found["columns"][way].get(column) for way in WAYS]
        print(f"| {column} | " + " | ".join("" if size is None else f"{size:.2f}" for size in row) + " |")
    print("| whole files | " + " | ".join(f"{found['bytes'][way]:.1f}" for way in WAYS) + " |")
    print("| seconds, of a million | " + " | ".join(f"{found['seconds'][way]:.2f}" for way in WAYS) + " |")
    if name == "jelly":
        for way, target in TARGETS.items():
            print(f"target of {way}: {target:g}, {'met' if found['bytes'][way] <= target else 'missed'}")
    if not found["agree"]:
        print("PARTICLES DO NOT COME BACK AS THEY SHOULD")


if __name__ == "__main__":
    sys.exit(main())
