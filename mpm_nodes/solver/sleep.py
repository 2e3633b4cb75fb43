"""Sleep: matter that has come to rest is passive, by blocks, until something comes near.

Matter that rings has speeds, and goes nowhere: what counts is how far a particle is from where it was as a window of time began.
Blocks sleep as the window ends, and wake as a frame begins in which what moves could come to them: bodies, matter, another gravity,
another force, a wall, or a drain; and where what it rests on goes.

Rigid-body engines put islands of bodies to sleep; here it is blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpm_nodes.data import (
    Collider,
    CollisionRule,
    Moment,
    MpmNodesError,
    Sleep,
    StepContext,
    WallRule,
    Walls,
    attached_column,
    attachments_of,
)
from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys
from mpm_nodes.solver.collider_shapes import checked_shape, fastest_pose, own_speed
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.drains import inside
from mpm_nodes.solver.forces import push_particles
from mpm_nodes.solver.state import ParticleStore

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan
    from mpm_nodes.graph.time.clock import FrameClock
    from mpm_nodes.solver.moved_bodies import MovedBodies

__all__ = ["EDGE", "INTERFACE", "Around", "Sleepers", "keys_of", "near", "refuse_sleep"]

EDGE = 4
"""Cells along the edge of a block."""
INTERFACE = 3
"""Blocks around what is awake whose sleeping particles are given a body: nothing comes farther in a frame without waking them."""
CHANGE = 0.01
"""Share of its own strength, or of gravity, by which an acceleration may change without waking anything."""
LARGEST_GRID = 1 << 25
WALL_PROBES = 8
"""Parts of a frame at whose ends walls are looked at."""
LEAP = 1e-6
"""Of places [m] and turns: how far a body is from where it was for it to have leapt; less is rounding."""
_PROBE = 1e-3
"""Seconds for which forces push what sleeps, to see how strong they are."""


_CHANGING = ("temperature", "concentration")
"""What may change in matter that does not move."""


def refuse_sleep(plans: Sequence[SubstepPlan]) -> None:
    """Refuse sleep where matter changes though it does not move: it would stay as it fell asleep.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Heat or solute spreads in it, or its surface pulls.
    """
    for plan in plans:
        written = {name for part in plan.parts for domain in part.declaration.domains for name in domain.writes}
        if written & set(_CHANGING) or plan.fields_needed.get("samples"):
            raise MpmNodesError(
                "solve.active: matter does not sleep in substeps with heat, solutes or surface tension, which go on in matter at "
                "rest; take other substeps, or the wire out"
            )


class Around:
    """What moves around the matter in a frame.

    Args:
        before: The bodies as the frame before has left them.
        colliders: Those of the frame.
        clock: The clock over the frame.
        gravity: At the beginning and at the end of the frame [m/s^2], shape (2, 3).
        step: What forces and drains there are.
        moment: When the frame begins, and how long it is.
        walls: The walls at simulated seconds; None where there are none.
        rigid: The bodies that move by themselves.
    """

    def __init__(
        self,
        before: ColliderSet,
        colliders: Sequence[Collider],
        clock: FrameClock,
        gravity: np.ndarray,
        step: StepContext,
        moment: Moment,
        walls: Callable[[float], Walls] | None = None,
        rigid: MovedBodies | None = None,
    ) -> None:
        self.seconds, self.gravity, self.step, self.moment = moment.frame_seconds, gravity, step, moment
        self._before, self._colliders, self._clock, self._walls, self._rigid = before, colliders, clock, walls, rigid

    def _speeds(self) -> list[float]:
        """Return the largest speed in the frame [m/s] of each body, in the order of the wires: several may have one name."""
        shapes = [checked_shape(collider) for collider in self._colliders]
        speeds = [(fastest_pose(shape) + own_speed(shape)) / self._clock.pace for shape in shapes]
        rigid = self._rigid
        if rigid is not None:
            falls = float(np.linalg.norm(self.gravity, axis=1).max()) * self.seconds
            for place, (_, speed) in zip(rigid.numbers.tolist(), rigid.largest_speeds(), strict=True):
                speeds[place] = speed + falls
        return speeds

    def bodies_come(self, centres: np.ndarray, edge: float) -> np.ndarray:
        """Return to which blocks, by their centres [m], shape (n, 3), a body that moves may come in the frame, shape (n,), bool."""
        if not len(centres):
            return np.zeros(0, bool)
        come = self._walls_come(centres, edge)
        speeds = self._speeds()
        if not any(speeds):
            return come
        # not those of the frame before: a solve that goes on from a checkpoint has none
        old = self._before
        bodies = ColliderSet(self._colliders, None, old.dtype, old.origin, old, self._clock, rigid=self._rigid)
        bodies.pose(self.moment.time, self.moment.time)
        distances = bodies.distances_at(centres)
        reach = np.array([speed * self.seconds + 2.0 * edge if speed else -math.inf for speed in speeds])
        return np.asarray((distances < reach).any(axis=1)) | come

    def _walls_come(self, centres: np.ndarray, edge: float) -> np.ndarray:
        """Return which blocks lie where a wall that moves, or whose friction changes, is in the frame, or beyond it."""
        found = np.zeros(len(centres), bool)
        if self._walls is None:
            return found
        path = [self._walls(self.moment.time + self.seconds * share / WALL_PROBES) for share in range(WALL_PROBES + 1)]
        rubs = any(each.friction != path[0].friction for each in path)
        for side, rule in enumerate(path[0].sides):
            axis, high = side >> 1, side & 1
            places = np.array([(each.high if high else each.low)[axis] for each in path])
            moves = np.ptp(places) > LEAP * edge
            if rule in (WallRule.OPEN, WallRule.PERIODIC) or not (rubs or moves):
                continue
            reach = 2.0 * edge + np.abs(np.diff(places)).max()
            found |= centres[:, axis] > places.min() - reach if high else centres[:, axis] < places.max() + reach
        return found

    def stand(self, ends: bool) -> np.ndarray:
        """Return how bodies and walls stand as the frame begins, or ends, one a row: places, turns, sizes, rule and friction."""
        rows = []
        for each in self._colliders:
            shape, at = checked_shape(each), -1 if ends else 0
            if each.rigid is None and len(shape.translations):
                sizes = [*shape.sizes, 0.0, 0.0, 0.0][:3]
                turn = np.outer(shape.rotations[at], shape.rotations[at])[np.triu_indices(4)]  # a quaternion's sign says nothing
                rules = list(CollisionRule).index(each.rule), each.clamp, each.friction
                rows.append([*shape.translations[at], *turn, *sizes, *rules])
        if self._walls is not None:
            walls = self._walls(self.moment.time + (self.seconds if ends else 0.0))
            rows.append([*walls.low, *walls.high, walls.friction, *[0.0] * 12])
        return np.array(rows, float).reshape(-1, 19)

    def drained(self, particles: ParticleStore) -> np.ndarray:
        """Return in which blocks of particles a drain takes some as the frame begins or ends, shape (blocks,), bool."""
        marks = np.zeros(particles.count, bool)
        ends = self.moment.time + self.seconds
        at_end = self.moment if self.step.frame_at is None else Moment(self.step.frame_at(ends), ends, self.seconds)
        for each in self.step.drains if particles.count else ():
            for moment in (self.moment, at_end):
                marks |= inside(particles, each.field, moment)
        before = np.concatenate([[0], np.cumsum(marks)])
        return np.asarray(np.diff(before[particles.block_start]) > 0)


class Sleepers:
    """Which blocks of matter sleep.

    Attributes:
        asleep: Their indices, shape (n, 3), int32.
    """

    def __init__(self) -> None:
        self.asleep = np.zeros((0, 3), np.int32)
        self._woken = np.zeros((0, 3), np.int32)
        self._places = np.zeros((0, 3), np.float32)
        self._since = -math.inf
        self._gravity = np.zeros(3)
        self._pushed: np.ndarray | None = None
        self._stood: np.ndarray | None = None

    def part(self, particles: ParticleStore, held: ParticleStore, sleep: Sleep, around: Around) -> tuple[np.ndarray, np.ndarray]:
        """Return which particles fall asleep, and which of those that are held wake: for a window at least.

        Args:
            particles: Those that are awake.
            held: Those that are asleep, and no others.
            sleep: When matter sleeps.
            around: What moves around it.
        """
        edge, now = EDGE * particles.h, around.moment.time
        moved, reach = self._restless(particles, around.seconds, edge)
        restless = moved > sleep.motion
        blocks = particles.block_coord
        gravity = np.abs(around.gravity - self._gravity).max() > CHANGE * max(np.abs(self._gravity).max(), 1e-30)
        leap, self._stood = self._stood is not None and _leaps(self._stood, around.stand(False)), around.stand(True)
        wakes = near(blocks[restless], reach[restless], self.asleep)
        wakes |= around.bodies_come(_centres(self.asleep, particles), edge) | gravity | leap
        if around.step.drains and len(self.asleep):  # what rests on what they take wakes as well
            gone = particles.block_coord[around.drained(particles)]
            wakes |= near(gone, np.ones(len(gone), np.int64), self.asleep)
            wakes |= _joined(held.block_coord[around.drained(held)], self.asleep)
        if held.count and not wakes.all():
            wakes |= self._pushed_otherwise(held, around)
        falls = np.zeros(len(blocks), bool)
        if now - self._since >= max(sleep.window, 1.5 * around.seconds) * (1.0 - 1e-9):
            falls = ~near(blocks[restless], reach[restless], blocks) & ~around.bodies_come(_centres(blocks, particles), edge)
            falls &= ~np.isin(keys_of(blocks), keys_of(self._woken)) & ~_tied(particles, around.step)
            falls &= math.isfinite(self._since) and not gravity and not leap
            self._since, self._woken = now, self._woken[:0]
            self._remember(particles)
        self._woken = np.concatenate([self._woken, self.asleep[wakes]])
        if wakes.any() or gravity:
            self._gravity = around.gravity[1].copy()
        goes = _of_particles(held, np.isin(keys_of(held.block_coord), keys_of(self.asleep[wakes])))
        stay = np.concatenate([self.asleep[~wakes], blocks[falls]])
        self.asleep = np.unique(stay, axis=0) if len(stay) else stay
        # a block that something flew into while it slept holds both kinds
        return _of_particles(particles, falls), goes

    def settle(self, held: ParticleStore, around: Around) -> None:
        """Remember how forces push what sleeps now."""
        self._pushed = self._pushes(held, around)

    def _restless(self, particles: ParticleStore, seconds: float, edge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return how far matter of each block is from where the window began [cells], and how far it comes in a frame [blocks]."""
        starts, counts = particles.block_start[:-1], np.diff(particles.block_start)
        some = counts > 0
        moved, reach = np.zeros(len(counts)), np.ones(len(counts), np.int64)
        if not particles.count:
            return moved, reach
        places, ids = self._in_cells(particles), particles.rows("id")[0]
        self._grow(particles)
        far = np.abs(places - self._places[ids]).max(axis=1)
        speed = (particles.rows("velocity").astype(float) ** 2).sum(axis=0)
        moved[some] = np.maximum.reduceat(np.where(np.isnan(far), np.inf, far), starts[some])
        fastest = np.sqrt(np.maximum.reduceat(speed, starts[some]))
        reach[some] += np.ceil(np.minimum(fastest * seconds / edge, 1e6)).astype(np.int64)
        return moved, reach

    def _pushed_otherwise(self, held: ParticleStore, around: Around) -> np.ndarray:
        """Return in which sleeping blocks forces push otherwise than as the set last changed, shape (asleep,), bool."""
        pushed = self._pushes(held, around)
        if pushed is None and self._pushed is None:
            return np.zeros(len(self.asleep), bool)
        before = np.zeros((3, held.count)) if self._pushed is None else self._pushed
        after = np.zeros((3, held.count)) if pushed is None else pushed
        if before.shape != after.shape:
            return np.ones(len(self.asleep), bool)
        change = np.abs(after - before).max(axis=0)
        much = change > CHANGE * np.maximum(np.abs(before).max(axis=0), np.abs(around.gravity).max())
        blocks = np.repeat(np.arange(held.block_count), np.diff(held.block_start))[much]
        return np.isin(keys_of(self.asleep), keys_of(held.block_coord[np.unique(blocks)]))

    @staticmethod
    def _pushes(held: ParticleStore, around: Around) -> np.ndarray | None:
        """Return the accelerations of what is held by forces [m/s^2], shape (3, count); None without forces."""
        forces = [force for force in around.step.forces if force.attachment is None]
        if not forces or not held.count:
            return None
        push_particles(held, forces, around.moment, _PROBE)
        found = held.rows("velocity").astype(float) / _PROBE
        held.rows("velocity")[:] = 0  # as all that is passive
        return found

    # ---------------------------------------------------------------- where particles were
    def _in_cells(self, particles: ParticleStore) -> np.ndarray:
        return ((particles.unpack("position") - particles.origin) / particles.h).astype(np.float32)

    def _grow(self, particles: ParticleStore) -> None:
        lacks = int(particles.rows("id")[0].max(initial=-1)) + 1 - len(self._places)
        if lacks > 0:
            self._places = np.concatenate([self._places, np.full((lacks, 3), np.nan, np.float32)])

    def _remember(self, particles: ParticleStore) -> None:
        self._grow(particles)
        self._places[particles.rows("id")[0]] = self._in_cells(particles)

    # ---------------------------------------------------------------- save and restore
    def save(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint holds."""
        pushed = np.zeros((3, 0)) if self._pushed is None else self._pushed
        since = np.array([self._since, *self._gravity])
        saved = {"asleep": self.asleep, "woken": self._woken, "places": self._places, "since": since, "pushed": pushed}
        return saved if self._stood is None else saved | {"stood": self._stood}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Put back what `save` gave."""
        self.asleep, self._woken = saved["asleep"].astype(np.int32), saved["woken"].astype(np.int32)
        self._places = saved["places"].astype(np.float32)
        self._since, self._gravity = float(saved["since"][0]), saved["since"][1:].astype(float)
        self._stood = saved.get("stood")
        self._pushed = saved["pushed"].astype(float) if saved["pushed"].shape[1] else None


def _joined(blocks: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return which blocks hang together with any of others, from neighbour to neighbour, shape (asked,), bool."""
    found, known = near(blocks, np.ones(len(blocks), np.int64), asked), 0
    while found.sum() > known:
        known = int(found.sum())
        found |= near(asked[found], np.ones(known, np.int64), asked)
    return found


def _leaps(before: np.ndarray, now: np.ndarray) -> bool:
    """Whether a body or a wall begins a frame otherwise than the frame before has left it: keys that step do that."""
    return before.shape != now.shape or bool((np.abs(now - before) > LEAP * (1.0 + np.abs(before))).any())


def near(blocks: np.ndarray, reach: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return which blocks any of others can come to, shape (asked,), bool.

    Args:
        blocks: Indices of those that come, shape (n, 3).
        reach: How many blocks each comes, along each axis, shape (n,).
        asked: Indices, shape (m, 3).
    """
    found = np.zeros(len(asked), bool)
    if not len(asked) or not len(blocks):
        return found
    low, size = asked.min(axis=0), np.ptp(asked, axis=0) + 1
    for far in np.unique(reach).tolist():
        from_low = blocks[reach == far] - low
        inside = ((from_low >= -far) & (from_low < size + far)).all(axis=1)
        if not inside.any():
            continue
        wide = min(far, int(size.max()))  # a mark that lies farther out reaches all that a nearer one does
        shape = size + 2 * wide
        if np.prod(shape.astype(float)) > LARGEST_GRID:
            return np.ones(len(asked), bool)
        marks = np.zeros(shape, bool)
        marks[tuple(np.clip(from_low[inside] + wide, 0, shape - 1).T)] = True
        for axis in range(3):
            marks = _spread(marks, axis, far)
        found |= marks[tuple((asked - low + wide).T)]
    return found


def _spread(marks: np.ndarray, axis: int, far: int) -> np.ndarray:
    """Return marks that go on for `far` places to both sides along an axis."""
    count = np.cumsum(marks, axis=axis, dtype=np.int32)
    places = np.arange(marks.shape[axis])
    last = np.take(count, np.minimum(places + far, len(places) - 1), axis=axis)
    first = np.take(count, np.maximum(places - far - 1, 0), axis=axis)
    first[tuple(slice(None) if each != axis else places - far - 1 < 0 for each in range(3))] = 0
    return last > first


def _tied(particles: ParticleStore, step: StepContext) -> np.ndarray:
    """Return in which blocks particles are tied to something, shape (blocks,), bool."""
    tied = np.zeros(particles.count, bool)
    for number in range(len(attachments_of(step.forces))):
        tied |= particles.rows(attached_column(number)[0])[0] > 0
    before = np.concatenate([[0], np.cumsum(tied)])
    return np.asarray(np.diff(before[particles.block_start]) > 0)


def _centres(blocks: np.ndarray, particles: ParticleStore) -> np.ndarray:
    return np.asarray(particles.origin + particles.h * (EDGE * blocks + 3.5))


def keys_of(blocks: np.ndarray) -> np.ndarray:
    """Return a number for each block, by its indices, shape (n, 3); int64, shape (n,)."""
    return leaf_keys(np.asarray(blocks, np.int64) << 3)


def _of_particles(particles: ParticleStore, of_blocks: np.ndarray) -> np.ndarray:
    return np.repeat(of_blocks, np.diff(particles.block_start))
