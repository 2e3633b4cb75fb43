"""A job: one shot, or several wedges of it, as a folder of frozen graphs and the list of tasks that cook them on any machine.

    JOB/job.json                     frames, chunks, wedges with their values
    JOB/template.json, commands.txt  the tasks for an engine, see `submit`
    JOB/wedges/000/graph.json        the graph of a wedge, with its values; relative input paths are made absolute
    JOB/wedges/000/cache             its cache
    JOB/wedges/000/solve             where frames come in chunks: cook of its solves,
    JOB/wedges/000/frames/1-24       and of everything else, a chunk of frames; the cache is joined of them
    JOB/wedges/000/pictures          what was rendered of it
    JOB/wedges.png, .csv, .usda      all wedges: contact sheet, table of figures, stage with variants
    JOB/done, JOB/logs               what runs here or on a Dask cluster: finished tasks, and what they said

Tasks are made from job.json, and never read from it: nothing in a job folder runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.farm.values import combinations, label_of, set_values
from mpm_nodes.graph.cook.parts import Parts
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.terminal import plain

__all__ = ["FORMAT", "FarmJob", "FarmTask", "Wedge", "load_job", "make_job"]

FORMAT, VERSION = "mpm_nodes.farm", 1
FILE = "job.json"
ENGINES = ("auto", "cycles", "splat")
PROGRAM_BYTES = 500 << 20
"""What a process takes before it has done anything: interpreter, kernels, OpenUSD."""
OPTIONS = ("--resume", "--events", "openjd")
"""What every task that can go on where it stopped is given."""
MOST_CHUNKS = 1024
"""Values of a task parameter, as Open Job Description (2023-09) allows."""


@dataclass(frozen=True)
class Wedge:
    """One combination of values.

    Attributes:
        number: Its number, from 0; its folder is called so.
        label: What it is called on pictures.
        values: Values by place ("node.knob").
        solve_bytes: Memory that its solves need, by estimate [bytes]; 0 without solves.
        frames_bytes: Memory that a frame of the rest needs [bytes]; 0 where nothing is made of the solves.
    """

    number: int
    label: str
    values: Mapping[str, Any]
    solve_bytes: int
    frames_bytes: int

    @property
    def folder(self) -> str:
        """Its folder, relative to the job's."""
        return f"wedges/{self.number:03d}"


@dataclass(frozen=True)
class FarmTask:
    """One command of a job.

    Attributes:
        id: Its name: "frames_000_1-24".
        step: Name of the tasks that differ from it in their frames only.
        arguments: Arguments of `mpm-nodes`; `JOB` stands for the job's folder, `SPAN` for `span`.
        needs: Ids of the tasks that must be finished before.
        memory: Memory that it needs, by estimate [bytes].
        span: Its chunk of frames, "1-24", "" for tasks that are not cut.
        label: What it is about, for people.
        last: Whether it is run at the end whatever became of the others.
    """

    JOB = "{job}"
    SPAN = "{span}"

    id: str
    step: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    memory: int = PROGRAM_BYTES
    span: str = ""
    label: str = ""
    last: bool = False

    def command(self, folder: str, span: str | None = None) -> list[str]:
        """Return the arguments of `mpm-nodes` for a job in `folder`."""
        span = self.span if span is None else span
        return [text.replace(self.SPAN, span).replace(self.JOB, folder) for text in self.arguments]


