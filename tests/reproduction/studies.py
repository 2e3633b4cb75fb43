"""Studies: one sample solved several times, to see what its figures depend on."""

from __future__ import annotations

import argparse
from typing import Any

from mpm_nodes.data import InputError
from mpm_nodes.graph.cook.executor import Evaluator
from mpm_nodes_samples.shots.report import print_figures
from mpm_nodes_samples.shots.shot import Figure, Target
from mpm_nodes_samples.shots.sizes import graph_of
from tests.reproduction.foam import bottoms, rebound
from tests.reproduction.preconditioner_study import compare

STUDY_FRAMES = 21
"""A third of a second: impact, flight and second contact."""


def study(sample: Any, args: argparse.Namespace) -> int:
    """Run the study of a sample.

    Raises:
        InputError: It has none.
    """
    if sample.name == "sponge_bullet":
        found = compare(graph_of(sample, args.size, args.overrides))
        print_figures("sponge_bullet: what the preconditioner saves", found)
        return int(any(figure.ok is False for figure in found))
    if sample.name != "spheres":
        named = "'spheres' and 'sponge_bullet'"
        raise InputError(f"--study: is for the samples {named}, and this is '{sample.name}'; leave it out")
    return rebounds(sample, args)


def rebounds(sample: Any, args: argparse.Namespace) -> int:
    """Cook the spheres at two resolutions with three seeds each and print the gap under each."""
    found = []
    for factor in (1.0, 1.25):
        for seed in (1, 2, 3):
            cell, positions, frames = solved(sample, args, factor, seed)
            for material, name in enumerate(("viscoplastic", "oobleck")):
                gap = rebound(bottoms(positions, frames, material), cell)
                target = Target(2e3 * cell) if material else Target(most=2e3 * cell)
                found.append(Figure(f"{name}, h = {1e3 * cell:g} mm, seed {seed}: gap [mm]", 1e3 * gap, target, "2 h"))
                print(f"{found[-1].name} {found[-1].measured:.3g} {found[-1].verdict}", flush=True)
    print_figures("spheres: does each leave the ground again?", found)
    return int(any(figure.ok is False for figure in found))


def solved(sample: Any, args: argparse.Namespace, factor: float, seed: int) -> tuple[float, Any, range]:
    """Solve the spheres with other seeds and cells; return the cell size, a function (frame, material) -> positions, the frames."""
    graph = graph_of(sample, args.size, args.overrides)
    cell = factor * graph.settings.cell_size
    graph.set("settings.cell_size", cell)
    for ball in ("viscoplastic_ball", "oobleck_ball"):
        graph.set(f"{ball}.seed", seed)
    evaluator, frames = Evaluator(graph), range(graph.settings.start, graph.settings.start + STUDY_FRAMES)
    kept = {frame: evaluator.value("drop.particles", frame) for frame in frames}

    def positions(frame: int, material: int) -> Any:
        return kept[frame]["position"][kept[frame]["material"] == material]

    return cell, positions, frames
