"""The built-in stages of a substep, one verb a file."""

MODULES = (
    "choose_time_step",
    "rasterize",
    "stress",
    "tearing",
    "update_grid_velocity",
    "collide_bodies",
    "collide_grid",
    "implicit",
    "gather",
    "deformation",
    "total_deformation",
    "remove_subgrid",
    "collide_particles",
    "move_particles",
    "avoid_a_void",
    "projection",
    "density",
    "surface_tension",
)
