"""How matter is shaded: looks of materials, and places at rest for textures that stick to it."""

from __future__ import annotations

import dataclasses
import enum
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import BIRTH, A, Collider, FrameContext, Frames, InputError, MpmNodesError, Particles, Range
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.materials.looks import LOOKS
from mpm_nodes.nodes.bodies import collider_passed_on, passed_on
from mpm_nodes.nodes.collider_files import frame_of_file, stamp
from mpm_nodes.nodes.retime import read_by_id

REST, SECOND_REST, BLEND = "rest", "restB", "rest_blend"
"""Columns: where a particle was at rest [m], where at a later rest, and the share of the later one."""


@node(category="Surface", label="Set Looks", version=1, preflight=passed_on)
def set_looks(particles: Particles, *, looks: tuple[str, ...] = ("foam",)) -> Particles:
    """Choose how renderers shade each material; wire it after the solve and before surface and cache.

    Args:
        particles: What to shade.
        looks: One look a material, in the order of the sources, repeated from the first when there are more materials: matter,
            matte, snow, foam, marshmallow, toasted, cheese, cream, paste, crust, sponge, chocolate, rubber, wax, jelly, syrup,
            water, wine, lava, metal, or one of those that `collider_look` names.
    """
    wrong = [name for name in looks if name not in LOOKS]
    if wrong or not looks:
        given = f'"{wrong[0]}" is not a look' if wrong else "is empty"
        raise MpmNodesError(f"set_looks.looks: {given}; choose of {', '.join(LOOKS)}")
    materials = tuple(dataclasses.replace(each, look=looks[k % len(looks)]) for k, each in enumerate(particles.materials))
    return dataclasses.replace(particles, materials=materials)


if TYPE_CHECKING:

    class ColliderLook(enum.Enum):
        """Menu of the looks: its default stands for all of them."""

        WOOD = "wood"

else:
    ColliderLook = enum.Enum("ColliderLook", [(name.upper(), name) for name in LOOKS], module=__name__)
    """Menu of the looks."""


@node(category="Surface", label="Collider Look", version=1, preflight=collider_passed_on)
def collider_look(collider: Collider, *, look: ColliderLook = ColliderLook.WOOD) -> Collider:
    """Choose how renderers shade a collider; wired between it and the cache alone, a new look needs no new simulation.

    Args:
        collider: Any collider whose mesh is drawn; the whole floor looks as its level plane does.
        look: Wood, ceramic, steel, glass, marble, cracker, checker, or one of those that `set_looks` names.
    """
    return dataclasses.replace(collider, look=look.value)


def _remembered(told: PreflightContext) -> dict[str, Any]:
    """Tell its columns where it is wired in before a solve; those that come from a cache hang on what is there."""
    facts = passed_on(told, REST, BIRTH)
    return {**facts, "columns": None} if told.knobs["path"] else facts


@node(category="Surface", label="Rest Positions", version=2, preflight=_remembered)
def rest_positions(
    ctx: FrameContext,
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path | None = None,
    prim: str = "",
    period: A[int, Frames, Range(min=2, soft_max=240), NotKeyable("two places at rest take turns")] = 24,
) -> Particles:
    """Remember where matter was, so that textures stick to it.

    Before a solve `rest` holds the places of the sources and `birth` begins their `age`. With the stage of a finished cache `rest`
    and `restB` are places at two frames of it, half a period apart, and `rest_blend` the share of the second; each is renewed
    where its share is 0.

    Args:
        particles: Sources before a solve, or what a cache holds.
        path: Stage of the finished cache; none: their places now.
        prim: Path or name of its Points prim; may stay empty when the file holds only one.
        period: Frames from one place at rest to the next, of each of the two; an even number.
    """
    if path is None:
        born = np.full(len(particles), particles.time)
        return _with(particles, {REST: particles["position"].astype(np.float32), BIRTH: born.astype(np.float32)})
    from usd_io import require_usd

    require_usd()
    from usd_io.stage_reader import frames_of

    stamped = stamp(path)
    frames = kept.get(("range", *stamped, prim), lambda: frames_of(path, prim), lambda _: 64)
    begin, end = frames.first, frames.last
    frame = min(max(math.floor(frame_of_file(ctx.settings, ctx.frame, frames)), begin), end)

    def places(reference: int) -> np.ndarray:
        """Return where the particles were then; those that were not there yet are where they are now."""
        then = kept.get(("points", *stamped, prim, reference), lambda: read_by_id(path, reference, prim, frames))
        found = particles["position"].astype(np.float32)
        _, here, there = np.intersect1d(particles["id"], then["id"], return_indices=True)
        found[here] = then["position"][there]
        return found

    if "id" not in particles:
        raise InputError("rest_positions: the particles have no ids; write `id` into the cache")
    first, second, share = _references(frame - begin, period)
    columns = {REST: places(begin + first), SECOND_REST: places(begin + second)}
    return _with(particles, {**columns, BLEND: np.full(len(particles), share, np.float32)})


def _references(since: int, period: int) -> tuple[int, int, float]:
    """Return the frames of both places at rest, from the cache's first, and the share of the second.

    The first changes at whole periods, the second half a period later; each while its share is 0.
    """
    half = max(period // 2, 1)
    turn = since % (2 * half)
    second = max(since - (since - half) % (2 * half), 0)
    return since - turn, second, abs(turn - half) / half


def _with(particles: Particles, columns: dict[str, np.ndarray]) -> Particles:
    return dataclasses.replace(particles, attributes={**particles.attributes, **columns})
