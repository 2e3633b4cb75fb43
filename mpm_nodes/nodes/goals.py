"""Goals: where each particle is to be at a frame, and the force that brings it there."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import warnings
import zlib
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    BodyForce,
    Frames,
    Gravity,
    Many,
    MetresPerSecond,
    MetresPerSecondSquared,
    MpmNodesError,
    Particles,
    Range,
    SpatialField,
    TimeLeft,
    Unitless,
    concatenate,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.fields import constant, number, place, scaled, tried
from mpm_nodes.nodes.fields_of_particles import own

GOAL, GOAL_WEIGHT, GOAL_GROUP = "goal", "goal_weight", "goal_group"
"""Columns of where a particle goes [m], of the share of the steering that it takes, 0 for none, and of the group among which goals
are exchanged, 0 for those that keep theirs."""

ROOM = 0.98
"""Share of the matter's volume that goals may lack before a warning."""


class GoalMatch(enum.Enum):
    """Which particle goes to which point.

    NEAREST: so that ways are short and do not cross, each point once; on the way particles exchange goals that are nearer.
    ID: to the point of its own id; where points or particles have none, their numbers in order stand for it.
    """

    NEAREST = "nearest"
    ID = "id"


def _with_goals(told: PreflightContext) -> dict[str, Any]:
    return passed_on(told, GOAL, GOAL_WEIGHT, GOAL_GROUP)


@node(category="Emit", label="Set Goal", preflight=_with_goals)
def set_goal(
    particles: Particles,
    goal: Many[Particles],
    kept: Kept = NOTHING_KEPT,
    *,
    match: A[GoalMatch, NotKeyable("particles get their goals once")] = GoalMatch.NEAREST,
) -> Particles:
    """Give each particle a place to go to: points inside of a mesh, of a cache at some frame, of any emitter; wire in `force_goal`.

    Places are handed out as the shot begins, and go along with the particles as `goal`, `goal_weight` and `goal_group`. Many points
    are taken evenly, of few several particles share each.

    Args:
        particles: Particles of an emitter.
        goal: Points to reach: emit_mesh fills a mesh, read_points reads a cache, with `frame_offset` at any of its frames.
        match: Who goes where: each to a near one, or by id.

    Raises:
        MpmNodesError: There are no points.

    Source: Knothe 1957; Puccetti 2017.
    """
    from mpm_nodes.solver.rearrangement import rearranged

    points = concatenate(goal)
    if not len(points):
        raise MpmNodesError("set_goal.goal: holds no points; wire an emitter or read_points that does")
    start = np.asarray(particles["position"], float)
    there = np.asarray(points["position"], float)
    weight = np.ones(len(start))
    group = np.zeros(len(start), np.int32)
    if match is GoalMatch.NEAREST:
        group += zlib.crc32(there.tobytes()) % (2**31 - 2) + 1  # those that go to the same points may exchange them
        matter, room = len(start) * particles.spacing**3, len(there) * points.spacing**3
        if room < ROOM * matter:
            message = f"the points stand for {room:.3g} m^3, and the matter has {matter:.3g}: it will be squeezed"
            warnings.warn(f"set_goal.goal: {message}; make the goal larger, or take less matter", stacklevel=2)
        apart, digest = (particles.spacing, points.spacing), hashlib.sha256(start.tobytes() + there.tobytes()).hexdigest()
        there = kept.get(("goals", digest, apart), lambda: rearranged(start, apart[0], there, apart[1]))
    else:
        ids = np.asarray(particles.attributes.get("id", np.arange(len(start))))
        its = np.asarray(goal[0]["id"] if len(goal) == 1 and "id" in goal[0] else np.arange(len(there)))
        order = np.argsort(its, kind="stable")
        found = order[np.minimum(np.searchsorted(its, ids, sorter=order), len(its) - 1)]
        known = its[found] == ids
        there, weight = np.where(known[:, None], there[found], start), known.astype(float)
        if not known.all():
            message = f"{(~known).sum()} of {len(ids)} particles have ids that no point has; they go nowhere"
            warnings.warn(f"set_goal.goal: {message}; set match to nearest to send all", stacklevel=2)
    given = {GOAL: there, GOAL_WEIGHT: weight, GOAL_GROUP: group}
    return dataclasses.replace(particles, attributes={**particles.attributes, **given})


