"""Call any function of any law on NumPy arrays, one row a material point: for tests, research and other programs.

No kernel is compiled: the laws' own source runs on whole columns.

    T = call_law("snow", "stress", {"deformation": F}, A, params={"hardening": 5.0}, dt=1e-4)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.materials.contract import OPTIONAL, REQUIRED, Law, LawError, law

__all__ = ["call_law"]


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
    dtype: Any = np.float64,
) -> Any:
    """Evaluate one function of a law for n material points.

    Args:
        law_id: Id of the law ("snow").
        function: "energy", "stress", "stress_differential", "advance", "project", "feasible", "wave_speed",
            "viscous_stress", "kirchhoff", "left_strain" or "volume_ratio".
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
        and "project" the new state by attribute name; for "left_strain" J, shape (n,), and b, shape (n, 3, 3).

    Raises:
        LawError: When the law, the function, a parameter or a state name is unknown, or a shape does not fit.
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
    result = called(*(values[name] for name in {**REQUIRED, **OPTIONAL}[function]))
    count = len(columns["scale"])
    if function in ("advance", "project"):
        return {name: _rows(value, count, dtype) for name, value in zip(found.state, result, strict=True)}
    if function == "left_strain":
        return _rows(result[0], count, dtype), _rows(result[1], count, dtype)
    return _rows(result, count, bool if function == "feasible" else dtype)


def _columns(found: Law, state: dict[str, Any], matrices: dict[str, Any], scale: Any, dtype: Any) -> dict[str, Any]:
    """Return all arguments as columns of one length."""
    unknown = sorted(set(state) - set(found.state))
    if unknown:
        raise LawError(f"law {found.id}: state has {', '.join(unknown)}; it takes {', '.join(found.state)}")
    shapes = {name: ATTRIBUTES[name].shape for name in found.state} | dict.fromkeys(matrices, (3, 3)) | {"scale": ()}
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


def _coefficients(found: Law, numbers: np.ndarray, scale: np.ndarray, dtype: Any) -> tuple[Any, ...]:
    numbers = numbers.astype(dtype)
    return tuple(number * scale if index in found.stiffness else number for index, number in enumerate(numbers))


def _rows(value: Any, count: int, dtype: Any) -> np.ndarray:
    """Return a value or a tuple of nine as an array with one row a point."""
    if not isinstance(value, tuple):
        return np.broadcast_to(np.asarray(value, dtype), (count,)).copy()
    rows = np.stack([np.broadcast_to(np.asarray(component, dtype), (count,)) for component in value], axis=1)
    return rows.reshape(count, 3, 3) if len(value) == 9 else rows
