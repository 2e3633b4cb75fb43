"""The solve: runs a substep graph over the frame and publishes a snapshot."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mpm_nodes.data import (
    A,
    ActiveMask,
    Ambient,
    AttributeUpdate,
    BodyForce,
    Collider,
    Corner,
    Drain,
    Emitter,
    FrameContext,
    Frames,
    Many,
    Metres,
    MetresPerSecondSquared,
    Moment,
    Particles,
    Previous,
    Range,
    Report,
    RigidMotion,
    Seconds,
    SubstepGraph,
    Unitless,
    Vec3,
    WallRule,
    Walls,
    concatenate,
)
from mpm_nodes.graph.declare import found_by, node
from mpm_nodes.graph.time.clock import Clock, FrameClock, per_second_of_the_shot
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable, TakenAtStart
from mpm_nodes.nodes.attachments import with_attachments
from mpm_nodes.nodes.crowding import crowds
from mpm_nodes.nodes.fields_of_particles import with_columns_of
from mpm_nodes.nodes.solve_needs import ComputeDevice, Precision, expected
from mpm_nodes.nodes.start_inside import StartInside, begun
from mpm_nodes.solver.checkpoint import SolverState


class SolveOutputs(NamedTuple):
    """What a solve publishes: a frozen snapshot, the state that the next frame moves on, and where its rigid bodies are."""

    particles: Particles
    state: SolverState
    bodies: RigidMotion


DT_FACTORS = (1.0, 0.5, 0.25)
"""Factors on dt of the attempts at a frame of implicit substeps."""


def _flip_as_before(knobs: dict[str, Any], inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Up to version 3 foam took its share of FLIP in every substep, however long."""
    substeps = knobs.get("substeps")
    given = substeps if isinstance(substeps, dict) else {"preset": substeps}
    settings = given.get("set", {})
    if given.get("preset") == "continuum_foam" and isinstance(settings, dict):  # what is neither is refused later, in words
        knobs = {**knobs, "substeps": {"preset": "continuum_foam", "set": {"gather.per_substep": True, **settings}}}
    return knobs, inputs