@dataclass(frozen=True)
class FarmJob:
    """A job, as job.json holds it.

    Attributes:
        folder: Its folder, absolute.
        name: Name of the shot.
        frames: First and last frame to make.
        start: First frame of the shot, from which on it is solved.
        chunk: Frames of a chunk; None cooks each wedge in one piece.
        wedges: The combinations of values.
        renders: Engines that render the frames.
        size: Width and height of the pictures in pixels; None takes the renderer's own.
    """

    folder: Path
    name: str
    frames: tuple[int, int]
    start: int
    chunk: int | None
    wedges: tuple[Wedge, ...]
    renders: tuple[str, ...] = ()
    size: tuple[int, int] | None = None

    def summary(self) -> str:
        """Return how many wedges and tasks it has, in words."""
        counts = (len(self.wedges), "wedge"), (len(self.tasks()), "task")
        return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)

    # ------------------------------------------------------------ tasks
    def spans(self) -> list[tuple[int, int]]:
        """Return first and last frame of each chunk."""
        first, last = self.frames
        chunk = self.chunk or last - first + 1
        return [(at, min(at + chunk - 1, last)) for at in range(first, last + 1, chunk)]

    def tasks(self, pieces: bool = False) -> list[FarmTask]:
        """Return the tasks, each after those that it needs.

        Args:
            pieces: Cut each solve where the chunks end: the frames of a chunk then need not wait for the whole solve. Engines that
                copy results between machines had better get a solve in one piece.
        """
        found = [task for wedge in self.wedges for task in self._tasks_of(wedge, pieces)]
        gather = ("farm", FarmTask.JOB, "--gather")
        needed = {name for task in found for name in task.needs}
        ends = tuple(task.id for task in found if task.id not in needed)
        return [*found, FarmTask("gather", "gather", gather, ends, label="contact sheet, table and stage of all wedges", last=True)]

    def _tasks_of(self, wedge: Wedge, pieces: bool) -> Iterator[FarmTask]:
        yield from self._cooks(wedge) if self.chunk is None else self._chunks(wedge, pieces)
        place, mark = f"{FarmTask.JOB}/{wedge.folder}", f"{wedge.number:03d}"
        size = ("--size", f"{self.size[0]}x{self.size[1]}") if self.size else ()
        for engine in self.renders if wedge.frames_bytes else ():
            look = ("--engine", engine, *size, f"--surroundings={self.whole}", "--out", f"{place}/pictures", *OPTIONS)
            before = (f"cook_{mark}" if self.chunk is None else f"join_{mark}",)
            for first, last in self.spans():
                arguments = ("render", f"{place}/cache", f"--frames={FarmTask.SPAN}", *look)
                name, span = f"render_{engine}_{mark}_{first}-{last}", f"{first}-{last}"
                yield FarmTask(name, f"render {engine} {mark}", arguments, before, 2 * PROGRAM_BYTES, span, wedge.label)

    @property
    def whole(self) -> str:
        """All frames, as "1-24"."""
        return f"{self.frames[0]}-{self.frames[1]}"

    def _cooks(self, wedge: Wedge) -> Iterator[FarmTask]:
        place, mark = f"{FarmTask.JOB}/{wedge.folder}", f"{wedge.number:03d}"
        memory = wedge.solve_bytes + wedge.frames_bytes
        arguments = ("cook", f"{place}/graph.json", f"--frames={self.whole}", "--out", f"{place}/cache", *OPTIONS)
        yield FarmTask(f"cook_{mark}", f"cook {mark}", arguments, (), memory, label=wedge.label)

    def _chunks(self, wedge: Wedge, pieces: bool) -> Iterator[FarmTask]:
        place, mark = f"{FarmTask.JOB}/{wedge.folder}", f"{wedge.number:03d}"
        spans = [f"{first}-{last}" for first, last in self.spans()]
        cook = ("cook", f"{place}/graph.json")
        solved: list[FarmTask] = []
        ends = [last for _, last in self.spans()] if pieces else [self.frames[1]]
        for end in ends if wedge.solve_bytes else ():
            arguments = (*cook, "--part", "solve", f"--frames={self.start}-{end}", "--out", f"{place}/solve", *OPTIONS)
            name = f"solve_{mark}_{end}" if pieces else f"solve_{mark}"
            before = (solved[-1].id,) if solved else ()
            solved.append(FarmTask(name, f"solve {mark}", arguments, before, wedge.solve_bytes, label=wedge.label))
        yield from solved
        if not wedge.frames_bytes:
            return
        chunks = []
        for number, span in enumerate(spans):
            source = ("--solved", f"{place}/solve") if solved else ()
            arguments = (
                *cook,
                "--part",
                "frames",
                *source,
                f"--frames={FarmTask.SPAN}",
                "--out",
                f"{place}/frames/{FarmTask.SPAN}",
                *OPTIONS,
            )
            needs = (solved[number if pieces else -1].id,) if solved else ()
            step, memory = f"frames {mark}", wedge.frames_bytes
            chunks.append(FarmTask(f"frames_{mark}_{span}", step, arguments, needs, memory, span, wedge.label))
        yield from chunks
        arguments = ("join", f"{place}/frames", f"--frames={self.whole}", "--out", f"{place}/cache", "--events", "openjd")
        yield FarmTask(f"join_{mark}", f"join {mark}", arguments, tuple(task.id for task in chunks), label=wedge.label)

    # ------------------------------------------------------------ what is finished
    def is_done(self, task: FarmTask) -> bool:
        """Return whether a task was finished by a run here or on a cluster."""
        return (self.folder / "done" / f"{task.id}.json").is_file()

    def mark_done(self, task: FarmTask, seconds: float) -> None:
        """Note that a task is finished, and how long it took."""
        write_text(self.folder, f"done/{task.id}.json", json.dumps({"task": task.id, "seconds": round(seconds, 3)}) + "\n")

    def document(self) -> dict[str, Any]:
        """Return job.json."""
        record = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "frames": [*self.frames],
            "start": self.start,
            "chunk": self.chunk,
            "renders": [*self.renders],
            "size": None if self.size is None else [*self.size],
        }
        return {**record, "wedges": [asdict(wedge) for wedge in self.wedges]}


