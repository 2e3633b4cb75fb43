"""A tiny solve of a kind, run for what it compiles.

It runs in the process that helps a first substep (see `cold_start`), and ahead of any solve (`mpm-nodes kernels warm`).
"""

from __future__ import annotations

import functools
import gc
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes import compiling
from mpm_nodes.data import ATTRIBUTES, Collider, CollisionRule, Particles
from mpm_nodes.kernels.level_sets.level_set import SPHERE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.terminal import stream_of_results

TINY_STEP = 1e-6
"""Length of the helper's substep [s]: nothing moves, everything is compiled."""
EVERY = 0.5
"""Seconds from one word about what was compiled to the next, for the process that is helped."""
_ENERGY = ("energy", "terms")


def run_tiny(task: dict[str, Any]) -> None:
    """Run substeps of a tiny solve that falls, and what a solve calls at the end of a frame."""
    solver = _tiny_solver(task)
    solver.gravity = (0.0, -9.81, 0.0)
    for _ in range(3):
        solver.step()
    solver.snapshot()
    solver.colliders.report(solver.particles)


def help_compile(task: dict[str, Any]) -> list[Exception]:
    """Run the stages of a tiny solve, the late ones first: the solve begins with the early ones.

    Returns:
        What was raised by stages that need what earlier ones leave; they are left to the solve.
    """
    solver = _tiny_solver(task)
    particles, step = solver.particles, solver.step_context
    particles.sorted, particles.drift = True, 2.0  # one block is in order: sorting is left to the solve
    solver.grid.follow()
    step.time, step.time_left, step.dt, step.keep = 0.0, np.inf, TINY_STEP, False
    step.gravity = (0.0, 0.0, 0.0)
    calls = []
    for index in reversed(range(len(solver.candidates.programs))):
        solver.choose(index)
        solver.dispatch.sample(0.0)
        calls += _late_first(solver)
    failed = []
    # again, for what had nothing to do: samples of a surface are there once the stage that makes them, an early one, has run
    for call in [*calls, *calls, lambda: solver.colliders.report(particles), particles.sort]:
        step.dt = TINY_STEP
        try:
            call()
        except Exception as error:
            failed.append(error)
    return failed


def _late_first(solver: SubstepSolver) -> list[Callable[[], Any]]:
    """Return the calls of a solver's stages: the first, then the others from the last one on.

    What minimises energies comes behind the stages of their terms, which compile nothing themselves, and finds mass on the grid.
    """
    first, *rest = zip(solver.dispatch.stages, solver.dispatch.calls, strict=True)
    terms = [call for planned, call in rest if _ENERGY in planned.writes]
    late = [(planned, call) for planned, call in reversed(rest) if _ENERGY not in planned.writes]
    calls: list[Callable[[], Any]] = [first[1]]
    for planned, call in late:
        before = [*terms, functools.partial(_touch_terms, solver)] if _ENERGY in planned.reads else []
        calls += [*before, call]
    return calls


def _touch_terms(solver: SubstepSolver) -> None:
    """Call the large kernels of energy terms, the late ones first, and leave masses and momenta on the grid."""
    energy, grid = solver.energy, solver.grid
    for term in energy.terms.values():
        term.linearise(TINY_STEP)
        term.apply(TINY_STEP, energy.rounded("direction"), energy.rounded("product"))
        term.add_blocks(TINY_STEP, energy.blocks())
    values = 256 * grid.count
    grid.array("momentum")[:values] = 1.0 + np.arange(values) % 7  # nodes that differ: a residual is left to solve for


def _tiny_solver(task: dict[str, Any]) -> SubstepSolver:
    materials = task["materials"]
    corners = np.stack(np.meshgrid(*([0.1, 0.2],) * 3, indexing="ij"), -1).reshape(-1, 3)
    columns = {
        "position": np.tile(corners, (len(materials), 1)),
        "velocity": np.zeros((8 * len(materials), 3)),
        "material": np.repeat(np.arange(len(materials), dtype=np.int32), 8),
    }
    followed = {table.over for material in materials for table in material.tables.values()} - set(ATTRIBUTES)
    columns |= {name: np.zeros(8 * len(materials)) for name in followed}
    ball = Collider("ball", CollisionRule.SLIP, 0.0, PosedLevelSets(SPHERE, (0.05,)))
    return SubstepSolver(
        Particles(columns, materials, 0.1),
        task["substeps"],
        colliders=(ball,) if task["collides"] else (),
        walls=task["walls"],
        gravity=(0.0, 0.0, 0.0),
        dtype=np.dtype(task["dtype"]),
        fuse=task["fuse"],
        origin=(0.0, 0.0, 0.0),
    )


def main() -> None:
    """Compile for the solve that started this process, until its end of the pipe closes."""
    task = pickle.load(sys.stdin.buffer)

    def leave() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=leave, daemon=True).start()
    gc.disable()
    with stream_of_results(True) as stream, compiling.told(lambda now: print(now.done, file=stream, flush=True), EVERY) as done:
        help_compile(task)
        print(done(), file=stream, flush=True)
    os._exit(0)
