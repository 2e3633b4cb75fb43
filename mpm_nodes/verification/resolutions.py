"""A shot moves the same at any resolution: where its matter is, how wide it lies, when it lands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.verification.contract import Finding, VerificationProblem

__all__ = ["SameShot"]

CELLS = 12
RESOLUTIONS = (0.75, 1.5)
FRAMES = 100
GRAVITY = 9.81


class SameShot(VerificationProblem):
    """Base of problems that cook one shot at three resolutions, by `settings.resolution` alone.

    A cube of 0.24 m, 12 cells at resolution 1, falls 0.1 m onto a plane with friction 0.5; followed for half a second.

    Attributes:
        preset: Substeps.
        matter: Name in the library.
        edge: Of the cube [m].
        drop: Way that it falls [m].
        seconds: That it is followed for.
    """

    preset: ClassVar[str]
    matter: ClassVar[str]
    edge, drop, seconds = 0.24, 0.1, 0.5
    slow = True

    def graph(self, resolution: float) -> Graph:
        """Return the shot."""
        graph = Graph(cell_size=self.edge / CELLS, fps=FRAMES / self.seconds, start=1, end=1 + FRAMES, resolution=resolution)
        middle = (0.0, self.drop + 0.5 * self.edge, 0.0)
        cube = graph.add("emit_box", "cube", material=self.stuff(graph), size=(self.edge,) * 3, centre=middle)
        ground = graph.add("collide_plane", "ground", friction=0.5)
        cube, ground = self.prepared(graph, cube, ground)
        graph.add("solve", "fall", sources=[cube], colliders=[ground], substeps=self.preset)
        return graph

    def stuff(self, graph: Graph) -> Any:
        """Return the node of the cube's material."""
        return graph.add("material_library", "matter", name=self.matter)

    def prepared(self, graph: Graph, cube: Any, ground: Any) -> tuple[Any, Any]:
        """Return the nodes of the cube and of the ground with what more they have."""
        return cube, ground

    def looks(self, resolution: float) -> dict[str, float]:
        """Return when it lands [s], and how its matter lies in the end: height of its centre, extents and spread, over the edge."""
        graph = self.graph(resolution)
        shot, frames = Evaluator(graph), range(graph.settings.start, graph.settings.end + 1)
        lost = 0.0
        landed = float("inf")
        for frame in frames:
            particles = shot.value("fall.particles", frame)
            time = (frame - 1) / graph.settings.fps
            mass = np.asarray(particles["mass"], np.float64)
            if landed > self.seconds and time > 0.0:
                before, lost = lost, 1.0 + np.average(particles["velocity"][:, 1], weights=mass) / (GRAVITY * time)
                if lost > 0.05:  # of the momentum that gravity gave it
                    landed = time - (lost - 0.05) / (lost - before) / graph.settings.fps
        place = np.asarray(particles["position"], np.float64)
        low, high = np.percentile(place, (2.0, 98.0), axis=0)
        middle = np.average(place, axis=0, weights=mass)
        spread = np.sqrt(np.average(((place - middle) ** 2)[:, ::2].sum(axis=1), weights=mass))
        lies = {"centre": middle[1], "height": high[1] - low[1], "width": high[0] - low[0], "spread": spread}
        found = {"landing": landed, **{what: length / self.edge for what, length in lies.items()}}
        return {what: float(value) for what, value in (found | self.more(particles)).items()}

    def more(self, particles: Particles) -> dict[str, float]:
        """Return what else is compared of the matter in the end, as a share of its scale."""
        return {}

    def findings(self) -> Iterator[Finding]:
        """Cook it at three resolutions."""
        middle = self.looks(1.0)
        for resolution in RESOLUTIONS:
            for what, found in self.looks(resolution).items():
                scale = middle[what] if what == "landing" else 1.0
                close = 0.05 if what in ("height", "width") else 0.03
                yield Finding(middle[what] / scale, found / scale, close, f"{what} at resolution {resolution:g}")


class SnowAtResolutions(SameShot):
    """A block of snow that lands looks the same at resolutions 0.75, 1 and 1.5.

    Scene: `SameShot` of library snow by `explicit_apic`.
    Exact: what it is at resolution 1: time to land, over that time; height of the centre, extents of 96 % of the particles, and
        spread, over 0.24 m.
    Tolerance: 3 % of the time, the centre and the spread, 5 % of the extents; chosen here, before the first run.
    """

    name = "snow_at_resolutions"
    source = "chosen here (convergence)"
    preset, matter = "explicit_apic", "snow"


class JellyAtResolutions(SameShot):
    """A cube of jelly that lands and bounces looks the same at resolutions 0.75, 1 and 1.5.

    Scene: `SameShot` of library jelly by `implicit_apic`.
    Exact: as `snow_at_resolutions`.
    Tolerance: as there.
    """

    name = "jelly_at_resolutions"
    source = "chosen here (convergence)"
    preset, matter = "implicit_apic", "jelly"
