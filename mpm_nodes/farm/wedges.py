"""Cook a graph with many values of its knobs, from Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.farm.gather import rows_of
from mpm_nodes.farm.job import FarmJob, make_job
from mpm_nodes.farm.local import RunOutcome, run_here
from mpm_nodes.farm.submit import write_submission
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.events import Event
from mpm_nodes.graph.reports.problems import GraphError

__all__ = ["WedgeResult", "wedge"]


@dataclass(frozen=True)
class WedgeResult:
    """What wedges came to.

    Attributes:
        job: The job; `job.wedges` hold values and labels.
        folders: Folder of the cache of each wedge, by number.
        figures: What each wedge took, and how its matter lies in the last frame; see `gather.figures_of`.
        table: These figures as CSV.
        sheet: Contact sheet with the values written on it, None where there was nothing to show.
        stage: USD stage with the wedges as variants, None where no cache was written.
        outcome: What was run, and what was finished before.
    """

    job: FarmJob
    folders: tuple[Path, ...]
    figures: tuple[Mapping[str, Any], ...]
    table: Path
    sheet: Path | None
    stage: Path | None
    outcome: RunOutcome


def wedge(
    graph: Graph | str | Path,
    knobs: Mapping[str, Sequence[Any]],
    out: str | Path = "wedges",
    frames: tuple[int, int] | None = None,
    chunk: int | None = None,
    jobs: int = 1,
    on_event: Callable[[Event], None] | None = None,
    cancel: threading.Event | None = None,
) -> WedgeResult:
    """Cook every combination of values, each in processes of its own, and show them side by side.

    The same call again goes on where the last one stopped. The folder is a job: `mpm-nodes farm OUT` runs it elsewhere.

    Args:
        graph: The shot, or its file.
        knobs: Values by place: {"jelly.youngs_modulus": (4e3, 1e4), "settings.cell_size": (0.1, 0.05)}.
        out: Folder of the job.
        frames: First and last frame; None takes the graph's.
        chunk: Frames that are made at a time behind the solves; None cooks each wedge in one piece.
        jobs: Tasks at once.
        on_event: Called with every event; see `local.run_here`.
        cancel: Set it to stop.

    Raises:
        GraphError: A place or a value is wrong, or a node is known to this process only.
        OutputError: The folder holds another job.
        MpmNodesError: A wedge failed; the others are cooked, and lie in the folder.
    """
    name = "shot" if isinstance(graph, Graph) else Path(graph).stem
    graph = graph if isinstance(graph, Graph) else load_graph(graph)
    problems = validate(load_graph(graph.to_json(), base=graph.base))  # as other processes will see it
    if problems:
        raise GraphError(problems)
    job = make_job(graph, out, knobs, frames, chunk, name=name)
    write_submission(job)
    outcome = run_here(job, jobs, on_event=on_event, cancel=cancel)
    if outcome.failed:
        first = next(iter(outcome.failed))
        error = MpmNodesError(f"{first} failed; {job.folder / 'logs' / first}.log says why")
        error.exit_code = outcome.exit_code
        raise error
    folders = tuple(job.folder / each.folder / "cache" for each in job.wedges)
    sheet, stage = (path if path.is_file() else None for path in (job.folder / "wedges.png", job.folder / "wedges.usda"))
    return WedgeResult(job, folders, tuple(rows_of(job)), job.folder / "wedges.csv", sheet, stage, outcome)
