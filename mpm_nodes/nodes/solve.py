"""The solve: runs a substep graph over the frame and publishes a snapshot."""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mpm_nodes.data import (
    A,
    Collider,
    Emitter,
    FrameContext,
    Frames,
    GraphSettings,
    Many,
    Metres,
    MetresPerSecondSquared,
    MpmNodesError,
    Particles,
    Previous,
    Range,
    Seconds,
    SubstepGraph,
    Unitless,
    Vec3,
    WallRule,
    Walls,
    concatenate,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.solver.checkpoint import SolverState


class Precision(enum.Enum):
    """Float type of the solve."""

    SINGLE = "single"
    DOUBLE = "double"


class SolveOutputs(NamedTuple):
    """What a solve publishes: a frozen snapshot, and the state that the next frame moves on."""

    particles: Particles
    state: SolverState


@node(category="Solve", label="MPM Solve", version=1)
def solve(
    ctx: FrameContext,
    settings: GraphSettings,
    previous: Previous[SolverState],
    sources: Many[Particles] = (),
    emitters: Many[Emitter] = (),
    colliders: Many[Collider] = (),
    *,
    substeps: SubstepGraph = "explicit_apic",  # type: ignore[assignment]
    gravity: A[Vec3, MetresPerSecondSquared] = (0.0, -9.81, 0.0),
    time_scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=2.0)] = 1.0,
    start_frame: A[int, Frames] = 1,
    dt_max: A[float, Seconds, Range(min=0.0, exclusive_min=True)] = 0.01,
    dt_min: A[float, Seconds, Range(min=0.0)] = 0.0,
    precision: Precision = Precision.SINGLE,
    wall_low: A[Vec3, Metres] = (-10.0, -10.0, -10.0),
    wall_high: A[Vec3, Metres] = (10.0, 10.0, 10.0),
    wall_x_low: WallRule = WallRule.OPEN,
    wall_x_high: WallRule = WallRule.OPEN,
    wall_y_low: WallRule = WallRule.OPEN,
    wall_y_high: WallRule = WallRule.OPEN,
    wall_z_low: WallRule = WallRule.OPEN,
    wall_z_high: WallRule = WallRule.OPEN,
    wall_friction: A[float, Unitless, Range(min=0.0, soft_max=1.0)] = 0.0,
) -> SolveOutputs:
    """Move matter through the frame with the material point method.

    Args:
        sources: Particles at the start frame.
        emitters: Streams that bring particles while the solve runs.
        colliders: Bodies that matter meets; where they overlap, the last one has the last word.
        substeps: Substep graph: a preset, a preset with settings, or a whole graph.
        gravity: Acceleration of everything; keys are sampled every substep.
        time_scale: Simulated seconds per second of the shot; below 1 is slow motion.
        start_frame: Frame of the initial state; before it everything stands still.
        dt_max: Longest substep.
        dt_min: Shortest substep; the solve rather diverges than go below it.
        precision: Single precision is twice as fast; double is for validation.
        wall_low: Low corner of the domain; used where a side is not open.
        wall_high: High corner of the domain; used where a side is not open.
        wall_x_low: What the side at low x does.
        wall_x_high: What the side at high x does.
        wall_y_low: What the side at low y (the floor) does.
        wall_y_high: What the side at high y does.
        wall_z_low: What the side at low z does.
        wall_z_high: What the side at high z does.
        wall_friction: Coulomb friction of sides that separate.

    Raises:
        SimulationDiverged: The solve left the stable range.
    """
    import numpy as np

    from mpm_nodes.solver.run import SubstepSolver

    sides = (wall_x_low, wall_x_high, wall_y_low, wall_y_high, wall_z_low, wall_z_high)
    walls = None if all(side is WallRule.OPEN for side in sides) else Walls(wall_low, wall_high, sides, wall_friction)
    if walls is not None and not all(low < high for low, high in zip(wall_low, wall_high, strict=True)):
        raise MpmNodesError(f"solve: wall_low {wall_low} is not below wall_high {wall_high}; give the corners of a box")
    solver = previous.solver if previous is not None else None
    if solver is None:
        solver = SubstepSolver(
            concatenate(sources), substeps, cell_size=settings.cell_size, colliders=(), walls=walls, emitters=emitters,
            dtype=np.float32 if precision is Precision.SINGLE else np.float64, checked=ctx.checked,
            fuse=ctx.fuse)
        if previous is not None:
            previous.revive(solver)
    if ctx.frame > max(start_frame, settings.start):
        _advance_frame(solver, ctx, colliders, time_scale, gravity, dt_min, dt_max)
    return SolveOutputs(solver.snapshot(), SolverState(solver))


