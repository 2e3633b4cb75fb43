"""Drops in implicit steps: their swing, and how much of their spin backward Euler takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.physics.surface_tension.problems.surface_tension import TENSION, H, disc, liquid, slab, stretch_of, zeros
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.implicit import grid_drift
from mpm_nodes.verification.quantities import angular_momentum
from mpm_nodes.verification.scenes import changed

SHARP = {"tolerance": 1e-11, "minimise_energy.krylov_tolerance": 1e-10}


def stretched(spin: float, **settings: Any) -> SubstepSolver:
    """Return an implicit solve of a disc (slab) that is stretched by 1.05 and spins [1/s]."""
    drop = disc(10, liquid(100.0))
    x = drop["position"] * [1.05, 1.0 / 1.05, 1.0]
    turning = np.zeros((len(x), 3, 3))
    turning[:, 0, 1], turning[:, 1, 0] = -spin, spin
    velocity = np.stack([-spin * x[:, 1], spin * x[:, 0], 0.0 * x[:, 0]], axis=1)
    return slab(changed(drop, position=x, velocity=velocity, affine=turning), "implicit_surface_tension", **settings)


class ImplicitDrift(VerificationProblem):
    """A drop that spins loses angular momentum in implicit steps as backward Euler does.

    Scene: an ellipse (slab, 10 cells, stretched by 1.05) that spins, five implicit steps of 0.04 s, ten times the explicit ones.
    Exact: pull and pressure act at the end of the step while the grid's momenta are at its beginning: L grows by dt sum m_i
        v_i^(n+1) x v_i^n in each.
    Tolerance: 1e-6 of the drift.
    """

    name = "implicit_drift"
    source = "backward Euler, written out; C21 section 4.3 claims that angular momentum stays"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Follow the angular momentum."""
        run = stretched(0.5, **SHARP)
        worst = 0.0
        for _ in range(5):
            before = angular_momentum(run)[2]
            taken = run.step(0.04)  # shorter where a minimisation did not converge
            drift = taken * grid_drift(run)[2]
            worst = max(worst, abs(angular_momentum(run)[2] - before - drift) / abs(drift))
        yield Finding(0.0, worst, 1e-6, "drift of the angular momentum, beside that of backward Euler")


class ImplicitPeriod(VerificationProblem):
    """A stretched drop swings in long implicit steps as it does in explicit ones.

    Scene: the ellipse of drop_oscillation (slab, 15 cells, stretched by 1.05) at rest, with even samples: the time between its
        first two round shapes.
    Exact: that of explicit steps. Implicit ones are ten times as long, but where a minimisation does not converge.
    Tolerance: 3 %.
    """

    name = "implicit_period"
    source = "backward Euler; C21 section 4.3"
    slow = True
    radius = 15

    def findings(self) -> Iterator[Finding]:
        """Follow the swing in both."""
        explicit, step = self.half_period("surface_tension", None)
        implicit, _ = self.half_period("implicit_surface_tension", 10.0 * step)
        yield Finding.relative(explicit, implicit, 0.03, "half a period [s]")

    def half_period(self, preset: str, step: float | None) -> tuple[float, float]:
        """Return half a period and the mean step [s]."""
        drop = disc(self.radius, liquid())
        run = slab(changed(drop, position=drop["position"] * [1.05, 1.0 / 1.05, 1.0]), preset, placement="even")
        duration = 5.2 / math.sqrt(6.0 * TENSION / (self.radius * H) ** 3)
        times, values = [], []
        while run.time < duration:
            run.step(step)
            times.append(run.time)
            values.append(stretch_of(run))
        first, second = zeros(np.array(times), np.array(values))[:2]
        return float(second - first), run.time / len(times)
