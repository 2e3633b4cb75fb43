"""The disk cache of compiled kernels: one file per kernel and signature, compiled by one process at a time.

numba's own cache keeps an index per function and numbers the files behind it. Two processes that compile two signatures of one
function at once can give both the same number, and a later process then runs the wrong machine code. Here the name of a file is a
digest of all that decides its content, so there is no index to disagree about.

Whoever compiles a kernel holds a lock on it; another process that needs it meanwhile waits, then loads it. So processes that
start on an empty cache share the work instead of doing it twice. A lock dies with its process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config
from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult

from mpm_nodes import compiling
from mpm_nodes.kernels.compile import sources
from mpm_nodes.kernels.compile.machine_code import Callee

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT = 60.0
"""Seconds after which a kernel is compiled although another process seems to be at it."""
_POLL = 0.01
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML")
"""numba's settings from the environment that decide what is compiled; those of the processor are in `magic_tuple`."""
_LOOP = re.compile(r"mpm_nodes_loop_(\w+)_[0-9a-f]{16}\.\w+")
"""How the stem of a generated function is made: from the title of its loop, and a digest."""


class KernelCache(_Cache):
    """The compiled signatures of one function; what numba calls a cache.

    Args:
        function: The Python function; its source file and what that imports count as part of it (`sources.digest`).
        folder: Where files go. Nothing is written there before something was compiled, and a folder that cannot be written is
            only read.
    """

    def __init__(self, function: Callable, folder: Path) -> None:
        self._function, self._folder = function, folder
        self._locks: dict[Path, int] = {}
        self._enabled = True

    # ---------------------------------------------------------------- what numba calls
    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def enable(self) -> None:
        """Use the cache."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save."""
        self._enabled = False

    def flush(self) -> None:
        """Forget what is stored of this function."""
        for path in self._folder.glob(f"{self._stem()}-*"):
            path.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the compiled function for argument types, or None when the caller is to compile it."""
        if not self._enabled:
            return None
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        found = _read(path)
        if found is None and self._lock(path):
            found = _read(path)  # another process may have compiled it while this one waited
            if found is not None:
                self._unlock(path)
        if found is None:
            return None
        result = CompileResult._rebuild(target_context, *found)
        result.library._reload_init.update(result.reload_init)  # what links it needs the same; numba forgets it
        self._settle(sig, result)
        return result

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Store what was compiled, and let waiting processes have it."""
        if not self._enabled:
            return
        path = self._path(sig, data.codegen)
        self._settle(sig, data)
        try:
            if not (data.lifted or data.library.has_dynamic_globals):
                write_whole(path, serialize.dumps(data._reduce()))
        finally:
            self._unlock(path)

    def _settle(self, sig: Any, result: CompileResult) -> None:
        """Let large functions that a module holds be called by their address."""
        function, args = self._function, getattr(sig, "args", sig)
        callee = Callee(function.__module__, function.__qualname__, tuple(args), result.fndesc.llvm_func_name)
        if getattr(callee.dispatcher, "py_func", None) is function:
            result.library.call_by_address(callee)

    @property
    def label(self) -> str:
        """What people are told that is compiled: the function, or what a generated loop does."""
        return _LOOP.sub(r"\1", self._stem()).removeprefix("kernels.")

    # ---------------------------------------------------------------- files
    def _stem(self) -> str:
        plain = self._function.__qualname__.replace("<", "").replace(">", "")
        return f"{self._function.__module__.removeprefix('mpm_nodes.')}.{plain}"

    def _path(self, sig: Any, codegen: Any) -> Path:
        code = self._function.__code__
        cells = [cell.cell_contents for cell in self._function.__closure__ or ()]
        kind = (
            repr(sig),
            codegen.magic_tuple(),
            [str(getattr(config, name)) for name in _SETTINGS],
            sources.digest(code.co_filename),
            code.co_firstlineno,
            code.co_code,
            serialize.dumps(cells) if cells else b"",
        )
        return self._folder / f"{self._stem()}-{hashlib.sha256(repr(kind).encode()).hexdigest()[:24]}.kernel"

    # ---------------------------------------------------------------- one process at a time
    def _lock(self, path: Path) -> bool:
        """Wait until no other process compiles this; return whether this one now holds the lock."""
        if fcntl is None or path in self._locks:
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # read-only: compile for this process alone
            return False
        end = time.monotonic() + LONGEST_WAIT
        compiling.begin(self.label)
        try:
            while time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._locks[path] = handle
                    return True
                time.sleep(_POLL)
        except OSError:  # a file system without locks
            return False
        finally:
            compiling.end(0)
            if path not in self._locks:
                os.close(handle)
        return False

    def _unlock(self, path: Path) -> None:
        handle = self._locks.pop(path, None)
        if handle is not None:
            with contextlib.suppress(OSError):
                os.unlink(path.with_suffix(".lock"))
            os.close(handle)


def _read(path: Path) -> Any:
    """Return what was stored, None when there is nothing that can be read."""
    try:
        return pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError):  # the last two: a class of it has moved
        return None


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in its place at once, or not at all where the folder cannot be written."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".kernel")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
