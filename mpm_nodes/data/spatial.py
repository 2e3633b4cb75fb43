"""Fields: numbers or vectors through space and time, as trees of operations that a kernel runs at each place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BodyForce", "Drain", "FieldGrid", "PerFrame", "SpatialField"]


@dataclass(frozen=True)
class PerFrame:
    """A number that grows with the frame: `rate` a frame."""

    rate: float


@dataclass(frozen=True, eq=False)
class FieldGrid:
    """Voxels of a sparse grid, or values on cubes of a lattice.

    Attributes:
        leaves: Keys of leaves of 8^3 voxels (`kernels.level_sets.vector_leaves.leaf_keys`), or of cubes, ascending, int64.
        voxels: Shape (512 leaves c,), float32: c numbers a voxel, one or three, NaN where it holds none; of cubes (leaves,).
        to_index: From metres to indices of voxels or cubes, shape (3, 4).
        parts: c.
    """

    leaves: np.ndarray
    voxels: np.ndarray
    to_index: np.ndarray
    parts: int


@dataclass(frozen=True, eq=False)
class SpatialField:
    """A number or a vector at every place and frame.

    Attributes:
        operation: What makes it of the inputs: the name of a `kernels.fields.programs.Code`, or COURSE: the inputs, one a frame of
            its numbers, straight in between.
        inputs: Fields, three at most; of a COURSE any number.
        numbers: Numbers of the operation; they may carry keys, and be `PerFrame`.
        grid: Of a GRID, whose numbers are the value outside and whether what the grid does not hold is left out; of CUBES.
        vector: Whether it is a vector; a number is the same along all three axes.
    """

    operation: str
    inputs: tuple[SpatialField, ...] = ()
    numbers: tuple[Any, ...] = ()
    vector: bool = False
    grid: FieldGrid | None = None


@dataclass(frozen=True, eq=False)
class Drain:
    """A place that takes matter away.

    Attributes:
        field: Where it is above 1/2, particles go.
    """

    field: SpatialField


@dataclass(frozen=True, eq=False)
class BodyForce:
    """What pushes matter, over the frame interval that ends at the cooked frame.

    Attributes:
        value: Acceleration [m/s^2]; of a drag the velocity that it draws to [m/s].
        rate: Of a drag, what a second takes of the difference [1/s], where `quadratic` a metre of way [1/m]. None: it accelerates.
        quadratic: Whether the drag grows with the square of the difference.
        surface: Whether it acts on the surface to windward: the rate is then density / 2 of the air times a coefficient [kg/m^3].
        most_speed: Speed beyond which it makes nothing faster [m/s], 0 for none; may carry keys.
        name: What messages call it: its node.
    """

    value: SpatialField
    rate: SpatialField | None = None
    quadratic: bool = False
    surface: bool = False
    most_speed: float = 0.0
    name: str = ""
