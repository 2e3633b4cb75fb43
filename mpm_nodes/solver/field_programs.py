"""Programs of fields: trees of operations laid out for the kernel that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError, PerFrame, SpatialField
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.fields.programs import MOST, Code, evaluate

__all__ = ["FieldProgram", "field_values", "program_of_fields"]


class FieldProgram(NamedTuple):
    """Fields as one program, at a frame.

    Attributes:
        operations: Rows of (code, three registers, first number), shape (n, 5), int32.
        numbers: Their numbers, float64.
        registers: Which register holds each of the fields.
    """

    operations: np.ndarray
    numbers: np.ndarray
    registers: tuple[int, ...]


def program_of_fields(fields: Sequence[SpatialField], frame: float) -> FieldProgram:
    """Return fields as one program; what several use is found once.

    Args:
        fields: The fields.
        frame: (Fractional) frame at which their keys are taken.

    Raises:
        MpmNodesError: They are made of more than 64 operations.
    """
    rows: list[tuple[int, ...]] = []
    numbers: list[float] = []
    known: dict[int, int] = {}

    def placed(field: SpatialField) -> int:
        if id(field) not in known:
            inputs = [placed(each) for each in field.inputs]
            inputs += [0] * (3 - len(inputs))
            rows.append((int(Code[field.operation]), *inputs, len(numbers)))
            numbers.extend(_flat(field.numbers, frame))
            known[id(field)] = len(rows) - 1
        return known[id(field)]

    registers = tuple(placed(field) for field in fields)
    if len(rows) > MOST:
        raise MpmNodesError(
            f"fields: {len(rows)} operations are wired together; at most {MOST} are evaluated at once, take some out"
        )
    return FieldProgram(np.array(rows, np.int32).reshape(-1, 5), np.array(numbers or [0.0]), registers)


def _flat(numbers: Sequence[Any], frame: float) -> list[float]:
    found: list[float] = []
    for number in numbers:
        value = max(frame, 0.0) * number.rate if isinstance(number, PerFrame) else keys.at(number, frame)
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
    evaluate(np.ascontiguousarray(places, np.float64), program.operations, program.numbers, found)
    return found if field.vector else np.ascontiguousarray(found[:, 0])
