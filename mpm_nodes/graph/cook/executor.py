"""Cook a graph: validate, compare needs with the machine, then evaluate, write and commit frame by frame; resume."""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpm_nodes import compiling
from mpm_nodes.data import Cancelled, MpmNodesError
from mpm_nodes.graph.cook import again
from mpm_nodes.graph.cook.evaluator import Evaluator, NodeFailed, default_memory_limit
from mpm_nodes.graph.cook.kept_solves import KeptSolves
from mpm_nodes.graph.cook.parts import ROW_BYTES, Parts, SolvedFrames, write_solved
from mpm_nodes.graph.cook.ranks import adopt_parts, follow, tell_followers
from mpm_nodes.graph.cook.resume import continue_from, manifest_of
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.reports.events import Event, EventStream
from mpm_nodes.graph.reports.figures import RECENT, FrameFigures, time_left
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.graph.revisions.revision import KEEP_EVERY, Revision, check_writable
from mpm_nodes.graph.values.store import DiskStore, MemoryStore

__all__ = ["CookOptions", "CookResult", "Evaluator", "FrameFigures", "NodeFailed", "execute"]


KERNEL_SETUP = "mpm_nodes.kernels.compile.jit"
"""Sets what the threads of kernels need before they start; imported only where a number of threads is asked for."""


@dataclass(frozen=True)
class CookResult:
    """What a cook did.

    Attributes:
        revision_folder: Where the files lie, None when nothing was written to disk.
        frames: Frames that are there now, ascending.
        cooked: The ones of them that this cook made, or repaired.
        files: Names of the files that this cook wrote, relative to the revision folder.
        outputs: Values of the last frame by node and output, for the nodes whose outputs nobody reads.
        warnings: What the nodes warned of, each once.
        seconds: Wall-clock time of the cook [s].
        figures: What each of the frames that this cook made took, and what its nodes reported; the last five if not `keep_figures`.
    """

    revision_folder: Path | None
    frames: tuple[int, ...]
    cooked: tuple[int, ...]
    files: tuple[str, ...] = ()
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    figures: tuple[FrameFigures, ...] = ()


@dataclass(frozen=True)
class CookOptions:
    """How a cook runs; none of it changes what the graph means.

    Attributes:
        memory_limit: Bytes that cached values, and what nodes keep, may take; None takes a quarter of what is free.
        checked: Run stages in checked mode (slow; finds declarations that lie).
        threads: Threads of the kernels; None takes all cores.
        fuse: Let neighbouring stages of a solve run as one kernel; the numbers are the same to rounding.
        max_substeps: Substeps that a frame of a solve may take; a frame that is expected to need more stops the cook.
        keep_every: Checkpoints of every such frame stay, besides the last two.
        overrides: What was changed on the command line, for the record only.
        store: Cached values to share with other cooks; replaces `memory_limit`.
        disk: Cached values between processes.
        deep: With `resume`, read every file that is there to find damage; damaged frames are cooked again, the others stay.
        part: "solve" cooks the sequential nodes and writes what they hand on, "frames" makes the rest of it; "all" cooks both.
        solved: Output root or revision folder of a cook of the part "solve"; the part "frames" reads it.
        team: The ranks that cook the solves together (`solver.ranks.team.join_team`): each calls `execute` with the same arguments.
            Rank 0 cooks all other nodes and writes; the others return when the last frame is done.
        again_from: Frame from which a changed graph is cooked again: a new revision takes the frames before it from an older one.
        of: Name of that older revision ("r001"), or of the one to resume; "" takes the newest.
        keep_solves: Take frames of solves that an earlier cook into the output root has made in the same way, and keep those of
            this one for the next (`graph.cook.kept_solves`). Not with `part`, `team` or `checked`.
        keep_figures: Return the figures of every frame. In memory they grow with the shot.
        crash: Called with a label between the steps of each commit; for tests.
    """

    memory_limit: int | None = None
    checked: bool = False
    threads: int | None = None
    fuse: bool = True
    max_substeps: int | None = None
    keep_every: int = KEEP_EVERY
    overrides: Sequence[str] = ()
    store: MemoryStore | None = None
    disk: DiskStore | None = None
    deep: bool = False
    part: str = "all"
    solved: str | Path | None = None
    team: Any = None
    again_from: int | None = None
    of: str = ""
    keep_solves: bool = False
    keep_figures: bool = True
    crash: Callable[[str], None] | None = None


