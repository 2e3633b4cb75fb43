"""Arrays of fields on shifted points of the sparse grid's blocks: what nodes, faces and cells have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import Field, MpmNodesError
from mpm_nodes.kernels.transfers import tiles
from mpm_nodes.solver.device.residency import ArrayParts, Residency
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.stores import Saved, Store

__all__ = ["CORNERS", "FACES", "NODES", "GridArrays", "GridField", "grid_fields"]

NODES, CORNERS = (0, 0, 0), (1, 1, 1)
FACES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
"""Shifts: nodes; the faces between neighbouring nodes along x, y and z; the middles of eight nodes.

A staggered grid whose cells are centred at the nodes has its faces at `FACES` and its cell corners at `CORNERS` (S14); one whose
cells are centred at `CORNERS` (`data.STAGGERED`) has its faces at (0, 1, 1), (1, 0, 1) and (1, 1, 0).
"""


@dataclass(frozen=True)
class GridField:
    """A field on the points of the grid.

    Attributes:
        name: What stages call it.
        shift: Origin of its points in half cells: nodes (0, 0, 0), faces (1, 0, 0), (0, 1, 0), (0, 0, 1), and so on.
        components: Values a point.
        unit: Their unit.
        doc: What it is.
        array: The array that holds it, four values a point; fields in one array share a shift, and go through transfers together.
        first: Its first value there; 3 is the place of the weight that the others are multiplied by.
    """

    name: str
    shift: tuple[int, int, int]
    components: int
    unit: str
    doc: str
    array: str
    first: int = 0

    @property
    def part(self) -> slice:
        """Its values among the four."""
        return slice(self.first, self.first + self.components)


def grid_fields(fields: Iterable[Field]) -> Iterator[GridField]:
    """Yield what a grid's arrays hold of the fields of a domain; those that are not packed are none."""
    for each in fields:
        if each.packed is not None:
            yield GridField(each.name, each.shift, each.rows, each.unit, each.doc, *each.packed)


class GridArrays(Store):
    """Fields on points of the blocks of a sparse grid, four values a point.

    Args:
        h: Cell size [m].
        origin: World position of node (0, 0, 0) [m].
        dtype: float32 or float64.

    Attributes:
        fields: The fields by name.
        residency: Where the arrays are in a solve on a device, None without one.
    """

    def __init__(self, h: float, origin: np.ndarray, dtype: np.dtype) -> None:
        self.h, self.origin, self.dtype = h, origin, dtype
        self.residency: Residency | None = None
        self.fields: dict[str, GridField] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._shifts: dict[str, tuple[int, int, int]] = {}
        self._room = PAD

    @property
    def blocks(self) -> np.ndarray:
        """Coordinates of the grid's blocks, shape (count, 3), int32."""
        raise NotImplementedError

    def declare(self, *fields: GridField) -> None:
        """Add fields; their arrays are allocated at once and hold zeros.

        Raises:
            MpmNodesError: A name is taken by another field, or fields of one array overlap or have different shifts.
        """
        for field in fields:
            if self.fields.get(field.name, field) != field:
                raise MpmNodesError(f"grid field '{field.name}' is declared twice, in different ways; give one another name")
            others = [other for other in self.fields.values() if other.array == field.array and other.name != field.name]
            taken = {place for other in others for place in range(4)[other.part]}
            if len(range(4)[field.part]) != field.components or taken & set(range(4)[field.part]):
                raise MpmNodesError(
                    f"grid field '{field.name}': values {field.first} to {field.first + field.components - 1} of array "
                    f"'{field.array}' are taken or do not exist (it has four); choose another array or `first`"
                )
            if self._shifts.setdefault(field.array, field.shift) != field.shift:
                raise MpmNodesError(
                    f"grid field '{field.name}': shift {field.shift} given, array '{field.array}' lies at "
                    f"{self._shifts[field.array]}; choose another array"
                )
            self.fields[field.name] = field
            self.names = tuple(self.fields)
            if field.array not in self._arrays:
                self._arrays[field.array] = aligned(self._room, self.dtype)

    def make_room(self) -> None:
        """Make the arrays large enough for the grid's blocks; what they hold is void where they grow."""
        needed = 256 * len(self.blocks) + PAD
        if self._room < needed:
            self._room = needed * 5 // 4 // 16 * 16 + PAD
            if self.residency is not None:
                self.residency.forget(self._arrays.values())
            self._arrays = {name: aligned(self._room, self.dtype) for name in self._arrays}

    def shift(self, array: str) -> tuple[int, int, int]:
        """Return the origin of an array's points in half cells."""
        self.array(array)
        return self._shifts[array]

    def array(self, name: str, parts: ArrayParts | None = None) -> np.ndarray:
        """Return a flat array, four values a point; with `parts` only these need hold the values of now."""
        array = self.kept(name)
        return array if self.residency is None else self.residency.on_host(array, parts)

    def parts(self, name: str, blocks: np.ndarray, value: int | None = None) -> ArrayParts:
        """Return the parts of arrays that some blocks are, in a solve on a device.

        Args:
            name: What the blocks are (`Residency.parts`).
            blocks: Their places, ascending.
            value: Which of the four values of the points alone; None: all.
        """
        assert self.residency is not None
        first, step = (256 * blocks, 1) if value is None else (256 * blocks + value, 4)
        return self.residency.parts(name, first, np.full(len(blocks), 256 // step), step)

    def kept(self, name: str) -> np.ndarray:
        """Return the memory of an array, whose newest values may be on a device."""
        try:
            return self._arrays[name]
        except KeyError:
            raise MpmNodesError(
                f"grid array '{name}' does not exist (there are {', '.join(self._arrays)}); declare a GridField in it"
            ) from None

    def real(self, value: float) -> np.floating:
        """Return a scalar in the solve's float type."""
        return self.dtype.type(value)

    def clear(self, *names: str) -> None:
        """Zero arrays."""
        for name in names:
            if self.residency is None:
                tiles.clear_grid(self.kept(name), len(self.blocks))
            else:
                self.residency.cleared(self.kept(name))

    def positions(self, shift: tuple[int, int, int] = NODES) -> np.ndarray:
        """Return the points of a shift [m], shape (64 count, 3)."""
        node = np.stack(np.meshgrid(*(np.arange(4),) * 3, indexing="ij"), -1).reshape(1, 64, 3)
        return (self.origin + self.h * (4.0 * self.blocks[:, None, :] + node + 0.5 * np.array(shift))).reshape(-1, 3)

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`; the tables follow the particles."""
        return Saved({}, {name: self.unpack(name) for name in self.names if name not in skip})

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        self.put(saved.fields)

    def put(self, fields: Mapping[str, np.ndarray]) -> None:
        """See `Store`."""
        for name, values in fields.items():
            self.pack(name, values)

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of a field, shape (64 count, components) or (64 count,); "position" are the nodes' [m]."""
        if name == "position":
            return self.positions()
        field = self._field(name)
        values = self.array(field.array)[: 256 * len(self.blocks)].reshape(-1, 4)[:, field.part].copy()
        return values[:, 0] if field.components == 1 else values

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write a field from the shape that `unpack` gives."""
        field = self._field(name)
        nodes = self.array(field.array)[: 256 * len(self.blocks)].reshape(-1, 4)
        nodes[:, field.part] = np.asarray(values).reshape(nodes[:, field.part].shape)

    def _field(self, name: str) -> GridField:
        try:
            return self.fields[name]
        except KeyError:
            raise MpmNodesError(f"grid field '{name}' does not exist (there are {', '.join(self.fields)}); declare it") from None
