"""Programs of fields: trees of operations laid out for the kernel that runs them."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import FieldGrid, MpmNodesError, PerFrame, SpatialField
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.fields.programs import MOST, Code, evaluate

__all__ = ["FieldProgram", "FieldThroughSpace", "field_values", "program_of_fields"]


class FieldProgram(NamedTuple):
    """Fields as one program, at a frame.

    Attributes:
        operations: Rows of (code, three registers, first number), shape (5 n,), int32.
        uniform: How many of them, the first ones, are the same everywhere.
        numbers: Their numbers, float64.
        grids: Keys of the leaves of all grids, int64, and their voxels, float32.
        registers: Which register holds each of the fields.
    """

    operations: np.ndarray
    uniform: int
    numbers: np.ndarray
    grids: tuple[np.ndarray, np.ndarray]
    registers: tuple[int, ...]


def program_of_fields(fields: Sequence[SpatialField], frame: float) -> FieldProgram:
    """Return fields as one program; what several use is found once.

    Args:
        fields: The fields.
        frame: (Fractional) frame at which their keys are taken.

    Raises:
        MpmNodesError: They are made of more than 512 operations.
    """
    order: list[SpatialField] = []
    varies: dict[int, bool] = {}

    waiting = list(reversed(fields))
    while waiting:
        field = waiting[-1]
        missing = [each for each in _inputs(field, frame)[0] if id(each) not in varies]
        if id(field) in varies or not missing:
            waiting.pop()
        if id(field) not in varies and not missing:
            varies[id(field)] = field.operation == "PLACE" or any(varies[id(each)] for each in _inputs(field, frame)[0])
            order.append(field)
        waiting += missing if id(field) not in varies else []
    if len(order) > MOST:
        raise MpmNodesError(f"fields: {len(order)} operations are wired together, and at most {MOST} may be; take some out")
    order.sort(key=lambda field: varies[id(field)])  # stable: inputs stay before what they go into
    place = {id(field): n for n, field in enumerate(order)}
    rows, numbers = np.zeros((len(order), 5), np.int32), list[float]()
    grids = tuple(dict.fromkeys(field.grid for field in order if field.grid is not None))
    pools, begins = _joined(grids)
    for row, field in zip(rows, order, strict=True):
        inputs, share = _inputs(field, frame)
        row[0], row[4] = Code.BETWEEN if field.operation == "COURSE" else Code[field.operation], len(numbers)
        row[1 : 1 + len(inputs)] = [place[id(each)] for each in inputs]
        if field.grid is not None:
            numbers += [*field.grid.to_index.ravel(), *_flat(field.numbers, frame), *begins[grids.index(field.grid)]]
        else:
            numbers += [share] if field.operation == "COURSE" else _flat(field.numbers, frame)
    uniform = sum(not each for each in varies.values())
    return FieldProgram(rows.ravel(), uniform, np.array(numbers or [0.0]), pools, tuple(place[id(field)] for field in fields))


def _inputs(field: SpatialField, frame: float) -> tuple[tuple[SpatialField, ...], float]:
    """Return the inputs that a field takes at a frame: of a COURSE two, and the share of the second."""
    if field.operation != "COURSE":
        return field.inputs, 0.0
    after = bisect_right(field.numbers, frame)
    if after in (0, len(field.numbers)) or field.numbers[after - 1] == frame:  # there it alone counts, also where it ends
        return (field.inputs[max(after - 1, 0)],) * 2, 0.0
    begin, end = field.numbers[after - 1 : after + 1]
    return field.inputs[after - 1 : after + 1], (frame - begin) / (end - begin)


@functools.lru_cache(maxsize=8)
def _joined(grids: tuple[FieldGrid, ...]) -> tuple[tuple[np.ndarray, np.ndarray], tuple[tuple[float, ...], ...]]:
    """Return the leaves and voxels of grids in one array each; for each grid where it begins, and its numbers a voxel."""
    begins, first, begin = [], 0, 0
    for grid in grids:
        begins.append((float(first), float(len(grid.leaves)), float(begin), float(grid.parts)))
        first, begin = first + len(grid.leaves), begin + len(grid.voxels)
    if len(grids) == 1:
        return (grids[0].leaves, grids[0].voxels), tuple(begins)
    leaves = np.concatenate([np.zeros(0, np.int64), *(each.leaves for each in grids)])
    return (leaves, np.concatenate([np.zeros(0, np.float32), *(each.voxels for each in grids)])), tuple(begins)


def _flat(numbers: Sequence[Any], frame: float) -> list[float]:
    found: list[float] = []
    for number in numbers:
        value = (frame * number.rate if np.isfinite(frame) else 0.0) if isinstance(number, PerFrame) else keys.at(number, frame)
        found += [float(each) for each in value] if isinstance(value, tuple) else [float(value)]
    return found


def field_values(field: SpatialField, places: np.ndarray, frame: float) -> np.ndarray:
    """Return what a field is at places.

    Args:
        field: The field.
        places: [m], shape (n, 3).
        frame: (Fractional) frame.

    Returns:
        float64, shape (n,), or (n, 3) of a vector.
    """
    program = program_of_fields([field], frame)
    found = np.empty((len(places), 3))
    evaluate(np.ascontiguousarray(places, np.float64), program.operations, program.uniform, program.numbers, program.grids, found)
    return found if field.vector else np.ascontiguousarray(found[:, 0])


@dataclass(frozen=True, eq=False)
class FieldThroughSpace:
    """A field of numbers for whoever asks for values at places.

    Attributes:
        field: The field.
        edge: Length over which differences of its values are taken [m].
        frame: (Fractional) frame.
    """

    field: SpatialField
    edge: float
    frame: float

    def at_frame(self, frame: float) -> FieldThroughSpace:
        """Return it as it is at another frame."""
        return replace(self, frame=frame)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places [m], shape (n, 3) to (n,)."""
        return field_values(self.field, places, self.frame)
