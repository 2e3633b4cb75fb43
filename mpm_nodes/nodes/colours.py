"""Colours of particles and of their surface, for whoever looks at a cache."""

from __future__ import annotations

import re

import numpy as np

from mpm_nodes.data import MpmNodesError, Particles
from mpm_nodes.graph.declare import node
from mpm_nodes.nodes.bodies import passed_on

COLOUR = "displayColor"
"""Name of the colour in USD, and of the column: linear red, green and blue."""
MATERIAL_COLOURS = np.array(
    [(0.92, 0.68, 0.22), (0.35, 0.6, 0.85), (0.75, 0.25, 0.22), (0.4, 0.7, 0.35), (0.6, 0.4, 0.75), (0.85, 0.85, 0.82)],
    np.float32,
)
"""Linear colours that tell the materials of one shot apart, by material index, over and over."""


@node(category="Surface", label="Colour Particles", version=1, preflight=passed_on)
def colour_particles(particles: Particles, *, colours: tuple[str, ...] = ("#f2efe8",)) -> Particles:
    """Give particles the colour of their material, as USD's displayColor; wire it after the solve and before cache and surface.

    Args:
        particles: What to colour.
        colours: One colour a material, in the order of the sources, written "#rrggbb" as web pages do; repeated from the first
            when there are more materials.
    """
    if not colours:
        raise MpmNodesError('colour_particles.colours: is empty; give at least one colour, for instance "#f2efe8"')
    table = np.array([_linear(text) for text in colours], np.float32)
    index = particles["material"] if "material" in particles else np.zeros(len(particles), np.int32)
    columns = {**particles.attributes, COLOUR: table[index % len(table)]}
    return Particles(columns, particles.materials, particles.spacing, particles.time)


def shown_colours(particles: Particles) -> np.ndarray | None:
    """Return a linear colour a particle, shape (n, 3): its own, or that of its material where there are several; else None."""
    if COLOUR in particles:
        return np.asarray(particles[COLOUR], np.float32)
    if len(particles.materials) < 2:
        return None
    return MATERIAL_COLOURS[particles["material"] % len(MATERIAL_COLOURS)]


def _linear(text: str) -> tuple[float, ...]:
    """Return linear red, green and blue of an sRGB colour "#rrggbb"."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        raise MpmNodesError(f'colour_particles.colours: "{text}" is not a colour; write "#rrggbb" with hexadecimal digits')
    shares = [int(text[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    return tuple(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
