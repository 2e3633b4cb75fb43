"""Copies of a body that are dropped one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    Drop,
    Emitter,
    Frames,
    GraphSettings,
    Metres,
    MetresPerSecond,
    MpmNodesError,
    Particles,
    Range,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable, carries_keys
from mpm_nodes.nodes.bodies import marks
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.nodes.seeding import Seed

_PLANNED = NotKeyable("all copies are planned at once")


def _dropped(told: PreflightContext) -> dict[str, Any]:
    """Return the copies that come by the last frame, and what they are made of."""
    count, first, interval = (told.knobs[name] for name in ("count", "start_frame", "interval"))
    start, end = told.settings.start, told.settings.end
    due = [first + number * interval for number in range(count) if start <= first + number * interval <= end]
    each, bodies = told.total("template", "particles"), told.distinct("template", "bodies")
    mean = int(each * sum(end + 1 - frame for frame in due) / (end + 1 - start))
    return {"particles": each * len(due), "mean_particles": mean, "bodies": bodies, **marks(told, "template")}


@found_by("rain", "hail", "scatter", "instances", "throw")
@node(category="Emit", label="Drops", version=2, preflight=_dropped)
def emit_drops(
    settings: GraphSettings,
    template: Particles,
    *,
    count: A[int, Unitless, Range(min=1, max=100_000, soft_max=100), _PLANNED] = 10,
    start_frame: A[float, Frames, _PLANNED] = 1.0,
    interval: A[float, Frames, Range(min=0.0, soft_max=48.0), _PLANNED] = 12.0,
    spread: A[Vec3, Metres, Range(min=0.0, soft_max=10.0), _PLANNED] = (0.0, 0.0, 0.0),
    turn: A[Vec3, Degrees, Range(min=0.0, max=360.0), _PLANNED] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond, KeysTravel()] = (0.0, 0.0, 0.0),
    seed: Seed = 0,
) -> Emitter:
    """Drop whole copies of a body one after the other, each somewhere else and turned another way.

    Give them time to fall out of each other's way: a copy that appears inside another one doubles the matter there.

    Args:
        template: The body: particles that some emitter made; where that one is keyed, as they are when a copy is dropped.
        count: How many copies.
        start_frame: Frame of the first copy.
        interval: Frames from one copy to the next.
        spread: Edges of the box around the template's place within which copies are put at random; neighbours in time lie
            in different thirds of its longest edge.
        turn: Whole range of the random turns about x, then y, then z, about the middle of the body.
        velocity: Initial velocity of a copy; where it is keyed, the value at its time.
        seed: Seed of places and turns.
    """
    if not len(template):
        raise MpmNodesError("emit_drops.template: holds no particles; wire an emitter that makes some")
    middle = template["position"].mean(axis=0)
    drops, shares = [], _scattered(count, spread, np.random.default_rng([seed, 2]))
    angles = np.random.default_rng([seed, 3]).uniform(-0.5, 0.5, (count, 3)) * np.asarray(turn)
    for which in range(count):
        time = Clock.of(settings).seconds(start_frame + which * interval)
        rotation = rotation_matrix(tuple(angles[which]))
        offset = middle - rotation @ middle + shares[which] * np.asarray(spread)
        first, second, third = map(_vector, rotation)
        drops.append(Drop(float(time), (first, second, third), _vector(offset)))
    seen = tuple(drop for drop in drops if drop.time >= 0.0)
    if not seen:
        raise MpmNodesError(
            f"emit_drops.start_frame: all {count} copies lie before frame {settings.start}, where the shot "
            "begins; raise start_frame, or lower settings.start"
        )
    if start_frame > settings.end:
        warnings.warn(
            f"emit_drops.start_frame: {start_frame:g} lies after the last frame {settings.end}: no copy ever comes; "
            "lower it, or raise settings.end",
            stacklevel=2,
        )
    return Emitter(template, velocity if carries_keys(velocity) else _vector(velocity), drops=seen)


def _vector(components: Iterable[float]) -> Vec3:
    x, y, z = map(float, components)
    return x, y, z


def _scattered(count: int, spread: Vec3, random: np.random.Generator) -> np.ndarray:
    """Return places in the unit box about 0, shape (count, 3); along the longest edge the thirds take turns."""
    shares = random.uniform(-0.5, 0.5, (count, 3))
    longest = int(np.argmax(spread))
    thirds = np.array([1, 0, 2])[np.arange(count) % 3]
    shares[:, longest] = (thirds + 0.5 + shares[:, longest]) / 3.0 - 0.5
    return shares
