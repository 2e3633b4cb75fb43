"""Programs of fields: trees of operations laid out for the kernel that runs them."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import AGE, BIRTH, FieldGrid, Gravity, Moment, MovingAxes, MpmNodesError, PerFrame, SpatialField, TimeLeft
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.fields import codes
from mpm_nodes.kernels.fields.programs import MOST, evaluate
from mpm_nodes.solver.poses import axes_numbers
from mpm_nodes.solver.state import ParticleStore

__all__ = ["FieldProgram", "FieldThroughSpace", "Runnable", "changes", "field_values", "program_of_fields", "rows_of", "varies"]


class FieldProgram(NamedTuple):
    """Fields as one program, at a frame.

    Attributes:
        operations: Rows of (code, three registers, first number), shape (5 n,), int32.
        uniform: How many of them, the first ones, are the same everywhere.
        numbers: Their numbers, float64.
        grids: Keys of the leaves of all grids, int64, and their voxels, float32.
        registers: Which register holds each of the fields.
        attributes: What it reads of particles: names, their registers, and whether they are vectors.
    """

    operations: np.ndarray
    uniform: int
    numbers: np.ndarray
    grids: tuple[np.ndarray, np.ndarray]
    registers: tuple[int, ...]
    attributes: tuple[tuple[str, int, bool], ...] = ()

    def with_own(self, rows: Callable[[str], np.ndarray], count: int) -> Runnable:
        """Return what kernels take: the program, and what particles have of its attributes.

        Args:
            rows: Returns of an attribute's values one row or three, of `count` or more elements each.
            count: How many particles there are.

        Raises:
            MpmNodesError: A vector is read as a number, or the other way round.
        """
        values = np.empty((len(self.attributes), 3, count))
        for place, (name, _, vector) in enumerate(self.attributes):
            given = rows(name)
            if len(given) != (3 if vector else 1):
                what = {1: "a number", 3: "a vector"}.get(len(given), "neither a number nor a vector")
                raise MpmNodesError(f"field_attribute.vector: is {str(vector).lower()}, and '{name}' of the particles is {what}")
            values[place] = given[:, :count]
        own = np.array([register for _, register, _ in self.attributes], np.int32), values.ravel()
        return self.operations, self.uniform, self.numbers, self.grids, own


Runnable = tuple[np.ndarray, int, np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""What kernels of fields take."""


def program_of_fields(fields: Sequence[SpatialField], when: float | Moment, of_particles: bool = False) -> FieldProgram:
    """Return fields as one program; what several use is found once.

    Args:
        fields: The fields.
        when: (Fractional) frame at which their keys are taken, or the moment.
        of_particles: Whether they are looked at on particles.

    Raises:
        MpmNodesError: They are made of more than 512 operations, or read attributes where there are no particles.
    """
    moment = when if isinstance(when, Moment) else Moment(when)
    order: list[SpatialField] = []
    varies: dict[int, bool] = {}

    waiting = list(reversed(fields))
    while waiting:
        field = waiting[-1]
        missing = [each for each in _inputs(field, moment.frame)[0] if id(each) not in varies]
        if id(field) in varies or not missing:
            waiting.pop()
        if id(field) not in varies and not missing:
            inputs = _inputs(field, moment.frame)[0]
            varies[id(field)] = field.operation in ("PLACE", "ATTRIBUTE") or any(varies[id(each)] for each in inputs)
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
        inputs, share = _inputs(field, moment.frame)
        row[0], row[4] = codes.BETWEEN if field.operation == "COURSE" else getattr(codes, field.operation), len(numbers)
        row[1 : 1 + len(inputs)] = [place[id(each)] for each in inputs]
        if field.attribute:
            row[1] = place[id(field)]
        if field.grid is not None:
            numbers += [*field.grid.to_index.ravel(), *_flat(field.numbers, moment), *begins[grids.index(field.grid)]]
        else:
            numbers += [share] if field.operation == "COURSE" else _flat(field.numbers, moment)
    uniform = sum(not each for each in varies.values())
    own = tuple((field.attribute, place[id(field)], field.vector) for field in order if field.attribute)
    if own and not of_particles:
        raise MpmNodesError(f"field_attribute: '{own[0][0]}' is known on particles only, and this field is looked at elsewhere")
    registers = tuple(place[id(field)] for field in fields)
    return FieldProgram(rows.ravel(), uniform, np.array(numbers or [0.0]), pools, registers, own)


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


def changes(number: Any) -> bool:
    """Return whether a number of a field changes over time."""
    return (
        isinstance(number, PerFrame | TimeLeft | Gravity)
        or (isinstance(number, MovingAxes) and len(number.body.frames) > 1)
        or keys.carries_keys(number)
    )


def varies(field: SpatialField) -> bool:
    """Return whether a field changes over time: by keys, by time itself, or from one file of a sequence to the next."""
    waiting, seen = [field], set[int]()
    while waiting:
        each = waiting.pop()
        if each.operation == "COURSE" or any(map(changes, each.numbers)):
            return True
        seen.add(id(each))
        waiting += [one for one in each.inputs if id(one) not in seen]
    return False


def _flat(numbers: Sequence[Any], moment: Moment) -> list[float]:
    found: list[float] = []
    for number in numbers:
        value = _value(number, moment)
        found += [float(each) for each in value] if isinstance(value, tuple) else [float(value)]
    return found


def _value(number: Any, moment: Moment) -> Any:
    if isinstance(number, MovingAxes):
        return axes_numbers(number, moment)
    return number.at(moment) if isinstance(number, PerFrame | TimeLeft | Gravity) else keys.at(number, moment.frame)


def field_values(
    field: SpatialField, places: np.ndarray, when: float | Moment, columns: Mapping[str, np.ndarray] | None = None
) -> np.ndarray:
    """Return what a field is at places.

    Args:
        field: The field.
        places: [m], shape (n, 3).
        when: (Fractional) frame, or the moment.
        columns: Of particles at the places, shape (n,), (n, 1) or (n, 3), by name; None: there are no particles.

    Returns:
        float64, shape (n,), or (n, 3) of a vector.

    Raises:
        MpmNodesError: The field reads what the particles do not have.
    """
    program = program_of_fields([field], when, columns is not None)

    def rows(name: str) -> np.ndarray:
        if columns is None or name not in columns:
            raise MpmNodesError(
                f"field_attribute: the particles have no '{name}' where they begin; they have {', '.join(sorted(columns or ()))}"
            )
        return np.atleast_2d(np.asarray(columns[name], np.float64).T)

    found = np.empty((len(places), 3))
    evaluate(np.ascontiguousarray(places, np.float64), *program.with_own(rows, len(places)), found)
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


def rows_of(particles: ParticleStore, moment: Moment) -> Callable[[str], np.ndarray]:
    """Return what gives the rows of an attribute of a solve's particles at a moment; `AGE` is the time since their birth."""

    def rows(name: str) -> np.ndarray:
        return moment.time - particles.rows(BIRTH).astype(np.float64) if name == AGE else particles.rows(name)

    return rows
