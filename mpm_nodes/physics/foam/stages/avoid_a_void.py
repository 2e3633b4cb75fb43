"""Stage: particles are put in where matter has thinned out inside, and merged where they coincide."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import (
    LAW_STATE,
    A,
    Fact,
    Facts,
    Kernel,
    Range,
    Reads,
    Reduction,
    Stage,
    StageMemory,
    StepContext,
    Transfer,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import ends_at_sides, shared_among_ranks, stage
from mpm_nodes.physics.foam.numerics.resampling import ResamplingSettings, resample
from mpm_nodes.solver.state import ParticleStore

COVERAGE = math.sqrt(3.0) / 2.0 + 0.01
"""A little more than half the diagonal of the cubes of an undeformed lattice of eight particles a cell [r]."""


class Finest(enum.Enum):
    """Edge of the last octree cells, in half cells."""

    WHOLE = "1"
    HALF = "1/2"
    QUARTER = "1/4"
    EIGHTH = "1/8"
    SIXTEENTH = "1/16"
    THIRTYSECOND = "1/32"


EDGE = {finest: 0.5**place for place, finest in enumerate(Finest)}


RESAMPLED = Facts(
    "resampling",
    "What resampling did in a frame.",
    (
        Fact("calls", "", Reduction.SUM, "How often."),
        Fact("inserted", "", Reduction.SUM, "New particles."),
        Fact("merged", "", Reduction.SUM, "Pairs that became one."),
        Fact("discarded", "", Reduction.SUM, "Samples without a donor."),
        Fact("centre_shift", "m", Reduction.SUM, "How far insertion moved the centre of mass."),
    ),
)


@dataclass
class SinceLast(StageMemory):
    """What the stage remembers.

    Attributes:
        substeps: Substeps since the last resampling.
    """

    substeps: int = 0


@shared_among_ranks
@ends_at_sides
@stage(label="Avoid a Void", facts=(RESAMPLED,), removes=("particles",))
def avoid_a_void(
    particles: A[
        ParticleStore,
        Reads("id", "position", "velocity", "mass", "volume", "material", "stiffness_scale", LAW_STATE),
        Reads("velocity_gradient", on_request=True),
        Reads("affine", when=("transfer", Transfer.APIC)),
        Writes("id", "position", "mass", "volume"),
    ],
    step: StepContext,
    memory: SinceLast,
    *,
    interval: A[int, Range(min=1)] = 50,
    conserve_momentum: bool = True,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    coverage: A[float, Unitless, Range(min=0.8, max=1.0)] = COVERAGE,
    depth: A[float, Unitless, Range(min=1.8, max=3.9)] = 2.2,
    merge_distance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.03,
    finest: Finest = Finest.QUARTER,
    give_back: A[float, Unitless, Range(min=0.0, max=1.9)] = 0.0,
    seed: A[int, Range(min=0)] = 0,
) -> Stage["particles"]:
    """Fill voids inside the matter and merge particles that lie on top of each other, every so many substeps (Y15 section 6).

    Wire it last. Every particle is a sphere of radius r, half a cell. Where spheres of `coverage` r leave a gap deeper inside
    than `depth` r, new particles take mass and volume from those around them, of the same material as the nearest; their other
    attributes are averages. Mass and volume stay exactly.

    Args:
        particles: Particles to resample.
        interval: Substeps from one resampling to the next.
        conserve_momentum: Keep linear momentum, and with APIC angular momentum, exactly; without it new particles take an
            average velocity, as Y15 do.
        transfer: What the substep's transfers carry; the same as in rasterize and gather.
        kernel: B-spline of the averages; the same as in rasterize and gather.
        coverage: Radius of the spheres that must leave no gap, in half cells; 0.876 leaves an undeformed lattice alone.
        depth: Least depth of new particles below the surface, in half cells; less shows as popping.
        merge_distance: Distance below which two particles become one, in half cells.
        finest: Edge of the last octree cells that get a dart, in half cells: a gap that all darts of a call miss waits for the next
            one. Y15 do not say where theirs end; less fills slits that hold no particle, and costs more.
        give_back: Volume at rest, in seeds of eight a cell, up to which two particles closer than 0.85 half cells become one; 0:
            none do. 1.6, with a coverage of 0.95, keeps the number of particles where matter is drawn out and thinner across;
            so does the preset `continuum_foam`. 0 and 0.876 are the rule of Y15.
        seed: Seed of the random places.
    """
    memory.substeps += 1
    due = memory.substeps >= interval
    if due and _can_begin(particles):
        key = int(np.random.SeedSequence([seed, step.substeps_done]).generate_state(1, np.uint64)[0])
        lengths = (coverage, depth, merge_distance, EDGE[finest])
        settings = ResamplingSettings(kernel, transfer, conserve_momentum, *lengths, key, give_back)
        with particles.share.whole():  # darts know no borders
            outcome = resample(particles, settings)
        shift = tuple(float(value) for value in outcome.centre_shift)
        step.tell(
            RESAMPLED,
            calls=1,
            inserted=outcome.inserted,
            merged=outcome.merged,
            discarded=outcome.discarded,
            centre_shift=shift,
        )
        memory.substeps = 0
    # new particles need everything, also what only lives inside a substep otherwise
    memory.keep_next = memory.substeps + 1 >= interval


def _can_begin(particles: ParticleStore) -> bool:
    """Return whether there are particles, with all that new ones take from them."""
    begins = bool(particles.count) and "velocity_gradient" not in particles.stale
    lacks = bool(particles.count) and not begins
    return not particles.share.any(lacks) and particles.share.any(begins)
