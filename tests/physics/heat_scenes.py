"""Wax that melts on a hot plate."""

from __future__ import annotations

import dataclasses

import numpy as np
from solver_scenes import cube

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, Thermal
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver

SOLID = Material("snow", {"youngs_modulus": 2e4, "preserve_volume": True}, 900.0, "wax")
LIQUID = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 0.5}, 900.0, "molten wax")
FREEZING, LATENT = 320.0, 2000.0
WAX = dataclasses.replace(SOLID, thermal=Thermal(2000.0, 2e4, 3000.0, 1.5e4, LATENT, FREEZING, LIQUID))


def plate(temperature: float = 500.0) -> Collider:
    """Return the hot half space below y = 0."""
    shape = PosedLevelSets(PLANE, (), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, 3)))
    return Collider("plate", CollisionRule.SEPARATE, 0.2, shape, temperature=temperature)


def wax(temperature: float = 319.0, **columns: object) -> Particles:
    """Return a cube of wax near its freezing temperature; columns are one value for all, or one a particle."""
    found = cube(WAX, (0.0, 0.01, 0.0), temperature=temperature)
    wide = {name: np.broadcast_to(values, len(found)) for name, values in columns.items()}
    return dataclasses.replace(found, attributes={**found.attributes, **wide})


def solver(start: Particles, substeps: object = "explicit_heat", **options: object) -> SubstepSolver:
    """Return a solver with heat over the hot plate."""
    return SubstepSolver(start, substeps, **{"colliders": [plate()], "dtype": np.float64, "dt_max": 1e-3, **options})


def enthalpy(run: SubstepSolver) -> float:
    """Return heat and latent heat over the solid at its freezing temperature [J]."""
    mass, phase = run.particles.unpack("mass"), run.particles.unpack("phase")
    above = run.particles.unpack("temperature") - FREEZING
    specific = np.where(phase == 1, 3000.0, 2000.0) * above + LATENT * run.particles.unpack("latent_heat_fraction")
    return float(mass @ specific)
