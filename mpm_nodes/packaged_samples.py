"""Where the sample graphs lie: beside the package in a checkout, else in the installed package `mpm_nodes_samples`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import mpm_nodes

PACKAGE = "mpm_nodes_samples"


def samples_folder() -> Path:
    """Return the folder of graphs and geometry, and see to it that `mpm_nodes_samples` can be imported.

    A checkout's own folder comes before an installed copy, which may be older than the code beside it.
    """
    top = Path(mpm_nodes.__file__).parents[1]
    door = top / "samples" / "__init__.py"
    if PACKAGE not in sys.modules and (top / "pyproject.toml").is_file() and door.is_file():
        spec = importlib.util.spec_from_file_location(PACKAGE, door, submodule_search_locations=[str(door.parent)])
        assert spec is not None and spec.loader is not None  # of a .py file it always has one
        sys.modules[PACKAGE] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    found = importlib.import_module(PACKAGE)
    return Path(found.__path__[0])


def sample_graph(name: str) -> Path:
    """Return the graph file of a sample; its geometry lies beside it."""
    return samples_folder() / f"{name}.json"
