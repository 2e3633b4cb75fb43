"""Fragments: what a stage does to the particles of one block, so that neighbouring stages can share one loop over the blocks.

A fragment holds a function that numba compiles and says what the function writes. What it reads stands in its signature:

| parameter | what is given |
|---|---|
| name of a particle attribute | its values for a group of particles, a tuple if it has several rows (`Lanes`); its rows (`Run`) |
| `law`, `state` | module of the particles' law, and a tuple of one entry per name in its STATE |
| `coefficients`, `bare_coefficients` | its coefficients, with and without the particles' `stiffness_scale` |
| `dt`, `material_viscosity` | step [s], viscosity of the material itself [Pa s] |
| any other name | a knob of the stage, or what `arguments` returns |

Numbers that are not attributes are the same in all lanes; where they are annotated as `bool`, `int` or `float` they are given as
they are, and may be branched by.

Which stages follow each other is nobody's business here: `source` writes one kernel for any list of fragments.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

__all__ = [
    "Ahead",
    "Fragment",
    "Gather",
    "Idle",
    "Lanes",
    "Measure",
    "Nodes",
    "OnDevice",
    "OwnLoops",
    "Removal",
    "Rounds",
    "Run",
    "Scatter",
]

STATE = "state"
SCALED, BARE, VISCOSITY = "coefficients", "bare_coefficients", "material_viscosity"
OF_LAW = frozenset(("law", STATE, SCALED, BARE, VISCOSITY))
"""Parameters that only a law can fill."""


class Ahead(NamedTuple):
    """What a stage says of the substeps to come of a solve on a device.

    Attributes:
        because: Why they run one at a time; "": they need not.
        seconds: Simulated seconds for which it has nothing to do.
        launches: Whether it launches kernels in each of them, and does nothing else. Else it is called behind each, to count them.
    """

    because: str = ""
    seconds: float = math.inf
    launches: bool = False


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """What all forms have in common.

    Attributes:
        arguments: Called as arguments(law, particles, step, **knobs) before the loop of every material; returns what parameters
            that are neither attributes nor names of the table above are. None: the knobs.
        finish: Called as finish(particles, step, found, **knobs) after the loop, with the largest values and sums by name.
        needs: Functions of a law without which the fragment leaves its particles alone.
        lacks: Functions that the law must not have: for the other form of a fragment with `needs`.
        switch: Name of an argument; the fragment is passed over where that is not above 0.
        late: Whether `finish` may come when further substeps have run.
        counts: Called as counts(law, name) with a material of the solve: whether the value that the attribute had before can change
            what the fragment does. None: always.
    """

    joins: ClassVar[bool] = True
    """Whether it can share a loop."""

    arguments: Callable[..., Mapping[str, Any]] | None = None
    finish: Callable[..., None] | None = None
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    switch: str = ""
    late: bool = False
    counts: Callable[[Any, str], bool] | None = None

    @property
    def label(self) -> str:
        """What it is called in the title of a loop: by its body, in words."""
        return self.body.__name__.strip("_").replace("_", " ")  # type: ignore[attr-defined]

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of what is compiled."""
        return {}

    @functools.cached_property
    def of_law(self) -> bool:
        """Whether it depends on the law of the particles."""
        return bool(OF_LAW & self.parameters.keys() or self.switch == VISCOSITY)

    @functools.cached_property
    def names_read(self) -> frozenset[str]:
        """What of its parameters is read: attributes, and "state" (others are among them too)."""
        return frozenset(self.parameters)

    def fits(self, law: Any) -> bool:
        """Whether a law has what it needs, and lacks what it must lack; everything fits where there is no law."""
        if law is None:
            return not (self.needs or self.lacks)
        has = {name for name in (*self.needs, *self.lacks) if law.function(name) is not None}
        return has == set(self.needs)


def _parameters(*functions: Callable[..., Any] | None) -> Mapping[str, inspect.Parameter]:
    return {name: p for function in functions if function is not None for name, p in inspect.signature(function).parameters.items()}


