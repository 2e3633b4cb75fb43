"""Attachments in a solve: what is tied, and how the springs of its ties pull."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import (
    Attachment,
    BodyForce,
    BodyMotion,
    Fact,
    Facts,
    Moment,
    MpmNodesError,
    Reduction,
    StepContext,
    attached_column,
    attachments_of,
)
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.fields import springs
from mpm_nodes.kernels.level_sets.mesh_level_set import nearest_triangles
from mpm_nodes.solver.drains import inside
from mpm_nodes.solver.forces import Delivered, block_centres, placement_of
from mpm_nodes.solver.poses import pose_at
from mpm_nodes.solver.state import ParticleStore

__all__ = ["ATTACHMENTS", "Pulled", "attach", "pull_attachments", "refuse_without_columns", "sever"]

ATTACHMENTS = Facts(
    "attachments",
    "What force_attach nodes bear, in the order of the wires.",
    (
        Fact("force", "N", Reduction.SUM, "Mean force of the matter on each over the frame: three numbers one after the other."),
        Fact("tied", "", Reduction.LAST, "How many of its ties hold."),
        Fact("broken", "", Reduction.SUM, "How many of its ties broke in the frame."),
        Fact("missed", "", Reduction.SUM, "How many of the nodes found nothing to tie in the frame."),
    ),
    warning="{missed} force_attach found no particle in the mask as it began to act; move the mask to where matter is",
    warn_if="missed",
)

JUST = 1e-6
"""How much later than the beginning of a substep its keys are taken [frames]: a key that stands there counts."""
NEAR = 0.25
"""Cells from its place within which what is tied needs no shorter substep: a spring moves it there at most."""


_End = tuple[np.ndarray, np.ndarray]
"""Pose and vertices of a body."""


class Pulled(NamedTuple):
    """What an attachment gave in a substep.

    Attributes:
        given: To the matter.
        strongest: Largest acceleration [m/s^2].
        spring: Impulse of its springs without their damping [N s].
    """

    given: Delivered
    strongest: float
    spring: tuple[float, float, float]


_NOTHING = Pulled(Delivered((0.0, 0.0, 0.0), 0.0), 0.0, (0.0, 0.0, 0.0))


# ---------------------------------------------------------------- ties
def refuse_without_columns(forces: Sequence[BodyForce], names: Sequence[str]) -> None:
    """Refuse attachments in a solve whose particles have no columns for them.

    Raises:
        MpmNodesError: They have none.
    """
    for number in range(len(attachments_of(forces))):
        for column in attached_column(number):
            if column not in names:
                raise MpmNodesError(
                    f"solve.forces: force_attach needs the column '{column}', which the particles do not have; give sources and "
                    "emitters to nodes.attachments.with_attachments first"
                )


class _Ties(NamedTuple):
    """Ties of an attachment in a store: their mass [kg], how many hold, and how many particles were looked at."""

    mass: float = 0.0
    tied: int = 0
    seen: int = 0


def attach(particles: ParticleStore, step: StepContext, still: ParticleStore) -> None:
    """Tie particles that no attachment has looked at, let go what an attachment without stiffness held, and find masses.

    Args:
        particles: Particles.
        step: The substep to come.
        still: Passive particles: their ties hold without pulling, and break and let go with the others.
    """
    held = attachments_of(step.forces)
    if not held:
        return
    begin = step.moment(0.0)
    moment = dataclasses.replace(begin, frame=begin.frame + JUST)
    found, holders, known = list[float](), _holders(step), step.tied_to
    step.tied_to = holders
    for number, each in enumerate(held):
        state = particles.rows(attached_column(number)[0])[0]
        lets_go = not keys.at(each.stiffness, moment.frame) > 0.0
        if not lets_go and _are_other_ties((particles, still), step, number, known):
            _let_go(particles, still, step, number)
        before = int((state != springs.UNSEEN).sum()) + _ties(still, number).seen
        if lets_go:
            _let_go(particles, still, step, number)
        elif keys.most(each.breaking_force) > 0.0 and number in step.severed:  # what comes later is not tied by it
            state[state == springs.UNSEEN] = springs.LEFT_OUT
        elif (state == springs.UNSEEN).any():
            _tie(particles, each, number, moment)
        moving, resting = _ties_of(particles, number), _ties(still, number)
        found += [moving.mass + resting.mass, moving.tied + resting.tied, before, moving.seen + resting.seen]
    totals = step.share.totals(found).reshape(-1, 4)
    step.attached, step.pulled = tuple((float(kilograms), int(count)) for kilograms, count, _, _ in totals), ()
    step.missed = sum(not count and not before and seen > 0 for _, count, before, seen in totals.tolist())


def _ties_of(particles: ParticleStore, number: int) -> _Ties:
    state = particles.rows(attached_column(number)[0])[0]
    mass = float(particles.rows("mass")[0][state > 0].sum(dtype=float))
    return _Ties(mass, int((state > 0).sum()), int((state != springs.UNSEEN).sum()))


def _ties(still: ParticleStore, number: int) -> _Ties:
    """Return the ties of passive particles, which change so seldom that they are kept."""
    if not still.count:
        return _Ties()
    if (_Ties, number) not in still.bound:
        still.bound[_Ties, number] = _ties_of(still, number)
    kept: _Ties = still.bound[_Ties, number]
    return kept


def _let_go(particles: ParticleStore, still: ParticleStore, step: StepContext, number: int) -> None:
    step.severed -= {number}
    particles.rows(attached_column(number)[0])[:] = springs.UNSEEN
    if _ties(still, number).seen:
        still.rows(attached_column(number)[0])[:] = springs.UNSEEN
        del still.bound[_Ties, number]


def _holders(step: StepContext) -> tuple[str, ...]:
    """Return the name of each attachment, and what of its body ties name; the same ones hold what the same ones tied."""
    found = list[str]()
    for force in step.forces:
        if force.attachment is not None:
            body = force.attachment.body
            points = body is not None and body.triangles is not None
            found.append(f"{force.name}: {'place' if body is None else f'{_most(body)} triangles' if points else 'pose'}")
    return tuple(found)


def _most(body: BodyMotion | None) -> int:
    """Return the largest number that a tie to a body has."""
    return 1 if body is None or body.triangles is None else len(body.triangles)


def _are_other_ties(stores: Sequence[ParticleStore], step: StepContext, number: int, known: tuple[str, ...]) -> bool:
    """Return whether the ties were made by another attachment, as before a cook that goes on with another graph; that is told."""
    states, most = [each.rows(attached_column(number)[0])[0] for each in stores], _most(attachments_of(step.forces)[number].body)
    if number < len(known):
        others = known[number] != step.tied_to[number]
    else:  # of a state that does not say it
        others = step.share.any(any(int(state.max(initial=0)) > most for state in states))
    if others and any((state > 0).any() for state in states):
        name = step.tied_to[number].partition(": ")[0] or "force_attach"
        message = "the ties that are there were made by another node, or to another body; they let go, and are made again"
        warnings.warn(f"{name}: {message}", stacklevel=2)
    return others


def _tie(particles: ParticleStore, attachment: Attachment, number: int, moment: Moment) -> None:
    """Tie what lies in the mask of what was not looked at yet."""
    column, place = attached_column(number)
    state = particles.rows(column)[0]
    marks = np.ones(particles.count, bool) if attachment.mask is None else inside(particles, attachment.mask, moment)
    new, body = (state == springs.UNSEEN) & marks, attachment.body
    state[(state == springs.UNSEEN) & ~marks] = springs.LEFT_OUT
    places = particles.unpack("position")[new]
    which = np.zeros(len(places), np.int64)
    if body is not None and len(places):
        rotation, translation = pose_at(body, moment.frame)
        places = (places - translation) @ rotation
        if body.points is not None:
            assert body.triangles is not None
            which, places = _on_triangles(places, _points_at(body, moment.frame)[body.triangles])
    state[new] = 1 + which
    particles.rows(place)[:, new] = places.T


def _on_triangles(places: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each place [m] the nearest triangle, and shares of two of its edges and the height above it [m], shape (n, 3)."""
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(one, other)
    area = np.linalg.norm(normal, axis=1)
    wide = np.flatnonzero(area > 1e-12 * area.max())  # what has no area has no axes
    nearest = np.empty(len(places), np.int64)
    nearest_triangles(np.ascontiguousarray(corners[wide]), np.ascontiguousarray(places), nearest)
    which = wide[nearest]
    axes = np.stack([one[which], other[which], normal[which] / area[which, None]], axis=2)
    return which, np.linalg.solve(axes, (places - corners[which, 0])[..., None])[..., 0]


