"""The functions of a law as kernels see them: in sixteen lanes and as compiled scalars, on columns of values.

Each function gets a loop of its own: for checks of laws, not for solves (see `materials.law_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mpm_nodes.kernels.compile import jit
from mpm_nodes.kernels.composition.generated import foreign_files, imported, written
from mpm_nodes.materials.contract import OPTIONAL, REQUIRED, Law, LawError
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.verification.contract import Finding

__all__ = ["argument_rows", "compiled_function", "functions_of", "in_lanes", "result_rows"]

_SOURCE = '''"""{name} of the law "{law}": one loop over columns."""

import sys

from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.lanes.arithmetic import const, select
from mpm_nodes.kernels.lanes.memory import load, store

law = sys.modules["{module}"]


@compiled(fastmath=False)
def run(rows, out, stride, count):
    for i in range(0, count, {width}):
        x = {first}
        {arguments}
        result = law.{name}({names})
        {stores}
'''


def functions_of(law: Law) -> tuple[str, ...]:
    """Return the names of the law's functions that run in lanes: all but limits of dt, which get NumPy columns."""
    return tuple(name for name, takes in {**REQUIRED, **OPTIONAL}.items() if law.function(name) and "h" not in takes)


def argument_rows(law: Law, name: str) -> dict[str, list[int]]:
    """Return the rows of the arguments of a function among all it takes, by argument: state entry, matrix, "coeffs" or "dt"."""
    rows: dict[str, list[int]] = {}
    at = 0

    def take(argument: str, count: int) -> None:
        nonlocal at
        rows[argument] = list(range(at, at + count))
        at += count

    for argument in {**REQUIRED, **OPTIONAL}[name]:
        if argument == "state":
            for entry in law.state:
                take(entry, law.fields[entry].rows)
        else:
            take(argument, {"coeffs": len(law.names), "dt": 1}.get(argument, 9))
    return rows


def result_rows(law: Law, name: str) -> int:
    """Return how many values a function returns."""
    if name in ("advance", "advance_minimised", "project"):
        return sum(law.fields[entry].rows for entry in law.state)
    return _ROWS.get(name, 1)


_ROWS = {
    "stress": 9,
    "stress_differential": 9,
    "viscous_stress": 9,
    "kirchhoff": 9,
    "left_strain": 10,
    "left_stretch": 6,
    "stretched_stress": 9,
    "stretched_differential": 9,
}
"""Values of a function's result, where that is not one."""
_STRESSES = (
    "energy",
    "stress",
    "stress_differential",
    "viscous_stress",
    "kirchhoff",
    "stretched_stress",
    "stretched_differential",
    "yield_function",
)
"""Functions whose results are measured by rho c^2."""


def compiled_function(law: Law, name: str, dtype: Any, lanes: bool = True) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of a law from argument rows (`argument_rows`), shape (rows, n), to result rows; masks are 1 and 0.

    Args:
        law: The law.
        name: Name of the function.
        dtype: float32 or float64.
        lanes: In sixteen lanes, else one by one.

    Raises:
        LawError: At the first call, when the function does not compile: says what numba said of it.
    """
    title = f"{law.id}_{name}_{'lanes' if lanes else 'scalars'}"
    run = imported(written(_source(law, name, lanes), title, foreign_files(law, ()))).run
    count = result_rows(law, name)

    def call(rows: np.ndarray) -> np.ndarray:
        n = rows.shape[1]
        stride = -(-n // 16) * 16
        padded = np.zeros((len(rows), stride), dtype)
        padded[:, :n] = rows
        padded[:, n:] = rows[:, -1:]
        out = np.zeros((count, stride), dtype)
        try:
            run(padded.ravel(), out.ravel(), stride, n)
        except Exception as error:  # numba's own errors are of many kinds
            raise LawError(
                f"law {law.id}: {name} does not compile {'in lanes' if lanes else 'for scalars'}: {reason(error)}; "
                "write literals as const(x, ...), branches as select(mask, a, b), and give the results that the contract asks for"
            ) from error
        return out[:, :n]

    return call


def reason(error: Exception) -> str:
    """Return what numba says of a function in one line: what was unknown, and where in the user's file."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Failed in", "During", "[", "-", "There are", "- "))]
    places = [line for line in lines if line.startswith("File ") and str(jit.CACHE_FOLDER) not in line]
    return f"{type(error).__name__}: {' '.join(told[:2])[:300]}" + (f" ({places[-1].rstrip(':')})" if places else "")


