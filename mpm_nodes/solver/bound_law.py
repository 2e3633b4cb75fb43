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
        coefficients: Coefficients of the law and behind them the material's own viscosity [Pa s], float64.
        density: [kg/m^3].
        viscosity: The law's and the material's own together [Pa s].
        names: State attributes, in the law's order.
        material: The material, for what does not change over time.
        tear_threshold: Plastic distortion above which the material tears; infinity where it never does.
        recovery_time: Time in which plastic distortion is forgotten [s]; infinity where it never is.
    """

    index: int
    label: str
    loops: LawLoops
    coefficients: np.ndarray
    density: float
    viscosity: float
    names: tuple[str, ...]
    material: Material
    tear_threshold: float = math.inf
    recovery_time: float = math.inf

    def state(self, particles: StateRows) -> list[np.ndarray]:
        """Return the law's state arrays."""
        return [particles.array(name) for name in self.names]

    @functools.cached_property
    def moduli(self) -> Moduli:
        """Elastic moduli at rest, of the parameters of now."""
        law = self.loops.law
        return moduli_of(law, self.coefficients[: len(law.names)])

    @functools.cached_property
    def _longest_step(self) -> Callable[..., Any] | None:
        return self.loops.law.function("longest_step")

    def longest_step(self, particles: StateRows, segments: np.ndarray) -> float:
        """Return the longest substep [s] that the law itself allows its particles, infinity where it says nothing."""
        function = self._longest_step
        if function is None:
            return math.inf
        rows = np.concatenate([np.arange(begin, end) for begin, end, _ in segments])
        values = [particles.rows(name)[:, rows].astype(float) for name in self.names]
        state = tuple(tuple(value) if len(value) > 1 else value[0] for value in values)
        scale = particles.rows("stiffness_scale")[0, rows].astype(float) if "stiffness_scale" in particles.names else 1.0
        stiff = self.loops.law.stiffness
        coefficients = tuple(float(c) * (scale if n in stiff else 1.0) for n, c in enumerate(self.coefficients[:-1]))
        return float(np.min(function(state, coefficients, particles.h)))
