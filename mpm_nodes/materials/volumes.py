"""Volumes of particles as their laws know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from mpm_nodes.data import Particles
from mpm_nodes.kernels.compile.jit import overloaded
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.materials.contract import law
from mpm_nodes.materials.material_point import call_law

__all__ = ["volume_ratio_of", "volume_ratios"]


def volume_ratio_of(law: Any, state: Any) -> Any:
    """Return current over undeformed volume as the module of a law finds it from a state; 1 where it knows no volume."""
    return _ratio(law, isinstance(state[0], tuple))(law, state)


@overloaded(volume_ratio_of)
def _compiled_ratio(law: Any, state: Any) -> Any:
    return _ratio(law.pymod, isinstance(state[0], types.BaseTuple))


def _ratio(law: Any, begins_with_matrix: bool) -> Callable[..., Any]:
    """Return what finds the ratio; numba wants the hints of `volume_ratio_of` on it."""

    def of_law(law: Any, state: Any) -> Any:
        return law.volume_ratio(state)

    def of_strain(law: Any, state: Any) -> Any:
        return law.left_strain(state)[0]

    def one_like_matrix(law: Any, state: Any) -> Any:
        return const(state[0][0], 1.0)

    def one_like_value(law: Any, state: Any) -> Any:
        return const(state[0], 1.0)

    if hasattr(law, "volume_ratio"):
        return of_law
    if hasattr(law, "left_strain"):
        return of_strain
    return one_like_matrix if begins_with_matrix else one_like_value


def volume_ratios(particles: Particles) -> np.ndarray:
    """Return current over undeformed volume of each particle, asked of its law, float64, shape (n,).

    State that the particles do not carry is at rest. Particles without a material, and those of a law that knows no volume, have 1.

    Args:
        particles: Particles with the state of their laws, as a solve or a cache gives them.

    Raises:
        LawError: A material's law is unknown.
    """
    ratios = np.ones(len(particles))
    index = particles["material"] if "material" in particles else np.zeros(len(particles), np.int32)
    for number, material in enumerate(particles.materials):
        found, chosen = law(material.law), np.flatnonzero(index == number)
        named = next((name for name in ("volume_ratio", "left_strain") if found.function(name)), None)
        if not len(chosen) or named is None:
            continue
        mine = slice(None) if len(chosen) == len(particles) else chosen
        state = {name: np.asarray(particles[name][mine], np.float64) for name in found.state if name in particles}
        if state:
            value = call_law(found.id, named, state)
            ratios[chosen] = value[0] if isinstance(value, tuple) else value
    return ratios
