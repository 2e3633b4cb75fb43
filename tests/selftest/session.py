"""Runs the parts in children, adds up what they tell, and ends when told."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes import children
from mpm_nodes.data import InputError
from tests.selftest.outcomes import Job, Outcome, Tally
from tests.selftest.parts import Part

__all__ = ["Session"]

ROOM = 1 << 30
"""Bytes that the short form's scratch folders fit into many times."""
SILENCE = 600.0
"""Seconds without an outcome after which a process counts as hanging."""
SAVED_EVERY = 60.0
"""Seconds after which what was found is saved."""


class Session:
    """One run of the selftest.

    Args:
        seed: From which every case follows.
        hours: Length of the long form; None for the short form.
        keep: Folder for what shows a fault; made when there is something.
        samples: Folder of sound graphs and geometry.
        progress: Called with a line about once a second.
        save: Called about once a minute, and behind every part.

    Attributes:
        rows: What was found, by part and row.
        seconds: How long each part took.
        cut: Parts that were ended by their share of the hours.
        whole: Parts that have been tried to their ends.
        next_cases: Of parts whose cases are numbers, the next case of each process.
    """

    def __init__(
        self,
        seed: int,
        hours: float | None,
        keep: Path,
        samples: Path,
        progress: Callable[[str], None],
        save: Callable[[], None] = lambda: None,
    ) -> None:
        self.seed, self.hours, self.keep, self.samples, self.progress, self.save = seed, hours, keep, samples, progress, save
        self.rows: dict[tuple[str, str], Tally] = {}
        self.seconds: dict[str, float] = {}
        self.cut: list[str] = []
        self.whole: list[str] = []
        self.next_cases: dict[str, list[int]] = {}
        self._said, self._saved = 0.0, time.monotonic()

    def take_over(self, told: Mapping[str, Any], parts: Sequence[Part]) -> None:
        """Take over what an earlier run found: whole parts, and those that can go on behind their last case.

        Args:
            told: What `table.facts` told of it.
            parts: Those to be run.

        Raises:
            InputError: When it is no such thing, or that of another seed or form.
        """
        try:
            same = (told["seed"], told["hours"] is None) == (self.seed, self.hours is None)
            for each in told["parts"]:
                part = next((part for part in parts if part.name == each["part"]), None)
                if part is None or not (each["whole"] or (part.numbered and each["next_cases"])):
                    continue
                self.seconds[part.name] = float(each["seconds"])
                if each["whole"]:
                    self.whole.append(part.name)
                else:
                    self.next_cases[part.name] = _checked([int(number) for number in each["next_cases"]])
            rows = [Tally.from_json(row) for row in told["rows"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("selftest --resume: that is not a table of a selftest; give what --out FILE.json wrote") from error
        if not same:
            raise InputError(f"selftest --resume: that run had seed {told['seed']} and hours {told['hours']}; give the same")
        self.rows = {(row.part, row.name): row for row in rows if row.part in self.seconds}

    @property
    def against(self) -> int:
        """Cases that went against a promise."""
        return sum(row.against for row in self.rows.values())

    def run(self, parts: Sequence[Part]) -> None:
        """Run parts one after the other; what was found before a KeyboardInterrupt stays."""
        whole = sum(part.share for part in parts)
        for part in parts:
            if part.name in self.whole:
                continue
            begin, before = time.monotonic(), self.seconds.get(part.name, 0.0)
            end = None if self.hours is None else begin + 3600.0 * self.hours * part.share / whole
            try:
                with tempfile.TemporaryDirectory(prefix="mpm_nodes_selftest_", dir=self._scratch_room()) as scratch:
                    _PartRun(self, part, Path(scratch), end).run()
                if part.name not in self.cut:
                    self.whole.append(part.name)
            finally:
                self.seconds[part.name] = before + time.monotonic() - begin
            self.save()

    def _scratch_room(self) -> str | None:
        """Return where the short form works: in memory, if there is room, since it waits for disks half of its time."""
        room = Path("/dev/shm")
        with contextlib.suppress(OSError):
            if self.hours is None and "TMPDIR" not in os.environ and os.access(room, os.W_OK | os.X_OK):
                return str(room) if shutil.disk_usage(room).free > ROOM else None
        return None

    def add(self, part: str, outcome: Outcome) -> None:
        """Count an outcome."""
        self.rows.setdefault((part, outcome.row), Tally(part, outcome.row)).add(outcome)

    def say(self, part: Part, count: int) -> None:
        """Show how far a part is."""
        now = time.monotonic()
        if now - self._said > 0.5:
            self._said = now
            done = sum(row.cases for row in self.rows.values() if row.part == part.name)
            self.progress(f"{part.name}: {done:,} of {count:,} cases; {self.against} against a promise")
        if now - self._saved > SAVED_EVERY:
            self._saved = now
            self.save()


class _PartRun:
    """The processes of one part."""

    def __init__(self, session: Session, part: Part, scratch: Path, end: float | None) -> None:
        self.session, self.part, self.scratch, self.end = session, part, scratch, end
        self.count = part.short if session.hours is None else part.long
        self.selector = selectors.DefaultSelector()
        self.heard: dict[subprocess.Popen[bytes], float] = {}
        self.jobs: dict[subprocess.Popen[bytes], tuple[int, Job]] = {}
        self.text: dict[subprocess.Popen[bytes], bytes] = {}

    def run(self) -> None:
        """Start the processes and hear them to their ends."""
        workers = min(self.part.workers or os.cpu_count() or 1, self.count)
        first = self.session.next_cases.setdefault(self.part.name, list(range(workers)))
        try:
            for place in range(len(first)):
                self._start(place, first[place], step=len(first))
            while self.jobs:
                for key, _ in self.selector.select(timeout=0.5):
                    self._hear(key.data)
                self._look_after()
                self.session.say(self.part, self.count)
        finally:
            for child in list(self.jobs):
                self._forget(child)

    def _start(self, place: int, first: int, step: int) -> None:
        folder = self.scratch / f"{place}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        long = self.session.hours is not None
        keep = str(self.session.keep.absolute())
        job = Job(self.part.name, self.session.seed, first, step, self.count, long, str(folder), keep, str(self.session.samples))
        arguments = [self.part.module, json.dumps(dataclasses.asdict(job))]
        log = open(self.scratch / f"{place}.log", "wb")
        child = children.start(
            "tests.selftest.worker:main", arguments, stdout=subprocess.PIPE, stderr=log, process_group=0, bufsize=0
        )
        log.close()
        assert child.stdout is not None
        self.selector.register(child.stdout, selectors.EVENT_READ, child)
        self.jobs[child], self.heard[child], self.text[child] = (place, job), time.monotonic(), b""

    def _hear(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        piece = os.read(child.stdout.fileno(), 1 << 20)
        self.heard[child] = time.monotonic()
        *lines, self.text[child] = (self.text[child] + piece).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if told:
                place, job = self.jobs[child]
                self.session.next_cases[self.part.name][place] = told.pop("case") + job.step
                self.session.add(self.part.name, Outcome(**told))
            else:
                self._forget(child)
                return
        if not piece:
            self._died(child, children.last_words(self._log(child), child.wait()))

    def _look_after(self) -> None:
        now = time.monotonic()
        for child, heard in list(self.heard.items()):
            if self.end is not None and now > self.end:
                self._forget(child)
                if self.part.name not in self.session.cut:
                    self.session.cut.append(self.part.name)
            elif now - heard > SILENCE:
                self._died(child, f"nothing for {SILENCE:g} s")

    def _died(self, child: subprocess.Popen[bytes], how: str) -> None:
        """Count the case that a process died or hung at, and let another go on behind it."""
        place, job = self.jobs[child]
        told = Path(job.folder, "case")
        number = int(told.read_text()) if told.exists() else -1
        self._forget(child)
        fault = f"seed {job.seed}, case {number}: the process that tried it ended: {how}"
        self.session.add(self.part.name, Outcome("processes of the selftest", "died", fault))
        if number >= job.first:
            self.session.next_cases[self.part.name][place] = number + job.step
            self._start(place, number + job.step, job.step)

    def _log(self, child: subprocess.Popen[bytes]) -> bytes:
        return (self.scratch / f"{self.jobs[child][0]}.log").read_bytes()[-4000:]

    def _forget(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        self.selector.unregister(child.stdout)
        if child.poll() is None and self.text[child] is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, 9)
        child.stdout.close()
        child.wait()
        for table in (self.jobs, self.heard, self.text):
            table.pop(child)  # type: ignore[attr-defined]


def _checked(cases: list[int]) -> list[int]:
    """Return the next cases of processes; ValueError where some would be tried twice and others never."""
    if min(cases) < 0 or sorted(case % len(cases) for case in cases) != list(range(len(cases))):
        raise ValueError(cases)
    return cases


def show_line(text: str) -> None:
    """Show progress on standard error: in one place on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
