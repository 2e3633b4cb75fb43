"""Stages that bring fragments at work: one loop for as many of them as follow each other, or for one alone.

A `SharedLoop` knows no stage by name. It takes fragments in order, has the kernel composed for each material's law, gives it the
arrays that it asks for, and does around the loop what the fragments declare: clears what is scattered to, marks particles that go,
deletes them, hands reductions to who wants them. Attributes that nobody reads afterwards stay in a scratch of each thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.graph.fusion import StageRun, arguments_of, fragments_of
from mpm_nodes.graph.substeps import PlannedStage, SubstepPlan
from mpm_nodes.kernels.composition.fragments import (
    STATE,
    Fragment,
    Idle,
    Lanes,
    Measure,
    Nodes,
    Removal,
    Run,
    Scatter,
)
from mpm_nodes.kernels.composition.generated import ComposedLoop, composed_loop
from mpm_nodes.kernels.composition.source import LOCAL_ROWS, Fold, Source, source_of

__all__ = ["SharedLoop", "alone", "shared_loop"]

LOOPS = (Lanes, Run, Scatter)


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
    loop = _ALONE.get(declaration.function)
    if loop is None:
        nothing = frozenset[Any]()
        planned = PlannedStage(declaration.id, declaration, declaration.function, declaration.arguments, {}, {}, nothing, nothing)
        loop = _ALONE[declaration.function] = SharedLoop((planned,))
    loop.run(dict(zip(declaration.arguments, given, strict=True)), {declaration.id: knobs})


_ALONE: dict[Any, SharedLoop] = {}


# ---------------------------------------------------------------- what the rest of a plan asks for
@dataclass(frozen=True)
class _Measured:
    """The measure that a loop takes on the way, the stage that wants it, and the member behind which it stands.

    Particles that go take it with them: it is measured anew then, also where a stage outside the loop removes them.
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
    """Return who reads an attribute that the run writes anew, before it is written anew: later in this substep or in the next."""
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
            can = isinstance(fragment, Lanes) or f"{name}_stride" in fragment.parameters
            if name not in read and name not in born and name != STATE and can:
                born.append(name)
    return born


# ---------------------------------------------------------------- one substep
@dataclass
class _Section:
    """Fragments of one loop, with the stage of each, and the stage that has something to do behind it."""

    parts: list[tuple[PlannedStage, Fragment]] = field(default_factory=list)
    busy: PlannedStage | None = None

    @functools.cached_property
    def loops(self) -> list[tuple[PlannedStage, Fragment]]:
        """What the kernel is composed of."""
        return [part for part in self.parts if isinstance(part[1], LOOPS)]

    @functools.cached_property
    def of_law(self) -> bool:
        """Whether the kernel depends on the law."""
        return any(f.of_law for _, f in self.loops)

    @functools.cached_property
    def by_law(self) -> bool:
        """Whether the particles of each material have a loop of their own."""
        return any(f.of_law or f.needs or f.lacks for _, f in self.loops)

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """Attributes that are written."""
        return frozenset(name for _, f in self.parts for name in getattr(f, "writes", ()))

    @functools.cached_property
    def touched(self) -> frozenset[str]:
        """Attributes that are read or written."""
        return self.written.union(*(f.names_read for _, f in self.parts))

    @functools.cached_property
    def chosen(self) -> dict[str | None, list[tuple[PlannedStage, Fragment]]]:
        """What fits each law, by its id."""
        return {}

    def fitting(self, law: Any) -> list[tuple[PlannedStage, Fragment]]:
        """Return what fits a law; everything where particles of all laws share the loop."""
        key = None if law is None else law.id
        if key not in self.chosen:
            self.chosen[key] = [part for part in self.loops if law is None or part[1].fits(law)]
        return self.chosen[key]


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
        self._sections: dict[Any, list[_Section]] = {}

    def __call__(self, *given: Any, knobs: Mapping[str, Mapping[str, Any]]) -> None:
        self.run(dict(zip(self.arguments, given, strict=True)), knobs)

    def run(self, given: Mapping[str, Any], knobs: Mapping[str, Mapping[str, Any]]) -> None:
        """Run the stages on domains by name, with the knobs of each by its id."""
        _Substep(self, given, knobs).run()

    def fragments(self, member: PlannedStage, knobs: Mapping[str, Any]) -> tuple[Fragment, ...]:
        """Return the fragments of a stage; equal knobs give the same objects."""
        made = member.declaration.fragments
        key = (member.id, *(knobs[name] for name in sorted(knobs))) if callable(made) else member.id
        if key not in self._fragments:
            self._fragments[key] = member.declaration.fragments_for(knobs)
        return self._fragments[key]

    def source(self, law: Any, table: Mapping[str, Any]) -> Source:
        """Return the source of the loop for one law, with the knobs of the plan and nothing to do for stages that can be idle."""
        fragments: list[Fragment] = []
        for member in self.members:
            fragments += [f for f in fragments_of(member) if isinstance(f, LOOPS)]
            if self.measured is not None and self.measured.behind == member.id:
                fragments.append(self.measured.measure.lanes)
        fold = next((Fold(f.source, f.into, f.factor) for f in _fragments(self.members) if isinstance(f, Nodes)), None)
        fitting = [fragment for fragment in fragments if fragment.fits(law)]
        return source_of(law if any(f.of_law for f in fitting) else None, fitting, table, tuple(self.readers), fold)

    def composed(
        self, law: Any, fragments: Sequence[Fragment], table: Any, inner: tuple[str, ...], fold: Fold | None
    ) -> ComposedLoop:
        """Return the composed loop of a section."""
        key = (law and law.id, *map(id, fragments), inner)
        if key not in self._loops:
            self._loops[key] = composed_loop(law, fragments, table, inner, fold)
        return self._loops[key]


