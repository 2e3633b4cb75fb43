"""Attachments: what ties matter to its place or to a body until it lets go."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Attachment,
    BodyForce,
    BodyMotion,
    Collider,
    Emitter,
    Field,
    FrameContext,
    MpmNodesError,
    NewtonsPerMetre,
    Particles,
    Range,
    Resampling,
    SpatialField,
    Unit,
    Unitless,
    attached_column,
    attachments_of,
    attributes_of,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.nodes.bodies import refuse_rigid
from mpm_nodes.nodes.fields import constant, number
from mpm_nodes.nodes.rotations import turn_matrix

__all__ = ["attached_columns", "force_attach", "motion_of", "with_attachments"]


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: it pushes; what has no material points is refused, and a body that is elsewhere."""
    refuse_rigid(told, "force_attach.collider")
    if told.total("collider", "pointless"):
        raise MpmNodesError(
            "force_attach.collider: a sequence of level sets has no points that matter could be tied to; wire in a mesh "
            "(collide_usd), or a level set that keeps its shape"
        )
    attributes: frozenset[str] = frozenset()
    for facts in told.inputs.get("mask", ())[:1]:
        if "field" in facts:
            number("force_attach.mask", facts["field"])
            attributes = attributes_of(facts["field"])
    return {"forces": 1, "attachments": 1, "attributes": attributes}


@found_by("pin", "glue", "spring", "constraint", "hold", "string")
@node(category="Force", label="Attach", preflight=_told)
def force_attach(
    ctx: FrameContext,
    mask: SpatialField | None = None,
    collider: Collider | None = None,
    *,
    stiffness: A[float, NewtonsPerMetre, Range(min=0.0, soft_max=1e6), KeysTravel()] = 10000.0,
    damping: A[float, Unitless, Range(min=0.0, soft_max=2.0), NotKeyable("it is a property of the spring")] = 1.0,
    breaking_force: A[float, Unit("N"), Range(min=0.0, soft_max=1e5), KeysTravel()] = 0.0,
) -> BodyForce:
    """Tie matter by springs to its place, or to a collider that moves and deforms, until they break or a key lets go.

    Particles are tied where they are when it first acts, or come in later: each to its place, or to the point of the collider that
    is there. The stiffness is that of all ties together, which share it by mass: finer particles hang as deep. What pulls at all of
    them together breaks them, at once and for good; where a region is to be peeled off, take the adhesion of a collider.

    Args:
        mask: Particles are tied where it is above 1/2; without it all are.
        collider: What they are tied to, wherever it moves; meshes that deform take them along. It need not be wired into the solve.
        stiffness: Of the springs together; a key of 0 lets go, and one above it then ties again.
        damping: Of the springs: at 1 what is tied comes back without swinging, at 0 it swings on.
        breaking_force: Force of the springs on all that is tied at which the ties break; 0: they never do.

    Raises:
        MpmNodesError: The mask is a field of vectors.
    """
    if mask is not None:
        number("force_attach.mask", mask)
    body = None if collider is None else motion_of(collider, ctx)
    if collider is not None and body is None:
        message = f"the mesh of '{collider.name}' changes its topology in frame {ctx.frame}: ties let go, and are made again"
        ctx.report("warning", where="collider", message=message)
        stiffness = 0.0
    attachment = Attachment(stiffness, damping, breaking_force, mask, body)
    return BodyForce(constant((0.0, 0.0, 0.0)), attachment=attachment)


def motion_of(collider: Collider, ctx: FrameContext) -> BodyMotion | None:
    """Return how the points of a collider move over the frame; None where it has none, since its topology changes.

    Args:
        collider: The collider.
        ctx: The frame.
    """
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    shape, mesh, before = collider.shape, collider.mesh, collider.points_before
    frames = np.asarray(Clock.of(ctx.settings).frame(shape.pose_times), float)
    motion = BodyMotion(frames, shape.rotations, shape.translations)
    if mesh is None or before is None:
        return motion if len(shape.level_sets) < 2 else None
    triangles, _ = triangulate(mesh.counts, mesh.indices)
    if len(shape.level_sets) > 1:
        points = np.asarray(before, float), np.asarray(mesh.points, float)
    else:  # the mesh stands where the body is at the end of the frame
        turn = turn_matrix(orientation=tuple(map(float, shape.rotations[-1])))
        points = (((np.asarray(mesh.points, float) - shape.translations[-1]) @ turn),) * 2
    return dataclasses.replace(motion, points=points, triangles=np.ascontiguousarray(triangles), frame=float(ctx.frame))


# ---------------------------------------------------------------- columns of a solve
def attached_columns(count: int) -> frozenset[str]:
    """Return the columns of the particles of a solve with so many attachments, for those."""
    return frozenset(column for n in range(count) for column in attached_column(n))


def with_attachments(
    sources: Sequence[Particles], emitters: Sequence[Emitter], forces: Iterable[BodyForce]
) -> tuple[tuple[Particles, ...], tuple[Emitter, ...]]:
    """Return what flows into a solve with the columns that the attachments among its forces need.

    Args:
        sources: Particles at the start.
        emitters: What brings particles later.
        forces: Forces of the solve.
    """
    count = len(attachments_of(forces))
    if not count:
        return tuple(sources), tuple(emitters)

    def free(particles: Particles) -> Particles:
        columns, own = {**particles.attributes}, {**particles.fields}
        for n in range(count):
            state, place = attached_column(n)
            columns[state], columns[place] = np.zeros(len(particles), np.int32), np.zeros((len(particles), 3))
            # what resampling makes is looked at again: it lies elsewhere than the particle that it is made of
            own[state] = Field(state, kind="int32", resampling=Resampling.RECOMPUTED, doc="What became of its tie.", houdini=state)
            own[place] = Field(place, shape=(3,), resampling=Resampling.RECOMPUTED, doc="Where its tie holds.", houdini=place)
        return dataclasses.replace(particles, attributes=columns, fields=own)

    return tuple(map(free, sources)), tuple(dataclasses.replace(each, template=free(each.template)) for each in emitters)