# ---------------------------------------------------------------- bodies
def _points_at(body: BodyMotion, frame: float) -> np.ndarray:
    """Return the vertices of a body's surface at a frame, before it is posed, shape (n, 3) [m]."""
    assert body.points is not None
    if body.points[0] is body.points[1]:
        return np.asarray(body.points[1])
    share = min(max(frame - body.frame + 1.0, 0.0), 1.0) if math.isfinite(frame) else 0.0
    return np.asarray((1.0 - share) * body.points[0] + share * body.points[1])


# ---------------------------------------------------------------- springs
def pull_attachments(particles: ParticleStore, step: StepContext, moment: Moment, dt: float) -> list[Pulled]:
    """Let the springs of attachments pull; return what each gave.

    Args:
        particles: Particles.
        step: The substep, before which `attach` was called.
        moment: When keys are taken.
        dt: [s]; 0 changes nothing, and only finds the largest acceleration.
    """
    held = list(zip(attachments_of(step.forces), step.attached, strict=False))
    found = [_pull(particles, step, number, (*each, moment.frame, dt)) for number, each in enumerate(held)]
    return found + [_NOTHING] * (len(attachments_of(step.forces)) - len(held))  # where nobody looked what is tied


def _pull(
    particles: ParticleStore, step: StepContext, number: int, how: tuple[Attachment, tuple[float, int], float, float]
) -> Pulled:
    attachment, (kilograms, count), frame, dt = how
    stiffness = keys.at(attachment.stiffness, frame)
    if not count or not stiffness > 0.0:
        return _NOTHING
    square = stiffness / kilograms
    decay = math.exp(-2.0 * attachment.damping * math.sqrt(square) * dt)
    spring = min(square * dt, 1.0 / dt) if dt > 0.0 else 0.0
    numbers = np.array([dt, decay, spring, square, NEAR * particles.h, *(4.0 * particles.h * np.array(particles.period))])
    column, place = attached_column(number)
    cloud = placement_of(particles), particles.array("velocity"), particles.array("mass")
    ties, where = (particles.array(column), particles.array(place)), (particles.ranges, block_centres(particles))
    told = np.empty((len(particles.ranges), springs.TOLD))
    springs.pull(cloud, ties, where, _body(attachment.body, step, dt), numbers, told)
    x, y, z, work, _, *own = told.sum(axis=0).tolist()
    return Pulled(Delivered((x, y, z), work), math.sqrt(told[:, 4].max(initial=0.0)), tuple(own))


