"""Mesh of points by pysplashsurf: the same grid, three smoothing passes, normals, velocity carried, as our node does.

Its kernel reaches two spacings, as its documentation recommends; ours reaches two and a half.
"""

import importlib.metadata

import numpy as np
import pysplashsurf
import surface_of_points

RADIUS = 0.5
"""Particle radius, in spacings; the lengths below are multiples of it."""
SMOOTHING_LENGTH = 2.0


def surface(position, velocity, spacing, voxel):
    """Wrap the points; the cubes are our node's voxels."""
    made, _ = pysplashsurf.reconstruction_pipeline(
        np.ascontiguousarray(position, np.float32),
        attributes_to_interpolate={"velocity": velocity},
        particle_radius=RADIUS * spacing,
        smoothing_length=SMOOTHING_LENGTH,
        cube_size=voxel / (RADIUS * spacing),
        iso_surface_threshold=0.6,
        mesh_smoothing_iters=3,
        mesh_smoothing_weights=False,
        compute_normals=True,
    )
    return lambda: (np.asarray(made.mesh.vertices), np.asarray(made.mesh.triangles))


if __name__ == "__main__":
    surface_of_points.main(surface, importlib.metadata.version("pysplashsurf"))
