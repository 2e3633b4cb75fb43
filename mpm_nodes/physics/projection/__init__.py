"""Velocities without divergence on the faces of a staggered grid: S14 sections 5.4 to 5.7."""
