"""The substep loop: a planned substep graph that runs on a state, from Python or inside the solve node."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mpm_nodes.data import (
    Collider,
    Emitter,
    MpmNodesError,
    Particles,
    StepContext,
    WallRule,
    Walls,
    domain_named,
    merge_materials,
)
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.substeps import SubstepPlan, recipe_of
from mpm_nodes.graph.time.clock import Clock, FrameClock
from mpm_nodes.materials.values import FloatType
from mpm_nodes.physics import with_further
from mpm_nodes.solver.advice import Advice
from mpm_nodes.solver.auto_steps import Choice, choose_again
from mpm_nodes.solver.checked import run_checked
from mpm_nodes.solver.coefficients import KeyedMaterials
from mpm_nodes.solver.cold_start import compiled_in_two
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.columns import ALWAYS, allocated
from mpm_nodes.solver.emission import emission_of, material_indices
from mpm_nodes.solver.further_stores import further_stores
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.initial import completed, measure_gradients, origin_of, own_fields
from mpm_nodes.solver.memory import StageMemories
from mpm_nodes.solver.periodic import period_of
from mpm_nodes.solver.plates import Splines
from mpm_nodes.solver.program import limiting, programs_of
from mpm_nodes.solver.ranks.refusals import refuse_plates
from mpm_nodes.solver.ranks.share import shared_among
from mpm_nodes.solver.ranks.team import Team
from mpm_nodes.solver.rollback import Rollback
from mpm_nodes.solver.sides import TRAVEL, bears_sides, divide, join, spline_width
from mpm_nodes.solver.snapshots import snapshot_of
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Store
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.solver.walls import WallSet

SORT_INTERVAL = 128
"""Substeps after which particles are sorted again even if nothing drifted far: runs of equal cells keep the scatter fast."""


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
    ) -> None:
        self.clock = Clock() if clock is None else clock
        merged, remaps = merge_materials([particles, *(emitter.template for emitter in emitters)])
        self.materials = with_further(merged)
        if not len(particles) and not emitters:
            raise MpmNodesError("solve: there are neither particles nor emitters; wire a source into it")
        if not self.materials:
            raise MpmNodesError("solve: the particles have no material; wire a material node into their emitter")
        self.streams = tuple(emission_of(e, remap, self.clock) for e, remap in zip(emitters, remaps[1:], strict=True))
        # no particles have no spacing: what streams in says it
        self.spacing = particles.spacing if len(particles) else min(emitter.template.spacing for emitter in emitters)
        self.cell_size = float(2.0 * self.spacing if cell_size is None else cell_size)
        if not (np.isfinite(self.cell_size) and self.cell_size > 0):
            raise MpmNodesError(f"solve: cell_size = {self.cell_size:g} m; give a finite size > 0")
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(dtype)
        self._coefficients = KeyedMaterials(self.materials, self.dtype)
        laws = self._coefficients.at(self.clock.origin)
        state_names = tuple(dict.fromkeys(name for law in laws for name in law.names))
        inputs = tuple(dict.fromkeys(name for law in laws for name in law.loops.law.inputs))
        self.programs = programs_of(substeps, state_names, fuse, registry, inputs)
        self.choice: Choice | None = None
        self.own_dt = 0.0
        columns = {name for part in [particles, *(e.template for e in emitters)] for name in part.attributes}
        plans = [program.unfused for program in self.programs]
        own = own_fields(laws, plans, [particles, *(emitter.template for emitter in emitters)])
        needed = [name for plan in plans for name in plan.fields_needed["particles"]]
        names = allocated(needed, (*state_names, *inputs), columns, own)
        self.particles = ParticleStore(
            names,
            cell_size=self.cell_size,
            dtype=self.dtype,
            materials=len(self.materials),
            origin=origin_of(particles, walls, emitters) if origin is None else origin,
            own_fields=own.values(),
            apart=next((name for name in ("firm", "body") if name in needed), ""),
            period=period_of(walls, self.cell_size, plans),
        )
        self._bodies_given = "body" in columns
        self.recipe, self.fuse = recipe_of(substeps), fuse
        self.particles.laws = laws
        self.transient = frozenset.intersection(*(program.transient for program in self.programs))
        self.transient -= {("particles", name) for name in (*columns, *ALWAYS)}
        self.grid = GridStore(self.particles, {name for plan in plans for name in plan.fields_needed.get("grid", ())})
        self.share = shared_among(team, self.particles, self.grid, plans)
        self.energy = EnergyStore(self.grid)
        self.stores: dict[str, Store] = {
            "particles": self.particles,
            "grid": self.grid,
            "energy": self.energy,
            "colliders": Store(),
        }
        self.walls, self.gravity, self.checked = walls, gravity, checked
        self.advice = Advice(self)
        self.wall_motion: Callable[[float], Walls] | None = None
        self.step_context = StepContext(cell_size=self.cell_size, dt_min=dt_min, dt_max=dt_max, share=self.share, checked=checked)
        self.step_context.advise = self.advice
        self.time, self.until, self.substeps_done, self.frame = 0.0, math.inf, 0, self.clock.origin
        stages = [planned.id for program in self.programs for planned in program.plan.stages]
        self.stage_seconds: dict[str, float] = dict.fromkeys(["sort", *stages], 0.0)
        self.program = self.programs[0]
        self.stores |= further_stores([program.unfused for program in self.programs], self.stores)
        self.memory = StageMemories(
            {f"{n} {key}": memory for n, each in enumerate(self.programs) for key, memory in each.plan.new_memories().items()}
        )
        self.grid.spline = int(max(map(spline_width, plans)))
        self.spline_width = self.cell_size * self.grid.spline
        self._bears_sides = all(map(bears_sides, plans))
        self._place_colliders(colliders, None, None)
        if any(("particles", "id") in planned.writes for program in self.programs for planned in program.plan.stages):
            self.particles.reserve(len(particles) * 5 // 4)  # stages make particles: room from the start saves moving them all
        initial = dict(particles.attributes)
        initial["material"] = remaps[0][initial.get("material", np.zeros(len(particles), np.int32))]
        self._add(completed(initial, particles, self.materials, self.dtype))
        self._limiting = limiting((*state_names, *inputs))
        # the velocity gradient must be there when the limits of dt are measured again
        deletes = walls is not None and WallRule.DELETE in walls.sides
        self._lasting = bool(emitters) or deletes or self._coefficients.keyed
        self._emit(-math.inf, 0.0)  # what is there at the initial state
        self._gradients_known = "velocity_gradient" in columns

    @property
    def plan(self) -> SubstepPlan:
        """The substep plan that runs."""
        return self.program.plan

    @property
    def next_id(self) -> int:
        """Identity of the next particle that comes."""
        return self.particles.next_id

    @property
    def lasting_stores(self) -> dict[str, Store]:
        """What holds something from one substep to the next: domains by name, and "memory"."""
        lasting = {name: store for name, store in self.stores.items() if store.names and not domain_named(name).begins_empty}
        return {**lasting, "memory": self.memory}

    def unsaved(self, place: str) -> frozenset[str]:
        """Return the fields of a domain that a checkpoint need not hold."""
        if place not in self.stores:
            return frozenset()
        fields = domain_named(place).fields
        return frozenset(
            name
            for name in self.stores[place].names
            if (place, name) in self.transient or (name in fields and not fields[name].saved)
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
        two_sided = Splines(self.spline_width, self.cell_size) if self._bears_sides else None
        self.colliders = ColliderSet(colliders, walls, self.dtype, self.particles.origin, previous, clock, two_sided)
        self.stores["colliders"] = self.colliders
        self.particles.travelled = math.inf  # the plates may be others
        if self.share.several:
            refuse_plates(self.colliders)
        self.choose(self.programs.index(self.program))

    def begin_frame(self, clock: FrameClock, colliders: Sequence[Collider], emitters: Sequence[Emitter]) -> None:
        """Take the bodies and emitters of a frame, which end it where they say.

        Args:
            clock: The clock over the frame.
            colliders: The bodies.
            emitters: As many as the solver was made with.
        """
        self.until, self.step_context.frame_at = clock.end, clock.frame_at
        self.forget_past()
        self.set_colliders(colliders, clock)
        for stream, emitter in zip(self.streams, emitters, strict=True):
            stream.follow(emitter, material_indices(emitter.template, self.materials), clock)

    def mark(self) -> Callable[[], None]:
        """Return what puts the solver back to where it is now, but for the seconds that its stages took; it may be called again."""
        rollback, index = Rollback(self), self.programs.index(self.program)
        held = self.choice, self.own_dt, self.substeps_done, self._gradients_known

        def come_back() -> None:
            seconds = dict(self.stage_seconds)
            rollback.restore()
            self.stage_seconds.update(seconds)
            self.choice, self.own_dt, self.substeps_done, self._gradients_known = held
            self.choose(index)
            self.forget_past()

        return come_back

    def forget_past(self) -> None:
        """Forget what stores keep of earlier substeps to save work."""
        for store in self.stores.values():
            store.forget_past()

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """Presets of the candidates of `substeps="auto"`."""
        return tuple(program.recipe["preset"] for program in self.programs)

    def choose(self, index: int) -> None:
        """Run one of the candidates of `substeps="auto"` from now on (of other solves there is one)."""
        self.program = self.programs[index]
        mine = f"{index} "
        memories = {key.removeprefix(mine): each for key, each in self.memory.memories.items() if key.startswith(mine)}
        self._dispatch = self.program.plan.bind(self.stores, self.step_context, memories)
        self.step_context.limits = tuple((limit, call) for limit, call, _ in self._dispatch.limits)

    @compiled_in_two
    def step(
        self,
        dt: float | None = None,
        *,
        time_left: float = np.inf,
        frame: float = 0.0,
        check_cancel: Callable[[], None] = lambda: None,
        keep: bool = True,
    ) -> float:
        """Run one substep and return its length [s].

        Args:
            dt: Length of the substep; None lets the graph's own stage choose it.
            time_left: Longest substep allowed.
            frame: Fractional frame at which keyed knobs are sampled.
            check_cancel: Raises when the user asked to stop; called before every stage.
            keep: Store attributes that no later substep reads (stress, velocity gradient), for whoever looks at the state after
                this substep. One that uses up `time_left` stores them always.

        Raises:
            SimulationDiverged: The solve left the stable range.
            MpmNodesError: Neither `dt` is given nor does a stage choose it.
        """
        step = self.step_context
        self.frame = frame
        if not (self.substeps_done or self._gradients_known):
            self._prepare()
            measure_gradients(self.particles, self.grid)
            self._gradients_known = True
        if dt is None and len(self.programs) > 1:
            if self.choice is None or self.choice.is_old(self.own_dt):
                self.choice = choose_again(self, time_left, check_cancel)
                self.own_dt = self.choice.dt
        self.run_stages(dt, time_left, check_cancel, keep)
        if step.dt < time_left * (1.0 - 1e-9) or step.dt > self.own_dt:
            self.own_dt = step.dt  # what is left of a frame says nothing of the pace
        end = self.time + step.dt
        if abs(end - self.until) <= 1e-9 * step.dt:
            end = self.until  # what is due at the end of a frame is not put off by rounding
        self._emit(self.time, end)
        self.time = end
        step.substep += 1
        self.substeps_done += 1
        self.particles.sort_age += 1
        return step.dt

    def _emit(self, begin: float, end: float) -> None:
        """Add what the emitters bring in (begin, end], simulated seconds."""
        for stream in self.streams:
            columns = stream.between(begin, end)
            if columns is not None:
                self._add(completed(columns, stream.emitter.template, self.materials, self.dtype))

    def run_stages(self, dt: float | None, time_left: float, check_cancel: Callable[[], None], keep: bool = False) -> float:
        """Run the stages of one substep on the particles, without emitters and without advancing the time; returns dt [s].

        Args and errors are those of `step`.
        """
        step = self.step_context
        step.time, step.time_left, step.substeps_done = self.time, time_left, self.substeps_done
        step.gravity = tuple(self.gravity(self.time)) if callable(self.gravity) else tuple(self.gravity)
        if dt is None and not self.plan.sets_dt:
            raise MpmNodesError("substep: no stage of this graph chooses dt; give step(dt=...) or add choose_time_step")
        step.dt = min(dt, time_left) if dt is not None else 0.0
        step.check_cancel, step.limit = check_cancel, None
        speed = math.inf
        for store in self.stores.values():
            store.begin_substep()
        self._prepare()
        self._dispatch.sample(self.frame)
        if self._coefficients.keyed:
            self.particles.laws = self._coefficients.at(self.frame)
            self.particles.limits = None
        for planned, call, grid_is_empty in zip(
            self._dispatch.stages, self._dispatch.calls, self.program.grid_is_empty, strict=True
        ):
            if dt is not None and planned.sets:
                continue
            check_cancel()
            begin = time.perf_counter()
            if planned.declaration.joins and len(self.colliders.plates):
                self.colliders.pose(self.time, self.time + step.dt)
                join(self.grid, self.particles, self.colliders)
            if self._limiting & planned.writes:
                self.particles.limits = None
            step.keep = (
                keep
                or self.checked
                or self._lasting
                or self.program.lasting
                or self.memory.keep_next
                or step.dt >= step.time_left * (1.0 - 1e-9)
            )
            try:
                if self.checked:
                    run_checked(planned, call, {**self.stores, "memory": self.memory}, step.report)
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
        return step.dt

    def resume_choice(self, choice: Sequence[Any] | None) -> None:
        """Go on with the choice that a checkpoint holds: (index, dt, costs, own dt), or None."""
        if choice is not None:
            self.choice, self.own_dt = Choice(choice[0], choice[1], tuple(choice[2]), self.candidate_names), choice[3]
            self.choose(self.choice.index)

    def advance(self, duration: float, dt: float | None = None) -> int:
        """Run substeps for `duration` seconds and return how many."""
        end, count = self.time + duration, 0
        while end - self.time > 1e-12 * max(1.0, end):
            self.step(dt, time_left=end - self.time, keep=False)
            count += 1
        return count

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
        if self.particles.apart == "body" and not self._bodies_given:
            columns = {**columns, "body": columns["material"]}
        elif self.particles.apart == "firm":
            firm = np.array([law.moduli.shear > 0.0 for law in self.particles.laws], np.int32)
            columns = {**columns, "firm": firm[columns["material"]]}
        columns = {**columns, "id": self.particles.new_ids(count)}
        self.particles.append(self.share.mine(columns))

    # ---------------------------------------------------------------- looking
    def snapshot(self, names: Sequence[str] | None = None, frame: float | None = None) -> Particles:
        """Return frozen particles in the order of their ids, per simulated second; see `snapshot_of`."""
        return snapshot_of(self, names, frame)
