"""Where the newest values of a solve's arrays are: on the host, on the device, or on both.

Loops on the device ask for arrays by `on_device`; whoever reaches an array through its store gets it by `on_host`. Either copies
only what the other side has changed since. While a stage runs, only what it declares to write counts as changed on the host;
between stages everything that is handed out does, but within `reading`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Device", "Residency"]


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
        """Copy an array to a buffer."""
        ...

    def download(self, buffer: Any, array: np.ndarray) -> None:
        """Copy a buffer to an array."""
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


@dataclass
class _Copy:
    """The copy of an array on the device; it keeps the array's memory from being used for another."""

    array: np.ndarray
    buffer: Any
    on_host: bool = True
    on_device: bool = False


class Residency:
    """Where the arrays of one solve are.

    Args:
        device: The device.

    Attributes:
        writes: Addresses of the arrays that may change on the host now; None: any.
        moved: Bytes copied up and down so far.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.writes: frozenset[int] | None = None
        self.moved = [0, 0]
        self._copies: dict[int, _Copy] = {}
        self._spare: tuple[int, Any] = 0, None

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers of arrays, and of the spare one."""
        return self._spare[0] + sum(copy.array.nbytes for copy in self._copies.values())

    def on_device(self, array: np.ndarray, *, write: bool = False, read: bool = True) -> Any:
        """Return the buffer of an array, with the values of now where they are read.

        Args:
            array: A one-dimensional array of a store.
            write: Whether it changes there.
            read: Whether it is to hold what the array does.
        """
        copy = self._copies.get(address(array))
        if copy is None:
            copy = self._copies[address(array)] = _Copy(array, self.device.allocate(array.nbytes))
        if read and not copy.on_device:
            self.device.upload(copy.buffer, array)
            self.moved[0] += array.nbytes
            copy.on_device = True
        if write:
            copy.on_host, copy.on_device = False, True
        return copy.buffer

    def on_host(self, array: np.ndarray) -> np.ndarray:
        """Return an array with the values of now."""
        copy = self._copies.get(address(array))
        if copy is not None:
            if not copy.on_host:
                self.device.download(copy.buffer, copy.array)
                self.moved[1] += array.nbytes
                copy.on_host = True
            if self.writes is None or address(array) in self.writes:
                copy.on_device = False
        return array

    def holds(self, array: np.ndarray) -> bool:
        """Whether the device has the values of now."""
        copy = self._copies.get(address(array))
        return copy is not None and copy.on_device

    def cleared(self, array: np.ndarray) -> None:
        """Set an array to zero where it is needed next: on the device."""
        self.device.clear(self.on_device(array, write=True, read=False), array.nbytes)

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
