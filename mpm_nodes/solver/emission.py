"""Continuous emitters: a template of particles that streams through a nozzle, or whole copies of it that are dropped.

The template of a stream repeats along its velocity without gaps. A particle enters the solve when it passes the exit, where the
foremost particles of the template stand, and starts where the stream has carried it by the end of that substep: neither the
number of substeps nor their length shows. At its start frame the foremost particles are there; what would pass the exit just as it
ends stays out, so that a stream that lasts brings as much as its speed and its time say, and no layer more.

Symbols
    s     length of matter that has come out: integral of |v| over simulated time   m
    c_k   how far particle k of the template is from the exit                       m
    L     length of the template: repetition n of particle k comes at s = c_k + n L m
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import BIRTH, Emitter, Material, MpmNodesError, Particles
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock, FrameClock
from mpm_nodes.solver.births import shifts
from mpm_nodes.solver.nozzle_paths import Led, course

if TYPE_CHECKING:
    from mpm_nodes.solver.surface_streams import Shell

SAME_TIME = 1e-9
"""Share of a template's length within which a layer counts as out: rounding must not move it to the next substep."""
SAME_LAYER = 1e-3
"""Share of a spacing by which a layer of a shell may be nearer than it."""
KNOTS = 16
"""Places a frame at which the length of a stream with a keyed velocity is tabled."""


class Flow:
    """How much matter of a stream has come out, and how fast it comes, over simulated time.

    Args:
        velocity: [m/s], with keys where it is keyed.
        clock: The shot's.
        start: Simulated seconds at which the stream begins.
    """

    def __init__(self, velocity: tuple[float, float, float], clock: Clock, start: float) -> None:
        self._velocity, self._clock, self.start = velocity, clock, start
        self.keyed = keys.carries_keys(velocity)
        self._speed = float(np.linalg.norm(velocity))
        self._first = clock.frame_at(start)
        self._lengths = [0.0]

    def velocity(self, simulated: float) -> np.ndarray:
        """Return the velocity [m/s], shape (3,)."""
        return np.asarray(self._at(self._clock.frame_at(simulated)) if self.keyed else self._velocity, float)

    def _at(self, frame: float) -> np.ndarray:
        return np.asarray(keys.at(self._velocity, frame), float)

    def length(self, simulated: float) -> float:
        """Return how much matter has come out [m]; negative before the start."""
        if not self.keyed:
            return self._speed * (simulated - self.start)
        if simulated <= self.start:
            return (simulated - self.start) * float(np.linalg.norm(self._at(self._first)))
        frame = self._clock.frame_at(simulated)
        whole = int((frame - self._first) * KNOTS)
        while len(self._lengths) <= whole:
            knot = len(self._lengths)
            between = self._first + (knot - 1) / KNOTS, self._first + knot / KNOTS
            self._lengths.append(self._lengths[-1] + self._piece(*between))
        return self._lengths[whole] + self._piece(self._first + whole / KNOTS, frame)

    def _piece(self, first: float, last: float) -> float:
        """Return what comes out between two near frames [m]: Simpson's rule."""
        seconds = self._clock.simulated(last) - self._clock.simulated(first)
        begin, middle, end = (float(np.linalg.norm(self._at(f))) for f in (first, 0.5 * (first + last), last))
        return seconds / 6.0 * (begin + 4.0 * middle + end)


