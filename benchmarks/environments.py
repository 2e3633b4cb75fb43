"""Virtual environments of other programs: made once in the cache folder with pinned versions, and scripts run in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.data import MpmNodesError

PEERS = Path(__file__).resolve().parent / "peers"
"""Scripts that run inside the environments."""
LONGEST_SECONDS = 1800.0
"""After this a script is taken to hang."""


def peers_folder() -> Path:
    """Return where environments and compiled kernels of the peers are kept: `peers` in the cache folder of mpm_nodes."""
    from mpm_nodes.kernels.compile.jit import cache_root

    return cache_root() / "peers"


def environment(requirements: Sequence[str]) -> Path:
    """Return the Python of an environment that holds pinned requirements ("taichi==1.7.4", ...); make it when needed.

    Raises:
        MpmNodesError: it could not be made; the message says which package failed and what to do.
    """
    folder = peers_folder() / requirements[0].replace("==", "-")
    python, marker = folder / "bin" / "python", folder / "requirements.json"
    if marker.is_file() and json.loads(marker.read_text()) == list(requirements) and python.exists():
        print(f"environment {folder.name}: there already, {folder}", flush=True)
        return python
    print(f"environment {folder.name}: installing {' and '.join(requirements)} into {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)  # half made, or of other versions
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MpmNodesError(
            f"environment {folder}: cannot be made ({error}); it needs a writable folder "
            "(MPM_NODES_CACHE sets it) and Python's modules venv and ensurepip"
        ) from error
    for requirement in requirements:
        _install(python, requirement)
    marker.write_text(json.dumps(list(requirements)))
    return python


def _install(python: Path, requirement: str) -> None:
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet", requirement]
    done = subprocess.run(command, capture_output=True, text=True, env=_clean())
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        reason = errors[-1] if errors else f"exit code {done.returncode}"
        raise MpmNodesError(
            f"pip could not install {requirement} for Python {sys.version_info[0]}.{sys.version_info[1]} "
            f"({reason}); check the network or pip's index, or run it by hand and start again: "
            f"{' '.join(command)}"
        )


def run_script(python: Path | str, script: str, arguments: Sequence[object], threads: int, ours: bool = False) -> None:
    """Run a script of the folder `peers` in its own process; `ours`: it may import this mpm_nodes.

    Raises:
        MpmNodesError: it failed; the message ends with the end of what it wrote.
    """
    count = str(threads)
    surroundings = {
        **(_with_this_package() if ours else _clean()),
        "OMP_NUM_THREADS": count,
        "NUMBA_NUM_THREADS": count,
        "RAYON_NUM_THREADS": count,
    }
    command = [str(python), str(PEERS / script), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=surroundings, timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise MpmNodesError(
            f"{script}: still running after {LONGEST_SECONDS:g} s; stop other programs or give fewer particles"
        ) from error
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise MpmNodesError(
            f"{script}: ended with exit code {done.returncode}; run it by hand to look into it: {' '.join(command)}\n{said}"
        )


def _clean() -> dict[str, str]:
    """Return this process's surroundings without what could let Python find packages of others."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


def _with_this_package() -> dict[str, str]:
    """Return this process's surroundings, with the package that was imported here found first."""
    import mpm_nodes

    paths = [str(Path(mpm_nodes.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def busy_warning() -> str:
    """Return a line that says that other programs are running, or nothing."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"the load average is {load:.1f} on {cores} cores: something else runs, figures will be low" if load > 0.5 else ""
