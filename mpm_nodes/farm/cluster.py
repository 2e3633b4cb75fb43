"""Run the tasks of a job on a Dask cluster: only the job's path and the names of tasks travel.

The scheduler gives a task that a dead worker had to another one; that one finds which frames are whole and goes on behind them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from mpm_nodes.data import Cancelled, MpmNodesError
from mpm_nodes.farm.job import FarmJob, FarmTask, load_job, write_text
from mpm_nodes.farm.local import RunOutcome, ready_to_run
from mpm_nodes.farm.process import TaskProcess, killed
from mpm_nodes.graph.reports.events import Event

__all__ = ["MEMORY", "run_on_dask", "run_task"]

MEMORY = "memory"
"""Resource that workers may be started with (`dask worker --resources memory=64e9`): tasks then share it by their estimates."""
STOP = "stop"
TRIES = 3
"""How often a task is begun again when something from outside ended its process, and not its worker."""
_PAUSE = 0.1


def run_task(folder: str, name: str, threads: int | None = None, *before: str) -> str:
    """Run one task of the job in `folder` to its end, unless it is finished, and return its name. Runs on a worker.

    Raises:
        MpmNodesError: The task failed, or was stopped; the message says why.
    """
    job = load_job(folder)
    task = next(each for each in job.tasks(pieces=True) if each.id == name)
    if not task.last and job.is_done(task):
        return name
    for _ in range(TRIES):
        process = TaskProcess(job, task, threads)
        while (code := process.poll()) is None:
            if (job.folder / STOP).exists():
                process.stop()
                process.end()
                raise Cancelled(f"{name}: stopped")
            time.sleep(_PAUSE)
        if code == 0:
            job.mark_done(task, process.seconds)
            return name
        if not killed(code):
            break
    error = MpmNodesError(f"{name}: {process.last_words() or f'exit status {code}'} ({process.log})")
    error.exit_code = code if code > 0 else 1
    raise error


def run_on_dask(
    job: FarmJob,
    client: Any,
    threads: int | None = None,
    on_event: Callable[[Event], None] | None = None,
    cancel: threading.Event | None = None,
) -> RunOutcome:
    """Run the tasks of a job that are not finished yet on a cluster whose machines see the job's folder.

    Args:
        job: The job.
        client: A `distributed.Client`.
        threads: Threads of the kernels of each task; None takes all cores of the machine that it comes to.
        on_event: Called with "task_done" and "task_failed" (message); see `local.run_here`.
        cancel: Set it to stop.

    Raises:
        Cancelled: `cancel` was set; what is finished stays.
    """
    from distributed import wait

    tasks = job.tasks(pieces=True)
    left, outcome = ready_to_run(job, tasks)
    cancel = cancel or threading.Event()
    with contextlib.suppress(FileNotFoundError):
        (job.folder / STOP).unlink()
    resources = [worker.get("resources", {}) for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    shared = bool(resources) and all(MEMORY in each for each in resources)
    futures: dict[str, Any] = {}
    told: set[str] = set()

    def submit(task: FarmTask) -> None:
        needs = [futures[need] for need in task.needs if need in futures and not task.last]
        wants = {"resources": {MEMORY: task.memory}} if shared else {}
        futures[task.id] = client.submit(run_task, str(job.folder), task.id, threads, *needs, pure=False, retries=2, **wants)

    def tell() -> bool:
        """Tell what has ended since last time, and return whether all has."""
        for task in left:
            future = futures.get(task.id)
            if future is None or task.id in told or not future.done():
                continue
            told.add(task.id)
            facts = {"task": task.id, "label": task.label, "span": task.span, "total": len(tasks)}
            if future.status == "finished":
                outcome.ran[task.id] = 0.0
                event: Event = {"event": "task_done"}
            else:
                event = _lost(task, future, outcome)
            facts["done"] = len(outcome.kept) + len(outcome.ran)
            if on_event is not None:
                on_event({**event, "time": time.time(), **facts})
        return len(told) == len(futures)

    try:
        for group in ([task for task in left if not task.last], [task for task in left if task.last]):
            for task in group:
                submit(task)
            while not tell():
                if cancel.is_set():
                    raise Cancelled(f"stopped; finished tasks are kept. Continue with: mpm-nodes farm {job.folder} --dask ...")
                with contextlib.suppress(TimeoutError):
                    wait([future for future in futures.values() if not future.done()], timeout=1, return_when="FIRST_COMPLETED")
    except BaseException:
        write_text(job.folder, STOP, "")
        client.cancel(list(futures.values()))
        raise
    return outcome


def _lost(task: FarmTask, future: Any, outcome: RunOutcome) -> Event:
    """Note a task that failed, or was not run because another one failed."""
    error = future.exception()
    if any(need in outcome.failed or need in outcome.skipped for need in task.needs):
        outcome.skipped.append(task.id)
        return {"event": "task_skipped"}
    outcome.failed[task.id] = getattr(error, "exit_code", 1)
    return {"event": "task_failed", "exit_code": outcome.failed[task.id], "message": str(error), "log": f"logs/{task.id}.log"}
