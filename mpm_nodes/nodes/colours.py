"""Colours of particles and of their surface, for whoever looks at a cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mpm_nodes.data import A, Material, MpmNodesError, Particles, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.materials.looks import find_look, looks_of
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.derived import column, refuse_unknown

COLOUR = "displayColor"
"""Name of the colour in USD, and of the column: linear red, green and blue."""
GLOW = "glow"
"""Name of the light of one's own in USD, and of the column: linear red, green and blue, 1 being white."""
MATERIAL_COLOURS = np.array(
    [(0.92, 0.68, 0.22), (0.35, 0.6, 0.85), (0.75, 0.25, 0.22), (0.4, 0.7, 0.35), (0.6, 0.4, 0.75), (0.85, 0.85, 0.82)],
    np.float32,
)
"""Linear colours that tell the materials of one shot apart, by material index, over and over."""


def _coloured(told: PreflightContext) -> dict[str, Any]:
    if told.knobs["attribute"]:
        refuse_unknown("colour_particles.attribute", told, told.knobs["attribute"])
    return passed_on(told, COLOUR)


@node(category="Surface", label="Colour Particles", version=1, preflight=_coloured)
def colour_particles(
    particles: Particles,
    *,
    colours: tuple[str, ...] = ("#f2efe8",),
    attribute: str = "",
    low: A[float, Unitless] = 0.0,
    high: A[float, Unitless] = 1.0,
) -> Particles:
    """Colour particles by material or by an attribute, as USD's displayColor; wire it after the solve and before cache and surface.

    Args:
        particles: What to colour.
        colours: Colours written "#rrggbb" as web pages do: one a material, in the order of the sources, repeated from the first
            when there are more materials; with an attribute, those from its low to its high value, a single one
            from black.
        attribute: A number or vector of the particles, for instance temperature, phase, speed, age, J or Jp; empty: by material.
        low: Value that has the first colour.
        high: Value that has the last colour.
    """
    if not colours:
        raise MpmNodesError('colour_particles.colours: is empty; give at least one colour, for instance "#f2efe8"')
    table = np.array([_linear(text) for text in colours], np.float32)
    if attribute:
        shown = _ramped(particles, table, attribute, low, high)
    else:
        shown = table[(particles["material"] if "material" in particles else np.zeros(len(particles), np.int32)) % len(table)]
    return replace(particles, attributes={**particles.attributes, COLOUR: shown})


def _ramped(particles: Particles, table: np.ndarray, attribute: str, low: float, high: float) -> np.ndarray:
    """Return the colours of an attribute's values, shape (n, 3): straight between those of the table, level beyond its ends."""
    if low == high:
        raise MpmNodesError(f"colour_particles.high: is {high:g}, as low is; give two values between which colours change")
    values = np.asarray(column("colour_particles.attribute", particles, attribute), np.float64)
    values = np.linalg.norm(values.reshape(len(values), -1), axis=1) if values.ndim > 1 else values
    table = np.concatenate([np.zeros((1, 3), np.float32), table]) if len(table) == 1 else table
    place = (values - low) / (high - low) * (len(table) - 1)
    return np.stack([np.interp(place, np.arange(len(table)), band) for band in table.T], axis=1).astype(np.float32)


def shown_colours(particles: Particles) -> np.ndarray | None:
    """Return a linear colour a particle, shape (n, 3): its own, or that of its material where there are several; else None.

    Materials have the colours of their looks, where these tell the matters apart; a matter and its melt are one. Else each matter
    has a colour of `MATERIAL_COLOURS`.
    """
    if COLOUR in particles:
        return np.asarray(particles[COLOUR], np.float32)
    if len(particles.materials) < 2:
        return None
    looks, matters = looks_of(particles.materials), _matters(particles.materials)
    apart = {looks[first] for first in matters}
    if len(apart) == len(set(matters)):
        table = np.array([find_look(look).colour for look in looks], np.float32)
    else:
        ranks = {first: rank for rank, first in enumerate(sorted(set(matters)))}
        table = MATERIAL_COLOURS[[ranks[first] % len(MATERIAL_COLOURS) for first in matters]]
    return table[particles["material"] % len(table)]


def _matters(materials: Sequence[Material]) -> list[int]:
    """Return for each material the place of the one that it is the melt of, or its own."""
    found = list(range(len(materials)))
    for place, material in enumerate(materials):
        melt = material.thermal.melt if material.thermal is not None else None
        for other, candidate in enumerate(materials):
            if melt is None or other == place or found[other] != other:
                continue
            # in a solve a melt carries the heat of its solid; `set_looks` shades both, and not the melt that the solid names
            if replace(candidate, thermal=melt.thermal, look=melt.look) == melt:
                found[other] = found[place]
                break
    return found


def _linear(text: str) -> tuple[float, ...]:
    """Return linear red, green and blue of an sRGB colour "#rrggbb"."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        raise MpmNodesError(f'colour_particles.colours: "{text}" is not a colour; write "#rrggbb" with hexadecimal digits')
    shares = [int(text[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    return tuple(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
