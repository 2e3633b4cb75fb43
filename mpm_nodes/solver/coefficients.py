"""Coefficients of the materials of a solve: sampled at every substep where parameters are keyed, fixed where none is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.graph.time import keys
from mpm_nodes.materials.contract import Law, LawError, law_of
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.over_temperature import TabledNumbers, tabled_law
from mpm_nodes.materials.values import FloatType
from mpm_nodes.solver.bound_law import BoundLaw

__all__ = ["KeyedMaterials", "sampled"]


class KeyedMaterials:
    """The laws of a solve's materials, with the coefficients of a frame.

    Args:
        materials: The materials, whose numbers may carry keys.
        dtype: Float type of the solve.

    Raises:
        LawError: A material's parameters are not allowed, at one of its keys.
    """

    def __init__(self, materials: Sequence[Material], dtype: FloatType) -> None:
        self._materials = tuple(materials)
        self._laws = [_bound(index, sampled(material, -math.inf), np.dtype(dtype)) for index, material in enumerate(materials)]
        self._frames = {index: _key_frames(material) for index, material in enumerate(materials) if _key_frames(material)}
        for index, frames in self._frames.items():
            _refuse_both(materials[index])
            for frame in frames:
                TabledNumbers(sampled(materials[index], frame), self._laws[index].loops.law)

    @property
    def keyed(self) -> bool:
        """Whether some parameter changes over time."""
        return bool(self._frames)

    def at(self, frame: float) -> tuple[BoundLaw, ...]:
        """Return the laws with their coefficients at a (fractional) frame."""
        for index in self._frames:
            material = sampled(self._materials[index], frame)
            coefficients = _coefficients(material, self._laws[index].loops.law)
            self._laws[index] = dataclasses.replace(self._laws[index], material=material, **coefficients)
        return tuple(self._laws)


def sampled(material: Material, frame: float) -> Material:
    """Return a material with its numbers at a frame; itself where none is keyed."""
    if not _key_frames(material):
        return material
    params = {name: keys.at(value, frame) for name, value in material.params.items()}
    return dataclasses.replace(material, params=params, **{name: value.at(frame) for name, value in _keyed(material)})


def _key_frames(material: Material) -> tuple[float, ...]:
    params = (value for value in material.params.values() if keys.carries_keys(value))
    return tuple(sorted({key[0] for value in (*params, *(each for _, each in _keyed(material))) for key in value.keys}))


def _keyed(material: Material) -> list[tuple[str, Any]]:
    """Return the members of a material that carry keys, by name, besides the parameters of its law."""
    members = ((each.name, getattr(material, each.name)) for each in dataclasses.fields(material))
    return [(name, value) for name, value in members if keys.carries_keys(value)]


def _refuse_both(material: Material) -> None:
    """Refuse a number with keys and a table."""
    for name, table in material.tables.items():
        if any(keys.carries_keys(value) for value in (material.params.get(name), name == "viscosity" and material.viscosity)):
            where = f"material {material.label or material.law}"
            raise LawError(f"{where}: {name} has keys and a table over {table.attribute}; remove one of the two")


def _coefficients(material: Material, law: Law) -> dict[str, Any]:
    """Return what of a bound law depends on the numbers of its material."""
    found = TabledNumbers(material, law)
    own = 0.0 if law.viscosity is None else float(found.values[law.viscosity])
    return {
        "numbers": found,
        "viscosity": float(found.values[len(law.names)]) + own,
    }


def _bound(index: int, material: Material, dtype: np.dtype) -> BoundLaw:
    law_of(material)
    law = tabled_law(material)
    return BoundLaw(
        index=index,
        label=material.label or law.label,
        loops=law_loops(law, dtype),
        density=material.density,
        names=law.state,
        material=material,
        **_coefficients(material, law),
    )
