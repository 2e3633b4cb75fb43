"""Kernels ahead of time: those of presets, compiled by as many processes as there are cores.

Each process runs tiny solves (see `compile_helper`), a preset with one kind of matter after the other. They share the disk cache,
where each kernel is compiled by whoever comes first. A process that finds nothing left to begin helps with what others have not
ended, the late stages first. A file says that a preset was compiled here, with these sources and for this processor.
"""

from __future__ import annotations

import collections
import functools
import gc
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes import children, compiling
from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.kernels.compile import jit, sources
from mpm_nodes.materials.library import named_material
from mpm_nodes.materials.parameters import BUILT_IN
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.cold_start import SWITCH, cores
from mpm_nodes.solver.compile_helper import help_compile, run_tiny
from mpm_nodes.solver.kernel_counts import SECONDS_A_KERNEL, count_of
from mpm_nodes.terminal import stream_of_results

__all__ = ["compile_presets", "cores", "in_words", "is_ahead", "kernels_of", "preset_names"]

WORK = "mpm_nodes.solver.ahead:work"
EVERY = 0.2
"""Seconds from one word of a process to the next; what comes of them is said less often."""


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, those of the user's too."""
    return tuple(sorted(registry.default().presets))


def matters(preset: str) -> tuple[Material, ...]:
    """Return what a preset is compiled for: each a solve of its own. Other laws compile what is theirs when they are cooked."""
    if preset == "explicit_apic":
        return tuple(Material(law, {}, 1000.0, law) for law in BUILT_IN)
    declared = {name: make for physics in all_physics() for name, make in physics.compiled_for.items()}
    return declared[preset](named_material) if preset in declared else (named_material("rubber"),)


def compile_one(preset: str, place: int, late: bool = False, collides: Sequence[bool] = (True, False)) -> None:
    """Compile a preset for one of its matters, in single precision.

    Args:
        preset: Its name.
        place: Which of `matters`.
        late: Begin with the late stages, since another process begins with the early ones.
        collides: Whether there are colliders: with, then without.
    """
    task = {"materials": (matters(preset)[place],), "substeps": preset, "fuse": True, "walls": None, "dtype": "<f4"}
    for each in collides:
        if not late:
            run_tiny({**task, "collides": each})
        help_compile({**task, "collides": each})


# ---------------------------------------------------------------- what is compiled here, and what it takes
def is_ahead(preset: str) -> bool:
    """Return whether a preset was compiled ahead here, for this processor, with the package as it is."""
    return _marker(preset).exists()


@functools.cache
def _marker(preset: str) -> Path:
    from numba.core.registry import cpu_target

    document = registry.default().presets[preset].read_bytes()
    kind = (sources.package_digest(), document, matters(preset), cpu_target.target_context.codegen().magic_tuple())
    return jit.CACHE_FOLDER / "ahead" / hashlib.sha256(repr(kind).encode()).hexdigest()[:24]


def kernels_of(presets: Sequence[str]) -> int | None:
    """Return how many kernels presets compile at most where none is there; what several share counts for each. None: unknown."""
    rows = [count_of(preset) for preset in presets]
    return None if None in rows else sum(row.ahead for row in rows if row)


def in_words(presets: Sequence[str]) -> str:
    """Return what compiling presets takes at most: ", at most 140 kernels, some 22 s", "" where that is unknown."""
    kernels = kernels_of(presets)
    if kernels is None:
        return ""
    return f", at most {kernels} kernels, some {max(1.0, kernels * SECONDS_A_KERNEL / cores()):.0f} s"


# ---------------------------------------------------------------- the processes
def compile_presets(presets: Sequence[str], processes: int, say: Callable[[compiling.Compiling], None]) -> int:
    """Compile presets in so many processes; `say` hears how far it is, every 1.5 seconds. Returns the number of kernels.

    Raises:
        MpmNodesError: A process failed.
    """
    jobs = [(preset, place) for preset in presets for place in range(len(matters(preset)))]
    crew = _Crew(jobs, min(processes, 2 * len(jobs)), kernels_of(presets))
    try:
        crew.run(say)
    finally:
        crew.end()
    return crew.done


