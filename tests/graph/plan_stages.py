"""Stages that record their calls, and a substep graph made of them, for the tests of validation and planning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated as A

from mpm_nodes.data import (
    LAW_STATE,
    Attribute,
    Colliders,
    Energy,
    Grid,
    Kernel,
    Particles,
    Range,
    Reads,
    Stage,
    StaggeredGrid,
    StepContext,
    SurfaceSamples,
    Writes,
)
from mpm_nodes.graph.declare import stage
from mpm_nodes.graph.declare.registry import Registry

WARMTH = Attribute("warmth", "T", (), "K", "primvars:warmth", "warmth", "Warmth.")

calls: list[tuple] = []


@stage(label="Choose", sets=("dt",))
def choose(
    particles: A[Particles, Reads("velocity")], step: StepContext, *, cfl: A[float, Range(min=0.0, max=1.0)] = 0.5
) -> Stage["particles"]:
    """Choose dt.

    Args:
        cfl: Courant number.
    """
    calls.append(("choose", particles, step, cfl))


@stage(label="Scatter")
def scatter(
    particles: A[Particles, Reads("position", "velocity")],
    grid: A[Grid, Writes("mass", "momentum")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Particles to grid.

    Args:
        kernel: Weights.
    """
    calls.append(("scatter", particles, grid, kernel))


@stage(label="Push")
def push(step: StepContext, grid: A[Grid, Reads("momentum"), Writes("momentum")], *, by: float = 1.0) -> Stage["grid"]:
    """Push the grid.

    Args:
        by: How much.
    """
    calls.append(("push", step, grid, by))


@stage(label="Collide")
def bump(
    grid: A[Grid, Reads("momentum", "position"), Writes("momentum")], colliders: A[Colliders, Reads("level_set")]
) -> Stage["grid", "colliders"]:
    """Collide the grid."""
    calls.append(("bump", grid, colliders))


@stage(label="Gather")
def gathered(
    particles: A[Particles, Reads("position"), Writes("velocity")],
    grid: A[Grid, Reads("mass", "momentum")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Grid to particles.

    Args:
        kernel: Weights.
    """
    calls.append(("gathered", particles, grid, kernel))


@stage(label="Strain")
def strain(particles: A[Particles, Reads(LAW_STATE), Writes(LAW_STATE)], step: StepContext) -> Stage["particles"]:
    """Evolve the law's state."""
    calls.append(("strain", particles, step))


@stage(label="Heat")
def heat(particles: A[Particles, WARMTH, Reads("warmth"), Writes("warmth")]) -> Stage["particles"]:
    """Heat."""
    calls.append(("heat", particles))


@stage(label="Drift")
def drift(particles: A[Particles, Reads("velocity"), Writes("position")], step: StepContext) -> Stage["particles"]:
    """Move."""
    calls.append(("drift", particles, step))


@stage(label="Pass")
def pass_particles(particles: A[Particles, Reads()]) -> Stage["particles"]:
    """Do nothing."""


@stage(label="Pass")
def pass_grid(grid: A[Grid, Reads()]) -> Stage["grid"]:
    """Do nothing."""


@stage(label="Pass")
def pass_colliders(colliders: A[Colliders, Reads()]) -> Stage["colliders"]:
    """Do nothing."""


@stage(label="Pass")
def pass_energy(energy: A[Energy, Reads()]) -> Stage["energy"]:
    """Do nothing."""


@stage(label="Pass")
def pass_staggered(staggered: A[StaggeredGrid, Reads()]) -> Stage["staggered"]:
    """Do nothing."""


@stage(label="Pass Samples")
def pass_samples(samples: A[SurfaceSamples, Reads()]) -> Stage["samples"]:
    """Let the samples through."""


PASSES = (pass_particles, pass_grid, pass_colliders, pass_energy, pass_staggered, pass_samples)
STAGES = (choose, scatter, push, bump, gathered, strain, heat, drift, *PASSES)


def substeps(**changes: dict) -> dict:
    """Return a substep graph in which strain and heat are branches that meet again; `changes` replace whole stages."""
    nodes = {
        "choose": {"type": "choose", "knobs": {"cfl": 0.5}, "inputs": {"particles": "particles"}},
        "scatter": {"type": "scatter", "inputs": {"particles": "choose", "grid": "grid"}},
        "push": {"type": "push", "inputs": {"grid": "scatter.grid"}},
        "bump": {"type": "bump", "inputs": {"grid": "push", "colliders": "colliders"}},
        "gather": {"type": "gathered", "inputs": {"particles": "scatter", "grid": "bump"}},
        "strain": {"type": "strain", "inputs": {"particles": "gather"}},
        "heat": {"type": "heat", "inputs": {"particles": "gather"}},
        "drift": {"type": "drift", "inputs": {"particles": ["strain", "heat"]}},
    }
    nodes |= changes
    return {
        "format": "mpm_nodes.substeps",
        "version": 1,
        "parameters": {"kernel": ["scatter.kernel", "gather.kernel"], "cfl": ["choose.cfl"]},
        "nodes": {name: record for name, record in nodes.items() if record is not None},
    }


def registry(*functions, presets: dict[str, Path] | None = None) -> Registry:
    """Return a registry of these stages and more."""
    return Registry([function.declaration for function in (*STAGES, *functions)], presets)