def _source(law: Law, name: str, lanes: bool) -> str:
    """Return the module of the loop over the columns."""
    get = (lambda row: f"load(rows, {row} * stride + i)") if lanes else (lambda row: f"rows[{row} * stride + i]")
    put = (
        (lambda row, value: f"store(out, {row} * stride + i, {value})")
        if lanes
        else (lambda row, value: f"out[{row} * stride + i] = {value}")
    )
    places = argument_rows(law, name)

    def group(argument: str, always: bool = False) -> str:
        values = [get(row) for row in places[argument]]
        return f"({', '.join(values)},)" if len(values) > 1 or always else values[0]

    takes = {**REQUIRED, **OPTIONAL}[name]
    state = f"state = ({''.join(group(entry) + ', ' for entry in law.state)})"
    lines = [state if a == "state" else f"{a} = {group(a, always=a == 'coeffs')}" for a in takes]
    return _SOURCE.format(
        law=law.id,
        module=law.module.__name__,
        name=name,
        width=16 if lanes else 1,
        first=get(0),
        arguments=_indented(lines),
        names=", ".join(takes),
        stores=_indented([put(row, value) for row, value in enumerate(_values(law, name))]),
    )


def _values(law: Law, name: str) -> list[str]:
    """Return the expressions of a result's values."""
    if name == "feasible":
        return ["select(result, const(x, 1.0), const(x, 0.0))"]
    if name == "left_strain":
        return ["result[0]", *(f"result[1][{k}]" for k in range(9))]
    if name in ("advance", "advance_minimised", "project"):
        sizes = [law.fields[entry].rows for entry in law.state]
        return [f"result[{n}]" + (f"[{k}]" if size > 1 else "") for n, size in enumerate(sizes) for k in range(size)]
    return ["result"] if result_rows(law, name) == 1 else [f"result[{k}]" for k in range(result_rows(law, name))]


def _indented(lines: list[str]) -> str:
    return ("\n" + 8 * " ").join(lines)


# ---------------------------------------------------------------- checks
LANE_POINTS = 32
"""States that are compared: two groups of lanes."""

IN_DOUBLE = ("energy", "feasible", "volume_ratio", "left_strain")
"""Functions that solves in single precision call in double precision as well."""


def in_lanes(
    law: Law,
    params: Mapping[str, Any],
    state: Mapping[str, np.ndarray],
    A: np.ndarray,
    dt: float = 1e-3,
    functions: Iterable[str] = (),
) -> Iterator[Finding]:
    """Compile every function to lanes, compare it with NumPy in single precision, and see whether a NaN stays one.

    Args:
        law: The law.
        params: Some of its parameters.
        state: States of points, at least `LANE_POINTS`.
        A: Feasible steps from them, shape (n, 3, 3).
        dt: Time step [s].
        functions: Which functions; none for all that the law has.
    """
    chosen = np.linspace(0, len(A) - 1, LANE_POINTS).astype(int)
    given: dict[str, Any] = {name: values[chosen] for name, values in state.items()}
    given |= {"A": A[chosen], "dA": A[chosen[::-1]], "L": A[chosen] / dt, "dt": np.full(LANE_POINTS, dt)}
    given["coeffs"] = np.tile(law.coefficients(params), (LANE_POINTS, 1))
    for name in functions or functions_of(law):
        for dtype in (np.float32, *([np.float64] if name in IN_DOUBLE else [])):
            parts = argument_rows(law, name)
            rows = np.concatenate([given[part].reshape(LANE_POINTS, -1).T for part in parts]).astype(dtype)
            call = compiled_function(law, name, dtype)
            got, expected = call(rows), _in_numpy(law, name, params, given, dtype, dt)
            kind = np.dtype(dtype).name
            scale = np.abs(expected).max() + _stiffness(law, name, params)
            error = np.abs(got - expected).max() / (scale * np.finfo(dtype).eps)
            cure = f"{name} gives something else in lanes than in NumPy: does it branch on a type?"
            yield Finding(0.0, float(error), 200.0, f"{name}: in lanes against NumPy, {kind}, in rounding units", cure)
        yield Finding(
            0.0,
            float(_disturbed(call, rows, parts)),
            0.0,
            f"{name}: results that change with what stands in other lanes",
            "what any_lane lets in must change only the lanes that need it: write select(mask, new, old)",
        )
        lost = _lost(law, name, call, rows, parts)
        cure = "maximum and minimum return the second where the first is NaN, and comparisons are false: put the bound first"
        what = f"{name}: arguments whose NaN becomes a number"
        yield Finding(0.0, float(len(lost)), 0.0, what, f"NaN in {', '.join(lost)}: {cure}")


