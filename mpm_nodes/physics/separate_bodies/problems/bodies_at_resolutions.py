"""A body with velocities of its own lands the same at any resolution."""

from mpm_nodes.verification.resolutions import SameShot


class SeparateJellyAtResolutions(SameShot):
    """A cube of jelly of explicit substeps with bodies apart looks the same at resolutions 0.75, 1 and 1.5.

    Scene: `SameShot` of library jelly by `separate_bodies`.
    Exact: as `snow_at_resolutions`.
    Tolerance: as there.
    """

    name = "separate_jelly_at_resolutions"
    source = "chosen here (convergence)"
    preset, matter = "separate_bodies", "jelly"
