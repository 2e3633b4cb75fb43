"""Knobs of the built-in laws: names, units, ranges, defaults, help; without numba, so that nodes and hosts load fast.

Each dataclass is the `Params` of the law module named in its `law`; its "Attributes:" section is the help of the
knobs. Sources: "Stomakhin 2013" is the snow paper; Y15 (continuum foam), R15 (viscoelastic fluids, Oldroyd), S14 (melting
and solidifying), B18 (student report on snow) and C21 (surface energies) are the papers that this package follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpm_nodes.data import A, Degrees, Pascals, PascalSeconds, PascalSecondsToThePower, Range, Seconds, Unitless

_Stiffness = A[float, Pascals, Range(min=0.0, exclusive_min=True, soft_min=1e2, soft_max=1e8, log=True)]
_PoissonRatio = A[float, Unitless, Range(min=0.0, max=0.499, soft_max=0.49)]


def lame(youngs_modulus: float, poisson_ratio: float) -> tuple[float, float]:
    """Return the shear modulus mu and the first Lame parameter lambda [Pa]: E/(2(1+nu)), E nu/((1+nu)(1-2nu))."""
    mu = youngs_modulus / (2.0 * (1.0 + poisson_ratio))
    return mu, youngs_modulus * poisson_ratio / ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio))


@dataclass(frozen=True)
class NeoHookean:
    """Rubber-like elastic solid: never yields, resists collapse.

    Attributes:
        youngs_modulus: Stiffness against stretch [Pa].
        poisson_ratio: Sideways contraction; 0.5 would be incompressible.
    """

    law: ClassVar[str] = "neo_hookean"
    label: ClassVar[str] = "Neo-Hookean Solid"
    source: ClassVar[str] = "R15 eq. 8-9"
    density: ClassVar[float] = 1000.0

    youngs_modulus: _Stiffness = 1e5
    poisson_ratio: _PoissonRatio = 0.3


@dataclass(frozen=True)
class FixedCorotated:
    """Elastic solid that measures strain after taking the rotation out: robust in strong compression.

    Attributes:
        youngs_modulus: Stiffness against stretch [Pa].
        poisson_ratio: Sideways contraction; 0.5 would be incompressible.
    """

    law: ClassVar[str] = "fixed_corotated"
    label: ClassVar[str] = "Fixed Corotated Solid"
    source: ClassVar[str] = "C21 section 3.2.1, B18 eq. 9"
    density: ClassVar[float] = 1000.0

    youngs_modulus: _Stiffness = 1e5
    poisson_ratio: _PoissonRatio = 0.3


@dataclass(frozen=True)
class Snow:
    """Elastic up to a critical strain, then flows and tears; packing hardens it, stretching softens it.

    Attributes:
        youngs_modulus: Stiffness of the unpacked material [Pa].
        poisson_ratio: Sideways contraction; 0.5 would be incompressible.
        critical_compression: Compression that still springs back (theta_c); small: powdery, large: chunky.
        critical_stretch: Stretch that still springs back (theta_s); small: brittle, large: stringy.
        hardening: Growth of the stiffness with packing: exp(hardening (1 - J_P)).
        preserve_volume: Flow at constant volume (J_P = 1): for melts and doughs; switches hardening off.
    """

    law: ClassVar[str] = "snow"
    label: ClassVar[str] = "Snow"
    source: ClassVar[str] = "Stomakhin 2013, B18 section 8, S14 section 5.1"
    density: ClassVar[float] = 400.0

    youngs_modulus: _Stiffness = 1.4e5
    poisson_ratio: _PoissonRatio = 0.2
    critical_compression: A[float, Unitless, Range(min=0.0, max=0.9, soft_max=0.1)] = 2.5e-2
    critical_stretch: A[float, Unitless, Range(min=0.0, max=10.0, soft_max=0.1)] = 7.5e-3
    hardening: A[float, Unitless, Range(min=0.0, max=50.0, soft_max=20.0)] = 10.0
    preserve_volume: bool = False


@dataclass(frozen=True)
class Liquid:
    """Weakly compressible Newtonian liquid.

    Attributes:
        bulk_modulus: Resistance to compression [Pa]; 100 rho g depth keeps the volume to 1 %.
        viscosity: Dynamic viscosity mu [Pa s], stress 2 mu sym(grad v): water 0.001, honey 10.
    """

    law: ClassVar[str] = "liquid"
    label: ClassVar[str] = "Liquid"
    source: ClassVar[str] = "C21 eq. 14-16"
    density: ClassVar[float] = 1000.0

    bulk_modulus: _Stiffness = 1e5
    viscosity: A[float, PascalSeconds, Range(min=0.0, soft_max=100.0)] = 0.0


@dataclass(frozen=True)
class HerschelBulkley:
    """Foam, cream, paste: elastic up to the yield stress, then flows; thinner or thicker the faster it is sheared.

    Steady simple shear at the rate g carries yield_stress / sqrt(3) + consistency 2^(-(1 + n) / 2) g^n with n = flow_index.

    Attributes:
        bulk_modulus: Resistance to compression [Pa].
        shear_modulus: Stiffness against shear, below the yield stress [Pa].
        yield_stress: Stress in simple tension at which it starts to flow [Pa].
        consistency: Resistance to flow (eta) [Pa s^n]; 0 flows at once: perfectly plastic.
        flow_index: Power n (h) of the shear rate; below 1 thins (foam), 1 is a Bingham paste, above 1 thickens (oobleck).
    """

    law: ClassVar[str] = "herschel_bulkley"
    label: ClassVar[str] = "Herschel-Bulkley Foam"
    source: ClassVar[str] = "Y15 eq. 1-8 and Algorithm 13"
    density: ClassVar[float] = 77.7

    bulk_modulus: _Stiffness = 1.09e5
    shear_modulus: A[float, Pascals, Range(min=0.0, exclusive_min=True, soft_min=10.0, soft_max=1e6, log=True)] = 290.0
    yield_stress: A[float, Pascals, Range(min=0.0, soft_max=1e3)] = 31.9
    consistency: A[float, PascalSecondsToThePower, Range(min=0.0, soft_max=100.0)] = 27.2
    flow_index: A[float, Unitless, Range(min=0.05, max=20.0, soft_min=0.2, soft_max=3.0)] = 0.22


@dataclass(frozen=True)
class OldroydB:
    """Viscoelastic fluid, foam or sponge: springs back when deformed quickly, flows when deformed slowly, keeps its volume.

    Steady simple shear at the rate g carries mu W / (1 + W^2)^(1/3) with W = g relaxation_time: it thins.

    Attributes:
        shear_modulus: Stiffness against shear (mu) [Pa].
        lame_parameter: First Lame parameter (lambda) [Pa]; the bulk modulus is lambda + 2/3 mu.
        relaxation_time: Time in which a strain is forgotten (Wi of R15) [s]; 1e30: never, an elastic solid.
        exact_convection: Carry the strain along by (I + A) B (I + A)^T. Off, only by its part that is linear in A, as R15 prints
            it: that is not objective, and matter that spins flattens.
    """

    law: ClassVar[str] = "oldroyd_b"
    label: ClassVar[str] = "Oldroyd-B Fluid"
    source: ClassVar[str] = "R15 sections 3.3 and 4, eq. 8, 9, 14"
    density: ClassVar[float] = 200.0

    shear_modulus: A[float, Pascals, Range(min=0.0, exclusive_min=True, soft_min=1.0, soft_max=1e6, log=True)] = 50.0
    lame_parameter: A[float, Pascals, Range(min=0.0, soft_min=10.0, soft_max=1e7, log=True)] = 500.0
    relaxation_time: A[float, Seconds, Range(min=0.0, exclusive_min=True, soft_min=1e-3, soft_max=100.0, log=True)] = 0.5
    exact_convection: bool = True


@dataclass(frozen=True)
class DruckerPrager:
    """Sand, gravel, soil: grains that pile up, flow, and come apart; with cohesion they stick together until they break.

    A sheared layer carries pressure tan(friction_angle) + cohesion.

    Attributes:
        youngs_modulus: Stiffness of the packed grains [Pa].
        poisson_ratio: Sideways contraction.
        friction_angle: Of inner friction. A heap that spreads comes to rest at about atan(sin(friction_angle)): 30 degrees for 35.
        cohesion: Shear stress that it carries without pressure [Pa]; it breaks under tension of cohesion / tan(friction_angle).
    """

    law: ClassVar[str] = "drucker_prager"
    label: ClassVar[str] = "Drucker-Prager Sand"
    source: ClassVar[str] = "Klar 2016 section 6, Tampubolon 2017; cone of simple shear, Davis 1968"
    density: ClassVar[float] = 1600.0

    youngs_modulus: _Stiffness = 1e6
    poisson_ratio: _PoissonRatio = 0.3
    friction_angle: A[float, Degrees, Range(min=0.0, max=60.0, soft_min=20.0, soft_max=45.0)] = 32.0
    cohesion: A[float, Pascals, Range(min=0.0, soft_max=1e4)] = 0.0


_LAWS = (NeoHookean, FixedCorotated, Snow, Liquid, HerschelBulkley, OldroydB, DruckerPrager)
BUILT_IN: dict[str, type] = {params.law: params for params in _LAWS}
"""`Params` of the built-in laws by law id; the law itself is the module `mpm_nodes.materials.<law id>`."""
