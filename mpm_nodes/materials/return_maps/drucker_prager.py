"""Drucker-Prager flow without dilation, and volume correction, on any elastic law (Klar 2016 section 6.3; Tampubolon 2017).

| symbol | meaning | unit |
|---|---|---|
| t, p, q | principal Kirchhoff stresses of the elastic law, -tr(t) / 3, abs(dev t) | Pa |
| phi, c | friction angle and cohesion | -, Pa |
| m | sqrt(2) tan(phi) | - |
| Jp | volume that the grains gained when they came apart, at least 1 (state) | - |

Grains flow where q = m p + sqrt(2) c. The cone is that of simple shear: as flow keeps the volume, a layer that is sheared has the
same pressure p on all sides, and carries p tan(phi) + c; so does a layer that runs down a slope, which comes to rest at phi. The
largest obliquity that stress may have in plane strain is higher, sin(phi_max) = tan(phi): 35 degrees for 30 (Davis 1968). Slopes
between both may rest, and do not once they have moved. Cones that share their edges with Mohr's and Coulomb's at phi in compression
(Klar 2016) flow at another angle: m = 2 sqrt(6) sin(phi) / (3 - sin(phi)), 34 degrees for 30.

Grains come apart where p < -c / tan(phi), all strain is lost, and Jp keeps their volume. They bear nothing until that volume is
pressed out of them again. It is `LOOSEST` at most: how far apart grains are that fly, a grid does not see when these gaps close.
Without that limit a poured heap lost a quarter of its volume; without the volume gained it had a sixth too much.
"""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, both, const, either, maximum, minimum, negate, select
from mpm_nodes.kernels.lanes.exponentials import exp, log
from mpm_nodes.materials.return_maps import radial
from mpm_nodes.materials.values import Coefficients, PrincipalStress, State, Value, Vector

STATE = ("plastic_volume_ratio",)
COEFFICIENTS = ("m", "cohesive", "tensile_strength")

LOOSEST = 1.15
"""Volume of grains that just touch over that of densely packed ones: packings of 0.555 and 0.64 (Onoda and Liniger 1990)."""
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
    gained = own[0] > one
    mean = select(gained, mean + const(mean, 1.0 / 3.0) * log(own[0]), mean)
    bears = select(gained, mean <= o, _pressure(stress_of(radial.stretches(mean, (o, o, o), one), moduli)) >= o - coeffs[2])
    apart = negate(bears)  # NaN is apart, and stays NaN
    t = stress_of(radial.stretches(mean, d, one), moduli)
    size, limit = radial.norm(radial.principal_deviator(t)), coeffs[0] * _pressure(t) + coeffs[1]
    flows = size > limit
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
        k = select(apart, mean - mean, k)
        kept = radial.stretches(select(apart, mean - mean, mean), d, k)
        moved = either(apart, either(gained, flows))
        s = (select(moved, kept[0], s[0]), select(moved, kept[1], s[1]), select(moved, kept[2], s[2]))
        own = (select(moved, select(apart, minimum(const(o, LOOSEST), exp(mean + mean + mean)), one), own[0]),)
    return s, own


@inline
def yield_function(s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients) -> Value:
    """Return q - m p - sqrt(2) c [Pa]; of grains that gained volume, whatever they bear."""
    t = stress_of(s, moduli)
    pressure, size = _pressure(t), radial.norm(radial.principal_deviator(t))
    excess = size - coeffs[0] * pressure - coeffs[1] + (own[0] - own[0])  # NaN stays NaN
    return select(own[0] > const(size, 1.0), size + absolute(pressure), excess)
