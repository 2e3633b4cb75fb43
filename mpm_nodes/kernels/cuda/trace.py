"""Laws and bodies of fragments as C++: they are called once with symbols, and what they compute is written down.

A function that is marked `@inline` is plain Python when Python calls it. Given `Symbol`s instead of numbers, it leaves a graph of
operations behind, and `statements` writes that graph as C++ for one particle. Nothing is said twice: a law of a user's needs no
other form. The text is the same for CUDA, HIP and a CPU's compiler.

| in Python | in C++ |
|---|---|
| `const`, `broadcast` | a literal of the float type |
| `fma(a, b, c)` | `a * b + c`; the compiler contracts it |
| `select`, `minimum`, `maximum` | `?:`, in the same order, so that a NaN passes where it does in lanes |
| `any_lane(mask)`, `all_lanes(mask)` | true, false: the guarded path is taken |
| a loop | its rounds, one after another |

Functions of kernels that are plain Python with branches (`@part`) are traced by `branching`: each is run once for every way through
it, and the results are chosen by the masks that it branched by. `min`, `max` and `math` are those of symbols there.

What `any_lane` guards may be computed for every particle, but it is long. So what is needed only where the guard's mask holds (all
uses choose it by that mask, `select(mask, new, old)`) is computed inside `if (mask)`, and the same where a mask of `all_lanes`
does not hold. This follows from the graph alone, since operations have no side effects: a group of threads that needs no singular
values jumps over them, as a group of lanes does.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import threading
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError

__all__ = ["Symbol", "TraceError", "branching", "named", "statements"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "&&",
    "logical_or": "||",
}
_PREFIX = {"negative": "-", "logical_not": "!"}
_CALLS = {"absolute": "fabs", "remainder": "fmod"}
_CALLS |= {name: name for name in ("sqrt", "exp", "log", "rint", "copysign", "cos", "ceil", "floor")}
_COMMUTE = {"add", "multiply", "equal", "not_equal", "logical_and", "logical_or"}
_MASKS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not"}
_OF_MASKS = {"logical_and", "logical_or", "logical_not"}
_SERIAL = itertools.count()


class TraceError(MpmNodesError):
    """A function does something with values that has no form on devices."""


def _applied(operation: str, *operands: Any) -> Symbol:
    symbols = tuple(x if isinstance(x, Symbol) else Symbol(x) for x in operands)
    masks = tuple(x.mask for x in symbols)
    if operation == "where":
        fits = masks in ((True, False, False), (True, True, True))
    else:
        fits = set(masks) == {operation in _OF_MASKS}
    if not fits:
        given = ", ".join("a mask" if mask else "a number" for mask in masks)
        raise TraceError(f"{operation} is given {given}: compare numbers for a mask, and choose with select(mask, a, b)")
    return Symbol._made(operation, symbols, operation in _MASKS or masks[-1])


class Symbol:
    """A number or a mask that is known on the device only: what made it, and of what.

    Called with a number it is that literal, as `const` asks for.
    """

    __slots__ = ("guards", "mask", "operands", "operation", "serial", "value")

    def __init__(self, value: Any) -> None:
        mask = isinstance(value, bool | np.bool_)
        if not mask and not isinstance(value, int | float | np.integer | np.floating):
            raise TraceError(f"{value!r} is neither a number nor computed from one")
        self._set("constant", (), mask, bool(value) if mask else float(value))

    def _set(self, operation: str, operands: tuple[Symbol, ...], mask: bool, value: Any = None) -> None:
        self.operation, self.operands, self.mask, self.value = operation, operands, mask, value
        self.serial, self.guards = next(_SERIAL), False

    @classmethod
    def _made(cls, operation: str, operands: tuple[Symbol, ...], mask: bool, value: Any = None) -> Symbol:
        made = cls.__new__(cls)
        made._set(operation, operands, mask, value)
        return made

    def __bool__(self) -> bool:
        if _ways.open:
            return _ways.open[-1].taken_by(self)
        raise TraceError("a branch on a value of particles: write select(mask, a, b), and guard a slow path with any_lane(mask)")

    def __float__(self) -> float:
        raise TraceError(
            "a value of particles is made a Python number: only operations of mpm_nodes.kernels.lanes have a device form"
        )

    def __int__(self) -> int:
        raise TraceError("a value of particles is made an integer, which has no device form")

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Symbol:
        """Take what NumPy's functions are asked for."""
        known = ufunc.__name__ in _INFIX or ufunc.__name__ in _PREFIX or ufunc.__name__ in _CALLS
        if method != "__call__" or options or not known:
            raise TraceError(f"np.{ufunc.__name__} has no device form; mpm_nodes.kernels.lanes has what does")
        return _applied(ufunc.__name__, *inputs)

    def __array_function__(self, function: Callable[..., Any], _types: Any, args: tuple[Any, ...], options: Any) -> Any:
        """Take `select`, guards, and reductions over lanes, of which there is one."""
        if function is np.where and len(args) == 3:
            return _applied("where", *args)
        if function in (np.any, np.all):
            args[0].guards = True
            return function is np.any
        if function in (np.max, np.sum):
            return args[0]
        raise TraceError(f"np.{function.__name__} has no device form; mpm_nodes.kernels.lanes has what does")


