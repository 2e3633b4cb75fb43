"""The built-in stages of a substep, one verb a file."""

MODULES = (
    "choose_time_step",
    "apply_forces",
    "rasterize",
    "stress",
    "update_grid_velocity",
    "collide_grid",
    "implicit",
    "gather",
    "deformation",
    "total_deformation",
    "collide_particles",
    "move_particles",
    "density",
)
