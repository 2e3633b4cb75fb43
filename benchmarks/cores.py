"""What more cores would give: shares of threads counted from the tables of a solve, its serial part timed on one thread.

| symbol | meaning |
|---|---|
| s | seconds of a substep that only one thread works on |
| c, o | seconds of one thread in loops that are coloured (scatters), and in other loops over blocks |
| I_c, I_o | largest share of a thread over the mean one, for p threads: colours wait for each other |
| r, l | loops started in a substep, and what starting one takes |

    t(p) = s + (c I_c(p) + o I_o(p)) / p + r l,        share of the ideal = t(1) / (p t(p))

Shares are counted in particles, a block's tile as `binning.BLOCK_COST` of them. Memory is not in it: what
bandwidth that speed would need is told beside.

    python benchmarks/cores.py                          # a million particles
    python benchmarks/cores.py --particles 300000 --json figures.json

The exit code is 1 where a scene stops scaling below 60 % of the ideal at one of these numbers of cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.bench import scenes
from mpm_nodes.bench.measure import INTERVALS, WARM_UP
from mpm_nodes.bench.rows import TWO_LAWS, Row
from mpm_nodes.bench.threads import set_threads
from mpm_nodes.kernels.compile.jit import thread_count
from mpm_nodes.kernels.transfers import binning
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sorting import SORT_INTERVAL

CORES = (8, 16, 64)
LEAST_SHARE = 0.6
START = 1.5e-6
"""Seconds that a loop takes to start (numba's OpenMP threads)."""
LOOPS = 12
"""Loops that a substep starts: eight colours, the gather, the grid, limits."""
CHANGES = ("position", "velocity", "affine", "deformation")
"""Attributes that are written in every substep."""
PARALLEL = ("locate", "histogram", "permutation", "move_rows", "move_offsets")
"""Kernels of a sort that share their work among threads."""


@dataclass(frozen=True)
class Split:
    """Where the seconds of a substep on one thread go, and what shares threads would get.

    Attributes:
        serial: Seconds that more threads do not shorten.
        coloured: Seconds in scatters.
        other: Seconds in other loops over blocks.
        colours: Particles of each block of a colour, in the order in which threads take them, by colour.
        blocks: Particles of each block, in the order in which threads take them.
    """

    serial: float
    coloured: float
    other: float
    colours: list[np.ndarray]
    blocks: np.ndarray

    @property
    def total(self) -> float:
        """Seconds of a substep on one thread."""
        return self.serial + self.coloured + self.other


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 where a scene stops scaling below its share of the ideal."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records here")
    args = parser.parse_args(arguments)
    count, records = args.particles, []
    rows = {
        "compact": Row("cube", particles=count, threads=1),
        "splashing": Row("dam_break", "liquid", particles=count, threads=1),
        "two materials": Row("two_materials", "+".join(TWO_LAWS), particles=count, threads=1),
    }
    print(f"{count:,} particles; share of the ideal speed (largest share of a thread in colours, in blocks; GB/s needed)")
    print(f"{'':14}{'serial':>8}{'B/particle':>12}" + "".join(f"{f'{cores} cores':>26}" for cores in CORES))
    for name, row in rows.items():
        record = measured(row)
        cells = "".join(f"{_cell(prediction):>26}" for prediction in record["cores"].values())
        print(f"{name:14}{record['serial_share']:>8.1%}{record['bytes_moved']:>12.0f}{cells}", flush=True)
        records.append({"scene": name, **record})
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if all(p["share"] >= LEAST_SHARE for record in records for p in record["cores"].values()) else 1


def _cell(prediction: dict[str, float]) -> str:
    shares = f"{prediction['colours']:.2f}, {prediction['blocks']:.2f}"
    return f"{prediction['share']:.0%} ({shares}; {prediction['gigabytes_per_second']:.0f})"