def _advance_frame(solver: Any, ctx: FrameContext, colliders: Many[Collider], time_scale: float, gravity: Vec3,
                   dt_min: float, dt_max: float) -> None:
    """Run substeps until the frame ends, sampling keyed knobs at every one."""
    from mpm_nodes.solver import cold_start

    begin, length = solver.time, ctx.frame_duration * time_scale
    end, shot_begin = begin + length, ctx.time - ctx.frame_duration
    solver.set_colliders(colliders, clock=(begin, shot_begin, time_scale))
    if cold_start.is_cold(solver):
        ctx.report("note", message=cold_start.NOTICE)
    # every frame begins with a sort and with measured limits: a resumed solve then continues with the same bits
    solver.particles.sorted, solver.particles.limits = False, None
    step = solver.step_context
    step.frame, step.substep = ctx.frame, 0
    before, clock = dict(solver.stage_seconds), time.perf_counter()

    def at(time: float) -> float:
        return ctx.frame - 1 + (time - begin) / length

    def sampled(name: str, value: Any, frame: float) -> Any:
        return value if ctx.sample is None else ctx.sample(name, frame)

    solver.gravity = lambda time: sampled("gravity", gravity, at(time))
    while end - solver.time > 1e-9 * length:
        frame = at(solver.time)
        step.dt_min, step.dt_max = sampled("dt_min", dt_min, frame), sampled("dt_max", dt_max, frame)
        dt = solver.step(time_left=end - solver.time, frame=frame, check_cancel=ctx.check_cancel, keep=False)
        ctx.report("substep", dt=dt, limit=step.report.get("limit"), limit_material=step.report.get("limit_material"),
                   particles=solver.particles.count)
    solver.time = end
    spent = {name: seconds - before[name] for name, seconds in solver.stage_seconds.items()}
    ctx.report("stages", seconds=time.perf_counter() - clock, stages=spent)
    _report_changes(ctx, step.report)
    for name, count, depth in solver.colliders.report(solver.particles):
        if count:
            ctx.report("inside_collider", collider=name, particles=count, depth=depth)
        if depth > 0.5 * solver.cell_size:
            ctx.report("warning", where=name, message=f"{count} particles are inside collider '{name}', up to {depth:.3g} m "
                       f"deep; lower choose_time_step.cfl or the cell size if it shows")


def _report_changes(ctx: FrameContext, report: dict[str, Any]) -> None:
    """Publish what stages removed, put in or merged, and what implicit updates took, in this frame."""
    removed, resampling = report.get("removed"), report.get("resampling")
    implicit, choice = report.get("implicit"), report.pop("choice", None)
    if choice is not None:
        ctx.report("choice", **choice.facts())
    if implicit is not None and implicit.frame == ctx.frame:
        ctx.report("implicit", **{name: value for name, value in dataclasses.asdict(implicit).items() if name != "frame"})
        if implicit.halved:
            ctx.report("warning", where="minimise_energy", message=f"{implicit.halved} implicit substeps did not converge and were "
                       f"halved ({implicit.reason}); raise newton_iterations or tolerance if it costs too much time")
    if removed is not None and removed.frame == ctx.frame and removed.total.particles:
        ctx.report("removed", particles=removed.total.particles, mass=removed.total.mass, momentum=removed.total.momentum)
    if resampling is not None and resampling["frame"] == ctx.frame:
        ctx.report("resampling", **{name: value for name, value in resampling.items() if name != "frame"})


def _memory(
    knobs: Mapping[str, Any], settings: GraphSettings, inputs: Mapping[str, tuple[Mapping[str, Any], ...]]
) -> dict[str, Any]:
    """Estimate the solver's memory from its sources: state, sort buffers and the published snapshot."""
    sources = (*inputs.get("sources", ()), *inputs.get("emitters", ()))
    particles = sum(int(source.get("particles", 0)) for source in sources)
    scale = 1.0 if knobs["precision"] is Precision.SINGLE else 2.0
    return {"memory": int(particles * 600 * scale) + (100 << 20), "particles": particles}


solve.preflight = _memory  # type: ignore[attr-defined]