class _Substep:
    """A shared loop in one substep."""

    def __init__(self, loop: SharedLoop, given: Mapping[str, Any], knobs: Mapping[str, Mapping[str, Any]]) -> None:
        self.loop, self.given, self.knobs = loop, given, knobs
        self.particles, self.grid, self.step = (given.get(name) for name in ("particles", "grid", "step"))
        self.sections = self._sections()
        self.marks: dict[int, np.ndarray] = {}
        self.found: list[dict[str, float]] = []

    def _sections(self) -> list[_Section]:
        """Return the parts between stages that have something to do; those of equal fragments are made once."""
        brought = [self.loop.fragments(member, self.knobs[member.id]) for member in self.loop.members]
        busy = [
            isinstance(fragment, Idle) and not fragment.idle(*(self.given[name] for name in member.arguments))
            for member, fragments in zip(self.loop.members, brought, strict=True)
            for fragment in fragments
        ]
        key = (*map(id, brought), *busy)
        if key not in self.loop._sections:
            self.loop._sections[key] = self._parted(brought, iter(busy))
        return self.loop._sections[key]

    def _parted(self, brought: Sequence[tuple[Fragment, ...]], busy: Iterator[bool]) -> list[_Section]:
        sections = [_Section()]
        measured = self.loop.measured
        for member, fragments in zip(self.loop.members, brought, strict=True):
            for fragment in fragments:
                has_work = next(busy)
                if not isinstance(fragment, Idle):
                    sections[-1].parts.append((member, fragment))
                elif has_work:
                    sections[-1].busy = member
                    sections.append(_Section())
            if measured is not None and measured.behind == member.id:
                sections[-1].parts.append((measured.stage, measured.measure.lanes))
        return sections

    def run(self) -> None:
        parts = [part for section in self.sections for part in section.parts]
        fold = next((Fold(f.source, f.into, f.factor) for _, f in parts if isinstance(f, Nodes)), None)
        for array in dict.fromkeys(name for _, f in parts for name in getattr(f, "clears", ())):
            if fold is None or array != fold.source:
                self.grid.clear(array)
        if self.particles is not None and self.particles.count:
            self._with_particles(fold)
        for _, fragment in parts:
            if isinstance(fragment, Nodes):
                fragment.update(self.grid, self.step)

    def _with_particles(self, fold: Fold | None) -> None:
        particles, step, count = self.particles, self.step, self.particles.count
        for section in self.sections:
            for member, fragment in section.parts:
                if isinstance(fragment, Removal):
                    self.marks[id(fragment)] = fragment.mark(particles, step, **self.knobs[member.id])
        inner, local = self._inner()
        for section in self.sections:
            self._loop(section, inner, local, fold)
            for member, fragment in section.parts:
                if isinstance(fragment, Removal):
                    fragment.remove(particles, step, self.marks[id(fragment)])
                elif fragment.finish is not None:
                    names = getattr(fragment, "largest", ())
                    largest = {name: max(row[name] for row in self.found) for name in names if self.found}
                    fragment.finish(particles, step, largest, **self.knobs[member.id])
            if section.busy is not None:
                busy = section.busy
                busy.function(*(self.given[name] for name in busy.arguments), **self.knobs[busy.id])
        if self.loop.measured is not None and particles.count == count:
            self.loop.measured.measure.keep(particles, self.found)

    # ---------------------------------------------------------------- what stays in the scratch
    def _inner(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return the attributes that can stay in the scratch of each thread, and those that do; and note what is stale."""
        particles, rows, inner, local = self.particles, 0, [], []
        fits = self.grid is not None and self.grid.generation == particles.generation
        for name, readers in self.loop.readers.items():
            rows += particles.table[name].rows
            if not fits or rows > LOCAL_ROWS or particles.table[name].kind != "real":
                break
            inner.append(name)
            together = sum(name in section.touched for section in self.sections) == 1
            if together and not self.step.keep and not any(self._needs(reader, name) for reader in readers):
                local.append(name)
        for section in self.sections:
            particles.stale.difference_update(section.written)
        particles.stale.update(local)
        return tuple(inner), frozenset(local)

    def _needs(self, reader: PlannedStage, name: str) -> bool:
        """Whether a stage outside depends on what an attribute holds after this loop."""
        fragments = fragments_of(reader)
        if ("particles", name) in reader.for_limits:
            return True
        if ("particles", name) in reader.on_request and not any(isinstance(f, Measure) for f in fragments):
            return False
        measured = self.loop.measured
        if measured is not None and reader is measured.stage:
            return measured.others_remove or any(mark.any() for mark in self.marks.values())
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
    def _loop(self, section: _Section, inner: tuple[str, ...], local: frozenset[str], fold: Fold | None) -> None:
        if not section.loops:
            return
        by_law = self.loop.measured is not None or any(each.by_law for each in self.sections)
        found = []
        for material, segments in self.particles.runs() if by_law else ((None, self.particles.ranges),):
            law = material.loops.law if material is not None else None
            fitting = section.fitting(law)
            if not fitting:
                found.append({})
                continue
            composed = self.loop.composed(
                law if section.of_law else None, [f for _, f in fitting], self.particles.table, inner, fold
            )
            given, reductions = self._arguments(composed, fitting, material, segments, local)
            composed(given)
            found.append({name: float(rows[:, k].max()) for names, rows in reductions for k, name in enumerate(names)})
        if self.found:
            found = [{**before, **now} for before, now in zip(self.found, found, strict=True)]
        self.found = found

    def _arguments(
        self,
        composed: ComposedLoop,
        parts: Sequence[tuple[PlannedStage, Fragment]],
        material: Any,
        segments: np.ndarray,
        local: frozenset[str],
    ) -> tuple[dict[str, Any], list[tuple[tuple[str, ...], np.ndarray]]]:
        """Return what a composed loop asks for by name, and the reductions that it fills."""
        particles, grid, source = self.particles, self.grid, composed.source
        given = self._plain(material, segments, transfers=not {"tile_slot", "scratch"}.isdisjoint(source.names))
        for name in source.names:
            if name in given:
                continue
            column = source.columns.get(name)
            if column in local:
                given[name] = grid.local
            elif name == "stiffness_scale":
                given[name] = particles.optional(name)
            elif column is not None:
                given[name] = particles.array(column)
            elif name.startswith("grid_"):
                given[name] = grid.array(name.removeprefix("grid_"))
            elif name.endswith("_local"):
                given[name] = grid.local_stride if source.columns.get(name.removesuffix("_local")) in local else 0
        reductions = []
        for place, (member, fragment) in enumerate(parts):
            if place in source.largest:
                rows = np.empty((len(segments), len(fragment.largest)))  # type: ignore[attr-defined]
                given[source.largest[place]] = rows
                reductions.append((fragment.largest, rows))  # type: ignore[attr-defined]
            if isinstance(fragment, Scatter):
                given[f"stencil{len(fragment.stencil)}"] = fragment.stencil
            if source.given[place]:
                knobs = self.knobs.get(member.id, {})
                own = fragment.arguments(material, particles, self.step, **knobs) if fragment.arguments is not None else knobs
                given.update({unique: own[name] for name, unique in source.given[place].items()})
        return given, reductions

    def _plain(self, material: Any, segments: np.ndarray, transfers: bool) -> dict[str, Any]:
        particles, grid = self.particles, self.grid
        given: dict[str, Any] = {
            "segments": segments,
            "offset": particles.offset,
            "stride": particles.stride,
            "shift": particles.shift,
            "unit": particles.unit,
            "inverse_unit": 1.0 / particles.unit,
            "cell_size": particles.h,
        }
        if self.step is not None:
            given["dt"] = self.step.dt
        if material is not None:
            given["coefficients"] = material.coefficients
        if transfers:
            names = ("segments", "colour_start", "colour_range", "tile_slot", "scratch", "base")
            given.update(zip(names, grid.scatter_tables(None if material is None else material.index), strict=True))
        return given
