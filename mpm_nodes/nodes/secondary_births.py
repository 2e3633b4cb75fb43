"""Which particles of a cache emit secondary matter between two of its frames, how much, and where it is born.

Random numbers are a hash of seed, frame, id and use (SplitMix64, Steele 2014), so a particle's share does not depend on the others.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import InputError, Particles
from mpm_nodes.nodes.derived import column, known_as

__all__ = ["Births", "Emission", "SecondarySource", "births", "numbers"]

REACH = 2.5
"""Radius around a particle in which its neighbours tell how exposed it is, in spacings."""
EXPOSED = 0.25
"""Distance from a particle to the mean of its neighbours, in spacings, from which it lies at a surface: of flat ones it is 0.35."""
ALONE = 8
"""Particles in the cells around, from which one is not alone: drops and crumbs have no mean to one side."""
MOST_OF_ONE = 1000
"""Most that one particle emits in a frame."""


class SecondarySource(enum.Enum):
    """What makes particles emit."""

    SPEED = "speed"
    TEAR = "tear"
    CURVATURE = "curvature"
    VOLUME_RATE = "volume_rate"


class Emission(NamedTuple):
    """How particles emit.

    Attributes:
        source: What makes them.
        low: Value from which they do: m/s, spacings, or 1/s.
        high: Value from which they do in full.
        amount: Particles a second that each emits in full; of tears, particles an event.
        surface_only: Whether those inside of the matter emit none.
        most: Most in a frame.
        seed: Of the random numbers.
    """

    source: SecondarySource
    low: float
    high: float
    amount: float
    surface_only: bool
    most: int
    seed: int


class Births(NamedTuple):
    """What is born between two frames of a cache; all of shape (n, ...).

    Attributes:
        parent: Ids of those that emitted.
        number: Number among the children of one parent in this frame.
        place: Places of the parents at the births [m].
        velocity: Velocities of the parents [m/s].
        outward: Directions out of the matter, zero where none is known.
        back: Seconds from the birth to the later frame.
    """

    parent: np.ndarray
    number: np.ndarray
    place: np.ndarray
    velocity: np.ndarray
    outward: np.ndarray
    back: np.ndarray


def births(before: Particles, after: Particles, frame: int, fps: float, how: Emission) -> Births:
    """Return what is born after a frame and until the next one.

    Args:
        before: Particles of the frame before, in the order of their ids.
        after: Those of the frame, in the order of theirs.
        frame: Its number.
        fps: Frames per second of the cache.
        how: What emits.

    Raises:
        InputError: The cache lacks what tells it.
    """
    strength = _strength(before, after, fps, how)
    who = np.flatnonzero(strength > 0.0)
    outward, exposed = _outward(after, who)
    if how.surface_only:
        who, outward = who[exposed], outward[exposed]
    ids = after["id"][who]
    wanted = strength[who] * (how.amount if how.source is SecondarySource.TEAR else how.amount / fps)
    counts = np.minimum(np.floor(wanted + numbers(how.seed, frame, ids, 0)), MOST_OF_ONE).astype(np.int64)
    of = np.repeat(np.arange(len(who)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    if len(of) > how.most:
        chance = numbers(how.seed, frame, ids[of], 1, number)
        kept = np.sort(np.argsort(chance, kind="stable")[: how.most])
        of, number = of[kept], number[kept]
    back = numbers(how.seed, frame, ids[of], 2, number) / fps
    velocity = np.asarray(after["velocity"], np.float64)[who[of]]
    place = np.asarray(after["position"], np.float64)[who[of]] - back[:, None] * velocity
    return Births(ids[of], number, place, velocity, outward[of], back)


def _strength(before: Particles, after: Particles, fps: float, how: Emission) -> np.ndarray:
    """Return how strongly each particle emits, 0 to 1."""
    if "velocity" not in after:
        raise InputError("emit_secondary.path: the cache holds no velocities; write `velocity` into it")
    found = np.zeros(len(after))
    if how.source is SecondarySource.SPEED:
        return _ramp(np.linalg.norm(after["velocity"], axis=1), how)
    if how.source is SecondarySource.CURVATURE:
        return _ramp(np.linalg.norm(_to_neighbours(after, np.arange(len(after))), axis=1), how)
    _, a, b = np.intersect1d(before["id"], after["id"], assume_unique=True, return_indices=True)
    if how.source is SecondarySource.TEAR:
        if "weak" not in before or "weak" not in after:
            raise InputError(
                "emit_secondary.path: the cache does not tell what is torn; write `weak` into it, of a solve that tears"
            )
        found[b] = (after["weak"][b] > 0) & (before["weak"][a] == 0)
        return found
    name = next((name for name in ("Jp", "J") if known_as(before, name) and known_as(after, name)), "J")
    ratio = [np.maximum(column("emit_secondary.path", each, name).astype(np.float64), 1e-6) for each in (before, after)]
    found[b] = _ramp(np.abs(np.log(ratio[1][b] / ratio[0][a])) * fps, how)
    return found


def _ramp(values: np.ndarray, how: Emission) -> np.ndarray:
    return np.clip((values - how.low) / max(how.high - how.low, 1e-12), 0.0, 1.0)


def _outward(particles: Particles, who: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return directions out of the matter, shape (n, 3), and whether some particles lie at its surface, shape (n,)."""
    away = -_to_neighbours(particles, who)
    length = np.linalg.norm(away, axis=1)
    exposed = (length > EXPOSED) | (_near(particles, who) < ALONE)
    return np.where((length > EXPOSED)[:, None], away / np.maximum(length, 1e-12)[:, None], 0.0), exposed


def _to_neighbours(particles: Particles, who: np.ndarray) -> np.ndarray:
    """Return the way from some particles to the mean of those around them, in spacings, shape (n, 3)."""
    if not len(who):
        return np.zeros((0, 3))
    from mpm_nodes.kernels.surfaces.averages import average_at_points
    from mpm_nodes.kernels.surfaces.splat import bin_particles

    reach = REACH * particles.spacing
    position = np.asarray(particles["position"], np.float64)
    position = position - position.mean(axis=0)  # means are taken in single precision
    mean = average_at_points(bin_particles(position, reach), position, position[who], reach)
    return (mean - position[who]) / particles.spacing


def _near(particles: Particles, who: np.ndarray) -> np.ndarray:
    """Return how many particles lie in the 27 cells of two spacings around some of them, itself included, shape (n,)."""
    cells = np.floor(np.asarray(particles["position"], np.float64) / (2.0 * particles.spacing)).astype(np.int64)
    cells -= cells.min(axis=0) - 1 if len(cells) else 0
    sides = cells.max(axis=0, initial=0) + 2
    key = (cells[:, 0] * sides[1] + cells[:, 1]) * sides[2] + cells[:, 2]
    held, count = np.unique(key, return_counts=True)
    total = np.zeros(len(who), np.int64)
    for x in (-1, 0, 1):
        for y in (-1, 0, 1):
            for z in (-1, 0, 1):
                other = key[who] + (x * sides[1] + y) * sides[2] + z
                place = np.minimum(np.searchsorted(held, other), len(held) - 1)
                total += np.where(held[place] == other, count[place], 0)
    return total


def numbers(seed: int, frame: int, ids: np.ndarray, use: int, number: np.ndarray | int = 0) -> np.ndarray:
    """Return random numbers in [0, 1), shape (n,), that follow from all of these alone."""
    state = np.full(len(ids), seed, np.int64).astype(np.uint64)
    for part in (frame, ids, use, number):
        state = _mixed(state + np.asarray(part, np.int64).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
