"""The scene that every solver gets: an elastic cube that falls, turns and wobbles in free space, and how a step is timed.

Runs inside the peers' environments: NumPy only. Every solver starts from the arrays of `Cube.particles`, in lattice order,
which is the best order for solvers that do not sort.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CELL = 1.0 / 128.0
"""Grid spacing [m]."""
SPACING = CELL / 2.0
"""Distance of neighbouring particles [m]: eight a cell."""
YOUNGS_MODULUS, POISSON_RATIO, DENSITY = 1.0e5, 0.3, 1000.0
MU = YOUNGS_MODULUS / (2.0 * (1.0 + POISSON_RATIO))
LAM = YOUNGS_MODULUS * POISSON_RATIO / ((1.0 + POISSON_RATIO) * (1.0 - 2.0 * POISSON_RATIO))
VOLUME = SPACING**3
MASS = VOLUME * DENSITY
GRAVITY = -9.81
"""Along y [m/s^2]."""
TIME_STEP = 1.0e-4
"""[s]"""


@dataclass(frozen=True)
class Cube:
    """A cube of `side`^3 particles.

    Attributes:
        side: Particles along an edge.
    """

    side: int

    @classmethod
    def of(cls, particles: int) -> Cube:
        """Return the cube whose number of particles is nearest to `particles`; at least 8 along an edge."""
        return cls(max(8, round(particles ** (1.0 / 3.0))))

    @property
    def count(self) -> int:
        """Number of particles."""
        return self.side**3

    @property
    def grid_nodes(self) -> int:
        """Nodes along an edge of a dense grid around it: 128 for a million particles; the cube stays far from its edges."""
        return max(32, 4 * round(0.32 * self.side))

    def particles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions [m] and velocities [m/s], both float32 of shape (count, 3)."""
        rng = np.random.default_rng(1)
        lattice = np.stack(np.meshgrid(*(np.arange(self.side),) * 3, indexing="ij"), -1).reshape(-1, 3)
        low = np.floor((self.grid_nodes - 0.5 * self.side) / 2.0) * CELL
        position = low + SPACING * (lattice + 0.5 + rng.uniform(-0.25, 0.25, lattice.shape))
        position = position.astype(np.float32)
        arm = position - position.mean(axis=0, dtype=np.float64)
        turning = np.stack([-2.0 * arm[:, 2], np.full(len(arm), -1.0), 2.0 * arm[:, 0]], -1)
        wobble = 0.3 * np.sin(20.0 * position[:, [1, 2, 0]].astype(np.float64))
        return position, np.ascontiguousarray(turning + wobble, np.float32)


@dataclass(frozen=True)
class Running:
    """A solver that holds the cube.

    Attributes:
        step: Does one step; may return before it is done.
        finish: Waits until all steps are done.
        state: Returns position, velocity and deformation gradient in the order of `Cube.particles`.
        version: Of the solver.
        interval: Steps after which its cost repeats; times are taken over whole intervals.
    """

    step: Callable[[], Any]
    finish: Callable[[], Any]
    state: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]
    version: str
    interval: int = 1


def main(start: Callable[[Cube, str, int, Path], Running]) -> None:
    """Run one solver's script: `start(cube, form, threads, cache folder)` sets it up; the result goes into --result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--particles", type=int, required=True)
    parser.add_argument("--form", required=True, help="which discretisation; see the script")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="steps that count, rounded up to whole intervals")
    parser.add_argument("--warm", type=int, default=0, help="steps before them, rounded up to whole intervals")
    parser.add_argument("--cache", type=Path, required=True, help="folder for compiled kernels")
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--state", type=Path, help="also write the final state (.npz)")
    args = parser.parse_args()
    begin = time.perf_counter()
    running = start(Cube.of(args.particles), args.form, args.threads, args.cache)
    if args.state:  # exactly the steps asked for
        for _ in range(args.steps):
            running.step()
        running.finish()
        position, velocity, deformation = running.state()
        np.savez(args.state, position=position, velocity=velocity, deformation=deformation)
        result = {"version": running.version, "seconds": time.perf_counter() - begin}
    else:
        result = {"version": running.version, **timed(running, args.warm, args.steps)}
    args.result.write_text(json.dumps(result))


def timed(running: Running, warm: int, steps: int) -> dict[str, float]:
    """Return the mean seconds of a step, the cores it kept busy and the load of the machine before it."""
    whole = [-(-number // running.interval) * running.interval for number in (warm, steps)]
    load = os.getloadavg()[0]
    for _ in range(whole[0]):
        running.step()
    running.finish()
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(whole[1]):
        running.step()
    running.finish()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"step_seconds": seconds / whole[1], "steps": whole[1], "cores_busy": cpu / seconds, "load_before": load}
