"""Measure one row of the table: whole substeps as wired, sorting included."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import mpm_nodes
from mpm_nodes.bench import cold, scenes
from mpm_nodes.bench.rows import Row
from mpm_nodes.bench.threads import set_threads
from mpm_nodes.graph.reports.events import EventStream, Thinned
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sorting import SORT_INTERVAL

INTERVALS = 2
"""Sort intervals in a run: the mean over whole intervals holds sorts as often as they happen."""
WARM_UP = 3
MOST_RUNS = 40

Record = dict[str, Any]


def measure(row: Row, *, seconds: float = 1.0, fresh_cache: bool = False) -> Record:
    """Return the record of a row.

    Every run starts from the same state and takes the same number of substeps, so that small and large scenes do the same
    physics; runs are repeated until `seconds` are measured.

    Args:
        row: What to measure.
        seconds: Least measured time [s].
        fresh_cache: Measure the time of compiling too, in a process with an empty cache.
    """
    set_threads(row.threads)
    start = scenes.scene(row.scene, row.law, row.particles)
    times: list[float] = []
    stages: dict[str, float] = {}
    first = 0.0
    for run in range(MOST_RUNS):
        solver, events = scenes.solver(start, row), EventStream(Thinned(lambda event: None))
        warm = [_substep(solver, events) for _ in range(WARM_UP)]
        first = warm[0] if run == 0 else first
        solver.stage_seconds = dict.fromkeys(solver.stage_seconds, 0.0)
        times += [_substep(solver, events) for _ in range(INTERVALS * SORT_INTERVAL)]
        stages = {name: stages.get(name, 0.0) + spent for name, spent in solver.stage_seconds.items()}
        if sum(times) >= seconds:
            break
    total, substeps = sum(times), len(times)
    particles = solver.particles.count  # foam is resampled: not quite the number of the row
    facts = {
        "particles": row.particles,
        "substeps": substeps,
        "total_seconds": total,
        "particle_steps_per_second": particles * substeps / total,
        "median_substep_seconds": statistics.median(times),
        "stage_seconds": {name: spent / substeps for name, spent in stages.items()},
        "executor_overhead": (total - sum(stages.values())) / substeps,
        "bytes_per_particle": solver.particles.nbytes / particles,
        "beside_bytes": beside_bytes(solver),
        "particles_per_cell": start.particles_per_cell,
    }
    compiling = cold.compile_seconds(row) if fresh_cache else first
    return {
        "scene": row.scene,
        "law": row.law,
        "kernel": row.kernel,
        "transfer": row.transfer,
        "threads": row.threads,
        "precision": row.precision,
        "fused": row.fuse,
        **facts,
        "compile_seconds": compiling,
        "cold": fresh_cache,
        "version": mpm_nodes.__version__,
        **processor(),
    }


def beside_bytes(solver: SubstepSolver) -> int:
    """Return the memory that a solve needs besides its particles: grid, scratch of the threads, tables of the blocks."""
    # `bound` repeats what others hold
    own = {name: value for name, value in vars(solver.particles).items() if name != "bound"}
    held = {id(array): array.nbytes for array in _arrays(own)}
    return solver.grid.nbytes + sum(held.values())


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays in nested lists, tuples and dicts."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _arrays(item)


def _substep(solver: SubstepSolver, events: EventStream) -> float:
    """Run one substep with what the solve node does around it, cancel check and progress event, and return its time [s]."""
    begin = time.perf_counter()
    dt = solver.step(check_cancel=_never, keep=False)  # as a frame steps, but for its last substep
    events.report("substep", dt=dt, particles=solver.particles.count, **solver.step_context.report.of_substeps())
    return time.perf_counter() - begin


def _never() -> None:
    """Stand for a cancel check that finds nothing."""


@functools.cache
def processor() -> dict[str, str]:
    """Return the name of the processor that kernels are compiled for, and its widest vectors."""
    import llvmlite.binding
    import numba

    flags = numba.config.CPU_FEATURES
    if flags is None:
        features = {name for name, has in llvmlite.binding.get_host_cpu_features().items() if has}
    else:
        features = {flag[1:] for flag in flags.split(",") if flag.startswith("+")}
    level = next((name for name in ("avx512f", "avx2", "avx", "sse4.2", "sse2", "neon") if name in features), "scalar")
    return {"cpu": numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name(), "cpu_features": level}
