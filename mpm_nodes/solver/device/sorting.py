"""What moves particles in memory, where they are: on the device. Tables of blocks cross, lists of what stays, and newcomers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.kernels.cuda.loop import THREADS, cuda_source
from mpm_nodes.kernels.transfers import binning
from mpm_nodes.solver.blocks import wrapped
from mpm_nodes.solver.device.residency import Device, Residency, uploaded
from mpm_nodes.solver.sorting import BlockLayout, layout_of

__all__ = ["append", "delete", "mean", "prefix_sums", "sort"]

CHUNK = 8 * THREADS
"""Values that a thread block sums, as in `sort.cuh`."""


def text() -> str:
    """Return the kernels."""
    return cuda_source("sort.cuh")


class _DeviceRows:
    """The rows of particles that hold something, and the launches of kernels on them."""

    def __init__(self, residency: Residency, particles: Any) -> None:
        self.residency, self.device, self.particles = residency, residency.device, particles
        arrays = {name: particles.kept(name) for name in ("position", *particles.names)}
        self.arrays = {name: array for name, array in arrays.items() if name not in particles.stale}
        self.largest = max(array.nbytes for array in arrays.values())
        self.stride = np.int32(particles.stride)

    def table(self, table: np.ndarray) -> Any:
        """Return a buffer that holds a table as int32."""
        return uploaded(self.device, np.ascontiguousarray(table, np.int32))

    def per_block(self, name: str, *arguments: Any) -> None:
        """Run a kernel with a thread block for each block of particles."""
        self.device.launch(self.device.kernel(text(), name), self.particles.block_count, list(arguments))

    def each(self, name: str, count: int, *arguments: Any) -> None:
        """Run a kernel with a thread for each of `count`, which is its last argument."""
        self.device.launch(self.device.kernel(text(), name), -(-count // THREADS), [*arguments, np.int32(count)])

    def rows(self, name: str) -> np.int32:
        """Return how many an attribute has."""
        return np.int32(3 if name == "position" else self.particles.table[name].rows)

    def move(self, source: Any, count: int, *, home: bool) -> None:
        """Move all rows.

        Args:
            source: Where each of `count` particles was.
            home: Whether offsets are expressed in the blocks that they point into.
        """
        spare = self.residency.spare(self.largest)
        for name, array in self.arrays.items():
            old, new = self.residency.on_device(array, write=True), spare
            if array.nbytes == self.largest:
                spare = self.residency.exchange(array)
            else:  # one spare buffer does for all: a copy costs less than the memory of one for each size
                self.device.copy(spare, old, array.nbytes)
                old, new = spare, old
            if home and name == "position":
                self.each("move_offsets", count, old, new, self.stride, np.int32(self.particles.shift), source)
            else:
                self.each(f"move_rows{array.itemsize}", count, old, new, self.stride, self.rows(name), source)


def sort(residency: Residency, particles: Any) -> BlockLayout:
    """Sort particles by (block, material, cell) as `solver.sorting.order_of` does; return the new blocks."""
    rows, device = _DeviceRows(residency, particles), residency.device
    blocks, count, materials = particles.block_count, particles.count, particles.materials
    offset, material = (residency.on_device(particles.kept(name)) for name in ("position", "material"))
    where = [offset, rows.stride, np.int32(particles.shift), rows.table(particles.block_start)]
    moved, words = device.allocate(16 * blocks), np.zeros((blocks, 4), np.uint32)
    rows.per_block("locate", *where, moved)
    if blocks:
        device.download(moved, words)
    listed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little").view(bool))
    block, move = listed >> 7, listed & 127
    x, y, z = particles.block_coord.T
    packed = binning.pack_coord(x, y, z, particles.block_body)[block]
    packed = binning.packed_neighbour(packed, move // 25 - 2, move // 5 % 5 - 2, move % 5 - 2)
    unique, target = np.unique(wrapped(packed, particles.period), return_inverse=True)
    runs = np.zeros(len(unique) * materials + 1, np.int32)
    if count:
        first, targets = rows.table(np.searchsorted(block, np.arange(blocks))), rows.table(target)
        keys = residency.spare(rows.largest)  # two numbers a particle, before rows move through it
        bins = 64 * len(unique) * materials
        starts = device.allocate(4 * bins)
        device.clear(starts, 4 * bins)
        rows.per_block("histogram", *where, moved, first, targets, material, np.int32(materials), keys, starts)
        prefix_sums(device, starts, bins)
        picked = device.allocate(runs.nbytes - 4)
        rows.each("pick_runs", len(runs) - 1, starts, picked)
        device.download(picked, runs[:-1])
        runs[-1] = count
        source = device.allocate(4 * count)
        rows.each("list_cells", count, keys, starts)
        rows.each("order_cells", count, keys, starts, source)
        rows.move(source, count, home=True)
    return layout_of(unique, runs, materials)


def prefix_sums(device: Device, values: Any, count: int) -> None:
    """Replace integers by the sums of those before each."""
    chunks = -(-count // CHUNK)
    sums = device.allocate(4 * chunks)
    device.launch(device.kernel(text(), "scan"), chunks, [values, sums, np.int32(count)])
    if chunks > 1:
        prefix_sums(device, sums, chunks)
        device.launch(device.kernel(text(), "add_before"), chunks, [values, sums, np.int32(count)])


def delete(residency: Residency, particles: Any, keep: np.ndarray) -> None:
    """Close up the particles that a mask keeps, in their order."""
    kept = np.flatnonzero(keep)
    rows = _DeviceRows(residency, particles)
    rows.move(rows.table(kept), len(kept), home=False)


def append(residency: Residency, particles: Any, name: str, first: int, values: np.ndarray) -> None:
    """Write what newcomers have of an attribute, shape (newcomers, rows), behind what the device holds of the others."""
    rows, array = _DeviceRows(residency, particles), particles.kept(name)
    some = uploaded(residency.device, np.ascontiguousarray(values.T, array.dtype))
    buffer = residency.on_device(array, write=True)
    rows.each(f"put_rows{array.itemsize}", len(values), some, buffer, rows.stride, rows.rows(name), np.int32(first))


def mean(residency: Residency, array: np.ndarray, count: int) -> float:
    """Return the mean of the first `count` values of an array of float32."""
    device, sums = residency.device, np.empty(-(-count // CHUNK), np.float32)
    found = device.allocate(sums.nbytes)
    device.launch(device.kernel(text(), "add_up"), len(sums), [residency.on_device(array), found, np.int32(count)])
    device.download(found, sums)
    return float(sums.sum(dtype=float)) / count