@dataclass(frozen=True)
class Lanes(Fragment):
    """A function on the values of a group of particles, one lane each; on values of one where lanes are numbers.

    Attributes:
        body: Returns what is written, in the order of `writes`, and then what `largest` names; a tuple where that is more than one.
        writes: Attributes written, or "state".
        largest: Names of numbers >= 0 whose largest value over the particles is wanted; what is not a number counts as infinite.
        guard: Function like `body` that returns a mask: groups of particles of which none needs the body are passed over.
        sums: Names of numbers, behind those of `largest`, whose sum over the particles is wanted, in double precision.
        precise: Whether the body gets its values in double precision, whatever the solve's float type is; it writes nothing then.
    """

    body: Callable[..., Any]
    writes: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    guard: Callable[..., Any] | None = None
    sums: tuple[str, ...] = ()
    precise: bool = False

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of guard and body."""
        return _parameters(self.guard, self.body)


@dataclass(frozen=True, kw_only=True)
class Rounds(Lanes):
    """A function that is called for one row of a table after another, and what takes the values of all rows together.

    Attributes:
        body: Returns a tuple of as many numbers as a row of the table has.
        table: Name of its parameter that is given the rows, which is that of an argument as well: the rows, one behind another.
        rows: Number of rows.
        columns: Length of a row.
        taker: Called behind the last round with parameters as those of a `Run`, and `values, begin, end`: value c of row r
            of particle `begin` + k is values[WIDTH * (columns * r + c) + k], for particles up to `end` - 1.
        scatters: Grid arrays that the taker adds to.
    """

    table: str
    rows: int
    columns: int
    taker: Callable[..., Any]
    scatters: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Run(Fragment):
    """A function on the rows of the particles `start` .. `end` - 1 of one block, which loops over them itself.

    It may ask for `start, end, ahead, block, following, row`, for where the particles are (`placement`, a `Placement` of
    `transfers.places`), for the scratch of its thread (`block_work`, a `BlockWork`), for `tile_slot`, and for a grid array by its
    name with "grid_" before it. An attribute in `writes` that only lives inside the loop has its own `<name>_stride` and
    `<name>_shift`.

    Attributes:
        body: Returns nothing.
        writes: Attributes written.
        reads: Those among them whose old values it reads.
        largest: Names of the columns of `largest`, of which it fills row `row`.
        gathers: Grid arrays that it reads.
        scatters: Grid arrays that it adds to.
        device: Function of `kernels.cuda` that does the same to one particle on a GPU; "": it has no form there.
    """

    body: Callable[..., Any]
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    gathers: frozenset[str] = frozenset()
    scatters: frozenset[str] = frozenset()
    device: str = ""

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the body."""
        return _parameters(self.body)

    @functools.cached_property
    def names_read(self) -> frozenset[str]:
        """Attributes that it reads; what it writes alone is not among them."""
        return frozenset({*self.parameters} - {*self.writes} | {*self.reads})


@dataclass(frozen=True)
class Gather(Fragment):
    """What particles take from a grid array: values, their affine parts, and their gradient.

    Attributes:
        source: The grid array.
        values: Attribute that takes the values, or "".
        affine: Attribute that takes the affine parts, or "".
        gradient: Attribute that takes the gradient.
        stencil: Stencil of the B-spline.
        before: Grid array with momentum and mass as they were: the particles' own values get the change since then; or "".
        flip: With `before`, name of the number that says which share of the own values stays.
    """

    source: str
    gradient: str
    values: str = ""
    affine: str = ""
    stencil: tuple[int, ...] = (0, 0, 0)
    before: str = ""
    flip: str = ""

    @property
    def label(self) -> str:
        """What it does, and to which array."""
        return f"gather {self.source}"

    @functools.cached_property
    def writes(self) -> tuple[str, ...]:
        """Attributes that it writes."""
        return tuple(name for name in (self.values, self.affine, self.gradient) if name)

    @functools.cached_property
    def names_read(self) -> frozenset[str]:
        """Attributes of which the old values count."""
        return frozenset([self.values] if self.before else [])

    @functools.cached_property
    def gathers(self) -> frozenset[str]:
        """Grid fields that it reads."""
        return frozenset([self.source, *([self.before, "mass"] if self.before else [])])


