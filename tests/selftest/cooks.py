"""Cooks beside each other and cooks that are stopped: threads, two writers, slow disks, cancels."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mpm_nodes.supervisor import PATIENCE
from tests.selftest import real, shot, syscalls
from tests.selftest.forks import begin, finish, in_fork
from tests.selftest.kills import FRAMES, resumed, watched
from tests.selftest.outcomes import SKIPPED, Job, Outcome
from tests.selftest.worker import at_case

__all__ = ["cases"]

GONE = 2.0
"""Seconds within which a cook that is told to stop is gone, on a machine that does nothing else."""
SLOW = 0.03
"""Seconds that a slow disk takes to rename a file."""


def cases(job: Job) -> Iterator[Outcome]:
    """Threads first, whose cook is the one that stopped ones are compared with."""
    shot.prepare()
    folder = Path(job.folder)
    graph = real.falling_shot(folder)
    yield from _threads(folder, graph)
    solved = shot.digests(folder / "threads1")
    for number in job.numbers():
        at_case(job, number)
        yield _stopped(job, number, graph, solved)
    in_fork(partial(shot.cook, folder / "whole", FRAMES))
    whole = shot.digests(folder / "whole")
    for number in job.numbers():
        yield _two(folder / "two", whole, random.Random(f"{job.seed} {number}").uniform(0.0, 0.1))
    yield from _slow(job, folder / "slow", whole)


def _threads(folder: Path, graph: Path) -> Iterator[Outcome]:
    """Cook with one thread, two, and all; the first cook compiles what was never compiled on this machine."""
    row = "threads 1, 2, all"
    for threads in ("1", "2", ""):
        options = ["--threads", threads] if threads else []
        done = real.run("program", real.command_line(graph, folder / f"threads{threads}", "--events", "none", *options))
        if done.returncode != 0:
            yield Outcome(row, "against", f"{threads or 'all'} threads: exit code {done.returncode}: {done.stderr[-300:]}")
            continue
        first, here = shot.digests(folder / "threads1"), shot.digests(folder / f"threads{threads}")
        wrong = sorted(name for name in {*first, *here} if first.get(name) != here.get(name))
        fault = f"{threads or 'all'} threads: {', '.join(wrong[:4])} differ from those of one thread" if wrong else ""
        yield Outcome(row, "differs" if wrong else "equal bits", fault)


# ---------------------------------------------------------------- stops
def _stopped(job: Job, number: int, graph: Path, whole: dict[str, str]) -> Outcome:
    """Start a cook, tell it to stop at a random moment, and resume it."""
    row, out = "cancels", Path(job.folder, "stopped")
    shutil.rmtree(out, ignore_errors=True)
    chance = random.Random(f"{job.seed} {number}")
    what = f"seed {job.seed}, case {number}"
    child = real.start(real.command_line(graph, out, "--events", "none"))
    time.sleep(0.3 + chance.uniform(0.0, 5.0))
    started = _started(child.pid)
    child.send_signal(chance.choice((signal.SIGINT, signal.SIGTERM)))
    try:
        gone = real.seconds_until(lambda: child.poll() is not None, PATIENCE)
    except TimeoutError as error:
        child.kill()
        return Outcome(row, "against", f"{what}: told to stop, it {error}")
    child.communicate()
    left = [process for process in started if _lives(process)]
    if left or child.returncode not in (0, 3, -signal.SIGINT, -signal.SIGTERM):
        return Outcome(row, "against", f"{what}: exit code {child.returncode}, {len(left)} processes left", gone)
    done = real.run("program", real.command_line(graph, out, "--events", "none", "--resume"))
    found = shot.digests(out)
    wrong = sorted(name for name in {*found, *whole} if found.get(name) != whole.get(name))
    if done.returncode or wrong:
        return Outcome(row, "differs", f"{what}: resumed with exit code {done.returncode}; {', '.join(wrong[:4])} differ", gone)
    fault = f"{what}: gone after {gone:.2f} s" if gone > GONE else ""
    return Outcome(row, "gone, resumed byte-equal" if child.returncode else "ended first", fault, gone)


def _started(process: int) -> list[int]:
    """Return the processes that a process has started (Linux)."""
    try:
        return [int(text) for text in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---------------------------------------------------------------- two at once, and slow disks
def _two(out: Path, whole: dict[str, str], delay: float) -> Outcome:
    """Let two cooks continue one folder at once: one writes, the other is told or finds all done."""
    row = "two cooks on one folder"
    first = begin(partial(shot.cook, out, FRAMES))
    time.sleep(delay)
    second = begin(partial(shot.cook, out, FRAMES))
    endings = [finish(*first), finish(*second)]
    codes = [ending.answer for ending in endings]
    if any(ending.signal or ending.error for ending in endings) or not set(codes) <= {0, 5}:
        shutil.rmtree(out, ignore_errors=True)
        return Outcome(row, "against", f"they ended with {endings}")
    # both may make a folder when neither has written yet: two revisions, each whole
    extra = out / "r002"
    if extra.exists():
        shutil.rmtree(extra)
    return resumed(row, "one writes, one is told" if 5 in codes else "one after the other", out, whole, "two cooks")


def _slow(job: Job, out: Path, whole: dict[str, str]) -> Iterator[Outcome]:
    """Let every rename take long, alone and with a death in the middle of one."""
    row = "slow renames"
    missing = syscalls.available()
    if missing:
        yield Outcome(row, SKIPPED, missing)
        return

    def decide(call: syscalls.Call, last: int) -> int:
        if call.name.startswith("rename"):
            renames.append(call)
            time.sleep(SLOW)
            if len(renames) == last:
                return syscalls.KILL
        return 0

    for last in (0, *(random.Random(f"{job.seed} {number}").randrange(1, 20) for number in job.numbers())):
        renames: list[syscalls.Call] = []
        watched(out, partial(decide, last=last))
        yield resumed(row, "killed in one, resumed byte-equal" if last else "whole", out, whole, f"death at rename {last}")