def sever(particles: ParticleStore, step: StepContext, still: ParticleStore) -> None:
    """Break the ties of attachments whose springs pulled too hard in a substep, and tell what all of them bear.

    Args:
        particles: Particles.
        step: The substep that is over; its stage `apply_forces` left there what attachments did.
        still: Passive particles.
    """
    held = attachments_of(step.forces)
    if not held:
        return
    pulled = step.pulled or (_NOTHING,) * len(held)  # a rank without particles pulls at none
    totals = step.share.totals([part for each in pulled for part in (*each.given.impulse, *each.spring)]).reshape(-1, 6)
    frame, tied, broken = step.moment(0.5 * step.dt).frame, list[int](), list[int]()
    for number, (each, total, (_, count)) in enumerate(zip(held, totals, step.attached, strict=True)):
        most = keys.at(each.breaking_force, frame)
        breaks = most > 0.0 and float(np.linalg.norm(total[3:])) > most * step.dt
        if breaks:
            step.severed |= {number}
            for store in (particles, still):
                state = store.rows(attached_column(number)[0])[0]
                state[state > 0] = springs.BROKEN
            still.bound.pop((_Ties, number), None)
        tied, broken = [*tied, 0 if breaks else count], [*broken, count if breaks else 0]
    force = tuple((-totals[:, :3] / step.frame_seconds).ravel().tolist())
    step.tell(ATTACHMENTS, force=force, tied=tuple(tied), broken=tuple(broken), missed=step.missed)


def _body(body: BodyMotion | None, step: StepContext, dt: float) -> tuple[_End, _End, np.ndarray]:
    """Return pose and vertices at both ends of a substep, and triangles, as `springs.pull` takes them."""
    if body is None:
        still = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), np.zeros(0)
        return still, still, np.zeros(0, np.int64)

    def end(frame: float) -> _End:
        pose = np.concatenate([each.ravel() for each in pose_at(body, frame)])
        return pose, np.zeros(0) if body.points is None else np.ascontiguousarray(_points_at(body, frame)).ravel()

    triangles = np.zeros(0, np.int64) if body.triangles is None else body.triangles.ravel()
    return end(step.moment(0.0).frame), end(step.moment(dt).frame), triangles
