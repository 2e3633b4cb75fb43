"""Stage: contacts of bodies that keep velocities of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import A, CollisionRule, Kernel, MpmNodesError, Pascals, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import needs_whole_nodes, shared_among_ranks, stage
from mpm_nodes.kernels.collisions import bodies as kernels
from mpm_nodes.kernels.collisions.half_spaces import distances
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import Halo
from mpm_nodes.solver.ranks.reaching import Reaching
from mpm_nodes.solver.state import ParticleStore

_RULES = {CollisionRule.STICKY: STICKY, CollisionRule.SLIP: SLIP, CollisionRule.SEPARATE: SEPARATE}
_PAIR = re.compile(r"\s*(\d+)\s+(\d+)\s+(sticky|slip|separate)(?:\s+([0-9.eE+-]+))?(?:\s+([0-9.eE+-]+))?\s*")


class PairRule(NamedTuple):
    """A pair of bodies with a rule of its own.

    Attributes:
        bodies: Their numbers.
        rule: What they do.
        friction: Coulomb coefficient; None: that of all.
        adhesion: [Pa]; None: that of all.
    """

    bodies: tuple[int, int]
    rule: CollisionRule
    friction: float | None
    adhesion: float | None


class Meeting(NamedTuple):
    """Where bodies meet on a grid.

    Attributes:
        blocks: Grid blocks at whose place another body has a block too, place by place, shape (n,), int64.
        groups: First and last + 1 of those that are at one place, shape (places, 2), int64.
        bodies: Body of each, shape (n,), int64.
        first, near: Particle blocks that reach each of them: `near[first[k] : first[k + 1]]`, int64.
        moments: Room for `kernels.collisions.bodies.measure_bodies`.
        reaching: On several ranks, where `near` finds its particle blocks; else None: they are those of the particles.
        anywhere: Whether bodies meet on this rank or on another.
    """

    blocks: np.ndarray
    groups: np.ndarray
    bodies: np.ndarray
    first: np.ndarray
    near: np.ndarray
    moments: np.ndarray
    reaching: Reaching | None
    anywhere: bool


def meeting_of(grid: GridStore) -> Meeting:
    """Return where bodies meet, from the grid's blocks, which are in the order of their places.

    On several ranks, which do so together, each has the places in its own slab.
    """
    changes = np.flatnonzero((np.diff(grid.coord, axis=0) != 0).any(axis=1)) + 1
    starts, ends = np.concatenate([[0], changes]), np.concatenate([changes, [grid.count]])
    several, tiles, reaching = ends - starts > 1, grid.particle_tiles(), None
    order = np.argsort(tiles.ravel(), kind="stable")
    if isinstance(grid.halo, Halo):
        reaching = Reaching(grid, grid.halo, np.repeat(several, ends - starts))
        tiles, several = reaching.tiles, several & np.append(grid.halo.own, False)[starts]
        order = np.lexsort((np.repeat(reaching.packed, 8), tiles.ravel()))  # particles in the order that they have on one rank
    sizes = (ends - starts)[several]
    blocks = np.concatenate([np.arange(a, b) for a, b in zip(starts[several], ends[several], strict=True)] or [np.zeros(0, int)])
    last = np.cumsum(sizes)
    reached = tiles.ravel()[order]
    begin, end = np.searchsorted(reached, blocks), np.searchsorted(reached, blocks, side="right")
    near = np.concatenate([order[a:b] // 8 for a, b in zip(begin, end, strict=True)] or [np.zeros(0, int)])
    return Meeting(
        blocks.astype(np.int64),
        np.stack([last - sizes, last], axis=1).astype(np.int64),
        grid.body[blocks].astype(np.int64),
        np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64),
        near.astype(np.int64),
        np.empty((len(blocks), 64, kernels.MOMENTS)),
        reaching,
        grid.halo.any(bool(len(blocks))),
    )


def cloud_of(meeting: Meeting, particles: ParticleStore, grid: GridStore) -> kernels.NearbyParticles:
    """Return the particles around the blocks where bodies meet; ranks, which ask together, add those of their neighbours."""
    place = particles.geometry()
    own = (place.offset, place.stride, place.inverse_unit, particles.block_coord, particles.block_start, particles.array("volume"))
    if meeting.reaching is not None:
        now = meeting.reaching.now(particles, "volume")
        own = (now.offset, now.count, place.inverse_unit, now.coord, now.start, now.values)
    return kernels.NearbyParticles(meeting.blocks, meeting.first, meeting.near, *own, grid.coord, grid.h)


def read_pairs(pairs: str) -> list[PairRule]:
    """Return the pairs of a knob.

    Raises:
        MpmNodesError: A pair cannot be read, or its friction or adhesion is not a number >= 0.
    """
    read = []
    for text in filter(str.strip, pairs.split(";")):
        found = _PAIR.fullmatch(text)
        try:
            own = [] if found is None else [None if each is None else float(each) for each in found.groups()[3:]]
        except ValueError:
            found = None
        if found is None or not all(each is None or 0.0 <= each < np.inf for each in own):
            raise MpmNodesError(
                f"collide_bodies.pairs: {text.strip()!r} cannot be read; write two bodies, a rule and, with separate, a friction "
                'and an adhesion >= 0, pairs apart by semicolons: "0 2 sticky; 1 2 separate 0.4; 1 3 separate 0.4 500"'
            )
        read.append(PairRule((int(found[1]), int(found[2])), CollisionRule(found[3]), *own))
    return read


def pair_rules(
    pairs: str, bodies: Sequence[int], rule: CollisionRule, friction: float, adhesion: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rule, friction and adhesion [Pa] of every pair of bodies, shape (bodies, bodies); errors are those of `read_pairs`."""
    row = {body: n for n, body in enumerate(bodies)}
    rules = np.full((len(row), len(row)), _RULES[rule], np.int64)
    frictions, adhesions = np.full(rules.shape, float(friction)), np.full(rules.shape, float(adhesion))
    for (a, b), its_rule, own, strength in read_pairs(pairs):
        if a in row and b in row:
            for place in ((row[a], row[b]), (row[b], row[a])):
                rules[place], frictions[place] = _RULES[its_rule], friction if own is None else own
                adhesions[place] = adhesion if strength is None else strength
    return rules, frictions, adhesions


