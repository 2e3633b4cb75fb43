"""The energy terms of a substep, and the grid vectors that minimising them takes."""

from __future__ import annotations

import copy as copies
import itertools
from collections.abc import Collection
from typing import Any, Protocol

import numpy as np

from mpm_nodes.data import ENERGY
from mpm_nodes.kernels.transfers.node_blocks import BLOCK
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.stores import Saved, Store

__all__ = ["EnergyStore", "EnergyTerm"]


class EnergyTerm(Protocol):
    """One term of the incremental potential, a function of trial velocities on the grid."""

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """Add f(x + dt v) [N] to `force`; return the energy [J] and how many points are outside the term's domain."""

    def linearise(self, dt: float) -> None:
        """Prepare for `apply` and `add_blocks` at the velocities of the last `evaluate`."""

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """Add dt^2 Phi'' d [kg m/s] to `result`."""

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """Add the node-diagonal blocks of dt^2 Phi'' [kg] to `blocks`, six values a node."""


def _never(term: EnergyTerm) -> bool:
    return False


def _copied(terms: dict[str, EnergyTerm]) -> dict[str, EnergyTerm]:
    """Return terms of their own, which may take others in without a trace in those that were given."""
    return {name: copies.copy(term) for name, term in terms.items()}


class EnergyStore(Store):
    """What the stages of energy terms leave for the stage that minimises their sum.

    Attributes:
        terms: The terms of this substep by the name of their stage.
    """

    domain = ENERGY

    def __init__(self, grid: GridStore) -> None:
        self.grid = grid
        self.terms: dict[str, EnergyTerm] = {}
        self._vectors: dict[str, np.ndarray] = {}

    def add(self, name: str, term: EnergyTerm) -> None:
        """Add a term to the potential of this substep.

        Terms that can be evaluated in one pass join: one that has a method `takes_in(term)` may return True to count another as
        its own from then on, whichever came first.

        Args:
            name: Name of the stage that adds it; a further term of the same name gets a number.
            term: The term.
        """
        for known_name, known in list(self.terms.items()):
            if getattr(known, "takes_in", _never)(term):
                return
            if getattr(term, "takes_in", _never)(known):
                del self.terms[known_name]
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        self.terms[next(free for free in names if free not in self.terms)] = term

    def begin_substep(self) -> None:
        """Forget the terms: a substep begins."""
        self.terms.clear()

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`. Terms live for one substep: they are kept in memory, and no checkpoint asks for them."""
        return Saved({"terms": _copied(self.terms)})

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        self.terms = _copied(saved.facts["terms"])

    def vector(self, name: str) -> np.ndarray:
        """Return a grid vector in double precision, four values a node."""
        return self._array(name, 256, np.dtype(np.float64))

    def rounded(self, name: str) -> np.ndarray:
        """Return a grid vector in the solve's float type."""
        return self._array("rounded " + name, 256, self.grid.dtype)

    def blocks(self) -> np.ndarray:
        """Return room for a symmetric 3 x 3 block of every node, flat, float64."""
        return self._array("blocks", 64 * BLOCK, np.dtype(np.float64))

    def slots(self) -> np.ndarray:
        """Return room for a number of every node, int32."""
        return self._array("slots", 64, np.dtype(np.int32))

    def _array(self, name: str, per_block: int, dtype: np.dtype) -> np.ndarray:
        needed = per_block * self.grid.count + PAD
        array = self._vectors.get(name)
        if array is None or array.size < needed or array.dtype != dtype:
            array = self._vectors[name] = aligned(needed * 5 // 4, dtype)
        return array

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(array.nbytes for array in self._vectors.values())

    def linearise(self, dt: float, whole: bool = False) -> None:
        """Prepare all terms for products at the velocities of the last `evaluate`.

        Args:
            dt: Substep [s].
            whole: Ask terms that drop negative parts of their second derivative, and have `linearise_whole(dt)`, for all of it.
        """
        for term in self.terms.values():
            (getattr(term, "linearise_whole", term.linearise) if whole else term.linearise)(dt)

    @property
    def drops_parts(self) -> bool:
        """Whether a term drops negative parts of its second derivative unless it is asked for all of it."""
        return any(hasattr(term, "linearise_whole") for term in self.terms.values())

    def evaluate(self, dt: float, velocity: np.ndarray) -> tuple[float, int]:
        """Write the force of all terms at trial velocities to the grid's "force"; return energy [J] and infeasible points."""
        self.grid.clear("force")
        found: list[Any] = [term.evaluate(dt, velocity, self.grid.array("force")) for term in self.terms.values()]
        energy, broken = sum(energy for energy, _ in found), sum(broken for _, broken in found)
        self.grid.halo.sum(self.grid.array("force"))
        energy, broken = self.grid.halo.totals([energy, broken])
        return float(energy), int(broken)
