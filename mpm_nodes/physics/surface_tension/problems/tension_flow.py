"""Flow that a tension drives which changes along the surface (Marangoni), against exact profiles.

| symbol | meaning | unit |
|---|---|---|
| y, D | height over the floor, depth of the layer | m |
| u | velocity along the layer | m/s |
| tau | dk/dx, change of the tension along the surface | N/m^2 |
| nu, mu | viscosity over density, viscosity; density 1 | m^2/s, Pa s |

    start-up          u = (2 tau / mu) sqrt(nu t) ierfc((D - y) / (2 sqrt(nu t))),  before pressure comes from the ends
    closed ends       u = (tau / mu) (3 y^2 / (4 D) - y / 2),  which carries nothing on the whole
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import SurfaceTension
from mpm_nodes.physics.surface_tension.problems.surface_tension import H, liquid
from mpm_nodes.physics.surface_tension.problems.wetting import filled, in_slab
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, changed, settle, walled

__all__ = ["MarangoniLayer"]

CELLS = 10
DEPTH, LENGTH = CELLS * H, 4 * CELLS * H
VISCOSITY = DEPTH**2
"""One second is the viscous time D^2 / nu."""
GRAVITY = 50.0 * VISCOSITY**2 / DEPTH**3
SPEED = 0.2 * VISCOSITY / DEPTH
"""Of the surface, tau D / (4 mu): its Reynolds number is 0.2."""
SLOPE = 4.0 * VISCOSITY * SPEED / DEPTH
STIFFNESS = 100.0 * GRAVITY * DEPTH
COLD, HOT = 300.0, 400.0


def layer() -> SubstepSolver:
    """Return a layer at rest (slab) between two walls that slip, on a floor that sticks, warmer towards -x."""
    least = 0.5 * SLOPE * LENGTH
    matter = liquid(STIFFNESS, VISCOSITY)
    tension = SurfaceTension(least + SLOPE * LENGTH, least, COLD, HOT)
    matter = type(matter)(matter.law, matter.params, 1.0, "layer", viscosity=VISCOSITY, surface_tension=tension)
    block = filled((0, 0, 0), (4 * CELLS, CELLS, 1), lambda at: at[:, 0] > 0.0, matter)
    walls = walled((0.0, 0.0, 0.0), (LENGTH, 10.0 * DEPTH, H), SLIP, SLIP, STICKY, OPEN, SLIP, SLIP)
    run = in_slab(changed(block, temperature=np.full(len(block), 0.5 * (COLD + HOT))), walls, GRAVITY)
    settle(run, 0.1, 30.0)  # under its own weight, with one tension everywhere
    run.particles.rows("temperature")[0] = HOT + (COLD - HOT) * run.particles.unpack("position")[:, 0] / LENGTH
    return run


def start_up(y: np.ndarray, time: float) -> np.ndarray:
    """Return u of a layer that is deep against sqrt(nu t)."""
    width = math.sqrt(VISCOSITY * time)
    z = (DEPTH - y) / (2.0 * width)
    ierfc = np.exp(-z * z) / math.sqrt(math.pi) - z * np.array([math.erfc(each) for each in z])
    return np.asarray(2.0 * SLOPE / VISCOSITY * width * ierfc)


def circulation(y: np.ndarray) -> np.ndarray:
    """Return u of a layer whose ends are closed."""
    return np.asarray(SLOPE / VISCOSITY * (0.75 * y * y / DEPTH - 0.5 * y))


class MarangoniLayer(VerificationProblem):
    """A tension that grows along a layer drives the exact flow, as it starts and when it circulates.

    Scene: a layer of 10 by 40 cells (slab of one cell) with a viscosity of D^2 a second, the temperature and so the tension linear
        along it, Reynolds number 0.2, g D^3 / nu^2 = 50, explicit.
    Exact: at 0.04 viscous times the layer is deep, and no pressure has come from its ends yet; at 1.5 it circulates.
    Tolerance: 8 % of the surface's speed, root mean square over the depth, within half a depth of the middle.
    """

    name = "marangoni_layer"
    source = "Carslaw and Jaeger 1959 (half space under a constant flux); textbook: lubrication"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Compare both profiles."""
        run = layer()
        start = run.time
        for time, what in ((0.04, "start-up"), (1.5, "circulation")):
            run.advance(start + time - run.time)
            x, u = column(run, "position"), column(run, "velocity")[:, 0]
            middle = np.abs(x[:, 0] - 0.5 * LENGTH) < 0.5 * DEPTH
            y, u = x[middle, 1], u[middle]
            exact, speed = (start_up(y, time), start_up(np.array([DEPTH]), time)[0]) if time < 1.0 else (circulation(y), SPEED)
            yield Finding(0.0, float(np.sqrt(np.mean((u - exact) ** 2))) / speed, 0.08, f"{what}: error of the profile")
