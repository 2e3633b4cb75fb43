"""The sparse background grid of a solve: blocks of 4^3 nodes under and around the particles, and the tables of the transfers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import GRID, MOTION_FIELDS, MpmNodesError
from mpm_nodes.kernels.compile.jit import most_threads, thread_count
from mpm_nodes.kernels.composition.values import LOCAL_ROWS
from mpm_nodes.kernels.transfers import binning, tiles
from mpm_nodes.kernels.transfers.places import GatherTables, ScatterTables
from mpm_nodes.solver.blocks import wrapped
from mpm_nodes.solver.grid_arrays import CORNERS, FACES, NODES, GridArrays, GridField, grid_fields
from mpm_nodes.solver.ranks.halo import WHOLE_GRID, Halo, WholeGrid
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.state import ParticleStore

__all__ = ["CORNERS", "FACES", "LEAST_MASS", "NODES", "Copies", "GridField", "GridStore"]

LEAST_MASS = {np.dtype(np.float32): 1e-10, np.dtype(np.float64): 1e-14}
"""Mass of an empty node over the mean particle mass: below it, the quotient of force and mass outgrows the rounding of a gather."""


class Copies(NamedTuple):
    """Nodes of a grid that plates keep apart.

    Attributes:
        block_sides: Sides of the matter of each grid block, shape (count,), int64.
        node_sides: Sides of each node, shape (64 count, 4), int64, as `sides.mark_sides` writes them.
        master: The node that answers for each, shape (64 count,), int32.
        places: First and last + 1 of the grid blocks at each place that has several, shape (n, 2), int64.
    """

    block_sides: np.ndarray
    node_sides: np.ndarray
    master: np.ndarray
    places: np.ndarray


class _Tables:
    """Where the points of one store lie among the grid's blocks: what its transfers need."""

    def __init__(self, points: ParticleStore, tile_slot: np.ndarray) -> None:
        self.points, self.tile_slot, self.generation = points, tile_slot, points.generation
        threads = thread_count()  # kernels that are called with another number give the same bits, in more time
        self.colours = [self.coloured(ranges, threads) for ranges in (points.ranges, *points.segments)]

    def arrays(self) -> list[np.ndarray]:
        """Return the tables' arrays, without those of the points."""
        return [self.tile_slot, *(array for coloured in self.colours for array in coloured)]

    def coloured(self, ranges: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return some runs by colour; see `ScatterTables`."""
        colour_start, colour_range = np.empty(9, np.int64), np.empty(len(ranges), np.int64)
        colour_shares, shares = np.empty((8, threads + 1), np.int64), np.empty(threads + 1, np.int64)
        binning.colour_ranges(self.points.block_coord, ranges, colour_start, colour_range, colour_shares, shares)
        return colour_start, colour_range, colour_shares, shares


class GridStore(GridArrays):
    """The sparse grid: blocks of 4^3 nodes, and of as many faces and cells, under and around the particles.

    Args:
        particles: Particles that it follows.
        names: Fields of `GRID.fields` that it holds besides those of motion.

    Attributes:
        count: Number of grid blocks; node (i, j, k) of block g has index 64 g + 16 i + 4 j + k.
        coord: Block coordinates, shape (count, 3), int32; node position = origin + h (4 coord + (i, j, k)).
        body: What each block holds the velocities of, shape (count,), int32: as `ParticleStore.block_body`.
        packed: Coordinates and body packed into integers (`binning.pack_coord`), ascending, shape (count,), int64.
        fields: Its fields by name.
        local: Scratch of each thread for what only lives inside a fused loop: `LOCAL_ROWS` rows of `local_stride` elements.
        particle_mass: Mean mass of the particles [kg].
        version: Number of the tables; arrays and scratch lie where they are as long as it stays.
        least_mass: Nodes lighter than this [kg] count as empty: `LEAST_MASS` of the mean particle mass.
        spline: Nodes along an axis of the widest spline of the transfers.
        margin: Whether there are blocks around the particles, too, for points up to four cells away from them (`attach`).
        copies: Which nodes plates keep apart (`Copies`), None where none does.
        halo: What this grid shares with others where a simulation runs on several ranks.
    """

    domain = GRID

    def __init__(self, particles: ParticleStore, names: Collection[str] = ()) -> None:
        super().__init__(particles.h, particles.origin, particles.dtype)
        self.particles = particles
        self.count = 0
        self.coord = np.zeros((0, 3), np.int32)
        self.body = np.zeros(0, np.int32)
        self.packed = np.zeros(0, np.int64)
        self._slots = np.empty(0, np.int32)
        self._tables: dict[int, _Tables] = {}
        self._followed: tuple[int, ...] = ()
        self.declare(*grid_fields(each for name, each in GRID.fields.items() if name in MOTION_FIELDS or name in names))
        self._derived: dict[str, Any] = {}
        self.scratch = aligned(tiles.SCRATCH * most_threads(), self.dtype)
        self.base = aligned(64 * most_threads(), particles.offset.dtype)
        self.local, self.local_stride = aligned(PAD, self.dtype), 0
        self.particle_mass = self.least_mass = 0.0
        self.version = 0
        self.margin = False
        self.spline = 3
        self.copies: Copies | None = None
        self.halo: WholeGrid = WHOLE_GRID

    @property
    def blocks(self) -> np.ndarray:
        """See `GridArrays`."""
        return self.coord

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the grid: its arrays, the tables of its blocks and of its transfers, and scratch."""
        own = (self.coord, self.body, self.packed, self._slots, self.scratch, self.base, self.local)
        tables = [array for each in self._tables.values() for array in each.arrays()]
        return sum(array.nbytes for array in (*self._arrays.values(), *own, *tables))

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

    def scatter_tables(self, material: int | None = None, points: ParticleStore | None = None) -> ScatterTables:
        """Return what scatter kernels need besides the attributes, for all points (the particles) or those of one material."""
        self.check(points)
        points = self.particles if points is None else points
        tables = self._tables[id(points)]
        place = 0 if material is None else 1 + material
        return ScatterTables(self._ranges(points, material), *tables.colours[place][:3], tables.tile_slot, self.scratch, self.base)

    def scatter_tables_of(self, blocks: np.ndarray) -> ScatterTables:
        """Return what scatter kernels need for the particles of some blocks alone, by their places."""
        self.check()
        tables, ranges = self._tables[id(self.particles)], self.particles.ranges[blocks]
        colours = tables.coloured(ranges, thread_count())
        return ScatterTables(ranges, *colours[:3], tables.tile_slot, self.scratch, self.base)

    def gather_tables(self, material: int | None = None, points: ParticleStore | None = None) -> GatherTables:
        """Return what gather kernels need besides the attributes, for all points (the particles) or those of one material."""
        self.check(points)
        points = self.particles if points is None else points
        tables = self._tables[id(points)]
        place = 0 if material is None else 1 + material
        return GatherTables(self._ranges(points, material), tables.colours[place][3], tables.tile_slot, self.scratch, self.base)

    @staticmethod
    def _ranges(points: ParticleStore, material: int | None) -> np.ndarray:
        return points.ranges if material is None else points.segments[material]

    @property
    def generation(self) -> int:
        """That of the particles when the tables were built, -1 before."""
        tables = self._tables.get(id(self.particles))
        return -1 if tables is None else tables.generation

    def follow(self, *others: ParticleStore) -> None:
        """Rebuild the block tables after the particles were sorted again.

        The grid then has blocks under the particles and under the points of other stores of the same cell size and origin; what its
        arrays hold is void where the tables change.
        """
        stores = (self.particles, *others)
        if {id(points): points.generation for points in stores} == {key: self._tables[key].generation for key in self._followed}:
            return
        for points in others:
            if points.h != self.h or not np.array_equal(points.origin, self.origin):
                raise MpmNodesError(
                    f"grid: points with cell size {points.h:g} m and origin {points.origin} cannot share a grid of {self.h:g} m at "
                    f"{self.origin}; make their store with the same"
                )
        self._derived, self.copies = {}, None
        particles = self.particles
        self.version += 1
        tiles_of = [_tiles(points.block_coord, points.block_body, particles.period) for points in stores]
        around = [_surroundings(points.block_coord, points.block_body) for points in stores if self.margin]
        unique = np.unique(np.concatenate([*tiles_of, *(_tiles(*blocks, particles.period) for blocks in around)]))
        if isinstance(self.halo, Halo):
            self.halo.wide = self.margin
            unique = np.union1d(unique, self.halo.ghosts(unique))
            self.halo.lay_out(unique)
        self.count = len(unique)
        self.packed = unique
        self.coord, self.body = np.empty((self.count, 3), np.int32), np.empty(self.count, np.int32)
        binning.unpack_coord(unique, self.coord, self.body)
        slots = [np.searchsorted(unique, packed).astype(np.int32).reshape(-1, 8) for packed in tiles_of]
        self._tables = {id(points): _Tables(points, slot) for points, slot in zip(stores, slots, strict=True)}
        self._followed = tuple(self._tables)
        self.make_room()
        self.local_stride = int(np.diff(particles.block_start).max(initial=0)) // 16 * 16 + 16 + PAD
        if self.local.size < most_threads() * LOCAL_ROWS * self.local_stride + PAD:
            self.local = aligned(most_threads() * LOCAL_ROWS * self.local_stride + PAD, self.dtype)
        self.particle_mass = particles.share.mean_mass(particles)
        self.least_mass = LEAST_MASS[self.dtype] * self.particle_mass

    def attach(self, points: ParticleStore) -> None:
        """Find the blocks under points near the particles, without laying the grid out again; `margin` makes room for them.

        Raises:
            MpmNodesError: A point lies where there is no grid.
        """
        tables = self._tables.get(id(points))
        if tables is not None and tables.generation == points.generation:
            return
        packed = _tiles(points.block_coord, points.block_body, points.period)
        place = np.minimum(np.searchsorted(self.packed, packed), max(self.count - 1, 0))
        if len(packed) and (not self.count or (self.packed[place] != packed).any()):
            raise MpmNodesError("grid: points to be attached lie further than four cells from all particles; take nearer ones")
        self._tables[id(points)] = _Tables(points, place.astype(np.int32).reshape(-1, 8))

    def places_of(self, node: np.ndarray) -> np.ndarray:
        """Return places of nodes, by their numbers, from the grid's origin [m], shape (n, 3)."""
        block, rest = np.divmod(node, 64)
        inside = np.stack([rest >> 4, (rest >> 2) & 3, rest & 3], axis=1)
        return np.asarray(self.h * (4.0 * self.coord[block] + inside), float)

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` found out from the blocks and tables, found again when they change."""
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first block at each place, and which of the places is that of each block; int64.

        Bodies with a velocity of their own, and the sides of plates, have blocks of their own at the same places.
        """

        def found() -> tuple[np.ndarray, np.ndarray]:
            begins = np.append(True, (np.diff(self.coord, axis=0) != 0).any(axis=1))[: self.count]
            return np.flatnonzero(begins), np.cumsum(begins) - 1

        return self.derived("places", found)

    def particle_tiles(self) -> np.ndarray:
        """Return the eight grid blocks of every particle block's tile, shape (particle blocks, 8), int32."""
        return self._tables[id(self.particles)].tile_slot

    def slots(self) -> np.ndarray:
        """Return -1 for every node, int32: scratch, to be left as it was."""
        if len(self._slots) < 64 * self.count:
            self._slots = np.full(80 * self.count, -1, np.int32)
        return self._slots


def _tiles(coord: np.ndarray, body: np.ndarray, period: tuple[int, int, int]) -> np.ndarray:
    """Return the packed coordinates of the eight grid blocks of every block's tile, shape (8 blocks,)."""
    packed = np.empty(8 * len(coord), np.int64)
    binning.list_tiles(coord, body, len(coord), packed)
    return wrapped(packed, period)


def _surroundings(coord: np.ndarray, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and bodies of blocks and their neighbours."""
    around = np.empty((len(coord), 27), np.int64)
    binning.list_neighbours(coord, body, around)
    packed = np.unique(around)
    coord, body = np.empty((len(packed), 3), np.int32), np.empty(len(packed), np.int32)
    binning.unpack_coord(packed, coord, body)
    return coord, body
