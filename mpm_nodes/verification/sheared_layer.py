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
    Tolerance: 3 % and 2 %, those of the compressible layers; 5 % where sticky plates lie off the nodes or are
        turned. Plates that clamp are met up to half a cell from where they are, by where they lie between the nodes.
    """

    name = "incompressible_layer"
    source = "Y15 eq. 7, R15 eq. 3, 4 and 14; S14 section 4.1"
    slow = True
    misses = ("Oldroyd-B at W = 1 after t_r, clamping plates [Pa]",)

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
        for off in (0.25, 0.5, 0.75):
            stress, _ = sheared(fluid, 1.0 / T_R, T_R, Plates.STICKY, off)
            yield Finding.relative(exact, stress, 0.05, f"Oldroyd-B, sticky plates {off} cells off the nodes [Pa]")
        for slope in (15.0, 30.0, 45.0):
            stress, _ = sheared(fluid, 1.0 / T_R, T_R, Plates.STICKY, slope=slope)
            yield Finding.relative(exact, stress, 0.05, f"Oldroyd-B, sticky plates at {slope:.0f} degrees [Pa]")


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


def sheared(
    matter: Material, rate: float, duration: float, plates: Plates = Plates.PERIODIC, off: float = 0.0, slope: float = 0.0
) -> tuple[float, float]:
    """Return the shear stress [Pa] in the middle of a layer after `duration` [s] at a rate [1/s].

    Behind it that of an Oldroyd-B fluid at the rates that the middle went through, from rest.

    Args:
        matter: Of what the layer is.
        rate: Speed of the lid over the height of the layer [1/s].
        duration: How long [s].
        plates: What shears it.
        off: How far the plates lie off the nodes [cells].
        slope: How far they are turned about z [degrees].
    """
    edge, base, projected = CELLS * H, off * H, plates is not Plates.PERIODIC
    length, depth = (5 * edge, 2 * H) if projected else (edge, edge)
    held = 2 * H if plates is Plates.CLAMPING else 0.0
    angle = np.radians(slope)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    start = block(matter, (0, base - held, 0), (length, base + edge + held, depth), H)
    inside = np.clip(start["position"][:, 1] - base, 0.0, edge)
    gradient = np.zeros((len(start), 3, 3))
    gradient[:, 0, 1] = rate * (inside == start["position"][:, 1] - base)
    gradient = turn @ gradient @ turn.T
    velocity = np.zeros((len(start), 3))
    velocity[:, 0] = rate * inside
    half = np.array([np.cos(0.5 * angle), np.sin(0.5 * angle)])
    up, over = (half[0], 0.0, 0.0, half[1]), (0.0, half[0], half[1], 0.0)  # half a turn about x: the solid side is above
    lid = [[0.0, base + edge, 0.0], [rate * edge * duration, base + edge, 0.0]]
    bodies = [
        Collider(
            name,
            CollisionRule.STICKY,
            0.0,
            PosedLevelSets(
                PLANE, pose_times=np.array([0.0, duration]), rotations=np.array([pose] * 2), translations=np.array(moves) @ turn.T
            ),
            clamp=bool(held),
        )
        for name, pose, moves in (("lid", over, lid), ("floor", up, [[0.0, base, 0.0]] * 2))
    ]
    around, box = WallRule.PERIODIC, ((0, 0, 0), (edge, 2 * edge, edge))
    walls = walled(*box, around, around, STICKY, OPEN, around, around)
    if projected:
        walls = walled((-length, -length, 0), (3 * length, 3 * length, depth), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
    solver = SubstepSolver(
        changed(
            start, position=start["position"] @ turn.T, velocity=velocity @ turn.T, affine=gradient, velocity_gradient=gradient
        ),
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
        place, dt = column(solver, "position") @ turn, solver.time - before
        middle = np.abs((place[:, 1] - base) / edge - 0.5) < 0.25
        if projected:
            middle &= np.abs(place[:, 0] - place[:, 0].mean()) < 0.125 * length
        shear = turn.T @ column(solver, "velocity_gradient").reshape(-1, 3, 3)[middle].mean(axis=0) @ turn
        xy, excess = xy + dt * (shear[0, 1] - xy / T_R), excess + dt * (2.0 * shear[0, 1] * xy - excess / T_R)
    law = MU * xy / np.cbrt(1.0 + excess - xy * xy)
    stress = turn.T @ mat_of(column(solver, "stress")[middle].mean(axis=0)) @ turn
    return float(stress[0, 1]), law


def mat_of(rows: np.ndarray) -> np.ndarray:
    """Return the matrix of a stress xx, xy, xz, yy, yz, zz."""
    return rows[np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])]
