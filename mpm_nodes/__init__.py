"""mpm_nodes: a node-graph toolkit for the Material Point Method.

The public names below load on first use; importing the package loads neither numba nor pxr.
"""

from mpm_nodes import search_path

if search_path.PROGRAM:  # before the next import can be answered by a file beside somebody's graph
    search_path.forget_working_folder()

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "Graph": "mpm_nodes.graph.document.document",
    "load_graph": "mpm_nodes.graph.document.document",
    "SubstepRecipe": "mpm_nodes.graph.document.recipe",
    "CookOptions": "mpm_nodes.graph.cook.executor",
    "execute": "mpm_nodes.graph.cook.executor",
    "node": "mpm_nodes.graph.declare.decorators",
    "stage": "mpm_nodes.graph.declare.decorators",
    "wedge": "mpm_nodes.farm.wedges",
    "SubstepSolver": "mpm_nodes.solver.run",
    "orientation": "mpm_nodes.nodes.rotations",
    "Particles": "mpm_nodes.data",
    "Material": "mpm_nodes.data",
    "MpmNodesError": "mpm_nodes.data",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mpm_nodes' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
