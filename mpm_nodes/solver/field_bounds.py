"""Between which numbers the values of a field lie, wherever and whenever it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import SpatialField
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector

__all__ = ["Bounds", "bounds"]

Bounds = tuple[float, float]

_FREE = (-math.inf, math.inf)
_GRADIENT = 2.0
"""Largest value of one octave of gradient noise in four dimensions: a gradient of length sqrt(3), at most sqrt(4) / 2 away."""


def bounds(field: SpatialField) -> Bounds:
    """Return the least and the largest value that a field can have, over all places, times, and axes of vectors.

    They are safe, and not always reached: operands are taken to vary independently.

    Args:
        field: The field.
    """
    known: dict[int, Bounds] = {}
    waiting = [field]
    while waiting:
        last = waiting[-1]
        missing = [each for each in last.inputs if id(each) not in known]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        inputs = [known[id(each)] for each in last.inputs]
        known[id(last)] = _RULES.get(last.operation, _free)(last, inputs)
    return known[id(field)]


def _free(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    return _FREE


def _values(number: Any) -> list[float]:
    """Return all values of a number or vector, keyed or not; of one that is known in the solve only its bounds."""
    if not isinstance(number, (float, int, tuple)):
        return [-math.inf, math.inf]
    values = [key[1] for key in number.keys] if isinstance(number, (KeyedNumber, KeyedVector)) else [number]
    return [float(each) for value in values for each in (value if isinstance(value, tuple) else (value,))]


def _hull(*values: float) -> Bounds:
    return min(values), max(values)


def _of_numbers(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    return _hull(*[each for number in field.numbers for each in _values(number)])


def _of_noise(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    most = _GRADIENT * sum(0.5**octave for octave in range(int(field.numbers[2])))
    return (0.0 if field.operation == "ROUGH" else -most), most


def _of_remapped(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    if field.numbers[4] == 0.0:  # endless
        return _FREE
    return _hull(*_values(field.numbers[2]), *_values(field.numbers[3]))


def _of_grid(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    assert field.grid is not None
    held = field.grid.voxels[~np.isnan(field.grid.voxels)]
    values = [float(held.min()), float(held.max())] if len(held) else []
    return _hull(*values, *(_values(field.numbers[0]) if field.numbers else ()), *(() if values or field.numbers else (0.0,)))


def _of_inputs(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in inputs), max(high for _, high in inputs)


def _by_corners(operation: Callable[[float, float], float]) -> Callable[[SpatialField, Sequence[Bounds]], Bounds]:
    """Return the rule of an operation that is monotone in each of two operands, whatever the other is."""

    def rule(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
        found = [operation(a, b) for a in inputs[0] for b in inputs[1]]
        return _FREE if any(map(math.isnan, found)) else _hull(*found)

    return rule


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b  # 0 times a bound that is infinite


def _of_quotient(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    low, high = inputs[1]
    if low <= 0.0 <= high and low != high:
        return _FREE
    return (0.0, 0.0) if low == high == 0.0 else _of_product(field, (inputs[0], _hull(1.0 / low, 1.0 / high)))


def _of_absolute(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    low, high = inputs[0]
    return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _of_length(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    return 0.0, math.sqrt(3.0) * _of_absolute(field, inputs)[1]


def _of_mix(field: SpatialField, inputs: Sequence[Bounds]) -> Bounds:
    low, high = inputs[2]
    if 0.0 <= low <= high <= 1.0:
        return _of_inputs(field, inputs[:2])
    return _sum(field, (inputs[0], _of_product(field, (inputs[2], _difference(field, (inputs[1], inputs[0]))))))


_of_product, _sum = _by_corners(_product), _by_corners(lambda a, b: a + b)
_difference = _by_corners(lambda a, b: a - b)

_RULES: dict[str, Callable[[SpatialField, Sequence[Bounds]], Bounds]] = {
    "CONSTANT": _of_numbers,
    "NOISE": _of_noise,
    "ROUGH": _of_noise,
    "REMAPPED": _of_remapped,
    "GRID": _of_grid,
    "CUBES": _of_grid,
    "COURSE": _of_inputs,
    "BETWEEN": _of_inputs,
    "FILLED": _of_inputs,
    "MIX": _of_mix,
    "ADD": _sum,
    "SUBTRACT": _difference,
    "MULTIPLY": _of_product,
    "DIVIDE": _of_quotient,
    "MINIMUM": _by_corners(min),
    "MAXIMUM": _by_corners(max),
    "ABSOLUTE": _of_absolute,
    "LENGTH": _of_length,
    "NORMALIZE": lambda field, inputs: (-1.0, 1.0),
    "COSINE": lambda field, inputs: (-1.0, 1.0),
}
