"""How particles are laid out: Poisson-disc distances and coverage, masses of lattices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.nodes.seeding import POISSON_RADIUS, Seeding
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import ball, block, material

CELL = 0.1


def _nearest(probes: np.ndarray, points: np.ndarray, itself: bool = False) -> np.ndarray:
    """Return each probe's distance to the nearest point; with `itself`, probe n is point n and does not count."""
    found = np.empty(len(probes))
    for begin in range(0, len(probes), 256):
        part = probes[begin : begin + 256]
        square = ((part[:, None] - points[None]) ** 2).sum(-1)
        if itself:
            square[np.arange(len(part)), begin + np.arange(len(part))] = np.inf
        found[begin : begin + 256] = np.sqrt(square.min(1))
    return found


class PoissonDisc(VerificationProblem):
    """Poisson-disc seeding keeps its distance exactly, leaves no holes, and repeats itself.

    Scene: a box of 7^3 cells and a ball of radius 4 cells, r = 0.42 cells, 30 tries, seed 3.
    Exact: no pair closer than r; at most 1 % of random probes further than r from every particle and none further
        than 2 r; N r^3 / V between 0.55 and 0.70; all particles inside; equal seeds give equal particles, others do
        not.
    Tolerance: none for the distance; the bounds for the counts.
    """

    name = "poisson_disc"
    source = "Bridson 2007; B18 section 2"

    def findings(self) -> Iterator[Finding]:
        """Seed a box and a ball."""
        matter, r, edge = material("snow"), POISSON_RADIUS * CELL, 7 * CELL
        x = block(matter, (0, 0, 0), (edge, edge, edge), CELL, seeding=Seeding.POISSON, seed=3)["position"]
        yield Finding(0.0, max(0.0, 1.0 - _nearest(x, x, itself=True).min() / r), 0.0, "pairs closer than r, box")
        yield Finding(0.625, len(x) * r**3 / edge**3, 0.075, "N r^3 / V")
        probes = np.random.default_rng(0).uniform(r, edge - r, (4000, 3))
        hole = _nearest(probes, x)
        yield Finding(0.0, (hole > r).mean(), 0.01, "probes further than r")
        yield Finding(0.0, max(0.0, hole.max() / (2 * r) - 1.0), 0.0, "probes further than 2 r")
        yield Finding(0.0, np.abs(np.clip(x, 0, edge) - x).max(), 1e-12, "particles outside")
        again = block(matter, (0, 0, 0), (edge, edge, edge), CELL, seeding=Seeding.POISSON, seed=3)["position"]
        other = block(matter, (0, 0, 0), (edge, edge, edge), CELL, seeding=Seeding.POISSON, seed=4)["position"]
        yield Finding(1.0, float(np.array_equal(x, again) and not np.array_equal(x, other)), 0.0, "the seed decides")
        x = ball(matter, (1.0, 2.0, 3.0), 4 * CELL, CELL, seeding=Seeding.POISSON, seed=3)["position"]
        yield Finding(0.0, max(0.0, 1.0 - _nearest(x, x, itself=True).min() / r), 0.0, "pairs closer than r, ball")
        outside = np.linalg.norm(x - [1.0, 2.0, 3.0], axis=1).max() - 4 * CELL
        yield Finding(0.0, max(0.0, outside), 1e-12, "particles outside, ball")


class SeededMass(VerificationProblem):
    """The mass of what was seeded is density times volume, on a lattice and on Poisson discs.

    Scene: a box that is not a whole number of spacings wide, and a ball, lattice and Poisson disc.
    Exact: sum m = rho |region|, sum V0 = |region|; on a lattice eight particles a cell.
    Tolerance: 1e-12 for the sums of float64 columns; none for the count.
    """

    name = "seeded_mass"
    source = "definition of the particle volumes (V0 = |region| / N)"

    def findings(self) -> Iterator[Finding]:
        """Seed every combination."""
        matter = material("neo_hookean", density=700.0)
        box_volume, ball_volume = 0.73 * 0.31 * 0.5, 4 / 3 * np.pi * 0.45**3
        for seeding in Seeding:
            for what, volume, start in (
                ("box", box_volume, block(matter, (0, 0, 0), (0.73, 0.31, 0.5), CELL, seeding=seeding)),
                ("ball", ball_volume, ball(matter, (0, 0, 0), 0.45, CELL, seeding=seeding)),
            ):
                yield Finding.relative(700.0 * volume, start["mass"].sum(), 1e-12, f"mass {what} {seeding.value} [kg]")
                yield Finding.relative(volume, start["volume"].sum(), 1e-12, f"volume {what} {seeding.value} [m^3]")
        yield Finding(8 * 6**3, len(block(matter, (0, 0, 0), (0.6, 0.6, 0.6), CELL)), 0.0, "lattice of 6^3 cells")
