"""Pieces that matter has torn into: connected components of what was beside each other at rest, and is not apart by now."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mpm_nodes.data import A, FrameContext, MpmNodesError, Particles, Previous, Range, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.looks import REST

__all__ = ["CRUMB", "PIECE", "PieceState", "label_pieces", "next_pieces"]

PIECE, CRUMB = "piece", "crumb"
"""Columns: the number of the piece that a particle is of, and 1 where it has left that, in too small a lump to be one."""
NEIGHBOURS = 12
"""Bonds of a particle: to those that were nearest at rest."""
REACH = 2.0
"""Longest bond at rest, in spacings of the particles."""
NO_REST = "label_pieces.particles: have no rest places; wire rest_positions in before the solve"
_ONCE = NotKeyable("what is torn stays torn")


@dataclasses.dataclass(frozen=True)
class PieceState:
    """What tears have done so far.

    Attributes:
        ids: Of the particles, in ascending order, shape (n,).
        piece: Their pieces, shape (n,), int32.
        crumb: 1 where they have left them, shape (n,), uint8.
    """

    STATE_FORMAT: ClassVar[int] = 1

    ids: np.ndarray
    piece: np.ndarray
    crumb: np.ndarray

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and arrays, as checkpoints store them."""
        return {}, {"ids": self.ids, "piece": self.piece, "crumb": self.crumb}

    @classmethod
    def from_arrays(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> PieceState:
        """Return the state that `to_arrays` described."""
        return cls(arrays["ids"], arrays["piece"], arrays["crumb"])


class PieceOutputs(NamedTuple):
    """Particles with their pieces, and the state that the next frame goes on from."""

    particles: Particles
    state: PieceState


def _labelled(told: PreflightContext) -> dict[str, Any]:
    """Preflight: refuse matter without its places at rest; tell the columns."""
    for facts in told.inputs.get("particles", ()):
        if facts.get("columns") is not None and REST not in facts["columns"]:
            raise MpmNodesError(NO_REST)
    return passed_on(told, PIECE, CRUMB)


@node(category="Surface", label="Label Pieces", preflight=_labelled)
def label_pieces(
    ctx: FrameContext,
    particles: Particles,
    previous: Previous[PieceState],
    kept: Kept = NOTHING_KEPT,
    *,
    gap: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_min=0.25, soft_max=4.0), _ONCE] = 1.0,
    smallest: A[float, Unitless, Range(min=0.0, max=1.0, soft_max=0.1), _ONCE] = 0.01,
) -> PieceOutputs:
    """Number the pieces that matter has torn into, for `deform_mesh`, which cuts its mesh along the tears.

    Particles that were neighbours at rest are torn apart once their distance has grown by the gap; what still hangs together is a
    piece. Pieces part and never join, and the largest part keeps its number. The column `piece` holds the number; `crumb` is 1
    where a particle has left its piece in a lump that is too small to be one. A note tells of every break.

    Args:
        particles: With the places at rest that rest_positions gave them before the solve.
        gap: How far neighbours have moved apart when they are torn, in cells.
        smallest: Least share of all particles that a piece of its own has.

    Raises:
        MpmNodesError: The particles have no places at rest.
    """
    if REST not in particles:
        raise MpmNodesError(NO_REST)
    rest, now = (np.asarray(particles[name], float) for name in (REST, "position"))
    ids = np.asarray(particles["id"], np.int64) if "id" in particles else np.arange(len(rest))
    piece, crumb = np.zeros(len(rest), np.int32), np.zeros(len(rest), np.uint8)
    if previous is not None:
        _, here, there = np.intersect1d(ids, previous.ids, assume_unique=True, return_indices=True)
        piece[here], crumb[here] = previous.piece[there], previous.crumb[there]
    told = hashlib.sha256(rest.tobytes()).hexdigest()
    bonds = kept.get(("bonds", told, particles.spacing), lambda: _bonds(rest, REACH * particles.spacing))
    holds = _lengths(bonds, now) <= _lengths(bonds, rest) + gap * ctx.settings.cell_size
    before = int(piece.max(initial=0)) + 1
    piece, crumb = next_pieces(bonds, holds, (piece, crumb), max(1, round(smallest * len(rest))))
    if (after := int(piece.max(initial=0)) + 1) > before and previous is not None:
        ctx.report("note", message=f"matter breaks: {before} piece{'s' * (before > 1)} before, {after} now; meshes are cut again")
    columns = {**particles.attributes, PIECE: piece, CRUMB: crumb}
    order = np.argsort(ids, kind="stable")
    state = PieceState(ids[order], piece[order], crumb[order])
    return PieceOutputs(dataclasses.replace(particles, attributes=columns), state)