@dataclass(frozen=True)
class Scatter(Fragment):
    """What particles add to a grid array: momentum with mass, or the force of a stress. Those with one target become one scatter.

    Attributes:
        target: The grid array.
        gives: Attributes, under the names that `scatter_run` has for them.
        stencil: Stencil of the B-spline.
        clears: Grid arrays that are zero before.
        stress: The attribute that stands for "stress" among `gives`: six rows of a symmetric matrix, or nine.
        factors: Names of numbers that the stress is multiplied by besides 1/h.
        negated: Whether it changes its sign as well: a stress pulls its particle's nodes together.
    """

    target: str
    gives: tuple[str, ...]
    stencil: tuple[int, ...] = (0, 0, 0)
    clears: tuple[str, ...] = ()
    stress: str = "stress"
    factors: tuple[str, ...] = ()
    negated: bool = True

    @property
    def label(self) -> str:
        """What it does, and to which array."""
        return f"scatter {self.target}"

    @functools.cached_property
    def scatters(self) -> frozenset[str]:
        """Grid arrays that it adds to."""
        return frozenset([self.target])

    @functools.cached_property
    def names_read(self) -> frozenset[str]:
        """Attributes that it reads."""
        return frozenset(self.stress if name == "stress" else name for name in self.gives)


@dataclass(frozen=True)
class Nodes(Fragment):
    """An update of grid nodes that can do without one of its arrays: what is added to `source` may be added to `into` instead.

    Attributes:
        source: Grid array that nobody needs then.
        into: Grid array that takes its place; it is left in another state.
        factor: Name of the number that what would go to `source` is multiplied by.
        update: Called as update(grid, step) after the loop.
        on_device: Called as on_device(residency, grid, step) instead where the grid is on a device; None: `update` runs on the CPU.
    """

    source: str
    into: str
    factor: str
    update: Callable[..., None]
    on_device: Callable[..., None] | None = None


@dataclass(frozen=True)
class Removal(Fragment):
    """The choice of particles that go. It is made before the loop; they are deleted after it and have no part in what others do.

    Attributes:
        mark: Called as mark(particles, step, **knobs): returns a mask.
        remove: Called as remove(particles, step, mask).
        reads: Attributes by which `mark` chooses.
    """

    mark: Callable[..., Any]
    remove: Callable[..., None]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Idle(Fragment):
    """A stage without a loop that often has nothing to do: the loop goes past it then, and is cut in two there otherwise.

    Attributes:
        idle: Called with the stage's own arguments before the *; the stage is called where it returns False.
        but: Where it has kernels of its own for devices, what of it runs on the CPU all the same, in words.
        ahead: As in `OnDevice`; called with the stage's arguments alone.
        alone: As in `OnDevice`.
    """

    idle: Callable[..., bool]
    but: str = ""
    ahead: Callable[..., Ahead] | None = None
    alone: str = ""


@dataclass(frozen=True)
class Measure(Fragment):
    """Numbers that a stage wants of the particles as they are before it. The loop that writes them last measures them on the way.

    Attributes:
        lanes: What is measured.
        takes: Names of further reductions, which other fragments of that loop have.
        keep: Called as keep(particles, found): a dictionary of reductions for every material that has particles.
    """

    joins: ClassVar[bool] = False

    lanes: Lanes
    takes: tuple[str, ...]
    keep: Callable[..., None]


@dataclass(frozen=True)
class OnDevice(Fragment):
    """Says that a stage has kernels of its own for devices.

    Attributes:
        but: What of it runs on the CPU all the same, in words.
        ahead: Called with the arguments and knobs of the stage: what the next substeps need. None: each needs the CPU.
        alone: For what substeps run one at a time, in words.
    """

    joins: ClassVar[bool] = False

    but: str
    ahead: Callable[..., Ahead] | None = None
    alone: str = ""


@dataclass(frozen=True)
class OwnLoops(Fragment):
    """Loops that a stage runs when others ask for it, each composed of fragments: they are not part of the plan's loops.

    Attributes:
        lists: Name of each and its fragments.
    """

    joins: ClassVar[bool] = False

    lists: tuple[tuple[str, tuple[Fragment, ...]], ...]
