"""What laws compute with: the types of their arguments.

A value is a float, a NumPy column, a numba scalar or sixteen lanes. Type checkers let a law do with it only what all of these can:
no `if`, no `**`, no `abs`, and no literal on the left (`const(x, 2.0) * x`).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

__all__ = [
    "Coefficients",
    "ElasticModule",
    "FloatType",
    "LawModule",
    "Mask",
    "Matrix",
    "PrincipalStress",
    "ReturnMapModule",
    "State",
    "Symmetric",
    "Value",
    "Vector",
]

Mask: TypeAlias = Any
"""Where something holds: a bool, a NumPy column of bool or a mask of lanes; for `both`, `either`, `negate` and `select`."""

FloatType: TypeAlias = type[np.floating[Any]] | np.dtype[Any]
"""numpy.float32 or numpy.float64, or the dtype of an array of these."""


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


class LawModule(Protocol):
    """The functions of a law, as fragments call them: those that every law has, and those that a fragment names in its `needs`."""

    def energy(self, state: State, A: Matrix, coeffs: Coefficients, dt: Value, /) -> Value: ...

    def stress(self, state: State, A: Matrix, coeffs: Coefficients, dt: Value, /) -> Matrix: ...

    def stress_differential(self, state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value, /) -> Matrix: ...

    def advance(self, state: State, A: Matrix, coeffs: Coefficients, dt: Value, /) -> State: ...

    def advance_minimised(self, state: State, A: Matrix, coeffs: Coefficients, dt: Value, /) -> State: ...

    def feasible(self, state: State, A: Matrix, coeffs: Coefficients, dt: Value, /) -> Mask: ...

    def wave_speed(self, state: State, coeffs: Coefficients, /) -> Value: ...

    def project(self, state: State, coeffs: Coefficients, dt: Value, /) -> State: ...

    def viscous_stress(self, state: State, L: Matrix, coeffs: Coefficients, /) -> Matrix: ...

    def kirchhoff(self, state: State, coeffs: Coefficients, /) -> Matrix: ...

    def left_strain(self, state: State, /) -> tuple[Value, Matrix]: ...

    def left_stretch(self, state: State, /) -> Symmetric: ...

    def stretched_stress(self, state: State, coeffs: Coefficients, /) -> Matrix: ...

    def stretched_differential(self, state: State, dA: Matrix, coeffs: Coefficients, /) -> Matrix: ...

    def volume_ratio(self, state: State, /) -> Value: ...


class ElasticModule(LawModule, Protocol):
    """A law, or one without knobs, that names its strain (`composition`)."""

    STRAIN: str
    STATE: tuple[Any, ...]
    COEFFICIENTS: tuple[str, ...]
    STIFFNESS: tuple[str, ...]
    VISCOSITY: str | None

    def coefficients(self, params: Any, density: float, /) -> tuple[float, ...]: ...


class ReturnMapModule(Protocol):
    """A return map on the principal stretches of any elastic strain (`composition`); what it may have besides is not listed."""

    STATE: tuple[Any, ...]
    COEFFICIENTS: tuple[str, ...]

    def coefficients(self, params: Any, /) -> tuple[float, ...]: ...

    def project_stretches(
        self, s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients, dt: Value, /
    ) -> tuple[Vector, State]: ...

    def yield_function(
        self, s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients, /
    ) -> Value: ...
