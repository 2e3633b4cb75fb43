"""What a solve hands to its next frame, and what of it goes to disk.

A live state holds the solver itself, which the next frame moves on in place. A restored one holds raw arrays until the solve
node, which knows materials and colliders, builds a solver around them. Memory order is part of the state: every frame begins with
a sort, so a resumed solve continues with the same bits as one that was never interrupted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError


class SolverState:
    """State of a solve after a frame; numba is not needed to hold or store one.

    Args:
        solver: A live `SubstepSolver`, or None for a restored state.
        facts: JSON-able facts of a restored state.
        arrays: Arrays of a restored state.
    """

    def __init__(self, solver: Any = None, facts: dict[str, Any] | None = None,
                 arrays: dict[str, np.ndarray] | None = None) -> None:
        self.solver, self._facts, self._arrays = solver, facts, arrays

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if self.solver is None:
            return sum(array.nbytes for array in self._arrays.values())
        return self.solver.particles.nbytes + self.solver.grid.nbytes + self.solver.energy.nbytes

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and raw arrays that `from_arrays` takes; a live solver's are views until its next substep."""
        if self.solver is None:
            return self._facts, self._arrays
        solver, store = self.solver, self.solver.particles
        facts = {"time": solver.time, "next_id": solver.next_id, "substeps": solver.substeps_done, "count": store.count,
                 "resampling": [store.resampling_age, store.keep_next],
                 "choice": solver.choice and [solver.choice.index, solver.choice.dt, list(solver.choice.cost)],
                 "dtype": store.dtype.name, "cell_size": store.h, "names": list(store.names),
                 "materials": _materials(solver)}
        arrays = {f"attribute {name}": store.rows(name) for name in store.names if name not in solver.transient}
        arrays["offset"] = store.rows("position")
        arrays |= {"block_coord": store.block_coord, "block_start": store.block_start, "origin": store.origin}
        return facts, arrays

    @classmethod
    def from_arrays(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> SolverState:
        """Return a state that `revive` turns into a live one."""
        return cls(None, facts, arrays)

    def revive(self, solver: Any) -> None:
        """Put a restored state into a solver that was built from the same graph.

        Raises:
            MpmNodesError: The solver differs in attributes, precision or cell size.
        """
        facts, arrays, store = self._facts, self._arrays, solver.particles
        for what, mine, its in (("attributes", facts["names"], list(store.names)), ("precision", facts["dtype"], store.dtype.name),
                                ("cell size", facts["cell_size"], store.h),
                                ("materials", facts["materials"], _materials(solver))):
            if mine != its:
                raise MpmNodesError(f"checkpoint: its {what} are {mine}, the graph's are {its}; cook anew without --resume")
        store.origin[:] = arrays["origin"]
        store.count = 0
        store.reserve(facts["count"])
        store.count = facts["count"]
        for name in store.names:
            if name not in solver.transient:
                store.rows(name)[:] = arrays[f"attribute {name}"]
        store.rows("position")[:] = arrays["offset"]
        store.block_coord, store.block_start = arrays["block_coord"].copy(), arrays["block_start"].copy()
        store.sorted = False
        store.next_id, (store.resampling_age, store.keep_next) = facts["next_id"], facts.get("resampling", (0, False))
        solver.time, solver.substeps_done = facts["time"], facts["substeps"]
        solver.resume_choice(facts.get("choice"))


def _materials(solver: Any) -> list[list[Any]]:
    """Return what must be the same in a resumed solve; a material without viscosity of its own as older checkpoints have it."""
    return [[m.law, dict(m.params), m.density, *([m.viscosity] if m.viscosity else [])] for m in solver.materials]
