"""What avoid-a-void may not make or lose, and the voids that it must not leave (Y15 section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mpm_nodes.data import Kernel, Particles, Transfer
from mpm_nodes.physics.foam.numerics.resampling import ResamplingSettings, resample
from mpm_nodes.physics.foam.stages.avoid_a_void import COVERAGE
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import angular_momentum, centre_of_mass, column, momentum, momentum_scale
from mpm_nodes.verification.scenes import ball, changed, material

SETTINGS = ResamplingSettings(Kernel.QUADRATIC, Transfer.APIC, True, COVERAGE, 2.2, 0.03, 1.0 / 32.0, 1)
"""A call with the defaults of the stage."""


class ResampledTotals(VerificationProblem):
    """Filling voids and merging twins keeps mass, volume, momentum and angular momentum.

    Scene: a foam ball of radius 3 cells, stretched by a quarter, with random masses and motion and a few particles on top of
        others; one call with the conserving option, float64.
    Exact: sum m, sum V0, sum m v and sum x x m v + l_p stay; the centre of mass moves by what the call reports; the kinetic energy
        does not grow.
    Tolerance: float64: 1e-12 of the sums of absolute values.
    """

    name = "resampled_totals"
    source = "Y15 algorithms 19 and 21, with donated momentum"

    def findings(self) -> Iterator[Finding]:
        """Resample once."""
        h, random = 0.1, np.random.default_rng(1)
        start = ball(material("herschel_bulkley"), (0.0, 0.0, 0.0), 3 * h, h)
        n, x = len(start), start["position"] * [1.25, 1.0, 0.95]
        x[:900:60] = x[1:901:60] + random.uniform(-2e-4, 2e-4, (15, 3))
        start = changed(
            start,
            position=x,
            velocity=random.normal(size=(n, 3)),
            affine=random.normal(size=(n, 3, 3)),
            mass=random.uniform(0.5, 1.5, n),
            volume=random.uniform(0.5, 1.5, n) * h**3 / 8,
        )
        solver = SubstepSolver(start, "continuum_foam", cell_size=h, dtype=np.float64)
        mass, volume = column(solver, "mass").sum(), column(solver, "volume").sum()
        p, turn, scale, centre = momentum(solver), angular_momentum(solver), momentum_scale(solver), centre_of_mass(solver)
        energy = self._energy(solver)
        outcome = resample(solver.particles, SETTINGS)
        yield Finding(1.0, float(outcome.inserted > 50 and outcome.merged > 5), 0.0, "something happened")
        yield Finding.relative(mass, column(solver, "mass").sum(), 1e-12, "mass")
        yield Finding.relative(volume, column(solver, "volume").sum(), 1e-12, "volume")
        yield Finding(0.0, np.abs(momentum(solver) - p).max() / scale, 1e-12, "momentum")
        yield Finding(0.0, np.abs(angular_momentum(solver) - turn).max() / (3 * h * scale), 1e-12, "angular momentum")
        yield Finding(0.0, np.abs(centre_of_mass(solver) - centre - outcome.centre_shift).max() / h, 1e-12, "centre of mass")
        yield Finding(0.0, max(0.0, self._energy(solver) / energy - 1.0), 1e-12, "energy growth")

    @staticmethod
    def _energy(solver: SubstepSolver) -> float:
        return float(0.5 * column(solver, "mass") @ (column(solver, "velocity") ** 2).sum(axis=1))


class StretchedWithoutVoid(VerificationProblem):
    """Matter that is drawn out three times as long has no empty cell inside, and without resampling many.

    Scene: a foam ball of radius 8 cells carried by a volume-preserving stretch to 3.3 times its length in 14 steps, with a call
        after each; the same ball without calls; and with calls down to a quarter of r, of a coverage of 0.95, that give back.
    Exact: no cell that the deformed ball contains with six tenths of a cell to spare is empty, counted just before each call. As
        the volume stays, so does the number of particles where it is given back.
    Tolerance: none; without calls more than 100 cells are empty at the end. 5 % of the number at any time.
    """

    name = "stretched_without_void"
    source = "Y15 figure 6"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Stretch both balls."""
        yield Finding(0.0, max(self._voids(SETTINGS)[0]), 0.0, "most empty cells with calls")
        yield Finding(1.0, float(self._voids(None)[0][-1] > 100), 0.0, "many without")
        empty, counts = self._voids(replace(SETTINGS, finest=0.25, coverage=0.95, give_back=1.6))
        yield Finding(0.0, max(empty), 0.0, "most empty cells with calls that give back")
        yield Finding(0.0, max(counts, key=abs), 0.05, "largest change of their number with calls that give back")

    def _voids(self, settings: ResamplingSettings | None) -> tuple[list[int], list[float]]:
        """Return the empty cells before each call, and by what share the number of particles has changed after it."""
        h, steps = 0.1, 14
        start = ball(material("herschel_bulkley"), (0.0, 0.0, 0.0), 8 * h, h)
        solver = SubstepSolver(Particles(start.attributes, start.materials, start.spacing), "continuum_foam", cell_size=h)
        particles, found, stretch = solver.particles, [], np.ones(3)
        counts: list[float] = []
        for _ in range(steps):
            each = np.exp(np.array([1.2, -0.6, -0.6]) / steps)
            stretch = stretch * each
            particles.pack("position", particles.unpack("position") * each)
            found.append(self._empty_cells(particles.unpack("position") / h, 8.0, stretch))
            if settings is not None:
                resample(particles, settings)
            counts.append(particles.count / len(start) - 1.0)
        return found, counts

    @staticmethod
    def _empty_cells(position: np.ndarray, radius: float, stretch: np.ndarray) -> int:
        """Count empty cells inside an ellipsoid; all lengths in cells."""
        reach = np.ceil(radius * stretch).astype(int) + 1
        cells = np.stack(np.meshgrid(*(np.arange(-n, n) for n in reach), indexing="ij"), -1).reshape(-1, 3)
        far = (np.maximum(np.abs(cells - 0.6), np.abs(cells + 1.6)) / (radius * stretch)) ** 2
        cells = cells[far.sum(axis=1) < 1.0]
        filled = {tuple(cell) for cell in np.floor(position).astype(int)}
        return sum(tuple(cell) not in filled for cell in cells)
