"""What of a substep graph runs on a GPU, and what the rest costs in copies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, MpmNodesError, domain_named
from mpm_nodes.graph.plan.fusion import StageRun, by_fragments, fragments_of, fused, runs_of
from mpm_nodes.graph.plan.hazards import Array
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.kernels.composition.block import CompositionError
from mpm_nodes.kernels.composition.fragments import Idle, Nodes, OnDevice
from mpm_nodes.kernels.cuda.loop import DeviceKernel
from mpm_nodes.kernels.cuda.trace import TraceError
from mpm_nodes.solver.device.batches import SUBSTEPS, obstacle_of, obstacle_of_law
from mpm_nodes.solver.device.choice import device_kernel, refuse
from mpm_nodes.solver.loop_sections import LOOPS
from mpm_nodes.solver.program import Program
from mpm_nodes.solver.shared_loops import SharedLoop, shared_loop

__all__ = ["on_device", "refusal"]

NODE_BYTES = 16
"""Bytes of a grid array a node: four floats."""


def refusal(programs: Iterable[Program], law: Any) -> str:
    """Return why a solve in single precision and one process does not run on a GPU, "" where it does."""
    try:
        refuse(tuple(programs), (law,), np.float32)
    except MpmNodesError as error:
        return str(error).removeprefix("solve.device: ").partition(";")[0]
    return ""


def on_device(plan: SubstepPlan, law: Any) -> list[str]:
    """Return a line for each stage or shared loop: where it runs, why on the CPU, and what that copies in a substep.

    What is declared counts: a stage that finds nothing to do copies nothing, and contacts copy the blocks near bodies alone.

    Args:
        plan: Single stages, for the state of the law.
        law: The law of the particles.
    """
    found = tuple(runs_of(plan))
    loops = [shared_loop(run, plan) for run in found if run.is_shared]
    measured = [loop.measured.stage for loop in loops if loop.measured is not None]
    runs = [_SidedRun(run, plan, law, measured) for run in found]
    newest: dict[Array, set[str]] = {}
    for run in runs:  # where a substep leaves everything
        run.copied(newest)
    return [*(line for run in runs for line in run.lines(run.copied(newest))), _batches(plan, law, runs)]


def _batches(plan: SubstepPlan, law: Any, runs: Iterable[_SidedRun]) -> str:
    """Return how many substeps run between two looks of the CPU, or why not more than one."""
    stages = by_fragments(fused(plan, shared_loop), lambda run: SharedLoop(run.members)).stages
    because = next(filter(None, (*map(obstacle_of, stages), obstacle_of_law(law))), "")
    because = because or next((f"{run.names}: {run.because}" for run in runs if run.because and run.has_loops), "")
    if because:
        return f"  substeps run one at a time, since {because}"
    alone: dict[str, list[str]] = {}
    for member in (member for planned in stages for member in planned.parts):
        for fragment in (f for f in fragments_of(member) if isinstance(f, Idle | OnDevice)):
            alone.setdefault(fragment.alone, []).append(member.id)
    told = "; ".join(["streams, drains, keys of numbers", *(f"{text} ({', '.join(names)})" for text, names in alone.items())])
    return f"  up to {SUBSTEPS} substeps run without the CPU, as one graph; one at a time with {told}"


class _SidedRun:
    """A stage or a shared loop on its side.

    Attributes:
        because: Why it runs on the CPU, "" on the GPU.
        touches, writes: Arrays that it needs there, and those that the other side does not have afterwards.
        partly: What of it runs on the CPU all the same.
        busy: Stages of a loop on the GPU that run on the CPU where they have something to do.
        has_loops: Whether it is or could be a loop over particles.
        updates: Grid arrays that it works on after its loop, on the CPU.
    """

    def __init__(self, run: StageRun, plan: SubstepPlan, law: Any, measured: Collection[Any]) -> None:
        self.names = " + ".join(member.id for member in run.members)
        self.fields = {**ATTRIBUTES, **law.fields, **plan.own_fields.get("particles", {})}
        self.loop = shared_loop(run, plan)
        brought = [f for member in run.members for f in fragments_of(member)]
        self.has_loops = any(isinstance(f, LOOPS) for f in brought)
        self.updates: set[Array] = set()
        self.busy = [m for m in run.members if any(isinstance(f, Idle) for f in fragments_of(m))]
        self.partly = next((f.but for f in brought if isinstance(f, OnDevice)), "")
        on_nodes = not run.is_shared and any(isinstance(f, Nodes) and f.on_device is not None for f in brought)
        if on_nodes or self.partly:  # of nodes it does by itself what it does in a loop
            self.because, self.busy = "", []
            self.touches, self.writes = _kept(run.members[0].reads | run.members[0].writes), _kept(run.members[0].writes)
            return
        self.because = "" if self.has_loops else "it has no loop over particles"
        if not self.because:
            try:
                kernel = device_kernel(self.loop, law, self.fields)
            except (CompositionError, TraceError) as error:
                self.because = str(error).removesuffix("; it runs on the CPU")
        if self.because:
            declared = [(m.reads - m.on_request) | m.writes for m in run.members]
            # a loop measures for it what its limits take
            self.touches = set() if run.members[0] in measured else _kept(frozenset().union(*declared))
            self.writes = _kept(frozenset().union(*(m.writes for m in run.members)))
            return
        self.touches, self.writes = ({*_of_kernel(kernel, names)} for names in (kernel.types, kernel.writes))
        for member in run.members:
            for fragment in (f for f in fragments_of(member) if isinstance(f, Nodes)):
                written = _kept(member.writes)
                if fragment.on_device is None:
                    self.updates |= {("grid", fragment.into), *written}
                else:
                    self.touches |= {("grid", fragment.into), *written}
                    self.writes |= written

    def copied(self, newest: dict[Array, set[str]]) -> list[Array]:
        """Return what is copied to its side, and note which sides have the newest values afterwards."""
        side = "host" if self.because else "device"
        copied = []
        for array in sorted(self.touches):
            sides = newest.setdefault(array, {"host", "device"})
            if side not in sides:
                copied.append(array)
                sides.add(side)
            if array in self.writes:
                newest[array] = {side}
        return copied

    def lines(self, copied: Iterable[Array]) -> Iterator[str]:
        """Yield what is told."""
        yield f"  {self.names}: on the {'CPU' if self.because else 'GPU'}" + (f", since {self.because}" if self.because else "")
        costs = ", ".join(filter(None, (self.cost("particles", copied), self.cost("grid", copied))))
        if costs:
            yield f"    copies {'from' if self.because else 'to'} the GPU {costs}"
        for member in () if self.because else self.busy:
            needs = sorted(_kept((member.reads - member.on_request) | member.writes))
            costs = ", ".join(filter(None, (self.cost("particles", needs), self.cost("grid", needs))))
            but = next((f.but for f in fragments_of(member) if isinstance(f, Idle)), "")
            there = f"GPU in between, but for {but}: these run on the CPU" if but else "CPU in between where it has something to do"
            yield f"    {member.id} runs on the {there}, with {costs}"
        if self.partly:
            needs = sorted(self.touches)
            costs = ", ".join(filter(None, (self.cost("particles", needs), self.cost("grid", needs))))
            yield f"    but for {self.partly}: these run on the CPU, with {costs}"
        if self.updates:
            yield f"    works on {', '.join(f'grid.{name}' for _, name in sorted(self.updates))} on the CPU after its loop"

    def cost(self, domain: str, copied: Iterable[Array]) -> str:
        """Return the arrays of a domain that are copied, with their bytes."""
        names = [name for of, name in copied if of == domain]
        if not names:
            return ""
        if domain == "grid":
            return f"{', '.join(f'grid.{name}' for name in names)} ({NODE_BYTES * len(names)} bytes a node)"
        return f"{', '.join(names)} ({4 * sum(self.fields[name].rows for name in names)} bytes a particle)"


def _of_kernel(kernel: DeviceKernel, names: Iterable[str]) -> Iterator[Array]:
    """Yield the arrays of a solve among the arguments of a kernel."""
    for name in names:
        if name in kernel.columns:
            yield "particles", kernel.columns[name]
        elif name.startswith("grid_"):
            yield "grid", name.removeprefix("grid_")


def _kept(arrays: Iterable[Array]) -> set[Array]:
    """Return the arrays of a store that hold declared ones; what is on other domains is not on a GPU."""
    nodes = domain_named("grid").fields
    found = {(domain, name) for domain, name in arrays if domain == "particles"}
    packed = (nodes[name].packed for domain, name in arrays if domain == "grid" and name in nodes)
    return found | {("grid", place[0]) for place in packed if place is not None}
