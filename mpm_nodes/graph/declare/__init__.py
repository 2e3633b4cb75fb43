"""How nodes and stages are declared: decorators, what they read off signatures, knobs, and the registry of all that there is."""

from mpm_nodes.graph.declare.decorators import (
    costs,
    ends_at_sides,
    found_by,
    joins_copies,
    moves_rigid_bodies,
    needs_whole_nodes,
    node,
    reads_of_materials,
    shared_among_ranks,
    stage,
)

__all__ = [
    "costs",
    "ends_at_sides",
    "found_by",
    "joins_copies",
    "moves_rigid_bodies",
    "needs_whole_nodes",
    "node",
    "reads_of_materials",
    "shared_among_ranks",
    "stage",
]
