"""The first substep of a kind of solve on a machine: its kernels are compiled in two processes at once.

Compiling takes many times longer than loading what was compiled, and numba does it on one core. So the first substep starts a
process that runs a tiny solve of the same kind, the late stages first. Both store what they compile in the same cache, where each
kernel is compiled by whoever comes first (see `kernels.kernel_cache`): they meet in the middle. A solve does not depend on its
helper: without one, or when it fails, it compiles the rest itself.

A marker file says that a kind of solve has got through its first substep here; then there is nothing to help with.
`MPM_NODES_COMPILE_HELPER=0` in the environment keeps solves to one process; one with a single core stays alone anyway.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import gc
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.kernels import jit

NOTICE = "compiling kernels for this machine, once (some 15 seconds)"
SWITCH = "MPM_NODES_COMPILE_HELPER"
TINY_STEP = 1e-6
"""Length of the helper's substep [s]: nothing moves, everything is compiled."""
_ENERGY = ("energy", "terms")


# ---------------------------------------------------------------- in the solve
def compiled_in_two(step: Callable[..., float]) -> Callable[..., float]:
    """Make a solver's `step` start a helper for its first substep if that has to compile."""

    @functools.wraps(step)
    def first_or_later(solver: Any, *arguments: Any, **named: Any) -> float:
        if solver.substeps_done or not is_cold(solver):
            return step(solver, *arguments, **named)
        with _compiling(solver):
            return step(solver, *arguments, **named)

    return first_or_later


def is_cold(solver: Any) -> bool:
    """Return whether no solve of this kind has got through a substep with this cache folder."""
    return not solver.substeps_done and not _marker(solver).exists()


def _marker(solver: Any) -> Path:
    """Return the marker file of the solver's kind: what decides which kernels, for which types and which processor."""
    from numba.core.registry import cpu_target

    stages = [(planned.id, _choices(planned.knobs)) for planned in solver.plan.stages]
    laws = sorted({law.kernels.law.id for law in solver.particles.laws})
    kind = (stages, laws, str(solver.dtype), solver.colliders.idle, bool(solver.colliders.colliders),
            cpu_target.target_context.codegen().magic_tuple())
    return jit.CACHE_FOLDER / "started" / hashlib.sha256(repr(kind).encode()).hexdigest()[:24]


def _choices(knobs: Any) -> Any:
    """Return the knobs that are choices; a fused stage has those of its members by their names."""
    if isinstance(knobs, Mapping):
        return [(name, _choices(value)) for name, value in sorted(knobs.items())]
    return str(knobs) if isinstance(knobs, enum.Enum | bool) else None


