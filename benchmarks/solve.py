"""Particle-steps per second of the preset `explicit_apic` as wired: a cube of eight particles a cell, falling and turning.

    python benchmarks/solve.py                          # a table
    python benchmarks/solve.py --particles 1000000 --law snow --json figures.json

Times are medians over the substeps after a warm-up, sorting included. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from mpm_nodes import Material, Particles, SubstepSolver


def cube(count: int, law: str, kernel: str) -> SubstepSolver:
    """Return a solver with about `count` particles at h/2, jittered, with an initial fall and rotation."""
    side, spacing = round(count ** (1 / 3)), 0.005
    rng = np.random.default_rng(1)
    index = np.stack(np.meshgrid(*(np.arange(side),) * 3, indexing="ij"), -1).reshape(-1, 3)
    position = spacing * (index + 0.5 + rng.uniform(-0.25, 0.25, index.shape))
    arm = position - position.mean(axis=0)
    velocity = np.stack([-2.0 * arm[:, 2], np.full(len(arm), -1.0), 2.0 * arm[:, 0]], -1)
    material = Material(law, {"bulk_modulus": 1e5} if law == "liquid" else {"youngs_modulus": 1e5, "poisson_ratio": 0.3}, 1000.0)
    columns = {"position": position, "velocity": velocity.astype(np.float32)}
    return SubstepSolver(Particles(columns, (material,), spacing), {"preset": "explicit_apic", "set": {"kernel": kernel}})


def measure(count: int, law: str, kernel: str, substeps: int) -> dict:
    """Return one record: particle-steps per second and milliseconds per stage."""
    solver = cube(count, law, kernel)
    for _ in range(3):
        solver.step()
    solver.stage_seconds = dict.fromkeys(solver.stage_seconds, 0.0)
    times = []
    for _ in range(substeps):
        begin = time.perf_counter()
        solver.step()
        times.append(time.perf_counter() - begin)
    particles = solver.particles.count
    return {"law": law, "kernel": kernel, "particles": particles,
            "particle_steps_per_second": particles / statistics.mean(times),
            "median_milliseconds": 1e3 * statistics.median(times),
            "stage_milliseconds": {name: 1e3 * total / substeps for name, total in solver.stage_seconds.items()},
            "bytes_per_particle": solver.particles.nbytes / particles}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--law", nargs="+", default=["neo_hookean", "fixed_corotated", "snow", "liquid"])
    parser.add_argument("--kernel", nargs="+", default=["quadratic"], choices=["quadratic", "cubic"])
    parser.add_argument("--substeps", type=int, default=40)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    records = []
    print(f"{'law':16} {'kernel':10} {'particles':>10} {'million particle-steps/s':>25} {'ms/substep':>11} {'bytes/particle':>15}")
    for count in args.particles:
        for law in args.law:
            for kernel in args.kernel:
                r = measure(count, law, kernel, args.substeps)
                records.append(r)
                print(f"{r['law']:16} {r['kernel']:10} {r['particles']:>10,} {r['particle_steps_per_second'] / 1e6:>25.1f} "
                      f"{r['median_milliseconds']:>11.2f} {r['bytes_per_particle']:>15.0f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
