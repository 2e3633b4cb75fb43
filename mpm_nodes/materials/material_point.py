"""Call any function of any law on NumPy arrays, one row a material point: for tests, research and other programs.

No kernel is compiled: the laws' own source runs on whole columns.

    T = call_law("snow", "stress", {"deformation": F}, A, params={"hardening": 5.0}, dt=1e-4)
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mpm_nodes.materials.contract import OPTIONAL, REQUIRED, Law, LawError, law
from mpm_nodes.materials.values import FloatType

__all__ = ["call_law"]

_MATRICES = ("stress", "stress_differential", "viscous_stress", "kirchhoff", "stretched_stress", "stretched_differential")
_FORMS = {1: "one value", 6: "a tuple of six (xx xy xz yy yz zz)", 9: "a tuple of nine, row-major"}


def call_law(
    law_id: str,
    function: str,
    state: Mapping[str, Any] | None = None,
    A: Any = None,
    dA: Any = None,
    L: Any = None,
    *,
    params: Any = None,
    density: float | None = None,
    dt: float = 1.0,
    stiffness_scale: Any = None,
    dtype: FloatType = np.float64,
) -> Any:
    """Evaluate one function of a law for n material points.

    Args:
        law_id: Id of the law ("snow").
        function: "energy", "stress", "stress_differential", "advance", "project", "feasible", "wave_speed",
            "viscous_stress", "kirchhoff", "left_strain", "left_stretch", "stretched_stress", "stretched_differential",
            "volume_ratio" or "yield_function".
        state: State by attribute name, shapes (n, *attribute shape); what is missing is at rest.
        A: Incremental displacement gradient dt grad v, shape (n, 3, 3); zero by default.
        dA: Direction of the derivative, shape (n, 3, 3); zero by default.
        L: Velocity gradient [1/s], shape (n, 3, 3); zero by default.
        params: `Params` instance or mapping of some of its fields, SI.
        density: Undeformed density [kg/m^3]; None takes the law's default.
        dt: Time step [s].
        stiffness_scale: Multiplier of the stiffness, shape (n,) or one number.
        dtype: Float type of the arithmetic.

    Returns:
        Energies [J/m^3] or speeds [m/s] of shape (n,), a mask (n,), stresses [Pa] of shape (n, 3, 3), or for "advance"
        and "project" the new state by attribute name; for "left_strain" J, shape (n,), and b, shape (n, 3, 3); for "left_stretch"
        its six values, shape (n, 6).

    Raises:
        LawError: When the law, the function, a parameter or a state name is unknown, or a shape does not fit; when the law's own
            function fails or returns what the contract does not ask for.
    """
    found = law(law_id)
    called = found.function(function)
    if called is None:
        raise LawError(f"law {law_id}: has no {function}; it is optional in the contract")
    columns = _columns(found, dict(state or {}), {"A": A, "dA": dA, "L": L}, stiffness_scale, dtype)
    values: dict[str, Any] = {name: columns[name] for name in ("A", "dA", "L")}
    values["state"] = tuple(columns[name] for name in found.state)
    values["coeffs"] = _coefficients(found, found.coefficients(params, density), columns["scale"], dtype)
    values["dt"] = np.asarray(dt, dtype)[()]
    try:
        result = called(*(values[name] for name in {**REQUIRED, **OPTIONAL}[function]))
    except Exception as error:
        raise LawError(f"law {law_id}: {function} fails{_place(error, found)}: {_fault_of(error)}") from error
    count = len(columns["scale"])
    _check_result(found, function, result, count)
    if function in ("advance", "advance_minimised", "project"):
        return {name: _rows(value, count, dtype) for name, value in zip(found.state, result, strict=True)}
    if function == "left_strain":
        return _rows(result[0], count, dtype), _rows(result[1], count, dtype)
    return _rows(result, count, bool if function == "feasible" else dtype)


def _place(error: Exception, found: Law) -> str:
    """Return the line of the law's file, or of what it calls, where an error came up."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    own = [frame for frame in frames if frame.filename == found.module.__file__]
    chosen = (own or frames)[-1:]
    return "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in chosen)