def _in_numpy(law: Law, name: str, params: Mapping[str, Any], given: Mapping[str, Any], dtype: Any, dt: float) -> np.ndarray:
    state = {entry: given[entry].astype(dtype) for entry in law.state}
    takes = {**REQUIRED, **OPTIONAL}[name]
    matrices = {key: given[key].astype(dtype) for key in ("A", "dA", "L") if key in takes}
    found = call_law(law.id, name, state, params=params, dt=dt, dtype=dtype, **matrices)
    parts = list(found.values()) if isinstance(found, dict) else list(found) if isinstance(found, tuple) else [found]
    return np.concatenate([np.asarray(part, dtype).reshape(LANE_POINTS, -1).T for part in parts])


def _disturbed(call: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, parts: Mapping[str, list[int]]) -> int:
    """Return how many columns get other bits when the columns beside them are changed: a group's tail holds whatever lies there.

    States and steps of other sizes lead into the slow paths that `any_lane` opens, beside columns that need none of them.
    """
    matter = [row for part, places in parts.items() if part not in ("coeffs", "dt") for row in places]
    changed = 0
    for own, others in ((1.0, 20.0), (1.0, 1e-3), (1e-3, 1.0), (1e-3, 20.0), (0.1, 1.0), (1.0, np.nan)):
        here = rows.copy()
        here[matter] *= own
        alone = call(here)
        for first in (0, 1):
            beside = here.copy()
            beside[np.ix_(matter, range(first, rows.shape[1], 2))] *= others / own
            got, before = call(beside)[:, 1 - first :: 2], alone[:, 1 - first :: 2]
            changed += int((~((got == before) | (np.isnan(got) & np.isnan(before)))).any(axis=0).sum())
    return changed


def _stiffness(law: Law, name: str, params: Mapping[str, Any]) -> float:
    """Return the size in which errors of a function's results are measured besides their own: rho c^2, c, or 1."""
    speed = float(call_law(law.id, "wave_speed", params=params)[0])
    if name in _STRESSES:
        return law.params.density * speed**2
    return speed if name == "wave_speed" else 1.0


def _lost(
    law: Law, name: str, call: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, parts: Mapping[str, list[int]]
) -> list[str]:
    """Return the arguments in which a NaN counts, and yet leaves no trace in the result."""
    lost = []
    for part, places in parts.items():
        for row in [places[k] for k in law.stiffness] if part == "coeffs" else places:
            spoilt, moved = rows.copy(), rows.copy()
            spoilt[row] = np.nan
            moved[row] += 0.3 * (1.0 + np.abs(rows[row]))
            out = call(spoilt)
            counts = (call(moved) != call(rows)).any(axis=0)
            seen = out[0] == 0.0 if name == "feasible" else np.isnan(out).any(axis=0)
            if not seen[counts].all() and part not in lost:
                lost.append(part)
    return lost
