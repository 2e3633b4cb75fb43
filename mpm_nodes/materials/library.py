"""Named materials: parameter sets to start from, each with its source.

Stiff materials are given softer than they are where the real value would only shrink the time step; the source says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mpm_nodes.data import Material, MpmNodesError

__all__ = ["LIBRARY", "Entry", "named_material"]


@dataclass(frozen=True)
class Entry:
    """One named parameter set.

    Attributes:
        label: Name that artists see.
        law: Id of the law.
        params: Values of the law's `Params`, SI; missing ones keep their defaults.
        density: Undeformed density [kg/m^3].
        source: Where the numbers come from.
    """

    label: str
    law: str
    params: Mapping[str, float | bool]
    density: float
    source: str


LIBRARY: dict[str, Entry] = {
    "snow": Entry(
        "Snow", "snow",
        {"youngs_modulus": 1.4e5, "poisson_ratio": 0.2, "critical_compression": 2.5e-2, "critical_stretch": 7.5e-3,
         "hardening": 10.0}, 400.0,
        "Stomakhin 2013, reference values; B18 prints symbols only"),
    "powder_snow": Entry(
        "Powder Snow", "snow",
        {"youngs_modulus": 4.8e4, "poisson_ratio": 0.2, "critical_compression": 1.9e-2, "critical_stretch": 5e-3,
         "hardening": 10.0}, 300.0,
        "Chosen here: the snow of Stomakhin 2013 made softer, weaker and lighter"),
    "melted_cheese": Entry(
        "Melted Cheese", "snow",
        {"youngs_modulus": 3e4, "poisson_ratio": 0.35, "critical_compression": 3e-2, "critical_stretch": 5e-2,
         "hardening": 0.0, "preserve_volume": True}, 900.0,
        "Chosen here, by the look of the demo: yields at some percent and flows at constant volume, as S14 section 5.1 for melts"),
    "rubber": Entry(
        "Rubber", "neo_hookean", {"youngs_modulus": 1e6, "poisson_ratio": 0.45}, 1100.0,
        "Soft end of textbook values for rubber (1 to 10 MPa); nearly incompressible, nu lowered for the time step"),
    "jelly": Entry(
        "Jelly", "fixed_corotated", {"youngs_modulus": 5e3, "poisson_ratio": 0.45}, 1000.0,
        "Textbook order of magnitude for gelatine gels (some kPa); nu lowered for the time step"),
    "water": Entry(
        "Water", "liquid", {"bulk_modulus": 1e6, "viscosity": 1e-3}, 998.0,
        "Textbook, 20 C; bulk modulus lowered from 2.2 GPa: 1 % compression under 1 m of water"),
    "honey": Entry(
        "Honey", "liquid", {"bulk_modulus": 1e6, "viscosity": 10.0}, 1420.0,
        "Textbook, 20 C; bulk modulus lowered as for water"),
}
"""Named parameter sets by id."""


def named_material(name: str) -> Material:
    """Return a material of the library.

    Raises:
        MpmNodesError: When there is no entry of that name.
    """
    if name not in LIBRARY:
        raise MpmNodesError(f"material {name!r}: not in the library; choose one of {', '.join(LIBRARY)}")
    entry = LIBRARY[name]
    return Material(entry.law, dict(entry.params), entry.density, entry.label)
