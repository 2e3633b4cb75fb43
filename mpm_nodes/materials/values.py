"""What laws compute with: the types of their arguments.

A value is a float, a NumPy column, a numba scalar or sixteen lanes. Type checkers let a law do with it only what all of these can:
no `if`, no `**`, no `abs`, and no literal on the left (`const(x, 2.0) * x`).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

__all__ = ["Coefficients", "Mask", "Matrix", "PrincipalStress", "State", "Symmetric", "Value", "Vector"]

Mask: TypeAlias = Any
"""Where something holds: a bool, a NumPy column of bool or a mask of lanes; for `both`, `either`, `negate` and `select`."""


class Value(Protocol):
    """A real number of one material point, or of several side by side."""

    def __neg__(self) -> Value: ...

    def __add__(self, other: Any, /) -> Value: ...

    def __sub__(self, other: Any, /) -> Value: ...

    def __mul__(self, other: Any, /) -> Value: ...

    def __truediv__(self, other: Any, /) -> Value: ...

    def __lt__(self, other: Any, /) -> Mask: ...

    def __le__(self, other: Any, /) -> Mask: ...

    def __gt__(self, other: Any, /) -> Mask: ...

    def __ge__(self, other: Any, /) -> Mask: ...


Vector: TypeAlias = tuple[Value, Value, Value]
"""Three values: principal stretches, for one."""

Symmetric: TypeAlias = tuple[Value, Value, Value, Value, Value, Value]
"""A symmetric matrix: xx, xy, xz, yy, yz, zz."""

Matrix: TypeAlias = tuple[Value, Value, Value, Value, Value, Value, Value, Value, Value]
"""A matrix, row-major."""

State: TypeAlias = tuple[Any, ...]
"""One entry for each name in a law's STATE: a value, a `Symmetric` or a `Matrix`."""

Coefficients: TypeAlias = tuple[Value, ...]
"""One value for each name in a law's COEFFICIENTS."""


class PrincipalStress(Protocol):
    """What a return map asks of the elastic part: principal Kirchhoff stresses [Pa] of principal stretches."""

    def __call__(self, s: Vector, moduli: Coefficients, /) -> Vector: ...
