"""Named materials: parameter sets to start from, each with its source.

Stiff materials are given softer than they are where the real value would only shrink the time step; the source says so.
"""

from __future__ import annotations

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.materials.named_material import NamedMaterial
from mpm_nodes.materials.stock import STOCK
from mpm_nodes.materials.weak_compressibility import LIBRARY_DEPTH

__all__ = ["LIBRARY", "R15_GRAVITY", "R15_LENGTHS", "R15_STRESS", "NamedMaterial", "named_material"]


R15_LENGTHS, R15_DENSITY = 10.0, 1000.0
"""What R15's tables count in, which print no units: lengths in a metre (decimetres), and its unit of density [kg/m^3] (g/cm^3)."""
R15_STRESS = R15_DENSITY / R15_LENGTHS**2
"""Its unit of stress [Pa], and of viscosity [Pa s]."""
R15_GRAVITY = 0.981
"""Gravity of its shots [m/s^2], which it does not print: 9.81 of its units of length."""


def _viscoelastic(
    label: str, density: float, moduli: tuple[float, float], viscosity: float, relaxation_time: float, look: str
) -> NamedMaterial:
    """Return a row of R15 Table 1, which prints no units: read as g/cm^3, dm and s, so that stresses are in 10 Pa.

    Lengths of its Table 2 are decimetres then: grids of 90 cm around the sponge bar, 49 mm around the foam, 80 mm around the pie;
    and gravity, which it does not print, is 9.81 dm/s^2. Bodies and gravity of the samples follow from this reading. Under the
    gravity of the earth paste and ice cream carry no more than some millimetres of their own.
    """
    mu, lam = moduli
    params = {"shear_modulus": R15_STRESS * mu, "lame_parameter": R15_STRESS * lam, "relaxation_time": relaxation_time}
    return NamedMaterial(
        label,
        "oldroyd_b",
        params,
        R15_DENSITY * density,
        f"R15 Table 1, unit of stress {R15_STRESS:g} Pa (g/cm^3, dm, s), for gravity of {R15_GRAVITY:g} m/s^2",
        viscosity=R15_STRESS * viscosity,
        look=look,
    )


def _foam(
    label: str,
    density: float,
    moduli: tuple[float, float],
    flow: tuple[float, float, float],
    tearing: tuple[float, float],
    look: str,
) -> NamedMaterial:
    """Return a row of Y15 Table I.

    Args:
        label: What artists read.
        density: [kg/m^3].
        moduli: Bulk and shear modulus in kPa, as printed there.
        flow: Yield stress [Pa], consistency [Pa s^n] and flow index n.
        tearing: Tear threshold and recovery time [s].
        look: How renderers shade it.
    """
    (bulk, shear), (yield_stress, consistency, flow_index), (tear_threshold, recovery_time) = moduli, flow, tearing
    params = {
        "bulk_modulus": 1e3 * bulk,
        "shear_modulus": 1e3 * shear,
        "yield_stress": yield_stress,
        "consistency": consistency,
        "flow_index": flow_index,
    }
    return NamedMaterial(label, "herschel_bulkley", params, density, "Y15 Table I", tear_threshold, recovery_time, look=look)


