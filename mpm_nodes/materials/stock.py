"""Stock matter: what stands in kitchens, gardens and workshops, each with its source and its limits.

Moduli are softer than real ones where those would only shorten the time step: pressed by the weight of a scene of 1 m, matter gives
way by about 1 %, and they follow the `depth` of the node. Yield stresses and viscosities are those of the matter.
"""

from __future__ import annotations

import math

from mpm_nodes.materials.named_material import NamedMaterial

__all__ = ["STOCK"]


def _grains(label: str, density: float, cone: tuple[float, float], source: str, look: str, limits: str) -> NamedMaterial:
    """Return grains; `cone` holds the friction angle [degrees] and the cohesion [Pa]."""
    params = {"youngs_modulus": 1.5e6, "poisson_ratio": 0.3, "friction_angle": cone[0], "cohesion": cone[1]}
    scaled = "youngs_modulus"
    return NamedMaterial(label, "drucker_prager", params, density, source, look=look, scale_with_depth=scaled, limits=limits)


def _paste(
    label: str,
    density: float,
    shear_modulus: float,
    flow: tuple[float, float, float],
    source: str,
    look: str,
    limits: str,
) -> NamedMaterial:
    """Return a paste that carries `tau + K g^n` in simple shear at the rate g.

    Args:
        label: What artists read.
        density: [kg/m^3].
        shear_modulus: Below the yield stress [Pa].
        flow: tau [Pa], K [Pa s^n] and n, as rheometers give them; norms of the law add sqrt 3 and 2^((1 + n) / 2).
        source: Where the numbers come from.
        look: How renderers shade it.
        limits: What it does not do.
    """
    tau, consistency, index = flow
    params = {
        "bulk_modulus": 1.5e6,
        "shear_modulus": shear_modulus,
        "yield_stress": math.sqrt(3.0) * tau,
        "consistency": 2.0 ** (0.5 * (1.0 + index)) * consistency,
        "flow_index": index,
    }
    scaled = "bulk_modulus"
    return NamedMaterial(label, "herschel_bulkley", params, density, source, look=look, scale_with_depth=scaled, limits=limits)


