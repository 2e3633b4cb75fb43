"""What the preconditioner saves: Krylov iterations of implicit steps over the impact of the bullet (R15 section 6)."""

from __future__ import annotations

import time
from typing import Any

from mpm_nodes_samples.shots.shot import Figure, Target

FRAMES = 5
"""Frames that are solved: the bullet is through."""


def compare(graph: Any) -> list[Figure]:
    """Solve the shot with implicit steps, once with each preconditioner; return iterations and seconds of each."""
    from mpm_nodes.data import Preconditioner

    found, counts = [], {}
    for kind in reversed(Preconditioner):
        counts[kind], newton, steps, seconds = _solved(graph, kind.value)
        print(f"{kind.value}: {counts[kind]} Krylov, {newton} Newton iterations in {steps} substeps, {seconds:.1f} s", flush=True)
        found += [
            Figure(f"Krylov iterations, preconditioner {kind.value}", counts[kind]),
            Figure("    of them a Newton step", counts[kind] / newton),
            Figure("    seconds", seconds),
        ]
    base, *others = counts
    for kind in others:
        saved = counts[base] / counts[kind]
        stated = "in the source, which does not say against what"
        found.append(Figure(f"times as many with {base.value} as with {kind.value}", saved, Target(6.0), stated))
    return found


def _solved(graph: Any, preconditioner: str) -> tuple[int, int, int, float]:
    """Return Krylov and Newton iterations, substeps and seconds of the first frames."""
    from mpm_nodes.graph.cook.executor import Evaluator

    graph.set("shoot.substeps", {"preset": "implicit_apic", "set": {"minimise_energy.preconditioner": preconditioner}})
    evaluator, begin = Evaluator(graph), time.perf_counter()
    krylov = newton = steps = 0
    for frame in range(graph.settings.start, graph.settings.start + FRAMES):
        evaluator.value("shoot.particles", frame)
        tally = evaluator.value("shoot.state", frame).solver.step_context.report.get("implicit")
        if tally is not None and tally.frame == frame:
            krylov, newton, steps = krylov + tally["krylov"], newton + tally["newton"], steps + tally["substeps"]
    return krylov, newton, steps, time.perf_counter() - begin
