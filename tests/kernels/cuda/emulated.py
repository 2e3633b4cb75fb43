"""A device that is none: kernels as they stand, run by a CPU's compiler, with buffers of its own so that a missing copy shows."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("emulated.h")
COMPILER = shutil.which("g++") or shutil.which("clang++")
THREADS = 128


class Emulated:
    """See `solver.device.residency.Device`.

    Args:
        folder: Where compiled kernels are kept, those of each header apart.
        backwards: Whether the last threads, and the last blocks, run first in the first launch of a kernel: then by turns.
    """

    name, memory = "emulated", 1 << 40

    def __init__(self, folder: Path, backwards: bool = False) -> None:
        self.folder, self.backwards = folder / _digest(HEADER.read_text()), backwards
        self.launches: dict[str, int] = {}
        self.recorded: list[Callable[[], None]] | None = None

    def allocate(self, nbytes: int) -> np.ndarray:
        """Return a buffer that holds no number."""
        assert self.recorded is None, "graphs allocate nothing"
        return np.full(nbytes, 0xFF, np.uint8)

    def upload(self, buffer: np.ndarray, array: np.ndarray) -> None:
        """Copy an array to the beginning of a buffer."""
        assert self.recorded is None, "graphs copy nothing from the host"
        buffer[: array.nbytes] = array.view(np.uint8).ravel()

    def download(self, buffer: np.ndarray, array: np.ndarray) -> None:
        """Fill an array from the beginning of a buffer."""
        assert self.recorded is None, "graphs copy nothing to the host"
        array.view(np.uint8).ravel()[:] = buffer[: array.nbytes]

    def copy(self, target: np.ndarray, source: np.ndarray, nbytes: int) -> None:
        """Copy bytes from a buffer to another."""
        if self.recorded is not None:
            self.recorded.append(lambda: self.copy(target, source, nbytes))
            return
        target[:nbytes] = source[:nbytes]

    def clear(self, buffer: np.ndarray, nbytes: int) -> None:
        """Set bytes to zero."""
        if self.recorded is not None:
            self.recorded.append(lambda: self.clear(buffer, nbytes))
            return
        buffer[:nbytes] = 0

    @contextlib.contextmanager
    def record(self) -> Iterator[list[Callable[[], None]]]:
        """Take down what is to run instead of running it."""
        graph = self.recorded = []
        try:
            yield graph
        finally:
            self.recorded = None

    def replay(self, recorded: list[Callable[[], None]]) -> None:
        """Run what was recorded."""
        for run in recorded:
            run()

    @functools.cache  # noqa: B019
    def kernel(self, text: str, name: str) -> Any:
        """Compile a kernel, or load what was compiled of the same source."""
        source = f'#include "{HEADER.name}"\n{text}\nEMULATE({name})\n'
        library = self.folder / f"{_digest(source)}.so"
        if not library.exists():
            self._precompile()
            _make(library, ["-shared"], source)
        launch = ctypes.CDLL(str(library)).launch
        launch.argtypes, launch.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_bool], ctypes.c_bool
        return name, launch

    def _precompile(self) -> None:
        """Compile the header once for all kernels of the folder: by itself it takes longer than most of them."""
        header = self.folder / f"{HEADER.name}.gch"
        if not header.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _make(header, ["-x", "c++-header"], HEADER.read_text())

    def launch(self, kernel: Any, blocks: int, arguments: list[Any], threads: int = THREADS) -> None:
        """Run a kernel, every second time with the last thread ahead of the others: what lacks a barrier differs then.

        Raises:
            AssertionError: Not all threads reach a barrier.
        """
        if self.recorded is not None:
            self.recorded.append(lambda: self.launch(kernel, blocks, arguments, threads))
            return
        name, function = kernel
        self.launches[name] = self.launches.get(name, 0) + 1
        values = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else _number(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        assert function(pointers, blocks, threads, self.launches[name] % 2 == self.backwards), (
            f"{name}: a barrier that some threads miss"
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _make(target: Path, options: list[str], source: str) -> None:
    """Compile a source to a file that appears as a whole: others of this session take it as soon as it is there."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made, text = Path(folder, target.name), Path(folder, f"{target.name}.cpp")
        text.write_text(source)
        folders = [f"-I{target.parent}", f"-I{HEADER.parent}"]
        command = [COMPILER, "-std=c++17", "-O1", "-w", "-fPIC", *folders, *options, str(text), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]
        made.replace(target)


def _number(value: Any) -> Any:
    return ctypes.c_int(value) if isinstance(value, np.int32) else ctypes.c_float(value)
