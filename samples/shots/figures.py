"""The figures that every sample has: measured on its cache, beside what must hold."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.physics.surface_tension.numerics.samples import MOST_OPEN
from mpm_nodes_samples.shots.shot import Figure, Shot, Target

SKINNED = 100
"""Fewest particles of a frame whose surface is measured."""
SKIN_VOLUME = 2.0
"""Largest share by which the volume inside a surface may differ from that of its particles [%]."""


def common_figures(shot: Shot) -> list[Figure]:
    """Return what every sample prints: particles, substeps, seconds."""
    begin, end = len(shot.at(shot.first)), len(shot.at(shot.last))
    solved = shot.progress.settled()
    steps = float(np.mean([shot.progress.substeps.get(frame, 0) for frame in solved])) if solved else 0.0
    seconds = float(np.mean([shot.progress.seconds[frame] for frame in solved])) if solved else float("nan")
    return [
        Figure("particles at the start", begin),
        Figure("particles at the end", end),
        Figure("substeps a frame", steps),
        Figure("seconds a frame, solve", seconds),
    ]


def skin_figures(shot: Shot) -> list[Figure]:
    """Return how far the volume inside the mesh is from the particles' own, at most; nothing where the shot has no mesh.

    Frames with fewer than SKINNED particles, where a stream has just begun, are left out: a mesh of voxels does not show them.
    """
    errors = []
    for frame in (frame for frame in shot.sampled if len(shot.at(frame)) >= SKINNED):
        try:
            errors.append(100.0 * abs(shot.skin_volume(frame) / shot.matter_volume(frame) - 1.0))
        except InputError:
            return []
    name = "volume inside the surface, off the particles' own at most [%]"
    return [Figure(name, max(errors), Target(most=SKIN_VOLUME))] if errors else []


def closed_figures(shot: Shot) -> list[Figure]:
    """Return how closed the surfaces with a tension were in every substep that was cooked; nothing where the shot has none.

    The target is that of rounding: of double precision where all solves have it, else of single.
    """
    if shot.progress.open is None:
        return []
    solves = [entry for entry in shot.graph.nodes.values() if entry.type == "solve"]
    double = all(entry.knobs.get("precision") == "double" for entry in solves)
    most = MOST_OPEN[np.dtype(np.float64 if double else np.float32)]
    name = "sum of the area vectors of the surface over its area, at most in a substep"
    return [Figure(name, shot.progress.open, Target(most=most), "closed, to rounding")]
