"""Yield-stress matter under its own weight: a layer on an incline, and a cylinder that slumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from mpm_nodes.data import Material, Particles, WallRule
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, changed, material, settle, walled

__all__ = ["CylinderSlump", "LayerOnIncline"]

G, DENSITY, H = 9.81, 1000.0, 0.01


def paste(shear_yield: float, consistency: float, index: float = 1.0, shear_modulus: float = 2e4) -> Material:
    """Return a Herschel-Bulkley paste, stiff against the stresses of its flow; a Bingham one where the index is 1.

    In simple shear tau = shear_yield [Pa] + consistency [Pa s^index] * rate^index: sqrt 3 and 2^((1 + index) / 2) are what norms
    of the law make of them (Y15 eq. 7).
    """
    return material(
        "herschel_bulkley",
        DENSITY,
        shear_modulus=shear_modulus,
        bulk_modulus=4e5,
        yield_stress=float(np.sqrt(3.0)) * shear_yield,
        consistency=2.0 ** (0.5 * (1.0 + index)) * consistency,
        flow_index=index,
    )


class LayerOnIncline(VerificationProblem):
    """A layer of paste rests on an incline as long as it is thin, and flows with a plug on top where it is thicker.

    Scene: 8 x 2 cells, periodic along the slope, slip side walls, on a sticky floor under gravity that leans by 30 degrees; pastes
        that flow where the layer is thicker than H_c of 20 cells, a Bingham one (n = 1, K = 20 Pa s) and one that thins (n = 1/2,
        K = 50 Pa s^n); float64. 18 cells of the first, damped until it bears its weight, then 0.32 s, two periods of its shear; and
        24 cells of both, from the profile of the formula, for 1.2 s, three times what the plug needs to change its speed. The other
        one is sheared in a thinner layer at the floor, and solved with cells of half the size: with whole ones its plug is 11 %
        slow, halfway to the floor 21 %.
    Exact: at 0.9 H_c no flow. At 1.2 H_c the plug goes at n / (n + 1) (rho g sin(a) / K)^(1/n) (H - H_c)^(1 + 1/n), and reaches
        down to H_c below the surface: at that depth the velocity is the plug's, and halfway to the floor 1 - 2^-(1 + 1/n) of it.
    Tolerance: 1e-3 sqrt(g H) for what creeps; 10 % of the plug's speed.
    """

    name = "layer_on_incline"
    source = "Herschel and Bulkley 1926"
    slow = True

    critical, lean = 20 * H, np.radians(30.0)
    drive = DENSITY * G * float(np.sin(lean))
    pastes: ClassVar[dict[float, float]] = {1.0: 20.0, 0.5: 50.0}
    """K [Pa s^n] by n."""
    fine: ClassVar[dict[float, int]] = {1.0: 1, 0.5: 2}
    """How many cells there are to each H, by n."""

    def findings(self) -> Iterator[Finding]:
        """Rest, then flow."""
        thin = self._layer(18)
        settle(thin, 0.4, 40.0)
        before = self._top(thin, "position")
        thin.advance(0.32)
        creep = (self._top(thin, "position") - before) / 0.32
        yield Finding(0.0, creep / np.sqrt(G * 18 * H), 1e-3, "creep at 0.9 H_c [sqrt(g H)]")
        for index, consistency in self.pastes.items():
            yield from self._flow(index, consistency)

    def _flow(self, index: float, consistency: float) -> Iterator[Finding]:
        """Let a thick layer flow."""
        power = 1.0 + 1.0 / index
        plug = index / (index + 1.0) * (self.drive / consistency) ** (1.0 / index) * (4 * H) ** power
        thick = self._layer(24, plug, index, H / self.fine[index])
        thick.advance(1.2)
        yield Finding.relative(plug, self._top(thick, "velocity"), 0.1, f"speed of the plug at 1.2 H_c, n = {index:g} [m/s]")
        height, speed = column(thick, "position")[:, 1], column(thick, "velocity")[:, 0]
        for cells, share in ((4.0, 1.0), (2.0, 1.0 - 0.5**power)):
            here = np.abs(height / H - cells) < 0.5
            what = f"speed {cells:g} cells above the floor, n = {index:g} [m/s]"
            yield Finding.relative(share * plug, float(speed[here].mean()), 0.1, what)

    def _layer(self, cells: int, plug: float = 0.0, index: float = 1.0, h: float = H) -> SubstepSolver:
        """Return a layer of so many cells of H that flows with a plug of this speed [m/s], solved with cells of h [m]."""
        edge, top, power = 8 * h, cells * H, 1.0 + 1.0 / index
        start = block(paste(self.drive * self.critical, self.pastes[index], index), (0, 0, 0), (edge, top, 2 * h), h)
        below = 1.0 - np.minimum(start["position"][:, 1] / (top - self.critical), 1.0) if plug else np.zeros(len(start))
        velocity, gradient = np.zeros((len(start), 3)), np.zeros((len(start), 3, 3))
        velocity[:, 0] = plug * (1.0 - below**power)
        gradient[:, 0, 1] = plug * power * below ** (1.0 / index) / (top - self.critical if plug else 1.0)
        around = WallRule.PERIODIC
        return SubstepSolver(
            changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
            cell_size=h,
            walls=walled((0, 0, 0), (edge, 2 * top, 2 * h), around, around, STICKY, OPEN, SLIP, SLIP),
            gravity=(G * float(np.sin(self.lean)), -G * float(np.cos(self.lean)), 0.0),
            dtype=np.float64,
        )

    @staticmethod
    def _top(solver: SubstepSolver, name: str) -> float:
        """Return the mean of an attribute along the slope over the upper half of the layer."""
        height = column(solver, "position")[:, 1]
        chosen = height > 0.5 * height.max()
        return float(column(solver, name)[chosen, 0].mean())


class CylinderSlump(VerificationProblem):
    """A cylinder of paste sinks until its yield stress bears it.

    Scene: a cylinder of 16 cells' height and diameter on a sticky floor, of a Bingham paste with t' = tau_Y / (rho g H) of 0.1,
        0.15, 0.2 and 0.3, let go at once, for 1.5 s, in the substeps and the precision of a solve that is told nothing. Its weight
        shortens it by 0.1 % before it yields.
    Exact: s' = 1 - sqrt(3) t' (1 - ln(sqrt(3) t')), by which share of its height it sinks: sections that stay flat, and yield as
        von Mises has it, where their load exceeds sqrt(3) tau_Y (Roussel and Coussot 2005). With 2 in place of sqrt(3), as Tresca
        has it, this is the formula of Pashias (1996).
    Tolerance: 15 % of s', for a formula that knows nothing of the floor. Missed at t' = 0.3, 28 % too little: only the lower half
        yields there, and the floor holds its sole. Without friction on the floor it sinks by 0.18, on cells of two thirds the size
        by 0.106 in place of 0.101. By Tresca's criterion 0.15 and 0.2 miss, 16 % and 30 % too much.
    """

    name = "cylinder_slump"
    source = "Roussel and Coussot 2005; Pashias 1996"
    slow = True
    misses = (
        "slump at t' = 0.15 by Tresca [H]",
        "slump at t' = 0.2 by Tresca [H]",
        "slump at t' = 0.3 by von Mises [H]",
    )

    shares = (0.1, 0.15, 0.2, 0.3)
    criteria: ClassVar[dict[str, float]] = {"von Mises": float(np.sqrt(3.0)), "Tresca": 2.0}
    """Axial load at yield, of tau_Y."""

    def findings(self) -> Iterator[Finding]:
        """Let them go."""
        height, slumps = 16 * H, []
        for share in self.shares:
            solver = self._cylinder(height, share)
            solver.advance(1.5)
            slumps.append(1.0 - self._height(solver) / height)
            for law in self.criteria:
                exact = float(self.slump(share, law))
                advice = "the law yields as von Mises has it" if law == "Tresca" else ""
                yield Finding(exact, slumps[-1], 0.15 * exact, f"slump at t' = {share:g} by {law} [H]", advice)
            speed = np.linalg.norm(column(solver, "velocity"), axis=1).max()
            yield Finding(0.0, float(speed / np.sqrt(G * height)), 0.02, f"speed at the end at t' = {share:g} [sqrt(g H)]")
        measured = np.array(self.shares), np.array(slumps)
        through = np.linspace(0.05, 0.35, 200)
        for law in self.criteria:
            self.show(f"by {law}", ("yield stress, of rho g H", "slump, of H"), measured, (through, self.slump(through, law)))

    @classmethod
    def slump(cls, share: Any, law: str) -> Any:
        """Return s' at the yield stresses t', by a criterion."""
        load = cls.criteria[law] * share
        return 1.0 - load * (1.0 - np.log(load))

    @staticmethod
    def _cylinder(height: float, share: float) -> SubstepSolver:
        radius = 0.5 * height
        matter = paste(share * DENSITY * G * height, 50.0, shear_modulus=2e5)
        whole = block(matter, (-radius, 0, -radius), (radius, height, radius), H)
        inside = np.hypot(whole["position"][:, 0], whole["position"][:, 2]) < radius
        start = Particles({name: values[inside] for name, values in whole.attributes.items()}, whole.materials, whole.spacing)
        room = 3.0 * height
        return SubstepSolver(
            start,
            cell_size=H,
            walls=walled((-room, 0, -room), (room, room, room), OPEN, OPEN, STICKY, OPEN, OPEN, OPEN),
            gravity=(0.0, -G, 0.0),
        )

    @staticmethod
    def _height(solver: SubstepSolver) -> float:
        """Return the height of the middle of the top [m]: half a particle's spacing above the highest quarter of the axis."""
        position = column(solver, "position")
        near = np.hypot(position[:, 0], position[:, 2]) < 2.0 * H
        return float(np.quantile(position[near, 1], 0.98) + 0.25 * H)
