"""Liquids that come to rest: a gap inside them closes, and what they say of their volume stays true."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import concatenate
from mpm_nodes.solver.density import fillings
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, material, walled

CELL, WIDTH, LAYER, GAP, STEP = 0.1, 0.4, 0.5, 0.05, 5e-3


def layers(share: float) -> SubstepSolver:
    """Return two layers of liquid in a box with slip walls, 4 x 5 x 4 cells each, with half a cell of nothing between them.

    Args:
        share: See `follow_density`.
    """
    water = material("liquid", 1000.0)
    parts = [
        block(water, (0.0, low, 0.0), (WIDTH, low + LAYER, WIDTH), CELL, jitter=0.2, seed=seed)
        for seed, low in enumerate((0.0, LAYER + GAP))
    ]
    return SubstepSolver(
        concatenate(parts),
        {"preset": "incompressible", "set": {"density_correction": share}},
        cell_size=CELL,
        walls=walled((0, 0, 0), (WIDTH, 20 * CELL, WIDTH), SLIP),
        dtype=np.float64,
        dt_max=STEP,
    )


def measured(run: SubstepSolver) -> tuple[float, float, float]:
    """Return the largest |filling - 1| of the deep cells' layers, the mean height of the particles [m], the mean J."""
    staggered = run.stores["staggered"]
    found = fillings(staggered, run.colliders, run.step_context.dt)
    height = staggered.positions((1, 1, 1))[:, 1]
    rows = np.unique(height[found.deep])
    means = [found.share[found.deep & (height == row)].mean() for row in rows]
    worst = float(np.abs(np.array(means) - 1.0).max()) if means else float("nan")
    return worst, float(column(run, "position")[:, 1].mean()), float(1.0 + column(run, "volume_change").mean())


class SettledColumn(VerificationProblem):
    """Liquid closes a gap inside it under its own weight, and then keeps its density and its volume ratios.

    Scene: two layers of liquid of 4 x 5 x 4 cells, their particles shifted at random, in a box with slip walls, half a cell of
        nothing between them; 2 s in gravity.
    Exact: one column of twice the height of a layer: its middle lies at that height, every layer of cells is full, J = 1.
    Tolerance: 2 % of the density and of J, a tenth of a cell of the height; without density_correction the gap stays: the density
        of a layer of cells is off by at least 10 %.
    """

    name = "settled_column"
    source = "conservation of volume"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it settle, with and without the correction."""
        run = layers(0.1)
        run.advance(2.0)
        worst, middle, J = measured(run)
        yield Finding(0.0, worst, 0.02, "density of layers of cells less that at rest")
        yield Finding(LAYER, middle, 0.1 * CELL, "height of the middle")
        yield Finding(1.0, J, 0.02, "J")
        run = layers(0.0)
        run.advance(0.2)
        yield Finding(1.0, float(measured(run)[0] > 0.1), 0.0, "the gap stays without the correction")
