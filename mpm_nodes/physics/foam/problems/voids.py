"""Voids in matter that a solve stretches and shears, with avoid-a-void and without it (Y15 figure 6)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mpm_nodes.materials.library import named_material
from mpm_nodes.physics.foam.stages.avoid_a_void import COVERAGE
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.cells import cells_of, grown
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import ball, changed

GAP = 2
"""Layers of cells by which filled cells are grown, and then shrunk with one layer more: what lies between them is inside."""


class SolvedWithoutVoid(VerificationProblem):
    """A foam ball that a solve draws out and shears has no empty cell inside, and without resampling many.

    Scene: shaving cream in a ball of radius 8 cells of 30 mm, let go with a velocity gradient of 22/s along x, -11/s across and a
        shear of 11/s, solved for 0.1 s without gravity by the source's rule (one call in 50 substeps) with the source's time
        step for that cell, an eighth of the elastic one (0.1 ms): it is drawn out to three times its length; and without calls.
    Exact: no empty cell inside, counted in each substep with a call after everything else and before the call; the same substeps
        without calls. Inside is what filled cells enclose when they are grown by two layers of cells and shrunk by three: cells
        alone, no spheres, depths or darts. Calls change no mass.
    Tolerance: none for the cells; without calls more than 60 are empty in the end. Mass: 1e-5 (float32).
    """

    name = "solved_without_void"
    source = "Y15 figure 6"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Solve both."""
        filled, counts, mass = solved(calls=True, coverage=COVERAGE, give_back=0.0)
        left, same, _ = solved(calls=False)
        made, none = counts[-1] - counts[0], same[-1] - same[0]
        yield Finding(0.0, max(filled), 0.0, "most empty cells before a call")
        yield Finding(1.0, float(left[-1] > 60), 0.0, "many without calls")
        yield Finding(1.0, float(len(filled) >= 15 and made > 1000 and none == 0), 0.0, "several calls, and what they made")
        yield Finding.relative(mass[0], mass[1], 1e-5, "mass")


class SolvedAtEqualCount(VerificationProblem):
    """A foam ball that a solve draws out and shears keeps its number of particles where resampling gives back, without a void.

    Scene: that of `solved_without_void`, by the preset as it is.
    Exact: no empty cell inside. The matter keeps its volume, and so the number of its particles; no call changes its mass.
    Tolerance: none for the cells; 5 % of the number in any substep, a sixth of what the source's rule adds; 1e-5 (float32).
    """

    name = "solved_at_equal_count"
    source = "Y15 tables; a rule of our own"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Solve."""
        filled, counts, mass = solved(calls=True)
        changes = np.array(counts) / counts[0] - 1.0
        yield Finding(0.0, max(filled), 0.0, "most empty cells before a call")
        yield Finding(0.0, float(changes[np.argmax(np.abs(changes))]), 0.05, "largest change of the number of particles")
        yield Finding.relative(mass[0], mass[1], 1e-5, "mass")


def solved(calls: bool, **knobs: float) -> tuple[list[int], list[int], tuple[float, float]]:
    """Solve the drawn-out ball.

    Args:
        calls: Whether to resample.
        knobs: Of `avoid_a_void`.

    Returns:
        The empty cells before each call, the particles at the start and after each substep, and the mass [kg] at the beginning
        and at the end.
    """
    h, interval, end = 0.03, 50, 0.1
    gradient = np.array([[22.0, 0.0, 0.0], [11.0, -11.0, 0.0], [0.0, 0.0, -11.0]])
    start = ball(named_material("shaving_cream"), (0.0, 0.0, 0.0), 8 * h, h)
    start = changed(start, velocity=start["position"] @ gradient.T)
    settings = {f"avoid_a_void.{name}": value for name, value in knobs.items()}
    recipe = {"preset": "continuum_foam", "set": {"resampling_interval": interval if calls else 1 << 30, **settings}}
    solver = SubstepSolver(start, recipe, cell_size=h, gravity=(0.0, 0.0, 0.0), dt_max=1e-4)
    mass, found, stages, counts = column(solver, "mass").sum(), [], itertools.count(), [len(start)]

    def before_stage() -> None:
        """Count before the last of the stages, which resamples."""
        if next(stages) % len(solver.plan.stages) == len(solver.plan.stages) - 1 and (solver.substeps_done + 1) % interval == 0:
            found.append(empty_cells_inside(solver.particles.unpack("position") / h))

    while solver.time < end * (1.0 - 1e-9):
        solver.step(time_left=end - solver.time, check_cancel=before_stage)
        counts.append(solver.particles.count)
    return found, counts, (mass, column(solver, "mass").sum())


def empty_cells_inside(position: np.ndarray) -> int:
    """Count cells without a particle that lie deeper than a layer of cells inside the matter; positions in cells, shape (n, 3)."""
    _, filled = cells_of(np.asarray(position, float), 1.0, margin=GAP + 2)
    closed = filled
    for _ in range(GAP):
        closed = grown(closed, diagonal=True)
    outside = ~closed
    for _ in range(GAP + 1):
        outside = grown(outside, diagonal=True)
    return int((~outside & ~filled).sum())
