"""Run the tasks of a job on this machine: several at once, as far as memory allows; what is finished is not run again."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mpm_nodes.data import Cancelled
from mpm_nodes.farm.job import FarmJob, FarmTask
from mpm_nodes.farm.process import PATIENCE, TaskProcess, killed
from mpm_nodes.graph.plan.preflight import free_memory, in_words
from mpm_nodes.graph.reports.events import Event

__all__ = ["MOST_TRIES", "RunOutcome", "ready_to_run", "run_here"]

MOST_TRIES = 3
"""How often a task is begun that something from outside ends."""
SHARE = 0.9
"""Share of the free memory that the tasks together may take, by their estimates."""
_PAUSE = 0.05


@dataclass
class RunOutcome:
    """What became of the tasks of a job.

    Attributes:
        ran: Tasks that were run to their end, by id, with their seconds.
        kept: Tasks that were finished before.
        failed: Exit code of each task that failed.
        skipped: Tasks that were not run because one that they need failed.
    """

    ran: dict[str, float] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0, or the exit code of the first task that failed."""
        return next(iter(self.failed.values()), 0)


def ready_to_run(job: FarmJob, tasks: Sequence[FarmTask]) -> tuple[list[FarmTask], RunOutcome]:
    """Return the tasks that are left, and an outcome that holds the finished ones. What gathers all is always left."""
    outcome = RunOutcome()
    left = []
    for task in tasks:
        if not task.last and job.is_done(task):
            outcome.kept.append(task.id)
        else:
            left.append(task)
    return left, outcome


class _Run:
    """The tasks of a job while they run here.

    Attributes:
        left: Tasks that are neither begun nor skipped, by id.
        running: Those that run.
    """

    def __init__(self, job: FarmJob, jobs: int, memory: int, threads: int | None, say: Callable[[Event], None]) -> None:
        self.job, self.jobs, self.memory, self.say = job, jobs, memory, say
        self.threads = threads or max(1, (os.cpu_count() or 1) // jobs)
        tasks = job.tasks(pieces=True)
        left, self.outcome = ready_to_run(job, tasks)
        self.left = {task.id: task for task in left}
        self.running: list[TaskProcess] = []
        self.tries: dict[str, int] = {}
        self.total = len(tasks)
        self._place = {task.id: place for place, task in enumerate(left)}
        self._missing = {task.id: len({*task.needs}.intersection(self.left)) for task in left}
        self._followers: defaultdict[str, list[FarmTask]] = defaultdict(list)
        self._ready: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)  # by memory, and in their order
        for task in left:
            for need in {*task.needs}:
                self._followers[need].append(task)
            if not self._missing[task.id]:
                self._queue(task)

    @property
    def finished(self) -> int:
        return len(self.outcome.kept) + len(self.outcome.ran)

    def tell(self, event: str, task: FarmTask, **facts: object) -> None:
        where = {"task": task.id, "label": task.label, "span": task.span, "done": self.finished, "total": self.total}
        self.say({"event": event, "time": time.time(), **where, **facts})

    def start(self) -> None:
        """Start what may run: all that it needs is finished, and there is room for it."""
        while True:
            fitting = [queue for memory, queue in self._ready.items() if queue and self._fits(memory)]
            if not fitting:
                return
            _, name = heapq.heappop(min(fitting))
            self._begin(self.left.pop(name))

    def over(self, task: FarmTask, done: bool) -> None:
        """Take note of a task that is finished, or lost with all that need it."""
        over = [(task, done)]
        while over:
            task, done = over.pop()
            for follower in self._followers[task.id]:
                if follower.id not in self.left:
                    continue
                self._missing[follower.id] -= 1
                if not (done or follower.last):
                    del self.left[follower.id]
                    self.outcome.skipped.append(follower.id)
                    self.tell("task_skipped", follower)
                    over.append((follower, False))
                elif not self._missing[follower.id]:
                    self._queue(follower)

    def _queue(self, task: FarmTask) -> None:
        heapq.heappush(self._ready[task.memory], (self._place[task.id], task.id))

    def _fits(self, memory: int) -> bool:
        held = sum(each.task.memory for each in self.running)
        return not self.running or (len(self.running) < self.jobs and held + memory <= self.memory)

    def _begin(self, task: FarmTask) -> None:
        self.tries[task.id] = self.tries.get(task.id, 0) + 1
        if task.memory > self.memory:
            message = f"needs about {in_words(task.memory)} and {in_words(self.memory)} are there: it runs alone"
            self.tell("warning", task, where=task.id, message=message)

        def heard(kind: str, text: str) -> None:
            self.tell("task_" + kind, task, text=text)

        self.running.append(TaskProcess(self.job, task, self.threads, heard))
        self.tell("task_start", task, tries=self.tries[task.id])

    def settle(self) -> None:
        """Take note of what has ended."""
        for each in list(self.running):
            code = each.poll()
            if code is None:
                continue
            self.running.remove(each)
            task = each.task
            if code == 0:
                self.job.mark_done(task, each.seconds)
                self.outcome.ran[task.id] = each.seconds
                self.tell("task_done", task, seconds=each.seconds)
                self.over(task, done=True)
            elif killed(code) and self.tries[task.id] < MOST_TRIES:
                self.left[task.id] = task
                self._queue(task)
                self.tell("task_again", task, exit_code=code)
            else:
                self.outcome.failed[task.id] = code if code > 0 else 1
                self.tell("task_failed", task, exit_code=code, message=each.last_words(), log=str(each.log))
                self.over(task, done=False)

    def stop(self) -> None:
        """End what runs; frames that are whole stay."""
        for each in self.running:
            each.stop()
        end = time.monotonic() + PATIENCE
        for each in self.running:
            each.end(end - time.monotonic())


def run_here(
    job: FarmJob,
    jobs: int = 1,
    memory: int | None = None,
    threads: int | None = None,
    on_event: Callable[[Event], None] | None = None,
    cancel: threading.Event | None = None,
) -> RunOutcome:
    """Run the tasks of a job that are not finished yet.

    Args:
        job: The job.
        jobs: Tasks at once.
        memory: Bytes that they may take together, by their estimates; None takes nine tenths of what is free.
        threads: Threads of the kernels of each task; None shares the cores among the tasks.
        on_event: Called with every event, from several threads: "task_start", "task_progress" (text: percent), "task_status"
            (text), "task_done" (seconds), "task_again", "task_failed" (exit_code, message, log), "task_skipped", "warning". Each
            has `task`, `label`, `span`, and how many tasks are `done` of the `total`.
        cancel: Set it to stop.

    Raises:
        Cancelled: `cancel` was set; what is finished stays, and what was begun goes on next time.
        OutputError: The job's folder cannot be written.
    """
    limit = int(SHARE * free_memory()) if memory is None else memory
    run = _Run(job, jobs, limit, threads, on_event or (lambda event: None))
    cancel = cancel or threading.Event()
    try:
        while run.left or run.running:
            if cancel.is_set():
                raise Cancelled(f"stopped; finished tasks are kept. Continue with: mpm-nodes farm {job.folder} --jobs {jobs}")
            run.start()
            cancel.wait(_PAUSE)
            run.settle()
    finally:
        run.stop()
    return run.outcome
