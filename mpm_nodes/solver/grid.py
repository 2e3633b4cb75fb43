"""The sparse background grid of a solve: blocks of 4^3 nodes under and around the particles, and the tables of the transfers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.kernels import binning, tiles
from mpm_nodes.kernels.jit import most_threads
from mpm_nodes.materials.fused_loops import LOCAL_ROWS
from mpm_nodes.solver.state import PAD, ParticleStore, aligned

LEAST_MASS = {np.dtype(np.float32): 1e-10, np.dtype(np.float64): 1e-14}
"""Mass of an empty node over the mean particle mass: below it, the quotient of force and mass outgrows the rounding of a gather."""


class GridStore:
    """The sparse collocated grid: 4^3-node blocks under and around the particles.

    Attributes:
        count: Number of grid blocks; node (i, j, k) of block g has index 64 g + 16 i + 4 j + k.
        coord: Block coordinates, shape (count, 3), int32; node position = origin + h (4 coord + (i, j, k)).
        tile_slot: Grid blocks of each particle block's tile, shape (blocks, 8), int32.
        colours: Of all blocks, then of each material's runs: first entry of each of the 8 colours, and ranges by colour.
        local: Scratch of each thread for what only lives inside a fused loop: `LOCAL_ROWS` rows of `local_stride` elements.
        particle_mass: Mean mass of the particles [kg].
        least_mass: Nodes lighter than this [kg] count as empty: `LEAST_MASS` of the mean particle mass.
        generation: That of the particles when the tables were built.
    """

    COMPONENTS: Mapping[str, tuple[str, slice]] = {
        "mass": ("momentum", slice(3, 4)), "momentum": ("momentum", slice(0, 3)),
        "force": ("force", slice(0, 3)), "velocity": ("velocity", slice(0, 3)),
    }

    def __init__(self, particles: ParticleStore) -> None:
        self.particles = particles
        self.h, self.origin, self.dtype = particles.h, particles.origin, particles.dtype
        self.count = 0
        self.coord = np.zeros((0, 3), np.int32)
        self.tile_slot = np.zeros((0, 8), np.int32)
        self.colours: list[tuple[np.ndarray, np.ndarray]] = []
        self._arrays: dict[str, np.ndarray] = {name: aligned(PAD, self.dtype) for name in ("momentum", "force", "velocity")}
        self.scratch = aligned(tiles.SCRATCH * most_threads(), self.dtype)
        self.base = aligned(64 * most_threads(), particles.offset.dtype)
        self.local, self.local_stride = aligned(PAD, self.dtype), 0
        self.particle_mass = self.least_mass = 0.0
        self.generation = -1

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the grid."""
        return sum(array.nbytes for array in self._arrays.values()) + self.scratch.nbytes + self.local.nbytes

    def array(self, name: str) -> np.ndarray:
        """Return the flat nodes of "momentum" (with the mass), "force" or "velocity": four values a node."""
        return self._arrays[name]

    def real(self, value: float) -> np.floating:
        """Return a scalar in the solve's float type."""
        return self.dtype.type(value)

    def check(self) -> None:
        """Refuse a transfer when particles left their blocks after the grid was laid out under them.

        Raises:
            MpmNodesError: A stage moved particles too far in the middle of a substep.
        """
        if self.generation != self.particles.generation:
            raise MpmNodesError(
                f"pack 'position': a stage moved a particle by more than half a cell ({0.5 * self.h:g} m) after the grid was "
                "filled and before it was read back; wire that stage before rasterize, or make it the last one")

    def scatter_tables(self, material: int | None = None) -> tuple[Any, ...]:
        """Return what scatter kernels need besides the attributes, for all particles or those of one material."""
        self.check()
        place = 0 if material is None else 1 + material
        return (self._ranges(material), *self.colours[place], self.tile_slot, self.scratch, self.base)

    def gather_tables(self, material: int | None = None) -> tuple[Any, ...]:
        """Return what gather kernels need besides the attributes, for all particles or those of one material."""
        self.check()
        return (self._ranges(material), self.tile_slot, self.scratch, self.base)

    def _ranges(self, material: int | None) -> np.ndarray:
        return self.particles.ranges if material is None else self.particles.segments[material]

    def follow(self) -> None:
        """Rebuild the block tables after the particles were sorted anew."""
        particles = self.particles
        if self.generation == particles.generation:
            return
        blocks = particles.block_count
        packed = np.empty(8 * blocks, np.int64)
        binning.list_tiles(particles.block_coord, blocks, packed)
        unique, inverse = np.unique(packed, return_inverse=True)
        self.tile_slot = inverse.astype(np.int32).reshape(blocks, 8)
        self.count = len(unique)
        self.coord = np.empty((self.count, 3), np.int32)
        binning.unpack_coord(unique, self.coord)
        self.colours = [self._coloured(ranges) for ranges in (particles.ranges, *particles.segments)]
        needed = 256 * self.count + PAD
        if self._arrays["momentum"].size < needed:
            self._arrays = {name: aligned(needed * 5 // 4 // 16 * 16 + PAD, self.dtype) for name in self._arrays}
        self.local_stride = int(np.diff(particles.block_start).max(initial=0)) // 16 * 16 + 16 + PAD
        if self.local.size < most_threads() * LOCAL_ROWS * self.local_stride + PAD:
            self.local = aligned(most_threads() * LOCAL_ROWS * self.local_stride + PAD, self.dtype)
        self.particle_mass = float(particles.array("mass")[: particles.count].mean()) if particles.count else 0.0
        self.least_mass = LEAST_MASS[self.dtype] * self.particle_mass
        self.generation = particles.generation

    def _coloured(self, ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        colour_start, colour_range = np.empty(9, np.int64), np.empty(len(ranges), np.int64)
        binning.colour_ranges(self.particles.block_coord, ranges, colour_start, colour_range)
        return colour_start, colour_range

    def clear(self, name: str) -> None:
        """Zero the nodes of "momentum", "force" or "velocity"."""
        tiles.clear_grid(self._arrays[name], self.count)

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of "position" [m], "mass", "momentum", "force" or "velocity", shape (64 count, 3 or 1)."""
        if name == "position":
            node = np.stack(np.meshgrid(*(np.arange(4),) * 3, indexing="ij"), -1).reshape(1, 64, 3)
            return (self.origin + self.h * (4.0 * self.coord[:, None, :] + node)).reshape(-1, 3)
        array, part = self.COMPONENTS[name]
        values = self._arrays[array][: 256 * self.count].reshape(-1, 4)[:, part].copy()
        return values[:, 0] if name == "mass" else values

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write "mass", "momentum", "force" or "velocity" from the shape that `unpack` gives."""
        array, part = self.COMPONENTS[name]
        nodes = self._arrays[array][: 256 * self.count].reshape(-1, 4)
        nodes[:, part] = np.asarray(values).reshape(len(nodes), -1)