def execute(
    graph: Graph,
    frames: tuple[int, int] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
    cancel: threading.Event | None = None,
    options: CookOptions | None = None,
    **changes: Any,
) -> CookResult:
    """Cook the nodes of a graph whose outputs nobody reads, frame by frame.

    Args:
        graph: The graph.
        frames: First and last frame; None takes those of the settings. A resumed cook keeps its first frame, and
            its last one where it was to go further than the settings.
        out: Output root; every cook writes a new revision folder in it. None writes nothing.
        resume: Continue the newest revision (or `of`) after its last good frame; where there is none, a new one begins.
        on_event: Called with every progress event, each substep's too (see `graph.reports.events`; `Thinned` makes them fewer).
        cancel: Set it from anywhere to stop at the next node or substep.
        options: How the cook runs.
        changes: Single options by name, in place of those in `options`: `memory_limit`, `threads`, `store`, ...

    Raises:
        GraphError: The graph is not valid (all problems at once), or needs more memory than is free.
        Cancelled: `cancel` was set; committed frames stay.
        OutputError: The output cannot be written; the last good frame stays.
        MpmNodesError: A node failed; the message says which, and at which frame.
    """
    options = replace(options or CookOptions(), **changes)
    warnings: dict[str, None] = {}
    stream = EventStream(*([on_event] if on_event else []), lambda event: _note_warning(event, warnings))
    started = time.perf_counter()
    revision: Revision | None = None
    failed = False
    waiting = contextlib.ExitStack()
    try:
        waiting.enter_context(compiling.told(lambda now: _say_compiling(stream, now)))
        if options.team is not None and options.again_from is not None:
            raise MpmNodesError(
                "ranks do not begin again from a frame; cook from it on one rank, stop after a frame, and go on with several"
            )
        evaluator = _evaluator(graph, options, stream, cancel)
        if options.team is not None and options.team.rank:
            with _threads(options.threads):
                return CookResult(None, (), follow(evaluator, _parts(evaluator, options, out)))
        parts = _parts(evaluator, options, out)
        span = _span(graph, frames)
        with _threads(options.threads):
            _preflight(evaluator, parts, span, out)
            done: list[int] = []
            repaired: list[int] = []
            if out is not None:
                manifest = manifest_of(graph, span, options.overrides, options.part)
                if options.again_from is not None:
                    revision = _again(Path(out), evaluator, manifest, span, resume, stream, options)
                    span, done = (revision.manifest["frames"][0], span[1]), revision.committed()
                else:
                    revision, span, done, repaired = continue_from(
                        Path(out), evaluator, manifest, span if frames else None, resume, stream, options.deep, options.of
                    )
            if options.team is not None:
                tell_followers(evaluator, revision, remaining(span, done), parts)
            cook = _Cook(evaluator, revision, stream, parts, options)
            if out is not None and options.keep_solves:
                whole = not resume and options.again_from is None  # others go on from states, to the bytes of one cook
                evaluator.kept_solves = _kept_solves(Path(out), evaluator, options, span, whole)
            cook.run(span, done)
            if evaluator.kept_solves is not None:
                evaluator.kept_solves.prune()
    except BaseException as error:
        failed = isinstance(error, MpmNodesError) and not isinstance(error, Cancelled)
        _say_failure(stream, error)
        raise
    finally:
        waiting.close()
        if revision is not None and not revision.discard_if_empty(taken_too=failed):
            revision.close()
    seconds = time.perf_counter() - started
    stream.emit("done", frames=[*span], seconds=seconds, out=str(revision.folder) if revision else None)
    return CookResult(
        revision.folder if revision else None,
        (*done, *cook.cooked),
        (*repaired, *cook.cooked),
        tuple(cook.files),
        cook.outputs,
        tuple(warnings),
        seconds,
        tuple(cook.figures),
    )


def _again(
    out: Path,
    evaluator: Evaluator,
    manifest: Mapping[str, Any],
    span: tuple[int, int],
    resume: bool,
    stream: EventStream,
    options: CookOptions,
) -> Revision:
    assert options.again_from is not None
    if resume:
        again.refuse_resumed(options.again_from)
    return again.take_frames(out, options.of, options.again_from, evaluator, manifest, span[1], stream)


