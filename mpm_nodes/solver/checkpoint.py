"""What a solve hands to its next frame, and what of it goes to disk.

A live state holds the solver itself, which the next frame moves on in place. A restored one holds raw arrays until the solve
node, which knows materials and colliders, builds a solver around them. Memory order is part of the state: every frame begins with
a sort, so a resumed solve continues with the same bits as one that was never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.solver.emission import Stream
from mpm_nodes.solver.restored import refuse_other_facts
from mpm_nodes.solver.stores import Saved

if TYPE_CHECKING:
    from mpm_nodes.solver.run import SubstepSolver


PASSIVE = "passive"
"""Where passive matter stands among the domains."""
LONGEST_LIST = 120
"""Characters of a list of names in a message."""


class SolverState:
    """State of a solve after a frame; numba is not needed to hold or store one.

    Args:
        solver: A live `SubstepSolver`, or None for a restored state.
        facts: JSON-able facts of a restored state.
        arrays: Arrays of a restored state.

    Attributes:
        STATE_FORMAT: Raised when checkpoints of older versions can no longer be continued; the archive holds it.
    """

    STATE_FORMAT: ClassVar[int] = 2

    def __init__(
        self, solver: SubstepSolver | None = None, facts: dict[str, Any] | None = None, arrays: dict[str, np.ndarray] | None = None
    ) -> None:
        self.solver = solver
        self.has_other_settings = self.is_trial = False
        self._facts: dict[str, Any] = {} if facts is None else facts
        self._arrays: dict[str, np.ndarray] = {} if arrays is None else arrays
        self._further: list[SolverState] = []

    @property
    def parts(self) -> int:
        """How many ranks hold a part of it."""
        return 1 if self.solver is None else self.solver.share.size

    @classmethod
    def joined(cls, parts: list[SolverState]) -> SolverState:
        """Return the state of which ranks stored parts, in their order."""
        parts[0]._further = parts[1:]
        return parts[0]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if self.solver is None:
            return sum(array.nbytes for array in self._arrays.values())
        return sum(store.nbytes for store in (*self.solver.stores.values(), self.solver.passive.store))

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and raw arrays that `from_arrays` takes; a live solver's are views until its next substep."""
        if self.solver is None:
            return self._facts, self._arrays
        solver, choice = self.solver, self.solver.candidates.choice
        facts: dict[str, Any] = {
            "time": solver.time,
            "substeps": solver.substeps_done,
            "choice": choice and [choice.index, choice.dt, list(choice.cost), solver.candidates.own_dt],
            "kind": _kind(solver),
            "domains": {},
            **solver.share.facts(),
        }
        if solver.step_context.tied_to:
            facts |= {"ties": list(solver.step_context.tied_to), "severed": sorted(solver.step_context.severed)}
        arrays: dict[str, np.ndarray] = {}
        for place, store in solver.lasting_stores.items():
            saved = store.save(solver.unsaved(place), copy=False)
            facts["domains"][place], own = saved.to_arrays()
            arrays |= {f"{place} {name}": values for name, values in own.items()}
        if (passive := solver.passive.save()) is not None:
            facts["domains"][PASSIVE], own = passive.to_arrays()
            arrays |= {f"{PASSIVE} {name}": values for name, values in own.items()}
        nozzles = {f"nozzle {n}": stream.state() for n, stream in enumerate(solver.matter.streams)}
        arrays |= {name: state for name, state in nozzles.items() if state is not None}
        return facts, arrays

    @classmethod
    def from_arrays(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> SolverState:
        """Return a state that `revive` turns into a live one."""
        return cls(None, facts, arrays)

    def for_other_settings(self) -> SolverState:
        """Return the state for a solve with other settings: matter, its history and ids stay, all else is the new solve's."""
        state = SolverState(None, *self.to_arrays())
        state.has_other_settings = True
        return state

    def for_trial(self) -> SolverState:
        """Return the state for a solve that says whether it could take the matter up, and moves nothing."""
        state = self.for_other_settings()
        state.is_trial = True
        return state

    def revive(self, solver: SubstepSolver, begin: float = 0.0) -> None:
        """Put a restored state into a solver that was built from the same graph, or from one with other settings.

        Args:
            solver: The solver.
            begin: Simulated seconds at which it goes on; counts where the settings are others, and the pace of time may be.

        Raises:
            MpmNodesError: The solver differs in attributes, precision or cell size.
        """
        from mpm_nodes.solver.ranks.resumed import take_up

        facts, others = self._facts, self.has_other_settings
        there = facts.get("domains")
        if others and isinstance(there, dict) and (lacking := [place for place in solver.lasting_stores if place not in there]):
            what = lacking[0].replace("_", " ")
            raise MpmNodesError(f"the matter that is there has no {what}, which this graph has; cook from the beginning")
        refuse_other_facts(solver, facts)
        for what, its in _kind(solver).items():
            mine = facts["kind"].get(what)
            if others and what == "materials":
                _check_materials(mine or [], its, any(m.thermal and m.thermal.melt for m in solver.matter.materials))
            elif mine != its and others:
                raise MpmNodesError(
                    f"the {what} of the matter that is there {_differing(mine, its)}; set sources, materials, substeps and "
                    "precision back, or cook from the beginning"
                )
            elif mine != its:
                raise MpmNodesError(f"checkpoint: its {what} are {mine}, the graph's are {its}; cook again without --resume")
        if self.is_trial:
            return
        for place, store in solver.lasting_stores.items():
            if place == "particles" and (self._further or solver.share.several):
                take_up(solver, [(part._facts, part._arrays) for part in (self, *self._further)])
                continue
            own = {name.removeprefix(f"{place} "): a for name, a in self._arrays.items() if name.startswith(f"{place} ")}
            store.restore(Saved.from_arrays(facts["domains"][place], own))
        if isinstance(passive := facts["domains"].get(PASSIVE), dict):
            own = {name.removeprefix(f"{PASSIVE} "): a for name, a in self._arrays.items() if name.startswith(f"{PASSIVE} ")}
            solver.passive.restore(Saved.from_arrays(passive, own))
        solver.time, solver.substeps_done = begin if others else facts["time"], facts["substeps"]
        for n, stream in enumerate(solver.matter.streams):
            state = self._arrays.get(f"nozzle {n}")
            if isinstance(stream, Stream) and state is not None and (not others or stream.fits(state)):
                stream.restore(state)
        step = solver.step_context
        step.tied_to, step.severed = tuple(map(str, facts.get("ties", ()))), frozenset(map(int, facts.get("severed", ())))
        choice = facts["choice"]
        if not others or (choice and len(choice[2]) == len(solver.candidates.names)):
            solver.resume_choice(choice)


def _check_materials(old: Sequence[Any], new: Sequence[Any], melts: bool) -> None:
    """Raise where particles of the first materials cannot be those of the second: parameters may differ, more may follow."""
    cure = "set it back, or cook from the beginning"
    if len(new) < len(old) or (melts and len(new) != len(old)):
        raise MpmNodesError(f"the matter that is there has {len(old)} materials, and this graph has {len(new)}; {cure}")
    for number, (before, now) in enumerate(zip(old, new[: len(old)], strict=True), 1):
        for what, place in (("law", 0), ("density", 2)):
            if before[place] != now[place]:
                raise MpmNodesError(
                    f"the {what} of material {number} was {before[place]}, is {now[place]}; matter that is there keeps it: {cure}"
                )


def _differing(old: Any, new: Any) -> str:
    """Say how two values differ; of lists what one has and the other has not, since a part of a list could leave just that out."""
    if not (isinstance(old, list) and isinstance(new, list)) or sorted(map(str, old)) == sorted(map(str, new)):
        return f"{'are' if isinstance(old, list) else 'is'} {_short(old)}, and this graph needs {_short(new)}"
    lacking, more = [[each for each in one if each not in other] for one, other in ((new, old), (old, new))]
    said = [f"lack {_short(lacking)}, which this graph needs"] if lacking else []
    return " and ".join(said + ([f"have {_short(more)}, which this graph does not know"] if more else []))


def _short(value: Any) -> str:
    """Return a value as text, whole names of a list as far as they fit, and how many more there are."""
    if not isinstance(value, list):
        text = str(value)
        return text if len(text) <= LONGEST_LIST else text[: LONGEST_LIST - 4] + " ..."
    names = [str(each) for each in value]
    shown = len(names)
    while shown > 1 and len(", ".join(names[:shown])) > LONGEST_LIST:
        shown -= 1
    left = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {left} more" if left else "")


def _kind(solver: SubstepSolver) -> dict[str, Any]:
    """Return what must be the same in a resumed solve, by what it is called."""
    from mpm_nodes.solver.coefficients import sampled

    first = [sampled(material, -math.inf) for material in solver.matter.materials]  # keyed ones by their first values
    materials: list[Any] = [[m.law, dict(m.params), m.density, m.viscosity] for m in first]
    for material, facts in zip(first, materials, strict=True):  # solves without tables stay as they were stored
        facts += [{name: table.to_json() for name, table in material.tables.items()}] if material.tables else []
    kinds = {place: store.kind() for place, store in solver.lasting_stores.items()}
    named = {what if place == "particles" else f"{place} {what}": v for place, kind in kinds.items() for what, v in kind.items()}
    return {**named, "materials": materials}
