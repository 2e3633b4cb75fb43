"""The volume inside a mesh."""

import numpy as np

from mpm_nodes.data import Mesh
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate


def enclosed(mesh: Mesh) -> float:
    """Return the volume inside a closed mesh [m^3]."""
    a, b, c = (np.asarray(mesh.points, float)[corner] for corner in triangulate(mesh.counts, mesh.indices)[0].T)
    return float((a * np.cross(b, c)).sum() / 6.0)