Job = tuple[str, int]


class _Worker:
    """A process that compiles a job at a time; `heard` gets what it says.

    Attributes:
        job: What it compiles, and whether the late stages first; None before the first.
        done: Kernels that it has compiled.
    """

    def __init__(self, heard: queue.SimpleQueue[tuple[_Worker, dict[str, Any]]]) -> None:
        self.job: tuple[Job, bool] | None = None
        self.done = 0
        environment = {**os.environ, SWITCH: "0", "NUMBA_NUM_THREADS": "1"}
        self.process = children.start(
            WORK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()

    def _listen(self, heard: queue.SimpleQueue[tuple[_Worker, dict[str, Any]]]) -> None:
        for line in self.process.stdout or ():
            heard.put((self, json.loads(line)))
        heard.put((self, {"failed": f"a process ended with {self.process.wait()}"}))

    def give(self, job: Job, late: bool) -> None:
        """Have a job done."""
        self.job = job, late
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([*job, late]) + "\n")
        self.process.stdin.flush()


class _Crew:
    """Processes that compile, and what is left for them.

    Args:
        jobs: What there is to compile: presets, and which of the matters of each.
        processes: How many.
        total: Kernels that are expected, None where nobody knows.
    """

    def __init__(self, jobs: Sequence[Job], processes: int, total: int | None) -> None:
        self.jobs, self.total, self.began = jobs, total, time.monotonic()
        self.unfinished = set(jobs)
        self.waiting = collections.deque([*((job, False) for job in jobs), *((job, True) for job in reversed(jobs))])
        self.heard: queue.SimpleQueue[tuple[_Worker, dict[str, Any]]] = queue.SimpleQueue()
        self.workers = [_Worker(self.heard) for _ in range(processes)]

    @property
    def done(self) -> int:
        return sum(worker.done for worker in self.workers)

    def run(self, say: Callable[[compiling.Compiling], None]) -> None:
        """Hand out jobs until none is unfinished."""
        due, kernel = self.began + compiling.EVERY, "starting"
        while self.unfinished:
            try:
                worker, told = self.heard.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                total = self.total if self.total is not None and self.total > self.done else None
                several = len({preset for preset, _ in self.jobs}) > 1  # which share kernels
                say(compiling.Compiling(kernel, self.done, total, time.monotonic() - self.began, several))
                due = time.monotonic() + compiling.EVERY
                continue
            preset = "" if worker.job is None else worker.job[0][0]
            if "failed" in told:
                raise MpmNodesError(f"{preset or 'kernels'}: cannot be compiled: {told['failed']}; run it again")
            worker.done = told["done"]
            if told["kernel"]:
                kernel = f"{preset}, {told['kernel']}"
            else:
                self._finish(worker)

    def _finish(self, worker: _Worker) -> None:
        """Note what a process has done, and give it what is next."""
        if worker.job is not None and not worker.job[1]:
            done = worker.job[0]
            self.unfinished.discard(done)
            if done[0] not in {preset for preset, _ in self.unfinished}:
                marker = _marker(done[0])
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()
        while self.waiting:
            job, late = self.waiting.popleft()
            if job in self.unfinished:
                worker.give(job, late)
                return

    def end(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()


def work() -> None:
    """Compile the jobs that come, one a line, and say how far it is: in a process of a crew."""

    def tell(done: int, kernel: str = "", **more: str) -> None:
        stream.write(json.dumps({"done": done, "kernel": kernel, **more}) + "\n")
        stream.flush()

    gc.disable()
    with stream_of_results(True) as stream, compiling.told(lambda now: tell(now.done, now.kernel), EVERY) as done:
        tell(0)
        for line in sys.stdin:
            preset, place, late = json.loads(line)
            try:
                compile_one(preset, place, late)
            except Exception as error:
                tell(done(), failed=f"{type(error).__name__}: {error}")
            tell(done())
