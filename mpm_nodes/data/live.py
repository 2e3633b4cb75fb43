"""What a stage is handed while a solve runs: protocols of the live domains, for user stages and type checkers.

The stores of the solver have more, for the stages of this package; what stands here stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["Colliders", "Energy", "Grid", "LiveParticles", "StaggeredGrid", "SurfaceSamples"]


@runtime_checkable
class LiveParticles(Protocol):
    """Substep domain: the particles of a running solve. A stage may write `particles: A[LiveParticles, ...]`, or `Particles`."""

    @property
    def count(self) -> int:
        """Particles that there are."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Attributes that are allocated."""
        ...

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of an attribute, shape (count, *shape), in memory order; `position` is float64 [m]."""
        ...

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write an attribute from shape (count, *shape)."""
        ...

    def new_ids(self, count: int) -> np.ndarray:
        """Return identities for `count` new particles, shape (count,), int64."""
        ...

    def append(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add particles given by columns; allocated attributes that are missing take their rest value."""
        ...

    def delete(self, dead: np.ndarray) -> None:
        """Remove the particles where the mask `dead`, shape (count,), holds."""
        ...


@runtime_checkable
class Grid(Protocol):
    """Substep domain: the sparse background grid (collocated nodes)."""

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of "position" [m], "mass", "momentum", "force" or "velocity", shape (64 count, 3 or 1)."""
        ...

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write "mass", "momentum", "force" or "velocity" from the shape that `unpack` gives."""
        ...


@runtime_checkable
class StaggeredGrid(Protocol):
    """Substep domain: faces and cells between the nodes of the sparse background grid."""

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of a field, shape (64 count, components) or (64 count,)."""
        ...

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write a field from the shape that `unpack` gives."""
        ...


@runtime_checkable
class SurfaceSamples(Protocol):
    """Substep domain: points of the matter's surface, and their balance points, which have no area."""

    @property
    def count(self) -> int:
        """Points that there are."""
        ...

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of a field, shape (count, *shape); `position` is float64 [m]."""
        ...

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write a field from the shape that `unpack` gives."""
        ...


@runtime_checkable
class Colliders(Protocol):
    """Substep domain: every collider of the solve, posed at the end of the substep."""

    def collide_grid(self, grid: Any, tells: bool = False) -> Any:
        """Change the velocities of grid nodes inside and near bodies."""
        ...

    def collide_particles(self, particles: Any, tells: bool = False) -> Any:
        """Change the velocities of particles inside and near bodies."""
        ...

    def report(self, particles: Any) -> list[tuple[str, int, float]]:
        """Return for each body its name, the particles inside it, and how deep the deepest is [m]."""
        ...


@runtime_checkable
class Energy(Protocol):
    """Substep domain: the energy terms whose sum an implicit update minimises."""

    @property
    def terms(self) -> Mapping[str, Any]:
        """The terms of this substep by the name of their stage."""
        ...

    def evaluate(self, dt: float, velocity: np.ndarray) -> tuple[float, int]:
        """Write the forces of all terms at trial velocities to the grid; return energy [J] and infeasible points."""
        ...
