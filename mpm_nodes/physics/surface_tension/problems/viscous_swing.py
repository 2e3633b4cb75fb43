"""A drop that swings and is calmed by its viscosity: frequency and decay of the exact normal mode.

| symbol | meaning | unit |
|---|---|---|
| s | rate of the mode: its amplitude goes as exp(s time) | 1/s |
| n, a | order of the mode, angle around the disc | -, rad |
| nu | viscosity over density | m^2/s |
| q | sqrt(s / nu) | 1/m |
| A, B | amplitudes of the potential flow r^n and of the vortical one, I_n(q r) | |

On a disc of radius, density and tension 1, with u = grad(A r^n cos n a) + curl(B f sin n a), f = I_n(q r), at r = 1:

    no shear     2 n (1 - n) A = ((q^2 + 2 n^2) f - 2 f') B
    pressure     - s A - 2 nu n ((n - 1) A + (f' - f) B) = n (n^2 - 1) (A + f B) / s
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.physics.surface_tension.problems.capillarity import bessel
from mpm_nodes.physics.surface_tension.problems.surface_tension import disc, liquid, oscillation, slab
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import changed

__all__ = ["ViscousSwing", "fitted", "normal_mode"]


def normal_mode(nu: float, n: int = 2) -> complex:
    """Return s [1/s] of the least damped mode of order `n`, with a positive imaginary part: the root of the two equations above.

    Args:
        nu: Viscosity over density, for radius, density and tension 1 [m^2/s].
        n: Order of the mode.
    """

    def off(s: complex) -> complex:
        q = cmath.sqrt(s / nu)
        f, slope = bessel(n, q), 0.5 * q * (bessel(n - 1, q) + bessel(n + 1, q))
        share = 2.0 * n * (1.0 - n) / ((q * q + 2.0 * n * n) * f - 2.0 * slope)
        return -s * s - 2.0 * nu * n * s * (n - 1.0 + (slope - f) * share) - n * (n * n - 1.0) * (1.0 + f * share)

    one = complex(-2.0 * n * (n - 1.0) * nu, math.sqrt(n * (n * n - 1.0)))
    two = one * 1.01
    for _ in range(60):
        low, high = off(one), off(two)
        if abs(high - low) < 1e-14:
            break
        one, two = two, two - high * (two - one) / (high - low)
    return two


def fitted(times: np.ndarray, values: np.ndarray, guess: complex) -> complex:
    """Return s of the damped wave and a constant that fit values best, by least squares.

    Args:
        times: [s], shape (n,).
        values: Shape (n,).
        guess: A rate near it; found within half of its frequency and a third of that beside its decay.
    """
    best, reach = guess, complex(guess.imag / 3.0, guess.imag / 2.0)
    for _ in range(12):
        rates = [best + complex(a * reach.real, b * reach.imag) for a in np.linspace(-1, 1, 9) for b in np.linspace(-1, 1, 9)]
        best = min(rates, key=lambda s: _misfit(times, values, s))
        reach *= 0.4
    return best


def _misfit(times: np.ndarray, values: np.ndarray, s: complex) -> float:
    envelope = np.exp(s.real * times)
    rows = np.stack([envelope * np.cos(s.imag * times), envelope * np.sin(s.imag * times), np.ones(len(times))], axis=1)
    left = values - rows @ np.linalg.lstsq(rows, values, rcond=None)[0]
    return float(left @ left)


class ViscousSwing(VerificationProblem):
    """A stretched drop swings and loses its amplitude as the exact mode of a viscous disc does.

    Scene: an ellipse (slab, 10 cells, stretched by 1.05) at rest, viscosity 0.03, explicit, three periods; the best damped wave.
    Exact: the root of `normal_mode`, -0.1099 + 2.4386 i; the rate of small viscosity, 2 n (n - 1) nu / R^2, would be 0.12.
    Tolerance: 8 % of the frequency, an error of order h / R; 15 % of the decay.
    """

    name = "viscous_swing"
    source = "Lamb 1932; the two conditions on the free surface"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it swing."""
        nu = 0.03
        exact = normal_mode(nu)
        drop = disc(10, liquid(viscosity=nu))
        run = slab(changed(drop, position=drop["position"] * [1.05, 1.0 / 1.05, 1.0]))
        times, shapes = (np.asarray(each) for each in oscillation(run, 6.0 * math.pi / exact.imag))
        found = fitted(times, shapes, exact)
        self._show_swing(times, shapes, found, exact)
        yield Finding.relative(exact.imag, found.imag, 0.08, "frequency [1/s]")
        yield Finding.relative(-exact.real, -found.real, 0.15, "decay [1/s]")

    def _show_swing(self, times: np.ndarray, shapes: np.ndarray, found: complex, exact: complex) -> None:
        """Show the shape about its rest, over the wave of the exact mode with the phase and the height of the best one."""
        envelope = np.exp(found.real * times)
        waves = [envelope * np.cos(found.imag * times), envelope * np.sin(found.imag * times), np.ones(len(times))]
        even, odd, rest = np.linalg.lstsq(np.stack(waves, axis=1), shapes, rcond=None)[0]
        wave = np.exp(exact.real * times) * (even * np.cos(exact.imag * times) + odd * np.sin(exact.imag * times))
        self.show("shape about its rest", ("time [s]", "second mode"), (times, shapes - rest), (times, wave))
