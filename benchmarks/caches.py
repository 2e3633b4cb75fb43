"""What caches cost: a surface next to pysplashsurf, points as USD, and a whole cook with all caches on and off.

    python benchmarks/caches.py                       # all three, about five minutes
    python benchmarks/caches.py --only usd --json figures.json

surface  level set and mesh of a million particles, a compact ball and a splash, by our node and by pip-installed
         pysplashsurf (environment in the cache folder) in turns: voxels of one particle spacing, three smoothing passes,
         normals and a carried velocity in both; its kernel reaches 2 spacings, as it recommends, ours 2.5. Enclosed volumes
         are compared first.
usd      one frame of a million points with five attributes: from arrays to the closed file, and what comes back.
cook     the demo at 165,000 particles: everything written (points, mesh, level set, collider; a checkpoint every frame)
         against the same nodes with nothing written, and against the solve alone.

The exit code is 1 when results disagree; goals that are not met are printed and do not change it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clouds
import numpy as np
from environments import busy_warning, environment, run_script

from mpm_nodes.data import Material, MpmNodesError, Particles

PYSPLASHSURF = ("pysplashsurf==0.14.1.0", "numpy==1.26.4")
VOLUMES_DIFFER = {"ball": 0.02, "splash": 0.1}
"""How far enclosed volumes may lie apart: thin sheets and single particles are a matter of taste, a ball is not."""
SURFACE_SECONDS, USD_SECONDS, COOK_PERCENT = 4.0, 0.5, 8.0
ATTRIBUTES = ("velocity", "id", "material", "mass", "volume")
CELL_SIZE, VOXEL_SIZE, FRAMES = 0.0145, 0.0087, 9


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when results disagree, 2 when something cannot run."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    records: list[dict[str, Any]] = []
    try:
        for name in args.only:
            records += PARTS[name](args)
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_table(records)
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if all(record.get("agree", True) for record in records) else 1


def arguments_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS], help="parts to run (default: all)")
    parser.add_argument("--particles", type=int, default=1_000_000, help="of surface and usd (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each part (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records here")
    args = parser.parse_args(arguments)
    for name, low, high in (("particles", 1000, 20_000_000), ("rounds", 1, 1000), ("threads", 1, os.cpu_count() or 1)):
        if not low <= getattr(args, name) <= high:
            parser.error(f"--{name} {getattr(args, name)}: give a number from {low} to {high}")
    return args


# ---------------------------------------------------------------- surface
def surface(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Wrap two clouds in surfaces, ours and the peer's in turns."""
    scripts = {
        "mpm_nodes": (sys.executable, "mpm_nodes_surface.py"),
        "pysplashsurf": (environment(PYSPLASHSURF), "pysplashsurf_surface.py"),
    }
    return [_surface_of(name, cloud, scripts, args) for name, cloud in (("ball", clouds.ball), ("splash", clouds.splash))]


