"""Drucker-Prager flow without dilation, and volume correction, on any elastic law (Klar 2016 section 6.3; Tampubolon 2017).

| symbol | meaning | unit |
|---|---|---|
| t, p, q | principal Kirchhoff stresses of the elastic law, -tr(t) / 3, abs(dev t) | Pa |
| phi, c | friction angle and cohesion | -, Pa |
| m | sqrt(2) tan(phi) | - |
| Jp | volume that the grains gained when they came apart, at least 1 (state) | - |

Grains flow where q = m p + sqrt(2) c. The cone is that of simple shear in plane strain: as flow keeps the volume, a layer that is
sheared has the same pressure p on all sides, and carries p tan(phi) + c; so does a layer that runs down a slope as a whole. Other
strains find other limits: at most the obliquity sin(phi_max) = tan(phi), 35 degrees for 30, and less where matter is stretched
along a slope. Banks that spread come to rest at tan(a) = sin(phi) (`mpm-nodes verify angle_of_repose`), at 30 degrees for 35.

Klar's cone, which touches Coulomb's in triaxial compression, is wider: m = 2 sqrt(6) sin(phi) / (3 - sin(phi)), simple shear at
34.7 degrees for 30. That of plane strain, m = sqrt(2) sin(phi), is narrower: 26.6. What is seen are layers and slopes: the angle
is theirs.

Grains come apart where p < -c / tan(phi), all strain is lost, and Jp keeps their volume. They bear nothing until that volume is
pressed out of them again.
"""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, both, const, either, maximum, negate, select
from mpm_nodes.kernels.lanes.exponentials import exp, log
from mpm_nodes.materials.return_maps import radial
from mpm_nodes.materials.values import Coefficients, PrincipalStress, State, Value, Vector

STATE = ("plastic_volume_ratio",)
COEFFICIENTS = ("m", "cohesive", "tensile_strength")

STRONGEST = 1e12
"""Tensile strength of what has cohesion and hardly any friction [Pa]: a number that single precision has."""


def coefficients(params: Any) -> tuple[float, ...]:
    """Return (m, sqrt(2) c [Pa], c / tan(phi) [Pa]) of a `friction_angle` [degrees] and a `cohesion` [Pa]."""
    slope = math.tan(math.radians(params.friction_angle))
    strength = min(STRONGEST, params.cohesion / slope) if slope else STRONGEST
    return math.sqrt(2.0) * slope, math.sqrt(2.0) * params.cohesion, strength if params.cohesion else 0.0


@inline
def plastic_volume(own: State) -> Value:
    """Return Jp: the volume that grains gained."""
    return own[0]


@inline
def _pressure(t: Vector) -> Value:
    """Return p."""
    return const(t[0], -1.0 / 3.0) * (t[0] + t[1] + t[2])


@inline
def project_stretches(
    s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients, dt: Value
) -> tuple[Vector, State]:
    """Return the principal stretches that the grains bear, and the volume that they gained.

    The deviator shrinks to the share k with q(k) = m p(k) + sqrt(2) c. On `hencky` the first guess is the root.
    """
    mean, d = radial.log_strain(s)
    o, one, half = const(mean, 0.0), const(mean, 1.0), const(mean, 0.5)
    gained = negate(own[0] <= one)  # NaN is gained, and stays NaN
    mean = select(gained, mean + const(mean, 1.0 / 3.0) * log(own[0]), mean)
    bears = select(gained, mean <= o, _pressure(stress_of(radial.stretches(mean, (o, o, o), one), moduli)) >= o - coeffs[2])
    apart = negate(bears)  # NaN is apart, and stays NaN
    t = stress_of(radial.stretches(mean, d, one), moduli)
    size, limit = radial.norm(radial.principal_deviator(t)), coeffs[0] * _pressure(t) + coeffs[1]
    flows = negate(size <= limit)  # NaN flows, and stays NaN
    if any_lane(either(apart, either(gained, flows))):
        low, high, k = o, one, one
        for _ in range(radial.HALVINGS):
            goes_on = both(flows, high > low)
            if any_lane(goes_on):
                over = size > limit
                low, high = select(over, low, k), select(over, k, high)
                guess = k * limit / maximum(const(o, 1e-30), size)
                inside = both(guess > low, guess < high)
                following = select(inside, guess, half * (low + high))
                done = one + const(o, 0.25) * absolute(following - k) <= one  # as near as numbers of this kind are
                low, high = select(done, k, low), select(done, k, high)
                k = select(goes_on, following, k)
                t = stress_of(radial.stretches(mean, d, k), moduli)
                size, limit = radial.norm(radial.principal_deviator(t)), coeffs[0] * _pressure(t) + coeffs[1]
        k = select(apart, mean - mean, k) + (size - size)
        kept = radial.stretches(select(apart, mean - mean, mean), d, k)
        moved = either(apart, either(gained, flows))
        s = (select(moved, kept[0], s[0]), select(moved, kept[1], s[1]), select(moved, kept[2], s[2]))
        own = (select(moved, select(apart, exp(mean + mean + mean), one), own[0]),)
    return s, own


@inline
def yield_function(s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients) -> Value:
    """Return q - m p - sqrt(2) c [Pa]; of grains that gained volume, whatever they bear."""
    t = stress_of(s, moduli)
    pressure, size = _pressure(t), radial.norm(radial.principal_deviator(t))
    excess = size - coeffs[0] * pressure - coeffs[1] + (own[0] - own[0])  # NaN stays NaN
    return select(own[0] > const(size, 1.0), size + absolute(pressure), excess)
