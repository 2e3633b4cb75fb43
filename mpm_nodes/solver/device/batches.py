"""Substeps of a solve on a device that run without the CPU: a batch of them is one graph of kernels.

A substep begins with the choice of its length, in a kernel that is written from the functions which the CPU calls. Where the next
one needs the CPU, that kernel says so, and the rest of the batch does nothing: particles must be sorted, a stage has something to
do there, or the frame ends in that substep. The CPU then looks once, and keeps its books for each substep that has run: limits,
events and reports are those that it would have had.

A graph is recorded behind a substep that the CPU led, with the stages of that substep, and holds until anything moves in memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import StepContext
from mpm_nodes.graph.plan.fusion import FusedStage, fragments_of
from mpm_nodes.graph.plan.substeps import Dispatch, PlannedStage
from mpm_nodes.graph.time.clock import rest_of_tick
from mpm_nodes.kernels.composition.fragments import Ahead, Idle, Measure, Nodes, OnDevice, Removal
from mpm_nodes.kernels.cuda.loop import cuda_source
from mpm_nodes.kernels.cuda.trace import branching, named, statements
from mpm_nodes.solver.collider_shapes import time_to_travel
from mpm_nodes.solver.device.loops import Found, HostCall, LargestValues
from mpm_nodes.solver.device.residency import Residency, step_kernels
from mpm_nodes.solver.sorting import SORT_INTERVAL
from mpm_nodes.solver.step_lengths import even_step, strain_step, uses_up, wave_step

__all__ = ["SUBSTEPS", "Batches", "choice_kernel", "obstacle_of", "obstacle_of_law"]

SUBSTEPS = 16
"""Substeps of a batch at most."""
_NUMBERS = "TIME END BEGIN TICK DT_MIN DT_MAX OTHERS FACTOR GRAVITY TRAVEL ELASTIC STRAIN REST DRIFT_LIMIT MOST".split()
"""What `batch.cuh` is given, besides three numbers a law."""
_VALUES = ("displacement", "drift", "speed", "gradient", "wave")
"""Largest values of loops that it looks at."""
_REASONS = ("FAR_MOVED", "SORT_DUE", "TOO_SHORT", "LAST", "STAGE_DUE")
_HEAD, _ROOM = 6, 64
"""Words of `Batch`, and of the largest values of a substep for each law."""
_OF_TIME = ("dt", "time", "time_left", "tick", "substep", "substeps_done", "beginning", "middle", "moment")


@functools.cache
def choice_kernel() -> str:
    """Return the kernel that chooses the length of a substep."""
    lines = ["#define HUGE_NUMBER 2.9e38f", "#define UNLIMITED (1.0 / 0.0)", f"#define NUMBERS {len(_NUMBERS)}"]
    lines += [f"#define PLACES {len(_VALUES)}"]
    lines += [f"#define {name} {number}" for number, name in enumerate(_NUMBERS)]
    lines += [f"#define {name.upper()} {number}" for number, name in enumerate(_VALUES)]
    lines += [f"#define {name} {number}" for number, name in enumerate(_REASONS, 1)]
    functions = [_written(each) for each in (time_to_travel, strain_step, wave_step, even_step, rest_of_tick, uses_up)]
    return "\n".join([cuda_source("substep.cuh"), *lines, *functions, cuda_source("batch.cuh")])


def _written(function: Callable[..., Any]) -> str:
    """Return a function of numbers as C++."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    result = branching(function)(*map(named, names))
    kind = "bool" if result.mask else "double"
    lines = [f"    {line}" for line in ([f"{kind} result;", *statements({"result": result}, "double"), "return result;"])]
    arguments = ", ".join(f"double {name}" for name in names)
    return "\n".join([f"static __device__ {kind} {function.__name__}({arguments}) {{", *lines, "}"])


# ---------------------------------------------------------------- what needs the CPU
class _NeedsTimeError(Exception):
    """Numbers of a loop hang on the substep."""


