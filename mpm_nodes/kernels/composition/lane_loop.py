"""The loop of one `Lanes` over the particles of a block, as source."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any

from mpm_nodes.kernels.composition.block import Block
from mpm_nodes.kernels.composition.fragments import BARE, SCALED, STATE, VISCOSITY, Lanes, Rounds
from mpm_nodes.kernels.composition.module import call
from mpm_nodes.kernels.composition.tables import HEAD, row_length

MEMORY = "mpm_nodes.kernels.lanes.memory"
"""Module with loads and stores."""
SCALE = "stiffness_scale"
FACTORS = frozenset((SCALE, "tear_scale"))
"""Attributes that are factors: 1, in an empty array, where nobody brought them."""
PLAIN = (bool, int, float, "bool", "int", "float")
"""Annotations of parameters that are given as they are."""
_LOADS = {1: "load", 3: "load_rows3", 6: "load_rows6", 9: "load_rows9"}


class LaneLoop:
    """The loop of one `Lanes` over the particles of a block; `values` maps the names of its arguments to what the block gives."""

    def __init__(self, block: Block, place: int, fragment: Lanes) -> None:
        self.block, self.place, self.fragment = block, place, fragment
        self.use = block.module.use
        self.values: dict[str, str] = {}
        self.loaded: set[str] = set()
        self.read: list[str] = []
        self.like = ""
        self.body: list[str] = []

    def written(self) -> str:
        """Write the loop as a function of the module; return its call."""
        name = self.block.function_name(self.fragment.body, self.place)
        text = self.text()
        self.use("mpm_nodes.kernels.compile.jit", "inline")
        self.block.module.add(f"@inline\n{call(f'def {name}', list(self.values))}:\n{textwrap.indent(text, '    ')}\n")
        return call(name, list(self.values.values()))

    def given(self, name: str, value: str = "") -> str:
        """Return the name of an argument: the kernel's of this name, or what `value` says."""
        self.values.setdefault(name, value or self.block.argument(name))
        return name

    def text(self) -> str:
        """Return the loop, and what stands before it and behind."""
        block, fragment = self.block, self.fragment
        if fragment.guard is not None:
            self.use("mpm_nodes.kernels.lanes.arithmetic", "any_lane")
            values = self.arguments(fragment.guard)
            self.body += [f"if not any_lane({call(block.module.called(fragment.guard), values)}):", "    continue"]
        values = self.arguments(fragment.body)
        before: list[str] = []
        after: list[str] = []
        if isinstance(fragment, Rounds):
            before = self.rounds(fragment, values)
        else:
            results = [f"new_{name}" for name in (*fragment.writes, *fragment.largest, *fragment.sums)]
            self.body.append(call(f"{', '.join(results)} = {block.module.called(fragment.body)}", values))
            for name in fragment.writes:
                for each, value in self.stored(name):
                    self.body.append(self.store(each, value))
            before, after = self.reductions()
        fetches = self.fetches()
        self.given("start", "start"), self.given("end", "end")
        step = block.backend.step
        if step == "WIDTH":
            self.use("mpm_nodes.kernels.lanes.types", "WIDTH")
        loop = f"for i in range(start, end, {step}):\n" + textwrap.indent("\n".join([*fetches, *self.body]), "    ")
        return "\n".join([*before, loop, *after])

    # ---------------------------------------------------------------- what goes in
    def arguments(self, function: Callable[..., Any]) -> list[str]:
        """Return the arguments of a call, and load what they need."""
        return [self.value(name, p.annotation) for name, p in signature(function).parameters.items()]

    def value(self, name: str, annotation: Any) -> str:
        block = self.block
        if name == "law":
            return block.module.bound("law", block.law.module.__name__)
        if name == STATE:
            self.load_state()
            return "state"
        if name in block.table:
            self.load(name)
            return f"{block.column(name)}_i"
        if name in (SCALED, BARE):
            return self.coefficients(name)
        if isinstance(self.fragment, Rounds) and name == self.fragment.table:
            return name
        if name == VISCOSITY and block.law.followed(len(block.law.names)):
            return self.tabled()[len(block.law.names)]
        if name == VISCOSITY:
            own = self.given(name, block.viscosity())
        else:
            own = self.given(name if name in ("dt", "cell_size") else block.own(self.place, name))
        return own if annotation in PLAIN else f"broadcast({self.reference()}, {own})"

    def reference(self) -> str:
        """Return the name of lanes of the solve's float type."""
        self.use("mpm_nodes.kernels.lanes.arithmetic", "broadcast")
        if not self.like:
            if self.block.law is not None:
                self.load_state()
            else:
                self.load("velocity")
        if "x" not in self.loaded:
            self.loaded.add("x")
            self.body.append(f"x = {self.like}")
        return "x"

    def load_state(self) -> None:
        if STATE not in self.loaded:
            self.loaded.add(STATE)
            entries = [self.loading(name) for name in self.block.law.state]
            self.body.append(f"state = ({', '.join(entries)},)")
            first = self.block.law.state[0]
            self.like = self.like or ("state[0][0]" if self.block.table[first].rows > 1 else "state[0]")

    def load(self, name: str) -> None:
        if name in self.loaded:
            return
        self.loaded.add(name)
        lanes = f"{self.block.column(name)}_i"
        if name in FACTORS:
            self.load_factor(name, lanes)
            return
        self.body.append(f"{lanes} = {self.loading(name)}")
        if self.block.table[name].kind == "real":
            self.like = self.like or (f"{lanes}[0]" if self.block.table[name].rows > 1 else lanes)

    def load_factor(self, name: str, lanes: str) -> None:
        """Load a factor, or 1 where its array is empty."""
        x = self.reference()
        self.use("mpm_nodes.kernels.lanes.arithmetic", "const")
        value = f"{self.use(MEMORY, self.block.backend.load)}({self.given(self.block.column(name))}, i)"
        self.body += [f"{lanes} = const({x}, 1.0)", f"if {name}.size > 0:", f"    {lanes} = {self.widened(value)}"]

    def loading(self, name: str) -> str:
        rows = self.block.table[name].rows
        array, stride, index = self.rows(name)
        self.read.append(name)
        backend = self.block.backend
        load = self.use(MEMORY, backend.load)
        if rows not in _LOADS or (rows > 1 and not backend.rows):
            each = [self.widened(f"{load}({array}, {row} * {stride} + {index})") for row in range(rows)]
            return f"({', '.join(each)},)"
        if rows > 1:
            self.use(backend.rows, _LOADS[rows])
        whole = f"{load}({array}, {index})" if rows == 1 else f"{_LOADS[rows]}({array}, {stride}, {index})"
        return self.widened(whole, rows, self.block.table[name].kind)

    def rows(self, name: str) -> tuple[str, str, str]:
        """Return array, stride and index of an attribute."""
        column = self.given(self.block.column(name))
        if name in self.block.inner:
            stride, shift = self.block.stride_of(name), self.block.shift_of(name)
            return column, self.given(stride, stride), f"{self.given(shift, shift)} + i"
        return column, self.given("stride") if self.block.table[name].rows > 1 else "stride", "i"

    def coefficients(self, name: str) -> str:
        """Load the coefficients of the law; `stiffness_scale` is an empty array where nobody brought it."""
        block, short = self.block, "c" if name == SCALED else "bare"
        if name in self.loaded:
            return short
        self.loaded.add(name)
        x, given = self.reference(), self.given("coefficients")
        values = [f"broadcast({x}, {given}[{index}])" for index in range(len(block.law.names))]
        if block.law.follows:
            tabled = self.tabled()
            values = [tabled.get(index, value) for index, value in enumerate(values)]
        if name == SCALED:
            self.load_factor(SCALE, "s")
            values = [f"s * {value}" if index in block.law.stiffness else value for index, value in enumerate(values)]
        self.body.append(call(f"{short} = ", [*values[:-1], values[-1] + ","]))
        return short

    def tabled(self) -> dict[int, str]:
        """Interpolate what follows attributes (see `tables`); return the names of the lanes by the law's indices."""
        law = self.block.law
        found = {n: f"c{n}" for each in law.follows for n in each.indices}
        if "tables" in self.loaded:
            return found
        self.loaded.add("tables")
        for name in law.inputs:
            self.load(name)
        given, begin = self.given("coefficients"), str(len(law.names) + 1)
        self.use("mpm_nodes.kernels.composition.tables", "at_row", "held_between", "row_value")
        self.use("mpm_nodes.kernels.lanes.arithmetic", "broadcast", "const", "select")
        for number, each in enumerate(law.follows):
            if number:
                self.body.append(f"begin_{number} = {begin}")
                begin = f"begin_{number}"
            begin = self.interpolated(each, given, begin, [found[n] for n in each.indices])
        return found

    def interpolated(self, follows: Any, given: str, begin: str, own: Sequence[str]) -> str:
        """Interpolate what follows one attribute, in rows behind two counts at `begin`; return where those of the next begin."""
        step, whole = row_length(len(own)), self.block.module.numpy("int64")
        self.body += [f"solid_rows, liquid_rows = {whole}({given}[{begin}]), {whole}({given}[{begin} + 1])"]
        phases = [("solid", f"{begin} + 2", own)]
        if follows.by_phase:
            phases.append(("liquid", f"{begin} + 2 + {step} * solid_rows", [f"liquid_{name}" for name in own]))
        for phase, at, names in phases:
            self.body.append(f"{phase}_at = {at}")
            held = [f"{self.block.column(follows.over)}_i", given, f"{phase}_at", f"{phase}_at + {step} * ({phase}_rows - 1)"]
            self.body.append(call("T = held_between", held))
            self.body += [f"{name} = broadcast(T, {given}[{phase}_at + {HEAD + k}])" for k, name in enumerate(names)]
            row = [f"at = {phase}_at + {step} * r", f"weights = at_row(T, {given}, at)"]
            row += [
                f"{name} = row_value(weights, {given}, at + {HEAD + k}, at + {HEAD + len(names) + k}, {name})"
                for k, name in enumerate(names)
            ]
            self.body.append(f"for r in range({phase}_rows):\n" + textwrap.indent("\n".join(row), "    "))
        if follows.by_phase:
            self.body.append("melted = phase_i != const(phase_i, 0)")
            self.body += [f"{name} = select(melted, liquid_{name}, {name})" for name in own]
        return f"{begin} + 2 + {step} * (solid_rows + liquid_rows)"

    def fetches(self) -> list[str]:
        """Return the lines that fetch the next block's rows of what no fragment before has touched."""
        block, lines = self.block, []
        if not block.fetches:
            return []
        # a loop that may be passed over leaves it to one behind it
        later = block.read_behind(self.place) if self.fragment.switch else set()
        for name in self.read:
            if name not in block.fetched and name not in block.inner and name not in later:
                block.fetched.add(name)
                self.use("mpm_nodes.kernels.lanes.rows", "prefetch_rows")
                stride, ahead = self.given("stride"), self.given("ahead", block.here("ahead"))
                lines.append(f"prefetch_rows({block.column(name)}, {block.table[name].rows}, {stride}, i, {ahead})")
        return lines

    def widened(self, value: str, rows: int = 1, kind: str = "real") -> str:
        """Return lanes, or a tuple of as many as an attribute has rows, in the precision of the fragment."""
        if not self.fragment.precise or kind != "real":
            return value
        backend = self.block.backend
        name = "to_double" if rows == 1 else f"to_double{rows}"
        return f"{self.use(MEMORY if rows == 1 else backend.rows, name)}({value})"

    # ---------------------------------------------------------------- one row of a table after another
    def rounds(self, fragment: Rounds, values: Sequence[str]) -> list[str]:
        """Write the calls and what takes their values; return the lines before the loop."""
        block, columns = self.block, fragment.columns
        table = self.given(fragment.table, block.own(self.place, fragment.table))
        x = self.reference()
        self.given("end", "end")
        self.use(MEMORY, "store")
        row = ", ".join(f"broadcast({x}, {table}[{columns} * r + {c}])" for c in range(columns))
        stores = [f"store(values, WIDTH * ({columns} * r + {c}), new[{c}])" for c in range(columns)]
        inside = [
            call("entries = ", [row]),
            call(f"new = {block.module.called(fragment.body)}", ["entries" if v == table else v for v in values]),
        ]
        self.body.append(f"for r in range({fragment.rows}):\n" + textwrap.indent("\n".join([*inside, *stores]), "    "))
        own = {"values": "values", "begin": "i", "end": "min(i + WIDTH, end)"}
        taken = [
            own.get(name) or self.given(name, block.given_to_run(self.place, name)) for name in signature(fragment.taker).parameters
        ]
        self.body.append(call(block.module.called(fragment.taker), taken))
        like = block.column(next(name for name in self.read if block.table[name].kind == "real"))
        return [f"values = {block.module.numpy('empty')}({fragment.rows * columns} * WIDTH, {like}.dtype)"]

    # ---------------------------------------------------------------- what comes out
    def stored(self, name: str) -> Iterable[tuple[str, str]]:
        if name != STATE:
            return [(name, f"new_{name}")]
        return [(each, f"new_state[{index}]") for index, each in enumerate(self.block.law.state)]

    def store(self, name: str, value: str) -> str:
        rows = self.block.table[name].rows
        array, stride, index = self.rows(name)
        self.given("end", "end")
        backend = self.block.backend
        if rows > 1 and backend.rows:
            self.use(MEMORY, "store_first_each")
            return f"store_first_each({array}, {index}, {stride}, {value}, end - i)"
        self.use(MEMORY, "store_first")
        if rows == 1:
            return f"store_first({array}, {index}, {value}, end - i)"
        return "\n".join(f"store_first({array}, {row} * {stride} + {index}, {value}[{row}], end - i)" for row in range(rows))

    def reductions(self) -> tuple[list[str], list[str]]:
        """Return the lines before and after the loop, and add those inside it."""
        block, largest, sums = self.block, self.fragment.largest, self.fragment.sums
        if not (largest or sums):
            return [], []
        self.use(MEMORY, "lane_index")
        self.use("mpm_nodes.kernels.lanes.arithmetic", "broadcast", "const")
        load = self.use(MEMORY, block.backend.load)
        x = self.reference()
        self.body.append(f"inside = lane_index({x}) < broadcast({x}, end - i)")
        name = next(name for name in self.read if block.table[name].kind == "real")
        array = block.column(name)
        first = self.widened(f"{load}({array}, {f'{array}_shift + ' if name in block.inner else ''}start)")
        row = self.given("row", "row")
        before, after = [f"zero = const({first}, 0.0)"], []
        if largest:
            self.use("mpm_nodes.kernels.composition.values", "seen", "whole")
            self.use("mpm_nodes.kernels.lanes.arithmetic", "maximum")
            found = self.given(block.reduction(self.place, "largest"))
            before.append(f"{', '.join(largest)} = {', '.join('zero' for _ in largest)}")
            self.body += [f"{name} = maximum({name}, seen(new_{name}, inside))" for name in largest]
            after += [f"{found}[{row}, {column}] = whole({name})" for column, name in enumerate(largest)]
        if sums:
            self.use("mpm_nodes.kernels.lanes.arithmetic", "hsum", "select")
            self.use(MEMORY, "to_double")
            found = self.given(block.reduction(self.place, "sums"))
            before.append(f"{', '.join(sums)} = {', '.join('to_double(zero)' for _ in sums)}")
            self.body += [f"{name} = {name} + to_double(select(inside, new_{name}, zero))" for name in sums]
            after += [f"{found}[{row}, {column}] = hsum({name})" for column, name in enumerate(sums)]
        return before, after