def _evaluator(graph: Graph, options: CookOptions, stream: EventStream, cancel: threading.Event | None) -> Evaluator:
    store = options.store
    if store is None:
        store = MemoryStore(default_memory_limit() if options.memory_limit is None else options.memory_limit)
    evaluator = Evaluator(
        graph,
        store=store,
        disk=options.disk,
        events=stream,
        cancel=cancel,
        checked=options.checked,
        fuse=options.fuse,
        max_substeps=options.max_substeps,
    )
    evaluator.team = options.team
    return evaluator


class _Cook:
    """The loop over frames of one cook."""

    def __init__(
        self,
        evaluator: Evaluator,
        revision: Revision | None,
        stream: EventStream,
        parts: Parts,
        options: CookOptions,
    ) -> None:
        self.evaluator, self.revision, self.stream, self.parts = evaluator, revision, stream, parts
        self.owns_store = options.store is None
        self.keep_every, self.crash = options.keep_every, options.crash or (lambda label: None)
        self.cooked: list[int] = []
        self.files: dict[str, None] = {}
        self.outputs: Mapping[str, Mapping[str, Any]] = {}
        self.figures: deque[FrameFigures] = deque(maxlen=None if options.keep_figures else RECENT)

    def run(self, span: tuple[int, int], done: Sequence[int]) -> None:
        """Cook the frames of `span` that are not in `done`."""
        folder = str(self.revision.folder) if self.revision else None
        self.stream.emit("plan", frames=[*span], nodes=len(self.evaluator.plan.nodes), out=folder, done=len(done))
        if self.revision is not None:  # a cook that died after its last commit had no time to do it
            self.revision.retain(every=self.keep_every)
        for frame in remaining(span, done):
            self._frame(frame, span[1])

    def _frame(self, frame: int, last: int) -> None:
        started = time.perf_counter()
        self.stream.start_frame(frame)
        self.stream.emit("frame_start", frame=frame, last=last)
        if self.owns_store:
            self.evaluator.store.drop_unused()  # a cook does not come back to a frame
        sinks = self.parts.targets()
        if self.revision is None:
            self.outputs = self.evaluator.evaluate(sinks, frame)
        else:
            self._written_frame(self.revision, frame, sinks)
        self.cooked.append(frame)
        seconds = time.perf_counter() - started
        self.figures.append(self.stream.tally.figures(seconds))
        left = time_left(self.figures, last - frame)
        self.stream.emit("frame_done", frame=frame, seconds=seconds, seconds_left=left, **self.stream.frame_figures())

    def _written_frame(self, revision: Revision, frame: int, sinks: Sequence[str]) -> None:
        transaction = revision.begin(frame, self.crash)
        self.evaluator.files = transaction
        try:
            handed = self.parts.handed() if self.parts.part == "solve" else []
            self.outputs = self.evaluator.evaluate(sinks, frame, outputs=handed)
            self.evaluator.check_cancel()
            write_solved(transaction, handed, self.outputs, _ranks(self.evaluator) if self.parts.by_ranks() else 1)
            states = self.evaluator.states(frame)
            transaction.checkpoint(states)
            lineage = self.evaluator.lineage(frame)
            if self.evaluator.kept_solves is not None:
                lacking = {node: key for node, key in lineage.items() if node not in states}
                self.evaluator.kept_solves.take_states(transaction, lacking)
            adopt_parts(self.evaluator, transaction)
            names = transaction.commit(**self.stream.frame_figures(), lineage=lineage)
        except BaseException:
            transaction.abort()
            raise
        finally:
            self.evaluator.files = None
        revision.retain(every=self.keep_every)
        self.files.update(dict.fromkeys(names))
        for name in names:
            self.stream.emit("wrote", path=str(revision.folder / name), frame=frame)


# ---------------------------------------------------------------- before the first frame
def remaining(span: tuple[int, int], done: Sequence[int]) -> range:
    """Return the frames of a span that are still to be cooked."""
    return range(max([span[0] - 1, *done]) + 1, span[1] + 1)