LIBRARY: dict[str, NamedMaterial] = {
    "snow": NamedMaterial(
        "Snow",
        "snow",
        {
            "youngs_modulus": 1.4e5,
            "poisson_ratio": 0.2,
            "critical_compression": 2.5e-2,
            "critical_stretch": 7.5e-3,
            "hardening": 10.0,
        },
        400.0,
        "Stomakhin 2013, reference values; B18 prints symbols only",
        look="snow",
    ),
    "powder_snow": NamedMaterial(
        "Powder Snow",
        "snow",
        {
            "youngs_modulus": 4.8e4,
            "poisson_ratio": 0.2,
            "critical_compression": 1.9e-2,
            "critical_stretch": 5e-3,
            "hardening": 10.0,
        },
        300.0,
        "Chosen here: the snow of Stomakhin 2013 made softer, weaker and lighter",
        look="snow",
    ),
    "wet_snow": NamedMaterial(
        "Wet Snow",
        "snow",
        {
            "youngs_modulus": 1.4e5,
            "poisson_ratio": 0.2,
            "critical_compression": 4e-2,
            "critical_stretch": 1.5e-2,
            "hardening": 7.0,
        },
        500.0,
        "Chosen here by Stomakhin 2013: wet snow has larger critical compression and stretch, and hardens less; density textbook",
        look="snow",
        limits="Packs and breaks in lumps; no water runs out of it",
    ),
    "melted_cheese": NamedMaterial(
        "Melted Cheese",
        "snow",
        {
            "youngs_modulus": 3e4,
            "poisson_ratio": 0.35,
            "critical_compression": 3e-2,
            "critical_stretch": 5e-2,
            "hardening": 0.0,
            "preserve_volume": True,
        },
        900.0,
        "Chosen here, by the look of the demo: yields at some percent and flows at constant volume, as S14 section 5.1 for melts",
        look="cheese",
    ),
    "rubber": NamedMaterial(
        "Rubber",
        "neo_hookean",
        {"youngs_modulus": 1e6, "poisson_ratio": 0.45},
        1100.0,
        "Soft end of textbook values for rubber (1 to 10 MPa); nearly incompressible, nu lowered for the time step",
        look="rubber",
    ),
    "jelly": NamedMaterial(
        "Jelly",
        "fixed_corotated",
        {"youngs_modulus": 5e3, "poisson_ratio": 0.45},
        1000.0,
        "Textbook order of magnitude for gelatine gels (some kPa); nu lowered for the time step",
        look="jelly",
    ),
    "water": NamedMaterial(
        "Water",
        "liquid",
        {"bulk_modulus": 1e6, "viscosity": 1e-3},
        998.0,
        "Textbook, 20 C; bulk modulus lowered from 2.2 GPa: 1 % compression under 1 m of water",
        look="water",
        scale_with_depth="bulk_modulus",
    ),
    "honey": NamedMaterial(
        "Honey",
        "liquid",
        {"bulk_modulus": 1e6, "viscosity": 10.0},
        1420.0,
        "Textbook, 20 C; bulk modulus lowered as for water",
        look="syrup",
        scale_with_depth="bulk_modulus",
    ),
    "shaving_cream": _foam("Shaving Cream", 77.7, (109.0, 0.29), (31.9, 27.2, 0.22), (217.5, 0.35), "foam"),
    "smore_interior": _foam("S'more Interior", 50.0, (109.0, 0.08), (10.0, 16.0, 0.43), (15.0, 0.25), "marshmallow"),
    "smore_exterior": _foam("S'more Exterior", 50.0, (109.0, 50.0), (1000.0, 0.1, 1.0), (0.3, 0.5), "toasted"),
    "pie": _foam("Pie", 275.0, (109.0, 1.6), (120.0, 5.0, 0.27), (10.0, 0.3), "cream"),
    "oobleck": _foam("Oobleck", 1000.0, (109.0, 11.2), (0.1, 10.0, 2.8), (1.0, 0.3), "cream"),
    "viscoplastic": _foam("Viscoplastic", 1000.0, (109.0, 11.2), (0.1, 10.0, 1.0), (1.0, 0.3), "matter"),
    "sponge_twist": _viscoelastic("Sponge, Twisted", 2.0, (3.6e2, 1.4e3), 0.0, 50.0, "sponge"),
    "sponge_shoot": _viscoelastic("Sponge, Shot", 1.0, (3.6e2, 1.4e3), 0.0, 50.0, "sponge"),
    "shaving_foam_stream": _viscoelastic("Shaving Foam Stream", 0.2, (5.0, 50.0), 1e-4, 0.5, "foam"),
    "toothpaste": _viscoelastic("Toothpaste", 1.0, (0.839, 8.39), 1e-1, 0.4, "paste"),
    "viennetta": _viscoelastic("Viennetta Ice Cream", 1.0, (1.0, 10.0), 5e-5, 0.1, "cream"),
    "pie_cream": _viscoelastic("Pie Cream", 0.2, (5.0, 50.0), 1e-7, 1e-4, "cream"),
    "pie_crust": _viscoelastic("Pie Crust", 0.5, (5e5, 4e6), 1e-8, 1e30, "crust"),
    "pie_crust_scored": _viscoelastic("Pie Crust, Scored", 0.5, (5.0, 10.0), 1e-5, 1.0, "crust"),
    **STOCK,
}
"""Named parameter sets by id."""


def named_material(name: str, depth: float = LIBRARY_DEPTH) -> Material:
    """Return a material of the library.

    Args:
        name: Which one.
        depth: How deep it lies [m]: what the entry scales with the depth grows with it.

    Raises:
        MpmNodesError: When there is no entry of that name.
    """
    if name not in LIBRARY:
        raise MpmNodesError(f"material {name!r}: not in the library; {nearest(name, LIBRARY, 'mpm-nodes nodes')}")
    entry = LIBRARY[name]
    params = dict(entry.params)
    if entry.scale_with_depth:
        params[entry.scale_with_depth] *= depth / LIBRARY_DEPTH
    return Material(entry.law, params, entry.density, entry.label, entry.tear_threshold, entry.recovery_time, entry.viscosity)
