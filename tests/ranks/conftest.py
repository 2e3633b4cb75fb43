"""Runs programs on several ranks, where there is an MPI."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def launcher() -> str | None:
    """Return the path of mpiexec, the one beside this Python first."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.is_file() else shutil.which("mpiexec")


@pytest.fixture
def mpiexec() -> str:
    """Return the path of mpiexec; without it or mpi4py the test is skipped."""
    found = launcher()
    if found is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("needs mpi4py and mpiexec: pip install 'mpm-nodes[mpi]' mpich")
    return found


@pytest.fixture
def on_ranks(mpiexec):
    """Return a function that runs a Python program on so many ranks and returns what it came to."""

    def start(ranks: int, *arguments: object) -> subprocess.CompletedProcess:
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
        line = [mpiexec, "-n", str(ranks), sys.executable, *map(str, arguments)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    return start
