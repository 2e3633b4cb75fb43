"""Units and allowed intervals of knobs and fields, and the types of knobs that are more than numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Annotated as A


@dataclass(frozen=True)
class Unit:
    """Unit of a knob or attribute; `symbol` is what artists see."""

    symbol: str


Unitless = Unit("")
Metres = Unit("m")
Seconds = Unit("s")
Pascals = Unit("Pa")
PascalSeconds = Unit("Pa s")
PascalSecondsToThePower = Unit("Pa s^n")
MetresPerSecond = Unit("m/s")
MetresPerSecondSquared = Unit("m/s^2")
KilogramsPerCubicMetre = Unit("kg/m^3")
Degrees = Unit("deg")
RadiansPerSecond = Unit("rad/s")
Frames = Unit("frames")
Kelvins = Unit("K")
JoulesPerKilogram = Unit("J/kg")
JoulesPerKilogramKelvin = Unit("J/(kg K)")
WattsPerMetreKelvin = Unit("W/(m K)")
WattsPerSquareMetre = Unit("W/m^2")
WattsPerSquareMetreKelvin = Unit("W/(m^2 K)")
WattsPerCubicMetre = Unit("W/m^3")
NewtonsPerMetre = Unit("N/m")
Newtons = Unit("N")
NewtonMetres = Unit("N m")
SquareMetresPerSecond = Unit("m^2/s")


@dataclass(frozen=True)
class Range:
    """Allowed values of a numeric knob: hard `min`/`max`, `soft_*` limits of its slider, `log` for a logarithmic slider."""

    min: float | None = None
    max: float | None = None
    soft_min: float | None = None
    soft_max: float | None = None
    log: bool = False
    exclusive_min: bool = False

    def problem(self, value: float) -> str | None:
        """Return the allowed interval as text when `value` lies outside it, else None."""
        below = self.min is not None and (value < self.min or (self.exclusive_min and value == self.min))
        above = self.max is not None and value > self.max
        return self.words() if below or above else None

    def words(self) -> str:
        """Return the allowed interval as text: ">= 0 and <= 1"; "" without limits."""
        low = "" if self.min is None else (f"> {self.min:g}" if self.exclusive_min else f">= {self.min:g}")
        high = "" if self.max is None else f"<= {self.max:g}"
        return " and ".join(part for part in (low, high) if part)


Vec3 = tuple[float, float, float]


@dataclass(frozen=True)
class Quaternion:
    """Marks four numbers (w, x, y, z), of any length but 0, as a rotation: between keys it turns along the shorter arc (slerp)."""


Orientation = A[tuple[float, float, float, float], Quaternion()]
"""Type of a knob that is a rotation given as a quaternion (w, x, y, z)."""


@dataclass(frozen=True)
class Corner:
    """Marks a place as a corner of a box along the axes; `opposite` names the knob of the other one.

    Where a host's axis points the other way, low and high change places along it: that number is the other corner's.
    """

    opposite: str


@dataclass(frozen=True)
class PerResolution:
    """Marks a number that follows the resolution of the graph: it is multiplied by `settings.resolution` to this power.

    A voxel's edge has -1, and what each particle gives -3, since there are so many more of them.
    """

    power: int


@dataclass(frozen=True)
class WrittenPath:
    """Marks a `Path` knob that names something the node writes: relative to the output root, never above it."""


OutputPath = A[Path, WrittenPath()]
"""Type of a knob that names a file or folder to write; plain `Path` names something to read."""


if TYPE_CHECKING:
    SubstepGraph: TypeAlias = Any
else:

    class SubstepGraph:
        """Knob type: a preset's name, `{"preset": name, "set": {...}, "edits": [...]}`, or a whole substeps document.

        A cook hands the node the resolved graph (`graph.document.substep_document.Substeps`); what `plan_substeps` takes
        does as well.
        """
