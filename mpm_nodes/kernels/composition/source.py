"""One kernel for a list of fragments: the source of a loop over blocks that calls them one after another on each block.

What is read is loaded, what is written is stored; attributes that only live inside the loop take rows of a scratch of each thread
(`local`) instead of their own where the caller says so. Rows of the next block are fetched on the way: blocks of one colour do not
follow each other in memory, and dozens of rows are more than the hardware follows by itself.

Layout: an attribute of r rows is a flat array, row k at [k * stride : k * stride + count]. A segment is a half-open range
[start, end) of particles of one material in one block, a row (start, end, block) of `segments`, int64. Lanes beyond the end of a
segment are computed and thrown away: no value outside is written, but up to 15 elements behind a row's last segment are read, so
every row needs that much room (stride >= last end + 15).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.data import ATTRIBUTES, MpmNodesError
from mpm_nodes.kernels.composition.backends import CPU, Backend
from mpm_nodes.kernels.composition.fragments import STATE, VISCOSITY, Fragment, Gather, Lanes, Rounds, Run, Scatter
from mpm_nodes.kernels.composition.lane_loop import LaneLoop
from mpm_nodes.kernels.composition.module import label_of, module_of
from mpm_nodes.kernels.composition.text import call

__all__ = ["LOCAL_ROWS", "CompositionError", "Fold", "Source", "column_name", "source_of"]

LOCAL_ROWS = 16
"""Rows of the scratch of each thread: a velocity gradient and a stress."""

_GEOMETRY = ("offset", "stride", "shift", "inverse_unit", "unit", "cell_size")
_TABLES = ("segments", "tile_slot", "scratch", "base")
_IN_BLOCK = {
    "row": "row",
    "start": "start",
    "end": "end",
    "ahead": "ahead",
    "block": "segments[row, 2]",
    "following": "segments[next_row, 2]",
    "at": "thread * SCRATCH",
    "base_at": "64 * thread",
}
"""What a `Run` may ask for besides arguments of the kernel."""
_MADE = ("placement", "block_work")
"""What a block puts together of its arguments, for transfers and for each `Run` that asks for it."""
_GIVEN = ("velocity", "affine", "mass", "stress", "volume")


class CompositionError(MpmNodesError):
    """A fragment cannot be composed for what a loop is to run on."""


@dataclass(frozen=True)
class Fold:
    """Scatters to the grid array `source` go to `into` instead, multiplied by the number `factor`; see `Nodes`."""

    source: str
    into: str
    factor: str


@dataclass
class Source:
    """The source of one kernel.

    Attributes:
        text: The module.
        names: Arguments of its function `run`, in order.
        given: For each fragment, its arguments: the name in its signature and that in `names`.
        largest: For each fragment that looks for largest values, its place in the list and the name of the array that they go to.
        sums: The same for sums.
        columns: The attributes among the arguments: name of the argument, and that of the attribute.
    """

    text: str = ""
    names: list[str] = field(default_factory=list)
    given: list[dict[str, str]] = field(default_factory=list)
    largest: dict[int, str] = field(default_factory=dict)
    sums: dict[int, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)


def source_of(
    law: Any,
    fragments: Sequence[Fragment],
    table: Mapping[str, Any],
    inner: Sequence[str] = (),
    fold: Fold | None = None,
    fetches: bool = True,
    backend: Backend = CPU,
) -> Source:
    """Return the source of a kernel.

    Args:
        law: The law of the particles (`materials.contract.Law`), or None where no fragment depends on it.
        fragments: In order; each fits the law.
        table: Attributes by name.
        inner: Attributes that may live in `local` alone: `<name>_local` is their stride there, 0 for rows of their own.
        fold: Where scatters go that are not to have a grid array of their own.
        fetches: Whether rows of the next block are fetched on the way; it does not pay in loops that run many times a substep.
        backend: What the loop is to run on, and how many particles a body is given at once.

    Raises:
        CompositionError: A fragment asks for what the backend does not have.
    """
    writer = _Writer(law, fragments, table, inner, fold)
    writer.fetches, writer.backend = fetches and backend == CPU, backend
    return writer.written()


def column_name(name: str) -> str:
    """Return what the rows of an attribute are called in a kernel: a field of the user may have the name of another argument."""
    return name if name in ATTRIBUTES else f"own_{name}"


class _Writer:
    """Collects the pieces of one module."""

    def __init__(
        self, law: Any, fragments: Sequence[Fragment], table: Mapping[str, Any], inner: Sequence[str], fold: Fold | None
    ) -> None:
        self.law, self.fragments, self.table, self.inner, self.fold = law, fragments, table, inner, fold
        self.source = Source(given=[{} for _ in fragments])
        self.imports: dict[str, set[str]] = {}
        self.foreign: dict[str, str] = {}
        self.functions: list[str] = []
        self.function_names: set[str] = set()
        self.lines: list[str] = []
        self.fetched: set[str] = set()
        self.fetches, self.backend = True, CPU
        self.made: dict[str, str] = {}
        self.pending: dict[tuple[str, tuple[int, ...]], dict[str, str]] = {}

    # ---------------------------------------------------------------- names
    def use(self, module: str, *names: str) -> str:
        """Import names from a module; return the last."""
        self.imports.setdefault(module, set()).update(names)
        return names[-1]

    def refused(self, fragment: Fragment, what: str) -> CompositionError:
        """Return the error of a fragment that asks for what the backend has not."""
        return CompositionError(
            f"'{label_of(fragment)}' asks for {what}, which loops for {self.backend.name} do not have; compose it for CPU"
        )

    def argument(self, name: str) -> str:
        """Return the name of an argument of the kernel."""
        if name not in self.source.names:
            self.source.names.append(name)
        return name

    def column(self, name: str) -> str:
        """Return the name of an argument that holds the rows of an attribute."""
        column = column_name(name)
        self.source.columns[column] = name
        return column

    def own(self, place: int, name: str) -> str:
        """Return the name in the kernel of an argument of one fragment."""
        taken = name in self.source.names or name in _MADE or any(name in given.values() for given in self.source.given)
        unique = f"{name}_{place}" if taken and name not in self.source.given[place] else name
        return self.argument(self.source.given[place].setdefault(name, unique))

    def called(self, function: Callable[..., Any]) -> str:
        """Return what a function is called in the module, which imports it."""
        module, name = function.__module__, function.__name__
        if module.split(".")[0] == "mpm_nodes":
            self.use(module, name)
            return name
        alias = self.foreign.setdefault(module, f"user_{len(self.foreign) + 1}")
        return f"{alias}.{name}"

    def read_behind(self, place: int) -> set[str]:
        """Return the attributes that later fragments read in any case."""
        names = {name for f in self.fragments[place + 1 :] if isinstance(f, Lanes) and not f.switch for name in f.parameters}
        return names | set(self.law.state if STATE in names else ())

    def rows_of(self, name: str) -> int:
        return self.table[name].rows

    @property
    def ahead(self) -> str:
        """How far ahead transfers fetch."""
        return "ahead" if self.fetches else "np.int64(0)"

    def stride_of(self, name: str) -> str:
        return f"{self.column(name)}_stride" if name in self.inner else self.argument("stride")

    def shift_of(self, name: str) -> str:
        return f"{self.column(name)}_shift" if name in self.inner else "np.int64(0)"

    # ---------------------------------------------------------------- the block
    def written(self) -> Source:
        for place, fragment in enumerate(self.fragments):
            self.flush(fragment)
            if self.backend.width != CPU.width and not (isinstance(fragment, Lanes) and not isinstance(fragment, Rounds)):
                raise self.refused(fragment, "a tile of the grid")
            if isinstance(fragment, Lanes):
                self.add(fragment, self.lanes(place, fragment))
            elif isinstance(fragment, Run):
                self.add(fragment, self.run(place, fragment))
            elif isinstance(fragment, Gather):
                self.add(fragment, self.gather(place, fragment))
            elif isinstance(fragment, Scatter):
                self.wait(place, fragment)
        self.flush(None)
        self.source.text = module_of(self)
        return self.source

    def add(self, fragment: Fragment, call: str) -> None:
        if not fragment.switch:
            self.lines.append(call)
            return
        name = fragment.switch
        if name != VISCOSITY:
            name = self.own(self.fragments.index(fragment), name)
        self.lines += [f"if {name} > 0:", textwrap.indent(call, "    ")]

    def wait(self, place: int, fragment: Scatter) -> None:
        """Put a scatter off to the end, so that another one to the same array can join it."""
        folded = self.fold is not None and fragment.target == self.fold.source
        target = self.fold.into if folded and self.fold else fragment.target
        calls = self.pending.setdefault((target, fragment.stencil), {})
        if calls.keys() & set(fragment.gives):
            self.flush(None)
            calls = self.pending.setdefault((target, fragment.stencil), {})
        calls.update({name: fragment.stress if name == "stress" else name for name in fragment.gives})
        if "stress" in fragment.gives:
            scale = f"-{self.fold.factor}" if folded and self.fold else fragment.scale
            for name in re.findall(r"[a-z]\w*", scale):
                self.argument(name)
            calls["force_scale"] = f"{scale} / cell_size"

    def flush(self, before: Fragment | None) -> None:
        """Write the scatters that wait: all of them, or those whose attributes the next fragment writes."""
        written = None if before is None else set(getattr(before, "writes", ()))
        for key in list(self.pending):
            gives = self.pending[key]
            if written is None or written & {*gives.values(), "position"}:
                del self.pending[key]
                self.scatter(*key, gives)

    def scatter(self, target: str, stencil: tuple[int, ...], gives: Mapping[str, str]) -> None:
        self.use("mpm_nodes.kernels.transfers.scatter", "scatter_run")
        self.use("mpm_nodes.kernels.transfers.tiles", "add_tile")
        velocity, affine, mass, stress, volume = (
            self.argument(self.column(gives[name])) if name in gives else "None" for name in _GIVEN
        )
        tensor = gives.get("stress", "")
        rows = (self.stride_of(tensor), self.shift_of(tensor)) if tensor else ("0", "0")
        values, flux = [self.argument(f"stencil{len(stencil)}"), self.placement(), velocity, affine, mass], "None"
        if tensor:
            self.use("mpm_nodes.kernels.transfers.fields", "Flux")
            lines = "FULL" if self.rows_of(tensor) == 9 else "None"
            if lines == "FULL":
                self.use("mpm_nodes.kernels.transfers.fields", "FULL")
            flux = f"Flux(bare({stress}), {rows[0]}, {rows[1]}, {lines}, bare({volume}), {gives['force_scale']})"
        self.lines.append(call("scatter_run", [*values, flux, self.block_work()]))
        grid = self.argument(f"grid_{target}")
        self.lines.append(
            call("add_tile", ["scratch", _IN_BLOCK["at"], grid, self.argument("tile_slot"), self.argument("segments") + "[row, 2]"])
        )

    def gather(self, place: int, fragment: Gather) -> str:
        """Write how the particles of a block take values from a tile of the grid."""
        tiles, block, following = "mpm_nodes.kernels.transfers.tiles", _IN_BLOCK["block"], _IN_BLOCK["following"]
        self.use("mpm_nodes.kernels.transfers.gather", "gather_run")
        self.use(tiles, "load_tile")
        stencil = self.argument(f"stencil{len(fragment.stencil)}")
        values, affine, gradient = (
            self.given_to_run(place, name) if name else "None" for name in (fragment.values, fragment.affine, fragment.gradient)
        )
        grid, slots, scratch = self.argument(f"grid_{fragment.source}"), self.argument("tile_slot"), self.argument("scratch")
        self.argument("segments")
        at, flip = _IN_BLOCK["at"], "None"
        lines = [call("load_tile", [scratch, at, grid, slots, block])]
        if self.fetches:
            self.use(tiles, "prefetch_tile")
            lines.append(call("prefetch_tile", [grid, slots, following]))
        if fragment.before:
            self.use(tiles, "SECOND_TILE", "load_change_tile")
            before, flip = self.argument(f"grid_{fragment.before}"), self.own(place, fragment.flip)
            lines.append(call("load_change_tile", [scratch, f"{at} + SECOND_TILE", grid, before, flip, slots, block]))
        self.use("mpm_nodes.kernels.transfers.fields", "slopes_of_matrix")
        slopes = f"slopes_of_matrix({gradient}, {self.stride_of(fragment.gradient)}, {self.shift_of(fragment.gradient)})"
        given = [stencil, self.placement(), values, affine, slopes, flip, self.block_work()]
        return "\n".join([*lines, call("gather_run", given)])

    def placement(self) -> str:
        """Return where the particles are; the block puts it together once."""
        self.use("mpm_nodes.kernels.lanes.memory", "bare")
        self.use("mpm_nodes.kernels.transfers.places", "NODES", "Placement")
        offset, *others = (self.argument(name) for name in _GEOMETRY if name != "unit")
        self.made["placement"] = call("placement = Placement", [f"bare({offset})", *others, "NODES"])
        return "placement"

    def block_work(self) -> str:
        """Return the particles of the block with the scratch of the thread."""
        self.use("mpm_nodes.kernels.lanes.memory", "bare")
        self.use("mpm_nodes.kernels.transfers.places", "BlockWork")
        scratch, base = self.argument("scratch"), self.argument("base")
        place = [f"bare({scratch})", _IN_BLOCK["at"], f"bare({base})", _IN_BLOCK["base_at"]]
        self.made["block_work"] = call("block_work = BlockWork", ["start", "end", self.ahead, *place])
        return "block_work"

    def run(self, place: int, fragment: Run) -> str:
        return call(self.called(fragment.body), [self.given_to_run(place, name) for name in fragment.parameters])

    def given_to_run(self, place: int, name: str) -> str:
        """Return what a function on the rows of a block is given for a parameter."""
        base, _, end = name.rpartition("_")
        if name in _IN_BLOCK:
            return _IN_BLOCK[name]
        if name in _MADE:
            return self.placement() if name == "placement" else self.block_work()
        if name == "largest":
            return self.largest(place)
        if name in (*_GEOMETRY, *_TABLES, "dt") or name.startswith("grid_"):
            return self.argument(name)
        if name in self.table:
            self.fetched.add(name)
            return self.argument(self.column(name))
        if base in self.table and end in ("stride", "shift"):
            return self.stride_of(base) if end == "stride" else self.shift_of(base)
        return self.own(place, name)

    def largest(self, place: int) -> str:
        name = "largest" if not self.source.largest else f"largest_{place}"
        return self.argument(self.source.largest.setdefault(place, name))

    def sums(self, place: int) -> str:
        name = "sums" if not self.source.sums else f"sums_{place}"
        return self.argument(self.source.sums.setdefault(place, name))

    # ---------------------------------------------------------------- a group of particles at a time
    def lanes(self, place: int, fragment: Lanes) -> str:
        """Write the loop of a fragment over the particles of a block as a function; return its call."""
        loop = LaneLoop(self, place, fragment)
        name = fragment.body.__name__.strip("_")
        name = f"{name}_{place}" if name in self.function_names or name in ("run", "block") else name
        self.function_names.add(name)
        text = loop.text()
        self.use("mpm_nodes.kernels.compile.jit", "inline")
        self.functions.append(f"@inline\n{call(f'def {name}_in', list(loop.values))}:\n{textwrap.indent(text, '    ')}\n")
        return call(f"{name}_in", list(loop.values.values()))
