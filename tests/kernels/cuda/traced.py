"""Functions of one particle as a GPU runs them: traced into C++, here compiled by the machine's own compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpm_nodes.kernels.cuda.trace import Symbol, named, statements

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="neither g++ nor clang++ is installed")


def leaves(values: Any) -> list[Any]:
    """Numbers of nested tuples, in order."""
    return [x for each in values for x in leaves(each)] if isinstance(values, tuple) else [values]


def built(folder: Path, text: str) -> ctypes.CDLL:
    """Compile C++ without contractions, which NumPy does not have either."""
    (folder / "loops.cpp").write_text("#include <cmath>\nusing namespace std;\n" + text)
    flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, "loops.cpp", "-o", "loops.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "loops.so"))


def traced(folder: Path, function: Callable[..., Any], *given: Any) -> np.ndarray:
    """Return what a function computes in single precision, a row for each number of its results; masks are 0 and 1.

    Args:
        folder: Where it is compiled.
        function: Takes values of one particle, and flags.
        given: For each argument the values of particles, shape (n,) or (n, entries); a number; or a flag, which is not traced.
    """
    columns = [np.ascontiguousarray(x.T, np.float32) for x in given if isinstance(x, np.ndarray)]
    count, arguments, place = columns[0].shape[-1], [], 0
    for x in given:
        if not isinstance(x, np.ndarray):
            arguments.append(x if isinstance(x, bool) else Symbol(x))
            continue
        entries = tuple(named(f"columns[{place}][{k} * n + p]") for k in range(x.shape[1] if x.ndim > 1 else 1))
        arguments.append(entries if x.ndim > 1 else entries[0])
        place += 1
    results = leaves((function(*arguments),))
    body = "\n".join(statements({f"out[{k} * n + p]": each for k, each in enumerate(results)}))
    head = 'extern "C" void run(const float* const* columns, float* out, long n)'
    loop = built(folder, f"{head} {{\nfor (long p = 0; p < n; p++) {{\n{body}\n}}\n}}\n").run
    out = np.zeros((len(results), count), np.float32)
    pointers = (ctypes.c_void_p * len(columns))(*(column.ctypes.data for column in columns))
    loop(pointers, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(count))
    return out
