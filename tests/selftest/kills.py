"""kill -9 at every named point of every commit, at random moments, and before every single change of a file."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.selftest import shot, syscalls
from tests.selftest.forks import Ending, begin, finish, in_fork
from tests.selftest.outcomes import SKIPPED, Job, Outcome
from tests.selftest.worker import at_case

__all__ = ["cases", "resumed"]

FRAMES = 3


def cases(job: Job) -> Iterator[Outcome]:
    """Kill and resume. The random deaths are numbered first, so that a process that dies is known by its case."""
    shot.prepare()
    folder = Path(job.folder)
    labels: list[str] = in_fork(partial(_noted, folder / "labels")).answer
    started = time.monotonic()
    in_fork(partial(shot.cook, folder / "whole", FRAMES))
    lasted = time.monotonic() - started
    whole = shot.digests(folder / "whole")
    for number in job.numbers():
        at_case(job, number)
        chance = random.Random(f"{job.seed} {number}")
        deaths = [_killed_after(folder / "out", chance.uniform(0.0, lasted)) for _ in range(1 + number % 3)]
        ending = "killed" if any(deaths) else "ended first"
        yield resumed(
            "SIGKILL at random", f"{ending}, resumed byte-equal", folder / "out", whole, f"seed {job.seed}, case {number}"
        )
    for number, label in job.share(labels):
        ending = in_fork(partial(_dying, folder / "out", number))
        what = f"named point {number} ({label})"
        if ending.signal != signal.SIGKILL:
            yield Outcome("SIGKILL at named write points", "not reached", f"{what}: {ending}")
            continue
        yield resumed("SIGKILL at named write points", "resumed byte-equal", folder / "out", whole, what)
    row = "SIGKILL before a change of a file"
    missing = syscalls.available()
    if missing:
        yield Outcome(row, SKIPPED, missing)
        return
    changes = changes_of(folder / "out")
    for number, change in job.share(changes):
        if not job.long and number % 4 != job.seed % 4:
            continue
        watched(folder / "out", lambda call, number=number: syscalls.KILL if call.number == number else 0)
        yield resumed(row, "resumed byte-equal", folder / "out", whole, f"change {number} ({change})")


def changes_of(out: Path) -> list[str]:
    """Return every change of a file that a cook makes, in words, in order; `out` is empty afterwards."""
    found: list[str] = []
    watched(out, lambda call: found.append(f"{call.name} {Path(call.path).name}") or 0)
    shutil.rmtree(out)
    return found


def watched(out: Path, decide: syscalls.Decide) -> Ending:
    """Cook under a watch of its changes of files."""
    out.mkdir()
    return syscalls.watched(partial(shot.cook, out, FRAMES), syscalls.WRITES, str(out), decide)


def resumed(row: str, ending: str, out: Path, whole: dict[str, str], what: str) -> Outcome:
    """Continue a cook and compare every byte; `out` is empty afterwards."""
    done = in_fork(partial(shot.cook, out, FRAMES))
    found = shot.digests(out)
    shutil.rmtree(out, ignore_errors=True)
    if done.answer != 0:
        return Outcome(row, "not resumed", f"{what}: the resumed cook ended with {done}")
    wrong = sorted(name for name in {*found, *whole} if found.get(name) != whole.get(name))
    fault = f"{what}: {', '.join(wrong[:4])} differ after a resume" if wrong else ""
    return Outcome(row, "differs" if wrong else ending, fault)


def _noted(out: Path) -> list[str]:
    labels: list[str] = []
    shot.cook(out, FRAMES, labels.append)
    return labels


def _dying(out: Path, number: int) -> None:
    left = [number]

    def crash(label: str) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    shot.cook(out, FRAMES, crash)


def _killed_after(out: Path, seconds: float) -> bool:
    """Start or continue a cook and kill it after a while; return whether it was still at it."""
    child, reading, start = begin(partial(shot.cook, out, FRAMES))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # it is not reaped yet, so the number is still its own
    return finish(child, reading, start).signal == signal.SIGKILL
