"""What the stages of a solve remember between substeps, saved and restored as they declare it."""

from __future__ import annotations

import copy as copies
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import StageMemory
from mpm_nodes.solver.stores import Saved, Store


class StageMemories(Store):
    """The memories of all stages.

    Args:
        memories: By a name that no renaming of stages changes.
    """

    def __init__(self, memories: Mapping[str, StageMemory]) -> None:
        self.memories = dict(memories)

    def kind(self) -> dict[str, Any]:
        """See `Store`."""
        return {"stages": {key: sorted(vars(memory)) for key, memory in self.memories.items()}} if self.memories else {}

    @property
    def keep_next(self) -> bool:
        """Whether a stage asks the next substep to store what it reads on request."""
        for memory in self.memories.values():
            if memory.keep_next:
                return True
        return False

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`; arrays stand among the tables."""
        facts: dict[str, Any] = {}
        tables: dict[str, np.ndarray] = {}
        for key, memory in self.memories.items():
            values = {each.name: getattr(memory, each.name) for each in dataclasses.fields(memory)}
            arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
            facts[key] = {name: copies.deepcopy(value) for name, value in values.items() if name not in arrays}
            tables |= {f"{key}.{name}": array.copy() if copy else array for name, array in arrays.items()}
        return Saved(facts, {}, tables)

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        for key, memory in self.memories.items():
            for each in dataclasses.fields(memory):
                array = saved.tables.get(f"{key}.{each.name}")
                value = copies.deepcopy(saved.facts[key][each.name]) if array is None else array.copy()
                setattr(memory, each.name, value)

    @property
    def nbytes(self) -> int:
        """See `Store`."""
        values = [value for memory in self.memories.values() for value in vars(memory).values()]
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
