"""Compiled loops of fragments: the module of each is written into the JIT cache folder and imported by path.

numba caches compiled code of plain module-level functions only, never of closures. So a loop composed of fragments gets a small
module file; the next process finds its machine code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError, OutputError
from mpm_nodes.kernels.compile import jit, sources
from mpm_nodes.kernels.composition.backends import CPU, Backend
from mpm_nodes.kernels.composition.block import Source
from mpm_nodes.kernels.composition.fragments import Fragment
from mpm_nodes.kernels.composition.source import Fold, source_of

__all__ = ["ComposedLoop", "composed_loop", "foreign_files", "imported", "written"]


@dataclass(frozen=True, eq=False)
class ComposedLoop:
    """A loop composed of fragments, compiled at its first call.

    Attributes:
        source: Its source, with the names of its arguments.
        run: The function.
    """

    source: Source
    run: Callable[..., None]

    def __call__(self, given: Mapping[str, Any]) -> None:
        """Run it with arguments by name."""
        self.run(*[given[name] for name in self.source.names])


_LOOPS: dict[Any, ComposedLoop] = {}


def composed_loop(
    law: Any,
    fragments: Sequence[Fragment],
    table: Mapping[str, Any],
    inner: Sequence[str] = (),
    fold: Fold | None = None,
    fetches: bool = True,
    backend: Backend = CPU,
) -> ComposedLoop:
    """Return the loop of a list of fragments; see `source_of` for the arguments."""
    rows = tuple((name, attribute.rows, attribute.kind) for name, attribute in sorted(table.items()))
    key = (law and (law.id, law.module, law.follows), tuple(fragments), tuple(inner), fold, fetches, backend, rows)
    if key not in _LOOPS:
        source = source_of(law, fragments, table, inner, fold, fetches, backend)
        functions = [
            f for fragment in fragments for f in (getattr(fragment, name, None) for name in ("body", "guard", "taker")) if f
        ]
        labels = dict.fromkeys(fragment.label.replace(" ", "_") for fragment in fragments)
        title = "_".join([law.id if law is not None else "any", *labels])
        module = imported(written(source.text, title[:80], foreign_files(law, functions)))
        _LOOPS[key] = ComposedLoop(source, module.run)
    return _LOOPS[key]


# ---------------------------------------------------------------- what the file depends on
def foreign_files(law: Any, functions: Iterable[Callable[..., Any]]) -> list[Path]:
    """Return the files of what is called that do not count in the cache folder's own digest: stages, and what users wrote."""
    files, waiting, seen = set(), list(functions), set()
    if law is not None:
        waiting += [value for value in vars(law.module).values() if isinstance(value, types.FunctionType)]
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)
        if isinstance(function, types.ModuleType):
            files.add(getattr(function, "__file__", None))
        if not isinstance(function, types.FunctionType) or function in seen:
            continue
        seen.add(function)
        files.add(function.__code__.co_filename)
        known = function.__globals__
        waiting += [known[name] for name in function.__code__.co_names if name in known]
    own = [sources.PACKAGE / package for package in ("kernels", "materials")]
    return sorted(
        path
        for path in (Path(name).resolve() for name in files if name)
        if path.is_file() and not any(path.is_relative_to(package) for package in own) and "site-packages" not in path.parts
    )


# ---------------------------------------------------------------- the file
def written(source: str, title: str, foreign: Iterable[Path]) -> Path:
    """Write a module unless it is there; the name holds a digest of all that the file depends on."""
    digest = hashlib.sha256(source.encode())
    for path in foreign:
        digest.update(path.read_bytes() + sources.digest(str(path)).encode())
    path = jit.CACHE_FOLDER / "loops" / f"{title}_{digest.hexdigest()[:16]}.py"
    if path.exists() and path.read_text() == source:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".loop")
        with os.fdopen(handle, "w") as file:
            file.write(source)
        # numba's cache compares the time of the source: two processes that write at once must agree
        os.utime(temporary, (1_000_000_000, 1_000_000_000))
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(
            f"JIT cache folder {path.parent}: {error.strerror}; set MPM_NODES_CACHE to a folder that can be written"
        ) from error
    return path


def imported(path: Path) -> types.ModuleType:
    """Return the module of a generated file."""
    name = "mpm_nodes_loop_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MpmNodesError(f"{path}: cannot be imported; empty the cache folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
