"""A hot body lands, and is cooled by the ground, the same at any resolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.verification.resolutions import SameShot

HOT, COLD = 390.0, 290.0
"""Of the cube and of the ground [K]."""


class HeatAtResolutions(SameShot):
    """A hot cube of jelly that lands on cold ground bounces and cools the same at resolutions 0.75, 1 and 1.5.

    Scene: `SameShot` of library jelly by `explicit_heat`: 390 K on ground of 290 K, 1e5 W/(m^2 K) through the contact; a
        diffusivity of 0.006 m^2/s spreads the heat by some three cells.
    Exact: as `snow_at_resolutions`; and the mean of the temperature and its standard deviation, over 100 K.
    Tolerance: as there, 3 % of the temperatures; chosen here, before the first run.
    """

    name = "heat_at_resolutions"
    source = "chosen here (convergence)"
    preset, matter = "explicit_heat", "jelly"

    def stuff(self, graph: Graph) -> Any:
        """See `SameShot`."""
        return graph.add("material_thermal", "thermal", material=super().stuff(graph), conductivity=6000.0, heat_capacity=1000.0)

    def prepared(self, graph: Graph, cube: Any, ground: Any) -> tuple[Any, Any]:
        """See `SameShot`."""
        hot = graph.add("set_temperature", "hot", particles=cube, temperature=HOT)
        return hot, graph.add("collider_temperature", "cold", collider=ground, temperature=COLD, conductance=1e5)

    def more(self, particles: Particles) -> dict[str, float]:
        """See `SameShot`."""
        warmth = (np.asarray(particles["temperature"], float) - COLD) / (HOT - COLD)
        return {"warmth": float(warmth.mean()), "unevenness": float(warmth.std())}
