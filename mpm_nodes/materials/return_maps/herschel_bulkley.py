"""Herschel-Bulkley flow at constant volume, on any elastic law (Y15 section 5.2, Algorithm 13).

| symbol | meaning | unit |
|---|---|---|
| E | b - I, b the unimodular elastic left Cauchy-Green tensor | - |
| mu | shear modulus of the elastic law | Pa |
| s, s_Y | deviator of the Kirchhoff stress, sqrt(2/3) times the yield stress in tension | Pa |
| eta, n | consistency and flow index: the flow rate is (max(0, abs(s) - s_Y) / eta)^(1/n) | Pa s^n, - |
| k | share of the deviator of the logarithmic strain that stays | - |

On `split_neo_hookean` the flow is that of Algorithm 13, in which s is mu dev b. On other laws it is the same rate along the
deviator of the logarithmic strain: abs(s(k)) - s_Y = eta (2 (1 - k) abs(dev ln V) / dt)^n.
"""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import any_lane, const, maximum, minimum, negate, select, sqrt
from mpm_nodes.kernels.lanes.exponentials import exp, log
from mpm_nodes.kernels.transfers.differences import unimodular
from mpm_nodes.materials.return_maps import radial

STATE = ()
COEFFICIENTS = ("s_Y", "eta", "n")

ITERATIONS = 9
"""Newton steps at most; a lane that has converged takes no more, and a group of such lanes stops."""


def coefficients(params: Any) -> tuple[float, ...]:
    """Return (s_Y [Pa], eta [Pa s^n], n) of a `yield_stress`, a `consistency` and a `flow_index`."""
    return math.sqrt(2.0 / 3.0) * params.yield_stress, params.consistency, params.flow_index


@inline
def _remaining(D, two_mu_dt, eta, n):
    """Return the part z of the excess D = s_pre - s_Y that is left after dt: D z + 2 mu_t dt (D z / eta)^(1/n) = D.

    Y15 Algorithm 13 as the root of c_p w^p + c_1 w = 1 with p = max(n, 1/n) and both coefficients at most 1: increasing and
    convex, so Newton descends monotonically from w = 1, and nothing overflows.
    """
    one, o = const(D, 1.0), const(D, 0.0)
    tiny = const(D, 1e-30)
    inverse = one / n
    log_beta = log(maximum(tiny, two_mu_dt)) + (inverse - one) * log(maximum(tiny, D)) - inverse * log(maximum(tiny, eta))
    low = exp(minimum(o, log_beta))
    q = exp((o - n) * maximum(o, log_beta))
    thins = n < one
    p, c_p, c_1 = select(thins, inverse, n), select(thins, low, q), select(thins, q, low)
    w, power = one, one
    moved = one
    for _ in range(ITERATIONS):
        goes_on = moved > const(D, 1e-15)
        if any_lane(goes_on):
            power = exp(p * log(w))
            step = (c_p * power + c_1 * w - one) / (c_p * p * power / w + c_1)
            # rounding at the root may step up: a w above 1 or below 0 never comes back
            fresh = select(goes_on, minimum(one, maximum(const(D, 1e-3) * w, w - step)), w)
            moved = w - fresh
            w = fresh
    # in this order a NaN passes
    return select(eta <= o, o, q * select(thins, w, exp(n * log(w))))


@inline
def project_unimodular(e, E, own, moduli, coeffs, dt):
    """Return J - 1, the strain E and no state of its own after plastic flow during dt, with det b = 1 (Y15 Algorithm 13).

    `moduli` are those of `split_neo_hookean`.
    """
    E = mat3.unpack(E)
    mu, s_Y = moduli[1], coeffs[0]
    spherical = mat3.trace(E) * const(mu, 1.0 / 3.0)
    deviator = mat3.add_diagonal(E, const(mu, 0.0) - spherical)
    s_pre = mu * sqrt(mat3.double_dot(deviator, deviator))
    yields = negate(s_pre <= s_Y)  # NaN flows, and stays NaN
    if any_lane(yields):
        mu_t = mu * (const(mu, 1.0) + spherical)
        D = s_pre - s_Y
        z = _remaining(D, (mu_t + mu_t) * dt, coeffs[1], coeffs[2])
        kept = select(yields, (s_Y + D * z) / maximum(const(mu, 1e-30), s_pre), const(mu, 1.0))
        E = mat3.choose(yields, mat3.add_diagonal(mat3.scale(deviator, kept), spherical), E)
    return e, mat3.pack(unimodular(E)), own


@inline
def project_stretches(s, own, stress_of, moduli, coeffs, dt):
    """Return principal stretches and no state of its own after plastic flow during dt."""
    mean, d = radial.log_strain(s)
    size = radial.norm(d)
    o, one = const(size, 0.0), const(size, 1.0)
    tiny = const(size, 1e-30)
    k = one
    trial = radial.norm(radial.principal_deviator(stress_of(s, moduli)))
    yields = negate(trial <= coeffs[0])
    if any_lane(yields):
        low, high, drag = o, one, o
        for _ in range(radial.HALVINGS):
            k = const(size, 0.5) * (low + high)
            over = radial.norm(radial.principal_deviator(stress_of(radial.stretches(mean, d, k), moduli))) - coeffs[0]
            log_rate = log(maximum(tiny, (one - k) * (size + size))) - log(dt)
            # without consistency the flow goes on to the yield surface
            drag = select(coeffs[1] <= o, o, coeffs[1] * exp(coeffs[2] * log_rate))
            low, high = select(over <= drag, k, low), select(over <= drag, high, k)
        # what is not finite stays NaN
        t = radial.stretches(mean, d, low + ((trial - trial) + (drag - drag)))
        s = (select(yields, t[0], s[0]), select(yields, t[1], s[1]), select(yields, t[2], s[2]))
    return s, own


@inline
def yield_function(s, own, stress_of, moduli, coeffs):
    """Return |dev tau| - s_Y [Pa]: what is left of it decays at the rate of the flow, to nothing in a long time."""
    return radial.norm(radial.principal_deviator(stress_of(s, moduli))) - coeffs[0]
