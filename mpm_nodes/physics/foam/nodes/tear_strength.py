"""Strength that varies inside matter, so that tears are ragged over a length of their own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mpm_nodes.data import A, Metres, MpmNodesError, Particles, Range, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.bodies import passed_on

_START = NotKeyable("matter keeps what it begins with")
WAVES = 256
"""Waves that a field is summed of; of so many, its values are close to normally distributed."""
AT_ONCE = 1 << 14
"""Points whose waves are summed together."""


NOTHING_TEARS = (
    "vary_tear_strength.particles: no material of theirs can tear; put material_tearing behind it, or take this node out"
)


def _told(told: PreflightContext) -> dict[str, Any]:
    facts = passed_on(told, "tear_scale")
    if not facts["untold"] and all(body.material.tear_threshold is None for body in facts["bodies"]):
        raise MpmNodesError(NOTHING_TEARS)
    return facts


@node(category="Emit", label="Vary Tear Strength", preflight=_told)
def vary_tear_strength(
    particles: Particles,
    *,
    variation: A[float, Unitless, Range(min=0.0, max=2.0, soft_max=1.0), _START] = 0.3,
    size: A[float, Metres, Range(min=1e-6, soft_max=1.0, log=True), _START] = 0.01,
    seed: A[int, Range(min=0), _START] = 0,
) -> Particles:
    """Let matter be weaker in some places than in others, so that tears are ragged, and begin where it is weak.

    Places are weak and strong by where matter begins, whatever the cell size, and matter takes that along. Sources with the same
    seed share one field. A piece that is as wide as it is long, and pulled evenly, tears all over: give it a waist.

    Args:
        particles: Particles of emitters, merged or not; a material of theirs can tear (material_tearing).
        variation: Standard deviation of the logarithm of the strength: 0.3 makes two thirds of the matter between 0.74 and 1.35
            times as strong as its threshold says. 0 changes nothing.
        size: Distance over which the strength varies: correlations fall off as exp(-r^2 / (2 size^2)). More than two cells.
        seed: Seed of the field.

    Raises:
        MpmNodesError: No material of the particles can tear.

    Source: the threshold is that of Y15 section 7.1; its scatter is not in the source.
    """
    if all(material.tear_threshold is None for material in particles.materials):
        raise MpmNodesError(NOTHING_TEARS)
    strength = np.exp(variation * random_field(np.asarray(particles["position"], float), size, seed))
    if "tear_scale" in particles:
        strength = strength * particles["tear_scale"]
    return dataclasses.replace(particles, attributes={**particles.attributes, "tear_scale": strength})


def random_field(points: np.ndarray, size: float, seed: int) -> np.ndarray:
    """Return a smooth random field of mean 0 and variance 1 at some points, shape (n,).

    A sum of cosines with random phases and normally distributed wave vectors: correlations are exp(-r^2 / (2 size^2)) in every
    direction, and no lattice shows.

    Args:
        points: [m], shape (n, 3).
        size: Length of correlation [m].
        seed: Seed of the waves.
    """
    random = np.random.default_rng(seed)
    waves = random.standard_normal((3, WAVES)) / size
    phases = random.uniform(0.0, 2.0 * np.pi, WAVES)
    found = np.empty(len(points))
    for first in range(0, len(points), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        found[part] = np.cos(points[part] @ waves + phases).sum(axis=1)
    return found * np.sqrt(2.0 / WAVES)
