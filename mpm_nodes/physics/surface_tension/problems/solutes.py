"""Solutes: how a concentration spreads in liquids that move."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import block, changed


class ConcentrationWave(VerificationProblem):
    """A wave of concentration in a liquid that drifts decays at the rate of the diffusivity, and no solute is lost.

    Scene: a bar of 32 x 3 x 3 cells that drifts by three cells, c = 0.5 + 0.25 cos(kx) with k = pi / L, until D k^2 t = 0.5, in
        steps of 0.01 and 0.0025 / (D k^2); no tension.
    Exact: the amplitude decays as exp(-D k^2 t); sum V0 c stays.
    Tolerance: 2 % of the rate, as for heat; 1e-7 of the solute, the tolerance of the solves.
    """

    name = "concentration_wave"
    source = "textbook (diffusion equation); C21 section 3.3"

    def findings(self) -> Iterator[Finding]:
        """Let it decay in coarse and in fine steps."""
        for step in (0.01, 0.0025):
            rate, lost = self.decay(step)
            yield Finding.relative(1.0, rate, 0.02, f"rate in steps of {step:g} / (D k^2)")
            yield Finding(0.0, lost, 1e-7, "share of the solute that is lost")

    @staticmethod
    def decay(step: float) -> tuple[float, float]:
        """Return the rate over the exact one, and the share of the solute that is lost."""
        length, k, diffusivity = 1.0, math.pi, 0.5
        h, rate = length / 32, diffusivity * math.pi**2
        tension = SurfaceTension(0.0, solute_tension=0.0, solute_diffusivity=diffusivity)
        matter = Material("liquid", {"bulk_modulus": 10.0}, 1.0, "brine", surface_tension=tension)
        start = block(matter, (0, 0, 0), (length, 3 * h, 3 * h), h)
        x = start["position"][:, 0]
        slope, drift = np.zeros((len(start), 3)), np.zeros((len(start), 3))
        slope[:, 0], drift[:] = -0.25 * k * np.sin(k * x), (3.0 * h * rate / 0.5, 0.2 * h * rate, 0.0)
        start = changed(start, concentration=0.5 + 0.25 * np.cos(k * x), concentration_gradient=slope, velocity=drift)
        run = SubstepSolver(
            start, "surface_tension_solute", cell_size=h, gravity=(0, 0, 0), dtype=np.float64, origin=(0.0, 0.0, 0.0)
        )
        before = float(column(run, "volume") @ column(run, "concentration"))
        run.advance(0.5 / rate, step / rate)
        shape = np.cos(k * x[run.particles.unpack("id")])
        amplitude = float((column(run, "concentration") - 0.5) @ shape / (shape @ shape)) / 0.25
        after = float(column(run, "volume") @ column(run, "concentration"))
        return -math.log(amplitude) / (rate * run.time), abs(after / before - 1.0)
