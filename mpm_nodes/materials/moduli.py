"""The elastic moduli of a material of any law, measured: its stress after a small shear and a small swelling."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.materials.contract import Law, law
from mpm_nodes.materials.material_point import call_law

__all__ = ["Moduli", "moduli"]

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
    told: dict[str, Any] = {"params": dict(params), "density": density, "dt": INSTANT}
    shear = np.zeros((3, 3))
    shear[0, 1] = STRAIN
    with np.errstate(all="ignore"):  # what is no number is no modulus: nothing is said of it
        deformed = call_law(found.id, "advance", A=np.stack([np.zeros((3, 3)), shear, STRAIN * np.eye(3)]), **told)
        rest, sheared, swollen = call_law(found.id, "stress", deformed, **told)
    bulk = float(np.trace(swollen - rest)) / (9.0 * STRAIN)
    stiff = float((sheared - rest)[0, 1]) / STRAIN
    return Moduli(bulk, stiff if stiff > 1e-6 * bulk else 0.0, float(told["params"].get("yield_stress", 0.0)) or np.inf)
