"""Energy terms: what an implicit update minimises the sum of.

A term has quadrature points (particles, surface samples) with an energy density of the incremental deformation. It gives, for trial
velocities on the grid: its energy and force, the action of its second derivative, and that one's node-diagonal blocks.
"""
