"""Small scenes for the solver's tests: particles as arrays, and shots as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import Material, Particles
from mpm_nodes.graph.document.document import Graph

SNOW = Material("snow", {"youngs_modulus": 4e4}, 400.0, "snow")
JELLY = Material("neo_hookean", {"youngs_modulus": 5e3}, 1000.0, "jelly")
LIQUID = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 0.5}, 1000.0, "syrup")


def cube(material: Material, low: Any = (0.0, 0.0, 0.0), cells: int = 3, cell_size: float = 0.1, **columns: Any) -> Particles:
    """Return a cube of `cells`^3 cells with eight particles a cell; extra columns are broadcast over the particles."""
    axis = (np.arange(2 * cells) + 0.5) * 0.5 * cell_size
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3) + np.asarray(low, float)
    wide = {name: np.broadcast_to(value, (len(position), *np.shape(value))) for name, value in columns.items()}
    zero = np.zeros(len(position), np.int32)
    return Particles({"position": position, "material": zero, **wide}, (material,), 0.5 * cell_size)


def shot(
    end: int = 4,
    *,
    cell_size: float = 0.1,
    size: float = 0.3,
    centre: Any = (0.0, 1.0, 0.0),
    velocity: Any = (0.0, 0.0, 0.0),
    material: str = "material_snow",
    start: int = 1,
    fps: float = 24.0,
    colliders: Any = (),
    knobs: Any = (),
    **solve: Any,
) -> Graph:
    """Return the graph of one cube of matter in a solve; `knobs` are those of its material."""
    graph = Graph(cell_size=cell_size, fps=fps, start=start, end=end)
    matter = graph.add(material, "matter", **dict(knobs))
    block = graph.add("emit_box", "block", material=matter, size=(size,) * 3, centre=centre, velocity=velocity)
    bodies = [graph.add(kind, name, **values) for name, kind, values in colliders]
    graph.add("solve", "sim", sources=[block], colliders=bodies, **solve)
    return graph


def values(particles: Particles) -> dict[str, bytes]:
    """Return the bytes of every attribute by name."""
    return {name: column.tobytes() for name, column in sorted(particles.attributes.items())}
