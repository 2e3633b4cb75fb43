"""Pairs of bodies with a rule of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import CollisionRule, MpmNodesError
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY

__all__ = ["PairRule", "pair_rules", "read_pairs"]

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
