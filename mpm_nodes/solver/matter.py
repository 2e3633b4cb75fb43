"""What a solve is made of: its sources, with one numbering of their materials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import Emitter, Material, MpmNodesError, Particles, merge_materials
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.physics import with_further
from mpm_nodes.solver.coefficients import KeyedMaterials
from mpm_nodes.solver.emission import Drops, Stream
from mpm_nodes.solver.metering import emission_of

__all__ = ["SourceMatter", "matter_of"]


@dataclass(frozen=True)
class SourceMatter:
    """The sources of a solve.

    Attributes:
        materials: Materials of all sources, and behind them those that they may become.
        coefficients: Their laws over time.
        streams: What brings particles later, one for each emitter.
        spacing: Particle spacing [m].
        columns: Names of the columns that some source brings.
        dtype: Float type of the solve.
        clock: The shot's, which streams and keys ask.
    """

    materials: tuple[Material, ...]
    coefficients: KeyedMaterials
    streams: tuple[Stream | Drops, ...]
    spacing: float
    columns: frozenset[str]
    dtype: np.dtype
    clock: Clock


def matter_of(particles: Particles, emitters: Sequence[Emitter], clock: Clock, dtype: np.dtype) -> tuple[SourceMatter, np.ndarray]:
    """Return the sources of a solve, and the place of each material of the particles among those of the solve.

    Raises:
        MpmNodesError: There is neither particle nor emitter, or no material; or materials cannot be used.
    """
    merged, remaps = merge_materials([particles, *(emitter.template for emitter in emitters)])
    materials = with_further(merged)
    if not len(particles) and not emitters:
        raise MpmNodesError("solve: there are neither particles nor emitters; wire a source into it")
    if not materials:
        raise MpmNodesError("solve: the particles have no material; wire a material node into their emitter")
    streams = tuple(emission_of(e, remap, clock) for e, remap in zip(emitters, remaps[1:], strict=True))
    # no particles have no spacing: what streams in says it
    spacing = particles.spacing if len(particles) else min(emitter.template.spacing for emitter in emitters)
    columns = frozenset(name for part in [particles, *(e.template for e in emitters)] for name in part.attributes)
    return SourceMatter(materials, KeyedMaterials(materials, dtype), streams, spacing, columns, dtype, clock), remaps[0]