def _surface_of(name: str, cloud: Callable[[int], np.ndarray], scripts: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {program: [] for program in scripts}
    with tempfile.TemporaryDirectory() as folder:
        points, result = Path(folder) / "points.npz", Path(folder) / "result.json"
        position = cloud(args.particles)
        np.savez(points, position=position, velocity=np.ascontiguousarray(position[:, ::-1], np.float32))
        for number in range(1, args.rounds + 1):
            for program, (python, script) in scripts.items():
                options = ["--points", points, "--spacing", clouds.SPACING, "--result", result]
                run_script(python, script, options, args.threads, ours=program == "mpm_nodes")
                (facts,) = json.loads(result.read_text())
                found[program].append(facts)
                print(
                    f"surface of the {name}, round {number} of {args.rounds}: {program}, {facts['seconds']:.2f} s, "
                    f"{facts['triangles']:,} triangles, {facts['volume']:.4f} m^3",
                    flush=True,
                )
    return surface_record(name, args.particles, found["mpm_nodes"], found["pysplashsurf"])


def surface_record(name: str, particles: int, ours: list[dict], peers: list[dict]) -> dict[str, Any]:
    """Return the record of one cloud; without agreement of the volumes there is no ratio."""
    apart = abs(ours[-1]["volume"] / peers[-1]["volume"] - 1.0) if peers[-1]["volume"] else float("nan")
    agree = bool(apart <= VOLUMES_DIFFER[name])
    mine, theirs = ([one["seconds"] for one in all_rounds] for all_rounds in (ours, peers))
    return _record(
        f"surface of the {name}",
        mine,
        SURFACE_SECONDS,
        "s",
        particles=particles,
        peer="pysplashsurf",
        version=peers[-1]["version"],
        peer_seconds=statistics.median(theirs),
        peer_every_round=theirs,
        ratio=statistics.median(theirs) / statistics.median(mine) if agree else None,
        agree=agree,
        agreement={
            "ours_volume": ours[-1]["volume"],
            "peer_volume": peers[-1]["volume"],
            "difference": apart,
            "allowed": VOLUMES_DIFFER[name],
        },
        triangles=ours[-1]["triangles"],
        peer_triangles=peers[-1]["triangles"],
    )


# ---------------------------------------------------------------- points as USD
def usd(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Write points with five attributes, and the same bytes raw for comparison; read the points back."""
    from usd_io import require_usd

    require_usd()
    from usd_io.stage import CacheNames, FrameContent, frame_layer
    from usd_io.stage_reader import read_points

    particles, names = points_with_attributes(args.particles), CacheNames("points")
    written, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        file, plain = Path(folder) / "points.usdc", Path(folder) / "points.raw"
        for number in range(-1, args.rounds):  # round -1 loads everything
            file.unlink(missing_ok=True)
            plain.unlink(missing_ok=True)
            begin = time.perf_counter()
            layer = frame_layer(names, 1, 24.0, FrameContent(particles=particles, attributes=ATTRIBUTES))
            layer.Export(str(file))
            middle = time.perf_counter()
            content = file.read_bytes()
            start = time.perf_counter()
            plain.write_bytes(content)
            if number >= 0:
                written.append(middle - begin)
                raw.append(time.perf_counter() - start)
                print(
                    f"usd, round {number + 1} of {args.rounds}: {written[-1]:.3f} s for {len(content) / 1e6:.1f} MB "
                    f"(the same bytes written raw: {raw[-1]:.3f} s)",
                    flush=True,
                )
        back = read_points(file, 1)
    agree = all(
        np.array_equal(back[name], np.asarray(particles[name], np.float32 if name == "position" else None))
        for name in ("position", *ATTRIBUTES)
    )
    return [
        _record(
            f"USD points, {len(ATTRIBUTES)} attributes",
            written,
            USD_SECONDS,
            "s",
            particles=args.particles,
            bytes=len(content),
            raw_seconds=statistics.median(raw),
            agree=agree,
        )
    ]


def points_with_attributes(count: int) -> Particles:
    """Return the splash with the five attributes that `write_cache` writes by default."""
    position = clouds.splash(count)
    share = np.random.default_rng(4).uniform(0.9, 1.1, count).astype(np.float32)  # constants would be stored as one number
    columns = {
        "position": position,
        "velocity": np.ascontiguousarray(position[:, ::-1], np.float32),
        "id": np.arange(count, dtype=np.int64),
        "material": np.zeros(count, np.int32),
        "mass": share * np.float32(1000.0 * clouds.SPACING**3),
        "volume": share * np.float32(clouds.SPACING**3),
    }
    return Particles(columns, (Material("liquid", {"bulk_modulus": 1e5}, 1000.0),), clouds.SPACING)


# ---------------------------------------------------------------- a whole cook
def cook(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Cook the demo in three ways in turns."""
    seconds: dict[str, list[float]] = {"solve alone": [], "nothing written": [], "all caches": []}
    for number in range(args.rounds + 1):  # round 0 compiles and loads everything
        for way, times in seconds.items():
            took, particles = cook_once(way, 2 if number == 0 else FRAMES, args.threads)
            if number:
                times.append(took)
                print(
                    f"cook, round {number} of {args.rounds}: {way}, {took:.2f} s for {FRAMES} frames of {particles:,} particles",
                    flush=True,
                )
    goals = {"nothing written": COOK_PERCENT, "solve alone": None}
    return [
        _record(
            f"all caches against {way}",
            [100.0 * (a / b - 1.0) for a, b in zip(seconds["all caches"], seconds[way], strict=True)],
            goal,
            "%",
            particles=particles,
            frames=FRAMES,
            seconds={"all caches": seconds["all caches"], way: seconds[way]},
        )
        for way, goal in goals.items()
    ]


def cook_once(way: str, frames: int, threads: int) -> tuple[float, int]:
    """Cook the first frames of the demo and return the seconds and the particles; what it writes is deleted."""
    from mpm_nodes.graph.cook.executor import execute

    graph = demo(way)
    folder = tempfile.mkdtemp() if way == "all caches" else None
    particles = 0

    def note(event: dict[str, Any]) -> None:
        nonlocal particles
        particles = event.get("particles", particles)

    try:
        last = graph.settings.start + frames - 1
        result = execute(graph, frames=(graph.settings.start, last), out=folder, threads=threads, on_event=note)
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return result.seconds, particles


def demo(way: str) -> Any:
    """Return the packaged demo's graph at this benchmark's resolution, without the nodes that this way leaves out."""
    from mpm_nodes.graph.document.document import load_graph
    from mpm_nodes.packaged_samples import sample_graph

    graph = load_graph(sample_graph("demo"))
    graph.set("settings.cell_size", CELL_SIZE)
    graph.set("surface.voxel_size", VOXEL_SIZE)
    for name in {"solve alone": ("cache", "surface"), "nothing written": ("cache",), "all caches": ()}[way]:
        del graph.nodes[name]
    return graph


# ---------------------------------------------------------------- telling
PARTS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {"surface": surface, "usd": usd, "cook": cook}


def _record(what: str, every_round: list[float], goal: float | None, unit: str, **facts: Any) -> dict[str, Any]:
    """Return a record: its figure is the median of all rounds."""
    middle = statistics.median(every_round)
    return {
        "what": what,
        "figure": middle,
        "unit": unit,
        "goal": goal,
        "met": None if goal is None else middle <= goal,
        "rounds": len(every_round),
        "every_round": every_round,
        **facts,
    }


def print_table(records: list[dict[str, Any]]) -> None:
    """Print medians, spreads, goals and whether they are met."""
    print(f"\n{'':40} {'median':>9} {'spread':>17} {'goal':>8}")
    for r in records:
        spread = f"{min(r['every_round']):.2f} - {max(r['every_round']):.2f}"
        goal = "" if r["goal"] is None else f"{r['goal']:g} {r['unit']}"
        verdict = "" if r["met"] is None else "met" if r["met"] else "not met"
        print(f"{r['what']:40} {r['figure']:>7.2f} {r['unit']} {spread:>17} {goal:>8} {verdict}{remark(r)}")


def remark(record: dict[str, Any]) -> str:
    """Return what else there is to say about a record."""
    if not record.get("agree", True):
        return "  RESULTS DISAGREE"
    if "peer" in record:
        return (
            f"  {record['peer']} {record['version']}: {record['peer_seconds']:.2f} s, {record['peer_triangles']:,} triangles "
            f"to our {record['triangles']:,}, volumes {record['agreement']['difference']:.1%} apart; ours is "
            f"{record['ratio']:.2f} times as fast"
        )
    if "raw_seconds" in record:
        return f"  {record['bytes'] / 1e6:.1f} MB, written raw in {record['raw_seconds']:.3f} s; read back unchanged"
    return ""


if __name__ == "__main__":
    sys.exit(main())