@found_by("simulate", "sim", "dop", "simulation")
@node(
    category="Solve",
    label="MPM Solve",
    version=4,
    preflight=expected,
    needs_any=("sources", "emitters"),
    upgrades={3: _flip_as_before},
)
def solve(
    ctx: FrameContext,
    previous: Previous[SolverState],
    sources: A[Many[Particles], TakenAtStart()] = (),
    emitters: Many[Emitter] = (),
    colliders: Many[Collider] = (),
    ambient: Many[Ambient] = (),
    forces: Many[BodyForce] = (),
    drains: Many[Drain] = (),
    updates: Many[AttributeUpdate] = (),
    active: ActiveMask | None = None,
    *,
    substeps: SubstepGraph = "explicit_apic",
    gravity: A[Vec3, MetresPerSecondSquared] = (0.0, -9.81, 0.0),
    time_scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=2.0), KeysTravel()] = 1.0,
    start_frame: A[int, Frames, NotKeyable("there is one initial state")] = 1,
    dt_max: A[float, Seconds, Range(min=0.0, exclusive_min=True)] = 0.0105,
    dt_min: A[float, Seconds, Range(min=0.0)] = 0.0,
    precision: Precision = Precision.SINGLE,
    device: ComputeDevice = ComputeDevice.CPU,
    wall_low: A[Vec3, Metres, Corner("wall_high")] = (-10.0, -10.0, -10.0),
    wall_high: A[Vec3, Metres, Corner("wall_low")] = (10.0, 10.0, 10.0),
    wall_x_low: WallRule = WallRule.OPEN,
    wall_x_high: WallRule = WallRule.OPEN,
    wall_y_low: WallRule = WallRule.OPEN,
    wall_y_high: WallRule = WallRule.OPEN,
    wall_z_low: WallRule = WallRule.OPEN,
    wall_z_high: WallRule = WallRule.OPEN,
    wall_friction: A[float, Unitless, Range(min=0.0, soft_max=1.0)] = 0.0,
    start_inside: StartInside = StartInside.KEEP,
    contact_forces: bool = False,
) -> SolveOutputs:
    """Move matter through the frame with the material point method.

    Opposite sides that are both periodic are one place: what leaves on one comes in at the other. They lie a multiple of eight
    cells apart; matter meets across them, colliders do not reach beyond.

    Args:
        sources: Particles at the start frame.
        emitters: Streams and drops that bring particles while the solve runs; they may move and change.
        colliders: Bodies that matter meets; where they overlap, the last one decides.
        ambient: Air from a VDB grid, and heat made in places, for substeps with heat; tension fields, for those with surfaces.
        forces: What pushes the matter besides gravity, in the order of the wires.
        drains: Places that take matter away after every substep.
        updates: What changes attributes of particles as every frame begins, in the order of the wires.
        active: Which matter moves; the rest stands still, takes no time, and active matter meets it. Nothing wired: all moves.
        substeps: Substep graph: a preset, a preset with settings, or a whole graph.
        gravity: Acceleration of everything; keys are sampled every substep.
        time_scale: Simulated seconds per second of the shot; below 1 is slow motion. Velocities leave the solve per
            second of the shot.
        start_frame: Frame of the initial state; before it everything stands still.
        dt_max: Longest substep.
        dt_min: Shortest substep; a solve that would need a shorter one ends as diverged.
        precision: Single precision is twice as fast; double is for validation.
        device: What the solve runs on: the CPU, an NVIDIA GPU, or the GPU where there is one that can (docs/gpu.md).
        wall_low: Low corner of the domain; used where a side is not open. A keyed wall moves what it touches.
        wall_high: High corner of the domain; used where a side is not open. A keyed wall moves what it touches.
        wall_x_low: What the side at low x does.
        wall_x_high: What the side at high x does.
        wall_y_low: What the side at low y (the floor) does.
        wall_y_high: What the side at high y does.
        wall_z_low: What the side at low z does.
        wall_z_high: What the side at high z does.
        wall_friction: Coulomb friction of sides that separate.
        start_inside: What becomes of particles of the sources that lie inside a collider as the solve begins: kept (the first
            substeps throw them out), pushed out to the nearest surface, or cut away.
        contact_forces: Tell the force and the torque of the matter on each collider in every frame, by the event contact_forces.

    Raises:
        SimulationDiverged: The solve left the stable range.
        MpmNodesError: Matter lies on both sides of a thin plate, and the substeps do not keep them apart.
    """
    import numpy as np

    from mpm_nodes.solver.run import SubstepSolver
    from mpm_nodes.solver.surroundings import activate, named, push, refuse_unknown_attributes, surround
    from mpm_nodes.solver.walls import check_box

    clock = Clock.of(ctx.settings, start_frame, time_scale)
    sides = (wall_x_low, wall_x_high, wall_y_low, wall_y_high, wall_z_low, wall_z_high)
    walls = None if all(side is WallRule.OPEN for side in sides) else Walls(wall_low, wall_high, sides, wall_friction)
    if walls is not None:
        check_box(wall_low, wall_high)
    solver = previous.solver if previous is not None else None
    masks = (active,) if active is not None else ()
    sources, emitters = with_attachments(*with_columns_of(sources, emitters, updates, (*forces, *drains, *masks)), forces)
    if solver is None:
        if previous is None:

            def warn(text: str) -> None:
                ctx.report("warning", where="sources", message=text)

            sources = tuple(begun(sources, ctx.wired, colliders, ctx.settings.cell_size, start_inside, warn))
        solver = SubstepSolver(
            concatenate(sources),
            substeps,
            cell_size=ctx.settings.cell_size,
            colliders=(),
            walls=walls,
            emitters=emitters,
            dtype=np.float32 if precision is Precision.SINGLE else np.float64,
            checked=ctx.checked,
            fuse=ctx.fuse,
            clock=clock,
            team=ctx.team,
            device=device.value,
        )
        if device is ComputeDevice.AUTO and previous is None:
            ctx.report("note", message=solver.runs_on)
        solver.hold_rigid_bodies(colliders)
        if previous is not None:
            previous.revive(solver, clock.simulated(ctx.frame - 1))
            if previous.is_trial:
                return SolveOutputs(_written(solver, clock, ctx.frame), previous, _bodies_of(solver, clock, ctx.frame))
        if previous is None:
            for port, text in crowds(sources, emitters, ctx.settings.cell_size):
                ctx.report("warning", where=port, message=text)
    if ctx.frame <= clock.origin:  # before it begins keys move what they move
        solver.hold_rigid_bodies(colliders, again=True, pace=clock.pace_at(clock.origin))
    activate(solver, active)
    if ctx.frame == ctx.settings.start and clock.origin > ctx.settings.end:
        message = f"the initial state is that of frame {start_frame}, after the last frame {ctx.settings.end}: nothing moves"
        ctx.report("warning", where="start_frame", message=f"{message}; lower start_frame or raise ctx.settings.end")
    if ctx.frame == ctx.settings.start and ctx.settings.start < 1 == start_frame <= ctx.settings.end:
        start = ctx.settings.start
        message = f"the initial state is that of frame 1, and the shot begins at {start}: nothing moves before frame 1"
        ctx.report("warning", where="start_frame", message=f"{message}; set start_frame to {start} to begin with the shot")
    if ctx.frame > clock.origin:
        knobs = {"gravity": gravity, "dt_min": dt_min, "dt_max": dt_max}
        knobs |= {"wall_low": wall_low, "wall_high": wall_high, "wall_friction": wall_friction}
        surround(solver, ambient)
        push(solver, named(forces, ctx.wired.get("forces", ())))
        if solver.residency is not None and forces and not solver.substeps_done:
            _tell_slow_forces(solver, ctx, clock.over(ctx.frame), forces)
        refuse_unknown_attributes("solve.drains", drains, solver.particles.names)
        refuse_unknown_attributes("solve.updates", updates, solver.particles.names)
        solver.step_context.updates = named(updates, ctx.wired.get("updates", ()))
        solver.step_context.drains = tuple(drains)
        solver.step_context.contact_forces = contact_forces and bool(colliders or active is not None)
        _advance_frame(solver, ctx, clock.over(ctx.frame), colliders, emitters, knobs)
    return SolveOutputs(_written(solver, clock, ctx.frame), SolverState(solver), _bodies_of(solver, clock, ctx.frame))


