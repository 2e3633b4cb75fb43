"""Find the OpenVDB Python module: installed as such, or the copy that the Blender wheel carries.

OpenVDB has no wheel of its own. Debian packages it as `pyopenvdb`, conda as `openvdb`, and the `bpy` wheel holds
an `openvdb` extension that loads without bpy itself (so without Blender's X libraries, and without its copy of USD).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from mpm_nodes.data import InputError

__all__ = ["find_openvdb", "openvdb_in_bpy"]


@cache
def find_openvdb() -> ModuleType:
    """Return the OpenVDB module; the search runs once per process.

    Raises:
        InputError: No usable copy; the message lists what was tried and what to install.
    """
    tried = []
    for name in ("openvdb", "pyopenvdb"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            tried.append(f"{name}: not installed")
        except ImportError as error:
            tried.append(f"{name}: {error}")
    extension = openvdb_in_bpy()
    if extension is None:
        tried.append("bpy: not installed, or without an openvdb module")
    else:
        try:
            return _load(extension)
        except ImportError as error:
            tried.append(f"{extension}: {error}")
    raise InputError(
        f"OpenVDB: no usable module in {sys.executable} ({'; '.join(tried)}); "
        'reading and writing .vdb needs one: pip install "mpm-nodes[vdb]"'
    )


def openvdb_in_bpy() -> Path | None:
    """Return the openvdb extension inside an installed bpy wheel without importing bpy, or None."""
    spec = importlib.util.find_spec("bpy")
    for package in spec.submodule_search_locations or () if spec else ():
        for pattern in ("openvdb*.so", "openvdb*.pyd"):
            for found in sorted(Path(package).glob(f"[0-9]*/python/lib/**/site-packages/{pattern}")):
                return found
    return None


def _load(extension: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("openvdb", extension)
    if spec is None or spec.loader is None:
        raise ImportError(f"{extension} is no extension module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["openvdb"] = module  # its types name this module, and it is released in order at exit
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop("openvdb", None)
        raise
    return module