def _define(name: str, operation: str, turned: bool = False, unary: bool = False) -> None:
    if unary:
        setattr(Symbol, name, lambda self: _applied(operation, self))
    elif turned:
        setattr(Symbol, name, lambda self, other: _applied(operation, other, self))
    else:
        setattr(Symbol, name, lambda self, other: _applied(operation, self, other))


_ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "remainder"}
"""Of numbers >= 0 Python's remainder is that of C."""
for _short, _operation in _ARITHMETIC.items():
    _define(f"__{_short}__", _operation)
    _define(f"__r{_short}__", _operation, turned=True)
for _short, _operation in zip(
    ("lt", "le", "gt", "ge", "eq", "ne"), ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), strict=True
):
    _define(f"__{_short}__", _operation)
_define("__neg__", "negative", unary=True)
_define("__abs__", "absolute", unary=True)


def named(text: str, mask: bool = False) -> Symbol:
    """Return a symbol for a value that C++ has already, under the name or expression `text`."""
    return Symbol._made("name", (), mask, text)


# ---------------------------------------------------------------- branches
class _Way:
    """One way through a function: what was decided at each branch, first as `decisions` say and then that its mask holds."""

    def __init__(self, decisions: Sequence[bool]) -> None:
        self.decisions, self.masks = list(decisions), list[Symbol]()

    def taken_by(self, mask: Symbol) -> bool:
        """Return whether the mask of the next branch holds."""
        if len(self.masks) == len(self.decisions):
            self.decisions.append(True)
        self.masks.append(mask)
        return self.decisions[len(self.masks) - 1]


class _Ways(threading.local):
    """Those through the functions that a thread is tracing, the innermost last."""

    def __init__(self) -> None:
        self.open: list[_Way] = []


_ways = _Ways()
WAYS = 64
"""Ways through one function at most."""


class _Math:
    """What `math` is to a traced function."""

    inf = float("inf")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ("sqrt", "exp", "log", "cos", "copysign", "ceil", "floor"):
            raise TraceError(f"math.{name} has no device form")
        return lambda *given: _applied(name, *given)


