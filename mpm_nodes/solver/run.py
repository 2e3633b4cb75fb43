"""The substep loop: a planned substep graph that runs on a state, from Python or inside the solve node."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mpm_nodes.data import (
    ActiveMask,
    Collider,
    Emitter,
    Moment,
    MpmNodesError,
    Particles,
    SingleRank,
    StepContext,
    Vec3,
    WallRule,
    Walls,
    domain_named,
)
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.graph.time.clock import Clock, FrameClock
from mpm_nodes.materials.values import FloatType
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.advice import Advice
from mpm_nodes.solver.attachments import attach, sever
from mpm_nodes.solver.auto_steps import choose_again
from mpm_nodes.solver.candidates import Candidates
from mpm_nodes.solver.checked import run_checked
from mpm_nodes.solver.cold_start import compiled_in_two
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.columns import ALWAYS
from mpm_nodes.solver.contact_forces import refuse_untold_contacts, volumes_of_nodes
from mpm_nodes.solver.device.batches import Batches
from mpm_nodes.solver.device.choice import chosen_device
from mpm_nodes.solver.device.contacts import on_host_because
from mpm_nodes.solver.device.loops import written_by
from mpm_nodes.solver.device.residency import Device, Residency
from mpm_nodes.solver.drains import drain
from mpm_nodes.solver.emission import material_indices
from mpm_nodes.solver.exchanges import exchange_goals
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.initial import completed, measure_gradients, origin_of
from mpm_nodes.solver.matter import matter_of
from mpm_nodes.solver.metering import tell
from mpm_nodes.solver.moved_bodies import MovedBodies, moved_bodies, refuse_moved_bodies
from mpm_nodes.solver.numerical_damping import refuse_mixed_damping
from mpm_nodes.solver.passive import PassiveMatter
from mpm_nodes.solver.plates import Splines
from mpm_nodes.solver.program import Program
from mpm_nodes.solver.ranks.refusals import refuse_plates
from mpm_nodes.solver.ranks.share import shared_among
from mpm_nodes.solver.ranks.team import Team
from mpm_nodes.solver.rollback import Rollback
from mpm_nodes.solver.sides import TRAVEL, divide, join
from mpm_nodes.solver.sleep import Around
from mpm_nodes.solver.snapshots import snapshot_of
from mpm_nodes.solver.solve_stores import stores_of
from mpm_nodes.solver.sorting import SORT_INTERVAL
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.step_lengths import uses_up
from mpm_nodes.solver.stores import Store
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.solver.updates import update_attributes
from mpm_nodes.solver.walls import WallSet


class SubstepSolver:
    """Runs a substep graph on particles: arrays in, arrays out, one substep or many.

    Args:
        particles: Initial particles; `mass` and `volume` default to the density and the spacing of their material.
        substeps: Preset name, {"preset": name, "set": {...}, "edits": [...]}, a `SubstepRecipe`, a substeps document, or a
            plan; "auto" measures explicit and implicit substeps on the scene and takes the cheaper.
        cell_size: Grid spacing h [m]; None takes twice the particle spacing.
        colliders: Collision bodies.
        walls: Walls of the domain, or None.
        emitters: Continuous sources.
        gravity: Acceleration [m/s^2], or a function of the time [s] that returns one.
        dt_min: Shortest substep [s]; the graph's own choice is held to it.
        dt_max: Longest substep [s].
        dtype: numpy.float32 or numpy.float64.
        origin: World position of a grid node [m]; None takes the low corner of the walls, else of the particles.
        checked: Run every stage twice and compare what it declares with what it does (slow).
        fuse: Let neighbouring stages run as one kernel where the graph allows it; the numbers are the same to rounding.
        registry: Stages and presets that `substeps` may name; None takes the shared ones.
        clock: The shot's, which emitters, colliders and keys ask; None where all times are simulated seconds.
        team: The ranks that share the simulation, each of which makes its own solver with the same arguments; None: there is one.
        device: What loops run on: "cpu", "cuda", "auto", or a device.

    Raises:
        MpmNodesError: The graph, a material or the particles cannot be used; the message says why.
    """

    def __init__(
        self,
        particles: Particles,
        substeps: Any = "explicit_apic",
        *,
        cell_size: float | None = None,
        colliders: Sequence[Collider] = (),
        walls: Walls | None = None,
        emitters: Sequence[Emitter] = (),
        gravity: Any = (0.0, -9.81, 0.0),
        dt_min: float = 0.0,
        dt_max: float = 0.01,
        dtype: FloatType = np.float32,
        origin: npt.ArrayLike | None = None,
        checked: bool = False,
        fuse: bool = True,
        registry: Registry | None = None,
        clock: Clock | None = None,
        team: Team | None = None,
        device: Device | str = "cpu",
    ) -> None:
        clock = Clock() if clock is None else clock
        self.matter, remap = matter_of(particles, emitters, clock, np.dtype(dtype))
        h = _cell_size(2.0 * self.matter.spacing if cell_size is None else cell_size)
        laws = self.matter.coefficients.at(clock.origin)
        self.candidates = Candidates(substeps, laws, fuse, registry)
        refuse_mixed_damping(self.candidates.plans)
        sources = [particles, *(emitter.template for emitter in emitters)]
        place = h, origin_of(particles, walls, emitters) if origin is None else np.asarray(origin, float)
        self.stores = stores_of(self.matter, self.candidates, laws, sources, walls, place)
        self.particles.laws = laws
        found, self.runs_on = self._device(device, len(particles), team is not None, checked)
        self.residency = None if found is None else Residency(found)
        self.particles.residency = self.grid.residency = self.residency
        self.batches = None if found is None else Batches(self)
        self.ticks = 0.0, math.inf
        self.active: ActiveMask | None = None
        self.passive = PassiveMatter(self.particles)
        self.memory, self.stage_seconds = self.candidates.new_memories(), self.candidates.new_seconds()
        share = shared_among(team, self.particles, self.grid, self.candidates.plans)
        self.advice = Advice(self)
        self.step_context = StepContext(cell_size=h, dt_min=dt_min, dt_max=dt_max, share=share, checked=checked, advise=self.advice)
        self.walls, self.gravity = walls, gravity
        self.wall_motion: Callable[[float], Walls] | None = None
        self.time, self.until, self.substeps_done, self.frame = 0.0, math.inf, 0, clock.origin
        self._place_colliders(colliders, None, None)
        if self.residency is not None and (because := on_host_because(self.colliders)):
            self.runs_on += f"; contacts are found on the CPU, since {because}"
        if self.candidates.makes_particles:
            self.particles.reserve(len(particles) * 5 // 4)  # room from the start saves moving them all
        first = dict(particles.attributes)
        first["material"] = remap[first.get("material", np.zeros(len(particles), np.int32))]
        self._add(completed(first, particles, self.matter.materials, self.matter.dtype))
        self._emit(-math.inf, 0.0)  # what is there at the initial state

    def _device(self, device: Device | str, count: int, several: bool, checked: bool) -> tuple[Device | None, str]:
        """Return the device, None for the CPU, and why it is that."""
        if not isinstance(device, str):
            return device, f"the solve runs on {device.name}"
        laws = [law.loops.law for law in self.particles.laws]
        programs = self.candidates.programs
        return chosen_device(device, programs, laws, self.matter.dtype, count, several=several, checked=checked)

    @property
    def particles(self) -> ParticleStore:
        """The particles."""
        return cast("ParticleStore", self.stores["particles"])

    @property
    def grid(self) -> GridStore:
        """The grid."""
        return cast("GridStore", self.stores["grid"])

    @property
    def energy(self) -> EnergyStore:
        """The energy of implicit steps."""
        return cast("EnergyStore", self.stores["energy"])

    @property
    def colliders(self) -> ColliderSet:
        """Bodies and walls."""
        return cast("ColliderSet", self.stores["colliders"])

    @property
    def share(self) -> SingleRank:
        """What this process agrees on with other ranks."""
        return self.step_context.share

    @property
    def cell_size(self) -> float:
        """Grid spacing h [m]."""
        return self.step_context.cell_size

    @property
    def program(self) -> Program:
        """The substep graph that runs."""
        return self.candidates.program

    @property
    def plan(self) -> SubstepPlan:
        """Its plan."""
        return self.program.plan

    @property
    def next_id(self) -> int:
        """Identity of the next particle that comes."""
        return self.particles.next_id

    @property
    def lasting_stores(self) -> dict[str, Store]:
        """What holds something from one substep to the next: domains by name, and "memory"."""
        lasting = {
            name: store
            for name, store in self.stores.items()
            if store.lasts or (store.names and not domain_named(name).begins_empty)
        }
        return {**lasting, "memory": self.memory}

    def unsaved(self, place: str) -> frozenset[str]:
        """Return the fields of a domain that a checkpoint need not hold; what may become passive keeps all that it has."""
        if place not in self.stores or self.stores[place].lasts or self.active is not None:
            return frozenset()
        fields = domain_named(place).fields
        brought = {("particles", name) for name in (*self.matter.columns, *ALWAYS)}
        transient = self.candidates.transient - brought
        return frozenset(
            name for name in self.stores[place].names if (place, name) in transient or (name in fields and not fields[name].saved)
        )

    # ---------------------------------------------------------------- running
    def set_colliders(self, colliders: Sequence[Collider], clock: FrameClock | None = None) -> None:
        """Replace the collision bodies (the solve node does so every frame).

        Args:
            colliders: The bodies; their keys are in seconds of the shot.
            clock: The clock over the frame; None where seconds of the shot and simulated seconds are the same.
        """
        self._place_colliders(colliders, clock, self.colliders)

    def _place_colliders(self, colliders: Sequence[Collider], clock: FrameClock | None, previous: ColliderSet | None) -> None:
        span = (0.0, 0.0) if clock is None else (clock.begin, clock.end)
        walls = WallSet(self.walls, self.particles.origin, self.wall_motion, span)
        two_sided = Splines(self.spline_width, self.cell_size) if self.candidates.bear_sides else None
        bodies = (*colliders, *self.passive.bodies(self.active))
        rigid = self.hold_rigid_bodies(colliders)
        if rigid is not None:
            # without that of passive matter: what sleeps near them wakes, and the state has the size of the frame before
            rigid.begin_frame(tuple(colliders), walls, self.particles.origin, self.cell_size, self.time)
        self.stores["colliders"] = ColliderSet(
            bodies, walls, self.matter.dtype, self.particles.origin, previous, clock, two_sided, rigid
        )
        if rigid is not None:
            self.colliders.place_for_bodies(self.time, 0.0)
        if self.colliders.sticks:
            refuse_untold_contacts(self.candidates.plans, "colliders: matter sticks to one by adhesion")
        if self.colliders.painted:
            refuse_untold_contacts(self.candidates.plans, "colliders: friction or adhesion of one varies over it")
        self.particles.travelled = math.inf  # the plates may be others
        if self.share.several:
            refuse_plates(self.colliders)
        self.choose(self.candidates.index)

    def hold_rigid_bodies(self, colliders: Sequence[Collider], *, again: bool = False, pace: float = 1.0) -> MovedBodies | None:
        """Return the state of those colliders that move by themselves, None where none does.

        Args:
            colliders: Those of the solve.
            again: Let them begin where they stand now, also where some did before.
            pace: Simulated seconds per second of the shot, of the keys that moved them until now.

        Raises:
            MpmNodesError: These substeps, or several ranks, have none.
        """
        if not any(each.rigid is not None for each in colliders):
            return None
        if again or "rigid_bodies" not in self.stores:
            refuse_moved_bodies(self.candidates.plans, self.share.several)
            self.stores["rigid_bodies"] = moved_bodies(colliders, pace)
        return cast("MovedBodies", self.stores["rigid_bodies"])

    def begin_frame(self, clock: FrameClock, colliders: Sequence[Collider], emitters: Sequence[Emitter]) -> None:
        """Take the bodies and emitters of a frame, which end it where they say.

        Args:
            clock: The clock over the frame.
            colliders: The bodies.
            emitters: As many as the solver was made with.
        """
        self.until, self.step_context.frame_at = clock.end, clock.frame_at
        self.ticks = clock.begin, clock.tick
        self.step_context.frame_seconds = clock.end - clock.begin
        self.forget_past()
        begin = Moment(clock.frame_at(clock.begin), clock.begin, clock.end - clock.begin)
        gravity = np.array([self.gravity_at(clock.begin), self.gravity_at(clock.end)])
        fixed = self.walls
        walls = self.wall_motion or (None if fixed is None else lambda time: fixed)
        rigid = self.hold_rigid_bodies(colliders)
        if rigid is not None and not rigid.has_begun:  # it goes on from a checkpoint
            span = (clock.begin, clock.end)
            sides = WallSet(self.walls, self.particles.origin, self.wall_motion, span)
            rigid.begin_frame(tuple(colliders), sides, self.particles.origin, self.cell_size, self.time)
        around = Around(self.colliders, colliders, clock, gravity, self.step_context, begin, walls, rigid)
        self.passive.part(self.particles, self.active, around, self.matter.spacing)
        self.set_colliders(colliders, clock)
        for stream, emitter in zip(self.matter.streams, emitters, strict=True):
            stream.follow(emitter, material_indices(emitter.template, self.matter.materials), clock)

    def gravity_at(self, time: float) -> Vec3:
        """Return gravity at a time of the simulation [m/s^2]."""
        x, y, z = self.gravity(time) if callable(self.gravity) else self.gravity
        return x, y, z

    def mark(self) -> Callable[[], None]:
        """Return what puts the solver back to where it is now, but for the seconds that its stages took; it may be called again."""
        rollback, tried = Rollback(self), self.candidates
        held, index, substeps_done = (tried.choice, tried.own_dt), tried.index, self.substeps_done
        beside = [*(stream.mark() for stream in self.matter.streams), self.passive.mark(self.step_context)]

        def come_back() -> None:
            seconds = dict(self.stage_seconds)
            rollback.restore()
            self.stage_seconds.update(seconds)
            (tried.choice, tried.own_dt), self.substeps_done = held, substeps_done
            self.choose(index)
            self.forget_past()
            for back in beside:
                back()

        return come_back

    def forget_past(self) -> None:
        """Forget what stores keep of earlier substeps to save work."""
        for store in self.stores.values():
            store.forget_past()

    @property
    def spline_width(self) -> float:
        """Width of the widest splines [m]."""
        return self.cell_size * self.grid.spline

    def choose(self, index: int) -> None:
        """Run one of the candidates of `substeps="auto"` from now on (of other solves there is one)."""
        self.candidates.program = self.candidates.programs[index]
        mine = f"{index} "
        memories = {key.removeprefix(mine): each for key, each in self.memory.memories.items() if key.startswith(mine)}
        plan = self.program.plan if self.residency is None else self.program.on_device
        self.dispatch = plan.bind(self.stores, self.step_context, memories)
        self.step_context.limits = tuple((limit, call) for limit, call, _ in self.dispatch.limits)
        self.particles.drift_limit = self.program.drift_limit
        if self.batches is not None:
            self.batches.forget()

    @compiled_in_two
    def step(
        self,
        dt: float | None = None,
        *,
        time_left: float = np.inf,
        frame: float = 0.0,
        check_cancel: Callable[[], None] = lambda: None,
        keep: bool = True,
        ahead: float | None = None,
    ) -> float:
        """Run one substep and return its length [s].

        Args:
            dt: Length of the substep; None lets the graph's own stage choose it.
            time_left: Longest substep allowed.
            frame: Fractional frame at which keyed knobs are sampled.
            check_cancel: Raises when the user asked to stop; called before every stage.
            keep: Store attributes that no later substep reads (stress, velocity gradient), for whoever looks at the state after
                this substep. One that uses up `time_left` stores them always.
            ahead: Simulated seconds until which nobody looks at particles or grid, nor changes anything but through calls of
                `step`: a device may run several substeps at once, and those to come return what it did. None: one at a time.

        Raises:
            SimulationDiverged: The solve left the stable range.
            MpmNodesError: Neither `dt` is given nor does a stage choose it.
        """
        step = self.step_context
        self.frame = frame
        if not (self.substeps_done or "velocity_gradient" in self.matter.columns):
            self._prepare()
            measure_gradients(self.particles, self.grid)
        step.time = self.time
        attach(self.particles, step, self.passive.store)
        tried = self.candidates
        if dt is None and len(tried.programs) > 1:
            if tried.choice is None or tried.choice.is_old(tried.own_dt):
                tried.choice = choose_again(self, time_left, check_cancel)
                tried.own_dt = tried.choice.dt
        step.time = self.time
        for store in (self.particles, self.passive.store):
            update_attributes(store, step.updates, step)
        exchange_goals(self.particles, step)
        if self.batches is None or ahead is None or keep or dt is not None or not self._repeat(ahead, time_left, check_cancel):
            self.run_stages(dt, time_left, check_cancel, keep)
        sever(self.particles, step, self.passive.store)
        if step.dt < time_left * (1.0 - 1e-9) or step.dt > tried.own_dt:
            tried.own_dt = step.dt  # what is left of a frame says nothing of the pace
        end = self.time + step.dt
        if abs(end - self.until) <= 1e-9 * step.dt:
            end = self.until  # what is due at the end of a frame is not put off by rounding
        drain(self.particles, step.drains, step)
        self._emit(self.time, end)
        self.time = end
        step.substep += 1
        self.substeps_done += 1
        self.particles.sort_age += 1
        return step.dt

    def _emit(self, begin: float, end: float) -> None:
        """Add what the emitters bring in (begin, end], simulated seconds."""
        for stream in self.matter.streams:
            columns = stream.between(begin, end)
            if columns is not None:
                matter = self.particles, self.passive.store
                columns = stream.admitted(columns, matter, self.share.totals, self._frame_at(end))
            if columns is not None:
                self._add(completed(columns, stream.emitter.template, self.matter.materials, self.matter.dtype))
        tell(self.matter.streams, self.step_context)

    def _frame_at(self, time: float) -> float:
        """Return the frame at simulated seconds, before all keys where no graph says what frames are."""
        return -math.inf if self.step_context.frame_at is None else self.step_context.frame_at(time)

    def run_stages(self, dt: float | None, time_left: float, check_cancel: Callable[[], None], keep: bool = False) -> float:
        """Run the stages of one substep on the particles, without emitters and without advancing the time; returns dt [s].

        Args and errors are those of `step`.
        """
        step = self.step_context
        if dt is None and not self.plan.sets_dt:
            raise MpmNodesError("substep: no stage of this graph chooses dt; give step(dt=...) or add choose_time_step")
        self._begin(time_left, check_cancel)
        step.dt = min(dt, time_left) if dt is not None else 0.0
        speed, lasting = math.inf, self._lasting
        self.dispatch.sample(self.frame)
        if self.matter.coefficients.keyed:
            self.particles.laws = self.matter.coefficients.at(self.frame)
            self.particles.limits = None
        for planned, call, grid_is_empty in zip(self.dispatch.stages, self.dispatch.calls, self.program.grid_is_empty, strict=True):
            if dt is not None and planned.sets:
                continue
            check_cancel()
            begin = time.perf_counter()
            if planned.declaration.joins and len(self.colliders.plates):
                self.colliders.pose(self.time, self.time + step.dt)
                join(self.grid, self.particles, self.colliders)
            if planned.declaration.joins and self.colliders.sticks and self.residency is None:
                self.colliders.volume = volumes_of_nodes(self.grid)
            if self.candidates.limiting & planned.writes:
                self.particles.limits = None
            step.keep = (
                keep or step.checked or lasting or self.program.lasting or self.memory.keep_next or uses_up(step.dt, step.time_left)
            )
            try:
                if self.residency is not None:
                    with self.residency.writing(written_by(planned, self.particles, self.grid)):
                        call()
                elif step.checked:
                    run_checked(planned, call, {**self.stores, "memory": self.memory}, step)
                else:
                    call()
            except Exception as error:
                error.add_note(f"stage {planned.id}")
                raise
            if grid_is_empty and self.share.any(self.particles.generation != self.grid.generation):
                self._prepare()  # a user's stage moved particles far or added some: lay the grid out again under them
            if planned.sets and self.particles.limits is not None:
                speed = max((each[0] for each in self.particles.limits), default=0.0)
            self.stage_seconds[planned.id] += time.perf_counter() - begin
        self.particles.travelled += self.colliders.most_travelled(speed, step.dt)
        if self.batches is not None:
            self.batches.led()
        return step.dt

    def _begin(self, time_left: float, check_cancel: Callable[[], None]) -> None:
        """Begin a substep."""
        step = self.step_context
        step.time, step.time_left, step.substeps_done = self.time, time_left, self.substeps_done
        step.gravity = self.gravity_at(self.time)
        step.dt, step.check_cancel, step.limit = 0.0, check_cancel, None
        for store in self.stores.values():
            store.begin_substep()
        self._prepare()

    def _repeat(self, ahead: float, time_left: float, check_cancel: Callable[[], None]) -> bool:
        """Go through a substep that a device has run in a batch, or runs with others now; returns False where there is none."""
        step, batches = self.step_context, self.batches
        assert batches is not None
        self._begin(time_left, check_cancel)
        check_cancel()
        begin = time.perf_counter()
        dt = batches.next(ahead)
        if dt is not None:
            batches.choose()  # it tells what limits the substep
            step.dt = dt
            batches.end()
        self.stage_seconds[batches.chooses] += time.perf_counter() - begin
        return dt is not None

    def resume_choice(self, choice: Sequence[Any] | None) -> None:
        """Go on with the choice that a checkpoint holds, or with none."""
        if choice is not None:
            self.candidates.resume(choice)
            self.choose(choice[0])

    def advance(self, duration: float, dt: float | None = None) -> int:
        """Run substeps for `duration` seconds and return how many."""
        end, count = self.time + duration, 0
        while end - self.time > 1e-12 * max(1.0, end):
            self.step(dt, time_left=end - self.time, keep=False, ahead=end)
            count += 1
        return count

    @property
    def _lasting(self) -> bool:
        """Whether particles or coefficients change beside the stages: limits of dt are measured again then, from what is stored."""
        deletes = self.walls is not None and WallRule.DELETE in self.walls.sides
        changes = bool(self.matter.streams) or bool(self.step_context.drains)
        changes = changes or any(each.each_substep for each in self.step_context.updates)
        return changes or deletes or self.matter.coefficients.keyed

    def _prepare(self) -> None:
        """Sort when a particle could leave its tile, when particles came or went, or when the order has aged."""
        particles, begin = self.particles, time.perf_counter()
        if len(self.colliders.plates) or len(particles.block_sides) > 1:
            if not particles.sorted or particles.travelled >= TRAVEL * particles.h:
                self.colliders.pose(self.time, self.time)
                divide(particles, self.colliders)
        due = not particles.sorted or particles.drift >= self.program.drift_limit or particles.sort_age >= SORT_INTERVAL
        if self.share.any(due):
            self.share.sort(particles)
        self.grid.follow()
        self.stage_seconds["sort"] += time.perf_counter() - begin

    def _add(self, columns: Mapping[str, np.ndarray]) -> None:
        count = len(columns["position"])
        own = {"id": self.particles.new_ids(count)}
        for physics in all_physics():
            if (apart := self.particles.apart) in physics.apart:
                own[apart] = physics.apart[apart](columns, self.matter.columns, self.particles.laws)
        columns = {**columns, **own}
        self.particles.append(self.share.mine(columns))

    # ---------------------------------------------------------------- looking
    def snapshot(self, names: Sequence[str] | None = None, frame: float | None = None) -> Particles:
        """Return frozen particles in the order of their ids, per simulated second; see `snapshot_of`."""
        with contextlib.nullcontext() if self.residency is None else self.residency.reading():
            return snapshot_of(self, names, frame)


def _cell_size(value: float) -> float:
    h = float(value)
    if not (np.isfinite(h) and h > 0):
        raise MpmNodesError(f"solve: cell_size = {h:g} m; give a finite size > 0")
    return h
