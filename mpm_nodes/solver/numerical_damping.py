"""How much implicit steps damp: the mean of the velocities of a substep that forces and deformations go by.

| symbol | meaning | unit |
|---|---|---|
| d | numerical damping, from 0 to 1 | - |
| theta | (1 + d) / 2, share of the new velocities in the mean | - |
| u | theta v + (1 - theta) v^n, the mean | m/s |

Forces are those after theta dt at the velocities u, and F <- (I + dt grad u) F: an oscillator of angular frequency w takes
the factor sqrt((1 + (1 - theta)^2 w^2 dt^2) / (1 + theta^2 w^2 dt^2)) a step (textbook: the theta method). d = 1 is backward Euler,
d = 0 the implicit midpoint rule. Contacts, friction and paths go by v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpm_nodes.data import A, MpmNodesError, Range, Unitless
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.kernels.algebra import potential, vectors
from mpm_nodes.solver.terms.energy_store import EnergyStore

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan

__all__ = ["MeanVelocities", "NumericalDamping", "refuse_mixed_damping", "share_of"]

NumericalDamping = A[float, Unitless, Range(min=0.0, max=1.0), NotKeyable("loops are composed for it as the solve begins")]
"""The knob of every stage that takes part."""


def share_of(numerical_damping: float) -> float:
    """Return theta, the share of the new velocities in the mean."""
    return 0.5 * (1.0 + numerical_damping)


class MeanVelocities:
    """The velocities that the energy terms of a substep see.

    Args:
        energy: Room for vectors.
        start: What the substep begins with.
        share: theta.
    """

    def __init__(self, energy: EnergyStore, start: potential.Start, share: float) -> None:
        self.share, self._count = share, start.count
        self._seen = energy.grid.array("velocity") if share == 1.0 else energy.rounded("mean")
        if share < 1.0:
            self._before = energy.vector("before")
            potential.predict(start._replace(predicted=self._before), 0.0, 0.0, 0.0)

    def of(self, velocity: np.ndarray) -> np.ndarray:
        """Return the mean for velocities at the end of the substep, in the solve's float type; a later call overwrites it."""
        if self.share == 1.0:
            vectors.copy(velocity, self._seen, self._count)
        else:
            vectors.combine(self.share, velocity, 1.0 - self.share, self._before, self._seen, self._count)
        return self._seen


def refuse_mixed_damping(plans: Sequence[SubstepPlan]) -> None:
    """Refuse substeps whose forces and deformations would go by different velocities.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Stages differ in their numerical damping, or no minimisation follows it, or surfaces have an energy.
    """
    for plan in plans:
        given = {part.id: part.knobs["numerical_damping"] for part in plan.parts if "numerical_damping" in part.knobs}
        if all(value == 1.0 for value in given.values()):
            continue
        if len(set(given.values())) > 1 or not any(part.declaration.id == "minimise_energy" for part in plan.parts):
            values = ", ".join(f"{name} {value:g}" for name, value in given.items())
            raise MpmNodesError(
                f"numerical_damping: stages differ ({values}), and energy would grow; set the parameter numerical_damping of "
                "implicit_apic, which is that of all, and leave it at 1 in substeps without minimise_energy"
            )
        if any("samples" in part.domains for part in plan.parts):
            raise MpmNodesError(
                "numerical_damping: substeps with surfaces are backward Euler; leave it at 1, or take implicit_apic"
            )
