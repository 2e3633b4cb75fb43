"""A drop that its surface holds together lands the same at any resolution."""

from __future__ import annotations

from typing import Any

from mpm_nodes.graph.document.document import Graph
from mpm_nodes.verification.resolutions import SameShot


class TensionAtResolutions(SameShot):
    """A cube of a liquid that becomes a drop and lands looks the same at resolutions 0.75, 1 and 1.5.

    Scene: `SameShot` by `surface_tension` with a cube of 12 mm that falls by 5 mm, followed for 0.1 s: 0.05 Pa s, 0.072 N/m, a bulk
        modulus of 20 kPa.
    Exact: as `snow_at_resolutions`.
    Tolerance: as there.
    """

    name = "tension_at_resolutions"
    source = "chosen here (convergence)"
    preset, matter = "surface_tension", "water"
    edge, drop, seconds = 0.012, 0.005, 0.1

    def stuff(self, graph: Graph) -> Any:
        """See `SameShot`."""
        liquid = graph.add("material_liquid", "matter", bulk_modulus=2e4, viscosity=0.05)
        return graph.add("material_surface_tension", "tension", material=liquid, tension=0.072)
