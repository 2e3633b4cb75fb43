"""The particles of a rank with those of its neighbours around them, for what looks at particles nearby."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.solver.state import ParticleStore

__all__ = ["ParticlesAround", "particles_around"]


@dataclass(frozen=True)
class ParticlesAround:
    """Particles by block as `ParticleStore` keeps them, in three rows of offsets; those of other ranks are not weak.

    Attributes:
        count: Number of particles.
        block_coord: Shape (blocks, 3), int32.
        block_start: Shape (blocks + 1,), int64.
        offset: Fixed-point offsets, three rows, flat.
        rows: "mass" and "weak", flat.
        drift: Largest |offset| in cells.
        unit: Fixed-point units per cell.
    """

    count: int
    block_coord: np.ndarray
    block_start: np.ndarray
    offset: np.ndarray
    rows: dict[str, np.ndarray]
    drift: float
    unit: float

    @property
    def stride(self) -> int:
        """Distance of rows."""
        return self.count

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.block_coord)

    def array(self, name: str) -> np.ndarray:
        """Return the flat rows of an attribute."""
        return self.rows[name]


def particles_around(particles: ParticleStore) -> tuple[ParticlesAround, slice]:
    """Return the particles of this rank between those of the lower and of the upper neighbour, and which are this rank's.

    All ranks ask for it together; neighbours send nothing where no particle here is weak.
    """
    weak = particles.rows("weak")
    lower, upper, drift = particles.share.near(bool(weak.any()), ("position", "mass"))
    counts = np.concatenate([lower.counts, np.diff(particles.block_start), upper.counts])
    nothing = [np.zeros((1, parcel.count), weak.dtype) for parcel in (lower, upper)]
    own = particles.rows("position"), particles.rows("mass")
    position, mass = (
        np.concatenate([lower.rows[name], mine, upper.rows[name]], axis=1)
        for name, mine in zip(("position", "mass"), own, strict=True)
    )
    around = ParticlesAround(
        int(counts.sum()),
        np.concatenate([lower.coord, particles.block_coord, upper.coord]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.ascontiguousarray(position).ravel(),
        {"mass": np.ascontiguousarray(mass).ravel(), "weak": np.concatenate([nothing[0], weak, nothing[1]], axis=1).ravel()},
        drift,
        particles.unit,
    )
    return around, slice(lower.count, lower.count + particles.count)
