"""The substep loop: a planned substep graph that runs on a state, from Python or inside the solve node."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import (
    ATTRIBUTES,
    Attribute,
    Collider,
    Emitter,
    Material,
    MpmNodesError,
    Particles,
    StepContext,
    WallRule,
    Walls,
    merge_materials,
)
from mpm_nodes.graph.plan import SubstepPlan
from mpm_nodes.materials.codegen import law_kernels
from mpm_nodes.materials.contract import law_of
from mpm_nodes.solver.auto_steps import Choice, measure
from mpm_nodes.solver.checked import run_checked
from mpm_nodes.solver.cold_start import compiled_in_two
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.emission import source_of
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.program import programs_of
from mpm_nodes.solver.state import BoundLaw, ParticleStore
from mpm_nodes.solver.terms.energy_store import EnergyStore

SORT_INTERVAL = 128
"""Substeps after which particles are sorted anew even if nothing drifted far: runs of equal cells keep the scatter fast."""

ALWAYS = ("velocity", "mass", "volume", "velocity_gradient")
OPTIONAL = ("stiffness_scale",)
"""Allocated only when the sources bring it."""


class SubstepSolver:
    """Runs a substep graph on particles: arrays in, arrays out, one substep or many.

    Args:
        particles: Initial particles; `mass` and `volume` default to the density and the spacing of their material.
        substeps: Preset name, {"preset": name, "set": {...}}, a substeps document, or a plan; "auto" measures explicit and
            implicit substeps on the scene and takes the cheaper.
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

    Raises:
        MpmNodesError: The graph, a material or the particles cannot be used; the message says why.
    """

    def __init__(self, particles: Particles, substeps: Any = "explicit_apic", *, cell_size: float | None = None,
                 colliders: Sequence[Collider] = (), walls: Walls | None = None, emitters: Sequence[Emitter] = (),
                 gravity: Any = (0.0, -9.81, 0.0), dt_min: float = 0.0, dt_max: float = 0.01, dtype: Any = np.float32,
                 origin: Any = None, checked: bool = False, fuse: bool = True) -> None:
        self.materials, remaps = merge_materials([particles, *(emitter.template for emitter in emitters)])
        if not len(particles) and not emitters:
            raise MpmNodesError("solve: there are neither particles nor emitters; wire a source into it")
        if not self.materials:
            raise MpmNodesError("solve: the particles have no material; wire a material node into their emitter")
        self.streams = tuple(source_of(e, remap) for e, remap in zip(emitters, remaps[1:], strict=True))
        self.spacing = particles.spacing
        self.cell_size = float(2.0 * particles.spacing if cell_size is None else cell_size)
        if not (np.isfinite(self.cell_size) and self.cell_size > 0):
            raise MpmNodesError(f"solve: cell_size = {self.cell_size:g} m; give a finite size > 0")
        self.dtype = np.dtype(dtype)
        laws = tuple(_bound(index, material, self.dtype) for index, material in enumerate(self.materials))
        state_names = tuple(dict.fromkeys(name for law in laws for name in law.names))
        self.programs = programs_of(substeps, state_names, fuse)
        self.choice: Choice | None = None
        columns = {name for part in [particles, *(e.template for e in emitters)] for name in part.attributes}
        users = {**{name: attribute for program in self.programs for name, attribute in program.unfused.user_attributes.items()},
                 **{name: _user_attribute(name, particles, emitters) for name in columns if name not in ATTRIBUTES}}
        needed = [name for program in self.programs for name in program.unfused.attributes_needed]
        names = [*ALWAYS, *state_names, *(n for n in needed if n not in OPTIONAL or n in columns),
                 *(n for n in columns if n in ATTRIBUTES), *users]
        self.particles = ParticleStore(
            names, cell_size=self.cell_size, dtype=self.dtype, materials=len(self.materials),
            origin=_origin(particles, walls, emitters) if origin is None else origin, user_attributes=users.values())
        self.recipe, self.fuse = substeps, fuse
        self.particles.laws = laws
        self.transient = frozenset.intersection(*(program.transient for program in self.programs)) - columns - set(ALWAYS)
        self.grid = GridStore(self.particles)
        self.energy = EnergyStore(self.grid)
        self.walls, self.gravity, self.checked = walls, gravity, checked
        self.step_context = StepContext(cell_size=self.cell_size, dt_min=dt_min, dt_max=dt_max)
        self.time, self.substeps_done, self._frame = 0.0, 0, 0.0
        stages = [planned.id for program in self.programs for planned in program.plan.stages]
        self.stage_seconds: dict[str, float] = dict.fromkeys(["sort", *stages], 0.0)
        self.colliders: ColliderSet | None = None
        self.program = self.programs[0]
        self.set_colliders(colliders)
        if any(("particles", "id") in planned.writes for program in self.programs for planned in program.plan.stages):
            self.particles.reserve(len(particles) * 5 // 4)  # stages make particles: room from the start saves moving them all
        initial = dict(particles.attributes)
        initial["material"] = remaps[0][initial.get("material", np.zeros(len(particles), np.int32))]
        self._add(_completed(initial, particles, self.materials))
        limiting = ("velocity", "velocity_gradient", "stiffness_scale", *state_names)
        self._limiting = frozenset(("particles", name) for name in limiting)
        # the velocity gradient must be there when the limits of dt are measured anew
        self._lasting = bool(emitters) or (walls is not None and WallRule.DELETE in walls.sides)

    @property
    def plan(self) -> SubstepPlan:
        """The substep plan that runs."""
        return self.program.plan

    @property
    def next_id(self) -> int:
        """Identity of the next particle that comes."""
        return self.particles.next_id

    # ---------------------------------------------------------------- running
    def set_colliders(self, colliders: Sequence[Collider], clock: tuple[float, float, float] | None = None) -> None:
        """Replace the collision bodies (the solve node does so every frame).

        Args:
            colliders: The bodies; their keys are in seconds of the shot.
            clock: (simulated seconds, seconds of the shot at that moment, simulated seconds per second of the shot); None
                when they are the same.
        """
        self.colliders = ColliderSet(colliders, self.walls, self.dtype, self.particles.origin, self.colliders, clock)
        self.choose(self.programs.index(self.program))

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """Presets of the candidates of `substeps="auto"`."""
        return tuple(program.recipe["preset"] for program in self.programs)

    def choose(self, index: int) -> None:
        """Run one of the candidates of `substeps="auto"` from now on (of other solves there is one)."""
        self.program = self.programs[index]
        self._dispatch = self.program.plan.bind(
            {"particles": self.particles, "grid": self.grid, "colliders": self.colliders, "energy": self.energy},
            self.step_context)

    @compiled_in_two
    def step(self, dt: float | None = None, *, time_left: float = np.inf, frame: float = 0.0,
             check_cancel: Callable[[], None] = lambda: None, keep: bool = True) -> float:
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
        self._frame = frame
        if dt is None and len(self.programs) > 1:
            self._choose_again(time_left, check_cancel)
        self.run_stages(dt, time_left, check_cancel, keep)
        for stream in self.streams:
            columns = stream.between(self.time, self.time + step.dt)
            if columns is not None:
                self._add(_completed(columns, stream.emitter.template, self.materials))
        self.time += step.dt
        step.substep += 1
        self.substeps_done += 1
        self.particles.sort_age += 1
        return step.dt

    def run_stages(self, dt: float | None, time_left: float, check_cancel: Callable[[], None], keep: bool = False) -> float:
        """Run the stages of one substep on the particles, without emitters and without advancing the time; returns dt [s].

        Args and errors are those of `step`.
        """
        step = self.step_context
        step.time, step.time_left = self.time, time_left
        step.gravity = tuple(self.gravity(self.time)) if callable(self.gravity) else tuple(self.gravity)
        if dt is None and not self.plan.sets_dt:
            raise MpmNodesError("substep: no stage of this graph chooses dt; give step(dt=...) or add choose_time_step")
        step.dt = min(dt, time_left) if dt is not None else 0.0
        step.check_cancel = check_cancel
        self.energy.clear()
        self._prepare()
        self._dispatch.sample(self._frame)
        for planned, call, grid_is_empty in zip(
                self._dispatch.stages, self._dispatch.calls, self.program.grid_is_empty, strict=True):
            if dt is not None and planned.sets:
                continue
            check_cancel()
            begin = clock.perf_counter()
            if self._limiting & planned.writes:
                self.particles.limits = None
            step.keep = (keep or self.checked or self._lasting or self.program.lasting or self.particles.keep_next
                         or step.dt >= step.time_left * (1.0 - 1e-9))
            if self.checked:
                run_checked(planned, call, self.particles, self.grid, step.report)
            else:
                call()
            if grid_is_empty and self.particles.generation != self.grid.generation:
                self._prepare()  # a user's stage moved particles far or added some: lay the grid out anew under them
            self.stage_seconds[planned.id] += clock.perf_counter() - begin
        return step.dt

    def resume_choice(self, choice: Sequence[Any] | None) -> None:
        """Go on with the choice that a checkpoint holds: (index, dt, costs), or None."""
        if choice is not None:
            self.choice = Choice(choice[0], choice[1], tuple(choice[2]), self.candidate_names)
            self.choose(self.choice.index)
            self.step_context.dt = self.choice.dt

    def _choose_again(self, time_left: float, check_cancel: Callable[[], None]) -> None:
        """Choose among the candidates where there is no choice yet, or where dt has changed much since."""
        if self.choice is not None and not self.choice.is_old(self.step_context.dt):
            return
        self.choice = measure(self, time_left, check_cancel)
        self.choose(self.choice.index)
        self.step_context.report["choice"] = self.choice

    def advance(self, duration: float, dt: float | None = None) -> int:
        """Run substeps for `duration` seconds and return how many."""
        end, count = self.time + duration, 0
        while end - self.time > 1e-12 * max(1.0, end):
            self.step(dt, time_left=end - self.time, keep=False)
            count += 1
        return count

    def _prepare(self) -> None:
        """Sort when a particle could leave its tile, when particles came or went, or when the order has aged."""
        particles, begin = self.particles, clock.perf_counter()
        if not particles.sorted or particles.drift >= self.program.drift_limit or particles.sort_age >= SORT_INTERVAL:
            particles.sort()
        self.grid.follow()
        self.stage_seconds["sort"] += clock.perf_counter() - begin

    def _add(self, columns: Mapping[str, np.ndarray]) -> None:
        count = len(columns["position"])
        self.particles.append({**columns, "id": self.particles.new_ids(count)})

    # ---------------------------------------------------------------- looking
    def snapshot(self, names: Sequence[str] | None = None) -> Particles:
        """Return frozen particles in the order of their ids; `names` limits the attributes."""
        store = self.particles
        order = np.argsort(store.unpack("id"), kind="stable")
        chosen = [name for name in store.names if names is None or name in names or name in ("id", "material")]
        columns = {name: store.unpack(name)[order] for name in ("position", *chosen)}
        return Particles(columns, self.materials, self.spacing, self.time)


def _bound(index: int, material: Material, dtype: np.dtype) -> BoundLaw:
    law, coefficients = law_of(material)
    viscosity = material.viscosity + (0.0 if law.viscosity is None else float(coefficients[law.viscosity]))
    coefficients = np.append(coefficients, material.viscosity)
    limits = [math.inf if limit is None else limit for limit in (material.tear_threshold, material.recovery_time)]
    return BoundLaw(index, material.label or law.label, law_kernels(material.law, dtype), coefficients, material.density, viscosity,
                    law.state, *limits)


def _user_attribute(name: str, particles: Particles, emitters: Sequence[Emitter]) -> Attribute:
    """Describe a column that is not in the attribute table: it is carried along."""
    column = next(part[name] for part in [particles, *(e.template for e in emitters)] if name in part)
    kind = "real" if column.dtype.kind == "f" else ("int64" if column.dtype.itemsize == 8 else "int32")
    return Attribute(name, name, tuple(column.shape[1:]), "", f"primvars:{name}", name, "Carried from the source.", kind)


def _completed(columns: Mapping[str, np.ndarray], source: Particles, materials: Sequence[Material]) -> dict[str, np.ndarray]:
    """Fill in mass and volume where the source gives none: a lattice of its spacing at its material's density."""
    columns, count = dict(columns), len(columns["position"])
    columns.setdefault("volume", np.full(count, source.spacing**3))
    density = np.array([material.density for material in materials])
    columns.setdefault("mass", density[columns["material"]] * columns["volume"])
    for name in ("mass", "volume"):
        if count and not (np.isfinite(columns[name]).all() and columns[name].min() > 0):
            raise MpmNodesError(f"solve: particle {name} must be finite and > 0; the smallest is {columns[name].min():g}")
    return columns


def _origin(particles: Particles, walls: Walls | None, emitters: Sequence[Emitter]) -> np.ndarray:
    """Put a grid node on the low corner of the walls, else of the matter: results move with the scene."""
    if walls is not None:
        return np.asarray(walls.low, float)
    parts = [part for part in [particles, *(emitter.template for emitter in emitters)] if len(part)]
    return np.min([part["position"].min(axis=0) for part in parts], axis=0)
