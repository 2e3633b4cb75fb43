"""The order of particles in memory: by block, material and cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mpm_nodes.kernels.compile.jit import thread_count
from mpm_nodes.kernels.transfers import binning
from mpm_nodes.solver.blocks import SolveFrame, wrapped

__all__ = ["SORT_INTERVAL", "BlockLayout", "Order", "Sortable", "layout_of", "order_of"]

SORT_INTERVAL = 128
"""Substeps after which particles are sorted again even if nothing drifted far: runs of equal cells keep the scatter fast."""


class Sortable(SolveFrame, Protocol):
    """Particles by block, as `ParticleStore` keeps them."""

    count: int
    materials: int
    block_coord: np.ndarray
    block_body: np.ndarray
    block_start: np.ndarray

    @property
    def stride(self) -> int:
        """Distance of rows."""
        ...

    @property
    def offset(self) -> np.ndarray:
        """Fixed-point offsets, three rows."""
        ...

    def array(self, name: str) -> np.ndarray:
        """Return the flat rows of an attribute."""
        ...


@dataclass(frozen=True)
class BlockLayout:
    """Blocks of sorted particles.

    Attributes:
        coord: Their coordinates, shape (blocks, 3), int32.
        body: Body of each block, int32.
        start: First particle of each block, and their number, int64.
        segments: Per material, the (begin, end, block) of its runs, shape (runs, 3), int64.
    """

    coord: np.ndarray
    body: np.ndarray
    start: np.ndarray
    segments: list[np.ndarray]


@dataclass(frozen=True)
class Order:
    """An order of particles.

    Attributes:
        source: Place of each particle before, int32.
        home: Which move between blocks its offset must undo, int32.
        layout: The blocks.
    """

    source: np.ndarray
    home: np.ndarray
    layout: BlockLayout


def order_of(particles: Sortable) -> Order:
    """Return the order by (block, material, cell); stable, so that equal input gives equal output for any number of threads."""
    blocks, count, materials = len(particles.block_coord), particles.count, particles.materials
    place = np.empty(count, np.int32)
    moved = np.empty((blocks, binning.MOVES), np.int32)
    binning.locate(particles.offset, particles.stride, particles.shift, particles.block_start, blocks, place, moved)
    packed = np.empty(int((moved > 0).sum()), np.int64)
    listed = binning.list_targets(particles.block_coord, particles.block_body, blocks, moved, packed)
    unique, inverse = np.unique(wrapped(packed[:listed], particles.period), return_inverse=True)
    target = np.full((blocks, binning.MOVES), -1, np.int32)
    target[moved > 0] = inverse
    chunks = max(1, min(thread_count(), blocks))
    marks = np.searchsorted(particles.block_start, np.linspace(0, count, chunks + 1)[1:-1])
    chunk_block = np.concatenate([[0], marks, [blocks]]).astype(np.int64)
    counts = np.empty((chunks, len(unique) * materials * 64), np.int32)
    sort = binning.CountingSort(particles.block_start, chunk_block, place, np.empty(count, np.int32), counts)
    binning.histogram(sort, target, particles.array("material"), materials)
    runs = np.empty(len(unique) * materials + 1, np.int64)
    binning.scan(counts, chunks, runs)
    source, home = np.empty(count, np.int32), np.empty(count, np.int32)
    binning.permutation(sort, source, home)
    return Order(source, home, layout_of(unique, runs, materials))


def layout_of(unique: np.ndarray, runs: np.ndarray, materials: int) -> BlockLayout:
    """Return the blocks of packed coordinates, given where the particles of each (block, material) begin, and their number."""
    coord, body = np.empty((len(unique), 3), np.int32), np.empty(len(unique), np.int32)
    binning.unpack_coord(unique, coord, body)
    begin, end = runs[:-1].reshape(-1, materials), runs[1:].reshape(-1, materials)
    segments = [np.stack([b, e, np.arange(len(b))], 1)[e > b].astype(np.int64) for b, e in zip(begin.T, end.T, strict=True)]
    return BlockLayout(coord, body, runs[::materials].astype(np.int64), segments)
