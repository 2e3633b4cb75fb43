"""How large the spheres are that wrap particles: numbers that surfaces and solid bodies of particles share."""

REACH = 2.5
"""Reach of the averaging kernel, in particle spacings."""
RADIUS = 0.665
"""Sphere radius, in spacings, that puts the surface of a lattice half a spacing outside its outer layer (at REACH)."""
LIMIT = 1.25
"""No point further than this from every particle is inside, in spacings."""
VOXEL = 0.6
"""Default voxel size, in particle spacings."""
HALF_WIDTH = 3.0
"""Half width of the narrow band, in voxels."""
