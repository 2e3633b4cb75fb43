"""Streams that leave a surface along its normals: what of a template lies at it, how deep, and which way it goes.

The distance from the surface takes the place of the way along a stream's velocity: a particle comes when it has passed the
outermost ones, along the slope of the distance where it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError, Particles, SpatialField
from mpm_nodes.solver.field_programs import field_values

__all__ = ["LAYERS", "Shell", "shell_of"]

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
    heights, slopes = (field_values(field, position, frame) for field in surface)
    sizes = np.linalg.norm(slopes, axis=1)
    held = sizes > FLAT
    if not held.any():
        raise MpmNodesError(
            "emit_stream.surface: the distance does not change where the template is, so nothing has a direction; wire a distance "
            "(field_collider or field_shape with output distance), and put the template at its surface"
        )
    if not whole:
        held &= heights > heights[held].max() - (LAYERS - ROUNDING) * template.spacing
    columns = {name: column[held] for name, column in template.attributes.items()}
    taken = Particles(columns, template.materials, template.spacing, template.time)
    return Shell(taken, heights[held], slopes[held] / sizes[held, None])