def _bonds(rest: np.ndarray, reach: float) -> np.ndarray:
    """Return pairs of neighbours at rest, shape (m, 2): of each particle to those nearest to it, the nearest first."""
    from mpm_nodes.kernels.surfaces.nearest_points import nearest_points

    if len(rest) < 2:
        return np.zeros((0, 2), np.int64)
    numbers, squares = nearest_points(rest, rest, min(NEIGHBOURS + 1, len(rest)))
    own = np.repeat(np.arange(len(rest))[:, None], numbers.shape[1], axis=1)
    chosen = (numbers != own) & (squares <= reach**2)
    return np.stack([own[chosen], numbers[chosen]], axis=1)


def _lengths(bonds: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(places[bonds[:, 0]] - places[bonds[:, 1]], axis=1))


def next_pieces(
    bonds: np.ndarray, holds: np.ndarray, before: tuple[np.ndarray, np.ndarray], least: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces, shape (n,), int32, and crumbs, shape (n,), uint8, after further tears.

    Args:
        bonds: Pairs of neighbours, shape (m, 2), of each particle the nearest first.
        holds: Whether each still does, shape (m,).
        before: Pieces and crumbs so far.
        least: Particles that a piece of its own has.
    """
    piece, crumb = before[0].copy(), before[1].copy()
    one, other = bonds.T
    within = (piece[one] == piece[other]) & holds & (crumb[one] == 0) & (crumb[other] == 0)
    part = _components(len(piece), one[within], other[within])
    sizes = np.bincount(part, weights=crumb == 0, minlength=len(piece)).astype(np.int64)
    fresh = np.full(len(piece), -1, np.int32)
    lumps = np.flatnonzero(sizes)
    largest = lumps[np.lexsort((lumps, -sizes[lumps], piece[lumps]))]
    first = np.concatenate([[True], piece[largest][1:] != piece[largest][:-1]]) if len(largest) else np.zeros(0, bool)
    fresh[largest[first]] = piece[largest[first]]  # the largest keeps the number
    born = largest[~first & (sizes[largest] >= least)]
    born = born[np.lexsort((born, -sizes[born]))]
    fresh[born] = np.arange(len(born)) + int(piece.max(initial=-1)) + 1
    found = np.where(crumb == 0, fresh[part], -1).astype(np.int32)
    crumb[found < 0] = 1
    if not len(born):
        return piece, crumb
    return _with_the_nearest(bonds[piece[one] == piece[other]], found, piece), crumb


def _components(count: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return of each particle the least number of one that bonds join it with, shape (n,)."""
    root = np.arange(count)
    while True:
        a, b = root[one], root[other]
        apart = a != b
        if not apart.any():
            return root
        one, other, a, b = one[apart], other[apart], a[apart], b[apart]
        np.minimum.at(root, np.maximum(a, b), np.minimum(a, b))
        while (further := root[root]).tobytes() != root.tobytes():
            root = further


def _with_the_nearest(bonds: np.ndarray, found: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return pieces where those that have none (-1) take that of the nearest neighbour that has one, and so on outwards."""
    found = found.copy()
    while True:
        reached = (found[bonds[:, 0]] < 0) & (found[bonds[:, 1]] >= 0)
        if not reached.any():
            return np.where(found < 0, otherwise, found)
        takers, first = np.unique(bonds[reached, 0], return_index=True)  # bonds of a particle stand nearest first
        found[takers] = found[bonds[reached, 1][first]]
