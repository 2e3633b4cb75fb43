"""Secondary matter from a finished cache: spray, crumbs, dust and bubbles, without a simulation.

Everything follows from the cache, the seed and the frame: which particles emit, when, how fast, and where what they emitted is now.
So any frame can be made alone, in any order, and ids stay.

| symbol | meaning | unit |
|---|---|---|
| x0, v0 | place and velocity at birth | m, m/s |
| a | age | s |
| u | velocity of the air, or of bubbles' parents, with that of falling (of bubbles: rising) at rest | m/s |
| t | drag time: speed of falling over g | s |

A sphere whose drag is linear in its speed: v = u + (v0 - u) exp(-a / t), x = x0 + u a + (v0 - u) t (1 - exp(-a / t)).
"""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import (
    A,
    FrameContext,
    InputError,
    Material,
    Metres,
    MetresPerSecond,
    Particles,
    PerResolution,
    Range,
    Seconds,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.caches import completed
from mpm_nodes.nodes.collider_files import frame_of_file, stamp
from mpm_nodes.nodes.retime import read_by_id
from mpm_nodes.nodes.secondary_births import Births, Emission, SecondarySource, births, numbers
from mpm_nodes.nodes.seeding import Seed

GRAVITY = 9.81
OLD_ENOUGH = 0.5
"""Least share of the life that a particle has."""
EMITTING = 0.05
"""Share of the particles that is taken to emit where space on disk is estimated."""
HALVINGS = 40
"""Of the time in which the fall on the floor is sought."""
_Fixed = NotKeyable("a particle's whole path follows from it")


class SecondaryKind(enum.Enum):
    """What is emitted: how fast it falls in the end, and through what it moves."""

    SPRAY = "spray"
    CRUMBS = "crumbs"
    DUST = "dust"
    BUBBLES = "bubbles"


FALL = {SecondaryKind.SPRAY: 4.0, SecondaryKind.CRUMBS: 8.0, SecondaryKind.DUST: 0.15, SecondaryKind.BUBBLES: -0.2}
"""Terminal speeds [m/s]: drops of 1 mm, crumbs of bread of 5 mm, flour of 50 um, air bubbles of 2 mm in water (these rise)."""


class _Motion(NamedTuple):
    """How what is born moves: knobs of the node."""

    kind: SecondaryKind
    fall_speed: float
    inherit: float
    spread: float
    wind: Vec3
    life: float
    floor: float
    rest_on_floor: bool


def _source(told: PreflightContext) -> dict[str, int]:
    """Refuse a cache that cannot be read; tell how many particles it may emit."""
    from usd_io.stage_reader import frames_of, read_points

    path, prim, knobs = told.knobs["path"], told.knobs["prim"], told.knobs
    stamp(path)
    frames = frames_of(path, prim)
    begin, end, fps = frames.first, frames.last, frames.fps
    parents = len(read_points(path, end, prim, frames))
    lives = min(float(knobs["life"]), (end - begin) / fps)
    return {"particles": int(min(EMITTING * parents * knobs["amount"] * lives, knobs["most"] * lives * fps))}


@found_by("splash", "spray", "bubbles", "dust", "crumbs", "whitewater", "debris")
@node(category="Cache", label="Emit Secondary", version=2, preflight=_source)
def emit_secondary(
    ctx: FrameContext,
    material: Material | None = None,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    kind: SecondaryKind = SecondaryKind.SPRAY,
    source: SecondarySource = SecondarySource.SPEED,
    low: A[float, Unitless, Range(min=0.0, soft_max=100.0), _Fixed] = 2.0,
    high: A[float, Unitless, Range(min=0.0, soft_max=100.0), _Fixed] = 4.0,
    amount: A[float, Unitless, Range(min=0.0, soft_max=200.0), _Fixed, PerResolution(-3)] = 20.0,
    surface_only: bool = True,
    size: A[float, Metres, Range(min=0.0, soft_max=0.1), _Fixed] = 0.0,
    size_variation: A[float, Unitless, Range(min=0.0, max=1.0), _Fixed] = 0.5,
    life: A[float, Seconds, Range(min=0.0, exclusive_min=True, soft_max=10.0), _Fixed] = 2.0,
    inherit: A[float, Unitless, Range(min=0.0, soft_max=2.0), _Fixed] = 1.0,
    spread: A[float, MetresPerSecond, Range(min=0.0, soft_max=5.0), _Fixed] = 0.4,
    fall_speed: A[float, MetresPerSecond, Range(min=0.0, soft_max=20.0), _Fixed] = 0.0,
    wind: A[Vec3, MetresPerSecond, _Fixed] = (0.0, 0.0, 0.0),
    rest_on_floor: bool = True,
    floor: A[float, Metres, _Fixed] = 0.0,
    most: A[int, Unitless, Range(min=1, max=1_000_000), _Fixed] = 20_000,
    seed: Seed = 0,
) -> Particles:
    """Emit spray, crumbs, dust or bubbles from the particles of a finished cache, and let them fly, fall and rest.

    Nothing is simulated: paths are those of spheres with linear drag, and any frame can be made alone. Wire several for several
    sources.

    Args:
        material: Of what is emitted; without it, the first of the cache.
        path: USD file of the finished cache.
        prim: Path or name of its Points prim; may stay empty when the file holds only one.
        kind: Spray, crumbs and dust fly through air and fall ever slower; bubbles go with the matter and rise.
        source: What makes particles emit. speed: their speed [m/s]. tear: that they tear (`weak`). curvature: how far the mean of
            their neighbours lies from them, in spacings (0.35 at flat surfaces, 0.5 at edges, 0.65 at corners). volume_rate: |d ln
            Jp/dt|, or of J [1/s].
        low: Value from which particles emit; tears have none.
        high: Value from which they emit all of `amount`.
        amount: Particles per second that each emits; of tears, particles for each.
        surface_only: Emit at the surface alone, not inside.
        size: Mean diameter; 0 takes half the spacing that the cache has at resolution 1.
        size_variation: Share by which diameters differ from it, up and down.
        life: Longest time until a particle is gone; each has at least half of it.
        inherit: Share of the velocity of the matter that they begin with.
        spread: Greatest speed that is added in a random direction, outwards.
        fall_speed: Speed at which they fall in the end, or bubbles rise; 0 takes that of the kind.
        wind: Velocity of the air.
        rest_on_floor: Let them lie where they meet the height `floor`, and leave out what would come from below it.
        floor: Height of the floor.
        most: Most that are born in a frame; beyond it some are left out at random.
        seed: Another set of random choices.
    """
    from usd_io import require_usd

    require_usd()
    from usd_io.stage_reader import frames_of

    stamped = stamp(path)
    frames = kept.get(("range", *stamped, prim), lambda: frames_of(path, prim), lambda _: 64)
    begin, end, fps, now = frames.first, frames.last, frames.fps, frame_of_file(ctx.settings, ctx.frame, frames)
    how = Emission(source, low, high, amount, surface_only, most, seed)
    motion = _Motion(kind, fall_speed or abs(FALL[kind]), inherit, spread, wind, life, floor, rest_on_floor)

    def at(frame: int) -> Particles:
        return kept.get(("points", *stamped, prim, frame), lambda: read_by_id(path, frame, prim, frames))

    def born(frame: int) -> Births:
        key = ("births", *stamped, prim, frame, how)
        return kept.get(key, lambda: births(at(frame - 1), at(frame), frame, fps, how), lambda all: sum(c.nbytes for c in all))

    last = min(math.ceil(now), end)
    first = max(begin + 1, math.floor(now) - math.ceil(life * fps))
    parts = [_flown(born(k), k, (now - k) / fps, (k - begin - 1) * most, motion, seed) for k in range(first, last + 1)]
    known = at(begin)
    diameter = size or 0.5 * known.spacing * ctx.settings.resolution
    parts = parts or [_nothing(motion, seed)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    wide = diameter * (1.0 + size_variation * (2.0 * columns.pop("chance") - 1.0))
    columns["volume"] = math.pi / 6.0 * wide**3
    materials = (material,) if material is not None else known.materials[:1]
    if not materials:
        raise InputError(f"emit_secondary.material: {path} carries no materials of ours; wire a material into it")
    return completed(Particles(columns, materials, diameter, known.time), materials, diameter, path, True)


def _nothing(motion: _Motion, seed: int) -> dict[str, np.ndarray]:
    """Return the columns of no particles."""
    nobody, nowhere = np.zeros(0, np.int64), np.zeros((0, 3))
    return _flown(Births(nobody, nobody, nowhere, nowhere, nowhere, np.zeros(0)), 0, 0.0, 0, motion, seed)


def _flown(new: Births, frame: int, since: float, first_id: int, motion: _Motion, seed: int) -> dict[str, Any]:
    """Return what was born before a frame as it is now: columns, and a random number `chance` for its size.

    Args:
        new: What was born.
        frame: The frame.
        since: Seconds since the frame.
        first_id: Id of the first of them.
        motion: How they move.
        seed: Of the random numbers.
    """

    def random(use: int) -> np.ndarray:
        return numbers(seed, frame, new.parent, use, new.number)

    age = since + new.back
    alive = (age >= 0.0) & (age < motion.life * (OLD_ENOUGH + (1.0 - OLD_ENOUGH) * random(3)))
    height, turn = 2.0 * random(4) - 1.0, 2.0 * math.pi * random(5)
    around = np.sqrt(1.0 - height**2)
    away = np.stack([around * np.cos(turn), height, around * np.sin(turn)], axis=1)
    away = np.where(((away * new.outward).sum(axis=1) < 0.0)[:, None], -away, away)
    thrown = motion.inherit * new.velocity + (motion.spread * np.cbrt(random(6)))[:, None] * away
    rises = motion.kind is SecondaryKind.BUBBLES
    still = new.velocity if rises else np.broadcast_to(np.asarray(motion.wind, float), new.velocity.shape)
    still = still + np.array([0.0, motion.fall_speed if rises else -motion.fall_speed, 0.0])
    flown = np.where(alive, age, 0.0)
    rested = np.zeros(len(age), bool)
    if motion.rest_on_floor:
        alive &= new.place[:, 1] >= motion.floor
        flown, rested = _until_floor(new.place, thrown, still, flown, motion)
    position, velocity = _path(new.place, thrown, still, flown, motion)
    velocity[rested] = 0.0
    columns = {
        "position": position,
        "velocity": velocity.astype(np.float32),
        "id": first_id + np.arange(len(age), dtype=np.int64),
        "age": age.astype(np.float32),
        "parent": new.parent.astype(np.int32),
        "chance": random(7),
    }
    return {name: column[alive] for name, column in columns.items()}


def _path(
    place: np.ndarray, thrown: np.ndarray, still: np.ndarray, age: np.ndarray, motion: _Motion
) -> tuple[np.ndarray, np.ndarray]:
    """Return places [m] and velocities [m/s] at ages [s], shapes (n, 3)."""
    drag = motion.fall_speed / GRAVITY
    left = np.exp(-age / drag)[:, None]
    return place + age[:, None] * still + drag * (1.0 - left) * (thrown - still), still + left * (thrown - still)


def _until_floor(
    place: np.ndarray, thrown: np.ndarray, still: np.ndarray, age: np.ndarray, motion: _Motion
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ages at which particles met the floor, where they have by now, else their ages; and which have."""
    below = (_path(place, thrown, still, age, motion)[0][:, 1] < motion.floor) & (place[:, 1] >= motion.floor)
    low, high = np.zeros(len(age)), age.copy()
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        under = _path(place, thrown, still, middle, motion)[0][:, 1] < motion.floor
        low, high = np.where(under, low, middle), np.where(under, middle, high)
    return np.where(below, high, age), below
