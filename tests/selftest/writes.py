"""Disks that refuse: every n-th change of a file fails, whoever makes it; and file systems that are really full."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from tests.selftest import shot, syscalls
from tests.selftest.forks import Ending, in_fork
from tests.selftest.kills import FRAMES, changes_of, resumed, watched
from tests.selftest.outcomes import SKIPPED, Job, Outcome

__all__ = ["cases"]

FULL = "a file system that is full"
STEPS = 8
"""Sizes of full file systems."""


def cases(job: Job) -> Iterator[Outcome]:
    """Refuse every change of a cook of three frames, for every reason; then fill file systems."""
    shot.prepare()
    folder = Path(job.folder)
    in_fork(partial(shot.cook, folder / "whole", FRAMES))
    whole = shot.digests(folder / "whole")
    missing = syscalls.available()
    if missing:
        yield Outcome("the n-th write fails", SKIPPED, missing)
    else:
        changes = changes_of(folder / "out")
        every = [(number, name, code) for number in range(len(changes)) for name, code in syscalls.FULL.items()]
        if not job.long:  # every change for one reason, and each reason for a third of the changes
            every = [entry for place, entry in enumerate(every) if place % 3 == (place // 3 + job.seed) % 3]
        for _, (number, name, code) in job.share(every):
            ending = watched(folder / "out", lambda call, number=number, code=code: code if call.number == number else 0)
            what = f"change {number} ({changes[number]}) fails with {name}"
            yield _judged(f"the n-th write fails: {name}", ending, folder / "out", whole, what)
    if job.first == 0:
        yield from _full(folder, whole)


def _judged(row: str, ending: Ending, out: Path, whole: dict[str, str], what: str) -> Outcome:
    if ending.signal or ending.error is not None or ending.answer not in (0, 5):
        shutil.rmtree(out, ignore_errors=True)
        how = f"signal {ending.signal}" if ending.signal else ending.error or f"exit code {ending.answer}"
        return Outcome(row, "against", f"{what}: the cook ended with {how}")
    told = "told, then resumed byte-equal" if ending.answer else "whole all the same"
    return resumed(row, told, out, whole, what)


# ---------------------------------------------------------------- full file systems
def _full(folder: Path, whole: dict[str, str]) -> Iterator[Outcome]:
    missing = _mountable()
    if missing:
        yield Outcome(FULL, SKIPPED, missing)
        return
    need = sum(path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file())
    for step in range(STEPS):
        size = 65536 + need * step // (STEPS - 1)
        done = in_fork(partial(_in_full_folder, folder, size, whole))
        if done.signal or done.error is not None:
            yield Outcome(FULL, "against", f"{size} bytes: {done.error or f'signal {done.signal}'}")
        else:
            yield done.answer


def _in_full_folder(folder: Path, size: int, whole: dict[str, str]) -> Outcome:
    place = _mounted(folder, size)
    ending = in_fork(partial(shot.cook, place / "out", FRAMES))
    _mount(place, size=1 << 28, again=True)
    return _judged(FULL, ending, place / "out", whole, f"a file system of {size} bytes")


@cache
def _mountable() -> str:
    """Return "" where a file system in memory can be mounted, in a name space of a fork's own; else why not."""
    ending = in_fork(partial(_mounted, Path(os.curdir).absolute(), 1 << 20))
    return "" if ending.error is None and ending.answer else f"no file system can be mounted ({ending.error})"


def _mounted(folder: Path, size: int) -> Path:
    """Mount a file system in memory, seen by this process alone; it is gone with it."""
    system = ctypes.CDLL(None, use_errno=True)
    user, mounts, private, recursive = 0x10000000, 0x00020000, 1 << 18, 1 << 14
    if system.unshare(mounts | (0 if os.geteuid() == 0 else user)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if system.mount(b"none", b"/", None, private | recursive, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    place = folder / "full"
    place.mkdir(exist_ok=True)
    _mount(place, size)
    return place


def _mount(place: Path, size: int, again: bool = False) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 32 if again else 0, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
