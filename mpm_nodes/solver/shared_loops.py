"""Stages that bring fragments at work: one loop for as many of them as follow each other, or for one alone.

A `SharedLoop` knows no stage by name. It takes fragments in order, has the kernel composed for each material's law, gives it the
arrays that it asks for, and does around the loop what the fragments declare: clears what is scattered to, marks particles that go,
deletes them, hands reductions to who wants them. Attributes that nobody reads afterwards stay in a scratch of each thread.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import StepContext
from mpm_nodes.graph.plan.fusion import StageRun, arguments_of, fragments_of
from mpm_nodes.graph.plan.substeps import PlannedStage, SubstepPlan
from mpm_nodes.kernels.composition.block import CompositionError, Source
from mpm_nodes.kernels.composition.fragments import STATE, Fragment, Idle, Lanes, Measure, Nodes, Removal
from mpm_nodes.kernels.composition.generated import ComposedLoop, composed_loop
from mpm_nodes.kernels.composition.source import Fold, source_of
from mpm_nodes.kernels.composition.values import LOCAL_ROWS
from mpm_nodes.kernels.cuda.trace import TraceError
from mpm_nodes.solver.device.loops import DeviceCall, HostCall, LargestValues
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.loop_sections import LOOPS, BoundCall, Course, Section, StageFragment, bind
from mpm_nodes.solver.state import ParticleStore

__all__ = ["SharedLoop", "alone", "shared_loop"]

Call = BoundCall | DeviceCall | HostCall
"""A loop with its arguments."""


def shared_loop(run: StageRun, plan: SubstepPlan) -> SharedLoop:
    """Return the call that stands for a run of a plan."""
    return SharedLoop(run.members, _measure_of(run, plan), _readers(run, plan))


def alone(stage: Callable[..., None], *given: Any, **knobs: Any) -> None:
    """Run one stage by its fragments: the body of a stage that has nothing else to do.

    Args:
        stage: The stage.
        given: What it takes before the *, in order.
        knobs: Its knobs.
    """
    declaration = stage.declaration  # type: ignore[attr-defined]
    chosen = knobs if callable(declaration.fragments) else {}
    key = (declaration.function, *sorted(chosen.items()))
    loop = _ALONE.get(key)
    if loop is None:
        nothing = frozenset[Any]()
        planned = PlannedStage(
            declaration.id, declaration, declaration.function, declaration.arguments, chosen, {}, nothing, nothing
        )
        loop = _ALONE[key] = SharedLoop((planned,))
    loop.run(dict(zip(declaration.arguments, given, strict=True)), {declaration.id: knobs})


_ALONE: dict[Any, SharedLoop] = {}


# ---------------------------------------------------------------- what the rest of a plan asks for
@dataclass(frozen=True)
class _Measured:
    """The measure that a loop takes on the way, the stage that wants it, and the member behind which it stands.

    Particles that go take it with them: it is measured again then, also where a stage outside the loop removes them.
    """

    measure: Measure
    stage: PlannedStage
    behind: str
    others_remove: bool


def _measure_of(run: StageRun, plan: SubstepPlan) -> _Measured | None:
    """Return the measure of a stage whose numbers a run writes last, when it has all that the measure takes."""
    for wanting in plan.stages:
        for measure in (f for f in fragments_of(wanting) if isinstance(f, Measure)):
            reads = wanting.reads if wanting.by_itself is None else wanting.by_itself
            wanted = {array for array in reads if array[0] == "particles"}
            writers = [stage for stage in plan.stages if stage.writes & wanted]
            after = plan.stages[run.place + len(run.members) :]
            offered = {name for f in _fragments(run.members) for name in getattr(f, "largest", ())}
            if writers and writers[-1] in run.members and not any(stage.writes & wanted for stage in after):
                written = [m for m in run.members if _touched_by_lanes(measure.lanes, m)]
                if written and set(measure.takes) <= offered:
                    others = [stage for stage in plan.stages if stage not in run.members]
                    removes = any(isinstance(f, Removal) for f in _fragments(others))
                    return _Measured(measure, wanting, written[-1].id, removes)
    return None


def _touched_by_lanes(lanes: Lanes, member: PlannedStage) -> bool:
    reads = {*lanes.parameters} - {STATE}
    for fragment in fragments_of(member):
        writes = set(getattr(fragment, "writes", ()))
        if writes & reads or (STATE in writes and STATE in lanes.parameters):
            return True
    return False


def _readers(run: StageRun, plan: SubstepPlan) -> dict[str, tuple[PlannedStage, ...]]:
    """Return who reads an attribute that the run overwrites, before it is written again: later in this substep or in the next."""
    count, end = len(plan.stages), run.place + len(run.members)
    found = {}
    for name in _born(run.members):
        readers = []
        for place in range(end, end + count - len(run.members)):
            stage = plan.stages[place % count]
            if ("particles", name) in stage.reads:
                readers.append(stage)
            elif ("particles", name) in stage.writes:
                break
        found[name] = tuple(readers)
    return found


def _fragments(members: Sequence[PlannedStage]) -> Iterator[Fragment]:
    for member in members:
        yield from fragments_of(member)


def _born(members: Sequence[PlannedStage]) -> list[str]:
    """Return the attributes that a loop writes before it reads them, as far as a scratch can hold them."""
    read, born = set[str](), list[str]()
    for fragment in _fragments(members):
        read |= fragment.names_read
        for name in getattr(fragment, "writes", ()):
            own_stride = f"{name}_stride" in fragment.parameters or name == getattr(fragment, "gradient", "")
            can = isinstance(fragment, Lanes) or own_stride
            if name not in read and name not in born and name != STATE and can:
                born.append(name)
    return born


# ---------------------------------------------------------------- one substep
@dataclass(eq=False)
class _Kept:
    """Attributes that can stay in the scratch of each thread, and those of them that do; for the laws of a substep."""

    inner: tuple[str, ...]
    local: frozenset[str]
    laws: Any


class SharedLoop:
    """The call of a fused stage.

    Args:
        members: The stages.
        measured: The measure that it takes on the way, if any.
        readers: Attributes that may stay in a scratch, and who outside reads them.
    """

    def __init__(
        self,
        members: Sequence[PlannedStage],
        measured: _Measured | None = None,
        readers: Mapping[str, Sequence[PlannedStage]] | None = None,
    ) -> None:
        self.members, self.measured, self.readers = tuple(members), measured, dict(readers or {})
        self.arguments = arguments_of(self.members)
        self._fragments: dict[Any, tuple[Fragment, ...]] = {}
        self._loops: dict[Any, ComposedLoop] = {}
        self._courses: dict[Any, Course] = {}
        self._last: tuple[Any, _Brought] | None = None

    def __call__(self, *given: Any, knobs: Mapping[str, Mapping[str, Any]]) -> None:
        self.run(dict(zip(self.arguments, given, strict=True)), knobs)

    def run(self, given: Mapping[str, Any], knobs: Mapping[str, Mapping[str, Any]]) -> None:
        """Run the stages on domains by name, with the knobs of each by its id; a mapping of knobs never changes."""
        course, grid, particles = self.course(given, knobs), given.get("grid"), given.get("particles")
        for array in course.clears:
            given["grid"].clear(array)
        if grid is not None:
            for array in course.adds:
                grid.halo.open(grid.kept(array))
        if particles is not None and particles.count:
            _Substep(self, course, given, knobs).run()
        elif particles is not None and particles.share.several:
            for member, removal in course.removals:  # a rank without particles answers the others all the same
                removal.mark(particles, given.get("step"), **knobs[member.id])
        if grid is not None:
            grid.halo.sum(*(grid.kept(array) for array in course.scatters))
        for update in course.updates:
            if update.on_device is not None and grid is not None and grid.residency is not None:
                update.on_device(grid.residency, grid, given.get("step"))
            else:
                update.update(grid, given.get("step"))

    def fragments(self, member: PlannedStage, knobs: Mapping[str, Any]) -> tuple[Fragment, ...]:
        """Return the fragments of a stage; equal knobs give the same objects."""
        made = member.declaration.fragments
        key = (member.id, *(knobs[name] for name in sorted(knobs))) if callable(made) else member.id
        if key not in self._fragments:
            self._fragments[key] = member.declaration.fragments_for(knobs)
        return self._fragments[key]

    def source(self, law: Any, table: Mapping[str, Any]) -> Source:
        """Return the source of the loop for one law, with the knobs of the plan and nothing to do for stages that can be idle."""
        parts, fold = self.composed_of(law)
        fragments = [part.fragment for part in parts]
        return source_of(law if any(f.of_law for f in fragments) else None, fragments, table, tuple(self.readers), fold)

    def composed_of(self, law: Any) -> tuple[list[StageFragment], Fold | None]:
        """Return the fragments that fit a law, and where scatters go that are not to have a grid array of their own."""
        parts: list[StageFragment] = []
        for member in self.members:
            parts += [StageFragment(member, f) for f in fragments_of(member) if isinstance(f, LOOPS)]
            if self.measured is not None and self.measured.behind == member.id:
                parts.append(StageFragment(self.measured.stage, self.measured.measure.lanes))
        fold = next((Fold(f.source, f.into, f.factor) for f in _fragments(self.members) if isinstance(f, Nodes)), None)
        return [part for part in parts if part.fragment.fits(law)], fold

    def composed(
        self, law: Any, fragments: Sequence[Fragment], table: Any, inner: tuple[str, ...], fold: Fold | None
    ) -> ComposedLoop:
        """Return the composed loop of a section."""
        key = (law and (law.id, law.follows), *map(id, fragments), inner)
        if key not in self._loops:
            self._loops[key] = composed_loop(law, fragments, table, inner, fold)
        return self._loops[key]

    def loops(self) -> tuple[ComposedLoop, ...]:
        """Return the loops that were composed so far."""
        return tuple(self._loops.values())

    def course(self, given: Mapping[str, Any], knobs: Mapping[str, Mapping[str, Any]]) -> Course:
        """Return what is to be done: parts between stages that have something to do, made once for equal fragments."""
        last = self._last
        if last is None or last[0] is not knobs:
            last = self._last = (knobs, _Brought(tuple(self.fragments(member, knobs[member.id]) for member in self.members)))
        brought = last[1]
        busy = tuple(
            not fragment.idle(*[given[name] for name in self.members[place].arguments]) for place, fragment in brought.idles
        )
        key = (*map(id, brought.fragments), busy)
        course = self._courses.get(key)
        if course is None:
            course = self._courses[key] = Course(self._parted(brought.fragments, iter(busy)))
        return course

    def _parted(self, brought: Sequence[tuple[Fragment, ...]], busy: Iterator[bool]) -> list[Section]:
        sections = [Section()]
        for member, fragments in zip(self.members, brought, strict=True):
            for fragment in fragments:
                if not isinstance(fragment, Idle):
                    sections[-1].parts.append(StageFragment(member, fragment))
                elif next(busy):
                    sections[-1].busy = member
                    sections.append(Section())
            if self.measured is not None and self.measured.behind == member.id:
                sections[-1].parts.append(StageFragment(self.measured.stage, self.measured.measure.lanes))
        return sections


class _Brought:
    """The fragments of each member, and those without a loop with the places of their stages."""

    def __init__(self, fragments: tuple[tuple[Fragment, ...], ...]) -> None:
        self.fragments = fragments
        self.idles = [(place, f) for place, each in enumerate(fragments) for f in each if isinstance(f, Idle)]


class _Substep:
    """What a shared loop does to particles in one substep."""

    def __init__(self, loop: SharedLoop, course: Course, given: Mapping[str, Any], knobs: Mapping[str, Mapping[str, Any]]) -> None:
        self.loop, self.course, self.given, self.knobs = loop, course, given, knobs
        self.particles: ParticleStore = given["particles"]
        self.grid: GridStore | None = given.get("grid")
        self.step: StepContext | None = given.get("step")
        self.keep = self.step is None or self.step.keep
        self.marks: dict[int, np.ndarray] = {}
        self.found: list[Any] = []  # a mapping for each loop, which the host need not have read

    def run(self) -> None:
        particles, step, count = self.particles, self.step, self.particles.count
        recording = None if particles.residency is None else particles.residency.recording
        for member, fragment in self.course.removals:
            self.marks[id(fragment)] = fragment.mark(particles, step, **self.knobs[member.id])
        kept = self._kept()
        for section in self.course.sections:
            if section.loops:
                calls = self._calls(section, kept)
                found: list[Any] = [call(particles, step, self.knobs) if call is not None else {} for call in calls]
                merged = zip(self.found, found, strict=True)
                self.found = [ChainMap(now, before) for before, now in merged] if self.found else found
            if recording is None:
                for part in section.ends:
                    self._end(*part)
            if section.busy is not None:
                busy = section.busy
                busy.function(*(self.given[name] for name in busy.arguments), **self.knobs[busy.id])
        if recording is not None:
            recording.later(self._late, self.found)
        elif self.loop.measured is not None and particles.count == count:
            self.loop.measured.measure.keep(particles, self.found)

    def _late(self) -> None:
        """Do what the host has to do behind a substep of a batch."""
        for section in self.course.sections:
            for part in section.ends:
                self._end(*part)
        if self.loop.measured is not None:
            self.loop.measured.measure.keep(self.particles, self.found)

    def _end(self, member: PlannedStage, fragment: Any) -> None:
        """Do what a fragment has to do behind the loop."""
        if isinstance(fragment, Removal):
            fragment.remove(self.particles, self.step, self.marks[id(fragment)])
            return
        found = {name: max(row[name] for row in self.found) for name in getattr(fragment, "largest", ()) if self.found}
        found |= {name: sum(row[name] for row in self.found) for name in getattr(fragment, "sums", ()) if self.found}
        fragment.finish(self.particles, self.step, found, **self.knobs[member.id])

    # ---------------------------------------------------------------- what stays in the scratch
    def _kept(self) -> _Kept:
        """Return what stays in the scratch, and note what is stale."""
        particles, grid, stale = self.particles, self.grid, self.particles.stale
        marked = bool(self.marks) and any(mark.any() for mark in self.marks.values())
        key = (self.course, marked, self.keep, grid, None if grid is None else grid.version)
        kept = particles.bound.get(key)
        if kept is None or kept.laws is not particles.laws:
            kept = particles.bound[key] = self._of_laws(kept, self._keeps(marked))
        stale.difference_update(self.course.written)
        stale.update(kept.local)
        return kept

    def _of_laws(self, before: _Kept | None, now: _Kept) -> _Kept:
        """Return what stays now: the same as before, with its calls, where only the coefficients of laws have changed."""
        bound, sections = self.particles.bound, self.course.sections
        if before is None:
            return now
        if (before.inner, before.local) != (now.inner, now.local):
            for section in sections:
                bound.pop((section, before), None)
            return now
        before.laws = now.laws
        for call in (call for section in sections for call in bound.get((section, before), ()) if call is not None):
            call.take(now.laws)
        return before

    def _keeps(self, marked: bool) -> _Kept:
        particles, rows = self.particles, 0
        inner: list[str] = []
        local: list[str] = []
        fits = self.grid is not None and self.grid.generation == particles.generation
        for name, readers in self.loop.readers.items():
            rows += particles.table[name].rows
            if not fits or rows > LOCAL_ROWS or particles.table[name].kind != "real":
                break
            inner.append(name)
            together = sum(name in section.touched for section in self.course.sections) == 1
            if together and not self.keep and not any(self._needs(reader, name, marked) for reader in readers):
                local.append(name)
        return _Kept(tuple(inner), frozenset(local), particles.laws)

    def _needs(self, reader: PlannedStage, name: str, marked: bool) -> bool:
        """Whether a stage outside depends on what an attribute holds after this loop."""
        fragments = fragments_of(reader)
        if ("particles", name) in reader.for_limits:
            return True
        if ("particles", name) in reader.on_request and not any(isinstance(f, Measure) for f in fragments):
            return False
        measured = self.loop.measured
        if measured is not None and reader is measured.stage:
            return measured.others_remove or marked
        if not fragments or not all(isinstance(f, LOOPS) for f in fragments):
            return True
        for material, _ in self.particles.runs():
            law = material.loops.law
            for fragment in fragments:
                if fragment.fits(law) and name in fragment.names_read:
                    if fragment.counts is None or fragment.counts(material, name):
                        return True
        return False

    # ---------------------------------------------------------------- composed loops
    def _calls(self, section: Section, kept: _Kept) -> list[Call | None]:
        """Return the call of each material's loop, or the one for all particles; None where nothing fits a law."""
        calls = self.particles.bound.get((section, kept))
        if calls is None:
            calls = self.particles.bound[section, kept] = list(self._bound(section, kept))
        return calls

    def _bound(self, section: Section, kept: _Kept) -> Iterator[Call | None]:
        loop, particles = self.loop, self.particles
        by_law = loop.measured is not None or self.course.by_law
        largest = None if particles.residency is None else LargestValues(particles.residency)
        for material, segments in particles.runs() if by_law else ((None, particles.ranges),):
            law = material.loops.law if material is not None else None
            fitting = section.fitting(law)
            if not fitting:
                yield None
                continue
            law = law if section.of_law else None
            stores, fold = (particles, self.grid), self.course.fold
            if largest is not None:
                try:
                    yield DeviceCall(law, fitting, material, segments, stores, kept.local, fold, largest)
                    continue
                except (CompositionError, TraceError):
                    pass  # it runs on the CPU; `explain` says why
            composed = loop.composed(law, [part.fragment for part in fitting], particles.table, kept.inner, fold)
            call = bind(composed, fitting, material, segments, stores, kept.local)
            yield call if particles.residency is None else HostCall(particles.residency, composed.source, call, stores)
