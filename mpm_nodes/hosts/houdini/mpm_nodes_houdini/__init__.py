"""What runs inside Houdini: nodes that pass the graph along their wires, and the cook in a process of its own.

Imports `hou` and the standard library only: neither mpm_nodes nor its packages are needed, or wanted, in Houdini's Python.
"""

from .actions import (
    add_stage,
    cancel_cook,
    check_graph,
    continue_graph,
    cook_again,
    cook_graph,
    load_graph,
    save_graph,
    unfold_preset,
)
from .farming import make_rops, write_job
from .forces import add_forces, choose_forces
from .nodes import cook_node, node_created
from .recipes import configure

__all__ = [
    "add_forces",
    "add_stage",
    "cancel_cook",
    "check_graph",
    "choose_forces",
    "configure",
    "continue_graph",
    "cook_again",
    "cook_graph",
    "cook_node",
    "load_graph",
    "make_rops",
    "node_created",
    "save_graph",
    "unfold_preset",
    "write_job",
]
