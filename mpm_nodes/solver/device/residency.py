"""Where the newest values of a solve's arrays are: on the host, on the device, or on both.

Loops on the device ask for arrays by `on_device`; whoever reaches an array through its store gets it by `on_host`. Either copies
only what the other side has changed since. While a stage runs, only what it declares to write counts as changed on the host;
between stages everything that is handed out does, but within `reading`.

A stage that knows that it needs few blocks of an array asks for these alone (`ArrayParts`). They are packed by a kernel, come down
in one copy to their places in the host's array, and go up again before the device reads the array next. Whoever asks for the whole
array meanwhile gets it with what was changed in the parts.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mpm_nodes.kernels.cuda.loop import THREADS, cuda_source
from mpm_nodes.kernels.cuda.parts import pack_parts, unpack_parts

__all__ = ["ArrayParts", "Device", "Recording", "Residency", "step_kernels", "uploaded"]


class Device(Protocol):
    """What a solve asks of a device; calls run in order, and those that return values wait for them."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def memory(self) -> int:
        """Free bytes."""
        ...

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of so many bytes."""
        ...

    def upload(self, buffer: Any, array: np.ndarray) -> None:
        """Copy an array to the beginning of a buffer."""
        ...

    def download(self, buffer: Any, array: np.ndarray) -> None:
        """Fill an array from the beginning of a buffer."""
        ...

    def copy(self, target: Any, source: Any, nbytes: int) -> None:
        """Copy bytes from a buffer to another."""
        ...

    def clear(self, buffer: Any, nbytes: int) -> None:
        """Set bytes to zero."""
        ...

    def launch(self, kernel: Any, blocks: int, arguments: list[Any]) -> None:
        """Run a kernel on buffers, `numpy.int32` and `numpy.float32`; nothing happens where there are no thread blocks."""
        ...

    def kernel(self, text: str, name: str) -> Any:
        """Return a compiled kernel of a source, the same object for the same."""
        ...

    def record(self) -> contextlib.AbstractContextManager[Any]:
        """Take down launches, clears and copies between buffers instead of running them; gives what `replay` takes then."""
        ...

    def replay(self, recorded: Any) -> None:
        """Run what was recorded."""
        ...


class Recording(Protocol):
    """A batch of substeps that is being recorded."""

    @property
    def buffer(self) -> Any:
        """What kernels take as their substep, and where loops write their largest values."""
        ...

    def place(self, largest: Any, count: int) -> int:
        """Return where the `count` largest values of the loops of one run begin."""
        ...

    def later(self, ends: Callable[[], None], found: Sequence[Any]) -> None:
        """Call a function for each substep when the host has its largest values."""
        ...


@dataclass(frozen=True, eq=False)
class ArrayParts:
    """Parts of an array whose elements have four bytes; see `Residency.parts`.

    Attributes:
        pieces: Of each piece its first element, its place among the elements of all pieces and its number of elements,
            shape (n, 3), int64.
        step: Distance of the elements that are meant.
        table: `pieces` on the device.
    """

    pieces: np.ndarray
    step: int
    table: Any

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(self.pieces[:, 2].sum())


@dataclass
class _Copy:
    """The copy of an array on the device; it keeps the array's memory from being used for another.

    Attributes:
        array: The array.
        buffer: The copy.
        on_host, on_device: Whether either is as it is now, but for the parts that changed; one of them always is.
        here: The parts that are on the host as they are now, where the whole array is not.
        changed: The parts that have changed on the host, where the rest of the copy is as it is now.
    """

    array: np.ndarray
    buffer: Any
    on_host: bool = True
    on_device: bool = False
    here: ArrayParts | None = None
    changed: ArrayParts | None = None


def uploaded(device: Device, table: np.ndarray) -> Any:
    """Return a buffer that holds a table."""
    buffer = device.allocate(table.nbytes)
    device.upload(buffer, np.ascontiguousarray(table))
    return buffer


class Residency:
    """Where the arrays of one solve are.

    Args:
        device: The device.

    Attributes:
        writes: Addresses of the arrays that may change on the host now; None: any.
        moved: Bytes copied up and down so far.
        recording: The batch of substeps that is being recorded, None where kernels run as they are launched.
        touched: Arrays that were asked for on the device, and whether they change there; None where nobody notes it.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.writes: frozenset[int] | None = None
        self.moved = [0, 0]
        self._copies: dict[int, _Copy] = {}
        self._spare: tuple[int, Any] = 0, None
        self._parts: dict[str, ArrayParts] = {}
        self._packed: tuple[np.ndarray, Any] = np.empty(0, np.int32), None
        self.recording: Recording | None = None
        self.touched: list[tuple[np.ndarray, bool]] | None = None
        self._substep: tuple[np.float32, Any] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers of arrays, of the spare one, and of parts on their way."""
        parts = sum(each.pieces.nbytes for each in self._parts.values()) + self._packed[0].nbytes
        return self._spare[0] + parts + sum(copy.array.nbytes for copy in self._copies.values())

    def substep(self, dt: float) -> Any:
        """Return what kernels take as their substep: of length dt, or that of the batch that is being recorded."""
        if self.recording is not None:
            return self.recording.buffer
        length = np.float32(dt)
        if self._substep is None or self._substep[0] != length:
            buffer = self.device.allocate(8) if self._substep is None else self._substep[1]
            self._substep = length, buffer
            self.device.launch(self.device.kernel(step_kernels(), "set_substep"), 1, [buffer, length])
        return self._substep[1]

    def held(self, table: np.ndarray) -> Any:
        """Return a buffer that holds a table, and count it as copied."""
        self.moved[0] += table.nbytes
        return uploaded(self.device, table)

    def on_device(self, array: np.ndarray, *, write: bool = False, read: bool = True) -> Any:
        """Return the buffer of an array, with the values of now where they are read.

        Args:
            array: A one-dimensional array of a store.
            write: Whether it changes there.
            read: Whether it is to hold what the array does.
        """
        copy = self._copies.get(address(array))
        if self.touched is not None:
            self.touched.append((array, write))
        if copy is None:
            copy = self._copies[address(array)] = _Copy(array, self.device.allocate(array.nbytes))
        if read and not copy.on_device:
            self.device.upload(copy.buffer, array)
            self.moved[0] += array.nbytes
            copy.on_device = True
        if read:
            self._return(copy)
        if write:
            copy.on_host, copy.on_device = False, True
            copy.here = copy.changed = None
        return copy.buffer

    def on_host(self, array: np.ndarray, parts: ArrayParts | None = None) -> np.ndarray:
        """Return an array with the values of now.

        Args:
            array: A one-dimensional array of a store.
            parts: What is to hold them; None: the whole array. It counts as changed, too, where the array does.
        """
        copy = self._copies.get(address(array))
        if copy is None:
            return array
        changes = self.writes is None or address(array) in self.writes
        if parts is None or not copy.on_device:
            if not copy.on_host:
                self._return(copy)
                self.device.download(copy.buffer, copy.array)
                self.moved[1] += array.nbytes
                copy.on_host, copy.here = True, None
            if changes:
                copy.on_device, copy.changed = False, None
            return array
        if not parts.count:
            return array
        if not copy.on_host and copy.here is not parts:
            self._return(copy)
            self._bring(copy, parts)
        if changes and copy.changed is not parts:
            self._return(copy)
            copy.changed = parts
        return array

    def holds(self, array: np.ndarray) -> bool:
        """Whether the device has the values of now."""
        copy = self._copies.get(address(array))
        return copy is not None and copy.on_device

    def parts(self, name: str, first: np.ndarray, counts: np.ndarray, step: int = 1) -> ArrayParts:
        """Return parts of arrays, the same object as before where they are the same.

        Args:
            name: What the parts are: those of a name are kept.
            first: The first element of each piece.
            counts: How many elements each has.
            step: Distance of the elements of a piece.
        """
        first, counts = first[counts > 0], counts[counts > 0]
        pieces = np.stack([first, np.cumsum(counts) - counts, counts], axis=1).astype(np.int64)
        before = self._parts.get(name)
        if before is not None and before.step == step and np.array_equal(before.pieces, pieces):
            return before
        table = self.device.allocate(pieces.nbytes)
        self.device.upload(table, pieces)
        self.moved[0] += pieces.nbytes
        found = self._parts[name] = ArrayParts(pieces, step, table)
        return found

    def _bring(self, copy: _Copy, parts: ArrayParts) -> None:
        """Bring parts to the host."""
        here, there = self._room(parts.count)
        self._launch("pack_parts", parts, [copy.buffer, there])
        self.device.download(there, here)
        unpack_parts(here, copy.array.view(np.int32), parts.pieces, parts.step)
        self.moved[1] += here.nbytes
        copy.here = parts

    def _return(self, copy: _Copy) -> None:
        """Give the device what has changed on the host in part."""
        parts, copy.changed = copy.changed, None
        if parts is None:
            return
        here, there = self._room(parts.count)
        pack_parts(copy.array.view(np.int32), here, parts.pieces, parts.step)
        self.device.upload(there, here)
        self._launch("unpack_parts", parts, [there, copy.buffer])
        self.moved[0] += here.nbytes

    def _launch(self, name: str, parts: ArrayParts, buffers: list[Any]) -> None:
        kernel = self.device.kernel(cuda_source("parts.cuh"), name)
        self.device.launch(kernel, len(parts.pieces), [*buffers, parts.table, np.int32(parts.step)])

    def _room(self, count: int) -> tuple[np.ndarray, Any]:
        """Return room for so many elements on either side."""
        here, there = self._packed
        if len(here) < count:
            here = np.empty(count * 5 // 4, np.int32)
            there = self.device.allocate(here.nbytes)
            self._packed = here, there
        return here[:count], there

    def cleared(self, array: np.ndarray) -> None:
        """Set an array to zero where it is needed next: on the device."""
        buffer = self.on_device(array, write=True, read=False)
        if self.recording is None:
            self.device.clear(buffer, array.nbytes)
            return
        count = array.nbytes // 4
        kernel = self.device.kernel(step_kernels(), "clear_floats")
        self.device.launch(kernel, -(-count // (4 * THREADS)), [self.recording.buffer, buffer, np.int32(count)])

    def spare(self, nbytes: int) -> Any:
        """Return a buffer that no array has, the same until another size is asked for."""
        if self._spare[0] != nbytes:
            self._spare = 0, None  # given back before there is another
            self._spare = nbytes, self.device.allocate(nbytes)
            self.device.clear(self._spare[1], nbytes)
        return self._spare[1]

    def exchange(self, array: np.ndarray) -> Any:
        """Give an array the spare buffer, which has its size and its values of now; return its own, which is the spare one now."""
        copy, (nbytes, spare) = self._copies[address(array)], self._spare
        self._spare, copy.buffer = (nbytes, copy.buffer), spare
        return self._spare[1]

    def forget(self, arrays: Collection[np.ndarray]) -> None:
        """Give back the buffers of arrays that are done with, and the spare one; what they hold is lost."""
        for array in arrays:
            self._copies.pop(address(array), None)
        self._spare = 0, None

    @contextlib.contextmanager
    def writing(self, arrays: Collection[np.ndarray]) -> Iterator[None]:
        """Count only these arrays as changed on the host meanwhile."""
        before, self.writes = self.writes, frozenset(map(address, arrays))
        try:
            yield
        finally:
            self.writes = before

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Count nothing as changed on the host meanwhile."""
        return self.writing(())


def address(array: np.ndarray) -> int:
    """Return where an array lies in memory."""
    place: int = array.__array_interface__["data"][0]
    return place


@functools.cache
def step_kernels() -> str:
    """Return the kernels that say what the next substep is."""
    return cuda_source("substep.cuh") + cuda_source("steps.cuh")
