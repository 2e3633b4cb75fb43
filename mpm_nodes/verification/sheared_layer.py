"""Layers between plates, sheared: the laws' flow curves in a solve, between periodic sides and under the projection."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, changed, material, walled
from mpm_nodes.verification.viscoelasticity import MU, PARAMS, T_R

__all__ = ["IncompressibleLayer", "LayerInSteadyShear"]

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
        yield Finding.relative(35.83, sheared(cream(), 1.0, 1.0)[0], 0.03, "shaving cream at 1/s [Pa]")
        fluid = material("oldroyd_b", 20.0, **PARAMS)
        yield Finding.relative(MU / np.cbrt(2.0), sheared(fluid, 1.0 / T_R, 6.0 * T_R)[0], 0.02, "Oldroyd-B at W = 1 [Pa]")


class IncompressibleLayer(VerificationProblem):
    """Foam and a viscoelastic fluid that the projection keeps from compressing carry the stress of their laws.

    Scene: 40 x 8 x 2 cells between a floor and a lid that moves, slip sides along z, open ends, no gravity, preset
        `incompressible` (lam = infinity), float64, from a linear profile of velocities: shaving cream at 1/s to a strain of 1,
        volume-preserving Oldroyd-B at W = 1 for t_r. Both plates clamp two further cells of the matter, or are sticky and hold
        none. The ends bulge as far as the layer is high, and the middle quarter does not see it.
    Exact: 35.83 Pa for cream (independent integration of the law); the start-up of Oldroyd-B, mu B_xy / (B_xx - B_xy^2)^(1/3) with
        B_xy = 1 - 1/e, B_xx = 3 - 4/e, and the same fluid at the rates that the middle went through, B_xy' = g - B_xy / t_r,
        B_xx' = 2 g B_xy - (B_xx - 1) / t_r. The mean of the layer's middle half.
    Tolerance: 3 % and 2 %, those of the compressible layers. What plates hold on staggered grids are the faces inside them: matter
        on sticky ones slips, and some of what others clamp is sheared, so that the layer is as if it were two cells higher.
    """

    name = "incompressible_layer"
    source = "Y15 eq. 7, R15 eq. 3, 4 and 14; S14 section 4.1"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Shear both between both kinds of plates."""
        fluid = material("oldroyd_b", 20.0, **PARAMS)
        xy, xx = 1.0 - np.exp(-1.0), 3.0 - 4.0 * np.exp(-1.0)
        exact = MU * xy / np.cbrt(xx - xy * xy)
        for plates in (Plates.CLAMPING, Plates.STICKY):
            stress, _ = sheared(cream(), 1.0, 1.0, plates)
            yield Finding.relative(35.83, stress, 0.03, f"shaving cream at 1/s, {plates.value} plates [Pa]")
            stress, went = sheared(fluid, 1.0 / T_R, T_R, plates)
            yield Finding.relative(exact, stress, 0.02, f"Oldroyd-B at W = 1 after t_r, {plates.value} plates [Pa]")
            if plates is Plates.CLAMPING:
                yield Finding.relative(went, stress, 0.02, "Oldroyd-B at the rates of the middle [Pa]")


class Plates(enum.Enum):
    """What shears a layer.

    PERIODIC: Sticky ones, between periodic sides, explicit steps.
    STICKY, CLAMPING: Under the projection, with open ends; the clamping ones hold two cells of the matter.
    """

    PERIODIC = "periodic"
    STICKY = "sticky"
    CLAMPING = "clamping"


def cream() -> Material:
    """Return shaving cream."""
    found = LIBRARY["shaving_cream"]
    return Material(found.law, dict(found.params), found.density, "cream")


def sheared(matter: Material, rate: float, duration: float, plates: Plates = Plates.PERIODIC) -> tuple[float, float]:
    """Return the shear stress [Pa] in the middle of a layer after `duration` [s] at a rate [1/s].

    Behind it that of an Oldroyd-B fluid at the rates that the middle went through, from rest.
    """
    edge, projected = CELLS * H, plates is not Plates.PERIODIC
    length, depth = (5 * edge, 2 * H) if projected else (edge, edge)
    held = 2 * H if plates is Plates.CLAMPING else 0.0
    start = block(matter, (0, -held, 0), (length, edge + held, depth), H)
    inside = np.clip(start["position"][:, 1], 0.0, edge)
    gradient = np.zeros((len(start), 3, 3))
    gradient[:, 0, 1] = rate * (inside == start["position"][:, 1])
    velocity = np.zeros((len(start), 3))
    velocity[:, 0] = rate * inside
    up, over = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)  # half a turn about x: the solid side is above
    lid = [[0.0, edge, 0.0], [rate * edge * duration, edge, 0.0]]
    bodies = [
        Collider(
            name,
            CollisionRule.STICKY,
            0.0,
            PosedLevelSets(
                PLANE, pose_times=np.array([0.0, duration]), rotations=np.array([turn] * 2), translations=np.array(moves)
            ),
            clamp=bool(held),
        )
        for name, turn, moves in (("lid", over, lid), ("floor", up, np.zeros((2, 3))))
    ]
    around, box = WallRule.PERIODIC, ((0, 0, 0), (edge, 2 * edge, edge))
    walls = walled(*box, around, around, STICKY, OPEN, around, around)
    if projected:
        walls = walled((-length, -edge, 0), (3 * length, 2 * edge, depth), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
    solver = SubstepSolver(
        changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
        "incompressible" if projected else "explicit_apic",
        cell_size=H,
        walls=walls,
        colliders=bodies if projected else bodies[:1],
        gravity=(0, 0, 0),
        dt_max=5e-3 / rate if projected else 0.01,
        dtype=np.float64,
    )
    xy, excess = 0.0, 0.0  # B_xy and B_xx - 1
    while solver.time < duration * (1 - 1e-12):
        before = solver.time
        solver.step(time_left=duration - solver.time)
        place, dt = column(solver, "position"), solver.time - before
        middle = np.abs(place[:, 1] / edge - 0.5) < 0.25
        if projected:
            middle &= np.abs(place[:, 0] - place[:, 0].mean()) < 0.125 * length
        shear = float(column(solver, "velocity_gradient").reshape(-1, 9)[middle, 1].mean())
        xy, excess = xy + dt * (shear - xy / T_R), excess + dt * (2.0 * shear * xy - excess / T_R)
    law = MU * xy / np.cbrt(1.0 + excess - xy * xy)
    return float(column(solver, "stress")[middle, 1].mean()), law
