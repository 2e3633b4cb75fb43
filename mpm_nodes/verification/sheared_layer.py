"""Layers between plates, sheared: the laws' flow curves in a solve."""

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

__all__ = ["CELLS", "LayerInSteadyShear", "Plates", "cream", "sheared"]

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


class Plates(enum.Enum):
    """What shears a layer.

    PERIODIC: Sticky ones, between periodic sides.
    STICKY, CLAMPING: With open ends, for matter that keeps its volume; the clamping ones hold two cells of it.
    """

    PERIODIC = "periodic"
    STICKY = "sticky"
    CLAMPING = "clamping"


def cream() -> Material:
    """Return shaving cream."""
    found = LIBRARY["shaving_cream"]
    return Material(found.law, dict(found.params), found.density, "cream")


def sheared(
    matter: Material,
    rate: float,
    duration: float,
    plates: Plates = Plates.PERIODIC,
    off: float = 0.0,
    slope: float = 0.0,
    substeps: str = "explicit_apic",
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
        substeps: Preset; with open ends steps are 5e-3 / rate long at most.
    """
    edge, base, ends = CELLS * H, off * H, plates is not Plates.PERIODIC
    length, depth = (5 * edge, 2 * H) if ends else (edge, edge)
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
    if ends:
        walls = walled((-length, -length, 0), (3 * length, 3 * length, depth), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
    solver = SubstepSolver(
        changed(
            start, position=start["position"] @ turn.T, velocity=velocity @ turn.T, affine=gradient, velocity_gradient=gradient
        ),
        substeps,
        cell_size=H,
        walls=walls,
        colliders=bodies if ends else bodies[:1],
        gravity=(0, 0, 0),
        dt_max=5e-3 / rate if ends else 0.01,
        dtype=np.float64,
    )
    xy, excess = 0.0, 0.0  # B_xy and B_xx - 1
    while solver.time < duration * (1 - 1e-12):
        before = solver.time
        solver.step(time_left=duration - solver.time)
        place, dt = column(solver, "position") @ turn, solver.time - before
        middle = np.abs((place[:, 1] - base) / edge - 0.5) < 0.25
        if ends:
            middle &= np.abs(place[:, 0] - place[:, 0].mean()) < 0.125 * length
        shear = turn.T @ column(solver, "velocity_gradient").reshape(-1, 3, 3)[middle].mean(axis=0) @ turn
        xy, excess = xy + dt * (shear[0, 1] - xy / T_R), excess + dt * (2.0 * shear[0, 1] * xy - excess / T_R)
    law = MU * xy / np.cbrt(1.0 + excess - xy * xy)
    stress = turn.T @ mat_of(column(solver, "stress")[middle].mean(axis=0)) @ turn
    return float(stress[0, 1]), law


def mat_of(rows: np.ndarray) -> np.ndarray:
    """Return the matrix of a stress xx, xy, xz, yy, yz, zz."""
    return rows[np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])]
