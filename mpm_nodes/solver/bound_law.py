"""A material of a solve: its law with compiled loops and coefficients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.materials.law_loops import LawLoops
from mpm_nodes.materials.moduli import Moduli, moduli_of
from mpm_nodes.materials.over_temperature import TabledNumbers


class StateRows(Protocol):
    """What a law asks of the particles: their cell size [m], and rows of state by name."""

    @property
    def h(self) -> float: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def array(self, name: str) -> np.ndarray: ...

    def rows(self, name: str) -> np.ndarray: ...


@dataclass(frozen=True)
class BoundLaw:
    """A material of this solve, ready for kernels.

    Attributes:
        index: Its place among the materials.
        label: What messages call the material.
        loops: Compiled loops of its law.
        numbers: Coefficients of the law and the material's own viscosity [Pa s], with what follows attributes.
        density: [kg/m^3].
        viscosity: The law's and the material's own together, the largest anywhere in their tables [Pa s].
        names: State attributes, in the law's order.
        material: The material, its numbers those of the frame.
    """

    index: int
    label: str
    loops: LawLoops
    numbers: TabledNumbers
    density: float
    viscosity: float
    names: tuple[str, ...]
    material: Material

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients and viscosity as kernels take them, float64."""
        return self.numbers.values

    def state(self, particles: StateRows) -> list[np.ndarray]:
        """Return the law's state arrays, and what its coefficients follow."""
        return [particles.array(name) for name in (*self.names, *self.loops.law.inputs)]

    @functools.cached_property
    def moduli(self) -> Moduli:
        """Elastic moduli at rest, of the parameters of now; of the largest where they follow attributes."""
        law = self.loops.law
        return moduli_of(law, self.coefficients[: len(law.names)])

    def viscosity_of(self, particles: StateRows, segments: np.ndarray) -> float:
        """Return the largest viscosity of particles, at what they have of what it follows [Pa s]."""
        law, total = self.loops.law, 0.0
        ends = segments[segments[:, 1] > segments[:, 0], :2].ravel()
        for index in (law.viscosity, len(law.names)):
            if index is None:
                continue
            followed = law.followed(index)
            if followed is None or not len(ends):
                total += self.coefficients[index]
                continue
            values = particles.array(followed.over)  # has room behind its last particle
            low, high = np.minimum.reduceat(values, ends)[::2].min(), np.maximum.reduceat(values, ends)[::2].max()
            total += self.numbers.largest(index, float(low), float(high))
        return total

    def viscous_step(self, viscosity: float, h: float) -> float:
        """Return the longest explicit substep [s] that a viscosity > 0 [Pa s] allows on cells of `h` [m]."""
        return 0.5 * self.density * h * h / (6.0 * viscosity)

    @functools.cached_property
    def _longest_step(self) -> Callable[..., Any] | None:
        return self.loops.law.function("longest_step")

    def longest_step(self, particles: StateRows, segments: np.ndarray) -> float:
        """Return the longest substep [s] that the law itself allows its particles, infinity where it says nothing."""
        function = self._longest_step
        if function is None:
            return math.inf
        rows, law = np.concatenate([np.arange(begin, end) for begin, end, _ in segments]), self.loops.law
        values = [particles.rows(name)[:, rows].astype(float) for name in self.names]
        state = tuple(tuple(value) if len(value) > 1 else value[0] for value in values)
        scale = particles.rows("stiffness_scale")[0, rows].astype(float) if "stiffness_scale" in particles.names else 1.0
        numbers: Any = self.coefficients
        if law.follows:
            numbers = self.numbers.at({name: particles.rows(name)[0, rows].astype(float) for name in law.inputs})
        coefficients = tuple(numbers[n] * (scale if n in law.stiffness else 1.0) for n in range(len(law.names)))
        return float(np.min(function(state, coefficients, particles.h)))
