"""Too little memory: limits of the address space, and the n-th request for memory that is refused."""

from __future__ import annotations

import errno
import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.plan import plan_graph
from tests.selftest import real, shot, syscalls
from tests.selftest.forks import HangingFork, in_fork
from tests.selftest.kills import FRAMES, resumed
from tests.selftest.outcomes import SKIPPED, Job, Outcome
from tests.selftest.worker import at_case

__all__ = ["cases"]

LEAST, MOST = 0.25e9, 6e9
"""Limits of the address space that are tried [bytes]."""
FOR_EVER = 12.0
"""Seconds after which a cook that was refused memory counts as one that asks for ever."""
OBJECTS = 40
"""Requests of Python for memory that are refused in the short form, for each case of limits."""


def cases(job: Job) -> Iterator[Outcome]:
    """Cook within limits, then refuse requests."""
    shot.prepare()
    folder = Path(job.folder)
    graph = real.falling_shot(folder, end=1)
    for number in job.numbers():
        at_case(job, number)
        yield _limited(job, number, graph)
    yield from _maps(job, folder)
    yield from _objects(job)


def _limited(job: Job, number: int, graph: Path) -> Outcome:
    row, out = "limits of the address space", Path(job.folder, "out")
    share = (number + random.Random(f"{job.seed} {number}").random()) / job.count
    size = int(LEAST * (MOST / LEAST) ** share)
    done = real.run("limited", [str(size), *real.command_line(graph, out, "--events", "none")])
    shutil.rmtree(out, ignore_errors=True)
    told = done.stderr.strip().splitlines()
    if done.returncode == 0:
        return Outcome(row, "cooked")
    if done.returncode == 5 and told and "error: " in told[-1]:
        return Outcome(row, "refused in a sentence")
    how = f"exit code {done.returncode}: {told[-1][-300:] if told else 'nothing said'}"
    return Outcome(row, "against", f"seed {job.seed}, case {number}: within {size / 1e9:.3f} GB: {how}")


# ---------------------------------------------------------------- requests of all libraries
def _maps(job: Job, folder: Path) -> Iterator[Outcome]:
    """Refuse the n-th request of a cook of three frames to the system, whichever library makes it."""
    row, missing = "the n-th request for memory fails: system", syscalls.available()
    if missing:
        yield Outcome(row, SKIPPED, missing)
        return
    in_fork(partial(shot.cook, folder / "whole", FRAMES))
    whole, out = shot.digests(folder / "whole"), folder / "cooked"
    requests: list[int] = []
    work = partial(shot.cook, out, FRAMES)
    syscalls.watched(work, syscalls.MEMORY, "", lambda call: requests.append(0) or 0)
    shutil.rmtree(out)
    for number, _ in job.share(requests):

        def decide(call: syscalls.Call, number: int = number) -> int:
            return errno.ENOMEM if call.number == number else 0

        what = f"request {number} of {len(requests)}"
        try:
            ending = syscalls.watched(work, syscalls.MEMORY, "", decide, FOR_EVER)
        except HangingFork:  # some allocators ask for ever; a stop ends that
            yield resumed(row, "library asked for ever, ended, resumed byte-equal", out, whole, what)
            continue
        # a library that aborts takes its process along; the supervisor tells of it, and nothing half written counts
        if ending.signal:
            yield resumed(row, f"library ended it (signal {ending.signal}), resumed byte-equal", out, whole, what)
            continue
        if ending.error is not None or ending.answer not in (0, 5):
            shutil.rmtree(out, ignore_errors=True)
            yield Outcome(row, "against", f"{what}: {ending.error or f'exit code {ending.answer}'}")
            continue
        told = "told, then resumed byte-equal" if ending.answer else "whole all the same"
        yield resumed(row, told, out, whole, what)


# ---------------------------------------------------------------- requests of Python
def _objects(job: Job) -> Iterator[Outcome]:
    """Refuse the n-th request of Python while a graph is loaded and planned, where this Python can."""
    row = "the n-th request for memory fails: Python"
    try:
        import _testcapi
    except ImportError:
        yield Outcome(row, SKIPPED, "this Python has no _testcapi")
        return
    known = registry.load(path="", entry_points=False)
    document = json.loads(real.falling_shot(Path(job.folder)).read_text())
    expected = _planned(document, known)
    chance = random.Random(f"{job.seed} {job.first}")
    for _ in range(OBJECTS * job.count // job.step):
        number = int(10 ** chance.uniform(0.0, 4.7))
        ending = in_fork(partial(_without, number, partial(_planned, document, known), _testcapi))
        if ending.signal:
            yield Outcome(row, "against", f"request {number}: signal {ending.signal}")
        elif ending.error is not None:
            yield Outcome(row, "against", f"request {number}: {type(ending.error).__name__}: {ending.error}")
        else:
            ending_of, again = ending.answer
            fault = "" if again == expected else f"request {number}: the graph is another one afterwards"
            yield Outcome(row, ending_of, fault)


def _planned(document: Any, known: registry.Registry) -> list[str]:
    return [node.id for node in plan_graph(load_graph(document, registry=known)).nodes]


def _without(number: int, work: Callable[[], list[str]], api: Any) -> tuple[str, list[str]]:
    """Do work while one request is refused, then once more; return how the first time ended, and what the second gave."""
    ending = "whole all the same"
    try:
        api.set_nomemory(number, number + 1)
        work()
    except MemoryError:
        ending = "MemoryError"
    except MpmNodesError:
        ending = "refused"
    except TypeError as error:
        # CPython takes a request that is refused while it looks up __fspath__ for a path that has none
        if "os.PathLike, not PosixPath" not in str(error):
            raise
        ending = "TypeError of the interpreter"
    finally:
        api.remove_mem_hooks()
    return ending, work()
