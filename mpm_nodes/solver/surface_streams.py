"""Streams that leave a surface along its normals: what of a template lies at it, how deep, and which way it goes.

The distance from the surface takes the place of the way along a stream's velocity: a particle comes when it has passed the
outermost ones, along the slope of the distance where it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError, Particles, SpatialField
from mpm_nodes.solver.field_programs import field_values

__all__ = ["LAYERS", "Shell", "refuse_flat", "shell_of", "slopes_of"]

LAYERS = 2.0
"""How thick the shell of a template is that streams, in spacings: a cell."""
FLAT = 0.1
"""Slope of a distance below which it has no direction [1]: of a true distance it is 1."""
ROUNDING = 1e-6
"""Share of a spacing by which a layer may be off."""


class Shell(NamedTuple):
    """What of a template streams.

    Attributes:
        template: The particles at the surface.
        heights: Their distances from it [m], above 0 outside, shape (n,).
        directions: Unit vectors along which they go, shape (n, 3).
    """

    template: Particles
    heights: np.ndarray
    directions: np.ndarray


def slopes_of(places: np.ndarray, gradient: SpatialField, frame: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of a distance at places [m], shape (n, 3), and its length, shape (n,)."""
    slopes = field_values(gradient, places, frame)
    return slopes, np.linalg.norm(slopes, axis=1)


def refuse_flat(sizes: np.ndarray) -> np.ndarray:
    """Return where a distance has a direction, shape (n,), bool.

    Args:
        sizes: Lengths of its gradient at the particles of a template, shape (n,).

    Raises:
        MpmNodesError: It is the same all around the template.
    """
    held = np.asarray(sizes > FLAT)
    if not held.any():
        raise MpmNodesError(
            "emit_stream.surface: the distance does not change where the template is, so nothing has a direction; wire a distance "
            "(field_collider or field_shape with output distance), and put the template at its surface"
        )
    return held


def shell_of(template: Particles, surface: tuple[SpatialField, SpatialField], frame: float, whole: bool) -> Shell:
    """Return the outermost particles of a template, `LAYERS` deep.

    Args:
        template: Particles.
        surface: Distance from the surface [m], and its gradient.
        frame: (Fractional) frame at which they are taken.
        whole: Take all particles that have a direction.

    Raises:
        MpmNodesError: The distance is the same all around the template.
    """
    position = np.asarray(template["position"], np.float64)
    heights = field_values(surface[0], position, frame)
    slopes, sizes = slopes_of(position, surface[1], frame)
    held = refuse_flat(sizes)
    if not whole:
        held &= heights > heights[held].max() - (LAYERS - ROUNDING) * template.spacing
    columns = {name: column[held] for name, column in template.attributes.items()}
    taken = Particles(columns, template.materials, template.spacing, template.time)
    return Shell(taken, heights[held], slopes[held] / sizes[held, None])
