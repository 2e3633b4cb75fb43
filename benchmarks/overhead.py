"""What the graph machinery costs: planning, dispatch and events of empty stages, against a substep that does work.

    python benchmarks/overhead.py
    python benchmarks/overhead.py --particles 1000000 --json figures.json

The exit code is 1 when the machinery takes more than 50 microseconds, or more than 2 % of the substep.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import A, Material, Particles, Reads, Stage
from mpm_nodes.graph.declare import registry, stage
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph, plan_substeps
from mpm_nodes.graph.reports.events import EventStream, Thinned
from mpm_nodes.solver.run import SubstepSolver

STAGES = 15
REPEATS = 1000
WORKING_SUBSTEPS = 12
LONGEST_US = 50.0
LARGEST_SHARE = 0.02


@stage(label="Nothing")
def nothing(particles: A[Particles, Reads()]) -> Stage["particles"]:  # noqa: F821, UP037 - the name of a port
    """Do nothing.

    Args:
        particles: Left alone.
    """


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when the machinery costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, default=100_000, help="of the substep that does work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args(arguments)
    figures = overhead(args.particles)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"planning {STAGES} stages, once a solve:        {figures['planning_us']:9.1f} us")
    print(f"dispatch and events of {STAGES} empty stages:{figures['dispatch_us']:9.2f} us (allowed: {LONGEST_US:g})")
    print(f"a substep of {figures['particles']:,} particles:     {figures['substep_us']:9.1f} us (explicit_apic)")
    print(f"share of the machinery:                 {figures['share']:9.3%}    (allowed: {LARGEST_SHARE:.0%})")
    return 0 if figures["dispatch_us"] <= LONGEST_US and figures["share"] <= LARGEST_SHARE else 1


def overhead(particles: int) -> dict[str, Any]:
    """Return the figures: shortest times [us]; `share` is that of the dispatch: planning happens once a solve."""
    document, known = empty_graph(), Registry([nothing.declaration])
    planning = shortest(lambda: plan_substeps(document, registry=known), REPEATS // 10)
    dispatch = shortest(empty_substep(plan_substeps(document, registry=known)), REPEATS)
    solver = jelly(particles)
    substep = shortest(lambda: solver.step(), WORKING_SUBSTEPS, warm=3)
    return {
        "stages": STAGES,
        "planning_us": planning * 1e6,
        "dispatch_us": dispatch * 1e6,
        "particles": solver.particles.count,
        "substep_us": substep * 1e6,
        "share": dispatch / substep,
    }


def empty_graph() -> dict[str, Any]:
    """Return a substeps document of a chain of stages that do nothing."""
    wires = ["particles", *(f"stage_{number}" for number in range(STAGES))]
    nodes = {f"stage_{number}": {"type": "nothing", "inputs": {"particles": wires[number]}} for number in range(STAGES)}
    return {"format": "mpm_nodes.substeps", "version": 1, "nodes": nodes}


def empty_substep(plan: Any) -> Callable[[], None]:
    """Return a call that does all of a substep but the stages' work and the sorting: knobs, dispatch, progress."""
    solver = jelly(64, plan)
    solver._prepare = lambda: None
    events = EventStream(Thinned(lambda event: None))
    graph = Graph()
    graph.add("solve", "sim", sources=[graph.add("emit_box", "box", material=graph.add("material_snow", "snow"))])
    node = plan_graph(graph)["sim"]

    def substep() -> None:
        for knob in ("gravity", "dt_min", "dt_max"):  # the knobs that a solve samples at every substep
            node.sample(knob, 1.5)
        dt = solver.step(1e-4, time_left=1.0, check_cancel=_never)
        events.report("substep", dt=dt, limit="cfl", limit_material="snow", particles=64)

    return substep


def _never() -> None:
    """Stand for a cancel check that finds nothing."""


def jelly(count: int, substeps: Any = "explicit_apic") -> SubstepSolver:
    """Return a solver with a cube of about `count` particles of snow, eight a cell, at rest."""
    declaration = registry.get("material_snow")
    material: Material = declaration.function(**{knob.name: knob.default for knob in declaration.knobs})
    side, spacing = max(2, round(count ** (1 / 3))), 0.01
    axis = (np.arange(side) + 0.5) * spacing
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    columns = {"position": position, "velocity": np.zeros_like(position, np.float32), "id": np.arange(len(position))}
    return SubstepSolver(Particles(columns, (material,), spacing), substeps, cell_size=2 * spacing)


def shortest(call: Callable[[], Any], repeats: int, warm: int = 1) -> float:
    """Return the shortest time of `repeats` calls [s], after `warm` calls that do not count."""
    for _ in range(warm):
        call()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


if __name__ == "__main__":
    sys.exit(main())
