"""One shot at three resolutions: the study that cooks it at each, draws them side by side, and says how their looks differ."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.preview.beside import render_beside
from mpm_nodes_samples.shots.report import print_figures
from mpm_nodes_samples.shots.run import cooked, picture_of, shot_of
from mpm_nodes_samples.shots.shot import Figure, Progress, Shot, Target
from mpm_nodes_samples.shots.sizes import graph_of

RADIUS = 0.09
"""Of the ball of dough_on_step [m]."""
GRAVITY, LOST = 9.81, 0.05
"""[m/s^2], and the share of its momentum that the ball has lost when it counts as landed."""
RESOLUTIONS = (0.5, 1.0, 2.0)
"""The last is what the others are compared with."""
BANDS = {1.0: 1.0, 0.5: 2.0}
"""How many bands the looks at a resolution may differ by from those at the last."""
EXTENT, OTHER = 0.05, 0.03
"""Bands, as `mpm-nodes verify snow_at_resolutions` has them: of extents, and of time, shares, middle and spread."""
KNOWN_MISSES = tuple(f"{name} at {at}, less that" for name in ("width", "depth") for at in ("0.5", "1"))
"""The finer the cells, the thinner the rim on which dough runs out: docs/concepts.md has the numbers."""
FRAMES = (8, 13, 17, 73)
"""Frames of the sheet."""


def looks(shot: Shot) -> dict[str, float]:
    """Return when the dough lands [s], and how it lies in the end: its middle, the extents of 96 % of it, its spread and its share
    beside the step; lengths over the ball's diameter.
    """  # fmt: skip
    scale, place = 2.0 * RADIUS, shot.positions(shot.last)
    low, high = np.percentile(place, (2.0, 98.0), axis=0)
    middle = place.mean(axis=0)
    spread = math.sqrt(float(((place - middle) ** 2).sum(axis=1).mean()))
    wide, tall, deep = (high - low) / scale
    return {
        "time to land": landing(shot),
        "middle, along": middle[0] / scale,
        "middle, up": middle[1] / scale,
        "width": wide,
        "height": tall,
        "depth": deep,
        "spread": spread / scale,
        "share beside the step": float((place[:, 0] > 0.0).mean()),
    }


def landing(shot: Shot) -> float:
    """Return when 5 % of the momentum that gravity has given are lost [s]; infinite when they never are."""
    lost = before = 0.0
    for frame in shot.frames[1:]:
        time = (frame - shot.first) * shot.frame_seconds
        speed = float(shot.at(frame)["velocity"][:, 1].mean(dtype=float)) / shot.time_scale  # caches hold it by the shot's time
        before, lost = lost, 1.0 + speed / (GRAVITY * time)
        if lost > LOST:
            return time - (lost - LOST) / (lost - before) * shot.frame_seconds
    return math.inf


def at_resolutions(sample: Any, args: argparse.Namespace) -> int:
    """Cook the shot at each resolution, draw them side by side, and print how their looks differ; 1 when one misses its band."""
    out = args.out or Path("out") / sample.name
    found, folders = {}, []
    for resolution in RESOLUTIONS:
        progress, place = Progress(), out / f"{resolution:g}"
        graph = graph_of(sample, args.size, [*args.overrides, f"settings.resolution={resolution:g}"])
        again = f"mpm-nodes sample {sample.name} --study --out {out}"
        result = cooked(graph, args, place, again, progress)
        folders.append(result.revision_folder)
        found[resolution] = looks(shot_of(result, graph, progress))
    names = [f"resolution {resolution:g}" for resolution in RESOLUTIONS]
    frames = [frame for frame in FRAMES if frame in result.frames]
    sheet = render_beside(folders, frames, out / "beside", args.engine, picture_of(sample), names=names).contact_sheet
    figures = differences(found)
    print_figures(f"{sample.name}: the same at any resolution?", figures)
    print(sheet)
    return int(any(figure.verdict == "MISSED" or (args.strict and figure.ok is False) for figure in figures))


def differences(found: dict[float, dict[str, float]]) -> list[Figure]:
    """Return the looks at the last resolution, and how far those at the others are from them."""
    fine = found[RESOLUTIONS[-1]]
    figures = [Figure(f"{name} at {RESOLUTIONS[-1]:g}", value) for name, value in fine.items()]
    for resolution, bands in sorted(BANDS.items(), reverse=True):
        for name, value in found[resolution].items():
            band = bands * (EXTENT if name in ("width", "height", "depth") else OTHER)
            gap = value / fine[name] - 1.0 if name == "time to land" else value - fine[name]
            what = f"{name} at {resolution:g}, less that"
            figures.append(Figure(what, gap, Target(-band, band), known=what in KNOWN_MISSES))
    return figures
