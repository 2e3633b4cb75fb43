"""What is traced into C++ computes what the Python does: every law, compiled by the machine's own compiler."""

from __future__ import annotations

import ctypes
import math
import types

import numpy as np
import pytest

from mpm_nodes.kernels.compile.jit import part
from mpm_nodes.kernels.cuda.trace import Symbol, TraceError, branching, named, statements
from mpm_nodes.kernels.lanes.arithmetic import any_lane, both, const, either, select, sqrt
from mpm_nodes.kernels.lanes.exponentials import exp
from mpm_nodes.materials.contract import OPTIONAL, REQUIRED, law, law_ids
from tests.kernels.cuda.traced import built, leaves, needs_compiler, traced
from tests.materials.law_samples import COMBINED, PARAMS, combined_laws, random_matrices, random_states

__all__ = ["combined_laws"]
FUNCTIONS = {**REQUIRED, **OPTIONAL}
TYPES = {"float": (ctypes.c_float, np.float32), "double": (ctypes.c_double, np.float64)}
ROWS = ("state", "A", "dA", "L", "coeffs")
COUNT, DT = 256, 1e-3


CASES = [
    (law_id, name, parameters)
    for law_id in law_ids()
    for name, parameters in FUNCTIONS.items()
    if name != "longest_step" and law(law_id).function(name)
]
"""Every function of every law that kernels call, and the names of its parameters."""


def arguments_of(law_id, parameters, entry):
    """Arguments of a law's function: `entry(name, row)` for each number, in tuples as laws take them."""
    found, given = law(law_id), []
    for name in parameters:
        if name == "state":
            rows = [found.fields[each].rows for each in found.state]
            at = np.cumsum([0, *rows])
            given.append(
                tuple(
                    entry("state", begin) if n == 1 else tuple(entry("state", begin + k) for k in range(n))
                    for begin, n in zip(at, rows, strict=False)
                )
            )
        elif name == "coeffs":
            given.append(tuple(entry("coeffs", k) for k in range(len(found.names))))
        else:
            given.append(entry("dt", 0) if name == "dt" else tuple(entry(name, k) for k in range(9)))
    return given


def loop_of(law_id, function, parameters, real):
    """A loop over particles in C++, each column one behind another."""
    given = arguments_of(law_id, parameters, lambda what, k: named("dt" if what == "dt" else f"{what}[{k} * n + p]"))
    results = leaves((law(law_id).function(function)(*given),))
    body = "\n".join(statements({f"out[{k} * n + p]": each for k, each in enumerate(results)}, real))
    rows = ", ".join(f"const {real}* {each}" for each in ROWS)
    head = f'extern "C" void {law_id}_{function}_{real}({rows}, {real} dt, {real}* out, long n)'
    return f"{head} {{\nfor (long p = 0; p < n; p++) {{\n{body}\n}}\n}}\n"


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """All loops, compiled at once."""
    text = "".join(loop_of(*case, real) for case in CASES for real in TYPES)
    return built(tmp_path_factory.mktemp("traced"), text)


