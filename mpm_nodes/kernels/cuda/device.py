"""An NVIDIA GPU as a solve sees it: memory, copies and launches in order on one stream."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.kernels.cuda.compiler import cubin
from mpm_nodes.kernels.cuda.loop import THREADS

__all__ = ["CudaDevice", "open_device"]

INSTALL = "pip install 'mpm-nodes[cuda]'"


def open_device() -> CudaDevice:
    """Return the first GPU of this machine; `CUDA_VISIBLE_DEVICES` says which that is.

    Raises:
        MpmNodesError: There is none, or what talks to it is not installed.
    """
    try:
        import cuda.core  # noqa: F401
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise MpmNodesError(f"device cuda: {error}; install what talks to the GPU: {INSTALL}") from error
    try:
        return CudaDevice()
    except Exception as error:  # the driver is missing, too old, or does not find a GPU: each has errors of its own
        raise MpmNodesError(f"device cuda: this machine shows no NVIDIA GPU ({error}); use device cpu") from error


class CudaGraph:
    """What was recorded.

    Attributes:
        builder: Takes it down.
        held: What kernels were given, which must live as long.
        graph: The graph, once it is whole.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.graph: Any = None
        self.held: list[Any] = []


class CudaDevice:
    """See `solver.device.residency.Device`. Everything runs in order on a stream of its own.

    Args:
        number: Which GPU.
    """

    def __init__(self, number: int = 0) -> None:
        from cuda.core import Device

        self._device, self._threads = Device(number), threading.local()
        self._begin()
        self._stream = self._device.create_stream()
        self._recorded: Any = None
        self.arch = f"sm_{self._device.arch}"
        self.name = str(self._device.name)

    def _begin(self) -> None:
        """Make the GPU that of this thread: frames of a graph are cooked by several."""
        if not getattr(self._threads, "ready", False):
            self._device.set_current()
            self._threads.ready = True

    def _driver(self) -> Any:
        """Return the driver's calls, for the GPU of this thread."""
        from cuda.bindings import driver

        self._begin()
        return driver

    @property
    def memory(self) -> int:
        """Free bytes."""
        answer = self._driver().cuMemGetInfo()
        self._checked(answer)
        return int(answer[1])

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of so many bytes.

        Raises:
            MpmNodesError: There is not so much memory.
        """
        self._begin()
        self._refuse_recorded()
        try:
            return self._device.allocate(max(nbytes, 16), stream=self._stream)
        except Exception as error:
            free = self.memory >> 20
            raise MpmNodesError(
                f"{self.name}: {nbytes >> 20} MiB do not fit into the {free} MiB that are free ({error}); take fewer particles, "
                "or device cpu"
            ) from error

    def upload(self, buffer: Any, array: np.ndarray) -> None:
        """Copy an array to the beginning of a buffer; the array may change afterwards."""
        self._refuse_recorded()
        driver = self._driver()
        self._checked(driver.cuMemcpyHtoDAsync(int(buffer.handle), array.ctypes.data, array.nbytes, self._stream.handle))

    def download(self, buffer: Any, array: np.ndarray) -> None:
        """Fill an array from the beginning of a buffer, behind all that was launched."""
        self._refuse_recorded()
        driver = self._driver()
        self._checked(driver.cuMemcpyDtoHAsync(array.ctypes.data, int(buffer.handle), array.nbytes, self._stream.handle))
        self._checked(driver.cuStreamSynchronize(self._stream.handle))

    def copy(self, target: Any, source: Any, nbytes: int) -> None:
        """Copy bytes from a buffer to another."""
        driver = self._driver()
        self._checked(driver.cuMemcpyDtoDAsync(int(target.handle), int(source.handle), nbytes, self._stream.handle))

    def clear(self, buffer: Any, nbytes: int) -> None:
        """Set bytes to zero."""
        driver = self._driver()
        self._checked(driver.cuMemsetD8Async(int(buffer.handle), 0, nbytes, self._stream.handle))

    @functools.cache  # noqa: B019
    def kernel(self, text: str, name: str) -> Any:
        """Return a compiled kernel of a source."""
        from cuda.core import ObjectCode

        self._begin()
        return ObjectCode.from_cubin(cubin(text, self.arch)).get_kernel(name)

    def launch(self, kernel: Any, blocks: int, arguments: list[Any]) -> None:
        """Run a kernel on buffers, `numpy.int32` and `numpy.float32`; nothing happens where there are no thread blocks."""
        from cuda.core import LaunchConfig, launch

        if blocks:
            self._begin()
            stream = self._stream
            if self._recorded is not None:
                stream = self._recorded.builder
                self._recorded.held.append(arguments)
            launch(stream, LaunchConfig(grid=blocks, block=THREADS), kernel, *arguments)

    @contextlib.contextmanager
    def record(self) -> Iterator[CudaGraph]:
        """Take down what is launched, cleared and copied between buffers as a graph instead of running it."""
        self._begin()
        recorded = self._recorded = CudaGraph(self._stream.create_graph_builder())
        recorded.builder.begin_building()
        try:
            yield recorded
        finally:
            self._recorded = None
            recorded.builder.end_building()
        recorded.graph = recorded.builder.complete()

    def replay(self, recorded: CudaGraph) -> None:
        """Run a graph."""
        self._begin()
        recorded.graph.launch(self._stream)

    def _refuse_recorded(self) -> None:
        """Refuse what graphs do not hold."""
        if self._recorded is not None:
            raise MpmNodesError(f"{self.name}: a graph of kernels allocates nothing, and copies nothing from or to the host")

    def _checked(self, answer: tuple[Any, ...]) -> None:
        if int(answer[0]):
            raise MpmNodesError(
                f"{self.name}: {answer[0].name}; the GPU does not go on. The frames so far are whole: resume the cook, or take "
                "device cpu"
            )
