"""Graph mutants, validated as by `mpm-nodes validate`: each ends well or in an error of the family, at once and within bounds."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from tests.selftest.mutants import Mutant, documents, mutant
from tests.selftest.outcomes import Job, Outcome
from tests.selftest.shot import bounded
from tests.selftest.worker import at_case

__all__ = ["cases", "judged", "prepare"]

ROW = "graph mutants"
MOST_SECONDS, MOST_BYTES = 1.0, 200_000_000
HANGS = 10.0
"""Seconds of the processor after which a mutant is given up; one that waits for something is given up by the session."""
SIMPLEST = 20.0
"""Seconds that are spent to make a mutant with a fault simpler."""


def cases(job: Job) -> Iterator[Outcome]:
    """Validate mutants."""
    known = registry.load(path="", entry_points=False)
    bases = documents(known, Path(job.samples))
    prepare(bases, Path(job.folder), known)
    for number in job.numbers():
        at_case(job, number)
        tried = mutant(bases, job.seed, number)
        outcome = judged(tried.content(), Path(job.folder), known)
        if outcome.fault:
            path = _kept(job, number, tried, outcome, known)
            fault = f"seed {job.seed}, case {number}: {outcome.fault}; the file is {path}"
            outcome = Outcome(ROW, outcome.ending, fault, outcome.seconds, outcome.megabytes)
        yield outcome


def prepare(bases: list[Any], folder: Path, known: Registry) -> None:
    """Use once, without limits, what imports or takes memory at its first use: that counts for no mutant.

    Within a limit of memory, libraries crash while they are loaded: pxr, and Numba's with the first kernel.
    """
    with contextlib.suppress(ImportError):
        from pxr import Usd, UsdGeom  # noqa: F401
    for size in (3, 300):  # OpenBLAS takes its memory once, and asks for ever where a limit refuses it
        matrix = np.ones((size, size))
        matrix @ matrix.T, matrix @ matrix
    for base in bases:
        judged(json.dumps(base).encode(), folder, known, limited=False)
    gc.collect()
    gc.freeze()  # what is loaded stays: no collection looks at it again, which is a tenth of a mutant's time


def judged(content: bytes, folder: Path, known: Registry, limited: bool = True) -> Outcome:
    """Validate one graph file, within limits of time and memory or without; return how it ended.

    Seconds are those of the processor, so that other processes do not count, and of the validation alone: that a graph is the same
    when it is saved and loaded again is tried behind it.
    """
    path = folder / "mutant.json"
    path.write_bytes(content)
    held, most = _held(), _most()
    planned: list[Graph] = []
    with _bounds() if limited else contextlib.nullcontext():
        begin = time.process_time()
        ending, fault = _ended(lambda: _validated(path, known, planned))
        seconds = time.process_time() - begin
        if planned and not fault:
            wrong, fault = _ended(lambda: _saved_alike(planned[0], known))
            ending = wrong if fault else ending
    if seconds > MOST_SECONDS and not fault:
        fault = f"takes {seconds:.2f} s"
    grown = (_most() - held) / 1e6 if _most() > most else 0.0
    return Outcome(ROW, ending, fault, seconds, grown)


def _ended(tried: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Return how something ended, and what is wrong with that."""
    try:
        return tried()
    except MpmNodesError as error:
        return "refused", _fault_of(error)
    except TimeoutError:
        return "hangs", f"goes on after {HANGS:g} s"
    except MemoryError:
        return "memory", f"takes more than {MOST_BYTES / 1e6:.0f} MB"
    except Exception as error:
        return "defect", f"{type(error).__name__}: {str(error)[:300]}"


def _validated(path: Path, known: Registry, planned: list[Graph]) -> tuple[str, str]:
    """Do what `mpm-nodes validate` does; a graph that can be planned is added to `planned`."""
    graph = load_graph(path, registry=known)
    plan = plan_graph(graph)
    planned.append(graph)
    preflight.check_memory(preflight.estimate(plan, graph.settings.start), graph.settings)
    return "valid", ""


def _saved_alike(graph: Graph, known: Registry) -> tuple[str, str]:
    saved = json.loads(json.dumps(graph.to_json()))
    if load_graph(saved, registry=known, base=graph.base).to_json() != saved:
        return "valid", "is another graph when it is saved and loaded again"
    return "valid", ""


def _fault_of(error: MpmNodesError) -> str:
    if error.exit_code not in (2, 5):
        return f"exit code {error.exit_code}: {error}"
    try:
        bounded(str(error))
    except AssertionError as wrong:
        return str(wrong)
    return ""


@contextlib.contextmanager
def _bounds() -> Iterator[None]:
    """Let what goes on too long, or takes too much, end in an exception."""

    def give_up(number: int, frame: Any) -> None:
        raise TimeoutError

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (_pages(0) + MOST_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _pages(column: int) -> int:
    return int(Path("/proc/self/statm").read_text().split()[column]) * os.sysconf("SC_PAGE_SIZE")


def _held() -> int:
    return _pages(1)


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---------------------------------------------------------------- what shows a fault
def _kept(job: Job, number: int, tried: Mutant, outcome: Outcome, known: Registry) -> Path:
    """Write the simplest mutant that shows the fault; return its path."""
    end = time.monotonic() + SIMPLEST

    def shows(content: bytes) -> bool:
        found = judged(content, Path(job.folder), known)
        return found.ending == outcome.ending and found.fault.split(":")[0] == outcome.fault.split(":")[0]

    simpler = True
    while simpler and time.monotonic() < end:
        simpler = False
        for other in tried.simpler():
            if shows(other.content()):
                tried, simpler = other, True
                break
    content = tried.content()
    if tried.bytes_seed is None:
        content = _without_nodes(tried.document(), shows, end)
    path = Path(job.keep, f"graphs-{job.seed}-{number}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _without_nodes(document: Any, shows: Any, end: float) -> bytes:
    """Return a document that shows the same with as few nodes, knobs and wires as can be found in time."""
    content = json.dumps(document).encode()
    tables = [document.get("nodes")] if isinstance(document, dict) else []
    tables += (
        [entry.get(key) for entry in (tables[0] or {}).values() if isinstance(entry, dict) for key in ("knobs", "inputs")]
        if (tables and isinstance(tables[0], dict))
        else []
    )
    for table in tables:
        for name in list(table) if isinstance(table, dict) else []:
            if time.monotonic() > end:
                return content
            value = table.pop(name)
            if shows(json.dumps(document).encode()):
                content = json.dumps(document).encode()
            else:
                table[name] = value
    return content