@contextlib.contextmanager
def _compiling(solver: Any) -> Iterator[None]:
    """Have a helper while the first substep runs; it may outlive a good one, since reports at the frame's end are compiled too."""
    helper = _start(solver)
    collects = gc.isenabled()
    gc.disable()  # a tenth of the time: the compiler leaves little garbage but millions of objects to look at
    try:
        yield
    except BaseException:
        if helper is not None:
            helper.kill()
        raise
    finally:
        if collects:
            gc.enable()
    marker = _marker(solver)
    with contextlib.suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(solver: Any) -> subprocess.Popen | None:
    """Start a helper, or return None where it could not help."""
    if os.environ.get(SWITCH) == "0" or _cores() < 2 or not sys.executable:
        return None
    with contextlib.suppress(OSError):
        jit.CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
    if not os.access(jit.CACHE_FOLDER, os.W_OK):
        return None
    try:
        task = pickle.dumps(_task(solver))
    except Exception:  # a part of the user's that only lives in this process
        return None
    path = os.pathsep.join(filter(None, [str(jit.PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, SWITCH: "0", "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"}
    try:
        # a session of its own: the terminal's Ctrl-C is for the solve, which ends its helper by closing its input
        child = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
        child.stdin.write(task)
        child.stdin.flush()
    except OSError:
        return None
    threading.Thread(target=child.wait, name="compile helper", daemon=True).start()  # no zombie is left behind
    return child


def _task(solver: Any) -> dict[str, Any]:
    """Return what a helper needs to build a tiny solver of the same kind."""
    materials = tuple(dataclasses.replace(material, params=dict(material.params)) for material in solver.materials)
    return {"materials": materials, "substeps": solver.recipe, "fuse": solver.fuse, "walls": solver.walls,
            "dtype": solver.dtype.str, "collides": bool(solver.colliders.colliders)}


def warm_law(law_id: str) -> None:
    """Compile what solves of one law with the default substeps call, in single precision, without and with colliders."""
    from mpm_nodes.data import Material

    for collides in (True, False):
        solver = _tiny_solver({"materials": (Material(law_id, {}, 1000.0, law_id),), "substeps": "explicit_apic", "fuse": True,
                               "walls": None, "dtype": "<f4", "collides": collides})
        solver.step()
        solver.colliders.report(solver.particles)


# ---------------------------------------------------------------- in the helper
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
    for index in reversed(range(len(solver.programs))):
        solver.choose(index)
        solver._dispatch.sample(0.0)
        calls += _late_first(solver)
    failed = []
    for call in [*calls, lambda: solver.colliders.report(particles), particles.sort]:
        step.dt = TINY_STEP
        try:
            call()
        except Exception as error:
            failed.append(error)
    return failed


def _late_first(solver: Any) -> list[Callable[[], Any]]:
    """Return the calls of a solver's stages: the first, then the others from the last one on.

    What minimises energies comes behind the stages of their terms, which compile nothing themselves, and finds mass on the grid.
    """
    first, *rest = zip(solver._dispatch.stages, solver._dispatch.calls, strict=True)
    terms = [call for planned, call in rest if _ENERGY in planned.writes]
    late = [(planned, call) for planned, call in reversed(rest) if _ENERGY not in planned.writes]
    calls = [first[1]]
    for planned, call in late:
        before = [*terms, functools.partial(_touch_terms, solver)] if _ENERGY in planned.reads else []
        calls += [*before, call]
    return calls


def _touch_terms(solver: Any) -> None:
    """Call the large kernels of energy terms, the late ones first, and leave masses and momenta on the grid."""
    energy, grid = solver.energy, solver.grid
    for term in energy.terms.values():
        term.linearise(TINY_STEP)
        term.apply(TINY_STEP, energy.rounded("direction"), energy.rounded("product"))
        term.add_blocks(TINY_STEP, energy.blocks())
    values = 256 * grid.count
    grid.array("momentum")[:values] = 1.0 + np.arange(values) % 7  # nodes that differ: a residual is left to solve for


def _tiny_solver(task: dict[str, Any]) -> Any:
    from mpm_nodes.data import Collider, CollisionRule, Particles
    from mpm_nodes.kernels.level_set import SPHERE, PosedLevelSets
    from mpm_nodes.solver.run import SubstepSolver

    materials = task["materials"]
    corners = np.stack(np.meshgrid(*([0.1, 0.2],) * 3, indexing="ij"), -1).reshape(-1, 3)
    columns = {"position": np.tile(corners, (len(materials), 1)), "velocity": np.zeros((8 * len(materials), 3)),
               "material": np.repeat(np.arange(len(materials), dtype=np.int32), 8)}
    ball = Collider("ball", CollisionRule.SLIP, 0.0, PosedLevelSets(SPHERE, (0.05,)))
    return SubstepSolver(Particles(columns, materials, 0.1), task["substeps"], colliders=(ball,) if task["collides"] else (),
                         walls=task["walls"], gravity=(0.0, 0.0, 0.0), dtype=np.dtype(task["dtype"]), fuse=task["fuse"],
                         origin=(0.0, 0.0, 0.0))


def main() -> None:
    """Compile for the solve that started this process, until its end of the pipe closes."""
    task = pickle.load(sys.stdin.buffer)

    def leave() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=leave, daemon=True).start()
    gc.disable()
    help_compile(task)
    os._exit(0)


if __name__ == "__main__":
    main()
