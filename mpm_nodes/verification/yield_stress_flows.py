"""Yield-stress matter under its own weight: a layer on an incline, and a cylinder that slumps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Material, Particles, WallRule
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, STICKY, block, changed, material, settle, walled

__all__ = ["CylinderSlump", "LayerOnIncline"]

G, DENSITY, H = 9.81, 1000.0, 0.01


def paste(shear_yield: float, viscosity: float) -> Material:
    """Return a Bingham paste: tau = shear_yield [Pa] + viscosity [Pa s] * rate in simple shear, stiff against both."""
    return material(
        "herschel_bulkley",
        DENSITY,
        shear_modulus=2e4,
        bulk_modulus=4e5,
        yield_stress=float(np.sqrt(3.0)) * shear_yield,
        consistency=2.0 * viscosity,
        flow_index=1.0,
    )


class LayerOnIncline(VerificationProblem):
    """A layer of paste rests on an incline as long as it is thin, and flows with a plug on top where it is thicker.

    Scene: 8 x 8 cells, periodic along the slope and across, on a sticky floor under gravity that leans by 30 degrees; a Bingham
        paste that flows where the layer is thicker than H_c of 20 cells; float64. 18 cells thick, damped until it bears its
        weight, then 0.32 s, two periods of its shear; and 24 cells thick, from the profile of the formula, for 1.2 s, three times
        what its plug needs to change its speed.
    Exact: at 0.9 H_c no flow. At 1.2 H_c the plug goes at rho g sin(a) (H - H_c)^2 / (2 K), and reaches down to H_c below the
        surface: at that depth the velocity is the plug's, and halfway to the floor three quarters of it.
    Tolerance: 1e-3 sqrt(g H) for what creeps; 10 % of the plug's speed.
    """

    name = "layer_on_incline"
    source = "Bingham"
    slow = True

    critical, lean, viscosity = 20 * H, np.radians(30.0), 20.0

    def findings(self) -> Iterator[Finding]:
        """Rest, then flow."""
        thin = self._layer(18)
        settle(thin, 0.4, 40.0)
        before = self._top(thin, "position")
        thin.advance(0.32)
        creep = (self._top(thin, "position") - before) / 0.32
        yield Finding(0.0, creep / np.sqrt(G * 18 * H), 1e-3, "creep at 0.9 H_c [sqrt(g H)]")
        flowing = 4 * H
        plug = DENSITY * G * float(np.sin(self.lean)) * flowing**2 / (2.0 * self.viscosity)
        thick = self._layer(24, plug)
        thick.advance(1.2)
        yield Finding.relative(plug, self._top(thick, "velocity"), 0.1, "speed of the plug at 1.2 H_c [m/s]")
        height, speed = column(thick, "position")[:, 1], column(thick, "velocity")[:, 0]
        for cells, share in ((4.0, 1.0), (2.0, 0.75)):
            here = np.abs(height / H - cells) < 0.5
            yield Finding.relative(share * plug, float(speed[here].mean()), 0.1, f"speed {cells:g} cells above the floor [m/s]")

    def _layer(self, cells: int, plug: float = 0.0) -> SubstepSolver:
        """Return a layer that flows with a plug of this speed [m/s]."""
        edge, top = 8 * H, cells * H
        start = block(
            paste(DENSITY * G * float(np.sin(self.lean)) * self.critical, self.viscosity), (0, 0, 0), (edge, top, edge), H
        )
        up = np.minimum(start["position"][:, 1] / (top - self.critical), 1.0) if plug else np.zeros(len(start))
        velocity, gradient = np.zeros((len(start), 3)), np.zeros((len(start), 3, 3))
        velocity[:, 0] = plug * up * (2.0 - up)
        gradient[:, 0, 1] = plug * 2.0 * (1.0 - up) / (top - self.critical if plug else 1.0)
        around = WallRule.PERIODIC
        return SubstepSolver(
            changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
            cell_size=H,
            walls=walled((0, 0, 0), (edge, 2 * top, edge), around, around, STICKY, OPEN, around, around),
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

    Scene: a cylinder of 16 cells' height and diameter on a sticky floor, of a Bingham paste with t' = tau_Y / (rho g H) of 0.15 and
        0.2, let go at once, for 1.5 s.
    Exact: s' = 1 - 2 t' (1 - ln(2 t')), by which share of its height it sinks: sections that stay flat, and yield where half their
        load exceeds tau_Y.
    Tolerance: 15 % of the height that is left, for a formula that knows neither the floor nor the yield surface.
    """

    name = "cylinder_slump"
    source = "Pashias 1996"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let both go."""
        height = 16 * H
        for share in (0.15, 0.2):
            solver = self._cylinder(height, share)
            solver.advance(1.5)
            left = self._height(solver)
            speed = np.linalg.norm(column(solver, "velocity"), axis=1).max()
            exact = 2.0 * share * (1.0 - np.log(2.0 * share))
            yield Finding.relative(float(exact), left / height, 0.15, f"height left at t' = {share:g} [H]")
            yield Finding(0.0, float(speed / np.sqrt(G * height)), 0.02, f"speed at the end at t' = {share:g} [sqrt(g H)]")

    @staticmethod
    def _cylinder(height: float, share: float) -> SubstepSolver:
        radius = 0.5 * height
        whole = block(paste(share * DENSITY * G * height, 50.0), (-radius, 0, -radius), (radius, height, radius), H)
        inside = np.hypot(whole["position"][:, 0], whole["position"][:, 2]) < radius
        start = Particles({name: values[inside] for name, values in whole.attributes.items()}, whole.materials, whole.spacing)
        room = 3.0 * height
        return SubstepSolver(
            start,
            cell_size=H,
            walls=walled((-room, 0, -room), (room, room, room), OPEN, OPEN, STICKY, OPEN, OPEN, OPEN),
            gravity=(0.0, -G, 0.0),
            dtype=np.float64,
        )

    @staticmethod
    def _height(solver: SubstepSolver) -> float:
        """Return the height of the middle of the top [m]: half a particle's spacing above the highest quarter of the axis."""
        position = column(solver, "position")
        near = np.hypot(position[:, 0], position[:, 2]) < 2.0 * H
        return float(np.quantile(position[near, 1], 0.98) + 0.25 * H)
