"""Implicit substeps: convergence and what happens without it, guards, Krylov methods, and the promises of every solve."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, SNOW, cube, values

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, WallRule, Walls, concatenate
from mpm_nodes.kernels.level_set import PLANE, SPHERE, PosedLevelSets
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.run import SubstepSolver

RUBBER = Material("neo_hookean", {"youngs_modulus": 1e6}, 1000.0, "rubber")


def implicit(**settings):
    """Return the implicit preset with some of its knobs set."""
    return {"preset": "implicit_apic", "set": settings}


def tally(solver):
    """Return what the implicit substeps of the frame took."""
    return solver.step_context.report["implicit"]


def spinning(material, cells=3, omega=(6.0, 9.0, -4.0), speed=(0.0, 0.0, 0.0)):
    """Return a cube that turns about its middle and flies."""
    start = cube(material, cells=cells)
    velocity = np.cross(omega, start["position"] - start["position"].mean(axis=0)) + speed
    return Particles({**start.attributes, "velocity": velocity}, start.materials, start.spacing)


# ---------------------------------------------------------------- convergence
def test_a_solve_down_to_rounding_converges():
    """Steps too short for their energies to differ count as none: no substep is halved on their account (float64, 1e-9 cells)."""
    solver = SubstepSolver(spinning(RUBBER), implicit(tolerance=1e-9, **{"minimise_energy.krylov_tolerance": 1e-10}),
                           cell_size=0.1, gravity=(0, 0, 0), dtype=np.float64)
    for _ in range(20):
        assert solver.step(2e-4) == 2e-4
    assert tally(solver).halved == 0 and tally(solver).substeps == 20
