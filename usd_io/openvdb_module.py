"""Find the OpenVDB Python module: installed as such, in the Blender wheel, or in the distribution's folder.

OpenVDB has no wheel of its own. conda packages it as `openvdb`, Debian and Ubuntu as `pyopenvdb` (python3-openvdb), and the
`bpy` wheel holds an `openvdb` extension that loads without bpy itself (so without Blender's X libraries, and without its copy
of USD). A virtual environment does not see the distribution's packages: the one module is loaded from there by its path.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import InputError

__all__ = ["BLENDER_WHEELS", "find_openvdb", "openvdb_cure", "openvdb_in_bpy", "openvdb_of_the_distribution", "wheels_in_words"]

PROBE_SECONDS = 60.0
BLENDER_WHEELS = ((3, 11), (3, 13))
"""Versions of Python that have a wheel of Blender (`bpy`), and so OpenVDB: those of the extra `vdb` in pyproject.toml."""


@cache
def find_openvdb() -> ModuleType:
    """Return the OpenVDB module; the search runs once per process.

    Raises:
        InputError: No usable copy; the message lists what was tried and what to install.
    """
    tried = []
    for name in ("openvdb", "pyopenvdb"):
        try:
            spec = importlib.util.find_spec(name)
            if spec is None:
                tried.append(f"{name}: not installed")
                continue
            _refuse_old_numpy(name, spec.origin)
            return importlib.import_module(name)
        except (ImportError, ValueError) as error:
            tried.append(f"{name}: {error}")
    for place, extension in (("bpy", openvdb_in_bpy()), ("the distribution's packages", openvdb_of_the_distribution())):
        if extension is None:
            tried.append(f"{place}: not installed, or without an OpenVDB module for Python {_version()}")
            continue
        try:
            return _load(extension)
        except ImportError as error:
            tried.append(f"{extension}: {error}")
    raise InputError(
        f"OpenVDB: no usable module in {sys.executable} ({'; '.join(tried)}); "
        f"reading and writing .vdb and surfacing need one: {openvdb_cure()}"
    )


def openvdb_cure() -> str:
    """Return what to install so that this interpreter has OpenVDB."""
    if sys.version_info[:2] in BLENDER_WHEELS:
        return 'pip install "mpm-nodes[vdb]", or your distribution\'s python3-openvdb'
    return (
        f"no wheel holds it for Python {_version()}: install your distribution's python3-openvdb "
        "(Debian and Ubuntu: apt install python3-openvdb; for its system Python), "
        f'or use Python {wheels_in_words()} and "mpm-nodes[vdb]"'
    )


def wheels_in_words() -> str:
    """Return the versions of Python that have a wheel of Blender, as `3.11 or 3.13`."""
    return " or ".join(".".join(map(str, version)) for version in BLENDER_WHEELS)


def openvdb_in_bpy() -> Path | None:
    """Return the openvdb extension inside an installed bpy wheel without importing bpy, or None."""
    spec = importlib.util.find_spec("bpy")
    for package in spec.submodule_search_locations or () if spec else ():
        for pattern in ("openvdb*.so", "openvdb*.pyd"):
            for found in sorted(Path(package).glob(f"[0-9]*/python/lib/**/site-packages/{pattern}")):
                return found
    return None


def openvdb_of_the_distribution(root: str = "/usr") -> Path | None:
    """Return the extension that the Linux distribution installed for this version of Python under `root`, or None."""
    exact = importlib.machinery.EXTENSION_SUFFIXES[0]  # names the version: .cpython-312-x86_64-linux-gnu.so
    versioned = [f"{root}/{lib}/python{_version()}/site-packages" for lib in ("lib64", "lib")]  # Fedora, Arch
    for folder in (f"{root}/lib/python3/dist-packages", *versioned):  # the first is Debian's and Ubuntu's
        for name in ("openvdb", "pyopenvdb"):
            for suffix in (exact, ".so") if folder in versioned else (exact,):
                found = Path(folder) / f"{name}{suffix}"
                if found.is_file():
                    return found
    return None


def _load(extension: Path) -> ModuleType:
    name = extension.name.split(".")[0]
    _refuse_old_numpy(name, str(extension))
    return _executed(name, extension)


def _executed(name: str, extension: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, extension)
    if spec is None or spec.loader is None:
        raise ImportError(f"{extension} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its types name this module, and it is released in order at exit
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _refuse_old_numpy(name: str, origin: str | None) -> None:
    """Refuse a `pyopenvdb` that was compiled for NumPy 1 where NumPy 2 runs: its first array would end the process.

    Only the bindings of OpenVDB 10 and before use NumPy's own interface, and they are named so. A child process tries.

    Raises:
        ImportError: The child ended badly; the message names the cure.
    """
    if name != "pyopenvdb" or origin is None or int(np.__version__.split(".")[0]) < 2:
        return
    try:
        done = children.run("usd_io.openvdb_module:try_extension", [name, origin], capture_output=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImportError(f"{origin} could not be tried: {error}") from error
    if done.returncode != 0:
        raise ImportError(f'built for NumPy 1, and NumPy {np.__version__} is installed; pip install "numpy<2"')


def try_extension(name: str, path: str) -> None:
    """Load an extension and copy an array through it; for a child process, which this may end."""
    module = _executed(name, Path(path))
    grid = module.FloatGrid(0.0)
    grid.copyFromArray(np.ones((8, 8, 8), np.float32), (0, 0, 0))
    sys.exit(grid.activeVoxelCount() != 512)


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