STOCK: dict[str, NamedMaterial] = {
    "sand": _grains(
        "Sand",
        1600.0,
        (35.0, 0.0),
        "Lambe and Whitman 1969: dry sand stands at some 30 degrees, bulk density; modulus chosen here",
        "sand",
        "Stands at 30 degrees; what falls from high up spreads flatter; give streams of it a jitter of 1",
    ),
    "wet_sand": _grains(
        "Wet Sand",
        1800.0,
        (35.0, 1000.0),
        "Mitarai and Nori 2006: cohesion of wet grains of the order of 1 kPa; the rest as sand, chosen here",
        "wet_sand",
        "Walls stand 0.4 m high; it has no water that runs out of it",
    ),
    "soil": _grains(
        "Soil",
        1400.0,
        (30.0, 400.0),
        "Lambe and Whitman 1969: friction of silt and loose sand; cohesion of tilled, crumbly soil chosen here",
        "soil",
        "Crumbs are as large as cells; packed soil has ten times the cohesion",
    ),
    "mud": _paste(
        "Mud",
        1500.0,
        5e3,
        (60.0, 30.0, 1.0 / 3.0),
        "Coussot 1997: yield stresses of thick mud some ten to some hundred Pa, n = 1/3; modulus chosen here",
        "mud",
        "Keeps ridges of a centimetre; does not dry",
    ),
    "clay": _paste(
        "Clay",
        1800.0,
        3e5,
        (1.5e4, 2e3, 0.3),
        "Lambe and Whitman 1969: shear strength of soft clay 12 to 25 kPa; modulus and consistency chosen here",
        "clay",
        "Stands 3 m high; pressed together, pieces are one without a seam",
    ),
    "dough": _paste(
        "Dough",
        1150.0,
        5e3,
        (250.0, 200.0, 0.4),
        "Dobraszczyk and Morgenstern 2003: moduli of wheat dough some kPa; yield stress and consistency chosen here",
        "dough",
        "Springs back by its elastic part alone, a twentieth; does not rise",
    ),
    "butter": _paste(
        "Butter",
        911.0,
        1e5,
        (4e3, 500.0, 0.5),
        "Chosen here: spreadable butter, some kPa; density textbook",
        "butter",
        "For 20 degrees Celsius; wire material_over_temperature for butter that melts",
    ),
    "chocolate": _paste(
        "Chocolate",
        1300.0,
        1e6,
        (3e4, 0.0, 1.0),
        "Chosen here: a tenth to a hundredth of real stiffness and strength, which its own weight does not show; density textbook",
        "chocolate",
        "Bends where a bar snaps: give it material_tearing and a preset that tears for that",
    ),
    "molten_chocolate": _paste(
        "Molten Chocolate",
        1280.0,
        500.0,
        (10.0, 3.0, 0.8),
        "Beckett 2009: Casson's yield stress some 10 Pa, plastic viscosity 1 to 3 Pa s at 40 degrees Celsius; modulus chosen here",
        "chocolate",
        "A coat of a millimetre holds on a wall; does not set; on few cells it does not run thinner than three of them",
    ),
    "caramel": NamedMaterial(
        "Caramel",
        "liquid",
        {"bulk_modulus": 1.5e6, "viscosity": 40.0},
        1400.0,
        "Chosen here: poured at some 80 degrees Celsius, as thick as honey four times over",
        look="caramel",
        scale_with_depth="bulk_modulus",
        limits="Does not set as it cools: the sample caramel does",
    ),
    "wax": _paste(
        "Wax",
        900.0,
        5e5,
        (2e4, 1e3, 0.5),
        "Chosen here: warm wax that hands can knead, softer than at room temperature; density textbook",
        "wax",
        "Dents, and does not crack",
    ),
    "jam": _paste(
        "Jam",
        1330.0,
        2e3,
        (40.0, 20.0, 0.4),
        "Steffe 1996: fruit purees and jams, some ten Pa and Pa s^n, n = 0.3 to 0.5; modulus chosen here",
        "jam",
        "Without pieces of fruit; heaps stand a centimetre high",
    ),
    "slime": NamedMaterial(
        "Slime",
        "oldroyd_b",
        {"shear_modulus": 800.0, "lame_parameter": 1.5e6, "relaxation_time": 0.4},
        1020.0,
        "Chosen here, as toys of polyvinyl alcohol and borax: springs back within tenths of a second, flows in seconds",
        viscosity=5.0,
        look="slime",
        scale_with_depth="lame_parameter",
        limits="Runs flat in the end; strings of less than two cells break",
    ),
    "cream": _paste(
        "Whipped Cream",
        450.0,
        5e3,
        (250.0, 60.0, 0.4),
        "Chosen here: whipped stiff, half of it air, a little softer than soft ice",
        "cream",
        "Peaks stand some centimetres high; does not sink together with time",
    ),
    "ice_cream": _paste(
        "Ice Cream",
        550.0,
        1e4,
        (300.0, 100.0, 0.4),
        "Chosen here: soft ice out of the machine, half of it air; Steffe 1996 for the order of n",
        "cream",
        "Peaks stand some centimetres high; does not melt",
    ),
    "foam_rubber": NamedMaterial(
        "Foam Rubber",
        "neo_hookean",
        {"youngs_modulus": 6e4, "poisson_ratio": 0.1},
        50.0,
        "Gibson and Ashby 1997: open polyurethane foam, some ten kPa at 30 to 50 kg/m^3",
        look="foam_rubber",
        limits="Stiffens as it is pressed flat less than real foam",
    ),
    "soft_metal": _paste(
        "Soft Metal",
        7300.0,
        1e7,
        (1e5, 0.0, 1.0),
        "Chosen here: density of tin; a hundredth of its strength, and less of its stiffness, so that falls of a metre dent it",
        "metal",
        "Does not harden as it is bent",
    ),
}
"""Named parameter sets by id."""