def measured(row: Row) -> dict[str, Any]:
    """Return the record of a scene."""
    before, start = thread_count(), scenes.scene(row.scene, row.law, row.particles)
    set_threads(1)
    solver = scenes.solver(start, row)
    split = split_of(solver, INTERVALS * SORT_INTERVAL)
    set_threads(before)
    moved = bytes_moved(solver)
    cores = {}
    for threads in CORES:
        seconds = predicted(split, threads)
        cores[str(threads)] = {
            "share": split.total / (threads * seconds),
            "colours": imbalance(split.colours, threads),
            "blocks": imbalance([split.blocks], threads),
            "gigabytes_per_second": 1e-9 * moved * row.particles / seconds,
        }
    return {
        "particles": row.particles,
        "seconds": split.total,
        "serial_share": split.serial / split.total,
        "coloured_share": split.coloured / split.total,
        "bytes_moved": moved,
        "cores": cores,
    }


def predicted(split: Split, threads: int) -> float:
    """Return the seconds of a substep on so many threads."""
    coloured = split.coloured * imbalance(split.colours, threads)
    other = split.other * imbalance([split.blocks], threads)
    return split.serial + (coloured + other) / threads + LOOPS * START


def imbalance(lists: list[np.ndarray], threads: int) -> float:
    """Return the time of loops that wait for each other over that of even shares; threads take runs of each list's blocks."""
    slowest = total = 0.0
    shares = np.empty(threads + 1, np.int64)
    for particles in lists:
        done = np.concatenate([[0], np.cumsum(particles)])
        binning.share_runs(np.stack([done[:-1], done[1:], done[:-1]], 1), shares)
        work = done + binning.BLOCK_COST * np.arange(len(done))
        slowest += float(np.diff(work[shares]).max())
        total += float(work[-1])
    return threads * slowest / total if total else 1.0


def split_of(solver: SubstepSolver, substeps: int) -> Split:
    """Return where the seconds of a substep go, means over `substeps` on one thread."""
    for _ in range(WARM_UP):
        solver.step(keep=False)
    solver.stage_seconds = dict.fromkeys(solver.stage_seconds, 0.0)
    begin = time.perf_counter()
    with _timed_sorts() as parallel:
        for _ in range(substeps):
            solver.step(keep=False)
    whole = (time.perf_counter() - begin) / substeps
    stages = {name: seconds / substeps for name, seconds in solver.stage_seconds.items()}
    in_sorts = sum(parallel) / substeps
    serial = whole - sum(stages.values()) + stages["sort"] - in_sorts
    scatters = [name for name in stages if "rasterize" in name or "stress_forces" in name]
    coloured = sum(stages[name] for name in scatters)
    tables = solver.grid.scatter_tables()
    particles = np.diff(tables.runs[:, :2], axis=1)[:, 0]
    edges = tables.colour_start
    colours = [particles[tables.colour_range[edges[c] : edges[c + 1]]] for c in range(8)]
    return Split(serial, coloured, whole - serial - coloured, colours, particles)


def bytes_moved(solver: SubstepSolver) -> float:
    """Return the bytes that a substep reads and writes for a particle: what it holds, what changes again, the sort's share.

    A sort reads and writes all rows.
    """
    particles = solver.particles
    held = particles.nbytes / max(particles.count, 1)
    again = sum(4.0 * particles.table[name].rows for name in CHANGES)
    return held + again + 2.0 * held / SORT_INTERVAL


@contextmanager
def _timed_sorts() -> Iterator[list[float]]:
    """Note the seconds of the kernels of a sort that share their work."""
    seconds, before = list[float](), {name: getattr(binning, name) for name in PARALLEL}

    def timed(kernel: Any) -> Any:
        def call(*arguments: Any) -> Any:
            begin = time.perf_counter()
            result = kernel(*arguments)
            seconds.append(time.perf_counter() - begin)
            return result

        return call

    try:
        for name, kernel in before.items():
            setattr(binning, name, timed(kernel))
        yield seconds
    finally:
        for name, kernel in before.items():
            setattr(binning, name, kernel)


if __name__ == "__main__":
    sys.exit(main())
