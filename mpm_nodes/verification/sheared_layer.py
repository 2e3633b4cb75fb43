"""Layers between sticky plates and periodic sides, sheared until the stress is steady: the laws' flow curves in a solve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, STICKY, block, changed, material, walled
from mpm_nodes.verification.viscoelasticity import MU, PARAMS, T_R

__all__ = ["LayerInSteadyShear"]

H, CELLS = 0.05, 8


class LayerInSteadyShear(VerificationProblem):
    """A layer sheared between plates carries the stress that its law has at that rate.

    Scene: 8^3 cells between a sticky floor and a sticky lid that moves, periodic along x and z, no gravity, float64, from a linear
        profile of velocities: shaving cream at 1/s to a strain of 1, volume-preserving Oldroyd-B at W = 1 for 6 t_r.
    Exact: 35.83 Pa for cream (independent integration of the law); mu W / (1 + W^2)^(1/3) for Oldroyd-B. The mean of the
        layer's middle half.
    Tolerance: 3 % and 2 %.
    """

    name = "layer_in_steady_shear"
    source = "Y15 eq. 7, R15 eq. 9"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Shear both."""
        cream = LIBRARY["shaving_cream"]
        foam = Material(cream.law, dict(cream.params), cream.density, "cream")
        yield Finding.relative(35.83, self._stress(foam, 1.0, 1.0), 0.03, "shaving cream at 1/s [Pa]")
        fluid = material("oldroyd_b", 20.0, **PARAMS)
        yield Finding.relative(MU / np.cbrt(2.0), self._stress(fluid, 1.0 / T_R, 6.0 * T_R), 0.02, "Oldroyd-B at W = 1 [Pa]")

    @staticmethod
    def _stress(matter: Material, rate: float, duration: float) -> float:
        """Return the shear stress after `duration` [s] at a rate [1/s]."""
        edge = CELLS * H
        start = block(matter, (0, 0, 0), (edge, edge, edge), H)
        gradient = np.zeros((len(start), 3, 3))
        gradient[:, 0, 1] = rate
        velocity = np.zeros((len(start), 3))
        velocity[:, 0] = rate * start["position"][:, 1]
        over = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: the solid side is above
        moves = np.array([[0.0, edge, 0.0], [rate * edge * duration, edge, 0.0]])
        lid = PosedLevelSets(PLANE, pose_times=np.array([0.0, duration]), rotations=np.array([over, over]), translations=moves)
        around = WallRule.PERIODIC
        solver = SubstepSolver(
            changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
            cell_size=H,
            walls=walled((0, 0, 0), (edge, 2 * edge, edge), around, around, STICKY, OPEN, around, around),
            colliders=[Collider("lid", CollisionRule.STICKY, 0.0, lid)],
            gravity=(0, 0, 0),
            dtype=np.float64,
        )
        while solver.time < duration * (1 - 1e-12):
            solver.step(time_left=duration - solver.time)
        middle = np.abs(column(solver, "position")[:, 1] / edge - 0.5) < 0.25
        return float(column(solver, "stress")[middle, 1].mean())
