"""Rows of particles in memory: where they begin, how far they lie apart, how they grow, and how a sort moves them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from mpm_nodes.kernels.transfers import binning

__all__ = ["PAD", "RowMemory", "aligned", "close_up"]

PAD = 64
"""Elements behind every array that a sixteen-lane access may touch."""

ROW_SPREAD, ROW_OFFSET = 1024, 208
"""Strides of large solves are 1024 n + 208: 13 lines past a page in float32, so that 64 rows share none."""

FEW = 256
"""Deleted particles up to this number are closed up one by one."""

LINE, PAGE = 64, 4096
_first_lines = itertools.cycle(range(0, PAGE // LINE, 5))


def aligned(count: int, dtype: npt.DTypeLike) -> np.ndarray:
    """Return a zeroed 1-D array whose data starts on a cache line.

    Large arrays start at different lines of a page, since a kernel reads dozens of rows side by side: those with equal
    addresses modulo a page would drive each other out of the first-level cache.
    """
    dtype = np.dtype(dtype)
    size = count * dtype.itemsize
    # not np.zeros: NumPy asks for huge pages for np.empty only, and they speed up the sort's scattered reads
    raw = np.empty(size + PAGE + LINE, np.uint8)
    raw.fill(0)
    start = -raw.ctypes.data % LINE + (next(_first_lines) * LINE if size >= 16 * PAGE else 0)
    return raw[start : start + size].view(dtype)


def close_up(rows: np.ndarray, keep: np.ndarray, gone: np.ndarray) -> None:
    """Move the columns that the mask `keep` marks to the front of `rows`, shape (rows, count); `gone` are places of the others."""
    if len(gone) > FEW:
        rows[:, : keep.sum()] = rows[:, keep]
        return
    # a few are closed up in place, at a quarter of the time
    ends = [*gone[1:], rows.shape[1]]
    for row in rows:
        for n, (first, end) in enumerate(zip(gone, ends, strict=True)):
            row[first - n : end - n - 1] = row[first + 1 : end]


class RowMemory:
    """The rows of one solve's particles: one array for each attribute, and their fixed-point offsets.

    Args:
        rows: Number of rows and type of each attribute.
        offset: Type of the offsets, which have three rows.

    Attributes:
        arrays: The attributes' arrays by name; row r of one lies at [r * stride : (r + 1) * stride].
        offset: The same of the offsets.
        stride: Distance of rows.
    """

    def __init__(self, rows: Mapping[str, tuple[int, np.dtype]], offset: np.dtype) -> None:
        self._rows = {name: count for name, (count, _) in rows.items()}
        self.arrays = {name: aligned(PAD, dtype) for name, (_, dtype) in rows.items()}
        self.offset = aligned(PAD, offset)
        self.stride = 0
        self._spare: dict[tuple[int, int], np.ndarray] = {}

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(array.nbytes for array in (*self.arrays.values(), *self._spare.values(), self.offset))

    def fits(self, count: int) -> bool:
        """Return whether there is room for `count` particles."""
        return count + PAD <= self.stride

    def reserve(self, count: int, used: int) -> None:
        """Make new arrays with room for `count` particles, more than fit into those that there are, and keep the first `used`."""
        stride = -(-max(count + PAD, min(2 * self.stride, count * 5 // 4 + PAD)) // 16) * 16
        if stride >= 16 * ROW_SPREAD:  # rows at different lines of a page, for the reason given in `aligned`
            stride += -(stride - ROW_OFFSET) % ROW_SPREAD
        self.arrays = {name: self._resized(array, self._rows[name], stride, used) for name, array in self.arrays.items()}
        self.offset, self.stride = self._resized(self.offset, 3, stride, used), stride
        self._spare = {}

    def _resized(self, old: np.ndarray, rows: int, stride: int, used: int) -> np.ndarray:
        new = aligned(rows * stride + PAD, old.dtype)
        for r in range(rows):
            new[r * stride : r * stride + used] = old[r * self.stride : r * self.stride + used]
        return new

    def move(self, source: np.ndarray, home: np.ndarray, used: int, shift: int, skip: Collection[str]) -> None:
        """Give the particles a new order.

        Args:
            source: Place of each in the old order.
            home: Where each stands in its block now, as `binning.permutation` gives it.
            used: Number of particles.
            shift: Fixed-point bits of the offsets.
            skip: Attributes whose rows hold nothing.
        """
        for name, old in sorted(self.arrays.items(), key=lambda named: -named[1].nbytes):
            if name in skip:
                continue
            bits = np.dtype(np.int32 if old.itemsize == 4 else np.int64)  # one compiled loop for floats and integers
            wider = self._wider_spare(old)
            new = self._take_spare(old) if wider is None else wider[: old.size]
            binning.move_rows(old.view(bits), new.view(bits), self.stride, self._rows[name], source, used)
            if wider is None:
                self.arrays[name] = new
                self._keep_spare(old)
            else:
                old[:] = new.view(old.dtype)
        new = self._take_spare(self.offset)
        binning.move_offsets(self.offset, new, self.stride, source, home, used, 4 << shift)
        self._keep_spare(self.offset)
        self.offset = new

    def _wider_spare(self, like: np.ndarray) -> np.ndarray | None:
        """Return a spare array of up to twice the size to go through and back, where there is none of the same size.

        Copying a few rows back once in a while costs less than the memory of one more array.
        """
        if (like.itemsize, like.size) in self._spare:
            return None
        fits = [size for width, size in self._spare if width == like.itemsize and like.size < size <= 2 * like.size]
        return self._spare[like.itemsize, min(fits)].view(like.dtype) if fits else None

    def _keep_spare(self, array: np.ndarray) -> None:
        self._spare[array.itemsize, array.size] = array

    def _take_spare(self, like: np.ndarray) -> np.ndarray:
        """Return an array of a size and type, spare or new; numbers and integers of one width share theirs."""
        spare = self._spare.pop((like.itemsize, like.size), None)
        return aligned(like.size, like.dtype) if spare is None else spare.view(like.dtype)
