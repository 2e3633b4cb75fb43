"""Parameters that follow the temperature and the phase, against closed forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, ParameterTable, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.elasticity import bar_period, confined_modulus
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, STICKY, block, changed, material, walled

__all__ = ["BarOverTemperature", "ViscosityOverTemperature"]


class BarOverTemperature(VerificationProblem):
    """A bar swings with the period of the modulus that it has at its temperature and in its phase.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells, float64, with E from 4e5 Pa at 300 K over 1e5 Pa at 360 K to
        2e5 Pa at 400 K, liquid from 5e4 Pa at 350 K to 2.5e4 Pa at 400 K; at 320 K, at 390 K, at 390 K liquid, at 500 K.
    Exact: period 2 L / c of E = 3e5, 1.75e5, 3e4 and 2e5 Pa.
    Tolerance: 1 %, as there.
    """

    name = "bar_over_temperature"
    source = "textbook (one-dimensional wave equation)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Pluck it at four temperatures."""
        table = ParameterTable(((300.0, 4e5), (360.0, 1e5), (400.0, 2e5)), ((350.0, 5e4), (400.0, 2.5e4)))
        matter = dataclasses.replace(material("neo_hookean", poisson_ratio=0.3), tables={"youngs_modulus": table})
        for temperature, phase, young in ((320.0, 0, 3e5), (390.0, 0, 1.75e5), (390.0, 1, 3e4), (500.0, 0, 2e5)):
            measured = bar_period(matter, confined_modulus(young, 0.3), 32, temperature=temperature, phase=phase)
            yield Finding.relative(1.0, measured, 0.01, f"at {temperature:g} K, phase {phase}, of 2 L / c")


class ViscosityOverTemperature(VerificationProblem):
    """A layer between plates, hotter at the upper one, is sheared most where its viscosity is least.

    Scene: 8 x 16 x 8 cells between a sticky floor at 300 K and a sticky lid at 400 K that moves at U, periodic along x and z,
        float32; T straight between them; viscosity 40 Pa s at 300 K, 10 at 350 K, 20 at 400 K; from an even shear until
        t = rho H^2 / (2 eta_min).
    Exact: shear stress U / integral of dy / eta; u(y) is its integral from the floor, a logarithm in each half.
    Tolerance: 2 % of U and of the stress.
    """

    name = "viscosity_over_temperature"
    source = "textbook (plane Couette flow of a fluid with variable viscosity)"
    slow = True
    rows = ((300.0, 40.0), (350.0, 10.0), (400.0, 20.0))

    def findings(self) -> Iterator[Finding]:
        """Shear the layer."""
        height, cells, density = 1.0, 16, 1000.0
        h, thickest = height / cells, 40.0 / density
        speed, end = 1e-4 * thickest, 0.5 * density * height**2 / 10.0
        fluid = material("liquid", density, bulk_modulus=density * (thickest / h) ** 2)
        fluid = dataclasses.replace(fluid, tables={"viscosity": ParameterTable(self.rows)})
        start = block(fluid, (0, 0, 0), (8 * h, height, 8 * h), h)
        y = start["position"][:, 1]
        velocity, slope = np.zeros((len(start), 3)), np.zeros((len(start), 3, 3))
        velocity[:, 0], slope[:, 0, 1] = speed * y / height, speed / height
        over = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: the solid side is above
        moves = np.array([[0.0, height, 0.0], [speed * end, height, 0.0]])
        lid = PosedLevelSets(PLANE, pose_times=np.array([0.0, end]), rotations=np.array([over, over]), translations=moves)
        around = WallRule.PERIODIC
        solver = SubstepSolver(
            changed(start, velocity=velocity, affine=slope, velocity_gradient=slope, temperature=300.0 + 100.0 * y / height),
            cell_size=h,
            walls=walled((0, 0, 0), (8 * h, 2 * height, 8 * h), around, around, STICKY, OPEN, around, around),
            colliders=[Collider("lid", CollisionRule.STICKY, 0.0, lid)],
            gravity=(0, 0, 0),
        )
        solver.advance(end)
        stress, profile = self.exact(y[solver.particles.unpack("id")] / height, speed, height)
        found = column(solver, "velocity")[:, 0]
        yield Finding(0.0, float(np.abs(found - profile).max() / speed), 0.02, "profile error, of U")
        yield Finding.relative(
            1.0, float(column(solver, "stress")[:, 1].mean() / stress), 0.02, "mean shear stress, of the exact one"
        )

    @staticmethod
    def exact(s: np.ndarray, speed: float, height: float) -> tuple[float, np.ndarray]:
        """Return the shear stress [Pa] and the velocities [m/s] at heights s, of H."""

        def fluidity(s: np.ndarray) -> np.ndarray:  # integral of dy / eta from the floor
            low, high = np.minimum(s, 0.5), np.maximum(s, 0.5)
            lower = np.log((40.0 - 60.0 * low) / 40.0) / -60.0
            return height * (lower + np.log((10.0 + 20.0 * (high - 0.5)) / 10.0) / 20.0)

        stress = speed / float(fluidity(np.array(1.0)))
        return stress, stress * fluidity(s)
