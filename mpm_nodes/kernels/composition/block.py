"""The function of one block in a composed loop: its arguments, its lines, and a head that says which particles it is about."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.data import ATTRIBUTES, Field, MpmNodesError
from mpm_nodes.kernels.composition.backends import Backend
from mpm_nodes.kernels.composition.fragments import STATE, VISCOSITY, Fragment, Lanes
from mpm_nodes.kernels.composition.module import Module, call

__all__ = ["Block", "CompositionError", "Source", "column_name"]

_GEOMETRY = ("offset", "stride", "shift", "inverse_unit", "unit", "cell_size")
_TABLES = ("segments", "tile_slot", "scratch", "base")
_HERE = {
    "row": ("row",),
    "start": ("start",),
    "end": ("end",),
    "ahead": ("ahead", "ahead"),
    "block": ("segments[row, 2]",),
    "following": ("segments[next_row, 2]", "ahead"),
    "at": ("thread * SCRATCH", "thread"),
    "base_at": ("64 * thread", "thread"),
}
"""What a block knows by itself: the expression, and which name its head defines for that, of those that not every head does."""
_MADE = ("placement", "block_work")
"""What a block puts together of its arguments, for transfers and for each `Run` that asks for it."""


class CompositionError(MpmNodesError):
    """A fragment cannot be composed for what a loop is to run on."""


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
        loaded: Names of the modules that Python must have loaded before it imports the text: laws, and what users wrote.
    """

    text: str = ""
    names: list[str] = field(default_factory=list)
    given: list[dict[str, str]] = field(default_factory=list)
    largest: dict[int, str] = field(default_factory=dict)
    sums: dict[int, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    loaded: tuple[str, ...] = ()


def column_name(name: str) -> str:
    """Return what the rows of an attribute are called in a kernel: a field of the user may have the name of another argument."""
    return name if name in ATTRIBUTES else f"own_{name}"


class Block:
    """What is written for the particles of one block; lines ask it for every name that is not their own.

    Args:
        law, fragments, table, inner: As for `source_of`.
        backend: What the loop is to run on.
        fetches: Whether rows of the next block are fetched on the way.
    """

    def __init__(
        self,
        law: Any,
        fragments: Sequence[Fragment],
        table: Mapping[str, Field],
        inner: Sequence[str],
        backend: Backend,
        fetches: bool,
    ) -> None:
        self.law, self.fragments, self.table, self.inner = law, fragments, table, inner
        self.backend, self.fetches = backend, fetches
        self.module, self.source = Module(), Source(given=[{} for _ in fragments])
        self.fetched: set[str] = set()
        self._lines: list[str] = []
        self._made: dict[str, str] = {}
        self._asked: set[str] = set()
        self._functions = {"run", "block"}

    def refused(self, fragment: Fragment, what: str) -> CompositionError:
        """Return the error of a fragment that asks for what the backend has not."""
        return CompositionError(
            f"'{fragment.label}' asks for {what}, which loops for {self.backend.name} do not have; compose it for CPU"
        )

    # ---------------------------------------------------------------- arguments
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

    def reduction(self, place: int, kind: str) -> str:
        """Return the array that takes the reductions of a fragment, "largest" or "sums"."""
        known: dict[int, str] = getattr(self.source, kind)
        return self.argument(known.setdefault(place, f"{kind}_{place}" if known else kind))

    def read_behind(self, place: int) -> set[str]:
        """Return the attributes that later fragments read in any case."""
        names = {name for f in self.fragments[place + 1 :] if isinstance(f, Lanes) and not f.switch for name in f.parameters}
        return names | set(self.law.state if STATE in names else ())

    # ---------------------------------------------------------------- what a block knows by itself
    def here(self, name: str) -> str:
        """Return the expression of something in `_HERE`."""
        expression, *asked = _HERE[name]
        self._asked.update(asked)
        if name == "at":
            self.module.use("mpm_nodes.kernels.transfers.tiles", "SCRATCH")
        return expression

    def viscosity(self) -> str:
        """Return the name of the material's own viscosity."""
        self._asked.add(VISCOSITY)
        return VISCOSITY

    def stride_of(self, name: str) -> str:
        """Return the stride of an attribute's rows."""
        return self._of_inner(name, "stride") if name in self.inner else self.argument("stride")

    def shift_of(self, name: str) -> str:
        """Return what stands before the first particle in an attribute's rows."""
        return self._of_inner(name, "shift") if name in self.inner else f"{self.module.numpy('int64')}(0)"

    def _of_inner(self, name: str, what: str) -> str:
        column = self.column(name)
        self._asked.add(column)
        return f"{column}_{what}"

    def placement(self) -> str:
        """Return where the particles are; the block puts it together once."""
        self.module.use("mpm_nodes.kernels.lanes.memory", "bare")
        self.module.use("mpm_nodes.kernels.transfers.places", "NODES", "Placement")
        offset, *others = (self.argument(name) for name in _GEOMETRY if name != "unit")
        self._made["placement"] = call("placement = Placement", [f"bare({offset})", *others, "NODES"])
        return "placement"

    def block_work(self) -> str:
        """Return the particles of the block with the scratch of the thread."""
        self.module.use("mpm_nodes.kernels.lanes.memory", "bare")
        self.module.use("mpm_nodes.kernels.transfers.places", "BlockWork")
        scratch, base = self.argument("scratch"), self.argument("base")
        place = [f"bare({scratch})", self.here("at"), f"bare({base})", self.here("base_at")]
        ahead = self.here("ahead") if self.fetches else f"{self.module.numpy('int64')}(0)"
        self._made["block_work"] = call("block_work = BlockWork", ["start", "end", ahead, *place])
        return "block_work"

    def given_to_run(self, place: int, name: str) -> str:
        """Return what a function on the rows of a block is given for a parameter."""
        base, _, end = name.rpartition("_")
        if name in _HERE:
            return self.here(name)
        if name in _MADE:
            return self.placement() if name == "placement" else self.block_work()
        if name == "largest":
            return self.reduction(place, name)
        if name == VISCOSITY:
            return self.viscosity()
        if name in (*_GEOMETRY, *_TABLES, "dt") or name.startswith("grid_"):
            return self.argument(name)
        if name in self.table:
            self.fetched.add(name)
            return self.argument(self.column(name))
        if base in self.table and end in ("stride", "shift"):
            return self.stride_of(base) if end == "stride" else self.shift_of(base)
        return self.own(place, name)

    # ---------------------------------------------------------------- lines
    def function_name(self, body: Callable[..., Any], place: int) -> str:
        """Return a name for the function around a fragment's body that no other in the module has."""
        name = body.__name__.strip("_")
        name = f"{name}_{place}" if name in self._functions else name
        self._functions.add(name)
        return f"{name}_in"

    def add(self, lines: str) -> None:
        """Add lines, behind those that are there."""
        self._lines.append(lines)

    def add_call(self, place: int, lines: str) -> None:
        """Add what a fragment does, behind its switch if it has one."""
        switch = self.fragments[place].switch
        if switch:
            asked = self.viscosity() if switch == VISCOSITY else self.own(place, switch)
            lines = f"if {asked} > 0:\n{textwrap.indent(lines, '    ')}"
        self.add(lines)

    # ---------------------------------------------------------------- the module
    def written(self) -> Source:
        """Return the source: the functions of the fragments, that of a block, and the kernel that goes over the blocks."""
        self._over_blocks()
        names = " + ".join(dict.fromkeys(fragment.label for fragment in self.fragments))
        for_law = "" if self.law is None else f' for the law "{self.law.id}"'
        self.source.text = self.module.text(f"{names}{for_law}: one loop over blocks.")
        self.source.loaded = self.module.loaded
        return self.source

    def _over_blocks(self) -> None:
        """Write a kernel whose threads take whole blocks, of one colour at a time where they add to the grid."""
        self.module.use("mpm_nodes.kernels.compile.jit", "compiled", "part")
        self.module.use("mpm_nodes.kernels.compile.parallel", "parallel_for")
        coloured = any(getattr(fragment, "scatters", ()) for fragment in self.fragments)
        body = "\n".join([*self._head(coloured), *self._made.values(), *self._lines])
        loop = ["first", "last"] if coloured else []
        gathers = "tile_slot" in self.source.names
        outside = ("colour_start", "colour_shares") if coloured else ("shares",) if gathers else ()
        for name in outside:
            self.argument(name)
        arguments = [name for name in self.source.names if name not in outside]
        self.module.add(f"@part\n{call('def block', ['k', *loop, *arguments])}:\n{textwrap.indent(body, '    ')}\n")
        passed = f"({', '.join([*loop, *arguments])})"
        if coloured:
            calls = "for colour in range(8):\n    first, last = colour_start[colour], colour_start[colour + 1]\n"
            calls += textwrap.indent(call("parallel_for", ["block", "colour_shares[colour]", passed]), "    ")
        else:
            calls = call("parallel_for", ["block", "shares" if gathers else "segments.shape[0]", passed])
        head = call("def run", self.source.names)
        self.module.add(f"@compiled(fastmath=False)\n{head}:\n{textwrap.indent(calls, '    ')}\n")

    def _head(self, coloured: bool) -> list[str]:
        """Return the lines that say which particles it is about, as far as the others ask for them."""
        lines = []
        self.argument("segments")
        inner = [name for name in self.inner if column_name(name) in self._asked]
        thread = inner or "thread" in self._asked
        if thread:
            self.module.use("numba", "get_thread_id")
        row = f"{self.argument('colour_range')}[first + k]" if coloured else "k"
        lines.append(f"row, thread = {row}, get_thread_id()" if thread else f"row = {row}")
        lines.append("start, end = segments[row, 0], segments[row, 1]")
        if "ahead" in self._asked:
            after = "colour_range[min(first + k + 1, last - 1)]" if coloured else "min(k + 1, segments.shape[0] - 1)"
            lines += [f"next_row = {after}", "ahead = segments[next_row, 0] - start"]
        place = 0
        for name in inner:
            column = self.column(name)
            local = self.argument(f"{column}_local")
            self.module.use("mpm_nodes.kernels.composition.values", "LOCAL_ROWS")
            shift = f"thread * LOCAL_ROWS * {local} - start" + (f" + {place} * {local}" if place else "")
            lines += [f"{column}_stride, {column}_shift = stride, {self.module.numpy('int64')}(0)", f"if {local} > 0:"]
            lines += [f"    {column}_stride = {local}", f"    {column}_shift = {shift}"]
            self.argument("stride")
            place += self.table[name].rows
        if VISCOSITY in self._asked:
            self.module.use("mpm_nodes.kernels.composition.values", "own_viscosity")
            lines.append(f"{VISCOSITY} = own_viscosity({self.argument('coefficients')}, {len(self.law.names)})")
        return lines