def _written(solver: Any, clock: Clock, frame: int) -> Particles:
    """Return the particles as the shot sees them: rates per second of the shot."""
    found = solver.snapshot(frame=frame)
    units = {name: attribute.unit for name, attribute in solver.particles.table.items()}
    columns = per_second_of_the_shot(dict(found.attributes), units, clock.pace_at(frame))
    return dataclasses.replace(found, attributes=columns)


def _bodies_of(solver: Any, clock: Clock, frame: int) -> RigidMotion:
    """Return where the rigid bodies are as the frame begins and ends; as the shot begins its colliders say so."""
    from mpm_nodes.solver.contact_forces import forces_by_name

    bodies = solver.stores.get("rigid_bodies")
    poses = {} if bodies is None else bodies.over_the_frame()
    return RigidMotion(poses, (clock.seconds(frame - 1), clock.seconds(frame)), forces_by_name(solver.step_context.report, frame))


def _tell_slow_forces(solver: Any, ctx: FrameContext, clock: FrameClock, forces: Many[BodyForce]) -> None:
    """Tell why a GPU does not push by forces, where it does not."""
    from mpm_nodes.solver.forces import push_obstacle

    because = push_obstacle(solver.particles, forces, Moment(clock.frame_at(clock.begin), clock.begin, clock.end - clock.begin))
    if because:
        ctx.report("note", message=f"forces push on the CPU, with copies in every substep: {because}")


def _advance_frame(
    solver: Any,
    ctx: FrameContext,
    clock: FrameClock,
    colliders: Many[Collider],
    emitters: Many[Emitter],
    knobs: Mapping[str, Any],
) -> None:
    """Move a solver on by a frame, and report what happened."""
    from mpm_nodes.solver import cold_start
    from mpm_nodes.solver.plates import Splines
    from mpm_nodes.solver.sides import one_sided, refuse_coupled
    from mpm_nodes.solver.snapshots import count_of

    def at(name: str, time: float, moves: bool = False) -> Any:
        sample = ctx.sample_uncut if moves and ctx.sample_uncut is not None else ctx.sample
        return knobs[name] if sample is None else sample(name, clock.frame_at(time))

    solver.share.meet()  # rank 0 may still make surfaces of the frame before
    end = clock.end
    _move_walls(solver, ctx, clock, at)
    solver.gravity = (lambda now: at("gravity", now)) if "gravity" in ctx.keyed else at("gravity", clock.begin)
    solver.begin_frame(clock, colliders, emitters)
    if not solver.substeps_done:
        for text in one_sided(solver.colliders, solver.spline_width, solver.cell_size):
            ctx.report("warning", where="colliders", message=text)
        splines = Splines(solver.spline_width, solver.cell_size)
        refuse_coupled(solver.particles, solver.colliders, splines, clock.begin)
    cold = cold_start.is_cold(solver)
    if cold:
        ctx.report("note", message=cold_start.NOTICE)
    step = solver.step_context
    step.frame = ctx.frame
    solver.passive.tell(step)
    before, began, held = dict(solver.stage_seconds), time.perf_counter(), count_of(solver)
    solver.advice.emitters = ctx.wired.get("emitters", ())
    _run_substeps(solver, ctx, clock, at, cold)
    if solver.batches is not None and (because := solver.batches.news()):
        ctx.report("note", message=f"substeps run one at a time, and the CPU waits for each: {because}")
    solver.time = end
    if many := solver.advice.of_many(step.substep, **step.report.of_substeps()):
        ctx.report("note", message=many)
    spent = {name: seconds - before[name] for name, seconds in solver.stage_seconds.items()}
    ctx.report("stages", seconds=time.perf_counter() - began, stages=spent)
    solver.share.join_report(step.report, ctx.frame)
    _report_facts(ctx, step.report)
    if held and not count_of(solver) and not any(stream.lasts_beyond(end) for stream in solver.matter.streams):
        message = f"no particle is left after frame {ctx.frame}, and none will come: walls that delete, a drain or a stage took all"
        ctx.report("warning", where="particles", message=f"{message}; move the walls, or give the last frames up")
    rigid = solver.stores.get("rigid_bodies")
    for name in [] if rigid is None else rigid.newly_fallen(solver.particles.box(), step.gravity):
        message = f"rigid body '{name}' has fallen below all that it could meet, and falls on without a floor"
        ctx.report("note", message=f"{message}; it shortens no substep")
    inside = solver.colliders.report(solver.particles)
    for name, count, depth in solver.share.inside(inside):
        if count:
            ctx.report("inside_collider", collider=name, particles=count, depth=depth)
        if depth > 0.5 * solver.cell_size:
            ctx.report(
                "warning",
                where=name,
                message=f"{count} particles are inside collider '{name}', up to {depth:.3g} m "
                f"deep; lower choose_time_step.cfl or the cell size if it shows",
            )


