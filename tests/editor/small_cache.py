"""A cache of every form, made in a moment: a ball that its keys move, as points, mesh, level set and fog, and a box."""

from __future__ import annotations

import json
from pathlib import Path

from mpm_nodes import execute, load_graph

WALKING = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"cell_size": 0.1, "fps": 24, "start": 1, "end": 3},
    "nodes": {
        "jelly": {"type": "material_library", "knobs": {"name": "jelly"}},
        "ball": {
            "type": "emit_sphere",
            "knobs": {"radius": 0.2, "centre": {"keys": [[1, [0, 0.3, 0], "linear"], [3, [0.4, 0.3, 0], "linear"]]}},
            "inputs": {"material": "jelly"},
        },
        "post": {"type": "collide_box", "knobs": {"size": [0.2, 0.1, 0.2]}},
        "surface": {"type": "surface_particles", "inputs": {"particles": "ball"}},
        "fog": {"type": "density_volume", "inputs": {"particles": "ball"}},
        "writer": {
            "type": "write_cache",
            "inputs": {"particles": "ball", "mesh": "surface.mesh", "volumes": ["surface.surface", "fog"], "colliders": ["post"]},
        },
        "drops": {"type": "write_cache", "knobs": {"name": "drops"}, "inputs": {"particles": "ball"}},
    },
}


def cook_walking(folder: Path, name: str = "shot", **settings: float) -> Path:
    """Write the graph as `name`.json into a folder, cook it as the editor would, and return the revision."""
    graph = {**WALKING, "settings": {**WALKING["settings"], **settings}}
    (folder / f"{name}.json").write_text(json.dumps(graph, indent=1))
    execute(load_graph(folder / f"{name}.json"), out=folder / f"{name}_cache")
    return max((folder / f"{name}_cache").glob("r*"))
