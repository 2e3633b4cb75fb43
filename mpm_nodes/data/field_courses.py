"""Values through space that change over a frame: fields at several frames, straight in between."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mpm_nodes.data.ambient import SpaceField
from mpm_nodes.data.surface_fields import SurfaceField

__all__ = ["FieldCourse", "at_frame"]

Given = TypeVar("Given")


def at_frame(given: Given, frame: float) -> Given:
    """Return a field, or whatever else changes, as it is at a (fractional) frame; itself where it does not change."""
    change = getattr(given, "at_frame", None)
    return given if change is None else change(frame)


@dataclass(frozen=True, eq=False)
class FieldCourse:
    """Fields at several frames, straight in between; the first one before them, and the last one behind them.

    Attributes:
        frames: Ascending, one at least.
        fields: One a frame.
    """

    frames: tuple[float, ...]
    fields: tuple[SpaceField, ...]

    def at_frame(self, frame: float) -> SpaceField:
        """Return the field at a (fractional) frame."""
        after = bisect_right(self.frames, frame)
        if after in (0, len(self.frames)) or self.frames[after - 1] == frame:
            return at_frame(self.fields[max(after - 1, 0)], frame)
        begin, end = self.frames[after - 1 : after + 1]
        first, second = (at_frame(field, frame) for field in self.fields[after - 1 : after + 1])
        return _Between(first, second, (frame - begin) / (end - begin))

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places at the last of the frames, shape (n, 3) [m] to (n,)."""
        return self.at_frame(self.frames[-1]).at(places)


@dataclass(frozen=True, eq=False)
class _Between:
    """A share of the way from one field to another."""

    first: SpaceField
    second: SpaceField
    share: float

    @property
    def edge(self) -> float:
        """Length over which the fields change [m]."""
        return max(float(getattr(field, "edge", 0.0)) for field in (self.first, self.second))

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places [m], shape (n, 3) to (n,)."""
        first, second = (_known(field, places) for field in (self.first, self.second))
        # a surface that has come here or gone is known at one end only
        found = np.where(np.isnan(first), second, np.where(np.isnan(second), first, first + self.share * (second - first)))
        rest = [float(getattr(field, "rest", 0.0)) for field in (self.first, self.second)]
        return np.where(np.isnan(found), rest[0] + self.share * (rest[1] - rest[0]), found)


def _known(field: SpaceField, places: np.ndarray) -> np.ndarray:
    """Return a field's values, NaN where a surface is not near."""
    return (dataclasses.replace(field, rest=np.nan) if isinstance(field, SurfaceField) else field).at(places)