def _run_substeps(solver: Any, ctx: FrameContext, clock: FrameClock, at: Callable[[str, float], Any], cold: bool) -> None:
    """Run the substeps of a frame, sampling keyed knobs at every one.

    Implicit substeps are as long as speeds allow, and what pulls at the matter may throw a particle farther than they were chosen
    for: such a frame is solved again from its beginning, with half of dt, and once more with a quarter.

    Raises:
        SimulationDiverged: A substep failed, in the last attempt.
    """
    from mpm_nodes.solver.divergence import SimulationDiverged
    from mpm_nodes.solver.frame_progress import FrameProgress
    from mpm_nodes.solver.snapshots import count_of

    end, length, step = clock.end, clock.end - clock.begin, solver.step_context
    frames = ctx.frame - 1 - ctx.settings.start
    before = solver.substeps_done / frames if frames > 0 else 0.0  # of a frame so far, on average: resumed solves know it, too
    come_back = (
        solver.mark() if not solver.share.several and any(program.implicit for program in solver.candidates.programs) else None
    )
    ahead: float | None = end
    if changing := ctx.keyed & {"dt_min", "dt_max"}:
        ahead = None
        if solver.batches is not None:
            solver.batches.because = f"{min(changing)} has keys"
    for step.dt_factor in DT_FACTORS:
        # every frame begins with a sort and with measured limits: a resumed solve then continues with the same bits
        solver.particles.sorted, solver.particles.limits = False, None
        step.substep = 0
        compiles = cold and step.dt_factor == 1.0
        pace = FrameProgress(ctx.frame, length, ctx.report, ctx.max_substeps, compiles, before, advise=step.advise)
        try:
            while end - solver.time > 1e-9 * length:
                step.dt_min, step.dt_max = at("dt_min", solver.time), at("dt_max", solver.time)
                step.tick = clock.tick_at(solver.time)
                frame = clock.frame_at(solver.time)
                check_cancel = solver.share.cancel_check(ctx.check_cancel)
                dt = solver.step(time_left=end - solver.time, frame=frame, check_cancel=check_cancel, keep=False, ahead=ahead)
                facts = step.report.of_substeps()
                ctx.report("substep", dt=dt, particles=count_of(solver), **facts)
                pace.after(dt, end - solver.time, facts)
        except SimulationDiverged as error:
            last = step.dt_factor == DT_FACTORS[-1] or 0.5 * step.dt < step.dt_min
            if come_back is None or last:
                raise
            come_back()
            message = f"{error}; the frame is solved again from its beginning, with {0.5 * step.dt_factor:g} of dt"
            ctx.report("warning", where="substeps", message=message)
        else:
            break
    step.dt_factor = 1.0


def _move_walls(solver: Any, ctx: FrameContext, clock: FrameClock, at: Callable[..., Any]) -> None:
    """Let the walls follow their keys through the frame, where they have any; a step puts them elsewhere in the next one."""
    solver.wall_motion = None
    if solver.walls is None or ctx.sample is None:
        return

    def walls(time: float) -> Walls:
        low, high, friction = at("wall_low", time, True), at("wall_high", time, True), at("wall_friction", time)
        return dataclasses.replace(solver.walls, low=low, high=high, friction=friction)

    length = clock.end - clock.begin
    if any(walls(clock.begin + length * share / 8) != solver.walls for share in range(9)):
        solver.wall_motion = walls


def _report_facts(ctx: FrameContext, report: Report) -> None:
    """Publish what stages told in this frame, and what they warn of."""
    for group, values in report.of_frame(ctx.frame):
        if group.per_substep or (group.quiet and not values[group.quiet]):
            continue
        ctx.report(group.event, **values)
        if group.warning and values[group.warn_if]:
            ctx.report("warning", where=group.event, message=group.warning.format(**values))
