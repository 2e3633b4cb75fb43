"""The elastic moduli of a material of any law, measured: its stress after a small shear and a small swelling."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.materials.contract import Law, law

__all__ = ["Moduli", "moduli", "moduli_of"]

STRAIN, INSTANT = 1e-4, 1e-9
"""Strain, and seconds in which it is applied, at which moduli are measured: before anything relaxes or flows."""


class Moduli(NamedTuple):
    """Elastic moduli at rest, of a deformation so quick that nothing flows.

    Attributes:
        bulk: K [Pa].
        shear: G [Pa]; 0 for liquids.
        yield_stress: In simple tension [Pa]; infinite where the law names none.
    """

    bulk: float
    shear: float
    yield_stress: float

    @property
    def young(self) -> float:
        """Young's modulus E = 9 K G / (3 K + G) [Pa]."""
        return 9.0 * self.bulk * self.shear / (3.0 * self.bulk + self.shear)


def moduli(material: Material) -> Moduli:
    """Measure the moduli of a material of any law: its stress after a small shear and a small swelling.

    Raises:
        LawError: The law is unknown, or a parameter is not allowed.
    """
    return _measured(law(material.law), material.density, tuple(sorted(material.params.items())))


@functools.lru_cache(maxsize=256)
def _measured(found: Law, density: float, params: tuple[tuple[str, Any], ...]) -> Moduli:
    """Measure the moduli; a graph may hold hundreds of solves of one material."""
    told = dict(params)
    measured = moduli_of(found, found.coefficients(told, density))
    return measured._replace(yield_stress=float(told.get("yield_stress", 0.0)) or np.inf)


def moduli_of(found: Law, coefficients: np.ndarray) -> Moduli:
    """Measure the moduli that coefficients of a law stand for; no yield stress is among them.

    Args:
        found: The law.
        coefficients: One number for each of its names.
    """
    shear = np.zeros((3, 3))
    shear[0, 1] = STRAIN
    strains = np.stack([shear, STRAIN * np.eye(3), -STRAIN * np.eye(3)])
    count = len(strains)
    A, none = tuple(strains.reshape(count, 9).T), tuple(np.zeros((9, count)))
    numbers = tuple(np.full(count, number) for number in coefficients)
    rest = found.rest_state(count)
    columns = tuple(tuple(v.reshape(count, -1).T) if v.ndim > 1 else v for v in (rest[name] for name in found.state))
    dt = np.full(count, INSTANT)
    with np.errstate(all="ignore"):  # what is not a number is not a modulus: nothing is said of it
        deformed = found.module.advance(columns, A, numbers, dt)
        T = np.stack([np.broadcast_to(each, (count,)) for each in found.module.stress(deformed, none, numbers, dt)])
    bulk = float((T[[0, 4, 8], 1] - T[[0, 4, 8], 2]).sum()) / (18.0 * STRAIN)
    stiff = float(T[1, 0]) / STRAIN
    return Moduli(bulk, stiff if stiff > 1e-6 * bulk else 0.0, np.inf)