class _Timeless:
    """The context of a substep without what changes from one to the next."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TIME:
            raise _NeedsTimeError
        return getattr(self._step, name)


def obstacle_of(planned: PlannedStage) -> str:
    """Return why substeps with a stage never run in batches, "" where they may."""
    for part in planned.parts:
        fragments = fragments_of(part)
        if planned.keyed or part.keyed:
            return f"{part.id} has keys"
        if part.sets:
            measured = any(isinstance(f, Measure) for f in fragments) and not part.knobs.get("implicit")
            return "" if measured else f"{part.id} chooses the time step on the CPU"
        for fragment in fragments:
            if isinstance(fragment, OnDevice | Idle) and fragment.ahead is None:
                return f"{part.id} runs on the CPU"
            if isinstance(fragment, Nodes) and fragment.on_device is None:
                return f"{part.id} works on nodes on the CPU"
            if isinstance(fragment, Removal):
                return f"{part.id} removes particles"
            if fragment.finish is not None and not fragment.late:
                return f"{part.id} has something to do behind its loop"
        on_nodes = any(isinstance(f, Nodes | OnDevice) for f in fragments)
        if not isinstance(planned, FusedStage) and not on_nodes:
            return f"{part.id} runs on the CPU"
    return ""


def obstacle_of_law(law: Any) -> str:
    """Return why substeps of a law never run in batches, "" where they may."""
    if law.follows:
        return f"coefficients of {law.id} follow {', '.join(law.inputs)}"
    return f"{law.id} limits the time step by its state" if law.function("longest_step") is not None else ""


def _asked(planned: PlannedStage, call: functools.partial) -> Iterator[tuple[PlannedStage, Ahead]]:
    """Yield what stages of a call say of the next substeps."""
    domains = dict(zip(planned.arguments, call.args, strict=True))
    for part in planned.parts:
        for fragment in fragments_of(part):
            if isinstance(fragment, Idle) and fragment.ahead is not None:
                yield part, fragment.ahead(*(domains[name] for name in part.arguments))
            elif isinstance(fragment, OnDevice) and fragment.ahead is not None:
                yield part, fragment.ahead(*call.args, **call.keywords)


def _timeless(particles: Any, step: StepContext, planned: PlannedStage, knobs: Mapping[str, Any]) -> str:
    """Return why numbers of the loops of a call are others in every substep, "" where they are not."""
    for part in planned.parts:
        for fragment in fragments_of(part):
            if fragment.arguments is None:
                continue
            try:
                for law, _ in particles.runs():
                    fragment.arguments(law, particles, _Timeless(step), **knobs.get("knobs", {}).get(part.id, knobs))
            except _NeedsTimeError:
                return f"{part.id} takes numbers that follow the time step"
    return ""


# ---------------------------------------------------------------- a graph
@dataclass(eq=False)
class SubstepGraph:
    """Substeps as a graph, and the batch that runs in it; see `residency.Recording`.

    Attributes:
        key: What it was recorded for.
        laws: How many have particles.
        buffer: `Batch`, the lengths, and the largest values of each substep, word by word.
        numbers, places: What the choice is given.
        number: Substep that is being recorded.
        used: Words that are taken so far.
        sections: Where the largest values of loops begin that run together, and how many there are.
        ends: What the CPU does behind each substep, and what loops find for it.
        touched: Arrays of the graph.
        recorded: What the device replays.
    """

    key: tuple[Any, ...]
    laws: int
    buffer: Any
    numbers: Any
    places: Any
    number: int = 0
    used: int = _HEAD + 2 * SUBSTEPS
    sections: dict[LargestValues, tuple[int, int]] = field(default_factory=dict)
    ends: list[tuple[Callable[[], None], Sequence[Any]]] = field(default_factory=list)
    touched: list[tuple[np.ndarray, bool]] = field(default_factory=list)
    recorded: Any = None

    @property
    def words(self) -> int:
        """Words that there is room for."""
        return _HEAD + SUBSTEPS * (2 + _ROOM * self.laws)

    def place(self, largest: LargestValues, count: int) -> int:
        """See `SubstepGraph`."""
        if largest not in self.sections:
            self.sections[largest] = self.used, count
            self.used += SUBSTEPS * count
            assert self.used <= self.words
        return self.sections[largest][0] + count * self.number

    def later(self, ends: Callable[[], None], found: Sequence[Any]) -> None:
        """See `SubstepGraph`."""
        if self.number == 0:
            self.ends.append((ends, found))

    def table(self) -> np.ndarray:
        """Return where the values lie that the choice looks at, shape (laws, values, 2), int32: the first, and how far apart.

        A loop of all particles finds one for all laws.
        """
        table = np.zeros((self.laws, len(_VALUES), 2), np.int32)
        for law, row in enumerate(table):
            mine = [found[law if len(found) == self.laws else 0] for _, found in self.ends]
            for name, place in zip(_VALUES, row, strict=True):
                largest, index = next(_place(found, name) for found in mine if name in found)
                begin, count = self.sections[largest]
                place[:] = begin + index, count
        return table

    def take(self, number: int, words: np.ndarray) -> None:
        """Show the loops what they found in a substep."""
        for largest, (begin, count) in self.sections.items():
            largest.take(words[begin + count * number :][:count])


def _place(found: Any, name: str) -> tuple[LargestValues, int]:
    if isinstance(found, Found):
        return found.place(name)
    return next(_place(each, name) for each in found.maps if name in each)


# ---------------------------------------------------------------- a solve
class Batches:
    """The batches of a solve.

    Args:
        solver: The solver (`solver.run.SubstepSolver`).

    Attributes:
        because: Why substeps run one at a time, "" where batches run.
        looks: How often the CPU has looked at a batch.
        graph: The graph of the last one.
    """

    def __init__(self, solver: Any) -> None:
        self.solver, self.because, self.looks = solver, "", 0
        self._residency: Residency = solver.residency
        self._led: tuple[Any, ...] = ()
        self.graph: SubstepGraph | None = None
        self._lengths: list[float] = []
        self._words, self._number, self._stopped = np.zeros(0, np.uint32), 0, False
        self._launching: list[Callable[[], None]] = []
        self._behind: list[Callable[[], None]] = []
        self._told = ""

    def forget(self) -> None:
        """Forget what has run ahead, and graphs."""
        self._led, self.graph, self._lengths, self._stopped = (), None, [], False

    @property
    def _choice(self) -> tuple[PlannedStage, functools.partial]:
        """The stage that chooses dt."""
        dispatch: Dispatch = self.solver.dispatch
        return next(pair for pair in zip(dispatch.stages, dispatch.calls, strict=True) if "dt" in pair[0].sets)

    @property
    def chooses(self) -> str:
        """Name of the stage that chooses dt."""
        return self._choice[0].id

    def choose(self) -> None:
        """Let it find and tell again what limits the substep."""
        self._choice[1]()

    def news(self) -> str:
        """Return why substeps run one at a time, "" where they do not or it was told before."""
        told, self._told = self._told, self.because
        return "" if told == self.because else self.because

    def led(self) -> None:
        """Note a substep that the CPU has led: the next ones may do without."""
        step = self.solver.step_context
        last = uses_up(step.dt, step.time_left)
        self._led, self._stopped = () if last else ("kept",) if step.keep else self._key(), False

    def next(self, end: float) -> float | None:
        """Return the length of the next substep if a batch has run it, None where the CPU leads it.

        Args:
            end: Simulated seconds until which nobody looks at the particles.
        """
        if not self._lengths:
            if self._stopped or not self._led:
                return None
            waiting, rest, self.because = self._survey()
            if self.because or not rest > 0.0 or self._led != self._key():
                return None
            self._run(end, rest, waiting)
        if not self._lengths:
            return None
        graph = self.graph
        assert graph is not None
        graph.take(self._number, self._words)
        self._number += 1
        return self._lengths.pop(0)

    def end(self) -> None:
        """Keep the books of the substep that `next` returned."""
        assert self.graph is not None
        self.solver.step_context.keep = False
        for call in (*self._behind, *(ends for ends, _ in self.graph.ends)):
            call()

    def _key(self) -> tuple[Any, ...]:
        solver = self.solver
        return id(solver.dispatch), solver.particles.generation, solver.particles.count, solver.grid.version

    # ---------------------------------------------------------------- may it run
    def _survey(self) -> tuple[list[Callable[[], None]], float, str]:
        """Return what is called behind each substep, for how long nothing else is to be done [s], and why batches do not run."""
        solver, rest = self.solver, math.inf
        behind: list[Callable[[], None]] = []
        because = self._of_solve()
        dispatch: Dispatch = solver.dispatch
        offering, self._launching = set(), []
        for planned, call in zip(dispatch.stages, dispatch.calls, strict=True):
            because = because or obstacle_of(planned)
            because = because or _timeless(solver.particles, solver.step_context, planned, call.keywords)
            if because:
                return [], 0.0, because
            asked = [*_asked(planned, call)]
            for part, ahead in asked:
                because = because or (ahead.because and f"{part.id}: {ahead.because}")
                rest = min(rest, ahead.seconds)
                offering.add(part.id)
            if planned.sets:
                continue
            waits = asked and not isinstance(planned, FusedStage) and not any(ahead.launches for _, ahead in asked)
            (behind if waits else self._launching).append(call)
        for limit, offered, part in dispatch.limits:
            if offered is not None and part.id not in offering:
                because = because or f"{part.id} limits the time step by {limit.name}"
        return behind, rest, because

    def _of_solve(self) -> str:
        """Return what besides stages needs the CPU in every substep."""
        solver, step = self.solver, self.solver.step_context
        particles = solver.particles
        for holds, text in (
            (solver.matter.streams, "streams bring particles"),
            (step.drains, "drains take particles"),
            (any(each.each_substep for each in step.updates), "attributes are changed in every substep"),
            (callable(solver.gravity), "gravity has keys"),
            (solver.matter.coefficients.keyed, "numbers of a material have keys"),
            (solver.active is not None, "matter sleeps"),
            (len(solver.colliders.plates) or len(particles.block_sides) > 1, "plates keep their two sides apart"),
            (solver.colliders.rigid is not None, "bodies move by themselves"),
            (solver.program.lasting or solver.memory.keep_next, "stages look at what loops would leave out"),
        ):
            if holds:
                return text
        for law, _ in particles.runs():
            if because := obstacle_of_law(law.loops.law):
                return because
        if particles.limits is None:
            return "no loop measures what limits the time step"
        calls = [each for kept in particles.bound.values() if isinstance(kept, list) for each in kept]
        return "a loop runs on the CPU" if any(isinstance(each, HostCall) for each in calls) else ""

    # ---------------------------------------------------------------- running
    def _run(self, end: float, rest: float, behind: list[Callable[[], None]]) -> None:
        """Run a batch, and read what it did."""
        residency, key = self._residency, self._key()
        if self.graph is None or self.graph.key != key:
            self.graph = self._recorded(key)
        graph, device = self.graph, residency.device
        for array, write in graph.touched:
            residency.on_device(array, write=write)
        device.clear(graph.buffer, 4 * graph.used)
        device.upload(graph.numbers, self.numbers(end, rest))
        device.replay(graph.recorded)
        words = np.zeros(graph.used, np.int32)
        device.download(graph.buffer, words)
        self.looks += 1
        done, why = int(words[2]), int(words[3])
        self._words, self._number, self._behind, self._stopped = words.view(np.uint32), 0, behind, why != 0
        self._lengths = words[_HEAD : _HEAD + 2 * done].view(np.float64).tolist()

    def _recorded(self, key: tuple[Any, ...]) -> SubstepGraph:
        """Record the stages of so many substeps."""
        residency, step, laws = self._residency, self.solver.step_context, len(self.solver.particles.limits)
        device = residency.device
        graph = SubstepGraph(
            key, laws, None, device.allocate(8 * (len(_NUMBERS) + 3 * laws)), device.allocate(8 * laws * len(_VALUES))
        )
        graph.buffer = device.allocate(4 * graph.words)
        choose, _ = device.kernel(choice_kernel(), "choose_dt"), device.kernel(step_kernels(), "clear_floats")
        step.keep = False
        residency.recording, residency.touched = graph, graph.touched
        try:
            with device.record() as recorded, residency.reading():
                for graph.number in range(SUBSTEPS):
                    numbers = [np.int32(laws), np.int32(graph.number)]
                    device.launch(choose, 1, [graph.buffer, graph.numbers, graph.places, *numbers])
                    for call in self._launching:
                        call()
        finally:
            residency.recording = residency.touched = None
        graph.recorded = recorded
        graph.touched = list(
            {id(array): (array, write) for array, write in sorted(graph.touched, key=lambda each: each[1])}.values()
        )
        device.upload(graph.places, graph.table())
        return graph

    def numbers(self, end: float, rest: float) -> np.ndarray:
        """Return what the choice is given."""
        solver, step, h = self.solver, self.solver.step_context, self.solver.cell_size
        particles = solver.particles
        knobs = self._choice[1].keywords
        gravity, distance = math.hypot(*step.gravity), knobs["cfl"] * h
        others = [value for _, _, value in solver.colliders.limits(distance, gravity, particles)]
        for law, segments in particles.runs():
            viscosity = law.viscosity_of(particles, segments)
            others += [law.viscous_step(viscosity, h)] if viscosity > 0 else []
        begin, tick = solver.ticks
        numbers = {
            "TIME": solver.time,
            "END": end,
            "BEGIN": begin,
            "TICK": tick,
            "DT_MIN": step.dt_min,
            "DT_MAX": step.dt_max,
            "OTHERS": min(others, default=math.inf),
            "FACTOR": step.dt_factor,
            "GRAVITY": gravity,
            "TRAVEL": distance,
            "ELASTIC": knobs["elastic_cfl"] * h,
            "STRAIN": knobs["strain_limit"],
            "REST": rest,
            "DRIFT_LIMIT": solver.program.drift_limit,
            "MOST": min(SUBSTEPS, SORT_INTERVAL - particles.sort_age),
        }
        before = [each for limits in particles.limits for each in limits]
        return np.array([*(numbers[name] for name in _NUMBERS), *before], np.float64)
