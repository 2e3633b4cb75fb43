"""The first substep of a kind of solve on a machine: its kernels are compiled in two processes at once.

Compiling takes many times longer than loading what was compiled, and numba does it on one core. So the first substep starts a
process that runs a tiny solve of the same kind, the late stages first. Both store what they compile in the same cache, where each
kernel is compiled by whoever comes first (see `kernels.compile.kernel_cache`): they meet in the middle. A solve does not depend
on its helper: without one, or when it fails, it compiles the rest itself.

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
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mpm_nodes import children, compiling
from mpm_nodes.data import Walls
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.kernels.compile import jit, sources
from mpm_nodes.solver.candidates import Candidates
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.kernel_counts import count_of
from mpm_nodes.solver.matter import SourceMatter
from mpm_nodes.solver.state import ParticleStore

NOTICE = "compiling kernels for this machine, once"
SWITCH = "MPM_NODES_COMPILE_HELPER"
HELPER = "mpm_nodes.solver.compile_helper:main"


class ColdSolver(Protocol):
    """What a solver says of the kernels that it will compile."""

    @property
    def substeps_done(self) -> int:
        """Substeps that it has run."""
        ...

    @property
    def plan(self) -> SubstepPlan:
        """The plan that it runs."""
        ...

    @property
    def candidates(self) -> Candidates:
        """The substep graphs that it may run."""
        ...

    @property
    def matter(self) -> SourceMatter:
        """What it is made of."""
        ...

    @property
    def walls(self) -> Walls | None:
        """Its walls."""
        ...

    @property
    def particles(self) -> ParticleStore:
        """Its particles."""
        ...

    @property
    def colliders(self) -> ColliderSet:
        """Its colliders."""
        ...


P = ParamSpec("P")
S = TypeVar("S", bound=ColdSolver)


def compiled_in_two(step: Callable[Concatenate[S, P], float]) -> Callable[Concatenate[S, P], float]:
    """Make a solver's `step` start a helper for its first substep if that has to compile."""

    @functools.wraps(step)
    def first_or_later(solver: S, *arguments: P.args, **named: P.kwargs) -> float:
        if solver.substeps_done or not is_cold(solver):
            return step(solver, *arguments, **named)
        with _compiling(solver):
            return step(solver, *arguments, **named)

    return first_or_later


def is_cold(solver: ColdSolver) -> bool:
    """Return whether no solve of this kind has got through a substep with this cache folder."""
    return not solver.substeps_done and not _marker(solver).exists()


def _marker(solver: ColdSolver) -> Path:
    """Return the marker file of the solver's kind: what decides which kernels, for which types and which processor."""
    from numba.core.registry import cpu_target

    stages = [(planned.id, _choices(planned.knobs)) for planned in solver.plan.stages]
    laws = sorted({law.loops.law.id for law in solver.particles.laws})
    kind = (
        sources.package_digest(),
        stages,
        laws,
        str(solver.particles.dtype),
        solver.colliders.idle,
        bool(solver.colliders.colliders),
        cpu_target.target_context.codegen().magic_tuple(),
    )
    return jit.CACHE_FOLDER / "started" / hashlib.sha256(repr(kind).encode()).hexdigest()[:24]


def _choices(knobs: Any) -> Any:
    """Return the knobs that are choices; a fused stage has those of its members by their names."""
    if isinstance(knobs, Mapping):
        return [(name, _choices(value)) for name, value in sorted(knobs.items())]
    return str(knobs) if isinstance(knobs, enum.Enum | bool) else None


@contextlib.contextmanager
def _compiling(solver: ColdSolver) -> Iterator[None]:
    """Have a helper while the first substep runs; it may outlive a good one, since reports at the frame's end are compiled too."""
    helper = _start(solver)
    recipe = solver.candidates.recipe
    known = count_of(str(recipe.get("preset")) if isinstance(recipe, Mapping) else str(recipe))
    compiling.expect(known.first if known else None)
    collects = gc.isenabled()
    gc.disable()  # a tenth of the time: the compiler leaves little garbage but millions of objects to look at
    try:
        yield
    except BaseException:
        if helper is not None:
            helper.kill()
        raise
    finally:
        compiling.expect(None)
        if collects:
            gc.enable()
    marker = _marker(solver)
    with contextlib.suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(solver: ColdSolver) -> subprocess.Popen | None:
    """Start a helper, or return None where it could not help."""
    if os.environ.get(SWITCH) == "0" or cores() < 2 or not sys.executable:
        return None
    with contextlib.suppress(OSError):
        jit.CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
    if not os.access(jit.CACHE_FOLDER, os.W_OK):
        return None
    try:
        task = pickle.dumps(_task(solver))
    except Exception:  # a part of the user's that only lives in this process
        return None
    environment = {**os.environ, SWITCH: "0", "NUMBA_NUM_THREADS": "1"}
    try:
        # a session of its own: the terminal's Ctrl-C is for the solve, which ends its helper by closing its input
        child = children.start(
            HELPER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        if child.stdin is not None:
            child.stdin.write(task)
            child.stdin.flush()
    except OSError:
        return None
    threading.Thread(target=_count, args=(child,), name="compile helper", daemon=True).start()
    return child


def _count(child: subprocess.Popen) -> None:
    """Count what a helper has compiled, as it says so, and wait for its end: no zombie is left behind."""
    counted = 0
    for line in child.stdout or ():
        compiling.add(int(line) - counted)
        counted = int(line)
    child.wait()


def _task(solver: ColdSolver) -> dict[str, Any]:
    """Return what a helper needs to build a tiny solver of the same kind."""
    materials = tuple(dataclasses.replace(material, params=dict(material.params)) for material in solver.matter.materials)
    return {
        "materials": materials,
        "substeps": solver.candidates.recipe,
        "fuse": solver.candidates.fuse,
        "walls": solver.walls,
        "dtype": solver.particles.dtype.str,
        "collides": bool(solver.colliders.colliders),
    }
