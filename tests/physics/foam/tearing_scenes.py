"""Matter that tears, next to matter that does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mpm_nodes.data import Material, Particles
from mpm_nodes.physics.foam.problems.tearing import cream, deformed, isochoric

SNOW = Material("snow", {"youngs_modulus": 4e4, "critical_compression": 1e-2, "critical_stretch": 5e-3}, 400.0, "snow")
LIQUID = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 2.0}, 1000.0, "syrup")


def blob(*materials: Material, cells: int = 4) -> Particles:
    """Return a cube that is pulled apart while it turns and falls, its materials in turn, distorted here and there."""
    random, n = np.random.default_rng(12), 2 * cells
    place = (np.stack(np.unravel_index(np.arange(n**3), (n,) * 3), 1) + 0.5) * 0.05
    plastic = np.tile(np.eye(3), (len(place), 1, 1))
    plastic[::3] = isochoric(random, len(plastic[::3]), 1.0)
    arm = place - place.mean(axis=0)
    given = deformed(
        materials[0],
        np.tile(np.eye(3), (len(place), 1, 1)),
        plastic,
        position=place,
        velocity=arm * [20.0, 1.0, -3.0] + np.cross([3.0, -2.0, 5.0], arm),
        affine=np.tile(np.diag([20.0, 1.0, -3.0]), (len(place), 1, 1)),
        material=(np.arange(len(place)) % len(materials)).astype(np.int32),
    )
    return replace(given, materials=materials)


TORN = cream(tear_threshold=2.0, recovery_time=0.05)
MIXED = (TORN, replace(SNOW, tear_threshold=0.5, recovery_time=0.2), LIQUID)
