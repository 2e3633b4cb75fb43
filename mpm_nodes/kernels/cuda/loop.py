"""One kernel for a list of fragments on a GPU: a thread block for each run of particles, a thread for each particle.

The counterpart of `composition.source` for lanes. Bodies of `Lanes` are traced (`trace`), transfers and the motion are those of
`transfers.cuh`. What a particle has is loaded once, at the beginning, and what was written is stored at the end, but for what only
lives inside the loop.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from mpm_nodes.data import Field
from mpm_nodes.kernels.composition.block import CompositionError, column_name
from mpm_nodes.kernels.composition.fragments import BARE, SCALED, STATE, VISCOSITY, Fragment, Gather, Lanes, Rounds, Run, Scatter
from mpm_nodes.kernels.composition.lane_loop import FACTORS, PLAIN, SCALE
from mpm_nodes.kernels.composition.source import Fold
from mpm_nodes.kernels.cuda.trace import Symbol, named, statements

__all__ = ["THREADS", "DeviceKernel", "cuda_source", "header", "loop_kernel"]

THREADS = 128
"""Threads of a thread block."""
_TYPES = {"real": "float", "int32": "int"}
"""Of columns. What is computed with is float: integers that laws and stages choose by are small."""


@functools.cache
def cuda_source(name: str) -> str:
    """Return the text of a file of this folder, behind what it and the host must agree on."""
    return f"#define THREADS {THREADS}\n" + resources.files(__package__).joinpath(name).read_text()


def header() -> str:
    """Return what the kernels of loops share."""
    return cuda_source("substep.cuh") + cuda_source("transfers.cuh")


@dataclass
class DeviceKernel:
    """A kernel and what it is to be given.

    Attributes:
        text: Its source, without `header`.
        types: Type of each argument by its name, in order.
        columns: Attributes by the names of their arguments.
        writes: Arguments that point to what is written.
        given: For each fragment, its own numbers: the name in its signature, and that of the argument.
        found: Names of the largest values, in the order of the argument "largest" from "largest_at" on.
    """

    text: str = ""
    types: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    writes: set[str] = field(default_factory=set)
    given: list[dict[str, str]] = field(default_factory=list)
    found: list[str] = field(default_factory=list)


def loop_kernel(
    law: Any,
    fragments: Sequence[Fragment],
    table: Mapping[str, Field],
    local: Collection[str] = (),
    fold: Fold | None = None,
    factors: Collection[str] = (),
    plain: Sequence[Mapping[str, Any]] = (),
) -> DeviceKernel:
    """Return the kernel of a loop.

    Args:
        law: The law of the particles (`materials.contract.Law`), or None where no fragment depends on it.
        fragments: In order; each fits the law.
        table: Attributes by name.
        local: Attributes that only live inside the loop.
        fold: Where scatters go that are not to have a grid array of their own.
        factors: Those of `FACTORS` that the solve has; others are 1.
        plain: For each fragment, values of the knobs that its body may branch by; they are the same in every substep.

    Raises:
        CompositionError: A fragment has no form on a GPU.
        TraceError: Its body does something that has none.
    """
    loop = _Loop(law, fragments, table, frozenset(local), fold, frozenset(factors))
    loop.plain = list(plain) or [{} for _ in fragments]
    for number, fragment in enumerate(fragments):
        loop.add(number, fragment)
    return loop.written()


class _Loop:
    def __init__(
        self,
        law: Any,
        fragments: Sequence[Fragment],
        table: Mapping[str, Field],
        local: frozenset[str],
        fold: Fold | None,
        factors: frozenset[str],
    ) -> None:
        self.law, self.fragments, self.table = law, fragments, table
        self.local, self.fold, self.factors = local, fold, factors
        self.kernel = DeviceKernel(given=[{} for _ in fragments])
        self.loads: list[str] = []
        self.body: list[str] = []
        self.before: list[str] = []
        self.plain: list[Mapping[str, Any]] = []
        self.known: set[str] = set()
        self.changed: dict[str, None] = {}
        self.shared: dict[str, None] = {}
        self.nodes = 0
        self.targets: dict[str, str] = {}  # of the scatter at the end: "momentum" and "stress", and where each goes
        self.gives: dict[str, str] = {}
        self.scale = ""
        self.argument("substep", "const Substep*")
        self.argument("segments", "const long long*")
        self.argument("stride", "int")

    def refused(self, fragment: Fragment, what: str) -> CompositionError:
        return CompositionError(f"'{fragment.label}' {what}, which loops for a GPU do not have; it runs on the CPU")

    # ---------------------------------------------------------------- arguments and values
    def argument(self, name: str, kind: str) -> str:
        self.kernel.types.setdefault(name, kind)
        return name

    def grid(self, name: str, *, write: bool = False) -> str:
        argument = f"grid_{name}"
        if write:
            self.kernel.writes.add(argument)
        return self.argument(argument, "float*" if write else "const float4*")

    def column(self, name: str, *, write: bool = False) -> str:
        argument = f"{column_name(name)}_rows"
        self.kernel.columns[argument] = name
        if write:
            self.kernel.writes.add(argument)
        if self.table[name].kind not in _TYPES:
            raise CompositionError(f"'{name}' has 64-bit integers, which loops for a GPU do not have; it runs on the CPU")
        self.argument(argument, f"{_TYPES[self.table[name].kind]}*")
        return argument

    def declare(self, name: str) -> str:
        """Return the name of the values of an attribute in the kernel."""
        values = column_name(name)
        if name not in self.known:
            self.known.add(name)
            self.loads.append(f"float {values}[{self.table[name].rows}];")
        return values

    def load(self, name: str) -> str:
        """Return the same, with what the particle has of it."""
        if name in self.known:
            return self.declare(name)
        values = self.declare(name)
        if name in FACTORS and name not in self.factors:
            self.loads.append(f"{values}[0] = 1.0f;")
            return values
        rows = self.column(name)
        self.loads += [f"{values}[{r}] = {rows}[{r} * stride + p];" for r in range(self.table[name].rows)]
        return values

    def write(self, name: str) -> str:
        self.changed[name] = None
        return self.declare(name)

    def symbols(self, name: str) -> Any:
        """Return an attribute as what is traced: a number, or a tuple of one for each row."""
        values = self.load(name)
        each = tuple(named(f"{values}[{r}]") for r in range(self.table[name].rows))
        return each if len(each) > 1 else each[0]

    # ---------------------------------------------------------------- fragments
    def add(self, number: int, fragment: Fragment) -> None:
        """Add what a fragment does."""
        waiting = {*self.gives.values(), "position"} & set(getattr(fragment, "writes", ()))
        if self.targets and waiting:
            raise self.refused(fragment, f"changes {', '.join(sorted(waiting))} behind a scatter")
        if isinstance(fragment, Lanes) and not isinstance(fragment, Rounds):
            self.add_lanes(number, fragment)
        elif isinstance(fragment, Gather):
            self.add_gather(number, fragment)
        elif isinstance(fragment, Scatter):
            self.add_scatter(fragment)
        elif isinstance(fragment, Run) and fragment.device:
            self.add_run(fragment)
        else:
            raise self.refused(fragment, "loops over the rows of a block itself")

    def add_lanes(self, number: int, fragment: Lanes) -> None:
        if fragment.sums or fragment.precise:
            raise self.refused(fragment, "sums in double precision")
        results = fragment.body(*self.arguments(number, fragment, fragment.body))
        count = len(fragment.writes) + len(fragment.largest)
        each = dict(zip((*fragment.writes, *fragment.largest), results if count > 1 else (results,), strict=True))
        computed: dict[str, Symbol] = {}
        copies: list[str] = []
        for name in fragment.writes:
            written = zip(self.law.state, each[name], strict=True) if name == STATE else ((name, each[name]),)
            for attribute, values in written:
                if fragment.switch or fragment.guard is not None:
                    self.load(attribute)  # it stays where the fragment is passed over
                target = self.write(attribute)
                for row, value in enumerate(values if self.table[attribute].rows > 1 else (values,)):
                    computed[f"new_{len(copies)}"] = value
                    copies.append(f"{target}[{row}] = new_{len(copies)};")
        for name in fragment.largest:
            computed[f"new_{len(copies)}"] = each[name]
            copies.append(self.take_largest(name, f"new_{len(copies)}"))
        lines = [f"float {', '.join(computed)};", *statements(computed), *copies]
        if fragment.guard is not None:
            needed = fragment.guard(*self.arguments(number, fragment, fragment.guard))
            lines = ["bool needed;", *statements({"needed": needed}), "if (needed) {", *(f"    {line}" for line in lines), "}"]
        condition = ""
        if fragment.switch:
            number_of = self.viscosity() if fragment.switch == VISCOSITY else self.own(number, fragment.switch)
            condition = f"{number_of} > 0.0f"
        self.braced(lines, condition)

    def braced(self, lines: Sequence[str], condition: str = "") -> None:
        head = f"if ({condition}) {{" if condition else "{"
        self.body += [head, *(f"    {line}" for line in lines), "}"]

    def arguments(self, number: int, fragment: Fragment, function: Callable[..., Any]) -> list[Any]:
        """Return what a function of a fragment is called with: symbols, and plain values where they may be branched by."""
        given = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.annotation not in PLAIN or name in self.table:
                given.append(self.value(number, fragment, name))
            elif name in self.plain[number]:
                given.append(self.plain[number][name])
            else:
                raise self.refused(fragment, f"branches by '{name}', which changes over time")
        return given

    def value(self, number: int, fragment: Fragment, name: str) -> Any:
        """Return what stands for a parameter of a body."""
        if name == "law":
            return self.law.module
        if name == STATE:
            return tuple(self.symbols(each) for each in self.law.state)
        if name in self.table:
            return self.symbols(name)
        if name in (SCALED, BARE):
            return self.coefficients(fragment, scaled=name == SCALED)
        if name == VISCOSITY:
            return named(self.viscosity())
        if name == "dt":
            return named("dt")
        return named(self.argument(name, "float") if name == "cell_size" else self.own(number, name))

    def own(self, number: int, name: str) -> str:
        """Return the argument of a number of a fragment's own, whose name may be that of anything else."""
        return self.argument(self.kernel.given[number].setdefault(name, f"number{number}_{name}"), "float")

    def coefficients(self, fragment: Fragment, *, scaled: bool) -> tuple[Any, ...]:
        law = self.law
        if law.follows:
            raise self.refused(fragment, f"takes coefficients that follow {', '.join(law.inputs)}")
        given = self.argument("coefficients", "const float*")
        values = [named(f"{given}[{n}]") for n in range(len(law.names))]
        if scaled and SCALE in self.factors:
            scale = self.symbols(SCALE)
            values = [scale * value if n in law.stiffness else value for n, value in enumerate(values)]
        return tuple(values)

    def viscosity(self) -> str:
        return f"{self.argument('coefficients', 'const float*')}[{len(self.law.names)}]"

    def take_largest(self, name: str, value: str) -> str:
        """Return the line that takes a value to the largest so far; one that is not a number counts as huge."""
        place = len(self.kernel.found)
        self.kernel.found.append(name)
        return f"found[{place}] = fmaxf(found[{place}], {value} < HUGE_NUMBER ? {value} : HUGE_NUMBER);"

    # ---------------------------------------------------------------- the grid
    def placed(self, fragment: Any) -> int:
        """Ask for the stencil of each particle, and return its nodes along an axis."""
        nodes = len(fragment.stencil)
        if self.nodes not in (0, nodes):
            raise self.refused(fragment, "has another spline than the fragments before it")
        self.nodes = nodes
        self.argument("tile_slot", "const int*")
        self.position(write=False)
        return nodes

    def position(self, *, write: bool) -> None:
        self.kernel.columns["offset"] = "position"
        if write:
            self.kernel.writes.add("offset")
        for name, kind in (("offset", "int*"), ("shift", "int"), ("inverse_unit", "float"), ("cell_size", "float")):
            self.argument(name, kind)

    def add_gather(self, number: int, fragment: Gather) -> None:
        nodes = self.placed(fragment)
        self.shared["__shared__ float4 tile[TILE];"] = None
        self.before.append(f"load_tile(tile, {self.grid(fragment.source)}, slots);")
        own = self.load(fragment.values) if fragment.before else ""
        values = self.write(fragment.values) if fragment.values else ""
        affine = self.write(fragment.affine) if fragment.affine else "nullptr"
        gradient = self.write(fragment.gradient) if fragment.gradient else "nullptr"
        forms = f"{nodes}, {_bool(fragment.affine)}, {_bool(fragment.gradient)}"
        lines = ["float taken[3];", f"gather<{forms}>(tile, cell, f, 1.0f / cell_size, taken, {affine}, {gradient});"]
        if fragment.before:
            share = self.own(number, fragment.flip)
            self.shared["__shared__ float4 change[TILE];"] = None
            before = self.grid(fragment.before)
            self.before.append(f"load_change_tile(change, {self.grid(fragment.source)}, {before}, {share}, slots);")
            lines += [f"gather_values<{nodes}>(change, cell, f, taken);"]
            lines += [f"{values}[{c}] = {share} * {own}[{c}] + taken[{c}];" for c in range(3)]
        elif values:
            lines += [f"{values}[{c}] = taken[{c}];" for c in range(3)]
        self.braced(lines)

    def add_scatter(self, fragment: Scatter) -> None:
        target, factors, negated = fragment.target, fragment.factors, fragment.negated
        if self.fold is not None and target == self.fold.source:
            target, factors, negated = self.fold.into, (self.fold.factor,), True
        self.placed(fragment)
        kinds = {"momentum": "velocity" in fragment.gives, "stress": "stress" in fragment.gives}
        if self.gives.keys() & set(fragment.gives) or not any(kinds.values()):
            raise self.refused(fragment, "scatters what another has scattered before")
        self.targets.update({kind: target for kind, there in kinds.items() if there})
        self.grid(target, write=True)
        self.gives.update({name: fragment.stress if name == "stress" else name for name in fragment.gives})
        for name in self.gives.values():
            self.load(name)
        if kinds["stress"]:
            if self.table[fragment.stress].rows != 6:
                raise self.refused(fragment, "has a stress that is not symmetric")
            product = " * ".join([each if each == "dt" else self.argument(each, "float") for each in factors] or ["1.0f"])
            self.scale = f"{'-' if negated else ''}{product} / cell_size"

    def scatter_lines(self) -> list[str]:
        gives, lines = {name: column_name(attribute) for name, attribute in self.gives.items()}, []
        if "velocity" in gives:
            affine = gives.get("affine", "nullptr")
            arguments = f"given, {gives['velocity']}, {gives['mass']}[0], {affine}, cell_size, f"
            lines.append(f"give_motion<{self.nodes}>({arguments});")
        if "stress" in gives:
            lines.append(f"give_stress(given, {gives['stress']}, {self.scale} * {gives['volume']}[0]);")
        return [*lines, *(f"given.f[{a}] = f[{a}];" for a in range(3)), "at = cell;"]

    def add_run(self, fragment: Run) -> None:
        """Move the particles: the one function on rows that has a form here."""
        self.position(write=True)
        velocity = self.load("velocity")
        arguments = f"offset, stride, p, {velocity}, dt / cell_size, 1.0f / inverse_unit, inverse_unit, moved"
        lines = [f"float moved[{len(fragment.largest)}];", f"{fragment.device}({arguments});"]
        lines += [self.take_largest(name, f"moved[{k}]") for k, name in enumerate(fragment.largest)]
        self.braced(lines)

    # ---------------------------------------------------------------- the kernel
    def written(self) -> DeviceKernel:
        """Return the kernel."""
        kernel, scatters = self.kernel, bool(self.targets)
        stores = []
        for name in self.changed:
            if name not in self.local:
                rows = self.column(name, write=True)
                kind = "" if self.table[name].kind == "real" else "(int)"
                stores += [f"{rows}[{r} * stride + p] = {kind}{column_name(name)}[{r}];" for r in range(self.table[name].rows)]
        particle = [*self.loads]
        if self.nodes:
            particle += ["float f[3];", f"const int cell = place<{self.nodes}>(offset, stride, shift, inverse_unit, p, f);"]
        particle += [*self.body, *stores, *(self.scatter_lines() if scatters else [])]
        found = len(kernel.found)
        # dt is read where it is needed: in a register it costs others
        head = ["if (!substep->runs) return;", "const float& dt = substep->dt;"]
        head.append("const int begin = segments[3 * blockIdx.x], end = segments[3 * blockIdx.x + 1];")
        head.append("const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;")
        if self.nodes:
            head += ["__shared__ int slots[8];", *self.shared]
            head.append("if (threadIdx.x < 8) slots[threadIdx.x] = tile_slot[8 * segments[3 * blockIdx.x + 2] + threadIdx.x];")
        if found:
            self.argument("largest", "unsigned*")
            self.argument("largest_at", "int")
            head += [f"__shared__ unsigned most[{found}];", f"float found[{found}] = {{}};"]
            head.append(f"if (threadIdx.x < {found}) most[threadIdx.x] = 0;")
        head.append("__syncthreads();")
        if self.before:
            head += [*self.before, "__syncthreads();"]
        each, after = [], []
        if scatters:
            there = ["velocity" in self.gives, "affine" in self.gives, "stress" in self.gives, len(set(self.targets.values())) > 1]
            arrays = [f"grid_{target}" for target in dict.fromkeys(self.targets.values())]
            forms = ", ".join([str(self.nodes), *map(_bool, there)])
            head += ["__shared__ __align__(16) float records[THREADS * RECORD];", "__shared__ int order[THREADS];"]
            head.append(f"Sums<{forms}> sums(lane, {arrays[0]}, {arrays[-1]}, slots);")
            each += ["Given given = {};", "int at = FAR;"]
            after.append("sums.add(records + 32 * RECORD * warp, order + 32 * warp, given, at, min(32, last - p0));")
        tail = ["sums.flush();"] if scatters else []
        if found:
            tail += [f"for (int k = 0; k < {found}; k++) atomicMax(&most[k], __float_as_uint(found[k]));", "__syncthreads();"]
            tail.append(f"if (threadIdx.x < {found}) atomicMax(&largest[largest_at + threadIdx.x], most[threadIdx.x]);")
        loop = [*each, "if (p < last) {", *(f"    {line}" for line in particle), "}", *after]
        head.append("const int share = (end - begin + THREADS - 1) / THREADS * 32;")
        head.append("const int first = begin + warp * share, last = min(first + share, end);")
        lines = [*head, "for (int p0 = first; p0 < last; p0 += 32) {", "    const int p = p0 + lane;"]
        lines += [f"    {line}" for line in loop] + ["}", *tail]
        arguments = ", ".join(f"{kind} {name}" for name, kind in kernel.types.items())
        title = " + ".join(dict.fromkeys(fragment.label for fragment in self.fragments))
        of_law = "" if self.law is None else f' for the law "{self.law.id}"'
        start = f'// {title}{of_law}\nextern "C" __global__ void __launch_bounds__(THREADS) particles({arguments}) {{\n'
        kernel.text = start + textwrap.indent("\n".join(lines), "    ") + "\n}\n"
        return kernel


def _bool(value: Any) -> str:
    return "true" if value else "false"
