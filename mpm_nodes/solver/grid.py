"""The sparse background grid of a solve: blocks of 4^3 nodes under and around the particles, and the tables of the transfers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import GRID, GRID_FIELDS, MpmNodesError
from mpm_nodes.kernels.compile.jit import most_threads
from mpm_nodes.kernels.composition.source import LOCAL_ROWS
from mpm_nodes.kernels.transfers import binning, tiles
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Saved, Store

LEAST_MASS = {np.dtype(np.float32): 1e-10, np.dtype(np.float64): 1e-14}
"""Mass of an empty node over the mean particle mass: below it, the quotient of force and mass outgrows the rounding of a gather."""


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


NODES, CORNERS = (0, 0, 0), (1, 1, 1)
FACES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
"""Shifts: nodes; the faces between neighbouring nodes along x, y and z; the middles of eight nodes.

A staggered grid whose cells are centred at the nodes has its faces at `FACES` and its cell corners at `CORNERS` (S14); one whose
cells are centred at `CORNERS` has its faces at (0, 1, 1), (1, 0, 1) and (1, 1, 0).
"""
NODE_FIELDS = tuple(
    GridField(name, NODES, field.rows, field.unit, field.doc, *field.packed)
    for name, field in GRID_FIELDS.items()
    if field.packed is not None
)
"""What every grid holds."""


class _Tables:
    """Where the points of one store lie among the grid's blocks: what its transfers need."""

    def __init__(self, points: ParticleStore, tile_slot: np.ndarray) -> None:
        self.points, self.tile_slot, self.generation = points, tile_slot, points.generation
        self.colours = [self._coloured(ranges) for ranges in (points.ranges, *points.segments)]

    def arrays(self) -> list[np.ndarray]:
        """Return the tables' arrays, without those of the points."""
        return [self.tile_slot, *(array for coloured in self.colours for array in coloured)]

    def _coloured(self, ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        colour_start, colour_range = np.empty(9, np.int64), np.empty(len(ranges), np.int64)
        binning.colour_ranges(self.points.block_coord, ranges, colour_start, colour_range)
        return colour_start, colour_range


class GridStore(Store):
    """The sparse grid: blocks of 4^3 nodes, and of as many faces and cells, under and around the particles.

    Attributes:
        count: Number of grid blocks; node (i, j, k) of block g has index 64 g + 16 i + 4 j + k.
        coord: Block coordinates, shape (count, 3), int32; node position = origin + h (4 coord + (i, j, k)).
        packed: The same packed into integers (`kernels.transfers.binning.pack_coord`), ascending, shape (count,), int64.
        fields: Its fields by name.
        local: Scratch of each thread for what only lives inside a fused loop: `LOCAL_ROWS` rows of `local_stride` elements.
        particle_mass: Mean mass of the particles [kg].
        least_mass: Nodes lighter than this [kg] count as empty: `LEAST_MASS` of the mean particle mass.
    """

    domain = GRID

    def __init__(self, particles: ParticleStore) -> None:
        self.particles = particles
        self.h, self.origin, self.dtype = particles.h, particles.origin, particles.dtype
        self.count = 0
        self.coord = np.zeros((0, 3), np.int32)
        self.packed = np.zeros(0, np.int64)
        self._slots = np.empty(0, np.int32)
        self.fields: dict[str, GridField] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._shifts: dict[str, tuple[int, int, int]] = {}
        self._room = PAD
        self._tables: dict[int, _Tables] = {}
        self.declare(*NODE_FIELDS)
        self.scratch = aligned(tiles.SCRATCH * most_threads(), self.dtype)
        self.base = aligned(64 * most_threads(), particles.offset.dtype)
        self.local, self.local_stride = aligned(PAD, self.dtype), 0
        self.particle_mass = self.least_mass = 0.0

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

    def shift(self, array: str) -> tuple[int, int, int]:
        """Return the origin of an array's points in half cells."""
        self.array(array)
        return self._shifts[array]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the grid: its arrays, the tables of its blocks and of its transfers, and scratch."""
        own = (self.coord, self.packed, self._slots, self.scratch, self.base, self.local)
        tables = [array for each in self._tables.values() for array in each.arrays()]
        return sum(array.nbytes for array in (*self._arrays.values(), *own, *tables))

    def array(self, name: str) -> np.ndarray:
        """Return a flat array, four values a point: "momentum" (with the mass), "force", "velocity", or a declared one."""
        try:
            return self._arrays[name]
        except KeyError:
            raise MpmNodesError(
                f"grid array '{name}' does not exist (there are {', '.join(self._arrays)}); declare a GridField in it"
            ) from None

    def real(self, value: float) -> np.floating:
        """Return a scalar in the solve's float type."""
        return self.dtype.type(value)

    def check(self, points: ParticleStore | None = None) -> None:
        """Refuse a transfer when particles left their blocks after the grid was laid out under them.

        Raises:
            MpmNodesError: A stage moved particles too far in the middle of a substep, or the grid does not follow these points.
        """
        points = self.particles if points is None else points
        tables = self._tables.get(id(points))
        if tables is None or tables.generation != points.generation:
            if points is not self.particles:
                raise MpmNodesError("the grid does not follow these points; name them in `grid.follow` after they were sorted")
            raise MpmNodesError(
                f"pack 'position': a stage moved a particle by more than half a cell ({0.5 * self.h:g} m) after the grid was "
                "filled and before it was read back; wire that stage before rasterize, or make it the last one"
            )

    def scatter_tables(self, material: int | None = None, points: ParticleStore | None = None) -> tuple[Any, ...]:
        """Return what scatter kernels need besides the attributes, for all points (the particles) or those of one material."""
        self.check(points)
        points = self.particles if points is None else points
        tables = self._tables[id(points)]
        place = 0 if material is None else 1 + material
        return (self._ranges(points, material), *tables.colours[place], tables.tile_slot, self.scratch, self.base)

    def gather_tables(self, material: int | None = None, points: ParticleStore | None = None) -> tuple[Any, ...]:
        """Return what gather kernels need besides the attributes, for all points (the particles) or those of one material."""
        self.check(points)
        points = self.particles if points is None else points
        return (self._ranges(points, material), self._tables[id(points)].tile_slot, self.scratch, self.base)

    @staticmethod
    def _ranges(points: ParticleStore, material: int | None) -> np.ndarray:
        return points.ranges if material is None else points.segments[material]

    @property
    def generation(self) -> int:
        """That of the particles when the tables were built, -1 before."""
        tables = self._tables.get(id(self.particles))
        return -1 if tables is None else tables.generation

    def follow(self, *others: ParticleStore) -> None:
        """Rebuild the block tables after the particles were sorted anew.

        The grid then has blocks under the particles and under the points of other stores of the same cell size and origin; what its
        arrays hold is void where the tables change.
        """
        stores = (self.particles, *others)
        if {id(points): points.generation for points in stores} == {key: each.generation for key, each in self._tables.items()}:
            return
        for points in others:
            if points.h != self.h or not np.array_equal(points.origin, self.origin):
                raise MpmNodesError(
                    f"grid: points with cell size {points.h:g} m and origin {points.origin} cannot share a grid of {self.h:g} m at "
                    f"{self.origin}; make their store with the same"
                )
        particles = self.particles
        coord = np.concatenate([points.block_coord for points in stores])
        packed = np.empty(8 * len(coord), np.int64)
        binning.list_tiles(coord, len(coord), packed)
        unique, inverse = np.unique(packed, return_inverse=True)
        self.count = len(unique)
        self.packed = unique
        self.coord = np.empty((self.count, 3), np.int32)
        binning.unpack_coord(unique, self.coord)
        starts = np.cumsum([points.block_count for points in stores])[:-1]
        slots = np.split(inverse.astype(np.int32).reshape(-1, 8), starts)
        self._tables = {id(points): _Tables(points, slot) for points, slot in zip(stores, slots, strict=True)}
        needed = 256 * self.count + PAD
        if self._room < needed:
            self._room = needed * 5 // 4 // 16 * 16 + PAD
            self._arrays = {name: aligned(self._room, self.dtype) for name in self._arrays}
        self.local_stride = int(np.diff(particles.block_start).max(initial=0)) // 16 * 16 + 16 + PAD
        if self.local.size < most_threads() * LOCAL_ROWS * self.local_stride + PAD:
            self.local = aligned(most_threads() * LOCAL_ROWS * self.local_stride + PAD, self.dtype)
        self.particle_mass = float(particles.array("mass")[: particles.count].mean()) if particles.count else 0.0
        self.least_mass = LEAST_MASS[self.dtype] * self.particle_mass

    def slots(self) -> np.ndarray:
        """Return -1 for every node, int32: scratch, to be left as it was."""
        if len(self._slots) < 64 * self.count:
            self._slots = np.full(80 * self.count, -1, np.int32)
        return self._slots

    def clear(self, name: str) -> None:
        """Zero an array: "momentum" (with the mass), "force", "velocity", or a declared one."""
        tiles.clear_grid(self.array(name), self.count)

    def positions(self, shift: tuple[int, int, int] = NODES) -> np.ndarray:
        """Return the points of a shift [m], shape (64 count, 3)."""
        node = np.stack(np.meshgrid(*(np.arange(4),) * 3, indexing="ij"), -1).reshape(1, 64, 3)
        return (self.origin + self.h * (4.0 * self.coord[:, None, :] + node + 0.5 * np.array(shift))).reshape(-1, 3)

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
        values = self._arrays[field.array][: 256 * self.count].reshape(-1, 4)[:, field.part].copy()
        return values[:, 0] if field.components == 1 else values

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write a field from the shape that `unpack` gives."""
        field = self._field(name)
        nodes = self._arrays[field.array][: 256 * self.count].reshape(-1, 4)
        nodes[:, field.part] = np.asarray(values).reshape(len(nodes), -1)

    def _field(self, name: str) -> GridField:
        try:
            return self.fields[name]
        except KeyError:
            raise MpmNodesError(f"grid field '{name}' does not exist (there are {', '.join(self.fields)}); declare it") from None
