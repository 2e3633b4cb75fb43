"""Stage: particles are put in where matter has thinned out inside, and merged where they coincide."""

from __future__ import annotations

import enum
import math

import numpy as np

from mpm_nodes.data import LAW_STATE, A, Kernel, Particles, Range, Reads, Stage, StepContext, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.solver.resampling import Outcome, Settings, resample

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


@stage(label="Avoid a Void")
def avoid_a_void(
    particles: A[
        Particles,
        Reads("id", "position", "velocity", "mass", "volume", "material", "velocity_gradient", "stiffness_scale", LAW_STATE),
        Reads("affine", when=("transfer", Transfer.APIC)), Writes("id", "position", "mass", "volume"),
    ],
    step: StepContext,
    *,
    interval: A[int, Range(min=1)] = 50,
    conserve_momentum: bool = True,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    coverage: A[float, Unitless, Range(min=0.8, max=1.0)] = COVERAGE,
    depth: A[float, Unitless, Range(min=1.8, max=3.9)] = 2.2,
    merge_distance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.03,
    finest: Finest = Finest.QUARTER,
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
        seed: Seed of the random places.
    """
    particles.resampling_age += 1
    due = particles.resampling_age >= interval
    if due and particles.count and "velocity_gradient" not in particles.stale:
        key = int(np.random.SeedSequence([seed, step.frame, step.substep]).generate_state(1, np.uint64)[0])
        settings = Settings(kernel, transfer, conserve_momentum, coverage, depth, merge_distance, EDGE[finest], key)
        _report(step, resample(particles, settings))
        particles.resampling_age = 0
    # new particles need everything, also what only lives inside a substep otherwise
    particles.keep_next = particles.resampling_age + 1 >= interval


def _report(step: StepContext, outcome: Outcome) -> None:
    """Add what a call did to the facts of the frame."""
    facts = step.report.get("resampling")
    if facts is None or facts["frame"] != step.frame:
        facts = {"frame": step.frame, "calls": 0, "inserted": 0, "merged": 0, "discarded": 0, "centre_shift": (0.0, 0.0, 0.0)}
    step.report["resampling"] = {
        "frame": step.frame, "calls": facts["calls"] + 1, "inserted": facts["inserted"] + outcome.inserted,
        "merged": facts["merged"] + outcome.merged, "discarded": facts["discarded"] + outcome.discarded,
        "centre_shift": tuple(float(a + b) for a, b in zip(facts["centre_shift"], outcome.centre_shift, strict=True))}
