"""Level set and mesh of points by the node `surface_particles` with its own defaults; velocity carried, normals made."""

import sys

import numpy as np
import surface_of_points

import mpm_nodes
from mpm_nodes.data import Particles
from mpm_nodes.nodes.surface import surface_particles


def surface(position, velocity, spacing, voxel):
    """Wrap the points."""
    particles = Particles({"position": position, "velocity": velocity}, spacing=spacing)
    made = surface_particles(particles, voxel_size=voxel, anisotropy="--anisotropy" in sys.argv)

    def triangles() -> surface_of_points.Triangles:
        mesh = made.mesh
        starts = np.cumsum(mesh.counts) - mesh.counts
        four = starts[mesh.counts == 4]
        return mesh.points, mesh.indices[np.concatenate([starts[:, None] + [0, 1, 2], four[:, None] + [0, 2, 3]])]

    return triangles


if __name__ == "__main__":
    surface_of_points.main(surface, mpm_nodes.__version__)
