"""Nodes of every shape that the outer graph knows, for the tests of documents, validation and planning."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated as A
from typing import NamedTuple

from mpm_nodes.data import (
    FrameContext,
    GraphSettings,
    Many,
    Material,
    Mesh,
    Metres,
    OutputPath,
    Particles,
    Previous,
    Range,
    SubstepGraph,
    Vec3,
)
from mpm_nodes.graph.declare import node


class Side(enum.Enum):
    """A menu."""

    LEFT = "left"
    RIGHT = "right"


class Solved(NamedTuple):
    """Outputs of `solve`."""

    particles: Particles
    mesh: Mesh


@node(
    category="Material",
    label="Stuff",
    version=3,
    upgrades={
        1: lambda knobs, inputs: ({**knobs, "density": knobs["rho"] * 2.0} if "rho" in knobs else knobs, inputs),
        2: lambda knobs, inputs: ({k: v for k, v in knobs.items() if k != "rho"}, inputs),
    },
)
def stuff(*, density: A[float, Range(min=0.0, exclusive_min=True)] = 400.0, side: Side = Side.LEFT) -> Material:
    """Make a material.

    Args:
        density: Mass per volume.
        side: A choice.
    """
    return Material("stuff", {"side": side}, density)


@node(category="Emit", label="Box")
def box(
    material: Material,
    *,
    size: A[Vec3, Metres, Range(min=0.0)] = (1, 1, 1),
    count: A[int, Range(min=1, max=9)] = 3,
    on: bool = True,
) -> Particles:
    """Fill a box.

    Args:
        material: What it is made of.
        size: Edges.
        count: How many.
        on: Whether at all.
    """


@node(category="Emit", label="Move")
def move(particles: Particles, ctx: FrameContext, *, by: float = 1.0) -> Particles:
    """Move particles.

    Args:
        particles: What to move.
        by: How far.
    """


@node(category="Solve", label="Solve")
def solve(
    sources: Many[Particles | Material],
    settings: GraphSettings,
    ctx: FrameContext,
    previous: Previous[Particles],
    obstacle: Mesh | None = None,
    *,
    gravity: Vec3 = (0, -9.81, 0),
    substeps: SubstepGraph = "simple",
) -> Solved:
    """Solve.

    Args:
        sources: What moves.
        obstacle: What stands in the way.
        gravity: What pulls.
        substeps: How.
    """


@node(category="Caches", label="Read")
def read_mesh(*, file: Path, scale: float | None = None) -> Mesh:
    """Read a mesh.

    Args:
        file: What to read.
        scale: Factor, or none.
    """


@node(category="Caches", label="Write")
def write(particles: Particles, *, folder: OutputPath = Path("points"), names: tuple[str, ...] = ("position",)) -> None:
    """Write particles.

    Args:
        particles: What to write.
        folder: Where to.
        names: What of them.
    """


NODES = (stuff, box, move, solve, read_mesh, write)