def _span(graph: Graph, frames: tuple[int, int] | None) -> tuple[int, int]:
    settings = graph.settings
    first, last = (settings.start, settings.end) if frames is None else frames
    if first > last:
        raise GraphError([Problem("frames", f"{first}-{last} run backwards", cure="give the first frame first")])
    if first < settings.start:
        problem = Problem("frames", f"begin at {first}, and the shot at {settings.start}", cure="lower settings.start")
        raise GraphError([problem])
    return first, last


def _parts(evaluator: Evaluator, options: CookOptions, out: str | Path | None) -> Parts:
    """Return what of the graph is cooked, with the solves that it is made of at hand."""
    parts = Parts(evaluator.plan, options.part)
    if options.part != "all":
        parts.check()
    if options.part == "solve" and out is None:
        raise GraphError([Problem("part", "is kept nowhere without an output folder", cure="give out=")])
    if options.part == "frames" and parts.handed():
        if options.solved is None:
            raise GraphError([Problem("solved", "is not given", cure="give the folder of a cook of the part solve")])
        evaluator.read_solves(SolvedFrames(Path(options.solved)))
    elif options.solved is not None and options.part != "frames":
        raise GraphError([Problem("solved", "is read by the part frames alone", cure="give it with the part frames")])
    return parts


def _kept_solves(out: Path, evaluator: Evaluator, options: CookOptions, span: tuple[int, int], takes: bool) -> KeptSolves | None:
    """Return the solves of earlier cooks; None for a cook whose solves are of another kind."""
    if options.part != "all" or options.team is not None or options.checked or not options.fuse:
        return None
    found = preflight.estimate(evaluator.plan, span[0], evaluator.kept, span[1])
    particles = sum(int(found[node.id].get("particles", 0)) for node in evaluator.plan.nodes if node.is_sequential)
    return KeptSolves(out, evaluator.plan, (span[1] - span[0] + 1) * ROW_BYTES * particles, takes)


def _ranks(evaluator: Evaluator) -> int:
    return 1 if evaluator.team is None else int(evaluator.team.size)


def _preflight(evaluator: Evaluator, parts: Parts, span: tuple[int, int], out: str | Path | None) -> None:
    estimates = parts.estimates(preflight.estimate(evaluator.plan, span[0], evaluator.kept, span[1], _ranks(evaluator)))
    preflight.check_memory(estimates, evaluator.plan.settings)
    frames, disk = span[1] - span[0] + 1, 0
    if out is not None:
        check_writable(Path(out))
        disk = preflight.check_disk(estimates, frames, Path(out))
    needs = preflight.needs_of(estimates, frames)
    if needs.memory or disk or needs.unknown:
        evaluator.events.emit("estimate", memory=needs.memory, disk=disk, unknown=list(needs.unknown))
    for node, text in preflight.warnings_of(estimates):
        evaluator.events.emit("warning", node=node, where=node, message=text)


@contextlib.contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Run the kernels that this thread calls with so many threads; nobody else's number changes."""
    if threads is None:
        yield
        return
    if not 1 <= threads <= 4096:
        raise GraphError([Problem("threads", "is out of range", threads, "1 to 4096", "give the number of cores")])
    importlib.import_module(KERNEL_SETUP)
    import numba

    most: int = getattr(numba.config, "NUMBA_NUM_THREADS")  # noqa: B009 (made when it is read)
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)


# ---------------------------------------------------------------- endings
def _note_warning(event: Event, warnings: dict[str, None]) -> None:
    if event["event"] == "warning":
        where = f"{event['where']}: " if event.get("where") else ""
        warnings[f"{where}{event['message']}"] = None


def _say_compiling(stream: EventStream, now: compiling.Compiling) -> None:
    stream.emit(
        "compiling", message=now.message, kernel=now.kernel, compiled=now.done, total=now.total, seconds=round(now.seconds, 1)
    )


def _say_failure(stream: EventStream, error: BaseException) -> None:
    if isinstance(error, Cancelled):
        stream.emit("cancelled", message=str(error))
    elif isinstance(error, MpmNodesError):
        stream.emit("error", message=str(error), exit_code=error.exit_code)
    elif isinstance(error, Exception):
        stream.emit("error", message=f"{type(error).__name__}: {error}", exit_code=1)