# ---------------------------------------------------------------- making
def make_job(
    graph: Graph,
    folder: str | Path,
    knobs: Mapping[str, Sequence[Any]] | None = None,
    frames: tuple[int, int] | None = None,
    chunk: int | None = None,
    renders: Sequence[str] = (),
    size: tuple[int, int] | None = None,
    name: str = "shot",
) -> FarmJob:
    """Write the folder of a job: job.json and the graph of each wedge. The same job once more leaves it as it is.

    Args:
        graph: The shot.
        folder: A new folder, or one with the same job.
        knobs: Values by place ("node.knob"); each combination is a wedge.
        frames: First and last frame; None takes the graph's.
        chunk: Frames of a chunk: solves are cooked alone, and the rest in chunks; None cooks each wedge in one piece.
        renders: Engines that render the frames.
        size: Pixels of the pictures.
        name: Name of the shot.

    Raises:
        GraphError: A place or value is wrong, the frames are none of the shot's, or a wedge's graph is not valid.
        OutputError: The folder holds something else, or cannot be written.
    """
    settings = graph.settings
    first, last = frames or (settings.start, settings.end)
    _check(first, last, chunk, settings.start, renders)
    wedges, graphs = [], []
    for number, values in enumerate(combinations(knobs or {})):
        wedge, document = _wedge(graph, number, values, first, last)
        wedges.append(wedge)
        graphs.append(document)
    job = FarmJob(Path(folder).absolute(), plain(name), (first, last), settings.start, chunk, tuple(wedges), tuple(renders), size)
    _write(job, graphs)
    return job


