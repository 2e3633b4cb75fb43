"""What is around matter: air, heat that is made in places, and places that change the surface tension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from mpm_nodes.data.errors import MpmNodesError

__all__ = ["Ambient", "SpaceField", "air_of", "at_frame"]


Given = TypeVar("Given")


def at_frame(given: Given, frame: float) -> Given:
    """Return a field, or whatever else changes, as it is at a (fractional) frame; itself where it does not change."""
    change = getattr(given, "at_frame", None)
    return given if change is None else change(frame)


class SpaceField(Protocol):
    """Values through space."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places [m], shape (n, 3) to (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class Ambient:
    """Air, heat made in places, or a factor on the tension in places, over the frame interval that ends at the cooked frame.

    Its numbers may carry keys, and its fields may change over the interval (`at_frame`).

    Attributes:
        air: Temperatures of the air [K]; None: it says nothing of the air.
        convection: Heat that a square metre of free surface exchanges with that air, a kelvin of difference [W/(m^2 K)].
        exposure: Factor on the convection; None: 1 everywhere.
        source: Heat made in the matter that is in a place [W/m^3]; None: none.
        tension: Factor on the surface tension in a place; None: 1 everywhere.
        most_tension: Largest of these factors, which limits the substep.
    """

    air: SpaceField | None = None
    convection: float = 0.0
    exposure: SpaceField | None = None
    source: SpaceField | None = None
    tension: SpaceField | None = None
    most_tension: float = 1.0


def air_of(ambient: tuple[Ambient, ...]) -> Ambient | None:
    """Return the one that says how warm the air is, or None.

    Raises:
        MpmNodesError: Several do.
    """
    found = [each for each in ambient if each.air is not None]
    if len(found) > 1:
        raise MpmNodesError(f"solve.ambient: {len(found)} nodes say how warm the air is; wire one of them, or join their grids")
    return found[0] if found else None