@dataclass
class _Nozzle:
    """Where the template stands during a frame: it moves evenly from `before` to `now`.

    Attributes:
        before: Positions of the template's particles [m], shape (n, 3).
        now: The same at the end of the frame.
        begin: Simulated seconds at the beginning of the frame.
        end: Simulated seconds at its end.
        course: Where its path has led it (`course`) at simulated seconds; None without a path.
    """

    before: np.ndarray
    now: np.ndarray
    begin: float = 0.0
    end: float = 0.0
    course: Callable[[float], Led] | None = None

    @property
    def moves(self) -> bool:
        """Whether it moves in this frame."""
        return self.before is not self.now and self.end > self.begin

    def at(self, who: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Return places [m] and velocities [m/s] of some of its particles at simulated times, each of shape (m, 3)."""
        places: np.ndarray
        speeds: np.ndarray | float
        if self.moves:
            share = np.clip((times - self.begin) / (self.end - self.begin), 0.0, 1.0)[:, None]
            motion = self.now[who] - self.before[who]
            places, speeds = self.before[who] + share * motion, motion / (self.end - self.begin)
        else:
            places, speeds = self.now[who], 0.0
        if self.course is not None and len(times):
            led = [self.course(float(time)) for time in times]
            if led[0].turn is not None:
                places, speeds = self._turned(places, speeds, times, led)
            places, speeds = places + [each.place for each in led], speeds + np.array([each.speed for each in led])
        return places, speeds

    def _turned(
        self, places: np.ndarray, speeds: np.ndarray | float, times: np.ndarray, led: Sequence[Led]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return places and speeds turned with the path, about the middle of the template."""
        middle, speed = self.now.mean(axis=0), np.zeros(3)
        if self.moves:
            share = np.clip((times - self.begin) / (self.end - self.begin), 0.0, 1.0)[:, None]
            first, motion = self.before.mean(axis=0), middle - self.before.mean(axis=0)
            middle, speed = first + share * motion, motion / (self.end - self.begin)
        turns, rates = np.array([each.turn for each in led]), np.array([each.rate for each in led])
        arms = places - middle
        carried = np.einsum("nij,nj->ni", rates, arms) + np.einsum("nij,nj->ni", turns, np.broadcast_to(speeds - speed, arms.shape))
        return middle + np.einsum("nij,nj->ni", turns, arms), speed + carried

    def along(self, directions: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return directions of the stream, of shape (m, 3) or (1, 3), turned with the path at simulated times."""
        if self.course is None or not len(times) or self.course(float(times[0])).turn is None:
            return directions
        turns = np.array([self.course(float(time)).turn for time in times])
        return np.einsum("nij,nj->ni", turns, np.broadcast_to(directions, (len(times), 3)))


class Brought:
    """What streams and drops have in common: what is due comes in, and time alone says what is due."""

    def mark(self) -> Callable[[], None]:
        """Return what puts it back to where it is now, where a frame is solved again."""
        return lambda: None

    def admitted(
        self, columns: Mapping[str, np.ndarray], matter: Any, total: Callable[[np.ndarray], np.ndarray], frame: float
    ) -> Mapping[str, np.ndarray] | None:
        """Return what of the columns from `between` comes in: all."""
        return columns


class Stream(Brought):
    """One streaming emitter of a solve.

    Args:
        emitter: What streams, how fast, from when to when.
        material_index: Index of each of the template's materials in the solve.
        clock: The shot's.

    Raises:
        MpmNodesError: The stream has no speed or no particles.
    """

    def __init__(self, emitter: Emitter, material_index: np.ndarray, clock: Clock | None = None) -> None:
        clock = Clock() if clock is None else clock
        self.start = clock.simulated(clock.frame(emitter.start))
        self.end = clock.simulated(clock.frame(emitter.end))
        self.flow = Flow(emitter.velocity, clock, self.start)
        velocity = emitter.velocity
        fastest = max((key[1] for key in velocity.keys), key=np.linalg.norm) if isinstance(velocity, keys.KeyedVector) else velocity
        speed = float(np.linalg.norm(fastest))
        if not len(emitter.template) or not speed > 0:
            raise MpmNodesError(
                f"emitter: {len(emitter.template)} particles at {speed:g} m/s; a stream needs particles and a speed > 0"
            )
        self._axis, self.moved = np.asarray(fastest, float) / speed, False
        template = self._take(emitter, material_index, clock.origin)
        self._lay_out(template)
        place = np.asarray(template["position"], np.float64)
        self._course = None if emitter.path is None else course(emitter.path, clock)
        self.nozzle = _Nozzle(place, place, course=self._course)

    def _take(self, emitter: Emitter, material_index: np.ndarray, frame: float) -> Particles:
        """Take an emitter as it is at a frame, and return what of its template streams."""
        template: Particles = emitter.template
        self.shell: Shell | None = None
        if emitter.surface is not None:
            from mpm_nodes.solver.surface_streams import shell_of  # compiles, and a state that is held need not

            self.shell = shell_of(template, emitter.surface, frame, emitter.deforms)
            template = self.shell.template
        self.emitter, self.columns = emitter, _columns(template, material_index)
        return template

    def _lay_out(self, template: Particles) -> None:
        """Lay the template out along the stream."""
        along = template["position"] @ self._axis if self.shell is None else self.shell.heights
        self.crossing = along.max() - along
        self.length = self._length()

    def _length(self) -> float:
        """Return the length of the template [m]: whole layers, as jitter must not open a gap where copies meet."""
        spacing, reach = self.emitter.template.spacing, float(np.ptp(self.crossing))
        if self.shell is not None:  # whose depths go on evenly, or in layers
            return (math.floor(reach / spacing + SAME_LAYER) + 1.0) * spacing
        return float((np.rint(reach / spacing) + 1.0) * spacing)

    def directed(self, velocity: np.ndarray, who: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return velocities, of shape (m, 3) or (1, 3), along the directions in which particles go at simulated times."""
        if self.shell is not None:
            velocity = np.linalg.norm(velocity, axis=1, keepdims=True) * self.shell.directions[who]
        return self.nozzle.along(velocity, times)

    def follow(self, emitter: Emitter, material_index: np.ndarray, clock: FrameClock) -> None:
        """Take the emitter as it is at the end of the coming frame: its template may have moved, turned or changed.

        A template that has only moved, turned or been stretched moves evenly through the frame, and what comes out takes on
        its velocity. So does each particle of one that deforms. Of one with other particles the middle does.
        """
        template = self._take(emitter, material_index, float(clock.frame))
        last, now = self.nozzle.now, np.asarray(template["position"], np.float64)
        if np.array_equal(now, last):
            self.nozzle = _Nozzle(last, last, course=self._course)
            return
        self.moved, before = True, last
        kept = emitter.deforms and len(now) == len(last)
        if not kept and not _moved_evenly(last, now, template.spacing):
            before = now - now.mean(axis=0) + last.mean(axis=0)
            self._lay_out(template)
        self.nozzle = _Nozzle(before, now, clock.begin, clock.end, self._course)

    def lasts_beyond(self, time: float) -> bool:
        """Whether something may come after simulated seconds."""
        return self.end > time

    def state(self) -> np.ndarray | None:
        """Return what a checkpoint must hold: places and distances to the exit [m], shape (n, 4); None for a still nozzle."""
        return np.column_stack([self.nozzle.now, self.crossing]) if self.moved else None

    def restore(self, state: np.ndarray) -> None:
        """Put the nozzle where `state` said that it stood."""
        place = state[:, :3].copy()
        self.nozzle, self.crossing, self.moved = _Nozzle(place, place, course=self._course), state[:, 3].copy(), True
        self.length = self._length()

    def fits(self, state: np.ndarray) -> bool:
        """Whether a state, of a solve with other settings, is one of this template."""
        return len(state) == len(self.crossing)

    def between(self, begin: float, end: float) -> Mapping[str, np.ndarray] | None:
        """Return the columns of the particles that come out in (begin, end], simulated seconds.

        What stands at the exit as the stream starts comes at `start`, in the span that holds it, what does as it ends not at all.
        """
        high = min(end, self.end)
        if high < self.start or high <= begin:
            return None
        low = max(begin, self.start)
        out_before = self._count(self.flow.length(low)) if begin >= self.start else np.zeros(len(self.crossing), int)
        # what is within rounding of the end came in the span before, if that ended there
        counts = np.maximum(self._count(self.flow.length(high), over=end >= self.end) - out_before, 0)
        if not counts.any():
            return None
        who = np.repeat(np.arange(len(counts)), counts)
        repetition = out_before[who] + np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, last = self.flow.length(low), self.flow.length(high)
        share = (self.crossing[who] + repetition * self.length - first) / (last - first) if last > first else np.zeros(len(who))
        times = low + np.clip(share, 0.0, 1.0) * (high - low)
        velocity = np.array([self.flow.velocity(t) for t in times]) if self.flow.keyed else self.flow.velocity(low)[None]
        velocity = self.directed(velocity, who, times)
        directions = velocity / np.maximum(np.linalg.norm(velocity, axis=1, keepdims=True), 1e-300)
        places, carried = self.nozzle.at(who, times)
        velocity = np.broadcast_to(velocity + self.emitter.inherit * carried, (len(who), 3))
        places = places + self.crossing[who, None] * directions + (end - times)[:, None] * velocity
        return self._born(who, times, places + self._beside(who, repetition, directions), velocity)

    def _beside(self, who: np.ndarray, repetition: np.ndarray, directions: np.ndarray) -> np.ndarray | float:
        """Return how far repetitions of particles are born beside their places [m], shape (n, 3)."""
        width = self.emitter.jitter * self.emitter.template.spacing
        return shifts(width, who, repetition, directions) if width > 0.0 else 0.0

    def _born(self, who: np.ndarray, times: np.ndarray, places: np.ndarray, velocity: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of particles of the template (`who`), born at simulated seconds, at places and with velocities."""
        columns = {name: column[who] for name, column in self.columns.items()}
        columns["position"], columns["velocity"] = places, velocity
        if BIRTH in columns:
            columns[BIRTH] = times
        return columns

    def _count(self, length: float, over: bool = False) -> np.ndarray:
        """Return how many repetitions of each particle have come out when so much matter [m] has, or all of it (`over`)."""
        passed = (length - self.crossing) / self.length
        return np.maximum(np.floor(passed + (-SAME_TIME if over else SAME_TIME)) + 1, 0).astype(int)


class Drops(Brought):
    """One dropping emitter of a solve: every copy appears whole, moved by its velocity to the end of that substep.

    Args:
        emitter: What is dropped, where, when and how fast.
        material_index: Index of each of the template's materials in the solve.
        clock: The shot's.
    """

    def __init__(self, emitter: Emitter, material_index: np.ndarray, clock: Clock | None = None) -> None:
        self._clock = Clock() if clock is None else clock
        self._take(emitter, material_index)

    def _take(self, emitter: Emitter, material_index: np.ndarray) -> None:
        self.emitter = emitter
        frames = [self._clock.frame(drop.time) for drop in emitter.drops]
        # copies from before the initial state are not in it
        self._due = [(self._clock.simulated(f), d) for f, d in zip(frames, emitter.drops, strict=True) if f >= self._clock.origin]
        self.columns = _columns(emitter.template, material_index)

    def follow(self, emitter: Emitter, material_index: np.ndarray, clock: FrameClock) -> None:
        """Take the emitter as it is at the end of the coming frame."""
        if emitter is not self.emitter:
            self._take(emitter, material_index)

    def lasts_beyond(self, time: float) -> bool:
        """Whether some copy comes after simulated seconds."""
        return any(due > time for due, _ in self._due)

    def state(self) -> None:
        """Return what a checkpoint must hold: nothing, copies follow from the emitter."""

    def between(self, begin: float, end: float) -> Mapping[str, np.ndarray] | None:
        """Return the columns of the copies whose time lies in (begin, end], simulated seconds."""
        due = [(time, drop) for time, drop in self._due if begin < time <= end]
        if not due:
            return None
        places, speeds = [], []
        for time, drop in due:
            velocity = np.asarray(keys.at(self.emitter.velocity, self._clock.frame_at(time)), float)
            turned = self.columns["position"] @ np.asarray(drop.rotation).T
            places.append(turned + np.asarray(drop.offset) + (end - time) * velocity)
            speeds.append(np.broadcast_to(velocity, turned.shape))
        columns = {name: np.concatenate([column] * len(due)) for name, column in self.columns.items()}
        columns["position"], columns["velocity"] = np.concatenate(places), np.concatenate(speeds)
        if BIRTH in columns:
            columns[BIRTH] = np.repeat([time for time, _ in due], len(self.columns[BIRTH]))
        return columns


def material_indices(template: Particles, materials: tuple[Material, ...]) -> np.ndarray:
    """Return the index in a solve of each material of a template.

    Raises:
        MpmNodesError: A material was not there when the solve began.
    """
    for material in template.materials:
        if material not in materials:
            raise MpmNodesError(
                f"emitter: its material '{material.label or material.law}' was not among the solve's as it began; "
                "key the parameters of one material instead of changing it"
            )
    return np.array([materials.index(material) for material in template.materials] or [0], np.int32)


def _moved_evenly(before: np.ndarray, now: np.ndarray, spacing: float) -> bool:
    """Whether one set of points is the other, moved, turned or stretched."""
    if len(before) != len(now):
        return False
    middle = before.mean(axis=0)
    arms = np.column_stack([before - middle, np.ones(len(before))])
    found = np.linalg.lstsq(arms, now, rcond=None)[0]
    return bool(np.abs(arms @ found - now).max() < 1e-6 * spacing)


def _columns(template: Particles, material_index: np.ndarray) -> dict[str, np.ndarray]:
    """Return the template's columns with the solve's material numbers; ids are given when a particle enters."""
    columns = {name: column for name, column in template.attributes.items() if name != "id"}
    columns["material"] = material_index[columns.get("material", np.zeros(len(template), np.int32))]
    return columns
