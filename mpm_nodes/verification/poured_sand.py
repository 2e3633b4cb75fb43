"""A heap of sand that is poured: as round as the nozzle that it comes from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.verification.contract import Finding, VerificationProblem

__all__ = ["PouredSand"]

SECTORS = 24
"""Parts of the heap around its axis."""


class PouredSand(VerificationProblem):
    """A heap of sand that is poured out of a round nozzle is round, and its sand lies evenly around its axis.

    Scene: library sand out of a disc of 6 cells across, 35 cells over a rough floor, 1.5 litres in a second with a `jitter` of 1;
        a second later it rests. Its foot, within which 97 % of the sand of a sector of 15 degrees lie; the mass between 60 %
        of the mean foot and that; and gaps: the share of the area within 80 % of the foot, in squares of one particle spacing,
        over which there is none.
    Exact: all sectors are alike: deviations from their mean are 0. Sand leaves no gaps.
    Tolerance: standard deviation of 3 % of the foot and 10 % of the mass, set before the first run: some 300 particles lie in a
        sector's ring, and chance alone makes 6 %. 5 % of the area, set before it was first measured: twice what chance leaves
        of a cone 11 spacings high.
    """

    name = "poured_sand"
    source = "symmetry"
    slow = True

    cell, jitter = 0.01, 1.0

    def findings(self) -> Iterator[Finding]:
        """Pour it."""
        graph = self._graph()
        shot = Evaluator(graph)
        for frame in range(graph.settings.start, graph.settings.end + 1):
            particles = shot.value("pour.particles", frame)
        position = np.asarray(particles["position"], float)
        foot, mass = sectors(position)
        yield Finding(0.0, float(foot.std() / foot.mean()), 0.03, "deviation of the foot around the axis")
        yield Finding(0.0, float(mass.std() / mass.mean()), 0.10, "deviation of the mass around the axis")
        yield Finding(0.0, gaps(position, 0.8 * float(foot.mean()), 0.5 * self.cell), 0.05, "area without sand")

    def _graph(self) -> Graph:
        graph = Graph(cell_size=self.cell, fps=24, start=1, end=48)
        matter = graph.add("material_library", "matter", name="sand", depth=0.1)
        disc = graph.add("emit_sphere", "disc", material=matter, radius=3 * self.cell, centre=(0.0, 35 * self.cell, 0.0))
        stream = graph.add(
            "emit_stream", "stream", template=disc, velocity=(0, -1, 0), rate=1.5e-3, duration=24.0, jitter=self.jitter
        )
        ground = graph.add("collide_plane", "ground", rule="sticky")
        graph.add("solve", "pour", emitters=[stream], colliders=[ground])
        return graph


def sectors(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the foot of a heap around the y axis [m], and how many particles lie in its outer ring, by sector."""
    x, _, z = position.T
    away = np.hypot(x, z)
    sector = np.floor((np.arctan2(z, x) / (2.0 * np.pi) + 0.5) * SECTORS).astype(int) % SECTORS
    foot = np.array([np.percentile(away[sector == each], 97.0) for each in range(SECTORS)])
    ring = (away > 0.6 * foot.mean()) & (away < foot.mean())
    return foot, np.bincount(sector[ring], minlength=SECTORS)


def gaps(position: np.ndarray, radius: float, spacing: float) -> float:
    """Return the share of the squares around the y axis over which there is no particle; radius and spacing [m]."""
    count = int(radius / spacing)
    held = np.zeros((2 * count, 2 * count), bool)
    along, across = (np.floor(position[:, axis] / spacing).astype(int) + count for axis in (0, 2))
    near = (np.minimum(along, across) >= 0) & (np.maximum(along, across) < 2 * count)
    held[along[near], across[near]] = True
    middle = np.arange(2 * count) + 0.5 - count
    inside = np.hypot(middle[:, None], middle[None, :]) < count
    return float(1.0 - held[inside].mean())
