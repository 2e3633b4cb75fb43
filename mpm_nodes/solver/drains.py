"""Places that take matter away between substeps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from mpm_nodes.data import Drain, Fact, Facts, Moment, Reduction, SpatialField, StepContext
from mpm_nodes.kernels.fields.marking import mark
from mpm_nodes.solver.field_programs import program_of_fields, rows_of
from mpm_nodes.solver.forces import block_centres, placement_of
from mpm_nodes.solver.state import ParticleStore

__all__ = ["drain", "inside"]

DRAINED = Facts(
    "drained",
    "What drains took in a frame, in the order of the wires.",
    (
        Fact("particles", "", Reduction.SUM, "How many particles."),
        Fact("mass", "kg", Reduction.SUM, "Their mass."),
    ),
    by_rank=True,
)


def drain(particles: ParticleStore, drains: Sequence[Drain], step: StepContext) -> None:
    """Remove particles that lie in drains, and tell how many, and their mass.

    Args:
        particles: Particles; those in several drains count in the first.
        drains: Drains.
        step: The substep.
    """
    if not drains or not particles.count:
        return
    moment = step.moment(step.dt)  # where particles are by now
    gone = np.zeros(particles.count, bool)
    taken: list[tuple[int, float]] = []
    for each in drains:
        marks = inside(particles, each.field, moment) & ~gone
        taken.append((int(marks.sum()), float(particles.rows("mass")[0][marks].sum(dtype=float))))
        gone |= marks
    particles.delete(gone)
    step.tell(DRAINED, particles=tuple(count for count, _ in taken), mass=tuple(mass for _, mass in taken))


def inside(particles: ParticleStore, field: SpatialField, moment: Moment) -> np.ndarray:
    """Return which particles lie where a field is above 1/2, shape (count,), bool.

    Args:
        particles: Particles.
        field: A field of numbers.
        moment: When it is taken.
    """
    program = program_of_fields([field], moment, of_particles=True)
    marks, lacking = np.empty(particles.count, bool), np.zeros(len(particles.ranges), bool)
    given = program.with_own(rows_of(particles, moment), particles.count)
    mark(placement_of(particles), particles.ranges, block_centres(particles), given, program.registers[0], marks, lacking)
    if lacking.any():
        warnings.warn(  # in the same words each time, so that it is told once
            "the field of a drain, a region, active_mask or force_attach is not a number (NaN) where there is matter, which is "
            "taken as outside of it; look at its files and attributes",
            stacklevel=2,
        )
    return marks