_ONE_LAW = NotKeyable("a limit holds all the time; key the strength")


@found_by("morph", "target", "letters", "form")
@node(category="Force", label="Goal", preflight=tried(__name__, "force_goal", "mask"))
def force_goal(
    mask: SpatialField | None = None,
    *,
    frame: A[float, Frames, NotKeyable("there is one arrival")] = 24.0,
    strength: A[float, Unitless, Range(min=0.0, soft_max=2.0), KeysTravel()] = 1.0,
    response: A[float, Frames, Range(min=0.0, exclusive_min=True, soft_max=12.0), _ONE_LAW] = 1.0,
    speed_limit: A[float, MetresPerSecond, Range(min=0.0, soft_max=20.0), _ONE_LAW] = 0.0,
    acceleration_limit: A[float, MetresPerSecondSquared, Range(min=0.0, soft_max=500.0), _ONE_LAW] = 0.0,
) -> BodyForce:
    """Steer particles to the goals that `set_goal` gave them, so that they arrive at a frame, at rest, and stay there.

    The steering is drag towards the velocity 3 d / (2 T) at the rate 4 / T: d is the way to the goal, T the time to the arrival.
    Matter alone goes on the cubic that takes the least acceleration squared, 6 d / T^2 - 4 v / T; what stops or delays it is made
    up for. Gravity is held off. From the arrival on T stays at `response`: what is moved away comes back in about that time.

    Args:
        mask: Factor: 1 where it acts, 0 where it does not.
        frame: Frame of the arrival.
        strength: Factor on the rate; key it: 0 before the matter sets out, and to let it fall.
        response: Least time ahead that it steers by: longer is softer, and arrives less exactly.
        speed_limit: Fastest velocity that it steers to; what has too far to go arrives later. 0: there is none.
        acceleration_limit: Most that it accelerates; what then cannot brake in time swings past its goal. 0: there is none.

    Raises:
        MpmNodesError: The mask is a field of vectors.

    Source: Bryson and Ho 1975, chapter 5; Guo, Hawkins and Wie 2013.
    """
    left = SpatialField("CONSTANT", (), (TimeLeft(frame, response),) * 3)
    way = SpatialField("SUBTRACT", (own(GOAL, vector=True), place()), vector=True)
    wanted = SpatialField("DIVIDE", (scaled(way, constant(1.5)), left), vector=True)
    if speed_limit > 0.0:
        over = SpatialField("MAXIMUM", (SpatialField("LENGTH", (wanted,)), constant(speed_limit)))
        wanted = scaled(wanted, SpatialField("DIVIDE", (constant(speed_limit), over)))
    rate = SpatialField("DIVIDE", (constant(4.0), left))
    pull = SpatialField("CONSTANT", (), (Gravity(),), vector=True)
    wanted = SpatialField("SUBTRACT", (wanted, SpatialField("DIVIDE", (pull, rate), vector=True)), vector=True)
    if acceleration_limit > 0.0:
        lacks = SpatialField("LENGTH", (SpatialField("SUBTRACT", (wanted, own("velocity", vector=True)), vector=True),))
        rate = SpatialField("MINIMUM", (rate, SpatialField("DIVIDE", (constant(acceleration_limit), lacks))))
    rate = scaled(rate, constant(strength), own(GOAL_WEIGHT), number("force_goal.mask", mask) if mask is not None else None)
    return BodyForce(wanted, rate, exchanges=(GOAL, GOAL_GROUP))
