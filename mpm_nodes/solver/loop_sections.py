"""The parts of a shared loop: fragments that one composed loop takes, and that loop bound to the arrays of a solve.

What a loop is given hardly changes from substep to substep: arrays, tables and numbers stay where they are until particles are
sorted, come or go. So its arguments are put together once (`bind`) and kept by the particle store for as long; a substep fills in
what its fragments compute for it, and dt.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.graph.plan.substeps import PlannedStage
from mpm_nodes.kernels.composition.fragments import Fragment, Gather, Lanes, Nodes, Removal, Run, Scatter
from mpm_nodes.kernels.composition.generated import ComposedLoop
from mpm_nodes.kernels.composition.lane_loop import FACTORS
from mpm_nodes.kernels.composition.source import Fold

__all__ = ["LOOPS", "BoundCall", "Course", "Section", "StageFragment", "bind", "lasting_arguments"]

LOOPS = (Lanes, Run, Gather, Scatter)
"""Fragments that a loop is composed of."""


class StageFragment(NamedTuple):
    """A fragment and the stage that brings it."""

    member: PlannedStage
    fragment: Any


@dataclass(eq=False)
class Section:
    """Fragments of one loop, and the stage that has something to do behind it."""

    parts: list[StageFragment] = field(default_factory=list)
    busy: PlannedStage | None = None

    @functools.cached_property
    def loops(self) -> list[StageFragment]:
        """What the loop is composed of."""
        return [part for part in self.parts if isinstance(part.fragment, LOOPS)]

    @functools.cached_property
    def of_law(self) -> bool:
        """Whether the loop depends on the law."""
        return any(part.fragment.of_law for part in self.loops)

    @functools.cached_property
    def by_law(self) -> bool:
        """Whether the particles of each material have a loop of their own."""
        return any(part.fragment.of_law or part.fragment.needs or part.fragment.lacks for part in self.loops)

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """Attributes that are written."""
        return frozenset(name for part in self.parts for name in getattr(part.fragment, "writes", ()))

    @functools.cached_property
    def touched(self) -> frozenset[str]:
        """Attributes that are read or written."""
        return self.written.union(*(part.fragment.names_read for part in self.parts))

    @functools.cached_property
    def ends(self) -> list[StageFragment]:
        """Fragments that have something to do behind the loop."""
        return [part for part in self.parts if isinstance(part.fragment, Removal) or part.fragment.finish is not None]

    def fitting(self, law: Any) -> list[StageFragment]:
        """Return what fits a law; everything where particles of all laws share the loop."""
        return [part for part in self.loops if law is None or part.fragment.fits(law)]


@dataclass(eq=False)
class Course:
    """All that a shared loop does in a substep, with its knobs and its idle stages as they are."""

    sections: list[Section]

    @functools.cached_property
    def fragments(self) -> list[Fragment]:
        """All fragments, in order."""
        return [part.fragment for section in self.sections for part in section.parts]

    @functools.cached_property
    def fold(self) -> Fold | None:
        """Where scatters go that are not to have a grid array of their own."""
        return next((Fold(f.source, f.into, f.factor) for f in self.updates), None)

    @functools.cached_property
    def clears(self) -> tuple[str, ...]:
        """Grid arrays that are zero before."""
        names = dict.fromkeys(name for f in self.fragments for name in getattr(f, "clears", ()))
        return tuple(name for name in names if self.fold is None or name != self.fold.source)

    @functools.cached_property
    def scatters(self) -> tuple[str, ...]:
        """Grid arrays that are added to."""
        names = dict.fromkeys(name for f in self.fragments for name in sorted(getattr(f, "scatters", ())))
        return tuple(name for name in names if self.fold is None or name != self.fold.source)

    @functools.cached_property
    def adds(self) -> tuple[str, ...]:
        """Those of them that hold something before."""
        return tuple(name for name in self.scatters if name not in self.clears)

    @functools.cached_property
    def updates(self) -> tuple[Nodes, ...]:
        """Updates of grid nodes behind the loop."""
        return tuple(f for f in self.fragments if isinstance(f, Nodes))

    @functools.cached_property
    def removals(self) -> list[StageFragment]:
        """Choices of particles that go."""
        return [part for section in self.sections for part in section.parts if isinstance(part.fragment, Removal)]

    @functools.cached_property
    def by_law(self) -> bool:
        """Whether the particles of each material have loops of their own."""
        return any(section.by_law for section in self.sections)

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """Attributes that are written."""
        return frozenset().union(*(section.written for section in self.sections))


# ---------------------------------------------------------------- a loop and its arguments
class _Own(NamedTuple):
    """What one fragment asks for besides arrays: places of its values among the arguments, by their names."""

    part: StageFragment
    places: tuple[tuple[str, int], ...]


class BoundCall:
    """A composed loop with its arguments, for as long as the arrays lie where they are.

    Args:
        composed: The loop.
        parts: What it is composed of.
        material: The material whose particles it is for, or None for those of all.
        given: Arguments that stay, by name.
    """

    def __init__(
        self, composed: ComposedLoop, parts: Sequence[StageFragment], material: Any, given: dict[str, Any], rows: int
    ) -> None:
        source, self.run, self.material = composed.source, composed.run, material
        place = {name: index for index, name in enumerate(source.names)}
        self.reductions = []
        for found, kind, reduce in ((source.largest, "largest", np.maximum), (source.sums, "sums", np.add)):
            for index, name in found.items():
                names = getattr(parts[index].fragment, kind)
                given[name] = np.empty((rows, len(names)))
                self.reductions.append((names, given[name], reduce))
        self.dt, self.coefficients = place.get("dt"), place.get("coefficients")
        self.own = [
            _Own(part, tuple((name, place[unique]) for name, unique in source.given[index].items() if unique in place))
            for index, part in enumerate(parts)
            if source.given[index]
        ]
        self.arguments = [given.get(name) for name in source.names]

    def take(self, laws: Sequence[Any]) -> None:
        """Take the coefficients of a substep from those of all materials."""
        if self.material is not None:
            self.material = laws[self.material.index]
            if self.coefficients is not None:
                self.arguments[self.coefficients] = self.material.coefficients

    def __call__(self, particles: Any, step: Any, knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Run the loop in a substep; returns its reductions by name."""
        arguments = self.arguments
        if self.dt is not None:
            arguments[self.dt] = step.dt
        for (member, fragment), places in self.own:
            values = knobs.get(member.id, {})
            if fragment.arguments is not None:
                values = fragment.arguments(self.material, particles, step, **values)
            for name, place in places:
                arguments[place] = values[name]
        self.run(*arguments)
        found: dict[str, float] = {}
        for names, rows, reduce in self.reductions:
            found.update(zip(names, reduce.reduce(rows).tolist(), strict=True))
        return found