def _fault_of(error: Exception) -> str:
    told = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if isinstance(error, ValueError) and "truth value" in str(error):
        return "a branch on values; write select(mask, a, b) instead of if, and both, either, negate instead of and, or, not"
    return f"{told}; fix the function"


def _check_result(found: Law, function: str, result: Any, count: int) -> None:
    """Refuse a result of another form than the contract asks for."""

    def fail(given: str, needed: str) -> None:
        raise LawError(f"law {found.id}: {function} returns {given}; return {needed}")

    def check(value: Any, size: int, what: str) -> None:
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) != size or isinstance(value, tuple) != (size > 1):
            fail(f"{f'a tuple of {len(parts)}' if isinstance(value, tuple) else 'one value'}{what}", f"{_FORMS[size]}{what}")
        for part in parts:
            if isinstance(part, tuple) or np.shape(part) not in ((), (1,), (count,)):
                fail(f"a value of shape {np.shape(part)}{what} for {count} points", "values that have one number a point")

    if function in ("advance", "advance_minimised", "project"):
        if not isinstance(result, tuple) or len(result) != len(found.state):
            given = f"a tuple of {len(result)}" if isinstance(result, tuple) else "one value"
            fail(given, f"a tuple of {len(found.state)}: ({', '.join(found.state)},)")
        for name, value in zip(found.state, result, strict=True):
            check(value, found.fields[name].rows, f" for {name}")
    elif function == "left_strain":
        if not isinstance(result, tuple) or len(result) != 2:
            fail("something else", "a pair: J, and the nine values of b")
        check(result[0], 1, " for J")
        check(result[1], 9, " for b")
    else:
        check(result, 9 if function in _MATRICES else 6 if function == "left_stretch" else 1, "")
        if function == "feasible" and np.asarray(result).dtype != np.bool_:
            fail("numbers", "a mask: a comparison, or several joined by both, either and negate")


def _columns(found: Law, state: dict[str, Any], matrices: dict[str, Any], scale: Any, dtype: FloatType) -> dict[str, Any]:
    """Return all arguments as columns of one length."""
    unknown = sorted(set(state) - set(found.state))
    if unknown:
        raise LawError(f"law {found.id}: state has {', '.join(unknown)}; it takes {', '.join(found.state)}")
    shapes = {name: found.fields[name].shape for name in found.state} | dict.fromkeys(matrices, (3, 3)) | {"scale": ()}
    values = {**state, **matrices, "scale": scale}
    given = {name: np.asarray(value, dtype) for name, value in values.items() if value is not None}
    counts = {}
    for name, array in given.items():
        shape = shapes[name]
        if array.shape == shape:
            continue  # one value for all points
        if array.shape[1:] != shape or array.ndim != len(shape) + 1:
            raise LawError(f"law {found.id}: {name} has shape {array.shape}; give {('n', *shape)} or {shape}")
        counts[name] = len(array)
    if len(set(counts.values())) > 1:
        raise LawError(f"law {found.id}: arguments differ in length ({counts}); give each one row a point")
    count = next(iter(counts.values()), 1)
    rest = found.rest_state(1, dtype) | {name: np.zeros((1, 3, 3), dtype) for name in matrices}
    rest["scale"] = np.ones(1, dtype)
    columns = {}
    for name, shape in shapes.items():
        rows = np.broadcast_to(given.get(name, rest[name][0]), (count, *shape))
        columns[name] = tuple(rows.reshape(count, -1).T) if shape else rows
    return columns


def _coefficients(found: Law, numbers: np.ndarray, scale: np.ndarray, dtype: FloatType) -> tuple[Any, ...]:
    numbers = numbers.astype(dtype)
    return tuple(number * scale if index in found.stiffness else number for index, number in enumerate(numbers))


def _rows(value: Any, count: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Return a value or a tuple of nine as an array with one row a point."""
    if not isinstance(value, tuple):
        return np.broadcast_to(np.asarray(value, dtype), (count,)).copy()
    rows = np.stack([np.broadcast_to(np.asarray(component, dtype), (count,)) for component in value], axis=1)
    return rows.reshape(count, 3, 3) if len(value) == 9 else rows