@shared_among_ranks
@needs_whole_nodes
@stage(label="Collide Bodies")
def collide_bodies(
    particles: A[ParticleStore, Reads("position", "volume", "body")],
    grid: A[GridStore, Reads("velocity", "mass"), Writes("velocity")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    rule: CollisionRule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, Range(min=0.0, soft_max=1.0)] = 0.3,
    pairs: str = "",
    adhesion: A[float, Pascals, Range(min=0.0, soft_max=10000.0)] = 0.0,
) -> Stage["particles", "grid"]:
    """Let bodies of particles touch, slide and part, each with velocities of its own on the grid (Bardenhagen 2000, Nairn 2013).

    With this stage in the substeps, particles with different values of `body` share no node: they do not drag each other across
    empty space and can slide on each other. Without values each material is a body; `merge_particles` with `bodies` makes each
    of its sources one. Where two bodies have mass at a node, their gap is measured from where their matter lies there; if they
    would overlap at the end of the substep, the approach is stopped by an impulse between them, with Coulomb friction. Momentum
    is kept to rounding, and kinetic energy does not grow. Stands after the forces and before the collisions with colliders.

    Args:
        particles: Particles of the bodies.
        grid: Grid with the updated velocities.
        kernel: B-spline of the transfers.
        rule: What touching bodies do: separate (with friction), slip (stay together, free of friction) or sticky (stay together).
        friction: Coulomb coefficient between bodies that may separate.
        pairs: Pairs with a rule of their own, by the numbers of their bodies, and with separate friction and adhesion [Pa] of their
            own: "0 2 sticky; 1 2 separate 0.4; 1 3 separate 0.4 500".
        adhesion: Tension by which bodies that touch hold each other before they part, for the rule separate: glue. It adds to what
            friction presses by; keys of it let go.
    """
    read_pairs(pairs)  # a mistake is told in the first substep, not when bodies meet
    if not (grid.count or grid.halo.several):
        return
    meeting = grid.derived("meeting", lambda: meeting_of(grid))
    if not meeting.anywhere:
        return
    present = np.unique(meeting.bodies)
    rules, frictions, adhesions = pair_rules(pairs, present.tolist(), rule, friction, adhesion)
    cubic, cloud = kernel is Kernel.CUBIC, cloud_of(meeting, particles, grid)
    kernels.measure_bodies(cloud, cubic, meeting.moments)
    kernels.meet_bodies(
        kernels.Pairs(meeting.groups, np.searchsorted(present, meeting.bodies), rules, frictions, adhesions),
        meeting.moments,
        distances(4 if cubic else 3),
        kernels.GridNodes(grid.array("momentum"), grid.array("velocity"), grid.least_mass),
        step.dt,
        cloud,
    )
    grid.halo.copy(grid.array("velocity"))  # each rank has met the bodies in its own slab