def bind(
    composed: ComposedLoop,
    parts: Sequence[StageFragment],
    material: Any,
    segments: np.ndarray,
    stores: tuple[Any, Any],
    local: frozenset[str],
) -> BoundCall:
    """Return a loop with the arguments that stay from substep to substep.

    Args:
        composed: The loop.
        parts: What it is composed of.
        material: The material whose particles it is for, or None for those of all.
        segments: Their (begin, end, block) runs.
        stores: Particles and grid.
        local: Attributes that stay in the scratch of each thread.
    """
    given = lasting_arguments(composed, material, segments, stores, local)
    given |= {f"stencil{len(p.fragment.stencil)}": p.fragment.stencil for p in parts if isinstance(p.fragment, (Gather, Scatter))}
    return BoundCall(composed, parts, material, given, len(segments))


def lasting_arguments(
    composed: ComposedLoop,
    material: Any,
    segments: np.ndarray,
    stores: tuple[Any, Any],
    local: frozenset[str],
    known: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what a loop asks for that does not depend on its fragments, by name: arrays, runs, tables and coefficients.

    Args are those of `bind`, and:
        known: Arguments that the caller has; they come before others of the same name.
    """
    plain = _plain(material, segments, stores, transfers=not {"tile_slot", "scratch"}.isdisjoint(composed.source.names))
    plain.update(known)
    return dict(_arrays(composed, stores, local, plain)) | plain


def _arrays(
    composed: ComposedLoop, stores: tuple[Any, Any], local: frozenset[str], known: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield names and rows of the attributes and grid arrays that a loop asks for, but of those that are known."""
    (particles, grid), columns = stores, composed.source.columns
    for name in composed.source.names:
        column = columns.get(name)
        if name in known:
            continue
        if column in local:
            yield name, grid.local
        elif name in FACTORS:
            yield name, particles.optional(name)
        elif column is not None:
            yield name, particles.array(column)
        elif name.startswith("grid_"):
            yield name, grid.array(name.removeprefix("grid_"))
        elif name.endswith("_local"):
            yield name, grid.local_stride if columns.get(name.removesuffix("_local")) in local else 0


def _plain(material: Any, segments: np.ndarray, stores: tuple[Any, Any], transfers: bool) -> dict[str, Any]:
    """Return what does not depend on the fragments: runs, geometry, tables and the coefficients of the law."""
    particles, grid = stores
    given: dict[str, Any] = {
        "segments": segments,
        "offset": particles.offset,
        "stride": particles.stride,
        "shift": particles.shift,
        "unit": particles.unit,
        "inverse_unit": 1.0 / particles.unit,
        "cell_size": particles.h,
    }
    if material is not None:
        given["coefficients"] = material.coefficients
    if transfers:
        place = None if material is None else material.index
        tables = grid.scatter_tables(place)._asdict() | grid.gather_tables(place)._asdict()
        given |= {"segments": tables.pop("runs"), **tables}
    return given
