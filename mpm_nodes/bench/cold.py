"""How long the kernels of a row take to compile: in a process of its own, with an empty cache, helped as any solve is.

See `solver.cold_start`; MPM_NODES_COMPILE_HELPER=0 measures one process alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import time

from mpm_nodes import children
from mpm_nodes.bench.rows import Row
from mpm_nodes.bench.threads import set_threads
from mpm_nodes.data import MpmNodesError

PARTICLES = 1000
"""Compiling does not depend on their number, building the solver does."""


def compile_seconds(row: Row) -> float:
    """Return the time that building a solver and its first substep take longer than a later substep [s].

    Raises:
        MpmNodesError: The process failed; the message holds what it said last.
    """
    few = dataclasses.asdict(dataclasses.replace(row, particles=PARTICLES))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MPM_NODES_CACHE": folder}
        done = children.run("mpm_nodes.bench.cold:main", [json.dumps(few)], capture_output=True, text=True, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MpmNodesError(
            f"bench: --cold: the process that compiles {row.scene} of {row.law} ended with "
            f"{done.returncode}: {last}; run without --cold"
        )
    return float(done.stdout)


def main(argument: str) -> None:
    """Compile one row, given as JSON, and print the seconds that it took."""
    from mpm_nodes.bench import scenes

    row = Row(**json.loads(argument))
    set_threads(row.threads)
    start = scenes.untouched(row.scene, row.law, row.particles)
    begin = time.perf_counter()
    solver = scenes.solver(start, row)
    solver.step()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    solver.step()
    print(first - (time.perf_counter() - begin))
