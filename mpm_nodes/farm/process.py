"""One task of a job as a process of its own: its words go to a log, its progress to whoever started it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from mpm_nodes import children, reads, supervisor
from mpm_nodes.data import OutputError
from mpm_nodes.farm.job import FarmJob, FarmTask
from mpm_nodes.graph.files.folder import Folder

__all__ = ["CANCELLED", "TaskProcess", "killed"]

CANCELLED = 3
PATIENCE = 1.0
"""Seconds from the request to stop until tasks are ended hard; whole frames are kept either way."""
LONGEST = 1000
"""Characters of what is repeated of a log: a message says first what is wrong, and last how to cure it."""
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")
_LINE = re.compile(r"openjd_(progress|status): (.*)")

Heard = Callable[[str, str], None]
"""Called with "progress" or "status" and what a task said."""


def killed(code: int) -> bool:
    """Return whether an exit code says that something from outside ended a task: a signal, or a stop that was not ours."""
    return code < 0 or code == CANCELLED


class TaskProcess:
    """A task that runs.

    Its end does not depend on who started it: it ends when that process ends, however that happens.

    Args:
        job: The job.
        task: The task.
        threads: Threads of its kernels; None takes all cores.
        heard: Called from another thread with its progress.

    Raises:
        OutputError: Its log cannot be written.
    """

    def __init__(self, job: FarmJob, task: FarmTask, threads: int | None = None, heard: Heard = lambda kind, text: None) -> None:
        self.task, self.heard = task, heard
        arguments = task.command(str(job.folder))
        if threads is not None and arguments[0] == "cook":
            arguments += ["--threads", str(threads)]
        self.log = job.folder / "logs" / f"{task.id}.log"
        self._log = _opened(self.log)
        self._begun = time.perf_counter()
        self.seconds = 0.0
        self._mark = reads.new_mark() if os.name == "posix" else None  # elsewhere a child inherits no handle
        self._waited, self._next_look, self._unreadable = supervisor.Waited(), self._begun, ""
        group = {} if self._mark is None else {"process_group": 0, "pass_fds": [self._mark]}
        begin = children.NO_MARK if self._mark is None else str(self._mark)
        pipe = subprocess.PIPE
        streams = {"stdin": pipe, "stdout": pipe, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
        self.process = children.start("mpm_nodes.cli:work", [begin, *arguments], **streams, **group)
        self._reader = threading.Thread(target=self._read, name=task.id, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self._log:
            for line in self.process.stdout:
                self._log.write(line)
                self._log.flush()
                found = _LINE.match(line)
                if found:
                    self.heard(found[1], found[2].strip())

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        code = self.process.poll()
        if code is None:
            self._look()
            return None
        if not self.seconds:
            self.seconds = max(time.perf_counter() - self._begun, 1e-3)
            self._reader.join(timeout=PATIENCE)
            if self.process.stdin is not None:
                self.process.stdin.close()
            self._read_last(code)
        if self._unreadable:
            return supervisor.LIMITED  # begun again, it would end there again
        if code < 0:
            return code
        meant = children.meant(code)
        return 1 if meant is None else meant  # a node that ends the program has not finished the task

    def _look(self) -> None:
        """End it when it reads one thing for too long."""
        if self._mark is None or time.perf_counter() < self._next_look:
            return
        self._next_look = time.perf_counter() + supervisor.LOOK
        now = reads.now_read(self._mark)
        if self._waited.too_long(now):
            self._unreadable = supervisor.stuck_in(now[1])
            self.end(0.0)

    def _read_last(self, code: int) -> None:
        """Find out whether a library crashed in something that it read."""
        if self._mark is None:
            return
        name, mark = reads.now_read(self._mark)[1], self._mark
        self._mark = None
        os.close(mark)
        crash = next((each for each in _CRASHES if code == -getattr(signal, each)), "")
        if name and crash:
            self._unreadable = supervisor.crashed_in(name, crash)

    def stop(self) -> None:
        """Ask it to end after what it is doing."""
        with contextlib.suppress(ProcessLookupError, OSError):
            self.process.terminate()

    def end(self, patience: float = PATIENCE) -> None:
        """Give it so many seconds, then end it and all that it started."""
        try:
            self.process.wait(max(patience, 0.0))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()
            self.process.wait()
        self.poll()

    def last_words(self) -> str:
        """Return the last line of its log that does not tell progress, for a message; where it ended in a file, which."""
        if self._unreadable:
            return self._unreadable
        with contextlib.suppress(OSError):
            lines = [line.strip() for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
            lines = [line for line in lines if not _LINE.match(line)]
            return textwrap.shorten(lines[-1], LONGEST, placeholder=" ...") if lines else ""
        return ""


def _opened(path: Path) -> IO[str]:
    try:
        files, name = Folder(path.parent.parent.resolve()), f"{path.parent.name}/{path.name}"
        files.make(path.parent.name)
        files.unlink(name)
        return open(files.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); check the job's folder") from error
