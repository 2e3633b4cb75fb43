"""Snow plasticity in a run: what the return map must hold on every particle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.materials.material_point import call_law
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, material, walled

LOW, HIGH = 1.0 - 2.5e-2, 1.0 + 7.5e-3


class SnowInvariants(VerificationProblem):
    """Snow that hits the floor stays within its yield surface, keeps F_E F_P, and hardens where it was packed.

    Scene: a snow block of 5^3 cells hits a slip floor at 6 m/s and packs, float64; once with hardening, once at
        constant volume.
    Exact: singular values of F within [1 - th_c, 1 + th_s]; det F times J_P follows the volume det prod (I + dt L);
        shear modulus times exp(xi (1 - J_P)); at constant volume J_P = 1 and det F follows the volume alone.
    Tolerance: float64, 1e-10 after some hundred steps of multiplying determinants; singular values 1e-12; J_P = 1 to
        the bit.
    """

    name = "snow_invariants"
    source = "Stomakhin 2013; B18 section 8; S14 section 5.1"

    def findings(self) -> Iterator[Finding]:
        """Drop both blocks."""
        solver, volume = self._dropped(False)
        f, jp = column(solver, "deformation"), column(solver, "plastic_volume_ratio")
        values = np.linalg.svd(f, compute_uv=False)
        yield Finding(0.0, max(values.max() - HIGH, LOW - values.min(), 0.0), 1e-12, "outside the clamp")
        yield Finding(0.0, np.abs(np.linalg.det(f) * jp / volume - 1).max(), 1e-10, "F_E F_P")
        yield self._hardening(jp)
        yield Finding(1.0, float(jp.min() < 0.9), 0.0, "it packed")
        solver, volume = self._dropped(True)
        yield Finding(0.0, np.abs(column(solver, "plastic_volume_ratio") - 1).max(), 0.0, "J_P at constant volume")
        error = np.abs(np.linalg.det(column(solver, "deformation")) / volume - 1).max()
        yield Finding(0.0, error, 1e-10, "volume at constant volume")

    @staticmethod
    def _dropped(preserve: bool) -> tuple[SubstepSolver, np.ndarray]:
        """Return the solver after the impact, and each particle's volume ratio in memory order."""
        h = 0.05
        start = block(
            material("snow", density=400.0, preserve_volume=preserve), (0, 0.05, 0), (0.25, 0.3, 0.25), h, velocity=(0.0, -6.0, 0.0)
        )
        solver = SubstepSolver(start, cell_size=h, walls=walled((-0.5, 0.0, -0.5), (0.75, 1.0, 0.75), SLIP), dtype=np.float64)
        volume = np.ones(len(start))
        while solver.time < 0.03:
            dt = solver.step(2.5e-4)
            volume[solver.particles.unpack("id")] *= np.linalg.det(np.eye(3) + dt * column(solver, "velocity_gradient"))
        return solver, volume[solver.particles.unpack("id")]

    @staticmethod
    def _hardening(jp: np.ndarray) -> Finding:
        """Compare the stiffness of a small shear at these J_P with the unpacked one."""
        shear = np.zeros((1, 3, 3))
        shear[0, 0, 1] = 1.0
        packed = call_law("snow", "stress_differential", {"plastic_volume_ratio": jp}, dA=np.tile(shear, (len(jp), 1, 1)))[:, 0, 1]
        loose = call_law("snow", "stress_differential", dA=shear)[0, 0, 1]
        return Finding(0.0, np.abs(packed / loose / np.exp(10.0 * (1 - jp)) - 1).max(), 1e-12, "hardening")