def _check(first: int, last: int, chunk: int | None, start: int, renders: Sequence[str]) -> None:
    problems = []
    if not start <= first <= last:
        problems.append(
            Problem("frames", "are none of the shot's", f"{first}-{last}", f"{start} or later", "give the first frame first")
        )
    if chunk is not None and (chunk < 1 or (last - first) // chunk >= MOST_CHUNKS):
        least = 1 + (last - first) // MOST_CHUNKS
        problems.append(Problem("chunk", "is out of range", chunk, f"{least} or more", f"there are at most {MOST_CHUNKS} chunks"))
    problems += [Problem("render", "is unknown", each, ", ".join(ENGINES)) for each in renders if each not in ENGINES]
    if problems:
        raise GraphError(problems)


def _wedge(graph: Graph, number: int, values: Mapping[str, Any], first: int, last: int) -> tuple[Wedge, dict[str, Any]]:
    """Return a wedge with what it needs, and its graph as it stands in its file."""
    own = set_values(load_graph(graph.to_json(), registry=graph.registry, base=graph.base), values)
    plan = plan_graph(own)
    estimates = preflight.estimate(plan, first, last=last)
    solve, frames = Parts(plan, "solve"), Parts(plan, "frames")
    needs = []
    for part in (solve, frames):
        if part.targets():
            part.check()
        told = part.estimates(estimates).values()
        needs.append(PROGRAM_BYTES + sum(int(facts.get("memory", 0)) for facts in told) if part.targets() else 0)
    for name, entry in own.nodes.items():
        declaration = own.declaration(name)
        for knob in declaration.knobs if declaration else ():
            given = entry.knobs.get(knob.name)
            if knob.kind == "path" and isinstance(given, str) and given:
                entry.knobs[knob.name] = os.path.abspath(own.base / given)
    return Wedge(number, label_of(values), dict(values), *needs), own.to_json()


def _write(job: FarmJob, graphs: Sequence[Mapping[str, Any]]) -> None:
    files = {FILE: job.document(), **{f"{w.folder}/graph.json": graph for w, graph in zip(job.wedges, graphs, strict=True)}}
    texts = {name: json.dumps(document, indent=1, ensure_ascii=False) + "\n" for name, document in files.items()}
    _refuse_links(job.folder)
    if (job.folder / FILE).is_file():
        same = all((job.folder / name).is_file() and (job.folder / name).read_text("utf-8") == text for name, text in texts.items())
        if not same:
            raise OutputError(f"{job.folder}: holds another job (other frames, values or graph); choose another folder with --out")
        return
    if job.folder.exists() and (not job.folder.is_dir() or any(path.name != "wedges" for path in job.folder.iterdir())):
        raise OutputError(f"{job.folder}: holds something else than a job; choose a new folder with --out")
    for name, text in reversed(texts.items()):  # job.json last: a job is there when all of it is
        write_text(job.folder, name, text)


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of a job; it appears under its name when it is whole.

    Raises:
        OutputError: It cannot be written, or a folder on the way to it is a link.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = Folder(folder.resolve())
        if "/" in name:
            files.make(name.rpartition("/")[0])
        files.replace(name, text.encode())
    except OSError as error:
        raise OutputError(f"{folder / name}: cannot be written ({error.strerror or error}); choose another folder") from error


# ---------------------------------------------------------------- reading
def load_job(folder: str | Path) -> FarmJob:
    """Return the job of a folder.

    Raises:
        InputError: It holds none, one that no version of ours wrote, or links where tasks would write.
    """
    folder = Path(folder).absolute()
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder}: holds no {FILE}; make a job with mpm-nodes farm GRAPH --out DIR")
    record = strict_json.read(path)
    _refuse_links(folder)
    try:
        if record["format"] != FORMAT or record["version"] != VERSION:
            raise ValueError("another format or version")
        first, last = _whole(record["frames"], 2)
        (start,) = _whole([record["start"]], 1)
        chunk = None if record["chunk"] is None else _whole([record["chunk"]], 1)[0]
        size = None if record["size"] is None else tuple(_whole(record["size"], 2))
        wedges = tuple(_read_wedge(number, each) for number, each in enumerate(record["wedges"]))
        if not isinstance(record["name"], str) or not wedges or len(wedges) > MOST_CHUNKS:
            raise ValueError("no name, or no wedges")
        _check(first, last, chunk, start, record["renders"])
        return FarmJob(folder, record["name"], (first, last), start, chunk, wedges, tuple(record["renders"]), size)
    except (KeyError, TypeError, ValueError, GraphError) as error:
        raise InputError(f"{path}: is damaged or not a job of ours ({error}); make it again with mpm-nodes farm") from error


def _refuse_links(folder: Path) -> None:
    """Refuse links where tasks would write through them to places outside of the job."""
    places = [folder / "done", folder / "logs", *folder.glob("wedges"), *folder.glob("wedges/*"), *folder.glob("wedges/*/*")]
    for place in (*places, *folder.glob("wedges/*/frames/*")):
        if place.is_symlink():
            raise InputError(f"{place}: is a link; links in a job are not followed, put the job itself where there is room")


def _whole(values: Any, count: int) -> list[int]:
    if not isinstance(values, list) or len(values) != count or any(type(value) is not int for value in values):
        raise ValueError(f"{values!r} are not {count} whole numbers")
    return values


def _read_wedge(number: int, record: Any) -> Wedge:
    _whole([record["number"], record["solve_bytes"], record["frames_bytes"]], 3)
    if record["number"] != number or not isinstance(record["label"], str) or not isinstance(record["values"], dict):
        raise ValueError(f"wedge {number} is not one")
    return Wedge(**record)
