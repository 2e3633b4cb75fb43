"""Cost follows the particles: the same drop falls in a domain and in one a hundred times larger.

    python benchmarks/domain.py                         # a hundred thousand particles
    python benchmarks/domain.py --kernel cubic --transfer flip --threads 1

The exit code is 1 when the larger domain takes more blocks or bytes, or another time by more than a tenth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.bench.measure import beside_bytes
from mpm_nodes.bench.rows import KERNELS, PRECISIONS, TRANSFERS, Row
from mpm_nodes.bench.scenes import BenchScene, lattice, matter, solver
from mpm_nodes.bench.threads import available_threads, set_threads
from mpm_nodes.data import Particles, WallRule, Walls
from mpm_nodes.kernels.compile.jit import thread_count
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sorting import SORT_INTERVAL

TIMES_LARGER = 100
PAIRS = 7
LARGEST_DIFFERENCE = 0.10
SPACING = 0.01
SIZE_IN_RADII = 6.0


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when the larger domain costs more."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernel", choices=KERNELS, default="quadratic")
    parser.add_argument("--transfer", choices=TRANSFERS, default="apic")
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=min(2, available_threads()))
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args(arguments)
    row = Row("cube", "liquid", args.kernel, args.transfer, args.particles, args.threads, args.precision)
    figures = compare(row)
    print(
        f"a drop of {row.particles:,} particles, domains of {figures['size'][0]:.2f} m and {figures['size'][1]:.0f} m, "
        f"{PAIRS} interleaved pairs of {SORT_INTERVAL} substeps"
    )
    print(f"blocks:            {figures['blocks'][0]:>12,} {figures['blocks'][1]:>12,}")
    print(f"bytes:             {figures['bytes'][0]:>12,} {figures['bytes'][1]:>12,}")
    print(f"median time ratio: {figures['median_ratio']:12.3f}  (allowed: 1 +- {LARGEST_DIFFERENCE:g})")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if passed(figures) else 1


def passed(figures: dict[str, Any]) -> bool:
    """Return whether blocks and bytes are equal and times nearly so."""
    return (
        figures["blocks"][0] == figures["blocks"][1]
        and figures["bytes"][0] == figures["bytes"][1]
        and abs(figures["median_ratio"] - 1.0) < LARGEST_DIFFERENCE
    )


def compare(row: Row, pairs: int = PAIRS, substeps: int = SORT_INTERVAL) -> dict[str, Any]:
    """Return sizes [m], blocks and bytes of both domains, and the ratios of their times, large to small."""
    before = thread_count()
    set_threads(row.threads)
    scenes = [drop(row.particles, 1), drop(row.particles, TIMES_LARGER)]
    solvers = [solver(scene, row) for scene in scenes]
    for each in solvers:
        _seconds(each, 3)
    ratios = []
    for pair in range(pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        spent = {which: _seconds(solvers[which], substeps) for which in order}
        ratios.append(spent[1] / spent[0])
    set_threads(before)
    return {
        "particles": row.particles,
        "threads": row.threads,
        "kernel": row.kernel,
        "transfer": row.transfer,
        "size": [scene.walls.high[1] for scene in scenes],
        "blocks": [each.grid.count for each in solvers],
        "bytes": [each.particles.nbytes + beside_bytes(each) for each in solvers],
        "ratios": ratios,
        "median_ratio": statistics.median(ratios),
    }


def drop(count: int, times: int) -> BenchScene:
    """Return a ball of liquid that falls, at the same place above the floor of a domain, `times` as large as the drop needs."""
    radius = SPACING * (0.75 * count / np.pi) ** (1.0 / 3.0)
    side = int(np.ceil(2.0 * radius / SPACING)) + 4
    places = lattice((side, side, side), side**3, SPACING) - 0.5 * side * SPACING
    nearest = np.argsort((places**2).sum(axis=1), kind="stable")[:count]
    # a whole number of double blocks: both domains lay the same grid under the drop
    size = 16.0 * SPACING * np.ceil(SIZE_IN_RADII * radius / (16.0 * SPACING))
    position = places[np.sort(nearest)] + (0.0, 0.5 * size, 0.0)
    columns = {"position": position, "velocity": np.zeros((count, 3), np.float32)}
    half = 0.5 * size * times
    walls = Walls((-half, 0.0, -half), (half, size * times, half), (WallRule.SEPARATE,) * 6)
    return BenchScene(Particles(columns, (matter("liquid"),), SPACING), walls)


def _seconds(which: SubstepSolver, substeps: int) -> float:
    begin = time.perf_counter()
    for _ in range(substeps):
        which.step(keep=False)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