def _extremum(better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *given: functools.reduce(lambda a, b: _either(better(b, a), b, a), given)


_NAMES = {"min": _extremum(lambda a, b: a < b), "max": _extremum(lambda a, b: a > b), "math": _Math()}


@functools.cache
def branching(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of kernels as one that takes symbols: it may branch by them, and so may the functions that it calls.

    One that changes what it is given must not branch by symbols itself: it would be changed on every way.

    Raises:
        TraceError: When it is called, and does something that has no device form.
    """
    plain: types.FunctionType = getattr(function, "py_func", function)  # type: ignore[assignment]
    called = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
    own = {name: branching(each) for name, each in called.items() if hasattr(each, "py_func")}
    body = types.FunctionType(plain.__code__, {**plain.__globals__, **_NAMES, **own}, plain.__name__, plain.__defaults__)

    def traced(*given: Any) -> Any:
        ends: list[tuple[_Way, Any]] = []
        decisions: list[bool] | None = []
        while decisions is not None:
            if len(ends) == WAYS:
                raise TraceError(f"{plain.__name__} branches more often than device forms may")
            way = _Way(decisions)
            _ways.open.append(way)
            try:
                ends.append((way, body(*given)))
            finally:
                _ways.open.pop()
            last = max((n for n, holds in enumerate(way.decisions) if holds), default=-1)
            decisions = [*way.decisions[:last], False] if last >= 0 else None
        return _merged(ends, 0)

    return traced


def _merged(ends: Sequence[tuple[_Way, Any]], branch: int) -> Any:
    """Return the results of all ways as one."""
    if len(ends) == 1:
        return ends[0][1]
    both = ([end for end in ends if end[0].decisions[branch] is holds] for holds in (True, False))
    return _either(ends[0][0].masks[branch], *(_merged(side, branch + 1) for side in both))


def _either(mask: Any, a: Any, b: Any) -> Any:
    if not isinstance(mask, Symbol):
        return a if mask else b
    if isinstance(a, tuple):
        return tuple(_either(mask, *pair) for pair in zip(a, b, strict=True))
    return a if a is b else _applied("where", mask, a, b)


# ---------------------------------------------------------------- the graph
class _Node(NamedTuple):
    """One operation of a graph: as `Symbol`, with its operands by their numbers, which are below its own."""

    operation: str
    operands: tuple[int, ...]
    mask: bool
    value: Any
    guards: bool

    @property
    def computed(self) -> bool:
        """Whether it is more than a name or a literal."""
        return bool(self.operands)


Literal = tuple[int, bool]
"""The number of a mask, and whether it holds."""


def _graph(results: Iterable[Symbol]) -> tuple[list[_Node], list[int]]:
    """Return what the results are computed from, in the order in which it was written and each thing once; and the results."""
    found, open_ = {}, list(results)
    wanted = [id(symbol) for symbol in open_]
    while open_:
        symbol = open_.pop()
        if id(symbol) not in found:
            found[id(symbol)] = symbol
            open_.extend(symbol.operands)
    nodes: list[_Node] = []
    number: dict[int, int] = {}
    known: dict[Any, int] = {}
    for symbol in sorted(found.values(), key=lambda symbol: symbol.serial):
        node = _Node(symbol.operation, tuple(number[id(x)] for x in symbol.operands), symbol.mask, symbol.value, symbol.guards)
        if node.operation in _COMMUTE:
            # the older one first: of "and" and "or", C++ looks at the other only where the first does not decide
            node = node._replace(operands=tuple(sorted(node.operands)))
        number[id(symbol)] = known.setdefault((*node[:3], repr(node.value)), len(nodes))  # 0.0 and -0.0 are two literals
        if number[id(symbol)] == len(nodes):
            nodes.append(node)
        elif node.guards:
            nodes[number[id(symbol)]] = nodes[number[id(symbol)]]._replace(guards=True)
    return nodes, [number[each] for each in wanted]


def _literals(nodes: Sequence[_Node], mask: int, holds: bool) -> frozenset[Literal]:
    """Return which guards are known to hold, and which not, where a mask holds or does not."""
    found, open_ = set(), [(mask, holds)]
    while open_:
        mask, holds = open_.pop()
        node = nodes[mask]
        if node.guards and node.computed:
            found.add((mask, holds))
        if node.operation == "logical_not":
            open_.append((node.operands[0], not holds))
        elif node.operation == ("logical_and" if holds else "logical_or"):
            open_.extend((x, holds) for x in node.operands)
    return frozenset(found)


def _conditions(nodes: Sequence[_Node], results: Iterable[int]) -> list[frozenset[Literal]]:
    """Return under which conditions each node is needed; of several uses, what all of them have in common."""
    needed: list[Any] = [None] * len(nodes)
    for number in results:
        needed[number] = frozenset()
    for number in reversed(range(len(nodes))):
        node, own = nodes[number], needed[number]
        extra: list[frozenset[Literal]] = [frozenset()] * len(node.operands)
        if node.operation == "where":
            extra[1:] = _literals(nodes, node.operands[0], True), _literals(nodes, node.operands[0], False)
        elif node.operation in ("logical_and", "logical_or"):
            extra[-1] = _literals(nodes, node.operands[0], node.operation == "logical_and")
        for operand, more in zip(node.operands, extra, strict=True):
            needed[operand] = own | more if needed[operand] is None else needed[operand] & (own | more)
    return needed


def _paths(nodes: Sequence[_Node], results: Iterable[int]) -> list[tuple[Literal, ...]]:
    """Return the conditions inside which each node is computed, outermost first.

    A node lies inside all conditions of its operands but those by which it chooses: what is read has always been computed.
    """
    # a mask that is made of the node, or after it, is of no use to it
    needed = enumerate(_conditions(nodes, results))
    return [tuple(sorted(literal for literal in each if literal[0] < number)) for number, each in needed]


def _scheduled(nodes: Sequence[_Node], paths: Sequence[tuple[Literal, ...]]) -> list[int]:
    """Return what is computed, operands first, nodes inside the same conditions beside each other where that can be."""
    users: list[list[int]] = [[] for _ in nodes]
    waits = [0] * len(nodes)
    ready: defaultdict[tuple[Literal, ...], list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        if not node.computed:
            continue
        before = {x for x in (*node.operands, *(mask for mask, _ in paths[number])) if nodes[x].computed}
        waits[number] = len(before)
        for each in before:
            users[each].append(number)
        if not before:
            ready[paths[number]].append(number)
    done: list[int] = []
    here: tuple[Literal, ...] = ()
    while any(ready.values()):
        if not ready[here]:
            # what lies inside fewest conditions may let more into each of them
            here = min((path for path in ready if ready[path]), key=lambda path: (len(path), ready[path][0]))
        done.append(heapq.heappop(ready[here]))
        for user in users[done[-1]]:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready[paths[user]], user)
    return done


# ---------------------------------------------------------------- text
def _literal_text(value: Any, real: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    with np.errstate(over="ignore"):
        number = np.float32(value) if real == "float" else np.float64(value)
    if real == "double" and number == np.inf:
        return "UNLIMITED"
    if not np.isfinite(number):
        raise TraceError(f"the literal {value} is not finite as a {real}")
    text = f"{number!s}{'f' if real == 'float' else ''}"
    return f"({text})" if text.startswith("-") else text


def statements(results: Mapping[str, Symbol], real: str = "float") -> list[str]:
    """Return lines of C++ that compute results and assign them.

    Args:
        results: What is assigned, by what it is assigned to: a name or an expression. They are assigned at the end.
        real: "float"; "double" for builds that are compared and for the choice of dt, where infinity is `UNLIMITED`.

    Raises:
        TraceError: When a literal is not a finite number of that type.
    """
    nodes, wanted = _graph(results.values())
    paths = _paths(nodes, wanted)
    order = _scheduled(nodes, paths)
    names = {
        k: node.value if node.operation == "name" else _literal_text(node.value, real)
        for k, node in enumerate(nodes)
        if not node.computed
    }
    names |= {number: f"{'m' if nodes[number].mask else 'v'}{place}" for place, number in enumerate(order)}
    lines = []
    for kind, mask in ((real, False), ("bool", True)):
        declared = [names[number] for number in order if nodes[number].mask is mask]
        lines += [f"{kind} {', '.join(declared)};"] if declared else []
    here: tuple[Literal, ...] = ()
    for number in order:
        lines += _moved(here, paths[number], names)
        here = paths[number]
        lines.append("    " * len(here) + f"{names[number]} = {_expression(nodes[number], names, real)};")
    return [*lines, *_moved(here, (), names), *(f"{name} = {names[number]};" for name, number in zip(results, wanted, strict=True))]


def _moved(here: Sequence[Literal], path: Sequence[Literal], names: Mapping[int, str]) -> list[str]:
    """Return the lines that leave and enter conditions."""
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(here, path, strict=False)))
    left = ["    " * depth + "}" for depth in reversed(range(shared, len(here)))]
    entered = enumerate(path[shared:], shared)
    return left + ["    " * depth + f"if ({'' if holds else '!'}{names[mask]}) {{" for depth, (mask, holds) in entered]


def _expression(node: _Node, names: Mapping[int, str], real: str) -> str:
    given = [names[x] for x in node.operands]
    if node.operation == "where":
        return f"{given[0]} ? {given[1]} : {given[2]}"
    if node.operation in _INFIX:
        return f"{given[0]} {_INFIX[node.operation]} {given[1]}"
    if node.operation in _PREFIX:
        return f"{_PREFIX[node.operation]}{given[0]}"
    return f"{_CALLS[node.operation]}{'f' if real == 'float' else ''}({', '.join(given)})"
