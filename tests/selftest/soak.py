"""Random valid graphs cooked one after the other in one process, whose memory must not grow."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from tests.selftest.outcomes import Job, Outcome
from tests.selftest.worker import at_case

__all__ = ["cases", "random_graph"]

KINDS = 4
"""Kinds of graphs, by what is compiled for them; each is cooked once before memory is measured."""
GROWTH = 0.01
"""Share by which resident memory may grow between the first third of the cooks and the last."""


def cases(job: Job) -> Iterator[Outcome]:
    """Cook, and measure after each cook."""
    known = registry.load(path="", entry_points=False)
    out = Path(job.folder, "out")
    held: list[int] = []
    for number in range(-2 * KINDS, job.count):
        at_case(job, max(number, 0))
        outcome = _cooked(job, number, known, out)
        gc.collect()
        if number >= 0:
            held.append(_resident())
            yield outcome
        elif outcome.fault:
            yield outcome
        if number >= 0 and (number + 1) % max(job.count, 30) == 0 and len(held) >= 30:
            yield _grown(held)


def _grown(held: list[int]) -> Outcome:
    third = len(held) // 3
    before, after = statistics.median(held[:third]), statistics.median(held[-third:])
    growth = after / before - 1.0
    fault = f"from {before / 1e6:.1f} to {after / 1e6:.1f} MB in {len(held)} cooks" if growth >= GROWTH else ""
    return Outcome("growth of resident memory", f"{max(growth, 0.0):.2%} in {len(held)} cooks", fault, 0.0, after / 1e6)


def _cooked(job: Job, number: int, known: Registry, out: Path) -> Outcome:
    row = "random valid graphs"
    graph = random_graph(random.Random(f"{job.seed} {number}"), number % KINDS, known)
    saved = json.dumps(graph.to_json())
    try:
        execute(graph, out=out)
    except MpmNodesError as error:
        fault = "" if error.exit_code == 4 else f"seed {job.seed}, case {number}: {error}; the graph is {saved}"
        return Outcome(row, "diverged, told" if not fault else "against", fault)
    except Exception as error:
        return Outcome(row, "defect", f"seed {job.seed}, case {number}: {type(error).__name__}: {error}; the graph is {saved}")
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return Outcome(row, "cooked")


def random_graph(chance: random.Random, kind: int, known: Registry) -> Graph:
    """Return a small valid graph: one or two bodies of random shape, speed and stiffness, colliders, and what is made of them."""
    graph = Graph(registry=known, start=1, end=chance.choice((2, 3)), cell_size=0.1)
    law = "material_neo_hookean" if kind % 2 == 0 else "material_snow"
    stuff = graph.add(law, "stuff", youngs_modulus=10 ** chance.uniform(3.0, 5.0), density=chance.uniform(100.0, 2000.0))
    speed = [chance.uniform(-3.0, 3.0) for _ in range(3)]
    shape = {"velocity": speed, "jitter": chance.uniform(0.0, 0.5), "seed": chance.randrange(1000), "material": stuff}
    bodies = []
    for place in range(chance.choice((1, 2))):
        centre = (0.6 * place, 0.4, 0.0)
        if chance.random() < 0.5:
            size = [chance.uniform(0.15, 0.4) for _ in range(3)]
            bodies.append(graph.add("emit_box", f"body{place}", size=size, centre=centre, **shape))
        else:
            bodies.append(graph.add("emit_sphere", f"body{place}", radius=chance.uniform(0.1, 0.25), centre=centre, **shape))
    colliders = [graph.add("collide_plane", "floor", friction=chance.uniform(0.0, 1.0))]
    if chance.random() < 0.5:
        colliders.append(graph.add("collide_sphere", "ball", radius=chance.uniform(0.05, 0.2)))
    gravity = (0.0, chance.uniform(-20.0, 0.0), 0.0)
    fall = graph.add("solve", "fall", sources=bodies, colliders=colliders, gravity=gravity, time_scale=chance.uniform(0.1, 0.5))
    wires = {"particles": fall["particles"]}
    if kind >= 2:
        surface = graph.add("surface_particles", "surface", particles=fall["particles"], smoothing=chance.randrange(4))
        wires["mesh"] = surface["mesh"]
    graph.add("write_cache", "cache", name="cache", **wires)
    return graph


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
