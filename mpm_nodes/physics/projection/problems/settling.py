"""Liquids that come to rest: a gap inside them closes, and what they say of their volume stays true."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import concatenate
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, material, walled

CELL, WIDTH, LAYER, GAP, STEP = 0.1, 0.4, 0.5, 0.05, 5e-3


def layers(rate: float) -> SubstepSolver:
    """Return two layers of liquid in a box with slip walls, 4 x 5 x 4 cells each, with half a cell of nothing between them.

    Args:
        rate: See `correct_density`.
    """
    water = material("liquid", 1000.0)
    parts = [
        block(water, (0.0, low, 0.0), (WIDTH, low + LAYER, WIDTH), CELL, jitter=0.2, seed=seed)
        for seed, low in enumerate((0.0, LAYER + GAP))
    ]
    return SubstepSolver(
        concatenate(parts),
        {"preset": "incompressible", "set": {"density_rate": rate}},
        cell_size=CELL,
        walls=walled((0, 0, 0), (WIDTH, 20 * CELL, WIDTH), SLIP),
        dtype=np.float64,
        dt_max=STEP,
    )


def measured(run: SubstepSolver) -> tuple[float, float, float]:
    """Return the largest |density - 1| of layers of cells that no end is near, the mean height of the particles [m], the mean J."""
    height, volume = column(run, "position")[:, 1], column(run, "volume")
    middles = CELL * (np.arange(2, 2.0 * LAYER / CELL - 3.0) + 0.5)
    away = (height[None, :] - middles[:, None]) / CELL
    # what the faces of a cell hold in the mean: two along the height, four across
    weights = (quadratic(away - 0.5) + quadratic(away + 0.5)) / 6.0 + 2.0 * quadratic(away) / 3.0
    density = weights @ volume / (WIDTH**2 * CELL)
    J = 1.0 + column(run, "volume_change").mean()
    return float(np.abs(density - 1.0).max()), float(height.mean()), float(J)


def quadratic(x: np.ndarray) -> np.ndarray:
    """Return the quadratic B-spline at x."""
    far = np.maximum(1.5 - np.abs(x), 0.0)
    return np.where(np.abs(x) < 0.5, 0.75 - x**2, 0.5 * far**2)


class SettledColumn(VerificationProblem):
    """Liquid closes a gap inside it under its own weight, and then keeps its density and its volume ratios.

    Scene: two layers of liquid of 4 x 5 x 4 cells, their particles shifted at random, in a box with slip walls, half a cell of
        nothing between them; 2 s in gravity.
    Exact: one column of twice the height of a layer: its middle lies at that height, every layer of cells is full, J = 1.
    Tolerance: 2 % of the density and of J, a tenth of a cell of the height; without correct_density the gap stays: the density
        of a layer of cells is off by at least 10 %.
    """

    name = "settled_column"
    source = "conservation of volume"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it settle, with and without the correction."""
        run = layers(5.0)
        run.advance(2.0)
        worst, middle, J = measured(run)
        yield Finding(0.0, worst, 0.02, "density of layers of cells less that at rest")
        yield Finding(LAYER, middle, 0.1 * CELL, "height of the middle")
        yield Finding(1.0, J, 0.02, "J")
        run = layers(0.0)
        run.advance(0.2)
        yield Finding(1.0, float(measured(run)[0] > 0.1), 0.0, "the gap stays without the correction")
