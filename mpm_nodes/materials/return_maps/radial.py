"""What return maps in principal stretches share: logarithmic strains, their deviators, and stretches with a part of one.

A stretch is a tuple of three; `stress_of(s, moduli)` gives the principal Kirchhoff stresses [Pa] of an elastic law.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, sqrt
from mpm_nodes.kernels.lanes.exponentials import exp, log
from mpm_nodes.materials.values import Value, Vector

HALVINGS = 50
"""Bisections of a share between 0 and 1: to the rounding of double precision, whatever the elastic law."""


@inline
def log_strain(s: Vector) -> tuple[Value, Vector]:
    """Return the mean and the deviator of the logarithms of the stretches."""
    tiny = const(s[0], 1e-30)
    a, b, c = log(maximum(tiny, s[0])), log(maximum(tiny, s[1])), log(maximum(tiny, s[2]))
    mean = (a + b + c) * const(a, 1.0 / 3.0)
    return mean, (a - mean, b - mean, c - mean)


@inline
def stretches(mean: Value, d: Vector, k: Value) -> Vector:
    """Return the stretches of the mean and k times the deviator of a logarithmic strain."""
    return exp(mean + k * d[0]), exp(mean + k * d[1]), exp(mean + k * d[2])


@inline
def principal_deviator(t: Vector) -> Vector:
    """Return three principal values without their mean."""
    mean = (t[0] + t[1] + t[2]) * const(t[0], 1.0 / 3.0)
    return t[0] - mean, t[1] - mean, t[2] - mean


@inline
def norm(t: Vector) -> Value:
    """Return the root of the sum of squares."""
    return sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2])
