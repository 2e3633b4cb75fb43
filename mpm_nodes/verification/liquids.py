"""Weakly compressible liquid without (much) viscosity: a pool at rest, a breaking dam."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, block, material, settle, walled


class HydrostaticPool(VerificationProblem):
    """A pool at rest carries its own weight.

    Scene: a liquid pool of 8 x 16 x 2 cells (16 high), bulk = 20 rho g H, viscosity 0.1 rho c H, slip walls on node
        planes, open top, velocities damped until it rests.
    Exact: p = - bulk (J - 1) = rho_0 g (H_0 - Y) in reference heights (with current heights and the reference density
        it would be off by p / (2 bulk)), as the mean over each cell layer, which is what carries the weight.
    Tolerance: 3 % of the pressure at the floor, in all layers but the one at the floor, which reads 16 to 19 % high
        (its nodes see half-empty stencils); speeds below 1e-3 sqrt(g H).
    """

    name = "hydrostatic_pool"
    source = "textbook (hydrostatics)"

    def findings(self) -> Iterator[Finding]:
        """Let it settle."""
        h, cells, g, density = 0.05, 16, 9.81, 1000.0
        height = cells * h
        bulk = 20 * density * g * height
        c = np.sqrt(bulk / density)
        water = material("liquid", density, bulk_modulus=bulk, viscosity=0.1 * density * c * height)
        start = block(water, (0, 0, 0), (8 * h, height, 2 * h), h)
        walls = walled((0, 0, 0), (8 * h, 2 * height, 2 * h), SLIP, SLIP, SLIP, OPEN, SLIP, SLIP)
        solver = SubstepSolver(start, cell_size=h, walls=walls, gravity=(0, -g, 0))
        settle(solver, 12 * height / c, np.pi * c / height)
        y = start["position"][solver.particles.unpack("id"), 1]
        error = -bulk * column(solver, "volume_change") - density * g * (height - y)
        layer = np.floor(y / h).astype(int)
        mean = np.bincount(layer, error) / np.bincount(layer) / (density * g * height)
        middle = (np.arange(len(mean)) + 0.5) / len(mean)
        axes = ("reference height over H", "mean pressure of a layer, of rho g H")
        self.show("pressure", axes, (middle, mean + 1.0 - middle), (middle, 1.0 - middle), 0.03)
        yield Finding(0.0, np.abs(mean[1:]).max(), 0.03, "pressure error, of the floor's")
        yield Finding(0.0, np.abs(column(solver, "velocity")).max() / np.sqrt(g * height), 1e-3, "speed, of sqrt(g H)")


class DamBreak(VerificationProblem):
    """The front of a breaking dam runs at the speed of shallow water.

    Scene: a liquid column 2 H long and H = 20 cells high, 2 cells deep, on a slip floor before a slip back wall, c =
        12 sqrt(g H).
    Exact: front x <= 2 sqrt(g H) t ahead of the dam always; its speed between 1.4 and 2.0 sqrt(g H) for 1 < t sqrt(g
        / H) < 3.
    Tolerance: the bounds; the front may lead by two cells while the column still fills its lowest nodes.
    """

    name = "dam_break"
    source = "Ritter 1892"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Break the dam and follow the particle that is furthest ahead."""
        h, g, density = 0.05, 9.81, 1000.0
        height = 20 * h
        unit, speed = np.sqrt(height / g), np.sqrt(g * height)
        water = material("liquid", density, bulk_modulus=density * (12 * speed) ** 2)
        start = block(water, (0, 0, 0), (2 * height, height, 2 * h), h)
        walls = walled((0, 0, 0), (10 * height, 4 * height, 2 * h), SLIP, OPEN, SLIP, OPEN, SLIP, SLIP)
        solver = SubstepSolver(start, cell_size=h, walls=walls, gravity=(0, -g, 0))
        time, front = [], []
        while solver.time < 3 * unit:
            solver.advance(0.05 * unit)
            time.append(solver.time)
            front.append(np.sort(column(solver, "position")[:, 0])[-20] - 2 * height)
        t, x = np.array(time) / unit, np.array(front) / height
        slope = np.polyfit(t[t > 1], x[t > 1], 1)[0]
        self.show("front, and the bound 2 sqrt(g H) t", ("time, of sqrt(H / g)", "way of the front, of H"), (t, x), (t, 2.0 * t))
        yield Finding(1.7, slope, 0.3, "front speed, of sqrt(g H)")
        yield Finding(0.0, max((x - 2 * t).max(), 0.0), 2 * h / height, "ahead of 2 sqrt(g H) t, of H")
