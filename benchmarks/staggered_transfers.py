"""Transfers to faces and cells and back, beside a whole step of the collocated grid with cubic splines and FLIP, in one run.

    python benchmarks/staggered_transfers.py                       # a million particles, all cores
    python benchmarks/staggered_transfers.py --particles 100000 --threads 1

The matter is a cube of rubber that fills its cells evenly, eight particles each. Prints the least milliseconds of each call and the
sums over those of the collocated step. The exit code is 1 when the transfers of the projection and of heat together take more than
three times as long as that step.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable

import numba
import numpy as np
from environments import busy_warning

from mpm_nodes.bench.scenes import scene
from mpm_nodes.data import Particles, Thermal
from mpm_nodes.physics.heat.stages import heat
from mpm_nodes.physics.projection.stages import projection
from mpm_nodes.solver.run import SubstepSolver

MOST = 3.0
LAW = "neo_hookean"
WARM = Thermal(2000.0, 1.0, 2000.0, 1.0)
COLLOCATED = {"preset": "explicit_apic", "set": {"kernel": "cubic", "transfer": "flip"}}


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table; 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    numba.set_num_threads(args.threads)
    start = scene("cube", LAW, args.particles).particles
    whole, calls = collocated(start), staggered(start)
    # in turns, so that another process slows all of them alike
    found = {name: float("inf") for name in ("step", *calls)}
    for _ in range(args.repeats):
        for name, call in {"step": whole, **calls}.items():
            begin = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - begin)
    print("| call | ms | over the step |\n|---|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {1e3 * seconds:.1f} | {seconds / found['step']:.2f} |")
    sums = {
        "faces, there and back": ("rasterize_faces", "gather_faces"),
        "faces and cells, there and back": tuple(calls),
    }
    ratio = 0.0
    for told, names in sums.items():
        ratio = sum(found[name] for name in names) / found["step"]
        print(f"| {told} | {1e3 * ratio * found['step']:.1f} | {ratio:.2f} |")
    return int(ratio > MOST)


def collocated(start: Particles) -> Callable[[], object]:
    """Return a call that advances the collocated grid by one substep."""
    run = SubstepSolver(start, COLLOCATED)
    for _ in range(2):
        run.step()
    return run.step


def staggered(start: Particles) -> dict[str, Callable[[], object]]:
    """Return the transfers of a substep with heat and projection, by name."""
    materials = tuple(dataclasses.replace(material, thermal=WARM) for material in start.materials)
    run = SubstepSolver(dataclasses.replace(start, materials=materials), "melting", fuse=False)
    particles, faces, step = run.particles, run.stores["staggered"], run.step_context
    particles.sort()
    run.grid.follow()
    for name in ("heat_capacity", "volume_per_heat", "conductivity"):
        particles.pack(name, np.ones(particles.count))
    return {
        "rasterize_heat": lambda: heat.rasterize_heat(particles, faces),
        "rasterize_faces": lambda: projection.rasterize_faces(particles, faces),
        "gather_heat": lambda: heat.gather_heat(particles, faces, step),
        "gather_faces": lambda: projection.gather_faces(particles, faces),
    }


if __name__ == "__main__":
    sys.exit(main())