def columns_of(law_id, dtype):
    """States of all sizes, steps that are small, large, and turn matter inside out; one particle in sixteen is NaN somewhere."""
    found, half = law(law_id), COUNT // 2
    states = [random_states(law_id, half, strain).values() for strain in (0.01, 0.3)]
    state = np.concatenate([np.concatenate([values.reshape(half, -1) for values in each], 1) for each in states]).T
    size = np.tile([1e-4, 0.1, 1.0, 0.0], COUNT // 4)
    A, dA, L = (size * random_matrices(COUNT, seed=seed).reshape(COUNT, 9).T for seed in (4, 5, 6))
    spoilt = np.arange(0, COUNT, 16)
    state[spoilt % len(state), spoilt] = np.nan
    coeffs = np.repeat(found.coefficients(PARAMS.get(law_id))[:, None], COUNT, 1)
    return {name: np.ascontiguousarray(values, dtype) for name, values in zip(ROWS, (state, A, dA, L, coeffs), strict=True)}


@needs_compiler
@pytest.mark.parametrize("real", TYPES)
@pytest.mark.parametrize(("law_id", "name", "parameters"), CASES)
def test_a_traced_law_is_the_law(loops, law_id, name, parameters, real):
    """Bit for bit where it takes no exponential or logarithm, else to rounding, and a NaN wherever the law gives one.

    NumPy's exp and log are not libm's. The terms of energies and yield functions cancel.
    """
    number, dtype = TYPES[real]
    columns, dt = columns_of(law_id, dtype), dtype(DT)
    given = arguments_of(law_id, parameters, lambda what, k: dt if what == "dt" else columns[what][k])
    with np.errstate(all="ignore"):
        results = leaves((law(law_id).function(name)(*given),))
    wanted = np.stack([np.broadcast_to(x, COUNT) for x in results]).astype(dtype)
    out = np.full_like(wanted, np.inf)
    pointers = [ctypes.c_void_p(columns[each].ctypes.data) for each in ROWS]
    called = getattr(loops, f"{law_id}_{name}_{real}")
    called(*pointers, number(DT), ctypes.c_void_p(out.ctypes.data), ctypes.c_long(COUNT))
    text = loop_of(law_id, name, parameters, real)
    if not any(f"{each}{'f' if real == 'float' else ''}(" in text for each in ("exp", "log")):
        np.testing.assert_array_equal(out, wanted)
        return
    np.testing.assert_array_equal(np.isfinite(out), np.isfinite(wanted))
    size = np.abs(np.where(np.isfinite(wanted), wanted, 0.0)).max(0)
    far = np.abs(np.where(np.isfinite(wanted), out - wanted, 0.0))
    roundings = 4000 if name in ("energy", "yield_function") else 16
    assert (far <= roundings * np.finfo(dtype).eps * size).all()


@pytest.mark.usefixtures("combined_laws")
def test_laws_of_users_trace():
    """So does every combination of an elastic part and a return map, which no law of ours is."""
    for law_id in COMBINED:
        for name in ("stress", "advance", "project"):
            assert loop_of(law_id, name, FUNCTIONS[name], "float")


# ---------------------------------------------------------------- single operations
X, Y = (named(name) for name in "xy")


def test_equal_operations_are_written_once():
    """Whatever the order of what is added; 0.0 and -0.0 are two numbers."""
    lines = statements({"a": (X + Y) * (Y + X), "b": X * const(X, 0.0) - X * const(X, -0.0)})
    assert sum(" + " in line for line in lines) == 1
    assert {"v2 = x * 0.0f;", "v3 = x * (-0.0f);"} <= set(lines)


def test_what_a_guard_lets_in_is_computed_where_its_mask_holds():
    """Also what the other half of a mask asks for; what is needed elsewhere is not."""

    def guarded(x, y):
        far = x > y
        if any_lane(far):
            x = select(far, exp(x) * sqrt(y), x)
        return x

    assert statements({"r": guarded(X, Y) + sqrt(Y)}) == [
        "float v1, v2, v3, v4, v5;",
        "bool m0;",
        "m0 = x > y;",
        "v1 = sqrtf(y);",
        "if (m0) {",
        "    v2 = expf(x);",
        "    v3 = v2 * v1;",
        "}",
        "v4 = m0 ? v3 : x;",
        "v5 = v1 + v4;",
        "r = v5;",
    ]


def test_a_mask_chooses_masks():
    """As one of numbers does, and of numbers and masks it chooses nothing."""
    chosen = select(select(X > Y, X < Y, either(X == Y, both(X > Y, X < Y))), X, Y)
    assert statements({"r": chosen})[-3:] == ["m5 = m0 ? m1 : m4;", "v6 = m5 ? x : y;", "r = v6;"]
    with pytest.raises(TraceError, match="where is given a mask, a mask, a number"):
        select(X > Y, X > Y, Y)


@part
def quotient(a, b):
    """A function of kernels with a branch."""
    return a / b if b != 0.0 else 0.0


@part
def way(a, b):
    """One that calls it, within branches of its own."""
    length = math.sqrt(max(a * a, b * b, 0.25))
    if a > b:
        return quotient(a, length), -b
    return (b, a) if min(a, b) > -0.5 * length else (quotient(length, b), 1.0)


@needs_compiler
def test_a_function_of_kernels_is_traced_on_every_way(tmp_path):
    """To rounding what Python gives that takes one of them."""
    random = np.random.default_rng(3)
    a, b = (np.where(random.random(400) < 0.2, 0.0, random.normal(size=400)).astype(np.float32) for _ in range(2))
    with np.errstate(all="ignore"):
        wanted = [[np.float32(x) for x in taken(way)(*pair)] for pair in zip(a, b, strict=True)]
    assert len({np.sign(row[1]) for row in wanted}) == 3
    np.testing.assert_allclose(traced(tmp_path, branching(way), a, b), np.array(wanted).T, rtol=1e-6)


def taken(function):
    """A function of kernels as Python runs it on numbers."""
    return types.FunctionType(function.py_func.__code__, {**globals(), "quotient": quotient.py_func})


def test_what_branches_too_often_or_has_no_form_is_refused():
    """A function of kernels that a device would run on all of its ways, or that makes integers."""

    def often(x):
        return sum(1.0 if x > n else 2.0 for n in range(9))

    for function, words in (
        (often, "branches more often"),
        (lambda x: math.isnan(x), "math.isnan has no device form"),
        (lambda x: int(x), "is made an integer"),
    ):
        with pytest.raises(TraceError, match=words):
            branching(function)(X)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: 1.0 if x > x else 0.0, "a branch on a value"),
        (lambda x: np.sin(x), "np.sin has no device form"),
        (lambda x: np.stack([x, x]), "np.stack has no device form"),
        (lambda x: float(x), "is made a Python number"),
        (lambda x: select(x, x, x), "where is given a number"),
        (lambda x: (x > x) + x, "add is given a mask"),
        (lambda x: x + "1", "is neither a number"),
    ],
)
def test_what_has_no_device_form_is_refused(function, words):
    """By a sentence that says what to write."""
    with pytest.raises(TraceError, match=words):
        function(X)


def test_a_literal_that_is_not_finite_is_refused():
    """C++ has no such literal; one that a double can hold is one there."""
    with pytest.raises(TraceError, match="not finite as a float"):
        statements({"r": X * const(X, 1e39)})
    assert statements({"r": X * Symbol(1e39)}, "double")[1] == "v0 = x * 1e+39;"
